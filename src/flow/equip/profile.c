/* SPDX-License-Identifier: Apache-2.0 */

/* The profile: how an environment is booted and what it is pinned to. Strict YAML:
 *
 *     version: 1
 *     provider: local
 *     provider_version: "local/0.1.0 …"     exactly, or the run is denied at preflight
 *     image_digest: sha256:…
 *     evidence: observed                     refuse what a provider merely claims
 *     allow_protected: true                  files that host tools run by themselves may be changed
 *     sockets: none                          the command can make no socket; else any
 *     limits:
 *       memory: 512M
 *       pids: {value: 64, means: cgroup}     refuse where nothing as strong holds it */

#include "flow/equip/parts.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "lib/json/json.h"

#include <fcntl.h>
#include <string.h>

#define PLACE_SHOWN_MAX 200

/* What reading one profile needs, and where it failed. */
struct reading {
    struct arena *mem;
    struct mark where;
    struct err *err;
};

static int wrong(struct reading *reading, const struct json *at, const char *what)
{
    reading->where = at->mark;
    return err_set(reading->err, ERR_INVALID, "%s", what);
}

static int unknown_key(struct reading *reading, const struct json *member, const char *known)
{
    reading->where = member->key_mark;
    return err_set(reading->err, ERR_INVALID, "unknown key \"" STR_FMT "\"; known here: %s",
                   STR_ARG(member->key), known);
}

static int take_text(struct reading *reading, const struct json *value, const char **out)
{
    struct str text;

    if (!json_is_text(value, &text) || text.n == 0 || memchr(text.p, '\0', text.n))
        return wrong(reading, value, "should be a text");
    *out = arena_text(reading->mem, text);
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

static int take_quantity(struct reading *reading, const struct json *value, enum limit_kind kind,
                         uint64_t *out)
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
        return wrong(reading, value, "should be a quantity above 0, like 2, 512M or 30s");
    return 0;
}

static int take_means(struct reading *reading, const struct json *value, enum limit_means *out)
{
    struct str text;

    for (enum limit_means means = MEANS_WATCH; means <= MEANS_RELAY; means++)
        if (json_is_text(value, &text) && str_is(text, limit_means_name(means))) {
            *out = means;
            return 0;
        }
    return wrong(reading, value, "should be one of watch, affinity, rlimit, cgroup");
}

static int take_limit(struct reading *reading, const struct json *value, enum limit_kind kind,
                      struct profile *profile)
{
    struct limit *limit = &profile->limits.of[kind];

    limit->origin = ORIGIN_PROFILE;
    if (value->kind != JSON_OBJECT)
        return take_quantity(reading, value, kind, &limit->value);
    json_each(member, value)
    {
        if (str_is(member->key, "value")) {
            if (take_quantity(reading, member, kind, &limit->value) < 0)
                return -1;
        } else if (str_is(member->key, "means")) {
            if (take_means(reading, member, &profile->least[kind]) < 0)
                return -1;
        } else {
            return unknown_key(reading, member, "value, means");
        }
    }
    return 0;
}

static int take_limits(struct reading *reading, const struct json *value, struct profile *profile)
{
    if (value->kind != JSON_OBJECT)
        return wrong(reading, value, "should be a mapping");
    json_each(member, value)
    {
        size_t i = 0;

        while (i < COUNT(limit_keys) && !str_is(member->key, limit_keys[i].key))
            i++;
        if (i == COUNT(limit_keys))
            return unknown_key(reading, member, "cpu, memory, pids, disk, inodes, timeout, output");
        if (take_limit(reading, member, limit_keys[i].kind, profile) < 0)
            return -1;
    }
    return 0;
}

static int take_evidence(struct reading *reading, const struct json *value, struct profile *profile)
{
    struct str text;

    if (!json_is_text(value, &text) || !(str_is(text, "observed") || str_is(text, "claimed")))
        return wrong(reading, value, "should be observed or claimed");
    profile->demand_observed = str_is(text, "observed");
    return 0;
}

static int take_sockets(struct reading *reading, const struct json *value, struct profile *profile)
{
    struct str text;

    if (!json_is_text(value, &text) || !(str_is(text, "none") || str_is(text, "any")))
        return wrong(reading, value, "should be none or any");
    profile->sockets_none = str_is(text, "none");
    return 0;
}

static int take_flag(struct reading *reading, const struct json *value, bool *out)
{
    return json_is_bool(value, out) ? 0 : wrong(reading, value, "should be true or false");
}

static int take_member(struct reading *reading, const struct json *member, struct profile *profile)
{
    int64_t version;

    if (str_is(member->key, "version"))
        return json_is_int(member, &version) && version == 1
                   ? 0
                   : wrong(reading, member, "should be 1");
    if (str_is(member->key, "provider"))
        return take_text(reading, member, &profile->provider);
    if (str_is(member->key, "provider_version"))
        return take_text(reading, member, &profile->provider_version);
    if (str_is(member->key, "image_digest"))
        return take_text(reading, member, &profile->image_digest);
    if (str_is(member->key, "evidence"))
        return take_evidence(reading, member, profile);
    if (str_is(member->key, "allow_protected"))
        return take_flag(reading, member, &profile->allow_protected);
    if (str_is(member->key, "sockets"))
        return take_sockets(reading, member, profile);
    if (str_is(member->key, "limits"))
        return take_limits(reading, member, profile);
    return unknown_key(
        reading, member,
        "version, provider, provider_version, image_digest, evidence, allow_protected, sockets, limits");
}

static int read_profile(struct reading *reading, struct str text, struct profile *profile)
{
    const struct json *root = NULL;

    if (yaml_parse(reading->mem, text, &root, &reading->where, reading->err) < 0)
        return -1;
    if (root->kind != JSON_OBJECT)
        return wrong(reading, root, "a profile is a mapping");
    if (!json_get(root, "version"))
        return err_set(reading->err, ERR_INVALID, "version is missing; write \"version: 1\"");
    json_each(member, root)
    {
        if (take_member(reading, member, profile) < 0)
            return -1;
    }
    return 0;
}

int profile_parse(struct arena *mem, struct str text, struct profile *out, struct mark *where,
                  struct err *err)
{
    struct reading reading = {.mem = mem, .err = err};
    struct profile profile = {0};

    if (read_profile(&reading, text, &profile) == 0) {
        *out = profile;
        return 0;
    }
    *where = reading.where;
    if (where->line)
        return err_in(err, "line %u, column %u", where->line, where->column);
    return -1;
}

/* The line with a caret under the place, below the sentence. A line too long to show is left
 * out: the sentence says where it is. */
static int show_place(struct mark where, struct str text, struct err *err)
{
    AUTO_BUF struct buf shown = BUF(PLACE_SHOWN_MAX);
    struct err ignored, said = *err;

    if (where.line == 0 || mark_show(where, text, &shown, &ignored) < 0 || shown.n == 0)
        return -1;
    shown.p[shown.n - 1] = '\0'; /* the last line break */
    return err_set(err, said.code, "%s\n%s", said.text, buf_text(&shown));
}

int profile_open(struct arena *mem, const char *path, struct profile *out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(PROFILE_TEXT_MAX);
    struct mark where = {0};

    if (file_read(AT_FDCWD, path, &text, err) < 0)
        return -1;
    if (profile_parse(mem, buf_str(&text), out, &where, err) < 0) {
        (void)err_in(err, "%s", path);
        return show_place(where, buf_str(&text), err);
    }
    return 0;
}
