/* SPDX-License-Identifier: Apache-2.0 */

/* The profile: how an environment is booted and what it is pinned to. Strict YAML:
 *
 *     version: 1
 *     provider: local
 *     provider_version: "local/0.1.0 …"     exactly, or the run is denied at preflight
 *     image_digest: sha256:…
 *     evidence: observed                     refuse what a provider merely claims
 *     limits:
 *       memory: 512M
 *       pids: {value: 64, means: cgroup}     refuse where nothing as strong holds it */

#include "flow/equip/parts.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#include <fcntl.h>
#include <string.h>

static int wrong(const struct json *at, struct err *err, const char *what)
{
    return err_set(err, ERR_INVALID, "line %u, column %u: %s", at->mark.line, at->mark.column,
                   what);
}

static int unknown_key(const struct json *member, const char *known, struct err *err)
{
    return err_set(err, ERR_INVALID,
                   "line %u, column %u: unknown key \"" STR_FMT "\"; known here: %s",
                   member->key_mark.line, member->key_mark.column, STR_ARG(member->key), known);
}

static int take_text(struct arena *mem, const struct json *value, const char **out, struct err *err)
{
    struct str text;

    if (!json_is_text(value, &text) || text.n == 0 || memchr(text.p, '\0', text.n))
        return wrong(value, err, "should be a text");
    *out = arena_text(mem, text);
    return 0;
}

static const struct {
    const char *key;
    enum limit_kind kind;
} limit_keys[] = {
    {"cpu",     LIMIT_CPU   },
    {"memory",  LIMIT_MEMORY},
    {"pids",    LIMIT_PIDS  },
    {"disk",    LIMIT_DISK  },
    {"inodes",  LIMIT_INODES},
    {"timeout", LIMIT_WALL  },
    {"output",  LIMIT_OUTPUT},
};

/* cpu: 0.5 is read exactly, as thousandths. */
static bool cpu_millis(struct str text, uint64_t *out)
{
    uint64_t scaled;
    struct err ignored;
    AUTO_BUF struct buf seconds = BUF(64);

    if (buf_add_str(&seconds, text, &ignored) < 0 || buf_add_byte(&seconds, 's', &ignored) < 0 ||
        duration_parse(buf_str(&seconds), &scaled, &ignored) < 0)
        return false;
    *out = scaled; /* a CPU has as many thousandths as a second */
    return true;
}

static int take_quantity(const struct json *value, enum limit_kind kind, uint64_t *out,
                         struct err *err)
{
    struct str text = value->text;
    struct err ignored;
    bool ok = value->kind == JSON_NUMBER || value->kind == JSON_STRING;

    if (ok && kind == LIMIT_CPU)
        ok = cpu_millis(text, out);
    else if (ok && kind == LIMIT_WALL)
        ok = duration_parse(text, out, &ignored) == 0;
    else if (ok && (kind == LIMIT_PIDS || kind == LIMIT_INODES))
        ok = str_u64(text, out);
    else if (ok)
        ok = size_parse(text, out, &ignored) == 0;
    if (!ok || *out == 0)
        return wrong(value, err, "should be a quantity above 0, like 2, 512M or 30s");
    return 0;
}

static int take_means(const struct json *value, enum limit_means *out, struct err *err)
{
    struct str text;

    for (enum limit_means means = MEANS_WATCH; means <= MEANS_RELAY; means++)
        if (json_is_text(value, &text) && str_is(text, limit_means_name(means))) {
            *out = means;
            return 0;
        }
    return wrong(value, err, "should be one of watch, affinity, rlimit, cgroup");
}

static int take_limit(const struct json *value, enum limit_kind kind, struct profile *profile,
                      struct err *err)
{
    struct limit *limit = &profile->limits.of[kind];

    limit->origin = ORIGIN_PROFILE;
    if (value->kind != JSON_OBJECT)
        return take_quantity(value, kind, &limit->value, err);
    json_each(member, value)
    {
        if (str_is(member->key, "value")) {
            if (take_quantity(member, kind, &limit->value, err) < 0)
                return -1;
        } else if (str_is(member->key, "means")) {
            if (take_means(member, &profile->least[kind], err) < 0)
                return -1;
        } else {
            return unknown_key(member, "value, means", err);
        }
    }
    return 0;
}

static int take_limits(const struct json *value, struct profile *profile, struct err *err)
{
    if (value->kind != JSON_OBJECT)
        return wrong(value, err, "should be a mapping");
    json_each(member, value)
    {
        size_t i = 0;

        while (i < COUNT(limit_keys) && !str_is(member->key, limit_keys[i].key))
            i++;
        if (i == COUNT(limit_keys))
            return unknown_key(member, "cpu, memory, pids, disk, inodes, timeout, output", err);
        if (take_limit(member, limit_keys[i].kind, profile, err) < 0)
            return -1;
    }
    return 0;
}

static int take_evidence(const struct json *value, struct profile *profile, struct err *err)
{
    struct str text;

    if (!json_is_text(value, &text) || !(str_is(text, "observed") || str_is(text, "claimed")))
        return wrong(value, err, "should be observed or claimed");
    profile->demand_observed = str_is(text, "observed");
    return 0;
}

static int take_member(struct arena *mem, const struct json *member, struct profile *profile,
                       struct err *err)
{
    int64_t version;

    if (str_is(member->key, "version"))
        return json_is_int(member, &version) && version == 1 ? 0
                                                             : wrong(member, err, "should be 1");
    if (str_is(member->key, "provider"))
        return take_text(mem, member, &profile->provider, err);
    if (str_is(member->key, "provider_version"))
        return take_text(mem, member, &profile->provider_version, err);
    if (str_is(member->key, "image_digest"))
        return take_text(mem, member, &profile->image_digest, err);
    if (str_is(member->key, "evidence"))
        return take_evidence(member, profile, err);
    if (str_is(member->key, "limits"))
        return take_limits(member, profile, err);
    return unknown_key(member,
                       "version, provider, provider_version, image_digest, evidence, limits", err);
}

static int profile_parse(struct arena *mem, struct str text, struct profile *out, struct err *err)
{
    struct profile profile = {0};
    const struct json *root = NULL;
    struct mark where = {0};

    if (yaml_parse(mem, text, &root, &where, err) < 0)
        return err_in(err, "line %u, column %u", where.line, where.column);
    if (root->kind != JSON_OBJECT)
        return wrong(root, err, "a profile is a mapping");
    if (!json_get(root, "version"))
        return err_set(err, ERR_INVALID, "version is missing; write \"version: 1\"");
    json_each(member, root)
    {
        if (take_member(mem, member, &profile, err) < 0)
            return -1;
    }
    *out = profile;
    return 0;
}

int profile_open(struct arena *mem, const char *path, struct profile *out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(PROFILE_TEXT_MAX);

    if (file_read(AT_FDCWD, path, &text, err) < 0)
        return -1;
    if (profile_parse(mem, buf_str(&text), out, err) < 0)
        return err_in(err, "%s", path);
    return 0;
}
