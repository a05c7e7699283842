/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to the files conn-*.c and tunnel.c: a connection and the steps it goes through.
 *
 *     first      what the client's first bytes are
 *     socks      greeting and request of SOCKS5
 *     names      questions over TCP
 *     head       the head of a request: judged, and made into the one that is sent
 *     held       its body, for rules that look into it
 *     bound      which slots of it are the vault's
 *     lookup     the host's addresses, outside
 *     dial       one that may be dialled
 *     reveal     secrets come, and are put into it
 *     exchange   the request goes, the answer comes
 *     messages   of a WebSocket, both ways (conn-ws.h)
 *     tunnel     bytes, both ways
 *     local      a request to policy.local: its body, a person's word, the answer
 *     last       our last words, then the end
 *
 * A step takes what is there, moves on or waits; it never blocks and never waits for time. */

#include "cmd/egress/conn.h"
#include "cmd/egress/side.h"
#include "lib/http/http.h"
#include "lib/vault/vault-use.h"

enum phase {
    PHASE_FIRST,
    PHASE_SOCKS_GREETING,
    PHASE_SOCKS_REQUEST,
    PHASE_NAMES,
    PHASE_HEAD,
    PHASE_HELD,
    PHASE_BOUND,
    PHASE_HELLO,
    PHASE_SHAKE_SERVER,
    PHASE_SHAKE_CLIENT,
    PHASE_H2,
    PHASE_LOOKUP,
    PHASE_DIAL,
    PHASE_REVEAL,
    PHASE_EXCHANGE,
    PHASE_MESSAGES,
    PHASE_TUNNEL,
    PHASE_LOCAL,
    PHASE_LAST,
};

enum step {
    STEP_WAIT,  /* for bytes, room, an address, a connection */
    STEP_AGAIN, /* something changed: go on with what the phase is now */
    STEP_CLOSE,
};

/* Who waits to hear that the way is open, or that it is not. */
enum herald {
    HERALD_NONE, /* the connection itself says it: open or reset */
    HERALD_CONNECT,
    HERALD_SOCKS,
};

struct wanted;
struct ws_relay;

/* An answer's body out of which secrets are taken. */
struct scrubbing {
    struct vault_scrub *scrub; /* NULL: there is nothing to take out */
    struct buf out;            /* looked through */
    size_t put;                /* of it, on the way to the client */
    bool ended;
    uint64_t flagged;
};

/* One request and its answer. */
struct exchange {
    char *raw; /* the head as it came; `head` is slices of it */
    struct http_head head;
    struct http_header headers[HTTP_HEADERS_MAX]; /* those that go on */
    size_t header_n;
    struct str target; /* path and query as they are judged and sent */
    struct str scheme;
    bool upgrades; /* it asks for it, and may */
    struct net_verdict verdict;

    struct http_scan scan; /* of either head */
    struct http_body body; /* of the request */
    struct buf held;       /* whole, when it was judged by it */
    bool is_held;
    bool is_for_slot;               /* held for the vault's sake, not the rule's */
    struct wanted *wanted;          /* NULL: there is no vault */
    struct vault_scan placeholders; /* in a body that is not held */
    struct buf head_out;            /* what is sent; kept until the first byte of the answer */
    size_t head_sent;
    bool body_sent;
    bool has_retried;
    uint64_t began_us;

    bool answered; /* the final head has come */
    struct http_head *answer;
    struct http_body answer_body;
    bool answer_chunked;  /* towards the client */
    uint64_t answer_left; /* of what the rule lets in */
    struct scrubbing scrubbing;
    bool client_stays;
    bool server_stays;

    /* To policy.local: what it is answered, and whose answer it waits for. */
    struct buf local_out;
    size_t local_put;
    char waits_for[PROPOSAL_ID_BYTES];
};

struct tunnel_way {
    struct side *from;
    struct side *to;
    int pipe[2]; /* -1: none yet */
    size_t in_pipe;
    uint64_t total;
    uint64_t left;   /* that may pass in this step, */
    uint64_t passed; /* and what did */
    bool too_much;   /* more came: it stays here */
    bool over;       /* the end was handed on */
};

struct tunnel {
    struct tunnel_way out; /* to the server */
    struct tunnel_way in;
    bool looked; /* at the client's first bytes */
};

struct conn {
    struct conn *next;
    struct conn **at;
    struct sandbox *sandbox;
    struct hub *hub;
    struct side client;
    struct side server;
    struct timer timer;
    uint64_t ends_ms; /* whatever happens */
    enum phase phase;
    bool driving;

    struct caller *caller; /* NULL: unknown */
    bool fixed;            /* where to is said once, for the whole connection */
    enum net_via via;
    char host[RESOLVER_NAME_BYTES];
    uint16_t port;
    struct net_verdict way; /* what connect answered */
    enum herald herald;
    bool secure;          /* the client speaks TLS inside */
    bool is_local;        /* with policy.local at its other end */
    bool counts_as_local; /* in the sandbox's number of those */

    struct lookup lookup;
    bool looked_up;
    struct net_addr found[ADDRESSES_MAX];
    size_t found_n;
    size_t found_at;
    struct net_addr dialled;
    bool has_dialled;
    bool reused; /* the server's side comes from the pool */
    uint64_t dial_ends_ms;

    struct sandbox *peer;  /* the one it leads into; NULL: none */
    const char *peer_rule; /* of that one, which let it in */
    struct conn *guest_next;
    struct conn **guest_at;

    struct exchange *exchange;
    struct tunnel *tunnel;
    struct ws_relay *ws; /* of a WebSocket that is looked into; the exchange stays with it */
    struct intercept *intercept; /* NULL: nothing secure is looked into */

    /* Secrets it has carried: struck out of whatever comes back. */
    struct secret *values[VAULT_SCRUB_MAX];
    size_t value_n;
    unsigned value_turn; /* grows with each */

    /* Of the exchange, or the tunnel; and how many of the server's bytes it has paid for. */
    struct net_purse purse;
    uint64_t paid_out;
    uint64_t paid_in;

    /* Counted already. */
    uint64_t counted_out;
    uint64_t counted_in;
};

/* ---- conn.c ---- */

void conn_drive(struct conn *conn);
void conn_wait(struct conn *conn, uint64_t ms); /* the next deadline */
struct net_knock conn_knock(const struct conn *conn);
struct str conn_binary(const struct conn *conn);
/* The kernel says that it is over in both directions, again and again: what it has sent may still
 * be there, and is read as there is room for it. */
void conn_hang(struct conn *conn, struct side *side);
/* Says these bytes, then ends. */
enum step conn_last(struct conn *conn);

/* ---- budgets (conn-budget.c) ---- */

/* One more request, or tunnel, by this verdict; then its bytes are paid from the purse. False: the
 * verdict says why not. */
bool conn_may_spend(struct conn *conn, const struct net_verdict *by, struct net_purse *purse,
                    struct net_verdict *out) MUST_CHECK;
/* Bytes that are about to go on. False: they must not, and the verdict says why. */
bool conn_pay(struct conn *conn, const struct net_purse *purse, uint64_t bytes_out,
              uint64_t bytes_in, struct net_verdict *out) MUST_CHECK;
/* The same for all that went to the server's side, and came from it, since the last time. */
bool conn_pay_server(struct conn *conn, struct net_verdict *out) MUST_CHECK;
void conn_pay_from_here(struct conn *conn);
/* What budgets leave the runs at both ends: handed to the server's side, which holds it. */
struct meters conn_meters(const struct conn *conn);
/* Whether a new connection is worth while. */
bool conn_has_left(const struct conn *conn);
enum step conn_refuse_spent(struct conn *conn);
/* The rules are others now, and `way` is what they say. */
void conn_change_rules(struct conn *conn);

/* ---- refusing (conn-refuse.c): counts, writes the event, answers as the client understands it
 * ---- */

/* By a rule. Uses the exchange's method and path when there is one. */
enum step conn_refuse(struct conn *conn, const struct net_verdict *verdict);
/* For what is no rule's business: a fault in the bytes, or a server that cannot be reached. */
enum step conn_fail(struct conn *conn, int status, const char *reason, const char *text);

/* Counts it, and writes the event, of something that is answered in another way. */
void conn_note(struct conn *conn, struct str method, const char *rule, const char *reason,
               bool is_allowed);

/* The JSON that says so; where and whom is the connection's, what it was for the caller's to say.
 */
struct denial {
    int status;
    const char *error;
    const char *reason;
    const char *text;
    const char *rule;
    struct str method, path; /* empty: a connection */
};
int denial_write(const struct conn *conn, const struct denial *denial, struct buf *out,
                 struct err *err) MUST_CHECK;

/* ---- steps ---- */

enum step step_first(struct conn *conn);
enum step step_socks_greeting(struct conn *conn);
enum step step_socks_request(struct conn *conn);
enum step step_names(struct conn *conn);
enum step step_head(struct conn *conn);
enum step step_held(struct conn *conn);
enum step step_lookup(struct conn *conn);
enum step step_dial(struct conn *conn);
enum step step_exchange(struct conn *conn);
enum step step_messages(struct conn *conn);
enum step step_tunnel(struct conn *conn);

/* ---- where to (conn-open.c) ---- */

/* Sets the target. False: the host cannot be one, which is refused. */
bool conn_aim(struct conn *conn, struct str host, uint16_t port, enum net_via via);
/* Asks for the connection; on yes the way is opened: from the pool, or looked up and dialled. */
enum step conn_open_fixed(struct conn *conn);
/* A server for the exchange that is ready to be sent. */
enum step conn_open_exchange(struct conn *conn);
/* The server's side is open. */
enum step conn_opened(struct conn *conn);

/* ---- other sandboxes (peer.c) ---- */

/* The host is one: found, asked, and then dialled; or refused. */
enum step peer_admit(struct conn *conn);
/* A socket of its namespace. WAIT: not yet; CLOSE: there is none to be had. */
enum step peer_socket(struct conn *conn, int *out);
/* One has its socket: the next may come. */
void peer_next(struct sandbox *sandbox);
/* What went there has been counted. */
void peer_leave(struct conn *conn);

/* ---- requests ---- */

void exchange_free(struct exchange *exchange);
/* As the rules are asked about it; slices of the exchange. */
struct net_request exchange_request(const struct exchange *exchange);
/* Whether it asks for a WebSocket whose messages are looked at. */
bool exchange_is_socket(const struct exchange *exchange);
/* Whether a header stays here: it is one of the names (in lower case), or Connection names it. */
bool head_drops(const struct http_head *head, struct str name, const char *const *names, size_t n);
/* One that asks a server to read another request than the one that is judged. */
bool head_overrides(struct str name);
/* The server as Host says it. */
#define AUTHORITY_BYTES (RESOLVER_NAME_BYTES + 16)
void conn_authority(const struct conn *conn, char out[AUTHORITY_BYTES]);
/* Writes the head that goes to the server. */
int exchange_compose(struct conn *conn, struct err *err) MUST_CHECK;

/* The body that was held, or with its secret. */
struct str exchange_body(const struct exchange *exchange);
/* Collects the body, to be judged or to be filled in. */
enum step exchange_hold(struct conn *conn);
/* All that could refuse it has looked. */
enum step exchange_send(struct conn *conn);
/* One piece, in the framing of the side it goes to; there is room for it. */
void exchange_put_piece(struct bytes *out, struct str piece, bool chunked);

/* ---- secrets (conn-secret.c, conn-scrub.c) ---- */

/* A request that the rules allow: then a server is found, or it is refused. */
enum step secret_look(struct conn *conn);
/* Its body is there, and was wanted for a slot. */
enum step secret_held(struct conn *conn);
enum step step_bound(struct conn *conn);
/* The server's side is open. */
enum step secret_put(struct conn *conn);
enum step step_reveal(struct conn *conn);

/* Strikes values out of the answer's head. False: it cannot be handed on; *fault may say why. */
bool scrub_head(struct conn *conn, enum vault_fault *fault);
/* Moves the answer's body, looked through. */
enum http_body_event scrub_body(struct conn *conn, bool *moved);
/* The server ended a body that ends so. HTTP_BODY_MORE: there is no room for the rest yet. */
enum http_body_event scrub_close(struct conn *conn);
void scrubbing_free(struct scrubbing *scrubbing);

/* ---- WebSockets (conn-ws.c) ---- */

/* The server said yes. */
enum step ws_begin(struct conn *conn);
void ws_free(struct conn *conn);
enum step ws_give_up(struct conn *conn);
/* The rules are others now. The connection may be gone afterwards. */
void ws_judge_again(struct conn *conn);

/* ---- policy.local (conn-local.c) ---- */

/* Whether a request for the host and port it is aimed at is for us. */
bool local_is_meant(const struct conn *conn);
/* A request whose head is there. */
enum step local_begin(struct conn *conn);
enum step step_local(struct conn *conn);
enum step local_give_up(struct conn *conn);
/* It is answered, or gone. Twice is once. */
void local_done(struct conn *conn);

/* ---- tunnels ---- */

enum step tunnel_begin(struct conn *conn);
void tunnel_free(struct tunnel *tunnel);
/* Whether bytes of this side go through a pipe, and must not be read into memory. */
bool tunnel_pipes(const struct conn *conn, const struct side *side);
/* Whether its pipe is empty and more may come. */
bool tunnel_has_room(const struct conn *conn, const struct side *side);
int tunnel_arm(struct conn *conn, struct err *err) MUST_CHECK;
