/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to conn-h2.c and conn-h2-secret.c: a stream's request, from its head to its answer. */

#include "cmd/egress/wanted.h"
#include "lib/h2/h2.h"

/* What is remembered of a request until its answer is judged and counted. */
struct asked {
    struct conn *conn;
    struct h2_stream *stream;
    char *text; /* method, path and query, behind each other */
    struct net_request request;
    struct net_verdict verdict;
    uint64_t began_us;
    uint64_t response_max;
    struct net_purse purse;

    bool has_body;
    bool is_held;          /* its body is there, whole */
    struct wanted *wanted; /* NULL: there is no vault */
    struct timer timer;    /* for the keeper's answers */
    struct vault_scan placeholders;
    bool is_coded; /* its answer is compressed, and cannot be looked through */
    struct vault_scrub *scrub;
    unsigned turn; /* conn->value_turn when it was made */
    uint64_t flagged;
};

/* Into every account, and the events. */
void h2_count_refusal(struct conn *conn, const struct asked *asked, int status, const char *reason,
                      const char *rule);
/* The headers that are judged; the array is overwritten by the next call. */
const struct http_header *h2_headers(const struct http_head *head, size_t *n);
void h2_refuse(struct conn *conn, const struct asked *asked, const struct wanted_no *no,
               struct h2_word *out);
/* The request goes on, with these headers. */
struct h2_sent {
    const struct http_header *headers;
    size_t header_n;
    struct str path; /* p NULL: as it came */
    struct str body; /* the same */
};
void h2_pass(struct conn *conn, struct asked *asked, const struct h2_sent *sent,
             struct h2_word *out);

/* ---- conn-h2-secret.c ---- */

/* The rules allow it. The word may be to wait. */
void h2_secret_look(struct asked *asked, const struct http_head *head, struct str body,
                    struct h2_word *out);
/* The body that a slot needs is there. True: it was for that. */
bool h2_secret_held(struct asked *asked, const struct http_head *head, struct str body,
                    struct h2_word *out);
/* False: a placeholder in a body that is not held. */
bool h2_secret_scan(struct asked *asked, struct str piece);
/* False: it cannot be handed on. */
bool h2_scrub_head(struct asked *asked, const struct http_head *head);
bool h2_scrub_body(struct asked *asked, struct str piece, bool is_last, struct buf *out);
void h2_secret_done(struct asked *asked);
