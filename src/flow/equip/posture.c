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

static struct json *egress_object(struct arena *mem, const struct facts *facts)
{
    struct json *root = json_object(mem);
    struct json *list = json_array(mem);

    for (size_t i = 0; i < facts->interface_n; i++)
        json_push(list, json_text(mem, str_of(facts->interfaces[i])));
    json_put(root, "interfaces", list);
    json_put_text(mem, root, "mode", "none");
    json_put_bool(mem, root, "own_network", (facts->namespaces & NAMESPACE_NETWORK) != 0);
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
    if (facts->sockets_refused)
        json_put_text(mem, root, "sockets", "none");
    json_put_int(mem, root, "uid", run->plan.inside_uid);
    json_put_int(mem, root, "gid", run->plan.inside_gid);
    return root;
}

static void bind_preimage(struct posture *posture)
{
    char preimage[sizeof posture->provider_version + 5 * MODEL_HASH_BYTES];

    (void)snprintf(preimage, sizeof preimage, "%s|%s|%s|%s|%s|%s", posture->provider_version,
                   posture->sandbox_spec_hash, posture->image_digest, posture->mounts_hash,
                   posture->egress_policy_hash, posture->resource_limits_hash);
    hash_text_of(str_of(preimage), posture->preimage_hash);
}

int posture_of(struct run *run, const struct facts *facts, struct posture *out, struct err *err)
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
    if (hash_object(spec_object(run, facts), posture.sandbox_spec_hash, err) < 0 ||
        hash_object(mounts_object(&run->mem, facts), posture.mounts_hash, err) < 0 ||
        hash_object(egress_object(&run->mem, facts), posture.egress_policy_hash, err) < 0 ||
        hash_object(limits_object(&run->mem, facts), posture.resource_limits_hash, err) < 0)
        return -1;
    bind_preimage(&posture);
    *out = posture;
    return 0;
}
