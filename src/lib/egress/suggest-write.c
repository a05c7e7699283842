/* SPDX-License-Identifier: Apache-2.0 */
/* What is suggested, in the words of a policy. */
#include "lib/egress/suggest.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/egress/rules-private.h"
#include "lib/egress/suggest-path.h"

#define KEY_MAX 64

struct writing {
    struct buf *out;
    unsigned indent;
    struct err *err;
};

/* A line below an entry: `depth` levels of two blanks behind its indent. */
static int line(struct writing *w, unsigned depth, const char *text)
{
    return buf_addf(w->out, w->err, "%*s%s", (int)(w->indent + 2 * depth), "", text);
}

/* In double quotes, which YAML and JSON read alike; every text here is visible ASCII. */
static int quoted(struct writing *w, struct str text)
{
    if (buf_add_byte(w->out, '"', w->err) < 0)
        return -1;
    for (size_t i = 0; i < text.n; i++)
        if (((text.p[i] == '"' || text.p[i] == '\\') && buf_add_byte(w->out, '\\', w->err) < 0) ||
            buf_add_byte(w->out, text.p[i], w->err) < 0)
            return -1;
    return buf_add_byte(w->out, '"', w->err);
}

static int write_rule(struct writing *w, struct str method, struct str path)
{
    if (line(w, 5, "- allow: {method: ") < 0 || buf_add_str(w->out, method, w->err) < 0 ||
        buf_add_text(w->out, ", path: ", w->err) < 0 || quoted(w, path) < 0)
        return -1;
    return buf_add_text(w->out, "}\n", w->err);
}

static int write_rules(struct writing *w, const struct suggest_place *place)
{
    if (line(w, 4, "protocol: rest\n") < 0 || line(w, 4, "enforcement: enforce\n") < 0 ||
        line(w, 4, "rules:\n") < 0)
        return -1;
    for (const struct suggest_rule *rule = place->rules; rule; rule = rule->next)
        if (write_rule(w, rule->method, rule->path) < 0)
            return -1;
    /* An endpoint that is looked into has to allow something. */
    return place->rules ? 0 : write_rule(w, STR_LIT("HEAD"), STR_LIT("/"));
}

static int write_place(struct writing *w, const struct suggest_place *place)
{
    struct net_host host;

    if (line(w, 3, "- host: ") < 0 || quoted(w, place->host) < 0 ||
        buf_add_byte(w->out, '\n', w->err) < 0 || line(w, 4, "port: ") < 0 ||
        buf_addf(w->out, w->err, "%u\n", place->port) < 0)
        return -1;
    if (place->kind != SUGGEST_TUNNEL)
        return write_rules(w, place);
    /* "tcp" is for names; an address without a protocol is the same wire. */
    net_host_read(place->host, &host);
    return host.kind == NET_HOST_NAME ? line(w, 4, "protocol: tcp\n") : 0;
}

/* ---- entries: one a binary ---- */

static bool is_key_used(const struct json *present, const struct buf *out, unsigned indent,
                        const char *key)
{
    char text[KEY_MAX + 64];

    if (present && json_get(present, key))
        return true;
    (void)snprintf(text, sizeof text, "\n%*s%s:\n", (int)indent, "", key);
    if (out->n && memmem(out->p, out->n, text, strlen(text)))
        return true;
    return out->n >= strlen(text) - 1 && memcmp(out->p, text + 1, strlen(text) - 1) == 0;
}

static void make_key(struct writing *w, const struct json *present, struct str binary, char *out)
{
    const char *slash = memrchr(binary.p, '/', binary.n);
    struct str base = {slash + 1, binary.n - (size_t)(slash + 1 - binary.p)};
    char plain[KEY_MAX / 2];
    size_t n = 0;

    for (size_t i = 0; i < base.n && n < sizeof plain - 1; i++) {
        char c = base.p[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        plain[n++] = (char)(is_plain ? c : '-');
    }
    plain[n] = '\0';
    (void)snprintf(out, KEY_MAX, "suggested-%s", plain);
    for (unsigned i = 2; is_key_used(present, w->out, w->indent, out); i++)
        (void)snprintf(out, KEY_MAX, "suggested-%s-%u", plain, i);
}

static int write_head(struct writing *w, const struct json *present, struct str binary)
{
    AUTO_BUF struct buf path = BUF(GLOB_TEXT_MAX);
    char key[KEY_MAX];

    make_key(w, present, binary, key);
    if (!suggest_literal(binary, &path))
        return err_set(w->err, ERR_LIMIT, "the path of a program is too long for a rule");
    if (line(w, 0, key) < 0 || buf_add_text(w->out, ":\n", w->err) < 0 ||
        line(w, 1, "binaries:\n") < 0 || line(w, 3, "- {path: ") < 0 ||
        quoted(w, buf_str(&path)) < 0)
        return -1;
    if (is_interpreter(binary) && buf_add_text(w->out, ", interpreter: true", w->err) < 0)
        return -1;
    return buf_add_text(w->out, "}\n", w->err) < 0 ? -1 : line(w, 1, "endpoints:\n");
}

static bool is_first_of_binary(const struct suggest *suggest, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (suggest->places[i].taken &&
            str_eq(suggest->places[i].binary, suggest->places[at].binary))
            return false;
    return suggest->places[at].taken;
}

int suggest_write(const struct suggest *suggest, const struct json *present, unsigned indent,
                  struct buf *out, struct err *err)
{
    struct writing w = {out, indent, err};

    for (size_t i = 0; i < suggest->place_n; i++) {
        struct str binary = suggest->places[i].binary;

        if (!is_first_of_binary(suggest, i))
            continue;
        if (write_head(&w, present, binary) < 0)
            return -1;
        for (size_t k = i; k < suggest->place_n; k++)
            if (suggest->places[k].taken && str_eq(suggest->places[k].binary, binary) &&
                write_place(&w, &suggest->places[k]) < 0)
                return -1;
    }
    return 0;
}
