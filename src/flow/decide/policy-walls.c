/* SPDX-License-Identifier: Apache-2.0 */
/* The sections about the sandbox itself: filesystem_policy, landlock, process, limits. */
#include "flow/decide/load.h"

#include <string.h>

/* ---- filesystem_policy ---- */

struct filesystem {
    const struct json *include_workdir;
    const struct json *read_only;
    const struct json *read_write;
};

static const struct field filesystem_fields[] = {
    {"include_workdir", offsetof(struct filesystem, include_workdir), TAKES_BOOL,              false},
    {"read_only",       offsetof(struct filesystem, read_only),       TAKES_LIST | TAKES_NULL, false},
    {"read_write",      offsetof(struct filesystem, read_write),      TAKES_LIST | TAKES_NULL, false},
};

bool has_dot_dot(struct str path)
{
    struct str rest = path;

    while (rest.n)
        if (str_is(str_cut(&rest, '/'), ".."))
            return true;
    return false;
}

static bool is_only_slashes(struct str path)
{
    for (size_t i = 0; i < path.n; i++)
        if (path.p[i] != '/')
            return false;
    return true;
}

static int check_path(struct load *load, const struct json *value, bool write)
{
    struct str path = value->text;

    if (load_text(load, value, PATH_BYTES_MAX, "a path") < 0)
        return -1;
    if (path.p[0] != '/')
        return load_bad(load, value->mark, "path \"%s\" must be absolute", shown(load, path));
    if (has_dot_dot(path))
        return load_bad(load, value->mark, "path \"%s\" must not contain \"..\"",
                        shown(load, path));
    if (write && is_only_slashes(path))
        return load_bad(load, value->mark,
                        "\"/\" cannot be read_write: that is everything; list the folders to be "
                        "written");
    return 0;
}

static int load_paths(struct load *load, const struct json *list, bool write, struct words *out)
{
    const char **v;
    size_t n = 0;

    if (!list)
        return 0;
    /* Counted before anything is kept: both lists together stay below the ceiling. */
    if (list->n + load->policy->demand.read_only.n > POLICY_PATHS_MAX)
        return load_bad(load, list->mark, "more than %d paths in filesystem_policy",
                        POLICY_PATHS_MAX);
    v = arena_array(load->mem, const char *, list->n + 1);
    json_each(item, list)
    {
        if (check_path(load, item, write) < 0)
            return -1;
        v[n++] = arena_text(load->mem, item->text);
    }
    *out = (struct words){v, n};
    return 0;
}

int load_filesystem(struct load *load, const struct json *section)
{
    struct demand *demand = &load->policy->demand;
    struct filesystem in = {0};

    if (!section)
        return 0;
    if (load_map(load, section, filesystem_fields, COUNT(filesystem_fields), &in) < 0 ||
        load_paths(load, in.read_only, false, &demand->read_only) < 0 ||
        load_paths(load, in.read_write, true, &demand->read_write) < 0)
        return -1;
    demand->has_filesystem = true;
    demand->include_workdir = in.include_workdir && in.include_workdir->boolean;
    return 0;
}

/* ---- landlock ---- */

int load_landlock(struct load *load, const struct json *section)
{
    static const struct field fields[] = {
        {"compatibility", 0, TAKES_TEXT, false},
    };
    static const char *const words[] = {"hard_requirement", "best_effort", NULL};
    const struct json *compatibility = NULL;
    size_t at = 0;

    if (!section)
        return 0;
    if (load_map(load, section, fields, COUNT(fields), &compatibility) < 0 ||
        (compatibility && load_choice(load, compatibility, words, "\"compatibility\"", &at) < 0))
        return -1;
    load->policy->demand.landlock_best_effort = at == 1;
    return 0;
}

/* ---- process ---- */

struct process {
    const struct json *run_as_user;
    const struct json *run_as_group;
};

static const struct field process_fields[] = {
    {"run_as_user",  offsetof(struct process, run_as_user),  TAKES_TEXT | TAKES_NUMBER, false},
    {"run_as_group", offsetof(struct process, run_as_group), TAKES_TEXT | TAKES_NUMBER, false},
};

/* "sandbox" leaves *out 0: whoever builds the sandbox picks the unprivileged user. */
static int load_identity(struct load *load, const struct json *value, const char *what,
                         uint32_t *out)
{
    uint64_t id = 0;

    if (!value || (value->kind == JSON_STRING && str_is(value->text, "sandbox")))
        return 0;
    if (str_is(value->text, "root") || str_is(value->text, "0"))
        return load_bad(load, value->mark,
                        "%s: nothing runs as root; write \"sandbox\" or a number from 1 to "
                        "4294967294",
                        what);
    /* A leading zero reads as octal to some and as decimal to others. */
    if (!str_u64(value->text, &id) || value->text.p[0] == '0' || id > UINT32_MAX - 1)
        return load_bad(load, value->mark,
                        "%s must be \"sandbox\" or a number from 1 to 4294967294, not \"%s\"", what,
                        shown(load, value->text));
    *out = (uint32_t)id;
    return 0;
}

int load_process(struct load *load, const struct json *section)
{
    struct demand *demand = &load->policy->demand;
    struct process in = {0};

    if (!section)
        return 0;
    if (load_map(load, section, process_fields, COUNT(process_fields), &in) < 0 ||
        load_identity(load, in.run_as_user, "run_as_user", &demand->run_as_uid) < 0)
        return -1;
    return load_identity(load, in.run_as_group, "run_as_group", &demand->run_as_gid);
}

/* ---- limits ---- */

enum quantity {
    QUANTITY_COUNT,
    QUANTITY_BYTES,
    QUANTITY_TIME,
    QUANTITY_CPUS,
};

/* What a person writes, and the largest value that still means something. */
static const struct {
    const char *key;
    enum limit_kind kind;
    enum quantity quantity;
    uint64_t max;
    const char *advice;
} limit_keys[] = {
    {"cpu",     LIMIT_CPU,    QUANTITY_CPUS,  1024000,          "CPUs from 0.001 to 1024, like 1.5"  },
    {"memory",  LIMIT_MEMORY, QUANTITY_BYTES, 1ULL << 50,       "a size up to 1024T, like 512M"      },
    {"pids",    LIMIT_PIDS,   QUANTITY_COUNT, 4194304,          "a whole number from 1 to 4194304"   },
    {"disk",    LIMIT_DISK,   QUANTITY_BYTES, 1ULL << 50,       "a size up to 1024T, like 1G"        },
    {"inodes",  LIMIT_INODES, QUANTITY_COUNT, 4294967295ULL,    "a whole number from 1 to 4294967295"},
    {"timeout", LIMIT_WALL,   QUANTITY_TIME,  30ULL * 86400000,
     "a duration up to 720h, like 30s or 5m"                                                         },
    {"output",  LIMIT_OUTPUT, QUANTITY_BYTES, 1ULL << 30,       "a size up to 1G, like 10M"          },
};

/* "1.5" as thousandths; exactly, so at most three decimals. */
static bool millis(struct str text, uint64_t *out)
{
    struct str fraction = text;
    struct str whole = str_cut(&fraction, '.');
    uint64_t units, part = 0;

    if (!str_u64(whole, &units) || units > 1000000 || fraction.n > 3 ||
        (whole.n < text.n && !str_u64(fraction, &part)))
        return false;
    for (size_t i = fraction.n; i < 3; i++)
        part *= 10;
    *out = units * 1000 + part;
    return true;
}

static bool quantity_value(enum quantity quantity, struct str text, uint64_t *out)
{
    struct err ignored; /* the complaint is written from the table, with the bounds in it */

    switch (quantity) {
    case QUANTITY_COUNT:
        return str_u64(text, out);
    case QUANTITY_BYTES:
        return size_parse(text, out, &ignored) == 0;
    case QUANTITY_TIME:
        return duration_parse(text, out, &ignored) == 0;
    case QUANTITY_CPUS:
        return millis(text, out);
    }
    return false;
}

static int load_limit(struct load *load, size_t at, const struct json *value)
{
    struct limit *limit = &load->policy->demand.limits.of[limit_keys[at].kind];
    uint64_t number = 0;

    if (!value)
        return 0;
    if (!quantity_value(limit_keys[at].quantity, value->text, &number) || number == 0 ||
        number > limit_keys[at].max)
        return load_bad(load, value->mark, "limit \"%s\" must be %s, not \"%s\"",
                        limit_keys[at].key, limit_keys[at].advice, shown(load, value->text));
    *limit = (struct limit){.value = number, .origin = ORIGIN_POLICY};
    return 0;
}

int load_limits(struct load *load, const struct json *section)
{
    struct field fields[COUNT(limit_keys)];
    const struct json *values[COUNT(limit_keys)] = {0};

    if (!section)
        return 0;
    for (size_t i = 0; i < COUNT(limit_keys); i++)
        fields[i] = (struct field){limit_keys[i].key, i * sizeof values[0],
                                   TAKES_TEXT | TAKES_NUMBER, false};
    if (load_map(load, section, fields, COUNT(fields), values) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(limit_keys); i++)
        if (load_limit(load, i, values[i]) < 0)
            return -1;
    return 0;
}
