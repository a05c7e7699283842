/* SPDX-License-Identifier: Apache-2.0 */

/* brig policy suggest: refusals become a policy that would not refuse them, for a person to read.
 * It is printed and nothing else. */

#include "surface/cli/commands.h"

#include <fcntl.h>

#include "flow/decide/decide.h"
#include "flow/govern.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "surface/cli/suggest.h"

struct suggestion {
    struct invocation *inv;
    struct suggest *suggest;
    struct net_rules *before;
    struct net_rules *after;
    struct buf text;
    const char *vault_note; /* why bindings of the vault are not known, or NULL */
    struct json *grants;
};

/* ---- what it is made from ---- */

/* --policy, else what the sandbox has, else the standing one; empty: the built-in one. */
static int read_policy(struct invocation *inv, const char *state_dir, const char *kept,
                       struct buf *out, struct err *err)
{
    const char *path = option_text(inv, "--policy"), *standing = NULL;

    if (path)
        return file_read(AT_FDCWD, path, out, err);
    if (kept)
        return buf_add_text(out, kept, err);
    if (!state_dir)
        return 0;
    if (govern_policy_text(state_dir, &inv->mem, &standing, err) < 0)
        return -1;
    return standing ? buf_add_text(out, standing, err) : 0;
}

static void on_bound(void *context, struct str host, unsigned port)
{
    suggest_credentialed(context, host, port);
}

static int make(struct suggestion *s, struct err *err)
{
    AUTO_BUF struct buf policy = BUF(POLICY_TEXT_MAX);
    const char *state_dir = NULL, *kept = NULL;
    bool exists = false;

    if (refusals_read(s->inv, s->suggest, &kept, err) < 0 ||
        cli_state_find(s->inv, &state_dir, &exists, err) < 0 ||
        read_policy(s->inv, exists ? state_dir : NULL, kept, &policy, err) < 0)
        return -1;
    s->vault_note = exists ? vault_hosts(s->inv, state_dir, on_bound, s->suggest) : NULL;
    return policy_suggest(buf_str(&policy), s->suggest, &s->text, &s->before, &s->after, err);
}

/* ---- as JSON ---- */

static struct json *place_json(struct arena *mem, const struct suggest_place *place)
{
    struct json *object = json_object(mem);

    json_put(object, "binary", json_text(mem, place->binary));
    json_put(object, "host", json_text(mem, place->host));
    json_put_int(mem, object, "port", place->port);
    return object;
}

static void grant_json(void *ctx, const struct suggest_grant *grant)
{
    struct suggestion *s = ctx;
    struct arena *mem = &s->inv->mem;
    struct json *object = place_json(mem, grant->place);

    json_put_text(mem, object, "what",
                  grant->method.n    ? "request"
                  : grant->is_tunnel ? "tunnel"
                                     : "connection");
    if (grant->method.n) {
        json_put(object, "method", json_text(mem, grant->method));
        json_put(object, "path", json_text(mem, grant->path));
        json_put_bool(mem, object, "any_query", grant->any_query);
    }
    json_put_int(mem, object, "asked", (int64_t)grant->asked);
    json_put_text(mem, object, "was", grant->was);
    json_push(s->grants, object);
}

static struct json *warnings_json(const struct suggestion *s)
{
    struct arena *mem = &s->inv->mem;
    struct json *list = json_array(mem);

    for (size_t i = 0; i < s->suggest->place_n; i++)
        for (unsigned at = 0; at < SUGGEST_WARNING_N; at++) {
            const struct suggest_place *place = &s->suggest->places[i];
            struct json *object;

            if (!place->taken || !(place->warnings & 1U << at))
                continue;
            object = place_json(mem, place);
            json_put_text(mem, object, "code", suggest_warning_code(at));
            json_put_text(mem, object, "text", suggest_warning_text(at));
            json_push(list, object);
        }
    return list;
}

static struct json *left_json(const struct suggestion *s)
{
    struct arena *mem = &s->inv->mem;
    struct json *list = json_array(mem);

    for (size_t i = 0; i < s->suggest->left_n; i++) {
        const struct suggest_left *left = &s->suggest->left[i];
        struct json *object = json_object(mem);

        json_put(object, "binary", json_text(mem, left->binary));
        json_put(object, "host", json_text(mem, left->host));
        json_put_int(mem, object, "port", left->port);
        json_put(object, "method", json_text(mem, left->method));
        json_put(object, "path", json_text(mem, left->path));
        json_put(object, "reason", json_text(mem, left->reason));
        json_put_bytes(mem, object, "why", str_of(left->why));
        json_put_int(mem, object, "count", (int64_t)left->count);
        json_push(list, object);
    }
    return list;
}

static int print_json(struct suggestion *s)
{
    struct arena *mem = &s->inv->mem;
    struct json *object = json_object(mem);

    suggest_compare(s->suggest, s->before, s->after, grant_json, s);
    json_put_int(mem, object, "refusals", (int64_t)s->suggest->refusals);
    json_put_int(mem, object, "refusals_left_out", (int64_t)s->suggest->left_out);
    json_put(object, "newly_allows", s->grants);
    json_put(object, "warnings", warnings_json(s));
    json_put(object, "left", left_json(s));
    if (s->vault_note)
        json_put_bytes(mem, object, "vault", str_of(s->vault_note));
    json_put_text(mem, object, "egress_policy_hash_before", net_rules_hash(s->before));
    json_put_text(mem, object, "egress_policy_hash_after", net_rules_hash(s->after));
    json_put_bytes(mem, object, "policy", buf_str(&s->text));
    return cli_json(s->inv, object);
}

/* ---- as a policy, what it means in comments ---- */

static void print_grant(void *ctx, const struct suggest_grant *grant)
{
    const struct suggestion *s = ctx;
    const struct suggest_place *place = grant->place;
    FILE *out = s->inv->out;

    (void)fprintf(out, "#   " STR_FMT ": ", STR_ARG(place->binary));
    if (grant->method.n)
        (void)fprintf(out, STR_FMT " " STR_FMT ":%u" STR_FMT "%s", STR_ARG(grant->method),
                      STR_ARG(place->host), place->port, STR_ARG(grant->path),
                      grant->any_query ? ", any query, any body" : ", any body");
    else
        (void)fprintf(out, "connect to " STR_FMT ":%u, %s", STR_ARG(place->host), place->port,
                      grant->is_tunnel ? "any bytes" : "every request judged");
    if (grant->asked)
        (void)fprintf(out, " (asked for %llu time%s; %s)\n", (unsigned long long)grant->asked,
                      grant->asked == 1 ? "" : "s", grant->was);
    else
        (void)fprintf(out, " (not asked for, comes along; %s)\n", grant->was);
}

static void print_warnings(const struct suggestion *s)
{
    FILE *out = s->inv->out;

    for (size_t i = 0; i < s->suggest->place_n; i++)
        for (unsigned at = 0; at < SUGGEST_WARNING_N; at++) {
            const struct suggest_place *place = &s->suggest->places[i];

            if (place->taken && place->warnings & 1U << at)
                (void)fprintf(out, "# Mind (%s): " STR_FMT " to " STR_FMT ":%u: %s\n",
                              suggest_warning_code(at), STR_ARG(place->binary),
                              STR_ARG(place->host), place->port, suggest_warning_text(at));
        }
    if (s->vault_note)
        (void)fprintf(out, "# Mind (vault): %s\n", s->vault_note);
}

static void print_left(const struct suggestion *s)
{
    FILE *out = s->inv->out;

    if (s->suggest->left_n)
        (void)fprintf(out, "# Stays refused:\n");
    for (size_t i = 0; i < s->suggest->left_n; i++) {
        const struct suggest_left *left = &s->suggest->left[i];

        (void)fprintf(out, "#   " STR_FMT ": " STR_FMT "%s" STR_FMT ":%u" STR_FMT " (",
                      STR_ARG(left->binary), STR_ARG(left->method), left->method.n ? " " : "",
                      STR_ARG(left->host), left->port, STR_ARG(left->path));
        (void)fprintf(out, STR_FMT ", %llu): %s\n", STR_ARG(left->reason),
                      (unsigned long long)left->count, left->why);
    }
    if (s->suggest->left_out)
        (void)fprintf(out, "# And %llu more, for which there was no room.\n",
                      (unsigned long long)s->suggest->left_out);
}

static bool has_any(const struct suggest *suggest)
{
    for (size_t i = 0; i < suggest->place_n; i++)
        if (suggest->places[i].taken)
            return true;
    return false;
}

static int print_policy(struct suggestion *s)
{
    FILE *out = s->inv->out;
    bool any = has_any(s->suggest);

    (void)fprintf(out, "# From %llu refusal%s; nothing has been changed.\n",
                  (unsigned long long)s->suggest->refusals, s->suggest->refusals == 1 ? "" : "s");
    if (any) {
        (void)fprintf(out, "# To let it hold: read it, keep it in a file, brig policy apply FILE\n"
                           "#\n# It would newly allow exactly:\n");
        suggest_compare(s->suggest, s->before, s->after, print_grant, s);
        print_warnings(s);
    } else {
        (void)fprintf(out, "# There is nothing to suggest.\n");
    }
    print_left(s);
    if (any)
        (void)fprintf(out, "%s", buf_text(&s->text));
    return 0;
}

int run_policy_suggest(struct invocation *inv)
{
    AUTO(suggest) struct suggest *suggest = suggest_new();
    struct suggestion s = {.inv = inv,
                           .suggest = suggest,
                           .text = BUF(POLICY_TEXT_MAX),
                           .grants = json_array(&inv->mem)};
    struct err err;
    int status = make(&s, &err) < 0 ? cli_error(inv, &err)
                 : inv->json        ? print_json(&s)
                                    : print_policy(&s);

    buf_done(&s.text);
    net_rules_free(s.before);
    net_rules_free(s.after);
    return status;
}
