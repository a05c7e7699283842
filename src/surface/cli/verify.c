/* SPDX-License-Identifier: Apache-2.0 */

/* brig verify FILE…: exported receipts, judged without the ledger they came from. */

#include "surface/cli/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "flow/record/record.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "surface/cli/report.h"
#include "surface/view/view.h"

/* A key in the file itself would prove nothing: whoever changed the file would have put it
 * there. So one is given, or it is our own. */
static int choose_key(struct invocation *inv, struct record_trust *out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(KIB);
    const char *path = option_text(inv, "--key");
    const char *dir = NULL;

    if (path) {
        if (file_read(AT_FDCWD, path, &text, err) < 0 ||
            public_key_read(buf_str(&text), &out->key, err) < 0)
            return err_in(err, "the key %s", path);
        out->why = arena_printf(&inv->mem, "given with --key %s", path);
        return 0;
    }
    if (cli_state(inv, &dir, err) < 0)
        return -1;
    if (record_own_key(dir, &out->key, err) < 0) {
        if (err->code == ERR_NOT_FOUND)
            return err_set(err, ERR_INVALID,
                           "no key to trust: give the signer's public key with --key FILE (it is "
                           "receipts.pub in the signer's state directory)");
        return -1;
    }
    out->why = "the key of this state directory; --key FILE names another";
    return 0;
}

static int verify_file(const char *path, const struct record_check *check,
                       struct record_report *out, struct err *err)
{
    AUTO_FD int opened = -1;
    int fd = STDIN_FILENO;

    if (strcmp(path, "-") != 0) {
        opened = fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
            return err_os(err, "opening %s", path);
    }
    return record_verify_fd(fd, check, out, err) < 0 ? err_in(err, "%s", path) : 0;
}

/* The status of the worst file is the status of all. */
static int verify_all(struct invocation *inv, const struct record_check *check, struct json *files,
                      struct err *err)
{
    int status = 0;

    for (size_t i = 0; i < inv->operands.n; i++) {
        const char *path = inv->operands.v[i];
        struct record_report report;

        if (verify_file(path, check, &report, err) < 0)
            return -1;
        if (report_status(inv, &report) != 0)
            status = report_status(inv, &report);
        if (inv->json) {
            struct json *json = view_verification(&inv->mem, check, &report);

            json_put_bytes(&inv->mem, json, "file", str_of(path));
            json_push(files, json);
            continue;
        }
        if (inv->operands.n > 1)
            (void)fprintf(inv->out, "%s%s:\n", i ? "\n" : "", path);
        report_print(inv, check, &report);
    }
    return status;
}

int run_verify(struct invocation *inv)
{
    struct record_trust trust;
    struct record_head head;
    struct record_check check = {.trust = &trust, .part = option_flag(inv, "--part")};
    struct json *files = json_array(&inv->mem);
    struct json *answer;
    struct err err;
    int status;

    if (choose_key(inv, &trust, &err) < 0 || report_head(inv, &check, &head, &err) < 0)
        return cli_error(inv, &err);
    status = verify_all(inv, &check, files, &err);
    if (status < 0)
        return cli_error(inv, &err);
    if (!inv->json)
        return status;
    if (files->n == 1) {
        (void)cli_json(inv, files->first);
        return status;
    }
    answer = json_object(&inv->mem);
    json_put_bool(&inv->mem, answer, "ok", status == 0);
    json_put(answer, "files", files);
    (void)cli_json(inv, answer);
    return status;
}
