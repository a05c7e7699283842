/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "lib/base/glob.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "lib/crypto/crypto.h"
#include "lib/vault/vault-parts.h"

#define MATCH_MEMORY_MAX (4 * MIB)

/* ---- what one may say ---- */

static bool is_of(const char *text, const char *extra)
{
    for (const char *c = text; *c; c++)
        if (!(*c >= 'a' && *c <= 'z') && !(*c >= '0' && *c <= '9') && !strchr(extra, *c))
            return false;
    return text[0] != '\0';
}

static bool is_host(const char *host)
{
    size_t n = strlen(host);

    return is_of(host, "-.:_") && host[0] != '.' && host[n - 1] != '.' && !strstr(host, "..");
}

static bool is_method(const char *method)
{
    for (const char *c = method; *c; c++)
        if (!(*c >= 'A' && *c <= 'Z') && *c != '-')
            return strcmp(method, "*") == 0;
    return method[0] != '\0';
}

static int check_glob(const char *what, const char *pattern, enum glob_kind kind, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(MATCH_MEMORY_MAX);
    const struct glob *glob;

    for (const char *c = pattern; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return err_set(err, ERR_INVALID, "control character in the %s of a binding", what);
    if (glob_new(&mem, str_of(pattern), kind, &glob, err) < 0)
        return err_in(err, "the %s of a binding", what);
    return 0;
}

static void fill_defaults(struct vault_binding *b)
{
    if (!b->tenant[0])
        (void)strcpy(b->tenant, "default");
    if (!b->subject[0])
        (void)strcpy(b->subject, "*");
    if (!b->pack[0])
        (void)strcpy(b->pack, "*");
    if (!b->scheme[0])
        (void)strcpy(b->scheme, "https");
    if (!b->port)
        b->port = strcmp(b->scheme, "http") == 0 ? 80 : 443;
    if (!b->method[0])
        (void)strcpy(b->method, "*");
    if (!b->path[0])
        (void)strcpy(b->path, "/**");
}

static int check_members(const struct vault_binding *b, struct err *err)
{
    if (!is_of(b->tenant, "-"))
        return err_set(err, ERR_INVALID, "a tenant's name has lower-case letters, digits and -");
    if (!is_host(b->host))
        return err_set(err, ERR_INVALID,
                       "a binding needs one host, in lower case and without patterns");
    if (strcmp(b->scheme, "https") != 0 && strcmp(b->scheme, "http") != 0)
        return err_set(err, ERR_INVALID, "the scheme of a binding is https or http");
    if (b->port > 65535)
        return err_set(err, ERR_INVALID, "a port is at most 65535");
    if (!is_method(b->method))
        return err_set(err, ERR_INVALID, "the method of a binding is one in capitals, or *");
    if (b->path[0] != '/')
        return err_set(err, ERR_INVALID, "the path of a binding begins with /");
    if (b->slot.kind == VAULT_NO_SLOT)
        return err_set(err, ERR_INVALID, "a binding needs a slot");
    if (check_glob("subject", b->subject, GLOB_WORD, err) < 0 ||
        check_glob("pack", b->pack, GLOB_WORD, err) < 0)
        return -1;
    return check_glob("path", b->path, GLOB_PATH, err);
}

/* The beginning of a hash over all of it: the same binding has the same id. */
static int put_id(struct vault_binding *b, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(256 * KIB);
    AUTO_BUF struct buf text = BUF(16 * KIB);
    struct hash hash;
    char hex[2 * HASH_BYTES + 1];

    b->id[0] = '\0';
    if (json_canonical(binding_json(&mem, b), &text, err) < 0)
        return -1;
    hash_of(buf_str(&text), &hash);
    hex_encode(hash.b, sizeof hash.b, hex);
    (void)snprintf(b->id, sizeof b->id, "b%.11s", hex);
    return 0;
}

int vault_binding_check(struct vault_binding *binding, struct err *err)
{
    fill_defaults(binding);
    return check_members(binding, err) < 0 ? -1 : put_id(binding, err);
}

/* ---- as JSON ---- */

static const struct {
    const char *key;
    size_t at;
    size_t size;
} members[] = {
/* clang-format off */
#define MEMBER(name) {#name, offsetof(struct vault_binding, name), sizeof((struct vault_binding *)0)->name}
    MEMBER(id),
    MEMBER(tenant),
    MEMBER(subject),
    MEMBER(pack),
    MEMBER(host),
    MEMBER(scheme),
    MEMBER(method),
    MEMBER(path),
#undef MEMBER
    /* clang-format on */
};

struct json *binding_json(struct arena *mem, const struct vault_binding *binding)
{
    struct json *object = json_object(mem);
    char slot[VAULT_SLOT_TEXT_BYTES];

    for (size_t i = 0; i < COUNT(members); i++)
        json_put_text(mem, object, members[i].key, (const char *)binding + members[i].at);
    json_put_int(mem, object, "port", binding->port);
    vault_slot_text(&binding->slot, slot);
    json_put_text(mem, object, "slot", slot);
    return object;
}

int binding_read(const struct json *json, struct vault_binding *out, struct err *err)
{
    struct vault_binding b = {0};
    struct str text;
    int64_t port;
    char id[VAULT_BINDING_ID_BYTES];

    for (size_t i = 0; i < COUNT(members); i++) {
        if (!json_is_text(json_get(json, members[i].key), &text) || text.n >= members[i].size)
            return err_set(err, ERR_INTEGRITY, "a binding without a %s", members[i].key);
        memcpy((char *)&b + members[i].at, text.p, text.n);
    }
    if (!json_is_int(json_get(json, "port"), &port) || port < 1 || port > 65535 ||
        !json_is_text(json_get(json, "slot"), &text) || json->n != COUNT(members) + 2)
        return err_set(err, ERR_INTEGRITY, "a binding that is none");
    b.port = (unsigned)port;
    memcpy(id, b.id, sizeof id);
    if (vault_slot_parse(text, &b.slot, err) < 0 || vault_binding_check(&b, err) < 0)
        return -1;
    if (strcmp(id, b.id) != 0)
        return err_set(err, ERR_INTEGRITY, "a binding with the id of another one");
    *out = b;
    return 0;
}

/* ---- what fits ---- */

static bool matches(const char *pattern, const char *text, enum glob_kind kind)
{
    AUTO_ARENA struct arena mem = ARENA(MATCH_MEMORY_MAX);
    const struct glob *glob;
    struct err err;

    return glob_new(&mem, str_of(pattern), kind, &glob, &err) == 0 &&
           glob_match(glob, str_of(text));
}

/* Nothing that a server might read as another path than the one we see. */
static bool is_plain_path(const char *path)
{
    static const char *const doubts[] = {"//", "/./", "/../", "\\", "%2e", "%2f", "%5c", "%00"};
    size_t n = strlen(path);
    char lower[VAULT_PATH_BYTES * 2];

    if (path[0] != '/' || n >= sizeof lower)
        return false;
    for (size_t i = 0; i <= n; i++) {
        lower[i] = (char)(path[i] >= 'A' && path[i] <= 'Z' ? path[i] + 32 : path[i]);
        if (path[i] && ((unsigned char)path[i] <= 0x20 || path[i] == 0x7f))
            return false;
    }
    for (size_t i = 0; i < COUNT(doubts); i++)
        if (strstr(lower, doubts[i]))
            return false;
    return !(n >= 2 && strcmp(path + n - 2, "/.") == 0) &&
           !(n >= 3 && strcmp(path + n - 3, "/..") == 0);
}

bool vault_binding_fits(const struct vault_binding *b, const struct vault_question *q,
                        bool with_slot)
{
    return strcmp(b->tenant, q->tenant) == 0 && strcmp(b->host, q->host) == 0 &&
           b->port == q->port && strcmp(b->scheme, q->scheme) == 0 &&
           (strcmp(b->method, "*") == 0 || strcmp(b->method, q->method) == 0) &&
           (!with_slot || vault_slot_is_same(&b->slot, &q->slot)) && is_plain_path(q->path) &&
           matches(b->subject, q->subject, GLOB_WORD) && matches(b->pack, q->pack, GLOB_WORD) &&
           matches(b->path, q->path, GLOB_PATH);
}
