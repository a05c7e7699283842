/* SPDX-License-Identifier: Apache-2.0 */

/* Who asks, and whether a browser was tricked into asking. */

#include "surface/api/api-private.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "lib/http/http-ws.h"

#define OWNER_SCOPES ((1U << SCOPE_COUNT) - 1)
#define GUEST_SCOPES (SCOPE_READ | SCOPE_RUN | SCOPE_RECEIPTS)
#define BEARER "Bearer "
#define BEARER_PROTOCOL "brig.bearer."

/* Without the port; of "[::1]:8080" what is in and with the brackets. */
static struct str host_name(struct str host)
{
    const char *end =
        host.n && host.p[0] == '[' ? memchr(host.p, ']', host.n) : memchr(host.p, ':', host.n);

    if (!end)
        return host;
    return (struct str){host.p, (size_t)(end - host.p) + (host.p[0] == '[')};
}

static bool is_ours(const struct api *api, struct str host)
{
    static const char *const loopback[] = {"localhost", "127.0.0.1", "[::1]"};
    struct str name = host_name(host);

    for (size_t i = 0; i < COUNT(loopback); i++)
        if (str_is(name, loopback[i]))
            return true;
    for (const char *const *own = api->hosts; own && *own; own++)
        if (str_is(name, *own))
            return true;
    return false;
}

int check_host(const struct api *api, const struct http_head *head, struct err *err)
{
    if (head->host.n && !is_ours(api, head->host))
        return err_set(err, ERR_FORBIDDEN,
                       "this daemon is not called that; start it with --host to add a name");
    return 0;
}

/* A page of another site may send requests, with the user's reach but not with our name: DNS
 * rebinding shows in Host, cross-site requests show in Origin. */
static int check_site(const struct api *api, const struct http_head *head, struct err *err)
{
    struct str origin = http_find(head, "origin");

    if (check_host(api, head, err) < 0)
        return -1;
    if (!origin.p)
        return 0;
    if (str_starts(origin, "http://") && is_ours(api, (struct str){origin.p + 7, origin.n - 7}))
        return 0;
    if (str_starts(origin, "https://") && is_ours(api, (struct str){origin.p + 8, origin.n - 8}))
        return 0;
    return err_set(err, ERR_FORBIDDEN, "pages of other sites may not speak to this daemon");
}

/* A browser's WebSocket sends no header of the page's choice, but names protocols: one of them may
 * be the token. It is never the one that is chosen, so it does not come back. Two are none. */
static struct str offered_token(const struct http_head *head)
{
    struct str offered, token = {0};
    size_t at = 0, found = 0;

    while (http_ws_asked(head) && http_find_next(head, "sec-websocket-protocol", &at, &offered))
        while (offered.n) {
            struct str one = str_trim(str_cut(&offered, ','));

            if (!str_starts(one, BEARER_PROTOCOL))
                continue;
            token = (struct str){one.p + strlen(BEARER_PROTOCOL), one.n - strlen(BEARER_PROTOCOL)};
            found++;
        }
    return found == 1 ? token : (struct str){0};
}

static struct str bearer(const struct http_head *head)
{
    struct str value = http_find(head, "authorization");
    struct str none = {0};

    if (!value.p) {
        value = http_find(head, "x-api-key");
        return value.p ? value : offered_token(head);
    }
    if (value.n <= strlen(BEARER) || strncasecmp(value.p, BEARER, strlen(BEARER)) != 0)
        return none;
    return (struct str){value.p + strlen(BEARER), value.n - strlen(BEARER)};
}

/* Whoever the daemon runs as owns its state. Others who may open the socket are tenants. */
static void identify_peer(const struct http_peer *peer, struct caller *out)
{
    bool owner = peer->uid == geteuid() || peer->uid == 0;

    (void)snprintf(out->tenant, sizeof out->tenant, owner ? TENANT_DEFAULT : "uid-%u", peer->uid);
    (void)snprintf(out->principal, sizeof out->principal, "uid:%u", peer->uid);
    out->scopes = owner ? OWNER_SCOPES : GUEST_SCOPES;
}

int identify(struct api *api, struct http_exchange *x, const struct http_head *head,
             struct caller *out, const struct token **token, int *status, struct err *err)
{
    struct http_peer peer = http_exchange_peer(x);
    struct str words = bearer(head);

    *out = (struct caller){0};
    *token = NULL;
    *status = 403;
    if (!peer.is_unix && check_site(api, head, err) < 0)
        return -1;
    if (words.n == 0 && peer.is_unix) {
        identify_peer(&peer, out);
        return 0;
    }
    *status = 401;
    *token = words.n ? access_check(api->access, words) : NULL;
    if (!*token)
        return err_set(err, ERR_FORBIDDEN,
                       words.n ? "this token is not valid here"
                               : "a token is needed: \"brig token create\" makes one");
    memcpy(out->tenant, (*token)->tenant, sizeof out->tenant);
    memcpy(out->principal, (*token)->principal, sizeof out->principal);
    memcpy(out->made_by, (*token)->made_by, sizeof out->made_by);
    memcpy(out->token, (*token)->id, sizeof out->token);
    out->scopes = (*token)->scopes;
    return 0;
}

int call_is_made_by(struct call *call, const char *principal, bool *out, struct err *err)
{
    AUTO(access) struct access *access = NULL;
    const char *above = "";
    struct str rest;

    *out = false;
    if (!*call->caller.made_by)
        return 0;
    if (access_open(call->api->state_dir, &access, err) < 0 ||
        access_makers(access, &call->mem, call->caller.made_by, &above, err) < 0)
        return -1;
    rest = str_of(arena_printf(&call->mem, "%s %s", call->caller.made_by, above));
    while (rest.n && !*out)
        *out = str_is(str_cut(&rest, ' '), principal);
    return 0;
}
