/* SPDX-License-Identifier: Apache-2.0 */

/* What was found out about this machine, and what was made of it, for the next run.
 *
 * There are two kinds. The host root depends on the machine: it is remembered together with every
 * place that was looked at for it, and each of them is looked at again before it is used. Digests
 * are computed from values: they are remembered together with those, and used when every value is
 * the same. So a plan out of this memory is the plan that would be made without it.
 *
 * Several threads may share one. What is remembered never changes; it is exchanged, and the last
 * one who uses it frees it. */

#include "flow/equip/memory.h"

#include "lib/base/limits.h"

#include <pthread.h>

#define POSTURES_KEPT 8

struct memo {
    unsigned uses; /* one of them is the memory's own */
    struct arena mem;
};

struct root_memo {
    struct memo memo;
    struct looks looks;
    uint64_t table_version;
    uint32_t uid, gid;
    uint64_t memory_bytes;
    struct mount_list list;
};

struct digest_memo {
    struct memo memo;
    struct looks looks;
    const char *image;
    struct mount_list list; /* those that count */
    char digest[MODEL_HASH_BYTES];
};

struct posture_memo {
    struct memo memo;
    struct facts facts;
    struct spec spec;
    struct posture posture;
};

struct plan_memory {
    pthread_mutex_t lock;
    struct mount_table table;
    struct root_memo *root;
    struct digest_memo *digest;
    struct posture_memo *postures[POSTURES_KEPT];
    size_t posture_next;
};

struct plan_memory *plan_memory_new(void)
{
    struct plan_memory *memory = xcalloc(1, sizeof *memory);

    (void)pthread_mutex_init(&memory->lock, NULL);
    mount_table_init(&memory->table);
    return memory;
}

/* ---- one thing remembered ---- */

static void memo_drop(struct plan_memory *memory, void *of_memo)
{
    struct memo *memo = of_memo;
    bool last;

    if (!memo)
        return;
    (void)pthread_mutex_lock(&memory->lock);
    last = --memo->uses == 0;
    (void)pthread_mutex_unlock(&memory->lock);
    if (!last)
        return;
    arena_done(&memo->mem);
    free(memo);
}

/* All memos begin with their struct memo. */
static void *memo_use(struct plan_memory *memory, void *of_slot)
{
    struct memo **slot = of_slot;
    struct memo *memo;

    (void)pthread_mutex_lock(&memory->lock);
    memo = *slot;
    if (memo)
        memo->uses++;
    (void)pthread_mutex_unlock(&memory->lock);
    return memo;
}

static void *memo_new(size_t size)
{
    struct memo *memo = xcalloc(1, size);

    memo->uses = 1;
    memo->mem = ARENA(POLICY_MEMORY_MAX);
    return memo;
}

static void memo_put(struct plan_memory *memory, void *of_slot, void *of_memo)
{
    struct memo **slot = of_slot;
    struct memo *before;

    (void)pthread_mutex_lock(&memory->lock);
    before = *slot;
    *slot = of_memo;
    (void)pthread_mutex_unlock(&memory->lock);
    memo_drop(memory, before);
}

void plan_memory_free(struct plan_memory *memory)
{
    if (!memory)
        return;
    memo_drop(memory, memory->root);
    memo_drop(memory, memory->digest);
    for (size_t i = 0; i < POSTURES_KEPT; i++)
        memo_drop(memory, memory->postures[i]);
    mount_table_done(&memory->table);
    (void)pthread_mutex_destroy(&memory->lock);
    free(memory);
}

/* ---- copies ---- */

static const char *copy_text(struct arena *mem, const char *text)
{
    return text ? arena_text(mem, str_of(text)) : NULL;
}

static void copy_mount(struct arena *mem, struct mount_list *to, const struct plan_mount *mount)
{
    struct plan_mount *copy = mount_add(mem, to, mount->kind, copy_text(mem, mount->target));
    const char *target = copy->target;

    *copy = *mount;
    copy->target = target;
    copy->source = copy_text(mem, mount->source);
}

static void copy_mounts(struct arena *mem, struct mount_list *to, const struct mount_list *from)
{
    for (size_t i = 0; i < from->n; i++)
        copy_mount(mem, to, &from->of[i]);
}

static void copy_facts(struct arena *mem, struct facts *to, const struct facts *from)
{
    struct mount_fact *mounts = arena_array(mem, struct mount_fact, from->mount_n + 1);
    const char **interfaces = arena_array(mem, const char *, from->interface_n + 1);

    *to = *from;
    for (size_t i = 0; i < from->mount_n; i++) {
        mounts[i] = from->mounts[i];
        mounts[i].target = copy_text(mem, from->mounts[i].target);
        mounts[i].kind = copy_text(mem, from->mounts[i].kind);
        mounts[i].source = copy_text(mem, from->mounts[i].source);
    }
    for (size_t i = 0; i < from->interface_n; i++)
        interfaces[i] = copy_text(mem, from->interfaces[i]);
    for (size_t i = 0; i < from->rlimit_n; i++)
        to->rlimits[i].name = copy_text(mem, from->rlimits[i].name);
    to->mounts = mounts;
    to->interfaces = interfaces;
    to->provider_version = copy_text(mem, from->provider_version);
    to->image_digest = copy_text(mem, from->image_digest);
    to->egress_hash = copy_text(mem, from->egress_hash);
}

static void copy_spec(struct arena *mem, struct spec *to, const struct spec *from)
{
    struct plan_path *paths = arena_array(mem, struct plan_path, from->path_n + 1);

    *to = *from;
    for (size_t i = 0; i < from->path_n; i++) {
        paths[i] = from->paths[i];
        paths[i].path = copy_text(mem, from->paths[i].path);
    }
    to->paths = paths;
    to->hostname = copy_text(mem, from->hostname);
    to->image = copy_text(mem, from->image);
    to->provider = copy_text(mem, from->provider);
    to->seccomp_hash = copy_text(mem, from->seccomp_hash);
}

/* ---- the machine ---- */

int memory_table(struct plan_memory *memory, struct arena *mem, struct mount_view *out,
                 struct err *err)
{
    int failed;

    (void)pthread_mutex_lock(&memory->lock);
    failed = mount_table_read(&memory->table, err);
    if (!failed)
        *out = (struct mount_view){arena_str(mem, buf_str(&memory->table.text)),
                                   memory->table.version};
    (void)pthread_mutex_unlock(&memory->lock);
    return failed;
}

bool memory_root(struct plan_memory *memory, struct run *run, uint64_t table_version,
                 struct mount_list *out)
{
    struct root_memo *root = memo_use(memory, &memory->root);
    bool holds = root && root->table_version == table_version &&
                 root->uid == run->plan.inside_uid && root->gid == run->plan.inside_gid &&
                 root->memory_bytes == run->plan.limits.of[LIMIT_MEMORY].value &&
                 looks_hold(&root->looks);

    if (holds)
        copy_mounts(&run->mem, out, &root->list);
    memo_drop(memory, root);
    return holds;
}

void memory_keep_root(struct plan_memory *memory, const struct run *run, uint64_t table_version,
                      const struct looks *looks, const struct mount_list *list)
{
    struct root_memo *root;

    if (looks->unsettled)
        return;
    root = memo_new(sizeof *root);
    root->looks = *looks;
    root->table_version = table_version;
    root->uid = run->plan.inside_uid;
    root->gid = run->plan.inside_gid;
    root->memory_bytes = run->plan.limits.of[LIMIT_MEMORY].value;
    copy_mounts(&root->memo.mem, &root->list, list);
    memo_put(memory, &memory->root, root);
}

/* ---- digests ---- */

static bool same_root(const struct run *run, const struct digest_memo *digest)
{
    size_t n = 0;

    if (strcmp(run->plan.image, digest->image) != 0)
        return false;
    for (size_t i = 0; i < run->plan.mount_n; i++) {
        const struct plan_mount *mount = &run->plan.mounts[i];
        const struct plan_mount *known = &digest->list.of[n];

        if (!counts_for_digest(mount))
            continue;
        if (n == digest->list.n || mount->kind != known->kind ||
            strcmp(mount->source, known->source) != 0 || strcmp(mount->target, known->target) != 0)
            return false;
        n++;
    }
    return n == digest->list.n;
}

bool memory_digest(struct plan_memory *memory, const struct run *run, char out[MODEL_HASH_BYTES])
{
    struct digest_memo *digest = memo_use(memory, &memory->digest);
    bool holds = digest && same_root(run, digest) && looks_hold(&digest->looks);

    if (holds)
        memcpy(out, digest->digest, MODEL_HASH_BYTES);
    memo_drop(memory, digest);
    return holds;
}

void memory_keep_digest(struct plan_memory *memory, const struct run *run,
                        const struct looks *looks, const char *digest)
{
    struct digest_memo *kept;

    if (looks->unsettled)
        return;
    kept = memo_new(sizeof *kept);
    kept->looks = *looks;
    kept->image = copy_text(&kept->memo.mem, run->plan.image);
    memcpy(kept->digest, digest, MODEL_HASH_BYTES);
    for (size_t i = 0; i < run->plan.mount_n; i++)
        if (counts_for_digest(&run->plan.mounts[i]))
            copy_mount(&kept->memo.mem, &kept->list, &run->plan.mounts[i]);
    memo_put(memory, &memory->digest, kept);
}

static void keep_posture(struct plan_memory *memory, const struct run *run)
{
    struct posture_memo *kept = memo_new(sizeof *kept);
    struct spec spec = spec_of(run);
    size_t at;

    copy_facts(&kept->memo.mem, &kept->facts, &run->intended);
    copy_spec(&kept->memo.mem, &kept->spec, &spec);
    kept->posture = run->planned;
    (void)pthread_mutex_lock(&memory->lock);
    at = memory->posture_next++ % POSTURES_KEPT;
    (void)pthread_mutex_unlock(&memory->lock);
    memo_put(memory, &memory->postures[at], kept);
}

int memory_posture(struct plan_memory *memory, struct run *run, struct err *err)
{
    struct spec spec = spec_of(run);

    for (size_t i = 0; i < POSTURES_KEPT; i++) {
        struct posture_memo *kept = memo_use(memory, &memory->postures[i]);
        bool same =
            kept && same_facts(&kept->facts, &run->intended) && same_spec(&kept->spec, &spec);

        if (same)
            run->planned = kept->posture;
        memo_drop(memory, kept);
        if (same)
            return 0;
    }
    if (posture_of(run, &run->intended, &run->planned, err) < 0)
        return -1;
    keep_posture(memory, run);
    return 0;
}
