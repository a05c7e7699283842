/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What passes between the local provider and `box`: one sealed plan on the way in, fixed-size
 * messages both ways afterwards, and one report while the box is parked. Both ends come from the
 * same build; the plan carries its size and a version all the same.
 *
 * The plan is one block: this header, then arrays, then texts. Every reference is an offset from
 * the start of the block to a NUL-terminated text or to the first element of an array. */

#include "lib/base/err.h"
#include "model/run.h"

#include <stdint.h>

#define BOX_PLAN_MAGIC 0x67697262U /* "brig" */
#define BOX_PLAN_VERSION 2U
#define BOX_PLAN_MAX (8UL << 20)
#define BOX_REPORT_MAX (192UL << 10)
#define BOX_MOUNTS_MAX 448
#define BOX_LOWERS_MAX 192
#define BOX_EGRESS_PORTS_MAX 1024
#define PAUSED_MARK "paused" /* in the folder of a kept sandbox, while it is paused */
#define LAYER_WORK ".work"   /* behind a layer's path: the folder overlayfs works in */

/* The descriptors a box is born with, besides 0, 1 and 2, which become the command's. */
enum box_fd {
    BOX_FD_SUPERVISOR = 3, /* messages of the outer process */
    BOX_FD_INSIDE = 4,     /* messages of PID 1 */
    BOX_FD_PLAN = 5,
    BOX_FD_LOCK = 6,        /* held while anything of the run exists */
    BOX_FD_FIRST_MOUNT = 7, /* validated sources, in the order of the plan */
};

struct box_lower {
    uint64_t device;
    uint64_t inode;
    uint32_t path;
    uint32_t pad;
};

struct box_mount {
    uint32_t kind; /* enum mount_kind */
    uint32_t source;
    uint32_t target;
    int32_t fd; /* a validated source, or -1: open the source path and check its identity */
    uint64_t device;
    uint64_t inode;
    uint64_t size_bytes;
    uint32_t lowers; /* LAYER: what lies below it, uppermost first; lower_n of them */
    uint32_t lower_n;
    uint32_t idmap_uid; /* owner of the source, shown inside as the sandbox's user */
    uint32_t idmap_gid;
    uint8_t writable;
    uint8_t noexec;
    uint8_t is_file;
    uint8_t idmapped;
    uint8_t is_device;
    uint8_t own; /* only this sandbox's: its layer, or a source somebody asked for */
    uint8_t pad[2];
};

struct box_path {
    uint32_t path;
    uint8_t write;
    uint8_t exec;
    uint8_t device;    /* ioctls of a device node, too */
    uint8_t list_only; /* its folders may be listed, nothing in them read */
    uint8_t optional;  /* left out when it does not exist */
    uint8_t pad[3];
};

struct box_rlimit {
    uint64_t value;
    uint32_t resource;
    uint32_t pad;
};

struct box_plan {
    uint32_t magic;
    uint32_t version;
    uint32_t size;
    uint32_t inside_uid, inside_gid;
    uint32_t host_uid, host_gid;
    uint32_t landlock_abi;
    uint32_t cpus; /* stay on so many processors; 0: any */
    uint32_t hostname, workdir;
    uint32_t run_id;       /* of the run; a keeper is called so */
    uint32_t run_dir;      /* on the host: removed when the run is over */
    uint32_t argv, argv_n; /* arrays of uint32_t */
    uint32_t env, env_n;
    uint32_t mounts, mount_n;
    uint32_t paths, path_n;
    uint32_t rlimits, rlimit_n;
    uint32_t cgroup_name;         /* of the groups made for this run; 0: none */
    uint32_t cgroup_host;         /* struct cgroup_host: where they are made */
    uint64_t cgroup_memory_bytes; /* limits held by cgroups; 0: not by them */
    uint64_t cgroup_pids;
    uint64_t cgroup_cpu_millis;
    uint64_t watch_memory_bytes; /* limits held by watching; 0: not by that */
    uint64_t watch_disk_bytes;
    uint64_t watch_inodes;
    uint64_t pids;   /* whoever holds it: for saying that it was reached */
    uint64_t ttl_ms; /* of a kept sandbox; 0: no such bound */
    uint64_t idle_ms;
    uint64_t max_ms;
    uint64_t wall_ms;   /* detached: the keeper ends it then; 0: not */
    int32_t execs_fd;   /* kept: where PID 1 takes commands; else -1 */
    int32_t control_fd; /* kept: where outer takes orders; else -1 */
    /* Box's end of the pair to egress (lib/egress/handover.h); -1: no way out. TCP to these ports
     * (uint16_t each) is led to egress, wherever it goes but inside. */
    int32_t egress_fd;
    uint32_t egress_ports, egress_port_n;
    uint8_t started_by_root;
    uint8_t tty;
    uint8_t keep_background;
    uint8_t sockets_none;           /* the command can make none */
    uint16_t tty_rows, tty_columns; /* of the caller's terminal; 0: it has none */
    uint8_t detached;               /* exec-wire.h: the keeper goes on without its caller */
    uint8_t prepared;               /* for the pool: it can be taken, once */
    uint8_t exec_once;              /* no process inside runs a second program */
};

/* What a spawner is asked: one such message for a sandbox, and along with it the descriptors a box
 * is born with, 0, 1 and 2 first. Answers come over those, as from any box. */
#define SPAWN_REQUEST_MAGIC 0x6e777073U /* "spwn" */
#define SPAWN_FD 3                      /* where a spawner takes requests */

struct spawn_request {
    uint32_t magic;
    uint32_t version; /* BOX_PLAN_VERSION */
    uint32_t fd_n;
    uint32_t pad;
};

/* A command for a kept sandbox is a plan of its own, of which only run_id, argv, env, workdir, tty,
 * keep_background, detached and wall_ms are looked at: the same form, the same checks. */

enum box_message_kind {
    BOX_FAILED, /* err says why; the box is coming down */
    BOX_PLACED, /* outer: pid is PID 1 as the host sees it; a pidfd of outer comes along */
    BOX_PARKED, /* inside: every wall stands; the report, whose number is value, is the next
                   message, unless the asker has it */
    BOX_STARTED,
    BOX_NOT_STARTED, /* inside: err.os says why exec failed */
    BOX_EXITED,      /* inside: status of the command as wait() gives it; value 1: as BOX_CLEAR */
    BOX_CLEAR,       /* inside: nothing is left of the command; another one may be sent */
    BOX_GONE,        /* outer: nothing of the run is left; value: how often a command that may run
                        no other program tried to, as in its BOX_FAILED */
    BOX_RELEASE,     /* to inside: run the command */
    BOX_SIGNAL,      /* to inside: send status as a signal to the command */
    BOX_KILL,        /* to outer: end everything now; to an exec: end it and what it left */
    BOX_REPORT,  /* to an exec: answer BOX_PARKED and the report, unless it is still number value */
    BOX_EXEC,    /* to an exec: run this; the plan and three streams come along, or, for a
                    detached one, the plan, its socket, its log and its lock */
    BOX_ATTACH,  /* to a detached exec: three streams come along; answered by BOX_STARTED,
                    value and processes: bytes of both streams before them */
    BOX_RESIZE,  /* to a detached exec: value is rows * 65536 + columns */
    BOX_STATUS,  /* to outer, and its answer: pid, status (1: paused, 2: not made yet), value (ms
                    left) */
    BOX_EXTEND,  /* to outer: value is the new time to live in ms */
    BOX_PAUSE,   /* to outer */
    BOX_RESUME,  /* to outer */
    BOX_FILE,    /* to an exec: file requests follow (file-wire.h), and each one's answer */
    BOX_CONNECT, /* to an exec, and its answer: a socket to port value inside; pid says whose */
    BOX_HOLD,    /* to outer: no process of the sandbox moves until the connection ends;
                    answered, with the number of processes, once that is so */
    BOX_YIELD,   /* to outer: end the sandbox, but leave its folder, lock and sockets to the
                    caller, who gets them with BOX_GONE; status 1: whoever lives in it */
    BOX_TAKE,    /* to outer of a prepared one: it is ours from the answer (BOX_STATUS) on, and
                    ends with this connection, which is the supervisor's now */
    BOX_SETTLE,  /* from the supervisor: it stays without us, so long; answered by BOX_STATUS */
    BOX_DISCARD, /* to outer of a prepared one: end, unless somebody has taken it */
};

/* What comes along with BOX_GONE after BOX_YIELD. */
enum { YIELDED_LOCK, YIELDED_EXECS, YIELDED_CONTROL, YIELDED_COUNT };

struct box_message {
    uint32_t kind;
    int32_t pid;
    int32_t status;
    uint32_t reason;
    uint64_t cpu_us;
    uint64_t peak_memory_bytes;
    uint64_t value;
    uint64_t processes;
    uint64_t memory_bytes; /* now, and on disk: only in the answer to BOX_STATUS */
    uint64_t disk_bytes;
    uint64_t oom_kills; /* BOX_STATUS: so far, in the whole sandbox */
    uint64_t pids_refused;
    uint64_t read_bytes; /* BOX_EXITED, BOX_STATUS: from and to disks */
    uint64_t written_bytes;
    uint64_t limit_ms; /* BOX_GONE after BOX_YIELD: left of its lifetime; UINT64_MAX: no end set */
    uint64_t idle_ms;  /* BOX_SETTLE: besides value, the time to live */
    uint64_t max_ms;
    struct err err;
};
