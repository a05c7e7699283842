/* SPDX-License-Identifier: Apache-2.0 */

/* Evidence that leaves the machine: receipts as a tar file in the layout of HELM's bundles, version
 * 3. docs/formats/bundle.md describes it. The same receipts are the same bytes. */

#include "flow/record/record.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "flow/record/bundle.h"
#include "flow/record/ledger.h"
#include "flow/record/tar.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#define PIECE_BYTES (64 * KIB)

/* What was written of the receipts, on the way. */
struct gathering {
    int fd;
    struct hasher hasher;
    struct hash hash;
    uint64_t size;
    uint64_t count;
    char last_at[TIMESTAMP_BYTES];
    struct buf line;
};

static int on_receipt(void *context, const struct json *receipt, struct err *err)
{
    struct gathering *g = context;
    struct str at = {0};

    buf_clear(&g->line);
    if (json_canonical(receipt, &g->line, err) < 0 || buf_add_byte(&g->line, '\n', err) < 0 ||
        write_all(g->fd, g->line.p, g->line.n, err) < 0)
        return -1;
    hasher_add(&g->hasher, g->line.p, g->line.n);
    g->size += g->line.n;
    g->count++;
    if (json_is_text(json_get(receipt, "timestamp"), &at) && at.n < sizeof g->last_at)
        (void)snprintf(g->last_at, sizeof g->last_at, STR_FMT, STR_ARG(at));
    return 0;
}

static int on_row(void *context, const struct row *row, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RECEIPT_MEMORY_MAX);
    const struct json *json = NULL;

    return ledger_row_json(&mem, row, &json, err) < 0 ? -1 : on_receipt(context, json, err);
}

static int gather(struct record *record, const char *session_id, struct gathering *g,
                  struct err *err)
{
    int failed;

    hasher_init(&g->hasher);
    failed = session_id ? record_of_session(record, session_id, 0, on_receipt, g, err)
                        : ledger_each(record, on_row, g, err);
    hasher_end(&g->hasher, &g->hash);
    if (!failed && session_id && g->count == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no session \"%.40s\"", session_id);
    return failed;
}

/* ---- the small files ---- */

static void push_entry(struct arena *mem, struct json *entries, const char *path, const char *kind,
                       const struct hash *hash, uint64_t size)
{
    struct json *entry = json_object(mem);
    char hex[2 * HASH_BYTES + 1];

    hex_encode(hash->b, sizeof hash->b, hex);
    json_put_text(mem, entry, "kind", kind);
    json_put_text(mem, entry, "path", path);
    json_put_text(mem, entry, "sha256", hex);
    json_put_int(mem, entry, "size_bytes", (int64_t)size);
    json_push(entries, entry);
}

static int score_text(struct arena *mem, const struct gathering *g, const char *name,
                      struct buf *out, struct err *err)
{
    struct json *score = json_object(mem), *gates = json_array(mem), *gate = json_object(mem),
                *paths = json_array(mem), *metrics = json_object(mem), *counts = json_object(mem);

    json_push(paths, json_text(mem, STR_LIT(BUNDLE_RECEIPTS)));
    json_put_int(mem, counts, "receipts", (int64_t)g->count);
    json_put(metrics, "counts", counts);
    json_put_int(mem, metrics, "duration_ms", 0);
    json_put(gate, "evidence_paths", paths);
    json_put_text(mem, gate, "gate_id", "G1");
    json_put(gate, "metrics", metrics);
    json_put_bool(mem, gate, "pass", true);
    json_put(gate, "reasons", json_array(mem));
    json_put_text(mem, gate, "status", "pass");
    json_push(gates, gate);
    json_put_int(mem, score, "duration", 0);
    json_put(score, "gate_results", gates);
    json_put_bool(mem, score, "pass", true);
    json_put_text(mem, score, "profile", BUNDLE_PROFILE);
    json_put_text(mem, score, "run_id", name);
    json_put_text(mem, score, "timestamp", g->last_at);
    return json_canonical(score, out, err);
}

static int index_text(struct arena *mem, const struct gathering *g, const char *name,
                      struct json *entries, struct buf *out, struct err *err)
{
    struct json *index = json_object(mem);

    json_put_text(mem, index, "created_at", g->last_at);
    json_put(index, "entries", entries);
    json_put_text(mem, index, "format_version", BUNDLE_FORMAT);
    json_put_text(mem, index, "profile", BUNDLE_PROFILE);
    json_put_text(mem, index, "run_id", name);
    json_put_text(mem, index, "topo_order_rule", "seq");
    return json_canonical(index, out, err);
}

/* ---- the tar file ---- */

static int write_padding(int fd, uint64_t size, struct err *err)
{
    static const char zeros[TAR_BLOCK];

    return write_all(fd, zeros, tar_padding(size), err);
}

static int write_small(int fd, const char *name, struct str content, struct err *err)
{
    char head[TAR_BLOCK];

    return tar_head(name, content.n, head, err) < 0 || write_all(fd, head, sizeof head, err) < 0 ||
                   write_all(fd, content.p, content.n, err) < 0 ||
                   write_padding(fd, content.n, err) < 0
               ? -1
               : 0;
}

static int write_receipts(int fd, const struct gathering *g, struct err *err)
{
    char head[TAR_BLOCK], piece[PIECE_BYTES];
    ssize_t n;

    if (tar_head(BUNDLE_RECEIPTS, g->size, head, err) < 0 ||
        write_all(fd, head, sizeof head, err) < 0)
        return -1;
    if (lseek(g->fd, 0, SEEK_SET) < 0)
        return err_os(err, "rewinding the receipts");
    while ((n = read(g->fd, piece, sizeof piece)) > 0)
        if (write_all(fd, piece, (size_t)n, err) < 0)
            return -1;
    return n < 0 ? err_os(err, "reading the receipts") : write_padding(fd, g->size, err);
}

static int write_end(int fd, struct err *err)
{
    static const char zeros[2 * TAR_BLOCK];

    return write_all(fd, zeros, sizeof zeros, err);
}

static int write_bundle(struct record *record, const char *name, const struct gathering *g, int fd,
                        struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO_BUF struct buf index = BUF(64 * KIB), score = BUF(64 * KIB);
    struct json *entries = json_array(&mem);
    char pem[PUBLIC_KEY_PEM_BYTES];
    struct hash score_hash, key_hash;

    public_key_pem(&record->signer->public_key, pem);
    hash_of(str_of(pem), &key_hash);
    if (score_text(&mem, g, name, &score, err) < 0)
        return -1;
    hash_of(buf_str(&score), &score_hash);
    push_entry(&mem, entries, BUNDLE_SCORE, "helm:report", &score_hash, score.n);
    push_entry(&mem, entries, BUNDLE_RECEIPTS, "helm:proofgraph", &g->hash, g->size);
    push_entry(&mem, entries, BUNDLE_KEY, "helm:other", &key_hash, strlen(pem));
    return index_text(&mem, g, name, entries, &index, err) < 0 ||
                   write_small(fd, BUNDLE_INDEX, buf_str(&index), err) < 0 ||
                   write_small(fd, BUNDLE_SCORE, buf_str(&score), err) < 0 ||
                   write_receipts(fd, g, err) < 0 ||
                   write_small(fd, BUNDLE_KEY, str_of(pem), err) < 0 || write_end(fd, err) < 0
               ? -1
               : 0;
}

int record_bundle(struct record *record, const char *session_id, const char *spool_dir, int fd,
                  struct err *err)
{
    AUTO_FD int receipts_fd = open(spool_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct gathering g = {.fd = receipts_fd, .line = BUF(2 * RECEIPT_TEXT_MAX)};
    int failed;

    if (receipts_fd < 0)
        return err_os(err, "making room for the receipts");
    failed = gather(record, session_id, &g, err) < 0 ||
             write_bundle(record, session_id ? session_id : BUNDLE_ALL, &g, fd, err) < 0;
    buf_done(&g.line);
    return failed ? -1 : 0;
}
