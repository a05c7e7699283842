/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to equip: files below a writable mount that tools of this machine run by themselves.
 *
 *   workspace-rules.c   which they are, and why
 *   workspace-scan.c    finding them below a folder somebody else has filled
 *   workspace-git.c     what of a git folder is among them
 *   workspace-plan.c    what the plan makes of them
 *   workspace-guard.c   what has become of them afterwards */

#include "flow/equip/parts.h"
#include "lib/base/limits.h"
#include "lib/crypto/crypto.h"

/* ---- rules ---- */

/* The rule that covers `name` in a folder called `holder`, or NULL. */
const struct protected_rule *rule_for(const char *holder, const char *name);
/* The rule by which a path of this machine is, or lies in, something protected; or NULL. */
const struct protected_rule *rule_covering(const char *path);

/* ---- scan ---- */

/* Something to be held: a file or folder. */
struct place {
    const char *path; /* below the folder that was scanned, without a slash in front */
    const char *why;
    uint64_t device;
    uint64_t inode;
    bool is_file;
    bool pinned; /* only held where it is: what is in it stays writable */
};

/* A file in one, or one that is a link or no file at all: its content in one hash. */
struct trace {
    const char *path;
    char hash[HASH_TEXT_BYTES];
};

struct scan {
    struct arena *mem; /* borrowed */
    int root_fd;       /* borrowed; opened for more than O_PATH */
    const char *root;  /* its path on this machine */
    struct place *places;
    size_t place_n, place_cap;
    struct trace *traces;
    size_t trace_n, trace_cap;
    size_t entries;      /* looked at so far */
    size_t bytes;        /* of paths kept */
    const char *stopped; /* the bound that was reached, or NULL */
};

/* All of them below root_fd, sorted by path; places that lie in one that is read-only are left out.
 * Never follows a link. Reaching a bound is no failure: scan->stopped says which. */
int scan_run(struct scan *scan, struct err *err) MUST_CHECK;
void scan_done(struct scan *scan);
#define AUTO_SCAN __attribute__((cleanup(scan_done)))

/* For workspace-git.c. Paths are relative to the top of the scan; "" is the top itself. */
const char *scan_join(struct scan *scan, const char *folder, const char *name);
/* Something by its path, never through a link; -1 and errno. */
int scan_open(struct scan *scan, const char *path, int flags);
/* Notes it as a place, and the files in it as traces; nothing when it is not there. */
int scan_note(struct scan *scan, const char *path, const char *why, struct err *err) MUST_CHECK;
void scan_pin(struct scan *scan, const char *path, const char *why);
/* Looks for more in a folder that is not one of the places. */
int scan_folder(struct scan *scan, const char *path, unsigned depth, struct err *err) MUST_CHECK;

/* ---- git ---- */

/* A git folder at this path: .git itself, one of a submodule, a bare repository. worktree is the
 * folder its hooks run in. */
int git_folder(struct scan *scan, const char *path, const char *worktree, unsigned depth,
               struct err *err) MUST_CHECK;
/* A .git that is a file and names such a folder. */
int git_file(struct scan *scan, const char *path, const char *worktree, unsigned depth,
             struct err *err) MUST_CHECK;
/* The next path that a git config names and git runs or reads more config from: core.hooksPath or
 * include.path, as written. *is_hooks says which it is. False: there are no more. */
bool git_config_next(struct str *rest, struct str *section, bool *is_hooks,
                     char value[PATH_BYTES_MAX]);

/* ---- plan ---- */

/* Adds what is to be protected below the writable mounts of the list. */
int plan_protected(struct run *run, struct mount_list *list, struct err *err) MUST_CHECK;

/* ---- guard ---- */

struct guard *guard_new(struct run *run);
/* What was found below a mount; false: there is no room for more. */
bool guard_add(struct guard *guard, const struct plan_mount *mount, const struct scan *scan);
