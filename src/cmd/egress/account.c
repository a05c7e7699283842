/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/account.h"

#include <string.h>

#include "lib/base/memory.h"

#define SLOTS 2048U /* of the index by name; a power of two, twice the rules */
#define ID_SEGMENT_MIN 16

_Static_assert(SLOTS >= 2 * ACCOUNT_RULES_MAX, "the index never fills");

struct rule {
    char *name;
    struct counts counts;
};

struct refused {
    char host[SAID_HOST_MAX + 1];
    char method[SAID_METHOD_MAX + 1];
    char path[SAID_PATH_MAX + 1];
    char binary[SAID_BINARY_MAX + 1];
    const char *reason;
    uint64_t count;
    uint16_t port;
};

struct account {
    struct counts all;
    struct rule *rules;
    size_t rule_n;
    uint64_t rules_left_out; /* things counted without their rule */
    uint16_t index[SLOTS];   /* 0: free, else the rule's place and 1 */
    struct refused *refusals;
    size_t refusal_n;
    uint64_t refusals_left_out;
};

struct account *account_new(void)
{
    return xcalloc(1, sizeof(struct account));
}

void account_free(struct account *account)
{
    if (!account)
        return;
    for (size_t i = 0; i < account->rule_n; i++)
        free(account->rules[i].name);
    free(account->rules);
    free(account->refusals);
    free(account);
}

/* ---- rules ---- */

static uint32_t hash_name(const char *name)
{
    uint32_t hash = 2166136261U; /* FNV-1a */

    while (*name)
        hash = (hash ^ (unsigned char)*name++) * 16777619U;
    return hash;
}

/* Grows by doubling; n is what is in use. */
static void *grow(void *items, size_t n, size_t size)
{
    if (n == 0 || (n & (n - 1)) == 0)
        return xrealloc(items, (n ? 2 * n : 1) * size);
    return items;
}

static struct rule *find_rule(struct account *account, const char *name)
{
    uint32_t at = hash_name(name) & (SLOTS - 1);

    while (account->index[at]) {
        struct rule *rule = &account->rules[account->index[at] - 1U];

        if (strcmp(rule->name, name) == 0)
            return rule;
        at = (at + 1) & (SLOTS - 1);
    }
    if (account->rule_n == ACCOUNT_RULES_MAX)
        return NULL;
    account->rules = grow(account->rules, account->rule_n, sizeof *account->rules);
    account->rules[account->rule_n] = (struct rule){.name = xstrdup(name)};
    account->index[at] = (uint16_t)++account->rule_n;
    return &account->rules[account->rule_n - 1];
}

static void add(struct counts *to, const struct counts *more)
{
    to->connections += more->connections;
    to->requests += more->requests;
    to->refused += more->refused;
    to->bytes_out += more->bytes_out;
    to->bytes_in += more->bytes_in;
    to->latency_us += more->latency_us;
    to->secrets += more->secrets;
    to->scrubbed += more->scrubbed;
}

void account_add(struct account *account, const char *rule, const struct counts *more)
{
    struct rule *known = *rule ? find_rule(account, rule) : NULL;

    add(&account->all, more);
    if (known)
        add(&known->counts, more);
    else if (*rule)
        account->rules_left_out++;
}

/* ---- refusals ---- */

static char visible(char c)
{
    return (char)(c > ' ' && c < 0x7f ? c : '?');
}

static size_t put_visible(struct str s, char *out, size_t most)
{
    size_t n = s.n < most ? s.n : most;

    for (size_t i = 0; i < n; i++)
        out[i] = visible(s.p[i]);
    out[n] = '\0';
    return n;
}

/* A number, or long and of the letters of identifiers with a digit among them. */
static bool names_one_thing(struct str segment)
{
    size_t digits = 0, hex = 0;

    for (size_t i = 0; i < segment.n; i++) {
        char c = segment.p[i];

        digits += c >= '0' && c <= '9';
        hex +=
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == '-';
    }
    return segment.n > 0 &&
           (digits == segment.n || (segment.n >= ID_SEGMENT_MIN && hex == segment.n && digits));
}

size_t path_shape(struct str path, char out[SAID_PATH_MAX + 1])
{
    size_t n = 0;

    while (path.n > 0 && n < SAID_PATH_MAX) {
        size_t before = path.n;
        struct str segment = str_cut(&path, '/');
        bool has_more = segment.n < before;

        if (names_one_thing(segment))
            segment = STR_LIT("{}");
        n += put_visible(segment, out + n, SAID_PATH_MAX - n);
        if (has_more && n < SAID_PATH_MAX)
            out[n++] = '/';
    }
    out[n] = '\0';
    return n;
}

static bool is_same(const struct refused *a, const struct refused *b)
{
    return a->port == b->port && strcmp(a->reason, b->reason) == 0 &&
           strcmp(a->host, b->host) == 0 && strcmp(a->method, b->method) == 0 &&
           strcmp(a->path, b->path) == 0 && strcmp(a->binary, b->binary) == 0;
}

/* The latest are looked at first: floods repeat themselves. */
static struct refused *find_refused(struct account *account, const struct refused *wanted)
{
    for (size_t i = account->refusal_n; i > 0; i--)
        if (is_same(&account->refusals[i - 1], wanted))
            return &account->refusals[i - 1];
    if (account->refusal_n == ACCOUNT_REFUSALS_MAX)
        return NULL;
    account->refusals = grow(account->refusals, account->refusal_n, sizeof *account->refusals);
    account->refusals[account->refusal_n] = *wanted;
    return &account->refusals[account->refusal_n++];
}

void account_refuse(struct account *account, const char *rule, const struct refusal *refusal)
{
    struct refused wanted = {.reason = refusal->reason, .port = refusal->port};
    struct refused *known;

    account_add(account, rule, &(struct counts){.refused = 1});
    (void)put_visible(refusal->host, wanted.host, SAID_HOST_MAX);
    (void)put_visible(refusal->method, wanted.method, SAID_METHOD_MAX);
    (void)path_shape(refusal->path, wanted.path);
    (void)put_visible(refusal->binary, wanted.binary, SAID_BINARY_MAX);
    known = find_refused(account, &wanted);
    if (known)
        known->count++;
    else
        account->refusals_left_out++;
}

/* ---- telling ---- */

#define JSON_INT_MAX ((1LL << 53) - 1)

static void put_number(struct arena *mem, struct json *object, const char *key, uint64_t value)
{
    json_put_int(mem, object, key, value > JSON_INT_MAX ? JSON_INT_MAX : (int64_t)value);
}

static void put_counts(struct arena *mem, struct json *object, const struct counts *counts)
{
    put_number(mem, object, "connections", counts->connections);
    put_number(mem, object, "requests", counts->requests);
    put_number(mem, object, "refused", counts->refused);
    put_number(mem, object, "bytes_out", counts->bytes_out);
    put_number(mem, object, "bytes_in", counts->bytes_in);
    put_number(mem, object, "secrets", counts->secrets);
    put_number(mem, object, "scrubbed", counts->scrubbed);
}

static struct json *rule_json(const struct rule *rule, struct arena *mem)
{
    struct json *object = json_object(mem);

    json_put_text(mem, object, "rule", rule->name);
    put_counts(mem, object, &rule->counts);
    put_number(mem, object, "latency_us", rule->counts.latency_us);
    return object;
}

static struct json *refused_json(const struct refused *refused, struct arena *mem)
{
    struct json *object = json_object(mem);

    json_put_text(mem, object, "host", refused->host);
    json_put_int(mem, object, "port", refused->port);
    json_put_text(mem, object, "method", refused->method);
    json_put_text(mem, object, "path", refused->path);
    json_put_text(mem, object, "binary", refused->binary);
    json_put_text(mem, object, "reason", refused->reason);
    put_number(mem, object, "count", refused->count);
    return object;
}

struct json *account_json(const struct account *account, struct arena *mem)
{
    struct json *object = json_object(mem);
    struct json *rules = json_array(mem);
    struct json *refusals = json_array(mem);

    for (size_t i = 0; i < account->rule_n; i++)
        json_push(rules, rule_json(&account->rules[i], mem));
    for (size_t i = 0; i < account->refusal_n; i++)
        json_push(refusals, refused_json(&account->refusals[i], mem));
    put_counts(mem, object, &account->all);
    json_put(object, "rules", rules);
    put_number(mem, object, "rules_left_out", account->rules_left_out);
    json_put(object, "refusals", refusals);
    put_number(mem, object, "refusals_left_out", account->refusals_left_out);
    return object;
}
