/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who a process of the sandbox is, seen from outside through its folder in /proc: the content of
 * the file it runs, never a name it gives itself. */

#include "lib/egress/handover.h"

#include <sys/stat.h>
#include <sys/types.h>

/* ---- box-content.c: the hash of a file's content, remembered while the file stays the same ----
 */

#define CONTENT_FILE_MAX (512UL << 20) /* a larger one has no hash */
#define CONTENT_SETS 64
#define CONTENT_WAYS 4

struct content {
    uint64_t device, inode, size;
    struct timespec modified, changed;
    struct hash hash;
};

struct contents {
    struct content of[CONTENT_SETS][CONTENT_WAYS]; /* size 0: nothing there */
    uint8_t next[CONTENT_SETS];                    /* which one goes when all are taken */
    uint64_t window_us;                            /* since when the bytes below were hashed */
    uint64_t hashed_bytes;
};

/* The file of this name, of which st is what was just seen; false: it has no hash, because it
 * cannot be read, is too large, changed meanwhile, or so much was hashed of late that it is
 * enough. */
bool content_hash(struct contents *contents, int dir_fd, const char *name, const struct stat *st,
                  struct hash *out);

/* ---- box-script.c ---- */

/* What its arguments claim an interpreter runs, as a path inside: SCRIPT_NONE when the program is
 * no interpreter that we know, SCRIPT_UNKNOWN when it runs something that is no file. */
enum script { SCRIPT_NONE, SCRIPT_UNKNOWN, SCRIPT_CLAIMED };
bool script_is_possible(struct str exe_path); /* without looking at the arguments */
enum script script_claim(struct str exe_path, struct str cmdline, struct str *out);

/* ---- box-facts.c: what /proc says of a process to everybody ---- */

struct process_facts {
    pid_t parent;
    unsigned long flags; /* PF_* of the kernel */
    uint64_t started;    /* in ticks since the machine was */
};
/* From its file "stat". */
bool facts_read(int dir_fd, const char *name, struct process_facts *out);
/* Its number in the innermost PID namespace; -1: not to be had. */
pid_t facts_inner_pid(int dir_fd);

/* ---- box-process.c: one process, whoever gets its number later ---- */

struct process {
    pid_t pid;
    int dir_fd;      /* its folder in /proc */
    int pid_fd;      /* -1: its folder alone says what it is */
    uint64_t serial; /* no other process ever has it; 0: not known (yet, or to this kernel) */
};
#define NO_PROCESS ((struct process){.dir_fd = -1, .pid_fd = -1})
/* Takes over the descriptor, opened before. False: gone. */
bool process_open(struct process *process, pid_t pid, int pid_fd);
void process_close(struct process *process);
#define AUTO_PROCESS __attribute__((cleanup(process_close)))
/* Who its parent is now; on the way, its serial. False: gone. */
bool process_parent(struct process *process, pid_t *out);

/* Which processes are commands that box itself started. All others between PID 1 and nobody are
 * there because whoever started them is gone. Shared by outer, who reads, and those inside who
 * start commands; lost to whoever executes anything. */
#define COMMANDS_MAX 1024 /* the last ones */
struct commands {
    _Atomic uint32_t n;
    struct {
        pid_t pid; /* inside */
        uint64_t started;
    } of[COMMANDS_MAX];
};
int commands_make(struct commands **out, struct err *err) MUST_CHECK;
/* Inside: from now on these; and, by a process that is about to become a command: me. */
void commands_use(struct commands *commands);
void commands_note(void);
bool commands_has(const struct commands *commands, pid_t inner, uint64_t started);

/* ---- box-identity.c ---- */

#define KNOWN_PROCESSES 64
#define IDENTITY_TEXT_BYTES (HANDOVER_PATH_MAX + 16) /* " (deleted)", and one byte too many */

struct identity {
    struct handover_caller caller; /* its paths are in the texts */
    char texts[HANDOVER_ANCESTORS_MAX + 2][IDENTITY_TEXT_BYTES];
    struct contents contents;
    pid_t first; /* PID 1 of the sandbox */
    const struct commands *commands;
    bool by_folder; /* as on a kernel that says nothing by the descriptor of a process */
    struct known_command {
        uint64_t serial; /* 0: by the two below */
        pid_t pid;
        uint64_t started;
    } known[KNOWN_PROCESSES];       /* found among the commands before */
    uint64_t ours[KNOWN_PROCESSES]; /* serials of processes of ours above commands */
    struct stat box;                /* our own program, which others of ours run in there */
};

void identity_init(struct identity *identity, pid_t first, const struct commands *commands);
/* Fills the caller's programs and flags. Takes over a descriptor of the process, -1: there is none.
 * -1: the process cannot be looked at. */
int identity_see(struct identity *identity, pid_t pid, int pid_fd);
