/* SPDX-License-Identifier: Apache-2.0 */
/* The section `external`: a decider outside of Brig that is asked, too, and can only say less. */
#include "flow/decide/load.h"

#include "lib/http/http-upstream.h"
#include "model/external.h"

#define URL_BYTES_MAX 1024
#define TIMEOUT_MS 500
#define TIMEOUT_MS_MAX 5000

struct external_in {
    const struct json *url;
    const struct json *protocol;
    const struct json *timeout;
    const struct json *on;
};

static int load_url(struct load *load, const struct json *value, struct external *external)
{
    struct http_origin origin;
    struct err err;

    if (load_text(load, value, URL_BYTES_MAX, "\"url\"") < 0)
        return -1;
    external->url = arena_text(load->mem, value->text);
    if (http_origin_parse(external->url, &origin, &err) < 0)
        return load_bad(load, value->mark,
                        "\"url\" must be https://HOST[:PORT]/PATH without user, query and "
                        "fragment, or http:// of this machine (127.0.0.1, [::1], localhost)");
    return 0;
}

static int load_timeout(struct load *load, const struct json *value, struct external *external)
{
    uint64_t ms = TIMEOUT_MS;
    struct err err;

    if (value && (duration_parse(value->text, &ms, &err) < 0 || ms < 1 || ms > TIMEOUT_MS_MAX))
        return load_bad(load, value->mark, "\"timeout\" is from 1ms to 5s");
    external->timeout_ms = (unsigned)ms;
    return 0;
}

static int load_on(struct load *load, const struct json *list, struct external *external)
{
    static const char *const words[] = {"allow", "ask", NULL};
    size_t at;

    external->on_allow = external->on_ask = !list;
    if (!list)
        return 0;
    if (list->n == 0)
        return load_bad(load, list->mark,
                        "\"on\" without a verdict never asks; remove \"external\"");
    json_each(word, list)
    {
        if (load_choice(load, word, words, "\"on\"", &at) < 0)
            return -1;
        external->on_allow |= at == 0;
        external->on_ask |= at == 1;
    }
    return 0;
}

int load_external(struct load *load, const struct json *section)
{
    static const struct field fields[] = {
        {"url",      offsetof(struct external_in, url),      TAKES_TEXT, true },
        {"protocol", offsetof(struct external_in, protocol), TAKES_TEXT, true },
        {"timeout",  offsetof(struct external_in, timeout),  TAKES_TEXT, false},
        {"on",       offsetof(struct external_in, on),       TAKES_LIST, false},
    };
    static const char *const protocols[] = {
        [EXTERNAL_OPA] = "opa", [EXTERNAL_AUTHZEN] = "authzen", NULL};
    struct external *external;
    struct external_in in = {0};
    size_t protocol;

    if (!section)
        return 0;
    external = arena_new(load->mem, struct external);
    *external = (struct external){.line = section->key_mark.line};
    if (load_map(load, section, fields, COUNT(fields), &in) < 0 ||
        load_url(load, in.url, external) < 0 ||
        load_choice(load, in.protocol, protocols, "\"protocol\"", &protocol) < 0 ||
        load_timeout(load, in.timeout, external) < 0 || load_on(load, in.on, external) < 0)
        return -1;
    external->protocol = (enum external_protocol)protocol;
    load->policy->external = external;
    return 0;
}

const struct external *policy_external(const struct policy *policy)
{
    return policy->external;
}
