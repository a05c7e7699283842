/* SPDX-License-Identifier: Apache-2.0 */

/* A request of lines "target", "name: value"…, an empty one and a body: what is found in it, what
 * is made of it, and that a scrub takes back out what was put in. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/vault/vault-use.h"

#define HEADERS 8

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const struct str value = STR_LIT("k3y \"v/+%1\\z-0123456789abcdef");

static bool holds(struct str all, struct str part)
{
    return all.n >= part.n && memmem(all.p, all.n, part.p, part.n);
}

static void check_scrubbed(struct str text, size_t cut)
{
    AUTO(vault_scrub) struct vault_scrub *scrub = NULL;
    AUTO_BUF struct buf out = BUF(4 << 20);
    struct err err;

    cut = cut > text.n ? text.n : cut;
    if (vault_scrub_new(&value, 1, &scrub, &err) < 0 ||
        vault_scrub_feed(scrub, (struct str){text.p, cut}, false, &out, &err) < 0 ||
        vault_scrub_feed(scrub, (struct str){text.p + cut, text.n - cut}, true, &out, &err) < 0)
        abort();
    if (out.n != text.n || holds(buf_str(&out), value))
        abort();
}

static void fill(const struct vault_request *request, const struct vault_uses *uses)
{
    static const struct str key = STR_LIT("AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG:token-of-a-session");
    struct str values[VAULT_USES_MAX] = {value, value, value, value};
    AUTO_FREE void *memory = NULL;
    struct vault_filled filled;
    size_t size;

    for (size_t i = 0; i < uses->n; i++)
        if (uses->v[i].slot.kind == VAULT_SIGV4)
            values[i] = key;
    size = vault_fill_bytes(request, uses, values);
    memory = malloc(size);
    if (!memory || vault_fill(request, uses, values, memory, size, &filled) != VAULT_NO_FAULT)
        return;
    if (filled.used > size || filled.header_count < request->header_count)
        abort();
    check_scrubbed(filled.target, filled.target.n / 2);
    check_scrubbed(filled.body, filled.body.n / 3);
    for (size_t i = 0; i < filled.header_count; i++)
        check_scrubbed(filled.headers[i].value, 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct str rest = {(const char *)bytes, n};
    struct http_header headers[HEADERS];
    struct vault_request request = {.method = STR_LIT("POST"), .headers = headers};
    struct vault_uses uses = {0};

    request.target = str_cut(&rest, '\n');
    while (rest.n && rest.p[0] != '\n' && request.header_count < HEADERS) {
        struct str line = str_cut(&rest, '\n');
        struct str name = str_cut(&line, ':');

        headers[request.header_count++] = (struct http_header){name, str_trim(line)};
    }
    (void)str_cut(&rest, '\n');
    request.body = rest;
    if (vault_find(&request, &uses) == VAULT_NO_FAULT && uses.n)
        fill(&request, &uses);
    check_scrubbed((struct str){(const char *)bytes, n}, n / 2);
    return 0;
}
