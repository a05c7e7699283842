/* SPDX-License-Identifier: Apache-2.0 */
/* Why a verdict is what it is: every endpoint, and what it says. Slow on purpose: it looks at all
 * of them one by one and does not use the index, so that it also tells when the index is wrong. */
#include "lib/egress/rules-judge.h"

#include <stdio.h>
#include <string.h>

#define WHY_MAX 512

struct explaining {
    const struct net_knock *knock;
    const struct net_host *host;
    struct judged *judged; /* NULL: no request */
    bool has_path;
    char why[WHY_MAX];
};

static bool is_host(const struct endpoint *endpoint, const struct net_host *host)
{
    switch (endpoint->host_kind) {
    case HOST_ANY:
        return true;
    case HOST_NAME:
    case HOST_PATTERN:
        return host->kind == NET_HOST_NAME &&
               net_pattern_match(endpoint->host, (struct str){host->text, host->n});
    case HOST_ADDRESS:
        return host->kind == NET_HOST_ADDRESS && net_addr_is_same(&endpoint->addr, &host->addr);
    }
    return false;
}

/* Other sandboxes are meant by endpoints that say so. */
static bool is_foreign(const struct endpoint *endpoint, const struct net_host *host)
{
    return !endpoint->is_sandbox && host->kind == NET_HOST_NAME &&
           net_host_is_sandbox((struct str){host->text, host->n});
}

static bool has_port(const struct endpoint *endpoint, uint16_t port)
{
    for (size_t i = 0; i < endpoint->port_n; i++)
        if (endpoint->ports[i] == port)
            return true;
    return false;
}

static const char *binary_words(enum binary_match match)
{
    static const char *const words[] = {
        [BINARY_OTHER] = "its binaries do not name the caller",
        [BINARY_INTERPRETER] = "it names the caller, which runs other programs, without "
                               "\"interpreter: true\"",
        [BINARY_WRITABLE] = "it names the caller, which the sandbox can write, without "
                            "\"writable: true\" or a \"hash\"",
        [BINARY_LOST] = "it names a parent of the caller, but not all parents are known",
        [BINARY_MATCHES] = "",
    };

    return words[match];
}

static const char *stance_words(enum stance stance)
{
    static const char *const words[] = {
        [STANCE_SILENT] = "says nothing",
        [STANCE_NEEDS_BODY] = "needs to see the body",
        [STANCE_ALLOWS] = "allows it",
        [STANCE_DENIES] = "denies it",
    };

    return words[stance];
}

/* What it says of the request; false when it does not speak for it. */
static bool explain_request(struct explaining *it, const struct endpoint *endpoint)
{
    struct str path = {it->judged->path.normal, it->judged->path.n};
    struct opinion opinion = {0};

    if (endpoint->path && !glob_match(endpoint->path, path)) {
        (void)snprintf(it->why, sizeof it->why, "its path " STR_FMT " is another",
                       STR_ARG(endpoint->path_text));
        return false;
    }
    judge_endpoint(endpoint, it->judged, false, &opinion);
    if (opinion.text[0])
        (void)snprintf(it->why, sizeof it->why, "%s, line %u: %s", stance_words(opinion.stance),
                       opinion.line, opinion.text);
    else
        (void)snprintf(it->why, sizeof it->why, "%s, line %u", stance_words(opinion.stance),
                       opinion.line);
    return opinion.stance == STANCE_ALLOWS || opinion.stance == STANCE_NEEDS_BODY;
}

static bool explain_endpoint(struct explaining *it, const struct endpoint *endpoint)
{
    enum binary_match match = entry_match(endpoint->entry, it->knock->caller);

    if (!is_host(endpoint, it->host) || is_foreign(endpoint, it->host))
        (void)snprintf(it->why, sizeof it->why, "its host " STR_FMT " is another",
                       STR_ARG(endpoint->host));
    else if (!has_port(endpoint, it->knock->port))
        (void)snprintf(it->why, sizeof it->why, "it names the host, but not port %u",
                       it->knock->port);
    else if (match != BINARY_MATCHES)
        (void)snprintf(it->why, sizeof it->why, "it names host and port, but %s",
                       binary_words(match));
    else if (it->judged && it->has_path)
        return explain_request(it, endpoint);
    else if (it->judged)
        (void)snprintf(it->why, sizeof it->why,
                       "it names host, port and caller; the path is no "
                       "plain one");
    else {
        (void)snprintf(it->why, sizeof it->why, "it names host, port and caller");
        return true;
    }
    return false;
}

static void explain_all(const struct net_rules *rules, struct explaining *it,
                        void (*on_step)(void *ctx, const struct net_step *step), void *ctx)
{
    for (size_t i = 0; i < rules->endpoint_n; i++) {
        const struct endpoint *endpoint = rules->endpoints[i];
        struct net_step step = {.entry = endpoint->entry->name, .line = endpoint->line};

        step.matched = explain_endpoint(it, endpoint);
        step.why = it->why;
        on_step(ctx, &step);
    }
}

void net_rules_explain(const struct net_rules *rules, const struct net_knock *knock,
                       const struct net_request *request, const struct str *body,
                       void (*on_step)(void *ctx, const struct net_step *step), void *ctx,
                       struct net_verdict *out)
{
    AUTO_ARENA struct arena mem = ARENA(JUDGE_MEMORY_MAX);
    struct judged judged = {.mem = &mem, .request = request, .body = body};
    struct explaining it = {.knock = knock, .judged = request ? &judged : NULL};
    struct net_host host;

    net_host_read(knock->host, &host);
    it.host = &host;
    it.has_path = request && !path_read(request->path, &judged.path);
    if (knock->caller)
        explain_all(rules, &it, on_step, ctx);
    net_rules_connect(rules, knock, out);
    if (out->kind == NET_DENY || !request)
        return;
    net_rules_request(rules, knock, request, out);
    if (out->kind == NET_NEED_BODY && body)
        net_rules_body(rules, knock, request, *body, out);
}
