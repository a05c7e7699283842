/* SPDX-License-Identifier: Apache-2.0 */

/* Servers inside sandboxes, reached by path: with a token, or with a grant in the address that a
 * browser can open.
 *
 * A grant is who gave it, for which port of which sandbox, until when, and a seal over that with a
 * key of this process: grants end with the daemon, with their sandbox (an id is never used again),
 * with the token they were made with, and with their time. Whoever comes, with either, opens a door
 * for a minute: that is when it is judged and recorded. A freeze is noticed at once. */

#include "surface/api/api-private.h"
#include "surface/api/tables.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "lib/access/freeze.h"
#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "lib/crypto/crypto.h"
#include "model/run.h"
#include "surface/api/proxy.h"
#include "surface/view/view.h"

#define DOORS_MAX 1024
#define DOOR_OPEN_US 60000000ULL
#define CONNECT_MS 10000
#define GRANT_BYTES_MAX 512
#define GRANT_VERSION "1"
#define TTL_MS (15 * 60 * 1000)
#define TTL_MAX_MS (24 * 3600 * 1000)

/* One that was judged and recorded a moment ago. */
struct door {
    char tenant[TENANT_BYTES];
    char principal[PRINCIPAL_BYTES];
    char made_by[PRINCIPAL_BYTES]; /* of the token it was opened with */
    char sandbox[ID_BYTES];
    uint16_t port;
    uint64_t until_us;
};

struct doors {
    struct hash key; /* grants are sealed with it */
    struct freezer *freezer;
    pthread_mutex_t lock;
    struct door of[DOORS_MAX];
    size_t next;
};

struct doors *doors_new(const char *state_dir)
{
    struct doors *doors = xcalloc(1, sizeof *doors);

    if (getrandom(doors->key.b, sizeof doors->key.b, 0) != (ssize_t)sizeof doors->key.b)
        abort(); /* the kernel promises it for so few bytes; no key must not be a known key */
    doors->freezer = freezer_new(state_dir);
    (void)pthread_mutex_init(&doors->lock, NULL);
    return doors;
}

void doors_free(struct doors *doors)
{
    if (!doors)
        return;
    freezer_free(doors->freezer);
    (void)pthread_mutex_destroy(&doors->lock);
    explicit_bzero(&doors->key, sizeof doors->key);
    free(doors);
}

static bool is_same_door(const struct door *a, const struct door *b)
{
    return a->port == b->port && strcmp(a->sandbox, b->sandbox) == 0 &&
           strcmp(a->tenant, b->tenant) == 0 && strcmp(a->principal, b->principal) == 0 &&
           strcmp(a->made_by, b->made_by) == 0;
}

/* A freeze closes all of them at once: whoever comes is judged again, and refused. */
static bool is_open(struct doors *doors, const struct door *wanted)
{
    const struct actor actor = {wanted->tenant, wanted->principal, wanted->made_by};
    uint64_t now = clock_us();
    struct frozen entry;
    bool found = false;

    if (freezer_stops(doors->freezer, &actor, &entry))
        return false;
    (void)pthread_mutex_lock(&doors->lock);
    for (size_t i = 0; i < DOORS_MAX && !found; i++)
        found = doors->of[i].until_us > now && is_same_door(&doors->of[i], wanted);
    (void)pthread_mutex_unlock(&doors->lock);
    return found;
}

static void keep_open(struct doors *doors, const struct door *door)
{
    (void)pthread_mutex_lock(&doors->lock);
    doors->of[doors->next] = *door;
    doors->of[doors->next].until_us = clock_us() + DOOR_OPEN_US;
    doors->next = (doors->next + 1) % DOORS_MAX;
    (void)pthread_mutex_unlock(&doors->lock);
}

/* ---- grants ---- */

struct grant {
    char tenant[TENANT_BYTES];
    char principal[PRINCIPAL_BYTES];
    char token[TOKEN_ID_BYTES]; /* "": of a peer of the unix socket */
    char sandbox[ID_BYTES];
    uint64_t port;
    uint64_t expires_at;
};

/* base64 for paths: two other letters, and no end. */
static void to_path(char *text)
{
    for (; *text && *text != '='; text++)
        *text = (char)(*text == '+' ? '-' : *text == '/' ? '_' : *text);
    *text = '\0';
}

static bool from_path(struct str text, char out[GRANT_BYTES_MAX + 4], size_t *n)
{
    char copy[GRANT_BYTES_MAX + 4];

    if (text.n > GRANT_BYTES_MAX)
        return false;
    for (*n = 0; *n < text.n; ++*n) {
        char c = text.p[*n];

        if (c == '+' || c == '/' || c == '=')
            return false;
        copy[*n] = (char)(c == '-' ? '+' : c == '_' ? '/' : c);
    }
    while (*n % 4)
        copy[(*n)++] = '=';
    return base64_decode((struct str){copy, *n}, out, n);
}

static void seal(const struct doors *doors, struct str words, char out[HASH_TEXT_BYTES])
{
    struct hash mac;

    hmac_of(&doors->key, words, &mac);
    hash_text(&mac, out);
}

static int write_grant(struct call *call, const struct grant *grant, const char **out,
                       struct err *err)
{
    const char *words =
        arena_printf(&call->mem, GRANT_VERSION "\n%s\n%s\n%s\n%s\n%llu\n%llu", grant->tenant,
                     grant->principal, grant->token, grant->sandbox,
                     (unsigned long long)grant->port, (unsigned long long)grant->expires_at);
    AUTO_BUF struct buf text = BUF(GRANT_BYTES_MAX);
    char mac[HASH_TEXT_BYTES];

    seal(call->api->doors, str_of(words), mac);
    if (base64_encode(str_of(words), &text, err) < 0)
        return -1;
    to_path(text.p);
    *out = arena_printf(&call->mem, "%s.%s", text.p, strchr(mac, ':') + 1);
    return 0;
}

static bool take_word(struct str *rest, char *out, size_t size)
{
    struct str word = str_cut(rest, '\n');

    if (word.n >= size)
        return false;
    memcpy(out, word.p, word.n);
    out[word.n] = '\0';
    return true;
}

/* Only after the seal: what is read here is ours. */
static bool read_words(struct str rest, struct grant *out)
{
    return str_is(str_cut(&rest, '\n'), GRANT_VERSION) &&
           take_word(&rest, out->tenant, sizeof out->tenant) &&
           take_word(&rest, out->principal, sizeof out->principal) &&
           take_word(&rest, out->token, sizeof out->token) &&
           take_word(&rest, out->sandbox, sizeof out->sandbox) &&
           str_u64(str_cut(&rest, '\n'), &out->port) && str_u64(rest, &out->expires_at);
}

static bool read_grant(const struct doors *doors, struct str text, struct grant *out)
{
    char words[GRANT_BYTES_MAX + 4], mac[HASH_TEXT_BYTES];
    struct hash given, right;
    size_t n = 0;
    struct str body = str_cut(&text, '.');

    if (!from_path(body, words, &n) || text.n != 2 * (size_t)HASH_BYTES)
        return false;
    (void)snprintf(mac, sizeof mac, "sha256:" STR_FMT, STR_ARG(text));
    hmac_of(&doors->key, (struct str){words, n}, &right);
    return hash_from_text(str_of(mac), &given) && hash_is_same(&given, &right) &&
           read_words((struct str){words, n}, out);
}

int preview_identify(struct api *api, struct http_exchange *x, const struct http_head *head,
                     struct str grant, struct caller *out, int *status, struct err *err)
{
    struct http_peer peer = http_exchange_peer(x);
    const struct token *token = NULL;
    struct grant read = {0};

    *out = (struct caller){0};
    *status = 403;
    if (!peer.is_unix && check_host(api, head, err) < 0)
        return -1;
    *status = 404;
    if (!read_grant(api->doors, grant, &read) || read.expires_at <= (uint64_t)time(NULL) ||
        (*read.token && !(token = access_held(api->access, read.token))))
        return err_set(err, ERR_NOT_FOUND,
                       "this preview has ended, or never was; ask for another one");
    memcpy(out->tenant, read.tenant, sizeof out->tenant);
    memcpy(out->principal, read.principal, sizeof out->principal);
    if (token)
        memcpy(out->made_by, token->made_by, sizeof out->made_by);
    return 0;
}

/* ---- doors ---- */

static int read_port(const char *text, uint16_t *out, struct err *err)
{
    uint64_t port = 0;

    if (!text || !str_u64(str_of(text), &port) || port == 0 || port > UINT16_MAX)
        return err_set(err, ERR_INVALID, "a port is a number from 1 to 65535");
    *out = (uint16_t)port;
    return 0;
}

/* Judged and recorded; the closing receipt's id is in *receipt. */
static int grant_run(struct call *call, struct lent *lent, const struct door *door,
                     const char *verb, const char *other, const char **receipt, struct err *err)
{
    struct request request = call_request(call, ACTION_PORT);
    struct run run;
    int failed;

    request.sandbox = door->sandbox;
    request.port = door->port;
    request.verb = verb;
    request.other = other;
    run_init(&run);
    failed = govern_port_grant(lent->govern, &request, &run, err) < 0 ||
             call_check_run(call, &run, err) < 0;
    if (!failed)
        *receipt = arena_text(&call->mem, str_of(run.closing.id));
    run_done(&run);
    return failed ? -1 : 0;
}

static struct door door_of(const struct call *call, const char *sandbox, uint16_t port)
{
    struct door door = {.port = port};

    (void)snprintf(door.tenant, sizeof door.tenant, "%s", call->caller.tenant);
    (void)snprintf(door.principal, sizeof door.principal, "%s", call->caller.principal);
    (void)snprintf(door.made_by, sizeof door.made_by, "%s", call->caller.made_by);
    (void)snprintf(door.sandbox, sizeof door.sandbox, "%s", sandbox);
    return door;
}

static int go_through(struct call *call, struct lent *lent, const struct door *door,
                      const char *verb, int *socket, struct err *err)
{
    const char *receipt = NULL;

    if (!is_open(call->api->doors, door)) {
        if (grant_run(call, lent, door, verb, NULL, &receipt, err) < 0)
            return -1;
        keep_open(call->api->doors, door);
    }
    return execute_connect(govern_execute(lent->govern), door->sandbox, door->port, CONNECT_MS,
                           socket, err);
}

/* The governor is given back before bytes flow: they may do so for hours. */
static int pass_on(struct call *call, const char *sandbox, uint16_t port, const char *verb,
                   struct err *err)
{
    const char *id = NULL;
    struct door door;
    struct lent lent;
    int socket = -1;
    int failed;

    if (call_govern(call, &lent, err) < 0)
        return -1;
    failed = govern_find(govern_execute(lent.govern), &call->mem, sandbox, &id, err);
    if (!failed) {
        door = door_of(call, id, port);
        failed = go_through(call, &lent, &door, verb, &socket, err);
    }
    call_release(call, &lent);
    return failed ? -1 : proxy_relay(call, socket, port, err);
}

/* ---- handlers ---- */

static int reach(struct call *call, const void *body, const void *query, struct err *err)
{
    uint16_t port = 0;

    (void)body;
    (void)query;
    if (read_port(call->params[1], &port, err) < 0)
        return -1;
    return pass_on(call, call->params[0], port, "connect", err);
}

/* What a browser asks before it lets a page send more than a form could. */
static bool is_preflight(const struct passed *passed)
{
    if (passed->method != HTTP_OPTIONS)
        return false;
    for (size_t i = 0; i < passed->header_n; i++)
        if (http_name_is(passed->headers[i].name, "access-control-request-method"))
            return true;
    return false;
}

static int answer_preflight(struct call *call, struct err *err)
{
    call_header(call, "access-control-allow-origin", "*");
    call_header(call, "access-control-allow-methods", "GET, HEAD, POST, PUT, PATCH, DELETE");
    call_header(call, "access-control-allow-headers", "*");
    call_header(call, "access-control-max-age", "600");
    return call_answer_bytes(call, 204, "text/plain", STR_LIT(""), err);
}

static int view_it(struct call *call, const void *body, const void *query, struct err *err)
{
    struct grant grant = {0};

    (void)body;
    (void)query;
    if (!read_grant(call->api->doors, str_of(call->params[0]), &grant))
        return err_set(err, ERR_NOT_FOUND, "this preview has ended"); /* it was good a moment ago */
    if (is_preflight(call->passed))
        return answer_preflight(call, err);
    return pass_on(call, grant.sandbox, (uint16_t)grant.port, "preview-connect", err);
}

struct preview_body {
    uint64_t ttl_ms;
};

/* clang-format off */
static const struct field preview_fields[] = {
    {"ttl_ms", FIELD_COUNT, offsetof(struct preview_body, ttl_ms), .min = 1000, .max = TTL_MAX_MS,
     .help = "How long the address is good for; 15 minutes by default."},
    {0},
};
/* clang-format on */

static struct json *preview_json(struct call *call, const struct grant *grant, const char *words,
                                 const char *receipt)
{
    struct json *answer = json_object(&call->mem);
    const char *path = arena_printf(&call->mem, "/v1/previews/%s/", words);

    json_put_text(&call->mem, answer, "sandbox_id", grant->sandbox);
    json_put_int(&call->mem, answer, "port", (int64_t)grant->port);
    json_put_text(&call->mem, answer, "path", path);
    json_put_text(&call->mem, answer, "url",
                  *call->host ? arena_printf(&call->mem, "%s%s", call->host, path) : "");
    json_put_text(&call->mem, answer, "expires_at",
                  view_moment(&call->mem, (int64_t)grant->expires_at));
    json_put_text(&call->mem, answer, "receipt_id", receipt);
    return answer;
}

static int make_preview(struct call *call, struct lent *lent, const char *id, uint16_t port,
                        uint64_t ttl_ms, struct err *err)
{
    struct door door = door_of(call, id, port);
    struct grant grant = {.port = port, .expires_at = (uint64_t)time(NULL) + ttl_ms / 1000};
    const char *receipt = NULL, *words = NULL;

    memcpy(grant.tenant, call->caller.tenant, sizeof grant.tenant);
    memcpy(grant.principal, call->caller.principal, sizeof grant.principal);
    memcpy(grant.token, call->caller.token, sizeof grant.token);
    (void)snprintf(grant.sandbox, sizeof grant.sandbox, "%s", id);
    if (grant_run(call, lent, &door, "preview", view_moment(&call->mem, (int64_t)grant.expires_at),
                  &receipt, err) < 0 ||
        write_grant(call, &grant, &words, err) < 0)
        return -1;
    return call_answer(call, 201, preview_json(call, &grant, words, receipt), err);
}

static int preview(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct preview_body *wanted = body;
    const char *id = NULL;
    uint16_t port = 0;
    struct lent lent;
    int failed;

    (void)query;
    if (read_port(call->params[1], &port, err) < 0 || call_govern(call, &lent, err) < 0)
        return -1;
    failed = govern_find(govern_execute(lent.govern), &call->mem, call->params[0], &id, err) < 0 ||
             make_preview(call, &lent, id, port, wanted->ttl_ms ? wanted->ttl_ms : TTL_MS, err) < 0;
    call_release(call, &lent);
    return failed ? -1 : 0;
}

/* clang-format off */
const struct route routes_ports[] = {
    {.method = HTTP_POST,
     .path = "/v1/sandboxes/{id}/ports/{port}/preview",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .creates = true,
     .body = BODY_JSON,
     .fields = preview_fields,
     .body_size = sizeof(struct preview_body),
     .name = "previewPort",
     .summary = "An address that shows what listens at a port inside, for a while, without a token.",
     .answer = "The address, when it ends, and the receipt.",
     .handle = preview},
    {.method = HTTP_GET,
     .path = "/v1/sandboxes/{id}/ports/{port}/{path...}",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .passes = true,
     .body = BODY_STREAM,
     .name = "reachPort",
     .summary = "A request to a server inside, with any method, also to become a WebSocket.",
     .answer = "What it answers, without what could act under our name.",
     .handle = reach},
    {.method = HTTP_GET,
     .path = "/v1/previews/{grant}/{path...}",
     .kind = ROUTE_RUN,
     .passes = true,
     .preview = true,
     .body = BODY_STREAM,
     .name = "viewPreview",
     .summary = "The same for whoever has the address.",
     .answer = "What the server inside answers, in a page without an origin.",
     .handle = view_it},
    {0},
};
/* clang-format on */
