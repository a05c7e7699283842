/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* box: builds one sandbox and is its PID 1.
 *
 *   outer   a fresh process on the host: makes the namespaces, writes the id maps, makes and
 *           joins the cgroups, then watches; when the run is over or its caller is gone it ends
 *           everything and removes what was made for it. It outlives its caller for just that.
 *   inside  PID 1 of the sandbox: builds the root, gives up every right step by step, parks,
 *           reports what it sees, and runs the command once it is released.
 *
 * Neither parses anything hostile: the plan comes sealed from the caller and is checked for
 * bounds, messages have a fixed size, and of the sandbox's own doing only numbers are read. */

#include "flow/execute/box-wire.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Tests build boxes that lack a wall (tests/flow/degraded), to see that the missing wall is
 * noticed. In any other build this is false and costs nothing. */
#ifndef BOX_WITHOUT
#define BOX_WITHOUT ""
#endif
static inline bool box_lacks(const char *wall)
{
    return strstr(BOX_WITHOUT, wall) != NULL;
}

struct cgroup_set;

/* What a spawner has prepared: a user namespace with the sandbox's ids, and two mount namespaces
 * of it. */
struct template
{
    int user_fd;
    int host_fd;      /* sees what this machine sees: sources are opened there */
    int mount_fd;     /* the root of a sandbox, but for what is each one's own */
    int net_fd;       /* without a usable interface, for sandboxes that can make no socket */
    int maker_fd;     /* to who makes sets ahead; -1: nobody */
    struct buf rules; /* what such a set's ruleset has: ahead_rules() */
};

/* One sandbox's own, made before it was asked for (box-ahead.c); -1: not made, or not needed. */
struct ahead {
    int net_fd, ipc_fd, uts_fd;
    int mount_fd;
    int ruleset_fd;
};
#define AHEAD_FDS 5
#define AHEAD_NONE                                                                                 \
    {                                                                                              \
        -1, -1, -1, -1, -1                                                                         \
    }

struct box {
    const struct box_plan *plan;
    struct cgroup_set *groups;    /* made by outer, entered by inside; NULL: none */
    int sync_fd;                  /* between outer and inside: one byte per thing that is ready */
    int tree_fds[BOX_MOUNTS_MAX]; /* detached mounts, or -1 */
    bool prepared;                /* begin with the template; else there is none */
    struct template template;
    struct ahead ahead; /* what of it was not entered yet */
    bool net_ahead;     /* it came with a network, with mounts */
    bool mounts_ahead;
    const bool *covered;       /* per path of the plan: ahead.ruleset_fd has its rule */
    int spawner_fd;            /* a pidfd of the spawner that made us, or -1 */
    struct commands *commands; /* with a way out: box-identity.h; else NULL */
};

/* box-plan.c */
int plan_open(int fd, const struct box_plan **out, struct err *err) MUST_CHECK;
void plan_close(const struct box_plan *plan); /* mapped otherwise until the process ends */
const char *plan_text(const struct box_plan *plan, uint32_t at);
const void *plan_array(const struct box_plan *plan, uint32_t at);

/* box-root.c: sources are opened where they can still be seen, by whoever may see them. */
int root_open_sources(struct box *box, bool before_namespaces, struct err *err) MUST_CHECK;
int root_build(struct box *box, struct err *err) MUST_CHECK;
/* For a template: all of the root that sandboxes of the same plan can share, read-only, and the
 * places for the rest. */
int root_build_template(struct box *box, struct err *err) MUST_CHECK;
/* The /proc of our PID namespace, as a detached mount. */
int root_open_proc(struct box *box, struct err *err) MUST_CHECK;
/* Whether a mount is part of a template; or is each sandbox's own but no different. */
bool root_is_shared(const struct box_mount *mount);
bool root_is_ahead(const struct box_mount *mount);
/* The latter, in a copy of the template. */
int root_attach_ahead(const struct box_plan *plan, struct err *err) MUST_CHECK;
bool root_has_template(const struct box_plan *plan);

/* box-steps.c: all walls, in order. */
int steps_run(struct box *box, struct err *err) MUST_CHECK;
int become_user(struct box *box, struct err *err) MUST_CHECK;
/* A Landlock rule for what was opened at a path of the plan; -1: it was not, errno says why. */
int allow_opened(const struct box_plan *plan, const struct box_path *path, int fd, int ruleset_fd,
                 struct err *err) MUST_CHECK;

/* box-spawner.c: makes boxes for one owner until the owner is gone. */
int spawner_run(void);

/* box-template.c: the template of a plan, made at first sight. */
struct templates;
struct templates *templates_new(void);
int templates_find(struct templates *templates, const struct box_plan *plan, struct template **out,
                   struct err *err) MUST_CHECK;

/* box-ahead.c: sets for the sandboxes to come. The maker's life, then the spawner's side of it:
 * asks for the first ones; takes one if there is one, and asks for another. */
NORETURN void ahead_serve(const struct box_plan *plan, int mount_fd, int spaces_fd, int fd);
void ahead_begin(struct template *template);
void ahead_take(struct template *template, struct ahead *out);
void ahead_close_spaces(struct ahead *ahead); /* all but the ruleset */
void ahead_close(struct ahead *ahead);
/* The rules a set's ruleset has; and which paths of a plan they are for. False: it has a rule that
 * the plan does not have. */
int ahead_rules(const struct box_plan *plan, struct buf *out, struct err *err) MUST_CHECK;
bool ahead_covers(const struct box_plan *plan, struct str rules, bool *covered);

/* box-report.c: what can be seen from inside once the walls stand. */
int report_send(const struct box *box, struct err *err) MUST_CHECK;
/* The same for a caller who may have it, by its number. Never waits: -1 for one who does not read.
 */
int report_answer(const struct box *box, int fd, uint64_t number, struct err *err) MUST_CHECK;
/* Looks before anybody asks, so that only what can have changed has to be looked at then. */
void report_prepare(const struct box *box);

/* box-command.c: runs what a plan says with our 0, 1 and 2 and tells BOX_FD_INSIDE about it;
 * returns when it has ended, 1 when it is to be ended. */
struct command {
    char **argv;
    char **env;
    const char *tty_path; /* of its terminal, or NULL */
    int tty_fd;           /* our end of it, or -1 */
    int signals_fd;       /* readable when a child has ended */
    const int *streams;   /* what becomes its 0, 1 and 2; NULL: ours */
    int workdir_fd;       /* where it starts; -1: where we are */
    bool exec_once;       /* and then nothing else */
    pid_t pid;
};
void command_init(struct command *command, const struct box_plan *plan);
void command_done(struct command *command);
int command_spawn(struct command *command); /* the errno of a failed exec, or 0 */
/* Only starts it; the errno of a failed exec comes back in *exec_errno. */
int command_start(const struct box_plan *plan, struct command *out, int *exec_errno,
                  struct err *err) MUST_CHECK;
/* Reaps all that have ended; true when the command was among them. */
bool command_reap(const struct command *command, int *status);
uint64_t command_cpu_us(void);
uint64_t command_peak_bytes(void);
void command_io(uint64_t *read_bytes, uint64_t *written_bytes); /* from and to disks */
int command_wait_for_release(struct err *err) MUST_CHECK;
int command_run(const struct box_plan *plan, struct err *err) MUST_CHECK;

/* box-once.c: from once_load() on this process and those it makes become one program, by
 * once_exec(), which answers an errno; after once_forget() none. What else they would become is
 * heard at *heard_fd. */
int once_load(int *heard_fd, struct err *err) MUST_CHECK;
int once_exec(const char *path, char *const *argv, char *const *env);
void once_forget(void);
/* -1 with EPERM: so it is here. */
int once_probe(void);

/* box-attempts.c: a thread of outer that refuses and counts what is heard there until the last
 * process under that filter is gone; it takes over the descriptor. And how often a command has
 * tried so far. */
int attempts_start(int heard_fd, struct err *err) MUST_CHECK;
uint64_t attempts_count(void);

/* box-serve.c: PID 1 of a kept sandbox: a process of its own for every command that comes while it
 * runs another one itself. */
enum { PASSED_PLAN, PASSED_IN, PASSED_OUT, PASSED_ERR, PASSED_COUNT };
int serve_run(const struct box *box, struct err *err) MUST_CHECK;
int workdir_open(const char *path, struct err *err) MUST_CHECK;
/* All children of this process but these; how many there were. */
size_t children_kill(const pid_t *spared, size_t spared_n);

/* box-direct.c: the command PID 1 runs itself, for one caller. */
struct direct {
    int caller_fd;       /* -1: none runs, and nothing is left of one */
    pid_t pid;           /* of the command; 0: it has ended, what it left has not */
    bool caller_gone;    /* then nobody has to be told */
    uint64_t give_up_us; /* when what it left is left alone */
    struct box_message exited;
};
bool direct_fits(const struct direct *direct, const struct box_plan *plan);
/* Takes over the connection; 0 also when the command could not be started, which was told. -1: the
 * connection is of no use any more. */
int direct_start(struct direct *direct, const struct box_plan *plan, int caller_fd,
                 const int fds[PASSED_COUNT], struct err *err) MUST_CHECK;
/* One message of its caller. */
void direct_obey(struct direct *direct, const pid_t *keepers, size_t keeper_n);
/* A child that is no keeper has ended. */
void direct_reaped(struct direct *direct, pid_t pid, int status, const struct rusage *usage);
/* After all that have ended were reaped; the caller when it is free again, or -1. */
int direct_look(struct direct *direct, const pid_t *keepers, size_t keeper_n);

/* box-files.c: files and ports for a caller outside, until its connection ends. */
int files_serve(const struct box *box, struct err *err) MUST_CHECK;
int ports_serve(const struct box_message *first, struct err *err) MUST_CHECK;

void leftovers_end(void); /* all children of this process and theirs */

/* box-detached.c: a command whose keeper needs no caller; fds are its socket, log and lock. */
int detached_run(const struct box_plan *plan, const int fds[3], struct err *err) MUST_CHECK;

/* box-enter.c: PID 1 out of a template, begun and, once it exists, ended; it is a child of ours,
 * *pidfd is of it. */
struct told;
struct entering {
    pid_t between;
    struct told *told;
};
int enter_begin(struct box *box, int cgroup_fd, struct entering *out, struct err *err) MUST_CHECK;
int enter_end(struct box *box, const struct entering *entering, pid_t *pid, int *pidfd,
              struct err *err) MUST_CHECK;
int enter_mounts(struct box *box, struct err *err) MUST_CHECK;
NORETURN void be_inside(struct box *box);

/* box-outer.c: the life of the outer process; returns when nothing of the run is left. */
int outer_run(struct box *box, struct err *err) MUST_CHECK;

/* box-watch.c: looks at what the sandbox holds; answers the limit it is over, or REASON_NONE. */
struct watch {
    const struct box_plan *plan;
    int proc_fd; /* the sandbox's own /proc, or -1 */
    int shm_fd;  /* its /dev/shm, or -1 */
    uint64_t peak_memory_bytes;
    uint64_t memory_bytes; /* at the last look */
    uint64_t processes;
    uint64_t disk_bytes;
    uint64_t next_disk_us;
    bool disk_left; /* the last look at the disk was cut short: look again soon */
    bool pids_reached;
};
enum reason watch_look(struct watch *watch);
/* How many there are; and whether all but PID 1 are stopped, or are ending. */
uint64_t watch_count(const struct watch *watch);
/* From and to disks since it was made: of those that live, and of all that somebody in it has
 * waited for, which in the end is PID 1. 0 where the kernel does not let us look: only root may. */
void watch_io(const struct watch *watch, uint64_t *read_bytes, uint64_t *written_bytes);
bool watch_all_stopped(const struct watch *watch);

/* box-control.c: how long a kept sandbox lives, and the orders it takes. */
struct life {
    uint64_t expires_us; /* UINT64_MAX: never */
    uint64_t limit_us;   /* no extension goes beyond */
    uint64_t idle_us;
    uint64_t busy_us; /* when something last ran in it */
    bool paused;
    bool serves; /* it stands and takes commands; before that it is being made */
    int hold_fd; /* whoever has it hold still, or -1 */
    uint64_t hold_until_us;
    int heir_fd; /* whoever takes it over, or -1 */
    /* One for the pool. It ends with its supervisor until that settles it; then it can be taken,
     * once, and has a supervisor again. */
    bool tied;
    bool taken;
};
void life_begin(struct life *life, const struct box_plan *plan);
enum reason life_over(struct life *life, uint64_t processes);
uint64_t life_left_ms(const struct life *life); /* to the next thing life_over() could say */
/* Answers one connection; the reason to end the sandbox, or the one there was before. */
enum reason control_answer(struct box *box, struct life *life, const struct watch *watch,
                           struct cgroup_set *groups, int pid, enum reason before);
void paused_mark(const struct box_plan *plan, bool paused);
/* The supervisor leaves it to itself, for as long as it says. */
void life_settle(struct life *life, const struct box_message *message);

/* box-hold.c: a sandbox that holds still, and one that is left to another box. */
struct hold {
    struct box *box;
    struct life *life;
    const struct watch *watch;
    struct cgroup_set *groups;
};
int hold_processes(const struct hold *hold, bool still, struct err *err) MUST_CHECK;
int hold_begin(const struct hold *hold, struct err *err) MUST_CHECK;
/* The caller has gone, or has had its time. */
void hold_end(const struct hold *hold);
int yield_begin(const struct hold *hold, bool whoever_lives, struct err *err) MUST_CHECK;
/* Everything of the sandbox has ended; -1: there is nobody to leave it to. */
int yield_end(const struct hold *hold, struct box_message *gone, struct err *err) MUST_CHECK;

/* box-idle.c: memory nobody needs while nothing happens; and how long that is waited for. */
#define IDLE_AFTER_MS 500
void idle_give_back(void);

/* box-message.c */
int message_send(int fd, const struct box_message *message, struct err *err) MUST_CHECK;
/* 1 for a message, 0 when the other side is gone. */
int message_receive(int fd, struct box_message *out, struct err *err) MUST_CHECK;
/* 0, 1 and 2 become /dev/null: the caller's pipes must end with the command, not with us. */
void streams_let_go(void);
