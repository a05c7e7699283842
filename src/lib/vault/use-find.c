/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/vault/use-parts.h"

/* Headers that carry a credential by themselves, whatever slot ours goes into. A cookie may be a
 * session, and nobody can tell from outside. */
static const char *const credential_headers[] = {
    "authorization", "x-api-key",      "api-key",       "x-goog-api-key",
    "x-auth-token",  "x-access-token", "private-token", "x-amz-security-token",
    "x-vault-token", "cookie",
};

enum vault_fault uses_add(struct vault_uses *uses, const struct vault_use *use)
{
    for (size_t i = 0; i < uses->n; i++)
        if (vault_slot_is_same(&uses->v[i].slot, &use->slot))
            return VAULT_FAULT_SECOND;
    if (uses->n == VAULT_USES_MAX)
        return VAULT_FAULT_TOO_MANY;
    uses->v[uses->n++] = *use;
    return VAULT_NO_FAULT;
}

struct str target_query(struct str target)
{
    const char *mark = memchr(target.p, '?', target.n);
    struct str none = {target.p + target.n, 0};

    return mark ? (struct str){mark + 1, target.n - (size_t)(mark + 1 - target.p)} : none;
}

static bool name_is(struct str name, const char *lower)
{
    return name.n == strlen(lower) && strncasecmp(name.p, lower, name.n) == 0;
}

/* ---- the target ---- */

static enum vault_fault find_in_target(const struct vault_request *request, struct vault_uses *uses)
{
    struct str query = target_query(request->target);
    struct str path = {request->target.p, (size_t)(query.p - request->target.p)};
    size_t before = uses->n;
    enum vault_fault fault;

    if (request->target.n == 0 || scan_count(request->target) == 0)
        return VAULT_NO_FAULT;
    if (scan_count(path))
        return VAULT_FAULT_MISPLACED;
    fault = fields_find(query, path.n, VAULT_QUERY, uses);
    if (!fault && scan_count(query) > uses->n - before)
        return VAULT_FAULT_MISPLACED;
    return fault;
}

/* ---- headers ---- */

/* "Bearer " and the like: one word, one blank. */
static size_t scheme_length(struct str value)
{
    size_t n = 0;

    while (n < value.n && ((value.p[n] | 0x20) >= 'a') && ((value.p[n] | 0x20) <= 'z'))
        n++;
    return n && n < value.n && value.p[n] == ' ' ? n + 1 : 0;
}

static bool has_twin(const struct vault_request *request, size_t header)
{
    struct str name = request->headers[header].name;

    for (size_t i = 0; i < request->header_count; i++)
        if (i != header && request->headers[i].name.n == name.n &&
            strncasecmp(request->headers[i].name.p, name.p, name.n) == 0)
            return true;
    return false;
}

static enum vault_fault add_header_use(const struct vault_request *request, struct vault_use *use,
                                       struct vault_uses *uses)
{
    return has_twin(request, use->header) ? VAULT_FAULT_SECOND : uses_add(uses, use);
}

static enum vault_fault find_in_pair(const struct vault_request *request, size_t header,
                                     const struct basic *pair, struct vault_uses *uses)
{
    const struct {
        enum vault_slot_kind kind;
        struct str text;
    } halves[] = {
        {VAULT_BASIC_USER,     pair->user    },
        {VAULT_BASIC_PASSWORD, pair->password}
    };
    size_t n = request->headers[header].value.n;

    for (size_t i = 0; i < COUNT(halves); i++) {
        struct vault_use use = {.header = header, .at = pair->at, .n = n - pair->at};
        enum vault_fault fault;

        if (scan_count(halves[i].text) == 0)
            continue;
        use.slot.kind = halves[i].kind;
        if (!placeholder_read(halves[i].text, use.name))
            return placeholder_fault(halves[i].text);
        fault = add_header_use(request, &use, uses);
        if (fault)
            return fault;
    }
    return VAULT_NO_FAULT;
}

static enum vault_fault find_plain(const struct vault_request *request, size_t header,
                                   struct vault_uses *uses)
{
    const struct http_header *h = &request->headers[header];
    size_t scheme = scheme_length(h->value);
    struct vault_use use = {.header = header, .at = scheme, .n = h->value.n - scheme};
    struct str text = {h->value.p + scheme, h->value.n - scheme};
    char slot[VAULT_SLOT_TEXT_BYTES] = "header:";
    struct err err;

    if (scan_count(h->value) == 0)
        return VAULT_NO_FAULT;
    if (!placeholder_read(text, use.name))
        return placeholder_fault(text);
    if (h->name.n > VAULT_SLOT_NAME_MAX)
        return VAULT_FAULT_MISPLACED;
    memcpy(slot + 7, h->name.p, h->name.n);
    if (vault_slot_parse((struct str){slot, 7 + h->name.n}, &use.slot, &err) < 0)
        return VAULT_FAULT_MISPLACED;
    return add_header_use(request, &use, uses);
}

static enum vault_fault find_in_signature(const struct vault_request *request, size_t header,
                                          struct vault_uses *uses)
{
    struct str value = request->headers[header].value;
    struct vault_use use = {.header = header, .n = value.n};
    char slot[VAULT_SLOT_TEXT_BYTES];
    struct sigv4 signature;
    enum vault_fault fault;
    struct err err;

    if (scan_count(value) == 0)
        return VAULT_NO_FAULT;
    if (!sigv4_read(value, &signature) || scan_count(value) > 1)
        return VAULT_FAULT_SIGNATURE;
    if (!placeholder_read(signature.key, use.name))
        return placeholder_fault(signature.key);
    (void)snprintf(slot, sizeof slot, "sigv4:" STR_FMT "/" STR_FMT, STR_ARG(signature.service),
                   STR_ARG(signature.region));
    if (vault_slot_parse(str_of(slot), &use.slot, &err) < 0)
        return VAULT_FAULT_SIGNATURE;
    fault = sigv4_check(request, &signature);
    return fault ? fault : add_header_use(request, &use, uses);
}

static enum vault_fault find_in_header(const struct vault_request *request, size_t header,
                                       struct vault_uses *uses)
{
    const struct http_header *h = &request->headers[header];
    struct basic pair;

    if (h->name.n && scan_count(h->name))
        return VAULT_FAULT_MISPLACED;
    if (h->value.n == 0)
        return VAULT_NO_FAULT;
    if (name_is(h->name, "authorization") && basic_read(h->value, &pair))
        return find_in_pair(request, header, &pair, uses);
    if (name_is(h->name, "authorization") && is_sigv4(h->value))
        return find_in_signature(request, header, uses);
    return find_plain(request, header, uses);
}

static bool is_used(const struct vault_uses *uses, size_t header)
{
    for (size_t i = 0; i < uses->n; i++) {
        enum vault_slot_kind kind = uses->v[i].slot.kind;

        if (kind != VAULT_QUERY && kind != VAULT_BODY && uses->v[i].header == header)
            return true;
    }
    return false;
}

/* Where ours goes, no credential of the sandbox's own goes along. */
static bool has_own_header(const struct vault_request *request, const struct vault_uses *uses)
{
    for (size_t i = 0; i < request->header_count; i++)
        for (size_t k = 0; k < COUNT(credential_headers); k++)
            if (name_is(request->headers[i].name, credential_headers[k]) && !is_used(uses, i))
                return true;
    return false;
}

/* ---- the body ---- */

static struct str first_value(const struct vault_request *request, const char *lower)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (name_is(request->headers[i].name, lower))
            return request->headers[i].value;
    return (struct str){"", 0};
}

enum body_kind body_kind(const struct vault_request *request)
{
    struct str type = first_value(request, "content-type");
    struct str coding = first_value(request, "content-encoding");

    type = str_trim(str_cut(&type, ';'));
    if (request->body.n > VAULT_BODY_MAX || (coding.n && !name_is(coding, "identity")))
        return BODY_OPAQUE;
    if (name_is(type, "application/x-www-form-urlencoded"))
        return BODY_FORM;
    if (name_is(type, "application/json") ||
        (type.n > 5 && strncasecmp(type.p + type.n - 5, "+json", 5) == 0))
        return BODY_JSON;
    return BODY_OPAQUE;
}

static enum vault_fault find_in_body(const struct vault_request *request, struct vault_uses *uses)
{
    size_t before = uses->n;
    enum vault_fault fault = VAULT_FAULT_BODY;
    unsigned seen = request->body.n ? scan_count(request->body) : 0;

    if (seen == 0)
        return VAULT_NO_FAULT;
    switch (body_kind(request)) {
    case BODY_OPAQUE:
        return VAULT_FAULT_BODY;
    case BODY_JSON:
        fault = json_find(request->body, uses);
        break;
    case BODY_FORM:
        fault = fields_find(request->body, 0, VAULT_BODY, uses);
        break;
    }
    return !fault && seen > uses->n - before ? VAULT_FAULT_MISPLACED : fault;
}

/* ---- all of it ---- */

enum vault_fault vault_find(const struct vault_request *request, struct vault_uses *out)
{
    struct vault_uses uses = {0};
    enum vault_fault fault;

    if (request->method.n && scan_count(request->method))
        return VAULT_FAULT_MISPLACED;
    fault = find_in_target(request, &uses);
    for (size_t i = 0; !fault && i < request->header_count; i++)
        fault = find_in_header(request, i, &uses);
    if (!fault)
        fault = find_in_body(request, &uses);
    if (!fault && uses.n && has_own_header(request, &uses))
        fault = VAULT_FAULT_SECOND;
    if (!fault)
        *out = uses;
    return fault;
}

static bool has_slot(const struct vault_request *request, const struct vault_uses *uses,
                     const struct vault_slot *slot)
{
    const char *name = slot->name;

    switch (slot->kind) {
    case VAULT_NO_SLOT:
    case VAULT_WEBSOCKET: /* of what is said later */
        return false;
    case VAULT_BASIC_USER:
    case VAULT_BASIC_PASSWORD:
        name = "authorization";
        break;
    case VAULT_SIGV4:
        if (fields_have(target_query(request->target), STR_LIT("X-Amz-Signature")))
            return true;
        name = "authorization";
        break;
    case VAULT_HEADER:
        break;
    case VAULT_QUERY:
        return fields_have(target_query(request->target), str_of(name));
    case VAULT_BODY:
        if (body_kind(request) == BODY_FORM)
            return fields_have(request->body, str_of(name + 1));
        return body_kind(request) == BODY_JSON && request->body.n && json_has(request->body, name);
    }
    for (size_t i = 0; i < request->header_count; i++)
        if (name_is(request->headers[i].name, name) && !is_used(uses, i))
            return true;
    return false;
}

enum vault_fault vault_find_own(const struct vault_request *request, const struct vault_uses *uses,
                                const struct vault_slot *bound, size_t bound_n)
{
    for (size_t i = 0; i < bound_n; i++) {
        bool is_ours = false;

        for (size_t k = 0; k < uses->n; k++)
            is_ours |= vault_slot_is_same(&uses->v[k].slot, &bound[i]);
        if (!is_ours && has_slot(request, uses, &bound[i]))
            return VAULT_FAULT_SECOND;
    }
    return VAULT_NO_FAULT;
}
