/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/vault/vault-slot.h"

#include <stdio.h>
#include <string.h>

#define VAULT_SLOT_FORMS                                                                           \
    "header:NAME, query:KEY, body:/POINTER, basic:user, basic:password, sigv4:SERVICE/REGION or "  \
    "websocket:/POINTER"

static const struct {
    enum vault_slot_kind kind;
    const char *prefix;
    bool has_name;
} kinds[] = {
    {VAULT_HEADER,         "header:",        true },
    {VAULT_QUERY,          "query:",         true },
    {VAULT_BODY,           "body:",          true },
    {VAULT_BASIC_USER,     "basic:user",     false},
    {VAULT_BASIC_PASSWORD, "basic:password", false},
    {VAULT_SIGV4,          "sigv4:",         true },
    {VAULT_WEBSOCKET,      "websocket:",     true },
};

/* Those that steer the message, or that a proxy takes off. */
static bool is_header_slot(const char *lower)
{
    static const char *const never[] = {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "keep-alive",
        "origin",
        "proxy-authenticate",
        "proxy-connection",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "via",
    };

    for (size_t i = 0; i < COUNT(never); i++)
        if (strcmp(lower, never[i]) == 0)
            return false;
    return true;
}

static bool is_token(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool is_word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        if (!is_word && (c == '\0' || !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return name.n > 0;
}

static int read_header(struct str name, struct vault_slot *slot, struct err *err)
{
    if (!is_token(name))
        return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is not the name of a header",
                       STR_ARG(name));
    for (size_t i = 0; i < name.n; i++)
        slot->name[i] = (char)(name.p[i] >= 'A' && name.p[i] <= 'Z' ? name.p[i] + 32 : name.p[i]);
    if (!is_header_slot(slot->name))
        return err_set(err, ERR_INVALID, "no secret can go into the header %s", slot->name);
    return 0;
}

static bool is_pointer(struct str text)
{
    if (text.n < 2 || text.p[0] != '/' || !str_is_utf8(text))
        return false;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '~' && (i + 1 == text.n || (text.p[i + 1] != '0' && text.p[i + 1] != '1')))
            return false;
    return true;
}

static bool is_label(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!(text.p[i] >= 'a' && text.p[i] <= 'z') && !(text.p[i] >= '0' && text.p[i] <= '9') &&
            text.p[i] != '-')
            return false;
    return text.n > 0 && text.n <= 64;
}

/* "service/region", as they stand in a signature's scope. */
static bool is_scope(struct str text)
{
    struct str service = str_cut(&text, '/');

    return is_label(service) && is_label(text);
}

static bool is_printable(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f)
            return false;
    return true;
}

static int read_name(enum vault_slot_kind kind, struct str name, struct vault_slot *slot,
                     struct err *err)
{
    if (name.n == 0 || name.n > VAULT_SLOT_NAME_MAX || !is_printable(name))
        return err_set(err, ERR_INVALID, "the name of a slot has 1 to %d printable characters",
                       VAULT_SLOT_NAME_MAX);
    if (kind == VAULT_HEADER)
        return read_header(name, slot, err);
    if ((kind == VAULT_BODY || kind == VAULT_WEBSOCKET) && !is_pointer(name))
        return err_set(err, ERR_INVALID,
                       "\"" STR_FMT "\" is not a JSON pointer: write %s:/field or %s:/a/b",
                       STR_ARG(name), kind == VAULT_BODY ? "body" : "websocket",
                       kind == VAULT_BODY ? "body" : "websocket");
    if (kind == VAULT_SIGV4 && !is_scope(name))
        return err_set(err, ERR_INVALID,
                       "\"" STR_FMT "\" is not a service and its region: write sigv4:s3/eu-west-1",
                       STR_ARG(name));
    memcpy(slot->name, name.p, name.n);
    return 0;
}

/* Asked for by people who know them from elsewhere. */
static const char *why_never(struct str text)
{
    if (str_starts(text, "path"))
        return "no secret can go into a path: paths are judged, logged and kept by servers";
    if (str_starts(text, "cookie"))
        return "no secret can go into a cookie: servers set them and clients keep them";
    return NULL;
}

int vault_slot_parse(struct str text, struct vault_slot *out, struct err *err)
{
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct vault_slot slot = {.kind = kinds[i].kind};
        size_t n = strlen(kinds[i].prefix);

        if (!str_starts(text, kinds[i].prefix) || (!kinds[i].has_name && text.n != n))
            continue;
        if (kinds[i].has_name &&
            read_name(slot.kind, (struct str){text.p + n, text.n - n}, &slot, err) < 0)
            return -1;
        *out = slot;
        return 0;
    }
    return err_set(err, ERR_INVALID, "%s%sa slot is " VAULT_SLOT_FORMS,
                   why_never(text) ? why_never(text) : "", why_never(text) ? "; " : "");
}

void vault_slot_text(const struct vault_slot *slot, char out[VAULT_SLOT_TEXT_BYTES])
{
    out[0] = '\0';
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (kinds[i].kind == slot->kind)
            (void)snprintf(out, VAULT_SLOT_TEXT_BYTES, "%s%s", kinds[i].prefix, slot->name);
}

bool vault_slot_is_same(const struct vault_slot *a, const struct vault_slot *b)
{
    return a->kind == b->kind && strcmp(a->name, b->name) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "v12_" or "s<64 hex>_" at the start, as OpenShell writes revisions. */
static bool has_revision(struct str name)
{
    size_t i = 1;

    if (name.n < 3 || (name.p[0] != 'v' && name.p[0] != 's'))
        return false;
    while (i < name.n &&
           (is_digit(name.p[i]) || (name.p[0] == 's' && name.p[i] >= 'a' && name.p[i] <= 'f')))
        i++;
    if (i == name.n || name.p[i] != '_')
        return false;
    return name.p[0] == 'v' ? i > 1 : i == 65;
}

bool vault_is_name(struct str name)
{
    if (name.n == 0 || name.n >= VAULT_NAME_BYTES || has_revision(name))
        return false;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool is_word = is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

        if (!is_word && (i == 0 || (c != '-' && c != '.')))
            return false;
    }
    return true;
}
