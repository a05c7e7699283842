/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/str.h"
#include "model/reason.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct moved;
struct run;
struct buf;
struct outcome;
struct snapshot;
struct snapshot_store;
struct words;

/* Inside what a run happens: one provider out of a table. */
struct execute;

/* Where the streams of the command go. Descriptors are borrowed. */
struct streams {
    int in_fd;  /* -1: the command reads end of file */
    int out_fd; /* -1: kept in the outcome only */
    int err_fd;
    bool keep;                /* keep the first bytes of both in the outcome */
    atomic_bool *is_released; /* set right before the command begins, or NULL */
};

int execute_open(const char *state_dir, struct execute **out, struct err *err) MUST_CHECK;
void execute_free(struct execute *execute);
AUTO_TYPE(execute)
const char *execute_state_dir(const struct execute *execute);

/* A process that builds local sandboxes for this one and is quicker at it: it lives on, and keeps
 * what sandboxes have in common prepared. One serves one tenant, any number of `struct execute` and
 * any thread. One-shot runs only: its sandboxes end with it, and it ends with its owner. A spawner
 * that died is noticed by the next run, which starts another. */
struct spawner;
int spawner_open(struct spawner **out, struct err *err) MUST_CHECK;
void spawner_free(struct spawner *spawner);
AUTO_TYPE(spawner)
void execute_use(struct execute *execute, struct spawner *spawner); /* borrowed; NULL: none */

/* Orders to what runs come as signals of this process; or, for one that runs many things, over a
 * descriptor that is read without waiting (borrowed; -1: signals). Its writer stays open while
 * something runs. */
void execute_obey(struct execute *execute, int fd);
enum order_kind {
    ORDER_CANCEL, /* what this signal to Brig would do; value 0: SIGTERM */
    ORDER_LEFT,   /* the same, but nobody said so: whoever it runs for is gone */
    ORDER_SIGNAL, /* value, for the command */
    ORDER_RESIZE, /* value: rows << 16 | columns */
};
int order_give(int fd, enum order_kind kind, unsigned value, struct err *err) MUST_CHECK;

/* What is known of this machine from one run to the next; governors of one process may share one,
 * in any of its threads. Without, each has its own. */
struct offer_memory;
struct offer_memory *offer_memory_new(void);
void offer_memory_free(struct offer_memory *memory);
void execute_recall(struct execute *execute, struct offer_memory *memory);

/* Fills run->offer for the provider the action names. ERR_NOT_FOUND: there is no such provider;
 * ERR_UNAVAILABLE: it cannot be used here, and the text says what would help. */
int execute_offer(struct execute *execute, struct run *run, struct err *err) MUST_CHECK;

/* Takes a sandbox out of the pool that is exactly what the run's plan says, if there is one: its id
 * is run->sandbox_id then, and execute_begin() begins with it. Whatever stands in the way, the
 * answer is only that none was taken. */
bool execute_take(struct execute *execute, struct run *run);
bool execute_has_taken(const struct execute *execute);
/* Whether, before anything was begun, an order to end has come; none is taken. REASON_NONE: no, or
 * they come as signals, which end whoever waits for something else. */
enum reason execute_told_to_end(const struct execute *execute);
/* Of a sandbox that was cancelled while it was built: by whom. */
enum reason execute_cancel_reason(const struct execute *execute);
/* Since it was opened, one was taken, or there was a pool to take from and nothing in it. */
bool execute_wants_refill(const struct execute *execute);
/* Ends the one that was taken: it is not what it should be. False: we are to end, too. */
bool execute_untake(struct execute *execute, struct run *run);

/* Begins to build the sandbox; what takes time goes on in another process. Then waits until it
 * is parked, and fills run->seen. Between the two the caller has its hands free: that is where
 * the intent becomes durable. */
int execute_begin(struct execute *execute, struct run *run, struct err *err) MUST_CHECK;
int execute_park(struct execute *execute, struct run *run, struct err *err) MUST_CHECK;

/* Runs the command in the parked sandbox until nothing of it is left; fills run->outcome. */
int execute_release(struct execute *execute, struct run *run, const struct streams *streams,
                    struct err *err) MUST_CHECK;

/* Lets go of what a run holds that was only planned; twice is once. */
void execute_forget(struct run *run);

/* Takes down a sandbox that was begun or parked and will not be released. Never fails: what
 * cannot be removed now is found by execute_sweep(). */
void execute_drop(struct execute *execute, struct run *run);

/* Finds what is left of runs whose Brig died and of kept sandboxes that ended, removes it, and
 * names each: kept or not, and why it ended (RUN_ABANDONED when nobody could say). */
struct dead {
    const char *id;
    bool kept;
    enum reason reason;
    const struct outcome *outcome; /* of a detached command that has ended; else NULL */
};
int execute_sweep(struct execute *execute,
                  int (*on_dead)(void *context, const struct dead *dead, struct err *err),
                  void *context, struct err *err) MUST_CHECK;

/* Kept sandboxes. An id without a living sandbox is ERR_NOT_FOUND everywhere. */
struct kept_state {
    int pid; /* its PID 1, as this machine sees it */
    bool paused;
    bool creating;    /* it is being built or compared with its plan: nothing runs in it yet */
    uint64_t left_ms; /* UINT64_MAX: no end set */
    uint64_t processes;
    uint64_t cpu_us; /* 0 where nobody counts */
    uint64_t memory_bytes;
    uint64_t peak_memory_bytes;
    uint64_t disk_bytes;
    uint64_t read_bytes; /* from and to disks, since it was made; 0 unless root made it */
    uint64_t written_bytes;
    const char *network; /* of it: govern_network(), by whoever asks; NULL: nobody did */
};
/* "creating", "running" or "paused". */
const char *kept_state_name(const struct kept_state *state);
int execute_kept_config(struct execute *execute, struct arena *mem, const char *id,
                        const char **out, struct err *err) MUST_CHECK;
int execute_kept_state(struct execute *execute, const char *id, struct kept_state *out,
                       struct err *err) MUST_CHECK;
/* Whether there is one with this id, whatever it is called. */
bool execute_kept_has(struct execute *execute, const char *id);
/* In the order of their ids; not 0 from on_sandbox ends it and is what is returned. */
int execute_kept_each(struct execute *execute,
                      int (*on_sandbox)(void *context, const char *id, struct err *err),
                      void *context, struct err *err) MUST_CHECK;
/* Its processes, without PID 1 and the keepers. */
struct kept_process {
    int pid;          /* as it is inside */
    const char *exec; /* the beginning of the id of the run it belongs to */
    char state;       /* as in /proc: R, S, D, T, Z */
    uint64_t cpu_us;
    uint64_t memory_bytes;
    struct str command; /* whatever the process claims: escape it */
};
int execute_kept_processes(struct execute *execute, const char *id,
                           int (*on_process)(void *context, const struct kept_process *process,
                                             struct err *err),
                           void *context, struct err *err) MUST_CHECK;

/* The commands of a kept sandbox: those that run, and detached ones that have ended. */
struct kept_exec {
    const char *id; /* of its run */
    bool detached;
    bool running;
    bool ended; /* and it is known how */
    bool tty;
    int status; /* as wait() gives it */
    enum reason reason;
    int64_t began_at;  /* seconds since 1970 */
    uint64_t bytes[2]; /* of its two streams so far; detached only */
    uint64_t duration_us;
};
int execute_exec_each(struct execute *execute, const char *sandbox,
                      int (*on_exec)(void *context, const struct kept_exec *exec, struct err *err),
                      void *context, struct err *err) MUST_CHECK;
/* One of them; ERR_NOT_FOUND: there is none of that id. */
int execute_exec_look(struct execute *execute, const char *id, struct kept_exec *out,
                      struct err *err) MUST_CHECK;
/* What is kept of stream 0 or 1 of a detached one from byte `from` on, into out; *next is the
 * number of the byte behind it, and *from moves to the first byte that there still is. */
int execute_exec_read(struct execute *execute, const char *id, unsigned stream, uint64_t *from,
                      struct buf *out, uint64_t *next, struct err *err) MUST_CHECK;
/* Joins a detached command that runs: what is kept of its output, then its streams, until it ends
 * or a signal tells us to leave. out says which. */
int execute_exec_attach(struct execute *execute, const char *id, const struct streams *streams,
                        struct kept_exec *out, struct err *err) MUST_CHECK;

/* Marks a run that makes no sandbox of its own, until the next one begins or it is let go: when
 * Brig dies before it recorded the end, the next one does. */
int execute_claim(struct execute *execute, struct run *run, struct err *err) MUST_CHECK;
void execute_unclaim(struct execute *execute);
/* Lets go of all that the last run has left, locks first of all: for one who stays open without
 * running anything. */
void execute_rest(struct execute *execute);
/* Does what run->action says to its sandbox: pause, resume, extend, destroy. */
int execute_change(struct execute *execute, struct run *run, struct err *err) MUST_CHECK;

/* A kept sandbox can be exchanged for one that is built on other layers. Whoever joins it has a
 * turn from before it reads the config until PID 1 has answered; whoever exchanges it has one
 * alone. Ends by itself when the sandbox is parked. */
int execute_turn(struct execute *execute, const char *id, bool alone, struct err *err) MUST_CHECK;
void execute_turn_end(struct execute *execute);

/* Snapshots of a kept sandbox (lib/snapshot). What is left of its time: for whoever builds it
 * again. */
struct kept_left {
    uint64_t ttl_ms; /* UINT64_MAX: no end set */
    uint64_t max_ms;
    bool paused;
};
/* Holds the sandbox still, copies what it has written into the snapshot, lets it go on. Fills
 * names and held_us. */
int execute_copy_layers(struct execute *execute, struct arena *mem, const char *id,
                        struct snapshot_store *store, struct snapshot *snapshot,
                        struct err *err) MUST_CHECK;
/* The names of its writable layers. */
int execute_layer_names(struct execute *execute, struct arena *mem, const char *id,
                        struct words *out, struct err *err) MUST_CHECK;
/* Ends the sandbox and leaves its folder and lock with us: from here on until it is released
 * again, it ends with us. ERR_CONFLICT: somebody lives in it, and whoever_lives was not said. */
int execute_stop(struct execute *execute, const char *id, bool whoever_lives, struct kept_left *out,
                 struct err *err) MUST_CHECK;
/* Its layers, moved into a snapshot that was begun; NULL: away. */
int execute_move_layers(struct execute *execute, struct snapshot_store *store,
                        const struct snapshot *snapshot, struct err *err) MUST_CHECK;
/* Begins to build the stopped one again by run->plan, in its own folder. Then execute_park(). */
int execute_begin_again(struct execute *execute, struct run *run, struct err *err) MUST_CHECK;
/* What it is made from, before it is released again. */
int execute_kept_rewrite(struct execute *execute, const char *id, const char *config,
                         struct err *err) MUST_CHECK;

/* Files of a kept sandbox: a connection to a process inside it, where every path is resolved and
 * every rule of the sandbox holds. Signals that would end us are held back while it is open; one
 * that comes shows as ERR_CONFLICT and files_cancelled(). */
struct files;

/* As the sandbox shows it. Names are one path component each, checked; texts are anything. */
struct file_entry {
    struct str name;
    struct str target; /* of a link */
    uint32_t mode;     /* with the type of file */
    uint32_t uid, gid;
    uint64_t size;
    int64_t mtime_s;
    uint32_t mtime_ns;
    uint64_t changed_ns; /* content or anything else of it; of an opened file only, else 0 */
};

struct file_listing {
    struct file_entry *entries; /* sorted by name */
    size_t n;
    bool more; /* there are more than a listing holds */
};

struct file_change {
    const char *name; /* "create", "delete", … */
    struct str entry; /* in a folder that is watched, or empty */
};

/* What to tell while bytes move; may be NULL. */
struct files_progress {
    void (*on_moved)(void *context, const struct moved *moved);
    void *context;
};

/* Opens for the sandbox of the run; what is moved is counted in run->outcome.moved. */
int files_open(struct execute *execute, struct run *run, const struct files_progress *progress,
               struct files **out, struct err *err) MUST_CHECK;
void files_free(struct files *files);
AUTO_TYPE(files)
bool files_cancelled(const struct files *files);
enum reason files_cancel_reason(const struct files *files);

/* A file that is no folder is listed alone. */
int files_list(struct files *files, struct arena *mem, const char *path, struct file_listing *out,
               struct err *err) MUST_CHECK;
int files_stat(struct files *files, struct arena *mem, const char *path, bool follow,
               struct file_entry *out, struct err *err) MUST_CHECK;
int files_remove(struct files *files, const char *path, bool recursive, struct err *err) MUST_CHECK;
int files_move(struct files *files, const char *path, const char *to, struct err *err) MUST_CHECK;
int files_make_dir(struct files *files, const char *path, bool parents, struct err *err) MUST_CHECK;
/* Until wait_ms are over (0: no end), a signal comes or on_change answers -1. */
int files_watch(struct files *files, const char *path, uint64_t wait_ms,
                int (*on_change)(void *context, const struct file_change *change, struct err *err),
                void *context, struct err *err) MUST_CHECK;

/* A regular file to a descriptor, as long as it was when it was opened; and a stream to a file,
 * which takes its place when it is complete. */
int files_cat(struct files *files, const char *path, int out_fd, struct err *err) MUST_CHECK;
/* A regular file, opened inside for reading; the caller's to close. */
int files_open_file(struct files *files, const char *path, int *out, struct err *err) MUST_CHECK;
/* The same for whoever wants to see what was opened first, and then maybe a part of it only:
 * on_open fills from, length and out_fd; of a length of 0 nothing is read. What was opened cannot
 * be another file than what is sent. */
struct files_part {
    int (*on_open)(void *context, const struct file_entry *entry, struct files_part *part,
                   struct err *err);
    void *context;
    uint64_t from, length;
    int out_fd;
};
int files_cat_part(struct files *files, const char *path, struct files_part *part,
                   struct err *err) MUST_CHECK;
int files_write(struct files *files, const char *path, int in_fd, struct err *err) MUST_CHECK;
/* A folder with all that is in it as a tar stream, and such a stream into a folder. */
int files_tar_out(struct files *files, const char *path, int out_fd, struct err *err) MUST_CHECK;
int files_tar_in(struct files *files, const char *path, int in_fd, struct err *err) MUST_CHECK;
/* Between this machine and the sandbox: a file, or a folder with all that is in it. Modes (without
 * set-id bits), times, links and holes are kept. Nothing is written through a link, links that
 * would lead out of the copy and special files are left out and counted. */
int files_fetch(struct files *files, const char *path, const char *host_path, bool recursive,
                struct err *err) MUST_CHECK;
int files_push(struct files *files, const char *host_path, const char *path, bool recursive,
               struct err *err) MUST_CHECK;

/* A workspace that was copied in when the sandbox was made: what changed in it since it and the
 * folder of this machine were last the same, and bringing that back (decision 0012). The sandbox is
 * held still meanwhile. */
enum mirror_kind {
    MIRROR_ADDED,
    MIRROR_CHANGED,
    MIRROR_REMOVED,
};

/* What stands in the way of a change. */
enum mirror_why {
    MIRROR_CLEAR,
    MIRROR_CONFLICT,  /* the folder of this machine has changed there, too */
    MIRROR_PROTECTED, /* tools of this machine run it by themselves */
    MIRROR_OUTWARD,   /* a link that leads out of the workspace */
    MIRROR_SPECIAL,   /* no file, folder or link */
    MIRROR_CLOSED,    /* cannot be read, or never holds still */
    MIRROR_FAILED,    /* could not be written here; note says why */
};

struct mirror_change {
    const char *path; /* below the workspace; chosen inside: escape it */
    enum mirror_kind kind;
    enum mirror_why why;
    char type; /* of what is inside, or was: 'f', 'd', 'l', 's', 'x' */
    bool done; /* it is so on this machine now */
    const char *note;
};

struct mirror_options {
    bool apply;
    bool theirs; /* where both changed, the sandbox's counts; */
    bool ours;   /* or this machine's, for good */
    bool include_protected;
    bool include_links;
    bool (*is_protected)(void *context, const char *path, char type);
    /* Both sides of a changed file, or -1, for whoever shows them; may be NULL. */
    int (*on_file)(void *context, const struct mirror_change *change, int host_fd, int inside_fd,
                   struct err *err);
    void *context;
};

struct mirror_result {
    const char *folder;                  /* of this machine */
    const struct mirror_change *changes; /* sorted by path */
    size_t n;
    uint64_t done;
    uint64_t conflicts;
    uint64_t held_back; /* for the other reasons */
};
int files_mirror(struct files *files, struct execute *execute, const char *sandbox,
                 const struct mirror_options *options, struct arena *mem, struct mirror_result *out,
                 struct err *err) MUST_CHECK;
/* Only where it was copied from; ERR_NOT_FOUND: it mirrors none. */
int execute_mirror_folder(struct execute *execute, struct arena *mem, const char *sandbox,
                          const char **out, struct err *err) MUST_CHECK;

/* A port of this machine, on loopback only, whose connections end at run->action.port inside;
 * never the other way round. listen is "127.0.0.1:PORT", "[::1]:PORT" or a port alone; port 0 is
 * any free one. on_open hears where it listens. Until wait_ms are over or a signal comes. */
struct port_call {
    const char *listen;
    uint64_t wait_ms;
    int (*on_open)(void *context, const char *address, unsigned port, struct err *err);
    void *context;
};
int execute_port(struct execute *execute, struct run *run, const struct port_call *call,
                 struct err *err) MUST_CHECK;
/* One connection to a port inside, without a port here. ERR_UNAVAILABLE: nothing listens there, or
 * nobody answered within wait_ms. The socket does not block. */
int execute_connect(struct execute *execute, const char *sandbox, uint16_t port, unsigned wait_ms,
                    int *out, struct err *err) MUST_CHECK;

/* The pool: sandboxes built ahead (ACTION_PREPARE), by the key of their plan. Each is taken once,
 * by one run, and never comes back. */
#define POOL_KEY_BYTES 33
#define POOL_KEYS_MAX 256
/* ERR_INVALID: such a one is never made ahead. */
int execute_pool_key(const struct run *run, char out[POOL_KEY_BYTES], struct err *err) MUST_CHECK;
int execute_pool_keys(struct execute *execute, struct arena *mem, struct words *out,
                      struct err *err) MUST_CHECK;
/* Those of a key that can be taken. */
int execute_pool_each(struct execute *execute, const char *key,
                      int (*on_box)(void *context, const char *id, struct err *err), void *context,
                      struct err *err) MUST_CHECK;
int execute_pool_count(struct execute *execute, const char *key, size_t *out,
                       struct err *err) MUST_CHECK;
/* How one is that nobody has taken. */
int execute_pool_state(struct execute *execute, const char *id, struct kept_state *out,
                       struct err *err) MUST_CHECK;
/* Ends one that nobody has taken; the next sweep tells. ERR_NOT_FOUND: somebody has. */
int execute_pool_end(struct execute *execute, const char *key, const char *id,
                     struct err *err) MUST_CHECK;
/* What those of a key are made from, as the filler wrote it. */
int execute_pool_spec(struct execute *execute, struct arena *mem, const char *key, const char **out,
                      struct err *err) MUST_CHECK;
int execute_pool_set_spec(struct execute *execute, const char *key, const char *spec,
                          struct err *err) MUST_CHECK;
int execute_pool_remove(struct execute *execute, const char *key, struct err *err) MUST_CHECK;
/* One fills at a time. Without waiting for its turn: ERR_CONFLICT, somebody else is waiting
 * already, and will see what we see. The descriptor is the caller's to close. */
int execute_pool_lock(struct execute *execute, bool wait, int *out, struct err *err) MUST_CHECK;

/* For doctor and help. */
const char *const *execute_providers(void); /* ends with NULL */
