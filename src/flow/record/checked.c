/* SPDX-License-Identifier: Apache-2.0 */

/* The advisory receipts of a ledger and those about custodians, without looking at all of it each
 * time.
 *
 * Up to where the ledger held, and which receipts there are of these kinds, is kept in a file under
 * a signature of the ledger's own key, so that only who could write the ledger anew can write the
 * file. The hash of the last entry stands for all before it: the list is complete for that chain
 * and for no other. An old file is as true as a new one; it leaves more to be verified.
 *
 *     domain, NUL                   docs/formats/ledger-checked.md
 *     number and hash of the last entry that was looked at
 *     number, agent and hash of each such receipt, oldest first
 *     signature over the hash of all that */

#include "flow/record/record.h"

#include <fcntl.h>
#include <string.h>

#include "flow/record/ledger.h"
#include "flow/record/verify.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#define CHECKED_DOMAIN "brig/ledger-checked/2"
#define NUMBER_BYTES 8
#define AGENT_BYTES 8 /* of the hash of its name; two that share them are told apart later */
#define HEADER_BYTES (sizeof CHECKED_DOMAIN + NUMBER_BYTES + HASH_BYTES)
#define NOTE_BYTES (NUMBER_BYTES + AGENT_BYTES + HASH_BYTES)
#define CUSTODIANS "/custodians" /* in place of an agent; no agent is called so */
#define TAIL_ENTRIES 64          /* verified again and again, before the file is written anew */

struct checked {
    struct buf bytes; /* the file, up to its signature */
    struct place last;
};

static void write_number(uint64_t number, char *out)
{
    for (int i = NUMBER_BYTES - 1; i >= 0; i--, number >>= 8)
        out[i] = (char)(number & 0xff);
}

static uint64_t read_number(const char *p)
{
    uint64_t number = 0;

    for (int i = 0; i < NUMBER_BYTES; i++)
        number = number << 8 | (unsigned char)p[i];
    return number;
}

static void name_agent(struct str agent, char out[AGENT_BYTES])
{
    struct hash hash;

    hash_of(agent, &hash);
    memcpy(out, hash.b, AGENT_BYTES);
}

/* ---- the file ---- */

static bool is_ours(const struct buf *bytes, struct str signed_by, const struct public_key *key)
{
    struct signature signature;
    struct hash hash;

    memcpy(signature.b, signed_by.p, sizeof signature.b);
    hash_of(buf_str(bytes), &hash);
    return memcmp(bytes->p, CHECKED_DOMAIN, sizeof CHECKED_DOMAIN) == 0 &&
           signature_holds(&signature, &hash, key);
}

/* Whether there is something that can be believed. */
static bool recall(struct checked *checked, const char *path, const struct public_key *key)
{
    struct buf *bytes = &checked->bytes;
    const char *place;
    struct err err;

    if (file_read(AT_FDCWD, path, bytes, &err) < 0 || bytes->n < HEADER_BYTES + SIGNATURE_BYTES ||
        (bytes->n - HEADER_BYTES - SIGNATURE_BYTES) % NOTE_BYTES != 0)
        return false;
    bytes->n -= SIGNATURE_BYTES;
    if (!is_ours(bytes, (struct str){bytes->p + bytes->n, SIGNATURE_BYTES}, key))
        return false;
    place = bytes->p + sizeof CHECKED_DOMAIN;
    checked->last.seq = read_number(place);
    memcpy(checked->last.hash.b, place + NUMBER_BYTES, HASH_BYTES);
    return checked->last.seq > 0 && checked->last.seq <= (uint64_t)SEQ_MAX;
}

static int know_nothing(struct checked *checked, struct err *err)
{
    static const char header[HEADER_BYTES] = CHECKED_DOMAIN;

    buf_clear(&checked->bytes);
    checked->last = (struct place){0};
    return buf_add(&checked->bytes, header, sizeof header, err);
}

static int keep(struct record *record, struct checked *checked, const char *path, struct err *err)
{
    struct buf *bytes = &checked->bytes;
    char *place = bytes->p + sizeof CHECKED_DOMAIN;
    struct signature signature;
    struct hash hash;

    write_number(checked->last.seq, place);
    memcpy(place + NUMBER_BYTES, checked->last.hash.b, HASH_BYTES);
    hash_of(buf_str(bytes), &hash);
    if (record->signer->sign(record->signer, &hash, 1, &signature, err) < 0 ||
        buf_add(bytes, signature.b, sizeof signature.b, err) < 0)
        return -1;
    return file_exchange(path, bytes->p, bytes->n, 0600, err);
}

/* ---- the ledger ---- */

static bool is_about_custodians(const struct json *receipt)
{
    struct str action = {0}, kind = {0};

    (void)json_is_text(json_get(receipt, "action"), &action);
    (void)json_is_text(json_get(receipt, "kind"), &kind);
    return str_is(kind, "outcome") && (str_is(action, "enroll") || str_is(action, "dismiss") ||
                                       str_is(action, "approvals-renew"));
}

/* Whom the gate asks for it, if it does. */
static bool is_wanted(const struct json *receipt, struct str *whose)
{
    const struct json *about = json_get(receipt, "advisory");

    if (about && json_is_text(json_get(about, "agent_id"), whose))
        return true;
    *whose = str_of(CUSTODIANS);
    return is_about_custodians(receipt);
}

static int on_good(void *context, const struct entry *entry, struct err *err)
{
    struct checked *checked = context;
    char note[NOTE_BYTES];
    struct str agent;

    if (entry->seq <= checked->last.seq)
        return 0; /* where it goes on from */
    checked->last = (struct place){entry->seq, entry->hash};
    if (!is_wanted(entry->json, &agent))
        return 0;
    write_number(entry->seq, note);
    name_agent(agent, note + NUMBER_BYTES);
    memcpy(note + NUMBER_BYTES + AGENT_BYTES, entry->hash.b, HASH_BYTES);
    return buf_add(&checked->bytes, note, sizeof note, err);
}

/* From the last entry that was looked at, which must be there and that one. */
static int verify_rest(struct record *record, struct checked *checked,
                       const struct record_trust *trust, uint64_t *verified, struct err *err)
{
    struct record_head from = {.seq = checked->last.seq};
    bool goes_on = from.seq > 0;
    const struct record_check check = {
        .trust = trust, .head = goes_on ? &from : NULL, .part = goes_on};
    struct record_report report;

    hash_text(&checked->last.hash, from.hash);
    if (ledger_verify(record, &check, from.seq, on_good, checked, &report, err) < 0)
        return -1;
    if (report.integrity != INTEGRITY_INTACT ||
        (goes_on && report.completeness != COMPLETENESS_PROVEN))
        return err_set(err, ERR_INTEGRITY, "the ledger does not hold: %s", report.fault_text);
    *verified = report.entries;
    return 0;
}

static int show(struct record *record, const struct checked *checked,
                const struct record_advised *ask, uint64_t *verified, struct err *err)
{
    size_t notes = (checked->bytes.n - HEADER_BYTES) / NOTE_BYTES, n = 0;
    AUTO_FREE struct place *places = xcalloc(notes + 1, sizeof *places);
    char agent[AGENT_BYTES], custodians[AGENT_BYTES];

    name_agent(str_of(ask->agent_id), agent);
    name_agent(str_of(CUSTODIANS), custodians);
    for (size_t i = 0; i < notes; i++) {
        const char *note = checked->bytes.p + HEADER_BYTES + i * NOTE_BYTES;

        if (memcmp(note + NUMBER_BYTES, agent, AGENT_BYTES) != 0 &&
            memcmp(note + NUMBER_BYTES, custodians, AGENT_BYTES) != 0)
            continue;
        places[n].seq = read_number(note);
        memcpy(places[n++].hash.b, note + NUMBER_BYTES + AGENT_BYTES, HASH_BYTES);
    }
    *verified += n;
    return ledger_verify_again(record, &ask->trust->key, places, n, ask->visit, ask->context, err);
}

static int advised(struct record *record, struct checked *checked, const struct record_advised *ask,
                   uint64_t *verified, struct err *err)
{
    struct err ignored; /* what cannot be kept is found again the next time */
    uint64_t known;

    if (!recall(checked, ask->path, &ask->trust->key) && know_nothing(checked, err) < 0)
        return -1;
    known = checked->last.seq;
    if (verify_rest(record, checked, ask->trust, verified, err) < 0 ||
        show(record, checked, ask, verified, err) < 0)
        return -1;
    if (!ask->only_look && checked->last.seq &&
        (known == 0 || checked->last.seq - known >= TAIL_ENTRIES))
        (void)keep(record, checked, ask->path, &ignored);
    return 0;
}

int record_advised(struct record *record, const struct record_advised *ask, uint64_t *verified,
                   struct err *err)
{
    struct checked checked = {.bytes = BUF(LEDGER_CHECKED_MAX)};
    uint64_t n = 0;
    int failed = advised(record, &checked, ask, &n, err);

    buf_done(&checked.bytes);
    if (failed == 0)
        *verified = n;
    return failed;
}
