/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Snapshots: what a kept sandbox had written, put aside so that others can stand on it.
 *
 * STATE/snapshots/ID holds
 *
 *     record         what it is; there is a snapshot exactly when this file is there
 *     layers/NAME/   one folder for each writable layer: what was written since the snapshot below
 *     flat/NAME/     the same with all that lies below merged into it, once somebody had the time
 *     digest         hash over all that it shows, once somebody had the time
 *     hold           locked by whoever stands on it, or on one that stands on it
 *
 * A set is "ID/layers" or "ID/flat": folders that lie over or below others of the same names. A
 * snapshot's stack is its sets, uppermost first. Nothing in a set changes once it is in a record.
 *
 * A kill at any point leaves a snapshot either absent or complete; what has no record is swept,
 * or, when all of a sandbox's layers had been moved into it already, completed. */

#include "lib/base/memory.h"
#include "lib/crypto/crypto.h"

#include <stdint.h>
#include <sys/types.h>

struct snapshot_store;

struct snapshot {
    const char *id;
    const char *name; /* "" when it has none */
    const char *sandbox_id;
    const char *created_at;
    const char *principal;
    const char *tenant;
    const char *image;
    const char *image_digest;
    const char *config; /* of the sandbox it was taken from */
    struct words stack; /* sets, uppermost first */
    struct words names; /* of its layers */
    bool live;          /* taken while processes ran: copied, not moved */
    bool removed;       /* only there because others stand on it */
    uint64_t held_us;   /* how long they were held still for that */
    uint64_t bytes;     /* copied; 0 when nothing had to be */
    uint64_t entries;
    const char *digest; /* "" until it is known */
    int lock_fd;        /* while it is made */
};

int snapshot_store_open(const char *state_dir, struct snapshot_store **out,
                        struct err *err) MUST_CHECK;
/* Whether there ever was a snapshot. */
bool snapshot_store_exists(const char *state_dir);
void snapshot_store_free(struct snapshot_store *store);
AUTO_TYPE(snapshot_store)

/* By id, by name (the newest of that name), or by digest. */
int snapshot_find(struct snapshot_store *store, struct arena *mem, const char *wanted,
                  struct snapshot *out, struct err *err) MUST_CHECK;
/* By id alone, removed or not: for whoever stands on it. */
int snapshot_get(struct snapshot_store *store, struct arena *mem, const char *id,
                 struct snapshot *out, struct err *err) MUST_CHECK;
/* All that are not removed, oldest first. */
int snapshot_list(struct snapshot_store *store, struct arena *mem, struct snapshot **out, size_t *n,
                  struct err *err) MUST_CHECK;

/* ---- standing on one ---- */

/* A layer of it, if it has one of that name: the folders that lie below, uppermost first. */
struct snapshot_lower {
    const char *path;
    uint64_t device, inode;
};
int snapshot_lowers(struct snapshot_store *store, struct arena *mem,
                    const struct snapshot *snapshot, const char *layer,
                    const struct snapshot_lower **out, size_t *n, struct err *err) MUST_CHECK;
/* Keeps all of its stack in the store as long as the descriptors (or copies of them in another
 * process) are open. fds has room for SNAPSHOT_STACK_MAX. */
int snapshot_hold(struct snapshot_store *store, const struct snapshot *snapshot, int *fds,
                  size_t *n, struct err *err) MUST_CHECK;

/* ---- making one ---- */

/* Begins to make what *snapshot says: id, name and whose it is, what lies below (stack, to which
 * its own set is added), names. Until it is committed or dropped it is ours alone. */
int snapshot_begin(struct snapshot_store *store, struct arena *mem, struct snapshot *snapshot,
                   struct err *err) MUST_CHECK;
/* Moves the folder `from`, beneath dir_fd, into it as the layer `name`. */
int snapshot_move(struct snapshot_store *store, const struct snapshot *snapshot, int dir_fd,
                  const char *from, const char *name, struct err *err) MUST_CHECK;
/* Copies one folder for each name into it; counts into *snapshot. */
int snapshot_copy(struct snapshot_store *store, struct snapshot *snapshot, const int *dir_fds,
                  struct err *err) MUST_CHECK;
/* An empty layer of that name in it, for whoever fills it. */
int snapshot_make_layer(struct snapshot_store *store, const struct snapshot *snapshot,
                        const char *name, unsigned mode, uid_t uid, gid_t gid, int *out_fd,
                        struct err *err) MUST_CHECK;
int snapshot_commit(struct snapshot_store *store, struct snapshot *snapshot,
                    struct err *err) MUST_CHECK;
void snapshot_drop(struct snapshot_store *store, struct snapshot *snapshot);

/* ---- the rest ---- */

/* Takes it out of sight; what nobody stands on goes at once, the rest with the last of those. */
int snapshot_remove(struct snapshot_store *store, const struct snapshot *snapshot, bool *freed,
                    struct err *err) MUST_CHECK;
/* Removes what nobody needs any more. Cheap when there is nothing of that kind. */
int snapshot_sweep(struct snapshot_store *store, struct err *err) MUST_CHECK;

/* Copies all that it shows into the empty folder out_fd: one folder a layer. */
int snapshot_merge(struct snapshot_store *store, const struct snapshot *snapshot, int out_fd,
                   struct err *err) MUST_CHECK;
/* Hashes again all that it shows: ERR_INTEGRITY when that is not its digest. */
int snapshot_verify(struct snapshot_store *store, const struct snapshot *snapshot,
                    struct err *err) MUST_CHECK;

/* What takes its time: digests, and stacks of more than eight made one. One at a time; whoever
 * finds somebody else at it waits, or leaves. */
int snapshot_tend(struct snapshot_store *store, bool wait, struct err *err) MUST_CHECK;
/* Starts another process for that, which needs us no longer. */
void snapshot_tend_later(const struct snapshot_store *store);
