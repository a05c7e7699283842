/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/cli/report.h"

#include <fcntl.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "surface/view/view.h"

int report_head(struct invocation *inv, struct record_check *check, struct record_head *head,
                struct err *err)
{
    AUTO_BUF struct buf text = BUF(RECEIPT_TEXT_MAX);
    const char *path = option_text(inv, "--head");

    if (!path)
        return 0;
    if (file_read(AT_FDCWD, path, &text, err) < 0)
        return err_in(err, "the head");
    if (record_head_read(buf_str(&text), check->trust, head, err) < 0)
        return err_in(err, "the head %s", path);
    check->head = head;
    return 0;
}

int report_status(const struct invocation *inv, const struct record_report *report)
{
    return view_is_good(report) ? 0 : cli_status(inv, ERR_INTEGRITY);
}

static void print_integrity(struct invocation *inv, const struct record_report *r)
{
    unsigned long long entries = r->entries;

    switch (r->integrity) {
    case INTEGRITY_INTACT:
        (void)fprintf(inv->out,
                      "integrity intact: %llu entries, all hashes, links and signatures hold\n",
                      entries);
        break;
    case INTEGRITY_TORN:
        (void)fprintf(inv->out, "integrity torn: %llu entries hold, the last line is incomplete\n",
                      entries);
        break;
    case INTEGRITY_TAMPERED:
    case INTEGRITY_UNKNOWN:
        (void)fprintf(inv->out, "integrity broken: only the first %llu entries hold\n", entries);
        break;
    }
}

static void print_completeness(struct invocation *inv, const struct record_check *check,
                               const struct record_report *r)
{
    const struct record_head *head = check->head;

    if (!head)
        (void)fprintf(inv->out, "completeness not proven: no signed head was given, so entries may "
                                "be missing at the end\n");
    else if (r->completeness == COMPLETENESS_NOT_PROVEN)
        (void)fprintf(inv->out,
                      "completeness not proven: the chain does not hold up to the head\n");
    else
        (void)fprintf(inv->out, "completeness %s: the head signed at %s names %llu entries\n",
                      record_completeness_name(r->completeness), head->timestamp,
                      (unsigned long long)head->seq);
}

void report_print(struct invocation *inv, const struct record_check *check,
                  const struct record_report *r)
{
    AUTO_BUF struct buf fault = BUF(8 * sizeof r->fault_text);
    struct err err;

    print_integrity(inv, r);
    /* Part of the sentence may come from the file that is being judged. */
    if (r->fault != FAULT_NONE && text_escape(str_of(r->fault_text), &fault, &err) == 0)
        (void)fprintf(inv->out, "first fault: %s\n", buf_text(&fault));
    print_completeness(inv, check, r);
    if (r->open_runs)
        (void)fprintf(inv->out, "open runs: %llu intents have no end yet\n",
                      (unsigned long long)r->open_runs);
    (void)fprintf(inv->out, "trusted key %s: %s\n", r->key_id, r->key_why);
}
