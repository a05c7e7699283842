/* SPDX-License-Identifier: Apache-2.0 */

/* The signed head: how long the ledger was, said by its key, for somebody else to keep.
 *
 *     {"count":N,"head_hash":"sha256:…","key_id":…,"kind":"head","seq":N,"timestamp":…,"v":1,
 *      "hash":…,"signature":…}
 *
 * hash and signature are made as for a receipt; the kind tells the two apart. */

#include "flow/record/record.h"

#include <stdio.h>
#include <string.h>

#include "flow/record/ledger.h"
#include "lib/base/limits.h"

static struct json *head_json(struct arena *mem, const struct record *record,
                              const struct chain_head *head)
{
    struct json *json = json_object(mem);
    char hash[HASH_TEXT_BYTES];
    char timestamp[TIMESTAMP_BYTES];

    hash_text(&head->hash, hash);
    clock_timestamp(timestamp);
    json_put_int(mem, json, "count", (int64_t)head->seq);
    json_put_text(mem, json, "head_hash", hash);
    json_put_text(mem, json, "key_id", record->key_id);
    json_put_text(mem, json, "kind", "head");
    json_put_int(mem, json, "seq", (int64_t)head->seq);
    json_put_text(mem, json, "timestamp", timestamp);
    json_put_int(mem, json, "v", RECEIPT_VERSION);
    return json;
}

int record_head(struct record *record, struct buf *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RECEIPT_MEMORY_MAX);
    AUTO_BUF struct buf body = BUF(RECEIPT_TEXT_MAX);
    struct chain_head head;
    struct json *json;
    struct hash hash;
    struct signature signature;

    if (ledger_head(record, &mem, &head, err) < 0)
        return -1;
    json = head_json(&mem, record, &head);
    if (json_canonical(json, &body, err) < 0)
        return -1;
    receipt_hash(buf_str(&body), &hash);
    if (record->signer->sign(record->signer, &hash, 1, &signature, err) < 0)
        return -1;
    receipt_complete(&mem, json, &hash, &signature);
    if (json_canonical(json, out, err) < 0)
        return -1;
    return buf_add_byte(out, '\n', err);
}

static int copy_head(const struct entry *entry, struct record_head *out, struct err *err)
{
    struct record_head head = {.seq = entry->seq};
    struct str text;
    struct hash hash;
    int64_t count = -1;

    if (!json_is_text(json_get(entry->json, "head_hash"), &text) || !hash_from_text(text, &hash))
        return err_set(err, ERR_INVALID, "member \"head_hash\" is missing or of the wrong form");
    hash_text(&hash, head.hash);
    if (!json_is_int(json_get(entry->json, "count"), &count) || (uint64_t)count != head.seq)
        return err_set(err, ERR_INVALID, "member \"count\" is not the sequence number");
    if (!json_is_text(json_get(entry->json, "timestamp"), &text) || text.n >= TIMESTAMP_BYTES)
        return err_set(err, ERR_INVALID, "member \"timestamp\" is missing or of the wrong form");
    (void)snprintf(head.timestamp, sizeof head.timestamp, STR_FMT, STR_ARG(text));
    *out = head;
    return 0;
}

int record_head_read(struct str text, const struct record_trust *trust, struct record_head *out,
                     struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RECEIPT_MEMORY_MAX);
    AUTO_BUF struct buf body = BUF(2 * RECEIPT_TEXT_MAX);
    char trusted[KEY_ID_BYTES];
    const char *what;
    struct entry entry;

    key_id(&trust->key, trusted);
    if (entry_parse(&mem, text, &body, &entry, err) < 0)
        return -1;
    if (!str_is(entry.kind, "head"))
        return err_set(err, ERR_INVALID, "not a signed head; \"brig receipts head\" prints one");
    if (!str_is(entry.key_id, trusted))
        return err_set(err, ERR_INTEGRITY, "signed by " STR_FMT ", not by the trusted key %s",
                       STR_ARG(entry.key_id), trusted);
    what = entry_fault(&entry, &trust->key);
    if (what)
        return err_set(err, ERR_INTEGRITY, "not a genuine head: %s", what);
    return copy_head(&entry, out, err);
}
