/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to equip. */

#include "flow/equip/equip.h"
#include "lib/base/memory.h"
#include "lib/base/text.h"
#include "lib/image/image.h"
#include "model/run.h"

#include <string.h>
#include <sys/stat.h>

struct profile {
    const char *provider;
    const char *provider_version; /* exact */
    const char *image_digest;
    bool demand_observed;
    bool allow_protected;
    bool sockets_none;
    struct limits limits;
    enum limit_means least[LIMIT_COUNT]; /* MEANS_NONE: any will do */
};

struct equip {
    struct arena mem;
    const char *state_dir;
    struct profile profile;
    struct plan_memory *memory;
    struct plan_memory *memory_owned; /* the same, when nobody shares one with us */
};

/* Turns the verdict into a denial. Always 0, so that a planning step can end with it. */
int refuse(struct run *run, enum reason reason, const char *fmt, ...) PRINTF(3, 4);
static inline bool is_refused(const struct run *run)
{
    return run->verdict.kind == VERDICT_DENY;
}

/* profile.c. Where it fails is in *where, unless that is nowhere in particular. */
int profile_parse(struct arena *mem, struct str text, struct profile *out, struct mark *where,
                  struct err *err) MUST_CHECK;
int profile_open(struct arena *mem, const char *path, struct profile *out,
                 struct err *err) MUST_CHECK;

/* plan-user.c: whom the command is inside. image is NULL for the host root. */
int plan_user(const struct image *image, struct run *run) MUST_CHECK;

/* plan-limits.c */
int plan_limits(const struct profile *profile, struct run *run, struct err *err) MUST_CHECK;

/* plan-network.c: the way out, if there is one. */
int plan_network(const char *state_dir, struct run *run, struct err *err) MUST_CHECK;

/* plan-trust.c: in whom programs inside have to trust, where rules look into TLS. */
bool has_authority(const char *state_dir);
void plan_trust_variables(struct run *run);
struct mount_list;
int plan_trust(const char *state_dir, struct run *run, struct mount_list *list,
               struct err *err) MUST_CHECK;

/* Whether it has a variable of that name; variable is "K=V". */
bool env_has(const struct words *env, const char *variable);

/* A list of mounts or paths that grows in the run's arena. */
struct mount_list {
    struct plan_mount *of;
    size_t n;
    size_t cap;
};
struct plan_mount *mount_add(struct arena *mem, struct mount_list *list, enum mount_kind kind,
                             const char *target);

/* host-root.c: the machine's own system folders, read-only, and a synthetic /etc. */
struct mount_view;
int host_root_mounts(struct plan_memory *memory, const struct mount_view *table, struct run *run,
                     struct mount_list *list, struct err *err) MUST_CHECK;

/* In every sandbox: where names are answered if there are network rules, and nobody is if not. */
#define RESOLV_CONF "nameserver 198.18.0.1\n"

/* host-root.c: /proc, /dev, /run and the folders every sandbox has, whatever its root. */
int common_mounts(struct run *run, struct mount_list *list, struct err *err) MUST_CHECK;

/* image-root.c */
static inline bool is_host_image(const struct run *run)
{
    return strcmp(run->plan.image, IMAGE_HOST) == 0;
}
int image_open(const char *state_dir, struct run *run, struct image *out,
               struct err *err) MUST_CHECK;
int image_root_mounts(struct run *run, const struct image *image, struct mount_list *list,
                      struct err *err) MUST_CHECK;
void image_environment(struct run *run, const struct image *image);

/* base.c: the snapshot below the writable layers, if there is one. */
int plan_base(const char *state_dir, struct run *run, struct mount_list *list,
              struct err *err) MUST_CHECK;

/* mount-places.c: a mount source, opened once, and what speaks against handing it out. */
struct source {
    int fd;
    int folder_fd; /* itself, or the folder it lies in */
    struct stat st;
};
int source_open(struct run *run, const char *path, struct source *out, struct err *err) MUST_CHECK;
void source_close(struct source *source);
/* The place a source is, contains or lies in; NULL when there is none. table is mountinfo. */
const char *source_forbidden(struct run *run, const char *state_dir, struct str table,
                             const struct source *source);
/* A socket below it that a program of this machine has; NULL when there is none. */
const char *source_socket(struct run *run, const struct source *source);
/* Where a descriptor lies, or NULL. */
const char *path_of(struct arena *mem, int fd);
/* Absolute paths, as they are written; everything is within "/". */
bool path_is_within(const char *path, const char *folder);

/* plan-mounts.c: what the caller asked for, checked by descriptor. */
/* An absolute path without . or .. or doubled slashes, and not the root. */
bool is_plain_target(const char *target);
/* image is NULL for the host root. */
int plan_mounts(struct plan_memory *memory, const char *state_dir, const struct image *image,
                struct run *run, struct err *err) MUST_CHECK;

/* plan-paths.c: the Landlock rules. */
int plan_paths(struct run *run, struct err *err) MUST_CHECK;

/* plan-facts.c */
void plan_facts(struct run *run);

/* host-image.c: the digest of the image, or of what the host root is made of. */
int image_digest(struct plan_memory *memory, const char *state_dir, struct run *run,
                 char out[MODEL_HASH_BYTES], struct err *err) MUST_CHECK;
/* Whether a mount is part of what the digest of the host root covers. */
bool counts_for_digest(const struct plan_mount *mount);

/* posture.c: the six values of the receipt's preimage. */
int posture_of(struct run *run, const struct facts *facts, struct posture *out,
               struct err *err) MUST_CHECK;
/* The same for run->seen, where run->intended and run->planned are known: what is the same in both
 * has the same hash. */
int posture_seen(struct run *run, struct posture *out, struct err *err) MUST_CHECK;

/* What of the plan and the offer is in a posture besides the facts; borrowed. */
struct spec {
    const char *hostname;
    const char *image;
    const char *provider;
    const char *seccomp_hash;
    const struct plan_path *paths;
    size_t path_n;
    uint32_t uid;
    uint32_t gid;
    bool runs_nothing;
};
struct spec spec_of(const struct run *run);
bool same_spec(const struct spec *a, const struct spec *b);
bool same_facts(const struct facts *a, const struct facts *b);
