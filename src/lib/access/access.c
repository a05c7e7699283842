/* SPDX-License-Identifier: Apache-2.0 */

/* All tokens are held in memory, sorted by id, and read again when another connection has
 * changed the file: a check costs no transaction. */

#include "lib/access/access.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "lib/crypto/crypto.h"
#include "lib/store/store.h"

#define APPLICATION_ID 0x42726961 /* "Bria" */
#define SECRET_BYTES 32
#define MAKERS_BYTES_MAX (64 * KIB)
#define PREFIX "brig_"

static const char *const migrations[] = {
    "CREATE TABLE tokens ("
    " id TEXT PRIMARY KEY,"
    " hash BLOB NOT NULL,"
    " tenant TEXT NOT NULL,"
    " principal TEXT NOT NULL,"
    " scopes INTEGER NOT NULL,"
    " per_second INTEGER NOT NULL,"
    " at_once INTEGER NOT NULL,"
    " created_at INTEGER NOT NULL,"
    " expires_at INTEGER NOT NULL,"
    " used_at INTEGER NOT NULL,"
    " revoked_at INTEGER NOT NULL"
    ") STRICT",

    "ALTER TABLE tokens ADD COLUMN made_by TEXT NOT NULL DEFAULT ''",
};

static const struct store_schema schema = {
    .what = "list of tokens",
    .application_id = APPLICATION_ID,
    .migrations = migrations,
    .version = COUNT(migrations),
};

struct entry {
    struct token token;
    struct hash hash;
    bool is_used; /* since it was last written down */
};

struct access {
    struct store *store;
    struct statement version; /* of the file, as other connections change it */
    int64_t seen;             /* the version in memory; -1: none */
    struct entry *entries;    /* sorted by id */
    size_t n;
};

static const struct {
    const char *name;
    const char *what;
} scope_faces[] = {
#define X(id, name, what) {name, what},
    SCOPES(X)
#undef X
};

const char *scope_name(enum scope_bit bit)
{
    return scope_faces[bit].name;
}

const char *scope_what(enum scope_bit bit)
{
    return scope_faces[bit].what;
}

const char *scopes_text(struct arena *mem, unsigned scopes)
{
    const char *text = "";

    for (unsigned i = 0; i < SCOPE_COUNT; i++)
        if (scopes & 1U << i)
            text = arena_printf(mem, "%s%s%s", text, *text ? "," : "", scope_faces[i].name);
    return text;
}

int scope_parse(struct str name, unsigned *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);

    for (unsigned i = 0; i < SCOPE_COUNT; i++)
        if (str_is(name, scope_faces[i].name)) {
            *out = 1U << i;
            return 0;
        }
    return err_set(err, ERR_INVALID, "there is no scope of that name; there are %s",
                   scopes_text(&mem, (1U << SCOPE_COUNT) - 1));
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_tenant_name(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!is_plain(name.p[i]) && (name.p[i] != '-' || i == 0))
            return false;
    return name.n > 0 && name.n < TENANT_BYTES;
}

int access_open(const char *state_dir, struct access **out, struct err *err)
{
    AUTO(access) struct access *access = xcalloc(1, sizeof *access);
    AUTO_FREE char *path = NULL;

    access->seen = -1;
    if (asprintf(&path, "%s/access.db", state_dir) < 0) {
        path = NULL;
        return err_os(err, "naming the list of tokens");
    }
    if (store_open(path, &schema, &access->store, err) < 0 ||
        statement_prepare(access->store, "PRAGMA data_version", &access->version, err) < 0)
        return -1;
    *out = TAKE(access);
    return 0;
}

void access_free(struct access *access)
{
    struct err ignored; /* when a token was last used is worth no failure */

    if (!access)
        return;
    if (access->store && access_settle(access, &ignored) < 0)
        (void)ignored;
    statement_done(&access->version);
    store_free(access->store);
    free(access->entries);
    free(access);
}

/* ---- reading ---- */

#define COLUMNS                                                                                    \
    "id, hash, tenant, principal, scopes, per_second, at_once, created_at, expires_at, used_at, "  \
    "revoked_at, made_by"

static bool copy_text(struct str from, char *to, size_t size)
{
    if (from.n >= size)
        return false;
    memcpy(to, from.p, from.n);
    to[from.n] = '\0';
    return true;
}

static int read_entry(const struct statement *st, struct entry *out, struct err *err)
{
    struct token *token = &out->token;
    struct str hash = statement_bytes(st, 1);

    *out = (struct entry){0};
    if (hash.n != sizeof out->hash.b ||
        !copy_text(statement_bytes(st, 0), token->id, sizeof token->id) ||
        !copy_text(statement_bytes(st, 2), token->tenant, sizeof token->tenant) ||
        !copy_text(statement_bytes(st, 3), token->principal, sizeof token->principal) ||
        !copy_text(statement_bytes(st, 11), token->made_by, sizeof token->made_by))
        return err_set(err, ERR_INTEGRITY, "the list of tokens holds something else");
    memcpy(out->hash.b, hash.p, hash.n);
    token->scopes = (unsigned)statement_int(st, 4);
    token->per_second = (unsigned)statement_int(st, 5);
    token->at_once = (unsigned)statement_int(st, 6);
    token->created_at = statement_int(st, 7);
    token->expires_at = statement_int(st, 8);
    token->used_at = statement_int(st, 9);
    token->revoked_at = statement_int(st, 10);
    return 0;
}

static int file_version(struct access *access, int64_t *out, struct err *err)
{
    int got = statement_step(&access->version, err);

    if (got < 0)
        return -1;
    *out = got ? statement_int(&access->version, 0) : 0;
    statement_reset(&access->version);
    return 0;
}

static int load(struct access *access, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    struct entry *entries = NULL;
    size_t n = 0, room = 0;
    int got;

    if (statement_prepare(access->store, "SELECT " COLUMNS " FROM tokens ORDER BY id", &st, err) <
        0)
        return -1;
    while ((got = statement_step(&st, err)) == 1) {
        if (n == room) {
            room = room ? room * 2 : 16;
            entries = xrealloc(entries, room * sizeof *entries);
        }
        if (read_entry(&st, &entries[n++], err) < 0) {
            got = -1;
            break;
        }
    }
    if (got < 0) {
        free(entries);
        return -1;
    }
    free(access->entries);
    access->entries = entries;
    access->n = n;
    return 0;
}

/* What is in memory is what is in the file, but for uses that are not written down yet. */
static int refresh(struct access *access, struct err *err)
{
    struct err unsettled;
    int64_t version = 0;

    if (file_version(access, &version, err) < 0)
        return -1;
    if (version == access->seen)
        return 0;
    if (access_settle(access, &unsettled) < 0)
        unsettled.code = ERR_LIMIT; /* a full disk locks nobody out: the uses are lost */
    if (load(access, err) < 0)
        return -1;
    access->seen = version;
    return 0;
}

static struct entry *find(struct access *access, struct str id)
{
    size_t low = 0, high = access->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_cmp(str_of(access->entries[middle].token.id), id);

        if (order == 0)
            return &access->entries[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool is_same(const struct hash *a, const struct hash *b)
{
    unsigned char differs = 0;

    for (size_t i = 0; i < sizeof a->b; i++)
        differs |= (unsigned char)(a->b[i] ^ b->b[i]);
    return differs == 0;
}

static bool holds_now(const struct token *token, int64_t now)
{
    return !token->revoked_at && (!token->expires_at || now < token->expires_at);
}

const struct token *access_held(struct access *access, const char *id)
{
    const struct entry *entry;
    struct err ignored; /* a list that cannot be read lets nobody in */

    if (refresh(access, &ignored) < 0)
        return NULL;
    entry = find(access, str_of(id));
    return entry && holds_now(&entry->token, (int64_t)time(NULL)) ? &entry->token : NULL;
}

const struct token *access_check(struct access *access, struct str text)
{
    struct str rest = text;
    struct entry *entry;
    struct hash hash;
    struct err ignored; /* a list that cannot be read lets nobody in */
    int64_t now = (int64_t)time(NULL);

    if (text.n >= TOKEN_TEXT_BYTES || !str_starts(text, PREFIX) || refresh(access, &ignored) < 0)
        return NULL;
    rest.p += strlen(PREFIX);
    rest.n -= strlen(PREFIX);
    entry = find(access, str_cut(&rest, '_'));
    hash_of(text, &hash);
    if (!entry || !is_same(&entry->hash, &hash) || !holds_now(&entry->token, now))
        return NULL;
    if (entry->token.used_at != now) {
        entry->token.used_at = now;
        entry->is_used = true;
    }
    return &entry->token;
}

int access_each(struct access *access, const char *tenant,
                int (*on_token)(void *context, const struct token *token, struct err *err),
                void *context, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int got;

    if (access_settle(access, err) < 0 ||
        statement_prepare(access->store,
                          "SELECT " COLUMNS " FROM tokens WHERE ?1 = '' OR tenant = ?1 "
                          "ORDER BY created_at, id",
                          &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(tenant ? tenant : ""));
    while ((got = statement_step(&st, err)) == 1) {
        struct entry entry;

        if (read_entry(&st, &entry, err) < 0 || on_token(context, &entry.token, err) < 0)
            return -1;
    }
    return got;
}

int access_makers(struct access *access, struct arena *mem, const char *principal, const char **out,
                  struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    AUTO_BUF struct buf names = BUF(MAKERS_BYTES_MAX);
    int got;

    if (statement_prepare(access->store,
                          "WITH RECURSIVE makers (name) AS ("
                          " SELECT made_by FROM tokens WHERE principal = ?1 AND made_by <> ''"
                          " UNION SELECT t.made_by FROM tokens AS t JOIN makers"
                          "  ON t.principal = makers.name WHERE t.made_by <> '')"
                          " SELECT name FROM makers",
                          &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(principal));
    while ((got = statement_step(&st, err)) == 1)
        if ((names.n && buf_add_byte(&names, ' ', err) < 0) ||
            buf_add_str(&names, statement_bytes(&st, 0), err) < 0)
            return err_in(err, "who has made the tokens of %.64s", principal);
    *out = arena_text(mem, buf_str(&names));
    return got;
}

/* ---- writing ---- */

static int check_ask(const struct token *ask, struct err *err)
{
    if (!is_tenant_name(str_of(ask->tenant)))
        return err_set(err, ERR_INVALID,
                       "a tenant is at most %d of a-z, 0-9 and -, and does not begin with -",
                       TENANT_BYTES - 1);
    if (!ask->scopes || ask->scopes >= 1U << SCOPE_COUNT)
        return err_set(err, ERR_INVALID, "a token without a scope may do nothing: name one");
    for (const char *p = ask->principal; *p; p++)
        if (*p <= ' ' || *p > '~' || *p == '"' || *p == '\\')
            return err_set(err, ERR_INVALID, "a principal is written in letters, digits and signs");
    if (strncmp(ask->principal, "custodian:", 10) == 0)
        return err_set(err, ERR_INVALID,
                       "custodians prove who they are by signing, not with a token");
    if (strncmp(ask->principal, "uid:", 4) == 0)
        return err_set(err, ERR_INVALID,
                       "users of this machine prove who they are by its socket, not with a token");
    return 0;
}

static void new_id(char out[TOKEN_ID_BYTES])
{
    char name[ID_BYTES];

    id_new(name);
    memcpy(out, name, TOKEN_ID_BYTES - 1);
    out[TOKEN_ID_BYTES - 1] = '\0';
}

static int new_text(const char *id, char out[TOKEN_TEXT_BYTES], struct err *err)
{
    unsigned char secret[SECRET_BYTES];
    char hex[2 * SECRET_BYTES + 1];

    if (getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret)
        return err_os(err, "drawing random bytes");
    hex_encode(secret, sizeof secret, hex);
    (void)snprintf(out, TOKEN_TEXT_BYTES, PREFIX "%s_%s", id, hex);
    explicit_bzero(secret, sizeof secret);
    explicit_bzero(hex, sizeof hex);
    return 0;
}

/* Counts inside the transaction that adds one, so that it stays a ceiling. */
static int check_room(struct access *access, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(access->store, "SELECT count(*) FROM tokens", &st, err) < 0)
        return -1;
    if (statement_step(&st, err) < 0)
        return -1;
    if (statement_int(&st, 0) >= TOKENS_MAX)
        return err_set(err, ERR_LIMIT, "there are %d tokens already, and no more are kept",
                       TOKENS_MAX);
    return 0;
}

static int insert(struct access *access, const struct token *token, const struct hash *hash,
                  struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    AUTO_TRANSACTION struct transaction t = {0};

    if (transaction_begin(access->store, &t, err) < 0 || check_room(access, err) < 0 ||
        statement_prepare(access->store,
                          "INSERT INTO tokens (" COLUMNS
                          ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, 0, ?10)",
                          &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(token->id));
    statement_bind_blob(&st, 2, (struct str){(const char *)hash->b, sizeof hash->b});
    statement_bind_text(&st, 3, str_of(token->tenant));
    statement_bind_text(&st, 4, str_of(token->principal));
    statement_bind_int(&st, 5, token->scopes);
    statement_bind_int(&st, 6, token->per_second);
    statement_bind_int(&st, 7, token->at_once);
    statement_bind_int(&st, 8, token->created_at);
    statement_bind_int(&st, 9, token->expires_at);
    statement_bind_text(&st, 10, str_of(token->made_by));
    if (statement_step(&st, err) < 0)
        return -1;
    return transaction_commit(&t, err);
}

int access_issue(struct access *access, const struct token *ask, struct token *out,
                 char text[TOKEN_TEXT_BYTES], struct err *err)
{
    struct hash hash;

    *out = *ask;
    if (check_ask(ask, err) < 0)
        return -1;
    new_id(out->id);
    if (!*out->principal)
        (void)snprintf(out->principal, sizeof out->principal, "token:%s", out->id);
    out->created_at = (int64_t)time(NULL);
    out->used_at = out->revoked_at = 0;
    if (new_text(out->id, text, err) < 0)
        return -1;
    hash_of(str_of(text), &hash);
    if (insert(access, out, &hash, err) < 0) {
        explicit_bzero(text, TOKEN_TEXT_BYTES);
        return -1;
    }
    access->seen = -1; /* our own changes do not show in the version */
    return 0;
}

int access_revoke(struct access *access, const char *id, const char *tenant, struct token *out,
                  struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    AUTO_TRANSACTION struct transaction t = {0};
    struct entry entry;
    int got;

    if (transaction_begin(access->store, &t, err) < 0 ||
        statement_prepare(access->store,
                          "UPDATE tokens SET revoked_at = iif(revoked_at, revoked_at, ?3) "
                          "WHERE id = ?1 AND (?2 = '' OR tenant = ?2) RETURNING " COLUMNS,
                          &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(id));
    statement_bind_text(&st, 2, str_of(tenant ? tenant : ""));
    statement_bind_int(&st, 3, (int64_t)time(NULL));
    got = statement_step(&st, err);
    if (got < 0)
        return -1;
    if (got == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no token of that id");
    if (read_entry(&st, &entry, err) < 0)
        return -1;
    statement_reset(&st);
    if (transaction_commit(&t, err) < 0)
        return -1;
    access->seen = -1;
    *out = entry.token;
    return 0;
}

int access_settle(struct access *access, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    AUTO_TRANSACTION struct transaction t = {0};

    for (size_t i = 0; i < access->n; i++) {
        struct entry *entry = &access->entries[i];

        if (!entry->is_used)
            continue;
        if (!t.store &&
            (transaction_begin(access->store, &t, err) < 0 ||
             statement_prepare(access->store,
                               "UPDATE tokens SET used_at = max(used_at, ?2) WHERE id = ?1", &st,
                               err) < 0))
            return -1;
        statement_bind_text(&st, 1, str_of(entry->token.id));
        statement_bind_int(&st, 2, entry->token.used_at);
        if (statement_step(&st, err) < 0)
            return -1;
        entry->is_used = false;
    }
    return t.store ? transaction_commit(&t, err) : 0;
}
