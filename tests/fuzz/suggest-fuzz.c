/* SPDX-License-Identifier: Apache-2.0 */
/* What sandboxes said, as refusals. The input is lines: host, port, method, path, binary, reason,
 * again and again. Whatever they said, a policy comes of it that loads, with exactly the endpoints
 * that were taken: no word of theirs becomes a word of the policy. */
#include "fuzz.h"

#include "flow/decide/decide.h"
#include "lib/base/limits.h"
#include "lib/egress/suggest.h"

#include <stdlib.h>

#define REFUSALS_MAX 16
#define MEMORY (4 * MIB)

static void put_line(struct arena *mem, struct json *object, const char *key, struct str *rest)
{
    struct str line = str_cut(rest, '\n');
    uint64_t number;

    if (str_is(str_of(key), "port")) {
        if (str_u64(line, &number) && number <= UINT16_MAX)
            json_put_int(mem, object, key, (int64_t)number);
    } else if (str_is_utf8(line)) {
        json_put(object, key, json_text(mem, line));
    }
}

static void check_grant(void *ctx, const struct suggest_grant *grant)
{
    (void)ctx;
    if (!grant->place->taken || !grant->was[0])
        abort();
}

static size_t count_taken(const struct suggest *suggest)
{
    size_t n = 0;

    for (size_t i = 0; i < suggest->place_n; i++)
        n += suggest->places[i].taken;
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char *const keys[] = {"host", "port", "method", "path", "binary", "reason"};
    AUTO_ARENA struct arena mem = ARENA(MEMORY);
    AUTO(suggest) struct suggest *suggest = suggest_new();
    AUTO(net_rules) struct net_rules *before = NULL;
    AUTO(net_rules) struct net_rules *after = NULL;
    AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);
    struct str rest = {(const char *)bytes, n};
    struct err err;

    if (n > MEMORY / 64)
        return 0;
    for (int i = 0; i < REFUSALS_MAX && rest.n; i++) {
        struct json *refusal = json_object(&mem);

        for (size_t k = 0; k < COUNT(keys); k++)
            put_line(&mem, refusal, keys[k], &rest);
        if (suggest_add(suggest, refusal, &err) < 0)
            abort();
    }
    if (policy_suggest((struct str){"", 0}, suggest, &text, &before, &after, &err) < 0)
        abort();
    if (net_rules_endpoint_count(after) != count_taken(suggest))
        abort();
    suggest_compare(suggest, before, after, check_grant, NULL);
    return 0;
}
