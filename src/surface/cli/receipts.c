/* SPDX-License-Identifier: Apache-2.0 */

/* brig receipts list|show|verify|head|export: the ledger of this state directory. */

#include "surface/cli/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "flow/record/record.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "surface/cli/report.h"
#include "surface/view/view.h"

static int open_ledger(struct invocation *inv, const char **dir, struct record **out,
                       struct err *err)
{
    return cli_state(inv, dir, err) < 0 ? -1 : record_open(*dir, out, err);
}

/* ---- list ---- */

struct listing {
    struct invocation *inv;
    bool any;
};

static void list_begin(const struct listing *listing)
{
    if (listing->inv->json)
        (void)fprintf(listing->inv->out, "{\"receipts\":[");
}

static void list_end(const struct listing *listing)
{
    if (listing->inv->json)
        (void)fprintf(listing->inv->out, "]}\n");
    else if (!listing->any)
        cli_none(listing->inv, "no receipts");
}

/* Receipts of plain runs name no action (docs/formats/receipt.md); what else is absent shows as a
 * dash. */
static struct str member(const struct json *receipt, const char *name)
{
    struct str text = strcmp(name, "action") == 0 ? STR_LIT("run") : STR_LIT("-");

    (void)json_is_text(json_get(receipt, name), &text);
    return text;
}

/* Everything printed here was checked when it was written, or is escaped: a changed ledger must
 * not steer a terminal. */
static int list_line(struct listing *listing, const struct json *receipt, struct err *err)
{
    static const struct {
        const char *name;
        int width;
    } columns[] = {
        {"timestamp",   27},
        {"kind",        7 },
        {"action",      15},
        {"status",      8 },
        {"verdict",     5 },
        {"reason_code", 26},
        {"receipt_id",  20}
    };
    AUTO_BUF struct buf line = BUF(RECEIPT_TEXT_MAX);
    int64_t seq = 0;

    (void)json_is_int(json_get(receipt, "seq"), &seq);
    if (buf_addf(&line, err, "%6lld", (long long)seq) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(columns); i++) {
        AUTO_BUF struct buf cell = BUF(RECEIPT_TEXT_MAX);

        if (text_escape(member(receipt, columns[i].name), &cell, err) < 0 ||
            buf_addf(&line, err, "  %-*s", columns[i].width, buf_text(&cell)) < 0)
            return -1;
    }
    (void)fprintf(listing->inv->out, "%s\n", buf_text(&line));
    return 0;
}

static int list_json(struct listing *listing, const struct json *receipt, struct err *err)
{
    AUTO_BUF struct buf text = BUF(2 * RECEIPT_TEXT_MAX);

    if (json_compact(receipt, &text, err) < 0)
        return -1;
    (void)fprintf(listing->inv->out, "%s\n%s", listing->any ? "," : "", buf_text(&text));
    return 0;
}

static int on_receipt(void *context, const struct json *receipt, struct err *err)
{
    struct listing *listing = context;
    int failed =
        listing->inv->json ? list_json(listing, receipt, err) : list_line(listing, receipt, err);

    listing->any = true;
    return failed;
}

int receipts_print(struct invocation *inv, const struct json *list, struct err *err)
{
    struct listing listing = {inv, false};

    list_begin(&listing);
    for (const struct json *receipt = list ? list->first : NULL; receipt; receipt = receipt->next)
        if (on_receipt(&listing, receipt, err) < 0)
            return -1;
    list_end(&listing);
    return 0;
}

int run_receipts_list(struct invocation *inv)
{
    AUTO(record) struct record *record = NULL;
    struct listing listing = {inv, false};
    uint64_t limit = option_number(inv, "--limit");
    struct record_query query = {.limit = RECEIPTS_LIST_DEFAULT};
    const char *dir = NULL;
    struct err err;

    if (limit)
        query.limit = limit > UINT32_MAX ? UINT32_MAX : (unsigned)limit;
    if (open_ledger(inv, &dir, &record, &err) < 0)
        return cli_error(inv, &err);
    list_begin(&listing);
    if (record_list(record, &query, on_receipt, &listing, &err) < 0)
        return cli_error(inv, &err);
    list_end(&listing);
    return 0;
}

/* ---- show ---- */

int receipt_doubted(struct invocation *inv, const struct json *receipt, const struct err *why)
{
    if (!inv->json)
        (void)cli_json(inv, receipt);
    return cli_error_with(inv, why, view_reason(why->code), view_doubted(&inv->mem, receipt));
}

int run_receipts_show(struct invocation *inv)
{
    AUTO(record) struct record *record = NULL;
    const struct json *receipt = NULL;
    struct public_key key;
    const char *dir = NULL;
    int doubtful = -1;
    struct err err;

    if (open_ledger(inv, &dir, &record, &err) == 0 && record_own_key(dir, &key, &err) == 0)
        doubtful = record_show_checked(record, &key, &inv->mem, inv->operands.v[0], &receipt, &err);
    if (doubtful < 0)
        return cli_error(inv, &err);
    return doubtful ? receipt_doubted(inv, receipt, &err) : cli_json(inv, receipt);
}

/* ---- verify ---- */

int run_receipts_verify(struct invocation *inv)
{
    AUTO(record) struct record *record = NULL;
    struct record_trust trust = {.why = "the key of this state directory"};
    struct record_head head;
    struct record_check check = {.trust = &trust};
    struct record_report report;
    const char *dir = NULL;
    struct err err;

    if (open_ledger(inv, &dir, &record, &err) < 0 || record_own_key(dir, &trust.key, &err) < 0 ||
        report_head(inv, &check, &head, &err) < 0 ||
        record_verify(record, &check, &report, &err) < 0)
        return cli_error(inv, &err);
    if (inv->json)
        (void)cli_json(inv, view_verification(&inv->mem, &check, &report));
    else
        report_print(inv, &check, &report);
    return report_status(inv, &report);
}

/* ---- head, export ---- */

int run_receipts_head(struct invocation *inv)
{
    AUTO(record) struct record *record = NULL;
    AUTO_BUF struct buf text = BUF(RECEIPT_TEXT_MAX);
    const char *dir = NULL;
    struct err err;

    if (open_ledger(inv, &dir, &record, &err) < 0 || record_head(record, &text, &err) < 0)
        return cli_error(inv, &err);
    (void)fputs(buf_text(&text), inv->out); /* JSON already; one line is easily kept */
    return 0;
}

static int export_to(struct invocation *inv, struct record *record, int fd, struct err *err)
{
    uint64_t count = 0;

    if (record_export(record, fd, &count, err) < 0)
        return err_in(err, "exporting");
    (void)fprintf(inv->err, "%s: %llu receipts\n", inv->program, (unsigned long long)count);
    return 0;
}

static int export_to_file(struct invocation *inv, struct record *record, const char *path,
                          struct err *err)
{
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600);

    if (fd < 0)
        return err_os(err, "creating %s", path);
    if (export_to(inv, record, fd, err) < 0)
        return err_in(err, "%s", path);
    if (fsync(fd) < 0 && errno != EINVAL && errno != EROFS) /* pipes and devices have no disk */
        return err_os(err, "syncing %s", path);
    return 0;
}

int run_receipts_export(struct invocation *inv)
{
    AUTO(record) struct record *record = NULL;
    const char *path = option_text(inv, "--output");
    const char *dir = NULL;
    struct err err;
    int failed;

    if (open_ledger(inv, &dir, &record, &err) < 0)
        return cli_error(inv, &err);
    (void)fflush(inv->out);
    failed = path ? export_to_file(inv, record, path, &err)
                  : export_to(inv, record, fileno(inv->out), &err);
    return failed < 0 ? cli_error(inv, &err) : 0;
}
