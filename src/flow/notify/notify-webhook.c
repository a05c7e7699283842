/* SPDX-License-Identifier: Apache-2.0 */

/* One message to a webhook, signed as Standard Webhooks 1.0 says. Its status is all of the answer
 * that is read; a redirect is a failure like any other. */

#include "flow/notify/notify-private.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "lib/http/http-upstream.h"

#define TRIES_MAX 3
#define TRY_MS 5000U
#define ALL_US (30U * 1000000U)
#define REST_MS 500U /* before the second try; then twice as long; and as much again by chance */

int notify_sign(const struct notify_key *key, const char *id, int64_t at, struct str body,
                char out[NOTIFY_SIGNATURE_BYTES], struct err *err)
{
    AUTO_BUF struct buf signed_text = BUF(NOTIFY_BODY_MAX + 256);
    AUTO_BUF struct buf coded = BUF(64);
    struct hash mac;

    if (buf_addf(&signed_text, err, "%s.%lld.", id, (long long)at) < 0 ||
        buf_add_str(&signed_text, body, err) < 0)
        return -1;
    hmac_with((struct str){(const char *)key->b, key->n}, buf_str(&signed_text), &mac);
    if (base64_encode((struct str){(const char *)mac.b, sizeof mac.b}, &coded, err) < 0)
        return -1;
    (void)snprintf(out, NOTIFY_SIGNATURE_BYTES, "v1,%s", buf_text(&coded));
    return 0;
}

struct message {
    struct http_origin origin;
    const char *target;
    char id[ID_BYTES + 4]; /* the same in every try, so that a second one can be told */
    const struct notify_key *key;
    struct str body;
};

static int ask(const struct message *message, struct http_upstream *client, struct err *err)
{
    char signature[NOTIFY_SIGNATURE_BYTES], at_text[32];
    int64_t at = (int64_t)(clock_wall_ns() / 1000000000U);

    (void)snprintf(at_text, sizeof at_text, "%lld", (long long)at);
    if (notify_sign(message->key, message->id, at, message->body, signature, err) < 0)
        return -1;
    const struct http_header headers[] = {
        {STR_LIT("content-type"),      STR_LIT("application/json")},
        {STR_LIT("user-agent"),        STR_LIT("brig")            },
        {STR_LIT("webhook-id"),        str_of(message->id)        },
        {STR_LIT("webhook-timestamp"), str_of(at_text)            },
        {STR_LIT("webhook-signature"), str_of(signature)          },
    };

    return http_upstream_ask(client, "POST", message->target, headers, COUNT(headers),
                             message->body, err);
}

/* *status is 0 when there was no answer. */
static int try_once(const struct message *message, struct ssl_ctx_st *tls, unsigned *status,
                    struct err *err)
{
    AUTO(http_upstream) struct http_upstream *client = NULL;
    const struct http_upstream_config config = {.origin = &message->origin,
                                                .tls = tls,
                                                .cancel_fd = -1,
                                                .connect_ms = TRY_MS,
                                                .head_ms = TRY_MS,
                                                .idle_ms = TRY_MS,
                                                .all_ms = TRY_MS};
    const struct http_head *head = NULL;

    *status = 0;
    if (http_upstream_open(&config, &client, err) < 0 || ask(message, client, err) < 0 ||
        http_upstream_head(client, UINT32_MAX, &head, err) < 0)
        return -1;
    *status = (unsigned)head->status;
    if (*status >= 200 && *status < 300)
        return 0;
    return err_set(err, ERR_UNAVAILABLE, "it answered with status %u", *status);
}

/* What will be the same next time. */
static bool is_final(unsigned status)
{
    return status >= 300 && status < 500 && status != 408 && status != 425 && status != 429;
}

static void rest(unsigned round)
{
    uint64_t ms = (uint64_t)REST_MS << round, chance = 0;
    struct timespec time;

    (void)!getrandom(&chance, sizeof chance, GRND_NONBLOCK); /* without it: the shortest */
    ms += chance % (ms + 1);
    time = (struct timespec){(time_t)(ms / 1000), (long)(ms % 1000) * 1000000L};
    (void)nanosleep(&time, NULL);
}

static int send_message(const struct message *message, struct ssl_ctx_st *tls, struct err *err)
{
    uint64_t ends_us = clock_us() + ALL_US;
    unsigned status = 0;

    for (unsigned round = 0;; round++) {
        if (try_once(message, tls, &status, err) == 0)
            return 0;
        if (round + 1 == TRIES_MAX || is_final(status) || clock_us() >= ends_us)
            return -1;
        rest(round);
    }
}

/* The path exactly as it was written. */
static const char *target_of(const char *url)
{
    const char *host = strstr(url, "://"), *path = host ? strchr(host + 3, '/') : NULL;

    return path ? path : "/";
}

int notify_post(const char *url, const struct notify_key *key, struct str body, struct err *err)
{
    struct message message = {.target = target_of(url), .key = key, .body = body};
    struct ssl_ctx_st *tls = NULL;
    char id[ID_BYTES];
    int failed;

    id_new(id);
    (void)snprintf(message.id, sizeof message.id, "msg_%s", id);
    if (http_origin_parse(url, &message.origin, err) < 0 ||
        (message.origin.is_tls && http_upstream_tls(&tls, err) < 0))
        return -1;
    failed = send_message(&message, tls, err);
    http_upstream_tls_free(tls);
    return failed;
}
