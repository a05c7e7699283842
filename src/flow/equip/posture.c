/* SPDX-License-Identifier: Apache-2.0 */

/* The six values a receipt binds, each SHA-256 over the canonical JSON of one object. The
 * objects are documented in docs/formats/posture.md; a field added here is added there. */

#include "flow/equip/parts.h"

#include "lib/base/limits.h"
#include "lib/crypto/crypto.h"
#include "lib/json/json.h"

#include <stdio.h>
#include <string.h>

static int hash_object(const struct json *object, char out[MODEL_HASH_BYTES], struct err *err)
{
    AUTO_BUF struct buf text = BUF(JSON_TEXT_MAX);

    if (json_canonical(object, &text, err) < 0)
        return -1;
    hash_text_of(buf_str(&text), out);
    return 0;
}

static struct json *mounts_object(struct arena *mem, const struct facts *facts)
{
    struct json *root = json_object(mem);
    struct json *list = json_array(mem);

    for (size_t i = 0; i < facts->mount_n; i++) {
        const struct mount_fact *fact = &facts->mounts[i];
        struct json *mount = json_object(mem);

        json_put_text(mem, mount, "access", fact->writable ? "rw" : "ro");
        json_put_text(mem, mount, "kind", fact->kind);
        json_put_bool(mem, mount, "nodev", fact->nodev);
        json_put_bool(mem, mount, "noexec", fact->noexec);
        json_put_bool(mem, mount, "nosuid", fact->nosuid);
        json_put_bytes(mem, mount, "source", str_of(fact->source));
        json_put_bytes(mem, mount, "target", str_of(fact->target));
        json_push(list, mount);
    }
    json_put(root, "mounts", list);
    return root;
}

/* A sandbox with rules has the hash of those, as long as the only way out is the one they are held
 * on. Anything else has an object that no plan has. */
static bool is_ruled(const struct facts *facts)
{
    return facts->egress_hash && facts->interface_n == 1 &&
           strcmp(facts->interfaces[0], "lo") == 0 && (facts->namespaces & NAMESPACE_NETWORK);
}

static struct json *egress_object(struct arena *mem, const struct facts *facts)
{
    struct json *root = json_object(mem);
    struct json *list = json_array(mem);

    for (size_t i = 0; i < facts->interface_n; i++)
        json_push(list, json_text(mem, str_of(facts->interfaces[i])));
    json_put(root, "interfaces", list);
    json_put_text(mem, root, "mode", facts->egress_hash ? "policy" : "none");
    json_put_bool(mem, root, "own_network", (facts->namespaces & NAMESPACE_NETWORK) != 0);
    if (facts->egress_hash)
        json_put_text(mem, root, "rules", facts->egress_hash);
    else
        json_put(root, "rules", json_array(mem));
    return root;
}

static struct json *limits_object(struct arena *mem, const struct facts *facts)
{
    struct json *root = json_object(mem);
    struct json *rlimits = json_object(mem);

    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++) {
        const struct limit *limit = &facts->limits.of[kind];
        struct json *entry = json_object(mem);

        json_put_text(mem, entry, "means", limit_means_name(limit->means));
        json_put_int(mem, entry, "value", (int64_t)limit->value);
        json_put(root, limit_name(kind), entry);
    }
    for (size_t i = 0; i < facts->rlimit_n; i++)
        json_put_int(mem, rlimits, facts->rlimits[i].name, (int64_t)facts->rlimits[i].value);
    json_put(root, "rlimits", rlimits);
    return root;
}

static struct json *paths_array(struct arena *mem, const struct plan *plan)
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < plan->path_n; i++) {
        const struct plan_path *path = &plan->paths[i];
        struct json *entry = json_object(mem);

        json_put_bool(mem, entry, "device", path->device);
        json_put_bool(mem, entry, "exec", path->exec);
        json_put_bool(mem, entry, "list_only", path->list_only);
        json_put_bytes(mem, entry, "path", str_of(path->path));
        json_put_bool(mem, entry, "write", path->write);
        json_push(list, entry);
    }
    return list;
}

/* What the sandbox is made of besides image, mounts, network and limits. Landlock's rules cannot
 * be read back from the kernel: the planned ones are bound here, and that they refuse is probed. */
static struct json *spec_object(struct run *run, const struct facts *facts)
{
    struct arena *mem = &run->mem;
    struct json *root = json_object(mem);
    struct json *landlock = json_object(mem);
    struct json *seccomp = json_object(mem);

    json_put_bool(mem, root, "capabilities_empty", facts->capabilities_empty);
    json_put_bool(mem, root, "groups_left", facts->host_groups_left);
    json_put_text(mem, root, "hostname", run->plan.hostname);
    json_put_bool(mem, root, "host_user_is_root", facts->host_user_is_root);
    json_put_text(mem, root, "image", run->plan.image);
    json_put_int(mem, landlock, "abi", facts->landlock_abi);
    json_put(landlock, "paths", paths_array(mem, &run->plan));
    json_put_bool(mem, landlock, "refuses", facts->landlock_refuses);
    json_put(root, "landlock", landlock);
    json_put_int(mem, root, "namespaces", facts->namespaces);
    json_put_bool(mem, root, "no_new_privs", facts->no_new_privs);
    json_put_text(mem, root, "provider", run->offer.provider);
    json_put_int(mem, seccomp, "filters", facts->seccomp_filters);
    json_put_text(mem, seccomp, "hash", run->offer.seccomp_hash ? run->offer.seccomp_hash : "");
    json_put_bool(mem, seccomp, "refuses", facts->seccomp_refuses);
    json_put(root, "seccomp", seccomp);
    if (facts->exec_refused)
        json_put_text(mem, root, "exec", "once");
    if (facts->sockets_refused)
        json_put_text(mem, root, "sockets", "none");
    json_put_int(mem, root, "uid", run->plan.inside_uid);
    json_put_int(mem, root, "gid", run->plan.inside_gid);
    return root;
}

/* ---- what has been hashed before ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_mounts(const struct facts *a, const struct facts *b)
{
    if (a->mount_n != b->mount_n)
        return false;
    for (size_t i = 0; i < a->mount_n; i++) {
        const struct mount_fact *x = &a->mounts[i], *y = &b->mounts[i];

        if (x->writable != y->writable || x->nosuid != y->nosuid || x->nodev != y->nodev ||
            x->noexec != y->noexec || !same_text(x->target, y->target) ||
            !same_text(x->kind, y->kind) || !same_text(x->source, y->source))
            return false;
    }
    return true;
}

static bool same_egress(const struct facts *a, const struct facts *b)
{
    if (a->interface_n != b->interface_n ||
        ((a->namespaces ^ b->namespaces) & NAMESPACE_NETWORK) != 0 ||
        !same_text(a->egress_hash, b->egress_hash))
        return false;
    for (size_t i = 0; i < a->interface_n; i++)
        if (!same_text(a->interfaces[i], b->interfaces[i]))
            return false;
    return true;
}

static bool same_limits(const struct facts *a, const struct facts *b)
{
    if (a->rlimit_n != b->rlimit_n)
        return false;
    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++)
        if (a->limits.of[kind].value != b->limits.of[kind].value ||
            a->limits.of[kind].means != b->limits.of[kind].means)
            return false;
    for (size_t i = 0; i < a->rlimit_n; i++)
        if (a->rlimits[i].value != b->rlimits[i].value ||
            !same_text(a->rlimits[i].name, b->rlimits[i].name))
            return false;
    return true;
}

/* Those that spec_object() writes. */
static bool same_walls(const struct facts *a, const struct facts *b)
{
    return a->capabilities_empty == b->capabilities_empty &&
           a->host_groups_left == b->host_groups_left &&
           a->host_user_is_root == b->host_user_is_root && a->landlock_abi == b->landlock_abi &&
           a->landlock_refuses == b->landlock_refuses && a->namespaces == b->namespaces &&
           a->no_new_privs == b->no_new_privs && a->seccomp_filters == b->seccomp_filters &&
           a->seccomp_refuses == b->seccomp_refuses && a->sockets_refused == b->sockets_refused &&
           a->exec_refused == b->exec_refused;
}

bool same_facts(const struct facts *a, const struct facts *b)
{
    return same_text(a->provider_version, b->provider_version) &&
           same_text(a->image_digest, b->image_digest) && same_walls(a, b) && same_limits(a, b) &&
           same_egress(a, b) && same_mounts(a, b);
}

struct spec spec_of(const struct run *run)
{
    return (struct spec){
        .hostname = run->plan.hostname,
        .image = run->plan.image,
        .provider = run->offer.provider,
        .seccomp_hash = run->offer.seccomp_hash,
        .paths = run->plan.paths,
        .path_n = run->plan.path_n,
        .uid = run->plan.inside_uid,
        .gid = run->plan.inside_gid,
        .runs_nothing = run->offer.runs_nothing,
    };
}

static bool same_paths(const struct spec *a, const struct spec *b)
{
    if (a->path_n != b->path_n)
        return false;
    for (size_t i = 0; i < a->path_n; i++) {
        const struct plan_path *x = &a->paths[i], *y = &b->paths[i];

        if (x->write != y->write || x->exec != y->exec || x->device != y->device ||
            x->list_only != y->list_only || !same_text(x->path, y->path))
            return false;
    }
    return true;
}

bool same_spec(const struct spec *a, const struct spec *b)
{
    return a->uid == b->uid && a->gid == b->gid && a->runs_nothing == b->runs_nothing &&
           same_text(a->hostname, b->hostname) && same_text(a->image, b->image) &&
           same_text(a->provider, b->provider) && same_text(a->seccomp_hash, b->seccomp_hash) &&
           same_paths(a, b);
}

/* ---- all six ---- */

static void bind_preimage(struct posture *posture)
{
    char preimage[sizeof posture->provider_version + 5 * MODEL_HASH_BYTES];

    (void)snprintf(preimage, sizeof preimage, "%s|%s|%s|%s|%s|%s", posture->provider_version,
                   posture->sandbox_spec_hash, posture->image_digest, posture->mounts_hash,
                   posture->egress_policy_hash, posture->resource_limits_hash);
    hash_text_of(str_of(preimage), posture->preimage_hash);
}

static int hash_spec(struct run *run, const struct facts *facts, char out[MODEL_HASH_BYTES],
                     struct err *err)
{
    return hash_object(spec_object(run, facts), out, err);
}

static int hash_mounts(struct run *run, const struct facts *facts, char out[MODEL_HASH_BYTES],
                       struct err *err)
{
    return hash_object(mounts_object(&run->mem, facts), out, err);
}

static int hash_egress(struct run *run, const struct facts *facts, char out[MODEL_HASH_BYTES],
                       struct err *err)
{
    if (!is_ruled(facts))
        return hash_object(egress_object(&run->mem, facts), out, err);
    if (strlen(facts->egress_hash) >= MODEL_HASH_BYTES)
        return err_set(err, ERR_INTEGRITY, "the network rules have a hash that is none");
    (void)strcpy(out, facts->egress_hash);
    return 0;
}

static int hash_limits(struct run *run, const struct facts *facts, char out[MODEL_HASH_BYTES],
                       struct err *err)
{
    return hash_object(limits_object(&run->mem, facts), out, err);
}

/* Each object, where its hash stands, and which facts decide it. */
static const struct {
    size_t at;
    int (*hash)(struct run *run, const struct facts *facts, char out[MODEL_HASH_BYTES],
                struct err *err);
    bool (*same)(const struct facts *a, const struct facts *b);
} parts[] = {
    {offsetof(struct posture, sandbox_spec_hash),    hash_spec,   same_walls },
    {offsetof(struct posture, mounts_hash),          hash_mounts, same_mounts},
    {offsetof(struct posture, egress_policy_hash),   hash_egress, same_egress},
    {offsetof(struct posture, resource_limits_hash), hash_limits, same_limits},
};

/* known, or NULL: facts of the same run, and their posture. */
static int make_posture(struct run *run, const struct facts *facts, const struct facts *known,
                        const struct posture *known_posture, struct posture *out, struct err *err)
{
    struct posture posture = {.evidence =
                                  run->offer.runs_nothing ? EVIDENCE_CLAIMED : EVIDENCE_OBSERVED};

    if (!facts->provider_version ||
        strlen(facts->provider_version) >= sizeof posture.provider_version)
        return err_set(err, ERR_INTEGRITY, "the provider does not say its version");
    if (!facts->image_digest || strlen(facts->image_digest) >= MODEL_HASH_BYTES)
        return err_set(err, ERR_INTEGRITY, "the provider does not say the image's digest");
    (void)strcpy(posture.provider_version, facts->provider_version);
    (void)strcpy(posture.image_digest, facts->image_digest);
    for (size_t i = 0; i < COUNT(parts); i++) {
        char *hash = (char *)&posture + parts[i].at;

        if (known && parts[i].same(facts, known))
            memcpy(hash, (const char *)known_posture + parts[i].at, MODEL_HASH_BYTES);
        else if (parts[i].hash(run, facts, hash, err) < 0)
            return -1;
    }
    bind_preimage(&posture);
    *out = posture;
    return 0;
}

int posture_of(struct run *run, const struct facts *facts, struct posture *out, struct err *err)
{
    return make_posture(run, facts, NULL, NULL, out, err);
}

int posture_seen(struct run *run, struct posture *out, struct err *err)
{
    return make_posture(run, &run->seen, &run->intended, &run->planned, out, err);
}
