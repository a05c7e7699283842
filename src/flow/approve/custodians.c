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
    out->custodian.revoked_at = statement_int(st, 4);
    return 0;
}

#define SELECT "SELECT name, public_key, sealed, enrolled_at, revoked_at FROM custodians"

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

/* One whose word counts. */
static int find_standing(struct approvals *approvals, struct arena *mem, const char *name,
                         struct row *out, struct err *err)
{
    if (find(approvals, mem, name, out, err) < 0)
        return -1;
    if (out->custodian.revoked_at)
        return err_set(err, ERR_FORBIDDEN, "%.64s is no custodian any more", name);
    return 0;
}

int custodian_still(struct approvals *approvals, const char *name, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    struct row row;

    return find_standing(approvals, &mem, name, &row, err) == 0 || err->code == ERR_NOT_FOUND ? 0
                                                                                              : -1;
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
    if (row.custodian.revoked_at)
        return err_set(err, ERR_FORBIDDEN,
                       "that key belonged to %.64s, who is no custodian any more",
                       row.custodian.name);
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

    if (find_standing(approvals, &mem, name, &row, err) < 0)
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

    if (find_standing(approvals, &mem, name, &row, err) < 0)
        return -1;
    if (!signature_holds(signature, hash, &row.custodian.key))
        return err_set(err, ERR_FORBIDDEN, "that is not the signature of custodian %s", name);
    return 0;
}

/* ---- enrolling ---- */

static int count_all(struct approvals *approvals, int64_t *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(approvals->store, "SELECT count(*) FROM custodians WHERE revoked_at = 0",
                          &st, err) < 0 ||
        statement_step(&st, err) < 0)
        return -1;
    *out = statement_int(&st, 0);
    return 0;
}

static int no_sponsor(const char *what, const char *name, struct err *err)
{
    return err_set(err, ERR_FORBIDDEN,
                   "there are custodians already: one of them has to %s %s (--by NAME)", what,
                   name);
}

/* The first is whoever owns the state directory; from then on custodians choose custodians. 1: one
 * has, and it was him. */
static int check_sponsor(struct approvals *approvals, const char *what, const char *name,
                         const char *by, struct str by_passphrase, struct err *err)
{
    struct signature ignored;
    struct hash hash;
    int64_t n = 0;

    if (count_all(approvals, &n, err) < 0)
        return -1;
    if (n == 0)
        return 0;
    if (!by)
        return no_sponsor(what, name, err);
    hash_of(str_of(name), &hash);
    return custodian_sign(approvals, by, by_passphrase, &hash, &ignored, err) < 0 ? -1 : 1;
}

/* Inside the transaction that makes the change: he may have been removed, or the first one
 * enrolled, while passphrases were being tried. by: whose word was taken, or NULL. */
static int check_sponsored(struct approvals *approvals, const char *what, const char *name,
                           const char *by, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    struct row row;
    int64_t n = 0;

    if (count_all(approvals, &n, err) < 0)
        return -1;
    if (n && !by)
        return no_sponsor(what, name, err);
    return n ? find_standing(approvals, &mem, by, &row, err) : 0;
}

/* Ben and ben are one name: nobody who reads the list should have to look twice. */
static int insert(struct approvals *approvals, const struct row *row, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(approvals->store,
                          "INSERT INTO custodians (name, public_key, sealed, enrolled_at)"
                          " SELECT ?1, ?2, ?3, ?4 WHERE NOT EXISTS (SELECT 1 FROM custodians WHERE "
                          "name = ?1 COLLATE NOCASE) ON CONFLICT DO NOTHING RETURNING name",
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
        return err_set(err, ERR_CONFLICT,
                       "a custodian of that name, in capitals or not, or of that key is enrolled "
                       "already");
    default:
        return -1;
    }
}

int custodian_enroll(struct approvals *approvals, const char *name, struct str passphrase,
                     const struct public_key *key, const char *by, struct str by_passphrase,
                     struct custodian *out, struct err *err)
{
    AUTO_TRANSACTION struct transaction t = {0};
    struct row row = {0};
    int sponsored;

    row.custodian.name = name;
    row.custodian.has_passphrase = passphrase.p != NULL;
    row.custodian.enrolled_at = (int64_t)time(NULL);
    if (!is_name(name))
        return err_set(err, ERR_INVALID,
                       "a custodian's name has 1 to %d letters, digits, -, _, . or @",
                       APPROVAL_NAME_MAX);
    sponsored = check_sponsor(approvals, "enroll", name, by, by_passphrase, err);
    if (sponsored < 0)
        return -1;
    if (passphrase.p) {
        if (sealed_key_make(passphrase, &row.sealed, &row.custodian.key, err) < 0)
            return -1;
    } else {
        row.custodian.key = *key;
    }
    if (transaction_begin(approvals->store, &t, err) < 0 ||
        check_sponsored(approvals, "enroll", name, sponsored ? by : NULL, err) < 0 ||
        insert(approvals, &row, err) < 0 || transaction_commit(&t, err) < 0)
        return -1;
    *out = row.custodian;
    return 0;
}

static int check_own(struct approvals *approvals, const struct row *row, struct str passphrase,
                     const struct public_key *key, struct err *err)
{
    const char *name = row->custodian.name;
    struct signature ignored;
    struct hash hash;

    hash_of(str_of(name), &hash);
    if (passphrase.p)
        return custodian_sign(approvals, name, passphrase, &hash, &ignored, err);
    return memcmp(key->b, row->custodian.key.b, sizeof key->b) == 0
               ? 0
               : err_set(err, ERR_FORBIDDEN, "%s has another key", name);
}

int custodian_again(struct approvals *approvals, struct arena *mem, const char *name,
                    struct str passphrase, const struct public_key *key, const char *by,
                    struct str by_passphrase, struct custodian *out, struct err *err)
{
    struct row row;
    int64_t n = 0;

    if (find_standing(approvals, mem, name, &row, err) < 0 ||
        check_own(approvals, &row, passphrase, key, err) < 0 || count_all(approvals, &n, err) < 0)
        return -1;
    if (n > 1 && by && strcmp(by, name) == 0)
        return no_sponsor("enroll", name, err);
    if (n > 1 && check_sponsor(approvals, "enroll", name, by, by_passphrase, err) < 0)
        return -1;
    *out = row.custodian;
    return 0;
}

/* ---- and no longer ---- */

#define HIS(state)                                                                                 \
    " WHERE state = " state " AND EXISTS (SELECT 1 FROM words WHERE approval = approvals.seq AND " \
    "by = ?1 AND confirms <> 0)"
#define OF_OTHERS                                                                                  \
    " FROM words WHERE approval = approvals.seq AND confirms <> 0 AND by <> ?1 ORDER BY at"

/* What waits has his word no more. What was confirmed with it and has not happened was confirmed by
 * too few, and has to be asked for again. What happened stays what it was, and a refusal stays a
 * refusal; the receipts have all he said. */
static int forget_words(struct approvals *approvals, const struct custodian *custodian,
                        struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(4 * KIB);
    const char *by = arena_printf(&mem, APPROVAL_CUSTODIAN "%s", custodian->name);
    const struct given him = {.texts = {by}, .text_n = 1};
    const struct given now = {
        .texts = {by}, .text_n = 1, .numbers = {custodian->revoked_at}, .number_n = 1};

    if (row_change(approvals, "UPDATE approvals SET state = 4, expires_at = ?2" HIS("1"), &now,
                   err) < 0 ||
        row_change(approvals,
                   "UPDATE approvals SET confirmations = confirmations - 1, decided_by = (SELECT "
                   "coalesce(group_concat(by, ', '), '') FROM (SELECT by" OF_OTHERS
                   ", by)), comment "
                   "= coalesce((SELECT comment" OF_OTHERS " DESC LIMIT 1), '')" HIS("0"),
                   &him, err) < 0)
        return -1;
    return row_change(approvals,
                      "DELETE FROM words WHERE by = ?1 AND confirms <> 0 AND approval IN (SELECT "
                      "seq FROM approvals WHERE state = 0)",
                      &him, err);
}

/* The row stays: what he signed can still be checked, and nobody else gets his name. */
static int mark_revoked(struct approvals *approvals, struct custodian *custodian, struct err *err)
{
    struct given given = {.texts = {custodian->name}, .text_n = 1, .number_n = 1};

    custodian->revoked_at = (int64_t)time(NULL);
    given.numbers[0] = custodian->revoked_at;
    return row_change(approvals, "UPDATE custodians SET revoked_at = ?2 WHERE name = ?1", &given,
                      err);
}

int custodian_remove(struct approvals *approvals, struct arena *mem, const char *name,
                     const char *by, struct str by_passphrase, struct custodian *out,
                     struct err *err)
{
    AUTO_TRANSACTION struct transaction t = {0};
    int sponsored = check_sponsor(approvals, "remove", name, by, by_passphrase, err);
    struct row row;
    int64_t n = 0;

    if (sponsored < 0 || transaction_begin(approvals->store, &t, err) < 0 ||
        check_sponsored(approvals, "remove", name, sponsored ? by : NULL, err) < 0 ||
        find_standing(approvals, mem, name, &row, err) < 0 || count_all(approvals, &n, err) < 0)
        return -1;
    if (n == 1)
        return err_set(err, ERR_CONFLICT,
                       "%.64s is the last custodian, and without one whoever comes first would be; "
                       "enroll another one before",
                       name);
    *out = row.custodian;
    if (mark_revoked(approvals, out, err) < 0 || forget_words(approvals, out, err) < 0)
        return -1;
    return transaction_commit(&t, err);
}
