/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/approve/store.h"

#include <string.h>
#include <time.h>

#include "lib/base/limits.h"
#include "lib/crypto/sealed.h"

#define PREIMAGE_DOMAIN "brig/approval/1"

struct row {
    struct custodian custodian;
    struct sealed_key sealed;
};

static bool is_name(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n <= APPROVAL_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@") == n;
}

static int read_row(const struct statement *st, struct arena *mem, struct row *out, struct err *err)
{
    struct str key = statement_bytes(st, 1), sealed = statement_bytes(st, 2);

    *out = (struct row){0};
    if (key.n != sizeof out->custodian.key.b || (sealed.n && sealed.n != sizeof out->sealed.b))
        return err_set(err, ERR_INTEGRITY, "the list of custodians holds something else");
    out->custodian.name = arena_text(mem, statement_bytes(st, 0));
    memcpy(out->custodian.key.b, key.p, key.n);
    if (sealed.n)
        memcpy(out->sealed.b, sealed.p, sealed.n);
    out->custodian.has_passphrase = sealed.n != 0;
    out->custodian.enrolled_at = statement_int(st, 3);
    return 0;
}

#define SELECT "SELECT name, public_key, sealed, enrolled_at FROM custodians"

static int find(struct approvals *approvals, struct arena *mem, const char *name, struct row *out,
                struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int got;

    if (statement_prepare(approvals->store, SELECT " WHERE name = ?1", &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(name));
    got = statement_step(&st, err);
    if (got == 0)
        return err_set(err, ERR_NOT_FOUND, "no custodian is called %.64s", name);
    return got < 0 ? -1 : read_row(&st, mem, out, err);
}

int custodian_by_key(struct approvals *approvals, struct arena *mem, const struct public_key *key,
                     struct custodian *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    struct row row;
    int got;

    if (statement_prepare(approvals->store, SELECT " WHERE public_key = ?1", &st, err) < 0)
        return -1;
    statement_bind_blob(&st, 1, (struct str){(const char *)key->b, sizeof key->b});
    got = statement_step(&st, err);
    if (got == 0)
        return err_set(err, ERR_FORBIDDEN, "that key belongs to no custodian");
    if (got < 0 || read_row(&st, mem, &row, err) < 0)
        return -1;
    *out = row.custodian;
    return 0;
}

int custodian_each(struct approvals *approvals,
                   int (*visit)(void *context, const struct custodian *custodian, struct err *err),
                   void *context, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    int got;

    if (statement_prepare(approvals->store, SELECT " ORDER BY enrolled_at, name", &st, err) < 0)
        return -1;
    while ((got = statement_step(&st, err)) == 1) {
        AUTO_ARENA struct arena mem = ARENA(64 * KIB);
        struct row row;

        if (read_row(&st, &mem, &row, err) < 0 || visit(context, &row.custodian, err) < 0)
            return -1;
    }
    return got;
}

/* ---- signing ---- */

void approval_preimage(const struct approval *approval, bool confirm, struct hash *out)
{
    const char *word = confirm ? "confirm" : "reject";
    struct hasher hasher;

    hasher_init(&hasher);
    hasher_add(&hasher, PREIMAGE_DOMAIN, sizeof PREIMAGE_DOMAIN); /* each with its NUL */
    hasher_add(&hasher, word, strlen(word) + 1);
    hasher_add(&hasher, approval->id, strlen(approval->id) + 1);
    hasher_add(&hasher, approval->digest, strlen(approval->digest));
    hasher_end(&hasher, out);
}

int custodian_sign(struct approvals *approvals, const char *name, struct str passphrase,
                   const struct hash *hash, struct signature *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    struct row row;
    int failed;

    if (find(approvals, &mem, name, &row, err) < 0)
        return -1;
    if (!row.custodian.has_passphrase)
        return err_set(err, ERR_INVALID, "%s signs elsewhere; only the public key is here", name);
    failed = sealed_key_sign(&row.sealed, passphrase, hash, out, err);
    return failed ? err_in(err, "custodian %s", name) : 0;
}

int custodian_check(struct approvals *approvals, const char *name, const struct hash *hash,
                    const struct signature *signature, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    struct row row;

    if (find(approvals, &mem, name, &row, err) < 0)
        return -1;
    if (!signature_holds(signature, hash, &row.custodian.key))
        return err_set(err, ERR_FORBIDDEN, "that is not the signature of custodian %s", name);
    return 0;
}

/* ---- enrolling ---- */

static int count_all(struct approvals *approvals, int64_t *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(approvals->store, "SELECT count(*) FROM custodians", &st, err) < 0 ||
        statement_step(&st, err) < 0)
        return -1;
    *out = statement_int(&st, 0);
    return 0;
}

/* The first is whoever owns the state directory; from then on custodians choose custodians. */
static int check_sponsor(struct approvals *approvals, const char *name, const char *by,
                         struct str by_passphrase, struct err *err)
{
    struct signature ignored;
    struct hash hash;
    int64_t n = 0;

    if (count_all(approvals, &n, err) < 0)
        return -1;
    if (n == 0)
        return 0;
    if (!by)
        return err_set(err, ERR_FORBIDDEN,
                       "there are custodians already: one of them has to enroll %s (--by NAME)",
                       name);
    hash_of(str_of(name), &hash);
    return custodian_sign(approvals, by, by_passphrase, &hash, &ignored, err);
}

static int insert(struct approvals *approvals, const struct row *row, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(approvals->store,
                          "INSERT INTO custodians (name, public_key, sealed, enrolled_at)"
                          " VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING RETURNING name",
                          &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(row->custodian.name));
    statement_bind_blob(
        &st, 2, (struct str){(const char *)row->custodian.key.b, sizeof row->custodian.key.b});
    statement_bind_blob(&st, 3,
                        (struct str){(const char *)row->sealed.b,
                                     row->custodian.has_passphrase ? sizeof row->sealed.b : 0});
    statement_bind_int(&st, 4, row->custodian.enrolled_at);
    switch (statement_step(&st, err)) {
    case 1:
        return 0;
    case 0:
        return err_set(err, ERR_CONFLICT, "a custodian of that name or key is enrolled already");
    default:
        return -1;
    }
}

int custodian_enroll(struct approvals *approvals, const char *name, struct str passphrase,
                     const struct public_key *key, const char *by, struct str by_passphrase,
                     struct custodian *out, struct err *err)
{
    struct row row = {0};

    row.custodian.name = name;
    row.custodian.has_passphrase = passphrase.p != NULL;
    row.custodian.enrolled_at = (int64_t)time(NULL);
    if (!is_name(name))
        return err_set(err, ERR_INVALID,
                       "a custodian's name has 1 to %d letters, digits, -, _, . or @",
                       APPROVAL_NAME_MAX);
    if (check_sponsor(approvals, name, by, by_passphrase, err) < 0)
        return -1;
    if (passphrase.p) {
        if (sealed_key_make(passphrase, &row.sealed, &row.custodian.key, err) < 0)
            return -1;
    } else {
        row.custodian.key = *key;
    }
    if (insert(approvals, &row, err) < 0)
        return -1;
    *out = row.custodian;
    return 0;
}
