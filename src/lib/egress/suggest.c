/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/egress/suggest.h"

#include <string.h>

#include "lib/base/limits.h"
#include "lib/egress/rules-private.h"
#include "lib/egress/suggest-path.h"

#define SUGGEST_MEMORY (16 * MIB)
#define HOST_MAX 253
#define METHOD_MAX 32
#define BINARY_MAX 256 /* where egress cuts it */
#define HIGH_PORTS_FROM 49152

static const struct {
    const char *code;
    const char *text;
} warnings[] = {
#define X(id, code, text) {code, text},
    SUGGEST_WARNINGS(X)
#undef X
};

static const uint16_t database_ports[] = {1433, 1521, 3306,  5432,  5672,  6379,
                                          9042, 9200, 11211, 27017, 27018, 50000};
/* Where what is said is HTTP, inside TLS or not, unless somebody does something odd. */
static const uint16_t web_ports[] = {80, 443};

const char *suggest_warning_code(unsigned at)
{
    return warnings[at].code;
}

const char *suggest_warning_text(unsigned at)
{
    return warnings[at].text;
}

struct suggest *suggest_new(void)
{
    struct suggest *suggest = xcalloc(1, sizeof *suggest);

    suggest->mem = ARENA(SUGGEST_MEMORY);
    return suggest;
}

void suggest_free(struct suggest *suggest)
{
    if (!suggest)
        return;
    arena_done(&suggest->mem);
    free(suggest);
}

/* ---- one refusal ---- */

struct refusal {
    struct str host, method, path, binary, reason;
    uint16_t port;
    uint64_t count;
};

/* What is not visible becomes "?", which nothing that is suggested may have. */
static int take_text(struct suggest *suggest, const struct json *map, const char *key, size_t most,
                     struct str *out, struct err *err)
{
    const struct json *value = json_get(map, key);
    char *copy;
    struct str text = {"", 0};

    if (value && !json_is_text(value, &text))
        return err_set(err, ERR_INVALID, "\"%s\" of a refusal is a text", key);
    text.n = text.n > most ? most : text.n;
    copy = arena_text(&suggest->mem, text);
    for (size_t i = 0; i < text.n; i++)
        if (copy[i] <= ' ' || copy[i] >= 0x7f)
            copy[i] = '?';
    *out = (struct str){copy, text.n};
    return 0;
}

static int take_number(const struct json *map, const char *key, int64_t most, int64_t otherwise,
                       int64_t *out, struct err *err)
{
    const struct json *value = json_get(map, key);

    *out = otherwise;
    if (value && (!json_is_int(value, out) || *out < 0 || *out > most))
        return err_set(err, ERR_INVALID, "\"%s\" of a refusal is a number up to %lld", key,
                       (long long)most);
    return 0;
}

static int read_refusal(struct suggest *suggest, const struct json *map, struct refusal *out,
                        struct err *err)
{
    int64_t port, count;

    if (map->kind != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "a refusal is an object");
    if (take_text(suggest, map, "host", HOST_MAX, &out->host, err) < 0 ||
        take_text(suggest, map, "method", METHOD_MAX, &out->method, err) < 0 ||
        take_text(suggest, map, "path", SUGGEST_PATH_MAX, &out->path, err) < 0 ||
        take_text(suggest, map, "binary", BINARY_MAX, &out->binary, err) < 0 ||
        take_text(suggest, map, "reason", METHOD_MAX, &out->reason, err) < 0 ||
        take_number(map, "port", UINT16_MAX, 0, &port, err) < 0 ||
        take_number(map, "count", INT32_MAX, 1, &count, err) < 0)
        return -1;
    out->port = (uint16_t)port;
    out->count = (uint64_t)count;
    return 0;
}

/* ---- what is never suggested ---- */

static const struct {
    enum net_reason reason;
    const char *why; /* NULL: another rule can allow it */
} reasons[] = {
    {NET_REASON_NO_RULES,       NULL                                                       },
    {NET_REASON_NO_RULE,        NULL                                                       },
    {NET_REASON_PORT,           NULL                                                       },
    {NET_REASON_BINARY,         NULL                                                       },
    {NET_REASON_INTERPRETER,    NULL                                                       },
    {NET_REASON_REQUEST,        NULL                                                       },
    {NET_REASON_DENY_RULE,      "a rule forbids it"                                        },
    {NET_REASON_CALLER,         "which program asked is not known"                         },
    {NET_REASON_CALLER_CHANGED, "the program was replaced while its sandbox stood"         },
    {NET_REASON_HOST_FORM,      "the host is spelled in a way that two could read as two"  },
    {NET_REASON_PATH_FORM,      "the path is spelled in a way that two could read as two"  },
    {NET_REASON_QUERY_FORM,     "the query is spelled in a way that two could read as two" },
    {NET_REASON_METHOD_FORM,    "the method is spelled in a way that two could read as two"},
    {NET_REASON_ADDRESS,        "no rule can allow where it leads"                         },
    {NET_REASON_PRIVATE,        "it leads to a private address, which is never suggested"  },
    {NET_REASON_CONTROL_PORT,   "no rule can allow a port of cluster control planes"       },
    {NET_REASON_UPGRADE,        "WebSocket needs an endpoint with \"protocol: websocket\"" },
    {NET_REASON_MESSAGE,        "the rules of that WebSocket do not allow the message"     },
    {NET_REASON_BODY_LARGE,     "a rule looks into the body, which is too long for it"     },
    {NET_REASON_BODY_FORM,      "a rule looks into the body and cannot read it"            },
    {NET_REASON_BODY,           "a rule looks into the body and does not allow this one"   },
    {NET_REASON_SECRET_SHAPE,   "it looks like a credential on its way out"                },
    {NET_REASON_BUDGET,         "a rule allows it, and its budget is used up"              },
    {NET_REASON_BUDGET_RUN,     "what a budget left the run was used up"                   },
    {NET_REASON_RATE,           "a rule allows it, but not so many at once"                },
    {NET_REASON_RESPONSE_LARGE, "a rule allows it, but not so long an answer"              },
    {NET_REASON_RESPONSE_TYPE,  "a rule allows it, but not such an answer"                 },
    {NET_REASON_AMBIGUOUS,      "more rules match than are looked at; write fewer"         },
    {NET_REASON_LOST,           "its rule was taken away while it was open"                },
};

static const char *reason_fault(struct str reason)
{
    for (size_t i = 0; i < COUNT(reasons); i++)
        if (str_is(reason, net_reason_code(reasons[i].reason)))
            return reasons[i].why;
    return "no rule was the reason";
}

static const char *reason_word(struct str reason)
{
    for (size_t i = 0; i < COUNT(reasons); i++)
        if (str_is(reason, net_reason_code(reasons[i].reason)))
            return net_reason_code(reasons[i].reason);
    return "";
}

const char *suggest_host_fault(struct str name)
{
    struct net_host host;

    net_host_read(name, &host);
    if (host.kind == NET_HOST_BAD || host.is_odd)
        return "the host is spelled in a way that two could read as two";
    if (host.kind == NET_HOST_ADDRESS)
        return net_range_of(&host.addr) == NET_RANGE_GLOBAL
                   ? NULL
                   : "it leads to an address that is not public, which is never suggested";
    if (net_name_is_never((struct str){host.text, host.n}))
        return "no rule can allow where it leads";
    return str_ends((struct str){host.text, host.n}, SANDBOX_SUFFIX)
               ? "another sandbox; write an endpoint with \"sandbox\""
               : NULL;
}

static const char *binary_fault(struct str binary)
{
    if (binary.n == 0)
        return "which program asked is not known";
    if (binary.p[0] != '/' || binary.n >= BINARY_MAX || memchr(binary.p, '?', binary.n))
        return "the path of the program is not known completely";
    return NULL;
}

/* NULL: something can be suggested. */
static const char *fault_of(const struct refusal *refusal)
{
    const char *fault = reason_fault(refusal->reason);

    if (!fault)
        fault = suggest_host_fault(refusal->host);
    if (!fault && refusal->port == 0)
        fault = "a name was looked up, and no port was asked for";
    return fault ? fault : binary_fault(refusal->binary);
}

/* ---- gathering ---- */

static void leave(struct suggest *suggest, const struct suggest_left *left)
{
    for (size_t i = 0; i < suggest->left_n; i++) {
        struct suggest_left *known = &suggest->left[i];

        if (known->port == left->port && str_eq(known->host, left->host) &&
            str_eq(known->binary, left->binary) && str_eq(known->method, left->method) &&
            str_eq(known->path, left->path) && str_eq(known->reason, left->reason)) {
            known->count += left->count;
            return;
        }
    }
    if (suggest->left_n == SUGGEST_LEFT_MAX)
        suggest->left_out += left->count;
    else
        suggest->left[suggest->left_n++] = *left;
}

static void leave_refusal(struct suggest *suggest, const struct refusal *refusal, const char *why)
{
    leave(suggest,
          &(struct suggest_left){refusal->binary, refusal->host, refusal->method, refusal->path,
                                 refusal->port, refusal->reason, why, refusal->count});
}

static bool has_port(const uint16_t *ports, size_t n, uint16_t port)
{
    for (size_t i = 0; i < n; i++)
        if (ports[i] == port)
            return true;
    return false;
}

unsigned suggest_place_warnings(struct str binary, uint16_t port)
{
    unsigned bits = is_interpreter(binary) ? 1U << SUGGEST_WARN_AT_INTERPRETER : 0;

    if (has_port(database_ports, COUNT(database_ports), port))
        return bits | 1U << SUGGEST_WARN_AT_DATABASE;
    return port >= HIGH_PORTS_FROM ? bits | 1U << SUGGEST_WARN_AT_HIGH_PORT : bits;
}

static struct suggest_place *place_of(struct suggest *suggest, const struct refusal *refusal)
{
    struct suggest_place *place;

    for (size_t i = 0; i < suggest->place_n; i++) {
        place = &suggest->places[i];
        if (place->port == refusal->port && str_eq(place->host, refusal->host) &&
            str_eq(place->binary, refusal->binary))
            return place;
    }
    if (suggest->place_n == SUGGEST_PLACES_MAX)
        return NULL;
    place = &suggest->places[suggest->place_n++];
    *place = (struct suggest_place){
        .binary = refusal->binary,
        .host = refusal->host,
        .port = refusal->port,
        .kind =
            has_port(web_ports, COUNT(web_ports), refusal->port) ? SUGGEST_LOOK : SUGGEST_TUNNEL,
        .was = reason_word(refusal->reason),
        .warnings = suggest_place_warnings(refusal->binary, refusal->port),
    };
    return place;
}

static bool add_rule(struct suggest *suggest, struct suggest_place *place,
                     const struct refusal *refusal, struct str pattern, struct str sample)
{
    struct suggest_rule **at = &place->rules;

    for (; *at; at = &(*at)->next)
        if (str_eq((*at)->method, refusal->method) && str_eq((*at)->path, pattern)) {
            (*at)->count += refusal->count;
            return true;
        }
    if (place->rule_n == SUGGEST_RULES_MAX)
        return false;
    *at = arena_new(&suggest->mem, struct suggest_rule);
    **at = (struct suggest_rule){.method = refusal->method,
                                 .path = arena_str(&suggest->mem, pattern),
                                 .sample = arena_str(&suggest->mem, sample),
                                 .was = reason_word(refusal->reason),
                                 .count = refusal->count};
    place->rule_n++;
    place->kind = SUGGEST_REST;
    return true;
}

static bool is_method_text(struct str method)
{
    for (size_t i = 0; i < method.n; i++)
        if (!((method.p[i] >= 'A' && method.p[i] <= 'Z') || method.p[i] == '-'))
            return false;
    return method.n > 0 && method.n < METHOD_MAX;
}

static void gather(struct suggest *suggest, const struct refusal *refusal)
{
    AUTO_BUF struct buf pattern = BUF(GLOB_TEXT_MAX);
    AUTO_BUF struct buf sample = BUF(GLOB_TEXT_MAX);
    bool is_request = refusal->method.n > 0 && !str_is(refusal->method, "CONNECT");
    struct suggest_place *place;

    if (is_request && !is_method_text(refusal->method)) {
        leave_refusal(suggest, refusal, "the method is no word of HTTP");
        return;
    }
    if (is_request && !suggest_path(refusal->path, &pattern, &sample)) {
        leave_refusal(suggest, refusal, "its path is not known completely");
        return;
    }
    place = place_of(suggest, refusal);
    if (!place ||
        (is_request && !add_rule(suggest, place, refusal, buf_str(&pattern), buf_str(&sample))))
        suggest->left_out += refusal->count;
    else
        place->count += refusal->count;
}

int suggest_add(struct suggest *suggest, const struct json *json, struct err *err)
{
    struct refusal refusal = {0};
    const char *fault;

    if (suggest->mem.used > SUGGEST_MEMORY / 2) {
        suggest->refusals++;
        suggest->left_out++;
        return 0;
    }
    if (read_refusal(suggest, json, &refusal, err) < 0)
        return -1;
    suggest->refusals += refusal.count;
    fault = fault_of(&refusal);
    if (fault)
        leave_refusal(suggest, &refusal, fault);
    else
        gather(suggest, &refusal);
    return 0;
}

void suggest_leave(struct suggest *suggest, struct suggest_place *place, const char *why)
{
    place->taken = false;
    leave(suggest, &(struct suggest_left){
                       .binary = place->binary,
                       .host = place->host,
                       .port = place->port,
                       .method = {"", 0},
                       .path = {"", 0},
                       .reason = str_of(place->was),
                       .why = arena_text(&suggest->mem, str_of(why)),
                       .count = place->count
    });
}

void suggest_credentialed(struct suggest *suggest, struct str host, unsigned port)
{
    for (size_t i = 0; i < suggest->place_n; i++)
        if (suggest->places[i].port == port && str_eq(suggest->places[i].host, host))
            suggest->places[i].warnings |= 1U << SUGGEST_WARN_AT_CREDENTIALED;
}
