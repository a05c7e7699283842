/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to the local provider. */

#include "flow/execute/backend.h"
#include "flow/execute/box-wire.h"
#include "lib/base/buf.h"
#include "lib/linux/cgroup.h"

#include <sys/signalfd.h>
#include <sys/types.h>

#define RUN_DIR_BYTES 4096
#define LAYERS_MAX 8

/* One sandbox of this process, from the first folder made for it to the last one removed. */
struct local {
    char run_dir[RUN_DIR_BYTES]; /* "" when nothing was made */
    int lock_fd;                 /* held by us and by box while the run exists */
    struct layer {
        char name[16];
        int fd;
    } layers[LAYERS_MAX]; /* the folders of its writable layer */
    size_t layer_n;
    int execs_fd; /* kept: listening sockets, handed to box */
    int control_fd;
    bool cleared;        /* folder and cgroups are gone: the lock may go, too */
    bool stays;          /* a kept sandbox that stands: it is not ours to end */
    bool joined;         /* a command in a kept sandbox: the folder is not ours to remove */
    bool taken;          /* joined, and all of it is ours: it came out of the pool */
    int box_lock_fd;     /* joined: where its sandbox says why it ended; -1: not opened */
    bool clear;          /* joined: the command is over, and its connection takes another */
    struct joint *joint; /* joined: what else is kept between two commands, or NULL */
    const char *state_dir;
    char exec_dir[RUN_DIR_BYTES]; /* joined: what its lock is named after */
    pid_t outer;                  /* our child; -1: there is none, or a spawner's */
    bool spawned;                 /* outer is a spawner's child, */
    int outer_fd;                 /* and this a pidfd of it, or -1 */
    pid_t inside;                 /* PID 1 as the host sees it */
    int supervisor_fd;
    int inside_fd;
    int in_fd, out_fd, err_fd; /* our ends of the command's streams */
    int passed_fds[3];         /* joined: the other ends, until they are handed over */
    int signals_fd;
    struct signalfd_siginfo size; /* of its terminal, asked for before there was one */
    int cancelled_by;             /* the signal, or 0 */
    enum reason cancel_reason;    /* of it */
    bool gone;                    /* box said that nothing is left */
    struct box_message end;       /* what it said */
    struct cgroup_limits held;    /* what its groups hold; all zero when PID 1 is not in them */
    struct cgroup_usage before;   /* joined: what its groups had refused before the command */

    const struct cgroup_host *groups; /* the trees a run's groups are in */
};

/* local.c */
struct local *local_new(void);
/* From here on a signal is something to read, not something that ends us. */

/* local-offer.c */
int local_offer(struct execute *execute, struct run *run, struct err *err) MUST_CHECK;

/* local-runs.c: the folder of a run, under a lock that ends with its last process. */
int run_dir_make(struct execute *execute, struct run *run, struct local *local,
                 struct err *err) MUST_CHECK;
int layers_make(struct run *run, struct local *local, struct err *err) MUST_CHECK;
/* The layer of that name, opening it in the run's folder at first sight; -1: it is not there. */
int layer_fd(struct local *local, const char *name, struct err *err) MUST_CHECK;
/* The lock of a command in a kept sandbox: found free, its Brig is dead. */
int exec_lock_make(struct execute *execute, struct run *run, struct local *local,
                   struct err *err) MUST_CHECK;
/* The lock of a run that loses its sandbox and gets another, until then. */
void run_lock_keep(struct execute *execute, const struct run *run, struct local *local);
void run_lock_drop(struct execute *execute);
/* local-detached.c: a command that runs without us (exec-wire.h). */
int detached_prepare(struct run *run, struct local *local, struct err *err) MUST_CHECK;
int detached_release(struct run *run, struct local *local, struct err *err) MUST_CHECK;
/* What the lock of a dead run says: the sandbox it was detached in, and whether its end was
 * recorded already. False: it was not detached. */
bool detached_lock(int lock_fd, char sandbox[ID_BYTES], bool *recorded);
/* How it ended; false: it did not get to say. */
bool detached_outcome(int runs_fd, const char *id, struct outcome *out);
/* What its sandbox took with it: killed, for this reason; what is kept of its output is counted. */
void detached_taken(int runs_fd, const char *id, enum reason reason, struct outcome *out);
/* What outer wrote into the lock of a kept sandbox; RUN_ABANDONED: nothing. */
enum reason reason_in(int lock_fd);
bool kept_is_held(const struct execute *execute, const char *id);

/* Folder, cgroups and lock of one that is over; its lock is ours. runs_fd is the folder it is in.
 */
int run_remove(int runs_fd, const char *run_id, struct err *err) MUST_CHECK;
void run_dir_clear(struct local *local); /* the folder and the cgroups */
void run_dir_close(struct local *local); /* the lock, last of all */
void cgroup_name_of(const char *run_id, char out[CGROUP_NAME_BYTES]);

/* local-plan.c: the plan as box wants it, sealed. Sources that are handed over as descriptors
 * are listed in fds, to be given to box from BOX_FD_FIRST_MOUNT on. */
#define HANDED_MAX (BOX_MOUNTS_MAX + 4 + PLAN_HOLDS_MAX) /* mounts, three sockets, what is held */
struct handed {
    int fds[HANDED_MAX];
    size_t n;
};
int box_plan_seal(struct run *run, struct local *local, struct handed *handed, int *out_fd,
                  struct err *err) MUST_CHECK;

/* Only what a command for a sandbox that stands needs of it. */
int command_plan_seal(struct run *run, const struct local *local, int *out_fd,
                      struct err *err) MUST_CHECK;

/* local-spawn.c: by a box of its own, or by a spawner. */
int box_spawn(struct run *run, struct local *local, struct spawner *spawner,
              struct err *err) MUST_CHECK;
/* The sandbox of execute->local, by the spawner if there is one. */
int local_spawn(struct execute *execute, struct run *run, struct err *err) MUST_CHECK;
/* Starts box with these descriptors from 0 on; argument is NULL or its only one. */
int box_start(const int *fds, size_t n, const char *argument, pid_t *out,
              struct err *err) MUST_CHECK;
/* local-spawner.c: asks for a box with these. */
int spawner_ask(struct spawner *spawner, const int *fds, size_t n, struct err *err) MUST_CHECK;
/* Waits for the end of a process by its pidfd; false: it did not end in time. */
bool wait_for_end(int pidfd, uint64_t wait_us);

/* local-observe.c: run->seen, first from what the kernel says of PID 1, which must be known, then
 * from box's report. */
int observe_outside(struct run *run, struct local *local, struct err *err) MUST_CHECK;
void observe_inside(struct run *run, struct local *local, struct str report);

/* local-relay.c: from the release to the end. */
int relay(struct run *run, struct local *local, const struct streams *streams,
          struct err *err) MUST_CHECK;
/* For one who is attached over fd with the other ends of three pipes, until the command ends
 * (end->kind is BOX_EXITED) or a signal comes (it is not). */
int relay_attached(int fd, const int pipes[3], const struct streams *streams, int signals_fd,
                   bool tty, struct box_message *end, struct err *err) MUST_CHECK;
void outcome_exited(struct outcome *outcome, int status);
void outcome_not_started(struct run *run, int os);

/* mirror-copy.c: the folder of this machine that the run mirrors, into its layer. */
int mirror_fill(struct run *run, struct local *local, struct err *err) MUST_CHECK;

/* kept-joint.c: what a process keeps of a sandbox between two commands of its own in it. A
 * connection to PID 1 lives exactly as long as that one; what was seen over it holds as long as
 * PID 1 says so. */
struct joint {
    char sandbox[ID_BYTES];
    int inside_fd;
    int box_lock_fd;
    pid_t inside;
    int status_fd;          /* /proc/PID/status of PID 1 */
    uint64_t report_number; /* 0: none yet */
    struct buf report;
    struct cgroup_host host; /* the set borrows it */
    struct cgroup_set groups;
    uint64_t used; /* the higher, the later */
};
struct joints;
void joints_free(struct joints *joints);
/* The one of that sandbox, taken out; NULL: there is none whose PID 1 still lives. */
struct joint *joint_take(struct execute *execute, const char *sandbox);
void joint_put(struct execute *execute, struct joint *joint); /* takes it over */
void joints_forget(struct execute *execute);                  /* those whose sandbox has ended */
void joint_free(struct joint *joint);
AUTO_TYPE(joint)

/* local-kept.c: a sandbox that stays, and a command in one that stays. */
int kept_release(struct run *run, struct local *local, struct err *err) MUST_CHECK;
int joined_begin(struct execute *execute, struct run *run, struct local *local,
                 struct err *err) MUST_CHECK;
int joined_streams(struct local *local, struct err *err) MUST_CHECK;
int joined_start(struct run *run, struct local *local, struct err *err) MUST_CHECK;
void joined_end(struct execute *execute, struct run *run, struct local *local);

/* Waits for the next message of either end of box; a signal to us, the deadline or the end of
 * both is a failure. Which end it was is in *from_inside. */
int box_wait(struct local *local, uint64_t deadline_us, struct box_message *out, bool *from_inside,
             struct err *err) MUST_CHECK;
int box_say(int fd, enum box_message_kind kind, int status);
