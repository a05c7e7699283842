/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to execute: a workspace that was copied in, and the way back (decision 0012).
 *
 *   mirror-tree.c   what is in a folder, as a list; and such a list as a file
 *   mirror-copy.c   the folder into the sandbox's layer, when it is made
 *   mirror-look.c   what changed inside since, and what stands in its way on this machine
 *   mirror-apply.c  bringing it back
 *
 *    STATE/boxes/ID/mirror   the base: what both sides had when they were last the same */

#include "flow/execute/files.h"

#include "lib/base/limits.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define WORKSPACE_WAIT_MS 10000
#define MIRROR_TRIES 3U /* for a file that changes while it is read */

struct mirror_entry {
    const char *path;   /* below the top, without a slash in front */
    const char *target; /* of a link; else "" */
    uint64_t size;
    uint32_t mode; /* without set-id and sticky bits */
    char type;     /* 'f', 'd', 'l'; 's': special; 'x': cannot be read, or never holds still */
    char hash[HASH_TEXT_BYTES]; /* of a file's content */
};

struct mirror_tree {
    struct arena mem;
    struct mirror_entry *of; /* sorted by path, once complete */
    size_t n, cap;
    size_t bytes;       /* of paths */
    uint64_t content;   /* of files */
    struct hasher tree; /* as in docs/formats/receipt.md */
};

void tree_init(struct mirror_tree *tree);
void tree_done(struct mirror_tree *tree);
#define AUTO_TREE __attribute__((cleanup(tree_done)))
/* A copy of the entry; ERR_LIMIT past the ceilings. */
int tree_add(struct mirror_tree *tree, const struct mirror_entry *entry,
             struct err *err) MUST_CHECK;
void tree_sort(struct mirror_tree *tree);
const struct mirror_entry *tree_find(const struct mirror_tree *tree, const char *path);
bool entry_same(const struct mirror_entry *a, const struct mirror_entry *b);
/* One line of the tree hash, in the order of the walk. */
void tree_note(struct mirror_tree *tree, const struct mirror_entry *entry);

/* The names in a folder, in byte order; at most one more than `most`. */
struct folder_names {
    char **of;
    size_t n, cap;
};
int folder_names(int dir_fd, size_t most, struct folder_names *out, struct err *err) MUST_CHECK;
void folder_names_done(struct folder_names *names);
#define AUTO_NAMES __attribute__((cleanup(folder_names_done)))
/* Whether nothing was written between the two looks at a file. */
bool same_moment(const struct stat *a, const struct stat *b);

/* Everything below a folder, by descriptor, through no link. */
int tree_read(struct files *files, int root_fd, struct mirror_tree *out,
              struct err *err) MUST_CHECK;
/* One thing below it, with its content; type 0: it is not there. st is what was seen. */
int entry_read(struct files *files, int root_fd, struct arena *mem, const char *path,
               struct mirror_entry *out, struct stat *st, struct err *err) MUST_CHECK;
/* The folder that holds it, through no link, and its name in there; -1: it cannot be reached. */
int entry_parent(int root_fd, const char *path, const char **name);
/* The hash of a file that holds still; 1: it never did. */
int hash_steady(struct files *files, int fd, char out[HASH_TEXT_BYTES], struct err *err) MUST_CHECK;

/* The base, and which folder of this machine it is about. */
struct mirror_base {
    const char *source;
    uint64_t device;
    uint64_t inode;
    struct mirror_tree tree;
};
int base_write(const char *run_dir, const struct mirror_base *base, struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND: it has none. */
int base_read(const char *run_dir, struct mirror_base *out, struct err *err) MUST_CHECK;

/* ---- the way back ---- */

struct mirror {
    struct files *files;
    const struct mirror_options *options;
    struct arena *mem; /* of the result */
    int inside_fd;
    int host_fd;
    struct mirror_base base;
    struct mirror_tree inside;
    struct mirror_change *changes;
    struct mirror_pending {
        const struct mirror_entry *was; /* in the base, or NULL */
        const struct mirror_entry *is;  /* inside, or NULL */
        struct mirror_entry host;       /* type 0: nothing */
        struct stat seen;
        bool settled; /* the base takes over what is inside */
    } * pending;      /* one for each change */
    size_t n, cap;
};

int mirror_look(struct mirror *mirror, struct err *err) MUST_CHECK;
int mirror_apply(struct mirror *mirror, struct err *err) MUST_CHECK;
int mirror_move_base(struct mirror *mirror, const char *run_dir, struct err *err) MUST_CHECK;
/* A regular file below the folder, or -1. */
int entry_open(int root_fd, const char *path);
/* Whether the change may be made on this machine, as the options say. */
bool mirror_may(const struct mirror *mirror, const struct mirror_change *change);
