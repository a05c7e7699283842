/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/text.h"
#include "lib/vault/use-parts.h"

/* Written one behind the other into the caller's memory, whose size was computed for the worst. */
struct pen {
    char *at;
    const char *end;
};

static void put(struct pen *pen, struct str text)
{
    assert((size_t)(pen->end - pen->at) >= text.n);
    if (text.n)
        memcpy(pen->at, text.p, text.n);
    pen->at += text.n;
}

static void put_byte(struct pen *pen, char c)
{
    put(pen, (struct str){&c, 1});
}

static struct str written(const struct pen *pen, char *from)
{
    return (struct str){from, (size_t)(pen->at - from)};
}

/* ---- how a value is written in its slot ---- */

static bool is_unreserved(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static void put_percent(struct pen *pen, struct str value)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < value.n; i++) {
        unsigned char c = (unsigned char)value.p[i];

        if (is_unreserved(value.p[i])) {
            put_byte(pen, value.p[i]);
        } else {
            put_byte(pen, '%');
            put_byte(pen, digits[c >> 4]);
            put_byte(pen, digits[c & 15]);
        }
    }
}

static void put_json(struct pen *pen, struct str value)
{
    char escape[8];

    put_byte(pen, '"');
    for (size_t i = 0; i < value.n; i++) {
        unsigned char c = (unsigned char)value.p[i];

        if (c == '"' || c == '\\')
            put_byte(pen, '\\');
        if (c >= 0x20) {
            put_byte(pen, value.p[i]);
        } else {
            (void)snprintf(escape, sizeof escape, "\\u%04x", c);
            put(pen, str_of(escape));
        }
    }
    put_byte(pen, '"');
}

/* Not base64_encode(): its buffer would leave copies behind as it grows. */
static void put_base64(struct pen *pen, struct str bytes)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < bytes.n; i += 3) {
        unsigned group = (unsigned)(unsigned char)bytes.p[i] << 16;

        if (i + 1 < bytes.n)
            group |= (unsigned)(unsigned char)bytes.p[i + 1] << 8;
        if (i + 2 < bytes.n)
            group |= (unsigned char)bytes.p[i + 2];
        put_byte(pen, letters[group >> 18]);
        put_byte(pen, letters[group >> 12 & 63]);
        put_byte(pen, (char)(i + 1 < bytes.n ? letters[group >> 6 & 63] : '='));
        put_byte(pen, (char)(i + 2 < bytes.n ? letters[group & 63] : '='));
    }
}

static bool has_control(struct str value)
{
    for (size_t i = 0; i < value.n; i++)
        if ((unsigned char)value.p[i] < 0x20 || value.p[i] == 0x7f)
            return true;
    return false;
}

static bool fits(const struct vault_slot *slot, struct str value)
{
    if (value.n == 0 || value.n > VAULT_VALUE_MAX)
        return false;
    switch (slot->kind) {
    case VAULT_NO_SLOT:
        return false;
    case VAULT_HEADER:
        return !has_control(value) && value.p[0] != ' ' && value.p[value.n - 1] != ' ';
    case VAULT_BASIC_USER:
        return !has_control(value) && !memchr(value.p, ':', value.n);
    case VAULT_BASIC_PASSWORD:
        return !has_control(value);
    case VAULT_QUERY:
        return true;
    case VAULT_BODY:
        return str_is_utf8(value);
    }
    return false;
}

/* ---- the parts of the request ---- */

struct job {
    const struct vault_request *request;
    const struct vault_uses *uses;
    const struct str *values;
};

static struct str piece(struct str all, size_t from, size_t to)
{
    return (struct str){all.p + from, to - from};
}

/* A target or a body: uses of this kind in the order they were found, which is that of their
 * places. */
static struct str fill_fields(const struct job *job, struct str all, enum vault_slot_kind kind,
                              bool is_json, struct pen *pen)
{
    char *from = pen->at;
    size_t at = 0;

    for (size_t i = 0; i < job->uses->n; i++) {
        const struct vault_use *use = &job->uses->v[i];

        if (use->slot.kind != kind)
            continue;
        put(pen, piece(all, at, use->at));
        if (is_json)
            put_json(pen, job->values[i]);
        else
            put_percent(pen, job->values[i]);
        at = use->at + use->n;
    }
    if (at == 0)
        return all;
    put(pen, piece(all, at, all.n));
    return written(pen, from);
}

static struct str fill_plain(const struct vault_use *use, struct str old, struct str value,
                             struct pen *pen)
{
    char *from = pen->at;

    put(pen, piece(old, 0, use->at));
    put(pen, value);
    put(pen, piece(old, use->at + use->n, old.n));
    return written(pen, from);
}

/* Both halves at once: each is ours or stays what it is. */
static struct str fill_pair(const struct job *job, size_t header, struct str old, struct pen *pen)
{
    struct basic pair;
    struct str user, password, plain;
    char *from;

    if (!basic_read(old, &pair))
        return old; /* cannot be: vault_find() read it */
    user = pair.user;
    password = pair.password;
    for (size_t i = 0; i < job->uses->n; i++) {
        const struct vault_use *use = &job->uses->v[i];

        if (use->slot.kind == VAULT_BASIC_USER && use->header == header)
            user = job->values[i];
        if (use->slot.kind == VAULT_BASIC_PASSWORD && use->header == header)
            password = job->values[i];
    }
    from = pen->at;
    put(pen, user);
    put_byte(pen, ':');
    put(pen, password);
    plain = written(pen, from);
    from = pen->at;
    put(pen, piece(old, 0, pair.at));
    put_base64(pen, plain);
    return written(pen, from);
}

static struct str fill_value(const struct job *job, size_t header, struct pen *pen)
{
    struct str old = job->request->headers[header].value;

    for (size_t i = 0; i < job->uses->n; i++) {
        const struct vault_use *use = &job->uses->v[i];
        enum vault_slot_kind kind = use->slot.kind;

        if (kind == VAULT_HEADER && use->header == header)
            return fill_plain(use, old, job->values[i], pen);
        if ((kind == VAULT_BASIC_USER || kind == VAULT_BASIC_PASSWORD) && use->header == header)
            return fill_pair(job, header, old, pen);
    }
    return old;
}

static bool name_is(struct str name, const char *lower)
{
    return name.n == strlen(lower) && strncasecmp(name.p, lower, name.n) == 0;
}

static size_t fill_headers(const struct job *job, struct http_header *out, size_t body_n,
                           struct pen *pen)
{
    const struct vault_request *request = job->request;
    bool has_accept = false;
    char digits[24];

    for (size_t i = 0; i < request->header_count; i++) {
        out[i] = (struct http_header){request->headers[i].name, fill_value(job, i, pen)};
        if (name_is(out[i].name, "accept-encoding")) {
            out[i].value = STR_LIT("identity");
            has_accept = true;
        } else if (name_is(out[i].name, "content-length") && body_n != request->body.n) {
            char *from = pen->at;

            (void)snprintf(digits, sizeof digits, "%zu", body_n);
            put(pen, str_of(digits));
            out[i].value = written(pen, from);
        }
    }
    if (!has_accept)
        out[request->header_count] =
            (struct http_header){STR_LIT("accept-encoding"), STR_LIT("identity")};
    return request->header_count + !has_accept;
}

/* ---- all of it ---- */

size_t vault_fill_bytes(const struct vault_request *request, const struct vault_uses *uses,
                        const struct str *values)
{
    size_t n = (request->header_count + 1) * sizeof(struct http_header) + request->target.n +
               request->body.n + 64;

    /* Six bytes a character of JSON is the worst; a pair is there plain and as base64. */
    for (size_t i = 0; i < uses->n; i++)
        n += 6 * values[i].n + 2;
    for (size_t i = 0; i < request->header_count; i++)
        n += 3 * request->headers[i].value.n;
    return n;
}

enum vault_fault vault_fill(const struct vault_request *request, const struct vault_uses *uses,
                            const struct str *values, void *memory, size_t size,
                            struct vault_filled *out)
{
    const struct job job = {request, uses, values};
    size_t table = (request->header_count + 1) * sizeof(struct http_header);
    struct http_header *headers = memory;
    struct pen pen = {(char *)memory + table, (char *)memory + size};
    bool is_json = body_kind(request) == BODY_JSON;

    assert(size >= vault_fill_bytes(request, uses, values));
    for (size_t i = 0; i < uses->n; i++)
        if (!fits(&uses->v[i].slot, values[i]))
            return VAULT_FAULT_UNFIT;
    out->target = fill_fields(&job, request->target, VAULT_QUERY, false, &pen);
    out->body = fill_fields(&job, request->body, VAULT_BODY, is_json, &pen);
    out->header_count = fill_headers(&job, headers, out->body.n, &pen);
    out->headers = headers;
    out->used = (size_t)(pen.at - (char *)memory);
    return VAULT_NO_FAULT;
}
