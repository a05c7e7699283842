/* SPDX-License-Identifier: Apache-2.0 */

/* Custodians and their words, as the receipts have them. */

#include "flow/advisory-parts.h"

#include "lib/crypto/crypto.h"
#include "lib/json/json.h"

#include <string.h>
#include <time.h>

struct enrolled {
    const char *name;
    const char *key_id;
    uint64_t seq;
    bool is_gone;
    struct enrolled *next;
};

struct spoken {
    const char *signature;
    int64_t expires_at;
    const char *void_because; /* NULL: it counts */
    struct spoken *next;
};

static const char *text_at(struct arena *mem, const struct json *json, const char *key)
{
    struct str text = {"", 0};

    (void)json_is_text(json_get(json, key), &text);
    return arena_text(mem, text);
}

static int64_t number_at(const struct json *json, const char *key)
{
    int64_t number = 0;

    (void)json_is_int(json_get(json, key), &number);
    return number;
}

int64_t receipt_seconds(const struct json *receipt)
{
    char text[sizeof "2026-11-15T20:59:01"] = "";
    struct str timestamp = {0};
    struct tm tm = {0};

    if (json_is_text(json_get(receipt, "timestamp"), &timestamp) && timestamp.n >= sizeof text)
        memcpy(text, timestamp.p, sizeof text - 1);
    return strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) ? (int64_t)timegm(&tm) : 0;
}

bool receipt_is_done(const struct json *receipt)
{
    const struct json *outcome = json_get(receipt, "outcome");
    struct str kind = {0};
    int64_t code = -1;

    return json_is_text(json_get(receipt, "kind"), &kind) && str_is(kind, "outcome") &&
           json_is_int(json_get(outcome, "exit_code"), &code) && code == 0;
}

/* ---- custodians ---- */

static const struct json *custodian_of(const struct json *receipt)
{
    return json_get(json_get(receipt, "outcome"), "approval");
}

static void hear_enrolled(struct gate_ledger *ledger, const struct json *receipt)
{
    const struct json *about = custodian_of(receipt);
    struct enrolled *one = arena_new(ledger->mem, struct enrolled);

    *one = (struct enrolled){.name = text_at(ledger->mem, about, "custodian"),
                             .key_id = text_at(ledger->mem, about, "custodian_key_id"),
                             .seq = (uint64_t)number_at(receipt, "seq"),
                             .next = ledger->custodians};
    ledger->custodians = one;
}

/* NULL: everybody's time is over. */
static void hear_gone(struct gate_ledger *ledger, const struct json *receipt, const char *name)
{
    uint64_t seq = (uint64_t)number_at(receipt, "seq");

    for (struct enrolled *one = ledger->custodians; one; one = one->next)
        if (one->seq < seq && (!name || strcmp(one->name, name) == 0))
            one->is_gone = true;
}

uint64_t gate_ledger_enrolled(const struct gate_ledger *ledger, const char *name,
                              const struct public_key *key)
{
    char id[KEY_ID_BYTES];

    key_id(key, id);
    for (const struct enrolled *one = ledger ? ledger->custodians : NULL; one; one = one->next)
        if (!one->is_gone && strcmp(one->name, name) == 0 && strcmp(one->key_id, id) == 0)
            return one->seq;
    return 0;
}

bool gate_ledger_tells_of(const struct gate_ledger *ledger, const char *name)
{
    for (const struct enrolled *one = ledger->custodians; one; one = one->next)
        if (strcmp(one->name, name) == 0)
            return true;
    return false;
}

/* ---- words ---- */

static void hear_word(struct gate_ledger *ledger, const struct json *about)
{
    struct spoken *word = arena_new(ledger->mem, struct spoken);

    *word = (struct spoken){.signature = text_at(ledger->mem, about, "signature"),
                            .expires_at = number_at(about, "expires_at"),
                            .next = ledger->words};
    ledger->words = word;
}

static void end_words(struct gate_ledger *ledger, int64_t expired_at, const char *because)
{
    for (struct spoken *word = ledger->words; word; word = word->next)
        if (!word->void_because && word->expires_at <= expired_at)
            word->void_because = because;
}

const char *gate_ledger_doubts(const struct gate_ledger *ledger, const char *signature)
{
    for (const struct spoken *word = ledger ? ledger->words : NULL; word; word = word->next)
        if (strcmp(word->signature, signature) == 0)
            return word->void_because;
    return "the ledger does not know it";
}

static void hear_gate(struct gate_ledger *ledger, const struct json *receipt,
                      const struct json *about)
{
    const char *stage = text_at(ledger->mem, about, "stage");

    /* What was over once stays over, wherever the clock is set. */
    end_words(ledger, receipt_seconds(receipt), "its time was over");
    if (!receipt_is_done(receipt))
        return;
    if (strcmp(stage, "sign") == 0)
        hear_word(ledger, about);
    if (strcmp(stage, "revoke") == 0)
        end_words(ledger, INT64_MAX, "it was revoked after that");
}

/* ---- both ---- */

void gate_ledger_hear(struct gate_ledger *ledger, const struct json *receipt)
{
    const struct json *about = json_get(receipt, "advisory");
    struct str action = {0};

    if (about) {
        hear_gate(ledger, receipt, about);
        return;
    }
    (void)json_is_text(json_get(receipt, "action"), &action);
    if (!receipt_is_done(receipt))
        return;
    if (str_is(action, "enroll"))
        hear_enrolled(ledger, receipt);
    if (str_is(action, "dismiss"))
        hear_gone(ledger, receipt, text_at(ledger->mem, custodian_of(receipt), "custodian"));
    if (str_is(action, "approvals-renew"))
        hear_gone(ledger, receipt, NULL);
}
