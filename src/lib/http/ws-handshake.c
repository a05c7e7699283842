/* SPDX-License-Identifier: Apache-2.0 */

/* How a WebSocket begins (RFC 6455, 4): what the request must say, and what the answer to it. */

#include "lib/http/http-ws-frame.h"

#include <string.h>

/* Its value, when it is there once. */
static struct str only(const struct http_head *head, const char *name)
{
    struct str value = {"", 0}, second;
    size_t at = 0;

    if (!http_find_next(head, name, &at, &value) || http_find_next(head, name, &at, &second))
        return (struct str){"", 0};
    return value;
}

bool http_ws_asked(const struct http_head *head)
{
    return head->has_upgrade && http_list_has(http_find(head, "upgrade"), "websocket");
}

/* Sixteen bytes in base64: 22 digits, of which the last has four zero bits, and two "=". */
static bool is_key(struct str key)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    if (key.n != 24 || key.p[22] != '=' || key.p[23] != '=')
        return false;
    for (size_t i = 0; i < 22; i++)
        if (key.p[i] == '\0' || strchr(digits, key.p[i]) == NULL)
            return false;
    return strchr("AQgw", key.p[21]) != NULL;
}

enum http_fault http_ws_check(const struct http_head *head)
{
    if (!http_ws_asked(head) || head->method != HTTP_GET || head->framing != HTTP_NO_BODY ||
        !is_key(only(head, "sec-websocket-key")))
        return HTTP_FAULT_UPGRADE;
    if (!str_is(only(head, "sec-websocket-version"), "13"))
        return HTTP_FAULT_UPGRADE_VERSION;
    return HTTP_NO_FAULT;
}

bool http_ws_is_offered(const struct http_head *head, struct str protocol)
{
    char name[128];
    struct str offered;
    size_t at = 0;

    if (protocol.n == 0)
        return true;
    if (protocol.n >= sizeof(name))
        return false;
    memcpy(name, protocol.p, protocol.n);
    name[protocol.n] = '\0';
    while (http_find_next(head, "sec-websocket-protocol", &at, &offered))
        if (http_list_has(offered, name))
            return true;
    return false;
}

const char *http_ws_answer_fault(const struct http_head *request, const struct http_head *answer)
{
    char accept[HTTP_WS_ACCEPT_BYTES];
    struct str protocol = {"", 0};
    size_t at = 0;

    if (!answer->has_upgrade || !http_name_is(only(answer, "upgrade"), "websocket"))
        return "the server changed to something else than a WebSocket";
    http_ws_accept_key(http_find(request, "sec-websocket-key"), accept);
    if (!str_is(only(answer, "sec-websocket-accept"), accept))
        return "the server's Sec-WebSocket-Accept does not belong to this request";
    if (http_find_next(answer, "sec-websocket-extensions", &at, &protocol))
        return "the server uses an extension of WebSocket that nobody asked for";
    at = 0;
    if (!http_find_next(answer, "sec-websocket-protocol", &at, &protocol))
        return NULL;
    if (only(answer, "sec-websocket-protocol").n == 0 || !http_ws_is_offered(request, protocol))
        return "the server chose a protocol that was not offered";
    return NULL;
}
