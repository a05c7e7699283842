/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/wanted.h"

#include <stddef.h>

#include "lib/base/memory.h"

#define QUESTION_MEMORY (256 * KIB) /* a head is smaller */

struct wanted *wanted_new(void *owner, void (*on)(struct ask *ask))
{
    struct wanted *wanted = xcalloc(1, sizeof *wanted);

    wanted->owner = owner;
    wanted->ask.on = on;
    return wanted;
}

struct wanted *wanted_of(struct ask *ask)
{
    return (struct wanted *)((char *)ask - offsetof(struct wanted, ask));
}

void wanted_free(struct wanted *wanted)
{
    if (!wanted)
        return;
    ask_cancel(&wanted->ask);
    while (wanted->value_n)
        secret_free(wanted->values[--wanted->value_n]);
    secret_free(wanted->memory);
    free(wanted);
}

/* ---- why not ---- */

struct wanted_no wanted_failed(const struct ask *ask)
{
    if (ask->err.code == ERR_FORBIDDEN)
        return (struct wanted_no){403, "VAULT_NOT_BOUND", ask->err.text};
    if (ask->err.code == ERR_LIMIT)
        return (struct wanted_no){429, "VAULT_LIMIT", ask->err.text};
    return (struct wanted_no){503, "VAULT_UNAVAILABLE", ask->err.text};
}

struct wanted_no wanted_fault(enum vault_fault fault)
{
    return (struct wanted_no){fault == VAULT_FAULT_ENCODED_ANSWER ? 502 : 403,
                              vault_fault_code(fault), vault_fault_text(fault)};
}

struct wanted_no wanted_nothing(const struct secrets *secrets)
{
    if (secrets->absence == EGRESS_VAULT_LOCKED)
        return (struct wanted_no){
            403, "VAULT_LOCKED",
            "the vault needs a passphrase, and nobody types one for a sandbox: `brig vault rekey "
            "--master file` or `--master keyring` opens it to them"};
    if (secrets->absence == EGRESS_VAULT_BROKEN)
        return (struct wanted_no){503, "VAULT_UNAVAILABLE",
                                  "the vault cannot be opened; `brig vault list` says why"};
    if (secrets->was_open)
        return (struct wanted_no){503, "VAULT_UNAVAILABLE",
                                  "the keeper of the vault has ended; the next sandbox or command "
                                  "brings another one"};
    return (struct wanted_no){403, "VAULT_NONE",
                              "a placeholder, and there is no vault: `brig vault set` makes one"};
}

/* ---- asking ---- */

/* About no secret in particular. */
static struct vault_question question_of(struct arena *mem, const struct conn *conn,
                                         const struct wanted_what *what)
{
    const struct egress_who_text *who = &conn->sandbox->who;

    return (struct vault_question){.tenant = who->tenant,
                                   .subject = who->subject,
                                   .pack = who->pack,
                                   .host = conn->host,
                                   .port = conn->port,
                                   .scheme = conn->secure ? "https" : "http",
                                   .method = arena_text(mem, what->method),
                                   .path = arena_text(mem, what->path)};
}

static void put_use(const struct wanted *wanted, const struct vault_use *use,
                    struct vault_question *question)
{
    question->slot = use->slot;
    if (wanted->is_message)
        question->slot.kind = VAULT_WEBSOCKET;
    question->name = use->name;
}

static void ask(struct wanted *wanted, const struct conn *conn, const struct wanted_what *what,
                const struct vault_use *use)
{
    AUTO_ARENA struct arena mem = ARENA(QUESTION_MEMORY);
    struct vault_question question = question_of(&mem, conn, what);

    if (use)
        put_use(wanted, use, &question);
    ask_begin(&conn->hub->secrets, &wanted->ask, use ? KEEPER_VAULT_REVEAL : KEEPER_VAULT_BOUND,
              conn->sandbox->id, &question);
}

void wanted_ask_bound(struct wanted *wanted, const struct conn *conn,
                      const struct wanted_what *what)
{
    ask(wanted, conn, what, NULL);
}

void wanted_ask_value(struct wanted *wanted, const struct conn *conn,
                      const struct wanted_what *what)
{
    ask(wanted, conn, what, &wanted->uses.v[wanted->value_n]);
}

void wanted_take_value(struct wanted *wanted)
{
    wanted->values[wanted->value_n++] = TAKE(wanted->ask.value);
}

bool wanted_needs_body(const struct wanted *wanted, const struct vault_request *request)
{
    for (size_t i = 0; i < wanted->bound_n; i++)
        if (wanted->bound[i].kind == VAULT_BODY || (wanted->bound[i].kind == VAULT_SIGV4 &&
                                                    vault_payload(request) == VAULT_PAYLOAD_UNSAID))
            return true;
    return false;
}

/* ---- finding and filling ---- */

static bool is_bound(const struct wanted *wanted, const struct vault_slot *slot)
{
    for (size_t i = 0; i < wanted->bound_n; i++)
        if (vault_slot_is_same(&wanted->bound[i], slot))
            return true;
    return wanted->bound_n == VAULT_BOUND_MAX; /* there may be more: the keeper will say */
}

/* Before anything is asked for, so that none is handed out for a request that will not go. */
static bool are_bound(const struct wanted *wanted)
{
    for (size_t i = 0; i < wanted->uses.n; i++)
        if (!is_bound(wanted, &wanted->uses.v[i].slot))
            return false;
    return true;
}

/* By the policy's own list; what it does not let go the keeper is not asked for. */
static bool are_listed(const struct wanted *wanted, const struct conn *conn,
                       const struct wanted_what *what)
{
    AUTO_ARENA struct arena mem = ARENA(QUESTION_MEMORY);
    struct vault_question question;

    if (wanted->uses.n == 0)
        return true;
    question = question_of(&mem, conn, what);
    for (size_t i = 0; i < wanted->uses.n; i++) {
        put_use(wanted, &wanted->uses.v[i], &question);
        if (!net_rules_secret(conn->sandbox->rules, &question))
            return false;
    }
    return true;
}

/* What credential_signing asks for. */
static bool is_signed(const struct net_verdict *verdict, const struct vault_request *request,
                      const struct vault_uses *uses)
{
    enum vault_payload payload = vault_payload(request);

    if (!verdict->signing)
        return true;
    if (verdict->signing == NET_SIGNING_BODY
            ? payload == VAULT_PAYLOAD_UNSIGNED
            : verdict->signing == NET_SIGNING_NO_BODY && payload != VAULT_PAYLOAD_UNSIGNED)
        return false;
    for (size_t i = 0; i < uses->n; i++)
        if (uses->v[i].slot.kind == VAULT_SIGV4 &&
            str_starts(str_of(uses->v[i].slot.name), verdict->signing_scope))
            return true;
    return false;
}

bool wanted_find(struct wanted *wanted, const struct conn *conn, const struct wanted_what *what,
                 const struct net_verdict *verdict, const struct vault_request *request,
                 struct wanted_no *no)
{
    static const struct wanted_no not_signed = {
        403, "VAULT_SIGNING_REQUIRED",
        "the rule wants requests signed with a key of the vault: sign with its placeholder as the "
        "id of the key, for the service, region and payload that the rule names"};
    static const struct wanted_no unbound = {
        403, "VAULT_NOT_BOUND",
        "no secret is bound to this host, port, method, path and slot: `brig vault bind`"};
    static const struct wanted_no unlisted = {
        403, "VAULT_NOT_LISTED",
        "the policy lists which secrets may go where, and this one not for this host, port, "
        "method, path and slot: its section \"secrets\" has to"};
    struct vault_uses uses = {0};
    enum vault_fault fault = vault_find(request, &uses);

    if (fault) {
        *no = wanted_fault(fault);
        return false;
    }
    if (!is_signed(verdict, request, &uses)) {
        *no = not_signed;
        return false;
    }
    if (!wanted) {
        *no = wanted_nothing(&conn->hub->secrets);
        return uses.n == 0;
    }
    fault = vault_find_own(request, &uses, wanted->bound, wanted->bound_n);
    wanted->uses = uses;
    if (!fault && are_bound(wanted) && are_listed(wanted, conn, what))
        return true;
    *no = fault ? wanted_fault(fault) : are_bound(wanted) ? unlisted : unbound;
    return false;
}

static const struct wanted_no no_memory = {503, "VAULT_UNAVAILABLE",
                                           "no locked memory for a secret is left"};

/* What could not be remembered could not be struck out of the answer. */
static bool remember(struct conn *conn, struct str value, struct wanted_no *no)
{
    struct err err;

    for (size_t i = 0; i < conn->value_n; i++)
        if (secret_is_same(secret_reveal(conn->values[i]), value))
            return true;
    *no = (struct wanted_no){429, "VAULT_LIMIT",
                             "this connection has carried eight secrets; ask on another one"};
    if (conn->value_n == VAULT_SCRUB_MAX)
        return false;
    *no = no_memory;
    if (secret_new(value, &conn->values[conn->value_n], &err) < 0)
        return false;
    conn->value_n++;
    conn->value_turn++;
    return true;
}

static bool remember_use(struct conn *conn, const struct vault_use *use, struct str value,
                         struct wanted_no *no)
{
    struct str parts[VAULT_SECRET_PARTS];
    size_t n = vault_use_secrets(use, value, parts);

    for (size_t i = 0; i < n; i++)
        if (!remember(conn, parts[i], no))
            return false;
    return true;
}

bool wanted_fill(struct wanted *wanted, struct conn *conn, const struct vault_request *request,
                 struct wanted_no *no)
{
    struct str values[VAULT_USES_MAX] = {0};
    char host[AUTHORITY_BYTES];
    struct vault_request sent;
    enum vault_fault fault;
    struct err err;
    char *room;
    size_t n;

    for (size_t i = 0; i < wanted->value_n; i++) {
        values[i] = secret_reveal(wanted->values[i]);
        if (!remember_use(conn, &wanted->uses.v[i], values[i], no))
            return false;
    }
    n = vault_fill_bytes(request, &wanted->uses, values);
    if (secret_blank(n, &wanted->memory, &room, &err) < 0) {
        *no = no_memory;
        return false;
    }
    conn_authority(conn, host);
    sent = *request;
    sent.host = str_of(host);
    fault = vault_fill(&sent, &wanted->uses, values, room, n, &wanted->filled);
    if (fault) {
        *no = wanted_fault(fault);
        return false;
    }
    wanted->is_filled = true;
    sandbox_count(conn->sandbox, conn->way.entry, &(struct counts){.secrets = wanted->value_n});
    return true;
}

/* ---- what a connection has carried ---- */

void values_free(struct conn *conn)
{
    while (conn->value_n)
        secret_free(conn->values[--conn->value_n]);
}

int values_scrub(const struct conn *conn, struct vault_scrub **out, struct err *err)
{
    struct str values[VAULT_SCRUB_MAX];

    *out = NULL;
    if (conn->value_n == 0)
        return 0;
    for (size_t i = 0; i < conn->value_n; i++)
        values[i] = secret_reveal(conn->values[i]);
    return vault_scrub_new(values, conn->value_n, out, err);
}

void values_flag(struct conn *conn, const struct vault_scrub *scrub, uint64_t *flagged,
                 const struct wanted_what *what)
{
    uint64_t hits = vault_scrub_hits(scrub);
    struct event event = {.class = EVENT_REQUEST,
                          .allowed = true,
                          .host = str_of(conn->host),
                          .port = conn->port,
                          .method = what->method,
                          .path = what->path,
                          .rule = conn->way.entry,
                          .reason = "VAULT_SECRET_REFLECTED",
                          .binary = conn_binary(conn)};

    if (hits == *flagged)
        return;
    sandbox_count(conn->sandbox, conn->way.entry, &(struct counts){.scrubbed = hits - *flagged});
    if (*flagged == 0)
        sandbox_event(conn->sandbox, &event);
    *flagged = hits;
}

/* Compressed, or in pieces that the client chooses, a value would not be seen. */
bool values_drop(const struct conn *conn, struct str name)
{
    return conn->value_n && (http_name_is(name, "accept-encoding") || http_name_is(name, "range") ||
                             http_name_is(name, "if-range"));
}
