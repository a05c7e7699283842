/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/text.h"
#include "lib/vault/use-parts.h"

/* ---- what a value may be ---- */

static bool has_control(struct str value)
{
    for (size_t i = 0; i < value.n; i++)
        if ((unsigned char)value.p[i] < 0x20 || value.p[i] == 0x7f)
            return true;
    return false;
}

static bool fits(const struct vault_slot *slot, struct str value)
{
    struct sigv4_value key;

    if (value.n == 0 || value.n > VAULT_VALUE_MAX)
        return false;
    switch (slot->kind) {
    case VAULT_NO_SLOT:
    case VAULT_WEBSOCKET: /* its messages are filled in as bodies */
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
    case VAULT_SIGV4:
        return sigv4_value_read(value, &key);
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
        pen_put(pen, piece(all, at, use->at));
        if (is_json)
            pen_json(pen, job->values[i]);
        else
            pen_percent(pen, job->values[i]);
        at = use->at + use->n;
    }
    if (at == 0)
        return all;
    pen_put(pen, piece(all, at, all.n));
    return pen_since(pen, from);
}

static struct str fill_plain(const struct vault_use *use, struct str old, struct str value,
                             struct pen *pen)
{
    char *from = pen->at;

    pen_put(pen, piece(old, 0, use->at));
    pen_put(pen, value);
    pen_put(pen, piece(old, use->at + use->n, old.n));
    return pen_since(pen, from);
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
    pen_put(pen, user);
    pen_byte(pen, ':');
    pen_put(pen, password);
    plain = pen_since(pen, from);
    from = pen->at;
    pen_put(pen, piece(old, 0, pair.at));
    pen_base64(pen, plain);
    return pen_since(pen, from);
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
            pen_put(pen, str_of(digits));
            out[i].value = pen_since(pen, from);
        }
    }
    if (!has_accept)
        out[request->header_count] =
            (struct http_header){STR_LIT("accept-encoding"), STR_LIT("identity")};
    return request->header_count + !has_accept;
}

/* Last of all: what is signed is what is sent. */
static void fill_signature(const struct job *job, struct http_header *headers,
                           struct vault_filled *out, struct pen *pen)
{
    for (size_t i = 0; i < job->uses->n; i++) {
        const struct vault_use *use = &job->uses->v[i];
        struct sigv4 signature;
        struct sigv4_value key;

        if (use->slot.kind != VAULT_SIGV4 || !sigv4_value_read(job->values[i], &key) ||
            !sigv4_read(job->request->headers[use->header].value, &signature))
            continue; /* vault_find() and fits() read them */
        headers[use->header].value = sigv4_sign(job->request, &signature, &key, out, pen);
        if (key.token.n)
            headers[out->header_count++] =
                (struct http_header){STR_LIT("x-amz-security-token"), key.token};
    }
}

/* ---- all of it ---- */

/* Accept-Encoding and a session's token may come along. */
#define HEADERS_ADDED 2

size_t vault_fill_bytes(const struct vault_request *request, const struct vault_uses *uses,
                        const struct str *values)
{
    size_t n = (request->header_count + HEADERS_ADDED) * sizeof(struct http_header) +
               request->target.n + request->body.n + 64;

    /* Six bytes a character of JSON is the worst; a pair is there plain and as base64. */
    for (size_t i = 0; i < uses->n; i++) {
        n += 6 * values[i].n + 2;
        if (uses->v[i].slot.kind == VAULT_SIGV4)
            n += sigv4_bytes(request);
    }
    for (size_t i = 0; i < request->header_count; i++)
        n += 3 * request->headers[i].value.n;
    return n;
}

enum vault_fault vault_fill(const struct vault_request *request, const struct vault_uses *uses,
                            const struct str *values, void *memory, size_t size,
                            struct vault_filled *out)
{
    const struct job job = {request, uses, values};
    size_t table = (request->header_count + HEADERS_ADDED) * sizeof(struct http_header);
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
    fill_signature(&job, headers, out, &pen);
    out->used = (size_t)(pen.at - (char *)memory);
    return VAULT_NO_FAULT;
}
