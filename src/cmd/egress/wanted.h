/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What one request wants of the vault, whichever HTTP it came in:
 *
 *     wanted_ask_bound    which slots are bound for such a request
 *     wanted_find         the placeholders; one in the wrong place, or a credential beside, is no
 *     …                   the way to the server is open, its address checked
 *     wanted_ask_value    for each use, one after the other
 *     wanted_fill         what is sent instead
 *
 * Every no is a struct wanted_no, for whoever says it. */

#include "cmd/egress/conn-private.h"
#include "lib/vault/vault-use.h"

struct wanted_no {
    int status;
    const char *reason; /* a code, a literal */
    const char *text;
};

struct wanted {
    struct ask ask;
    void *owner;
    bool is_message; /* of a WebSocket: its slots are those of a body, and bound as its own kind */
    struct vault_uses uses;
    struct vault_slot bound[VAULT_BOUND_MAX];
    size_t bound_n;
    struct secret *values[VAULT_USES_MAX]; /* those that came */
    size_t value_n;
    struct secret *memory; /* of what is filled in */
    struct vault_filled filled;
    bool is_filled;
};

/* `on` is called when an answer of the keeper is there. */
struct wanted *wanted_new(void *owner, void (*on)(struct ask *ask));
void wanted_free(struct wanted *wanted);
struct wanted *wanted_of(struct ask *ask);

/* A request without its server. */
struct wanted_what {
    struct str method;
    struct str path;
};
void wanted_ask_bound(struct wanted *wanted, const struct conn *conn,
                      const struct wanted_what *what);
/* A slot may be in the body, or a signature over it. */
bool wanted_needs_body(const struct wanted *wanted, const struct vault_request *request);
/* False: *no says why not. */
bool wanted_find(struct wanted *wanted, const struct conn *conn, const struct wanted_what *what,
                 const struct net_verdict *verdict, const struct vault_request *request,
                 struct wanted_no *no);
void wanted_ask_value(struct wanted *wanted, const struct conn *conn,
                      const struct wanted_what *what);
/* Takes the value that came. */
void wanted_take_value(struct wanted *wanted);
/* The values are remembered by the connection, for all that comes back over it. */
bool wanted_fill(struct wanted *wanted, struct conn *conn, const struct vault_request *request,
                 struct wanted_no *no);

/* Of a question that failed, and of what vault-use.h finds fault with. */
struct wanted_no wanted_failed(const struct ask *ask);
struct wanted_no wanted_fault(enum vault_fault fault);
/* One who asks for a secret where there is none to be had. */
struct wanted_no wanted_nothing(const struct secrets *secrets);

/* ---- what a connection has carried ---- */

void values_free(struct conn *conn);
/* One for an answer; NULL: no secret has gone out on this connection. -1: no memory. */
int values_scrub(const struct conn *conn, struct vault_scrub **out, struct err *err) MUST_CHECK;
/* Counts what was taken out since `flagged`, and says so the first time. */
void values_flag(struct conn *conn, const struct vault_scrub *scrub, uint64_t *flagged,
                 const struct wanted_what *what);
/* A header that would keep us from seeing a value in the answer; `identity` is asked for instead.
 */
bool values_drop(const struct conn *conn, struct str name);
