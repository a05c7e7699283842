/* SPDX-License-Identifier: Apache-2.0 */

/* brig approvals notify: who is told when something waits for a person. */

#include "surface/cli/sandbox.h"

#include <fcntl.h>
#include <string.h>

#include "flow/notify/notify.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/crypto/secret.h"
#include "lib/json/json.h"
#include "model/run.h"
#include "surface/view/view.h"

/* ---- show ---- */

static struct json *counts(struct arena *mem, int64_t ok, int64_t failed)
{
    struct json *json = json_object(mem);

    json_put_int(mem, json, "ok", ok);
    json_put_int(mem, json, "failed", failed);
    return json;
}

static struct json *shown(struct arena *mem, const struct notify_config *config,
                          const struct notify_tally *tally)
{
    struct json *json = json_object(mem), *args = json_array(mem), *sent = json_object(mem);

    json_put_bool(mem, json, "standing", config->webhook || config->command);
    if (config->webhook)
        json_put_text(mem, json, "webhook", config->webhook);
    if (config->command) {
        json_put_text(mem, json, "command", config->command);
        for (size_t i = 0; i < config->args.n; i++)
            json_push(args, json_text(mem, str_of(config->args.v[i])));
        json_put(json, "args", args);
    }
    json_put(sent, "webhook", counts(mem, tally->webhook_ok, tally->webhook_failed));
    json_put(sent, "command", counts(mem, tally->command_ok, tally->command_failed));
    json_put_int(mem, sent, "dropped", tally->dropped);
    if (*tally->last_error) {
        json_put_text(mem, sent, "last_error", tally->last_error);
        json_put_text(mem, sent, "last_error_at", tally->last_error_at);
    }
    json_put(json, "sent", sent);
    return json;
}

static void print_shown(struct invocation *inv, const struct notify_config *config,
                        const struct notify_tally *tally)
{
    if (!config->webhook && !config->command)
        (void)fprintf(inv->err, "%s: nobody is told\n", inv->program);
    if (config->webhook)
        (void)fprintf(inv->out, "webhook  %s  %lld sent, %lld failed\n", config->webhook,
                      (long long)tally->webhook_ok, (long long)tally->webhook_failed);
    if (config->command) {
        (void)fputs("command  ", inv->out);
        print_escaped(inv->out, str_of(config->command));
        for (size_t i = 0; i < config->args.n; i++) {
            (void)fputc(' ', inv->out);
            print_escaped(inv->out, str_of(config->args.v[i]));
        }
        (void)fprintf(inv->out, "  %lld sent, %lld failed\n", (long long)tally->command_ok,
                      (long long)tally->command_failed);
    }
    if (tally->dropped)
        (void)fprintf(inv->out, "dropped  %lld\n", (long long)tally->dropped);
    if (*tally->last_error) {
        (void)fprintf(inv->out, "last error  %s  ", tally->last_error_at);
        print_escaped(inv->out, str_of(tally->last_error));
        (void)fputc('\n', inv->out);
    }
}

static int show(struct invocation *inv)
{
    struct notify_config config = {0};
    struct notify_tally tally = {0};
    const char *state_dir = NULL;
    bool exists = false;
    struct err err;

    if (cli_state_find(inv, &state_dir, &exists, &err) < 0 ||
        (exists && (notify_read(state_dir, &inv->mem, &config, &err) < 0 ||
                    notify_tally_read(state_dir, &tally, &err) < 0)))
        return cli_error(inv, &err);
    if (inv->json)
        return cli_json(inv, shown(&inv->mem, &config, &tally));
    print_shown(inv, &config, &tally);
    return 0;
}

/* ---- set and remove ---- */

/* By a governor of no rules: nothing of it is decided. */
static int change(struct invocation *inv, const struct notify_config *config, struct str secret)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {.by_no_rules = true};
    struct run run;
    struct err err;
    int status = 0;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    if (govern_notify_set(call.govern, &call.request, config, secret, &run, &err) < 0)
        status = cli_error(inv, &err);
    else if (inv->json)
        status = cli_json(inv, view_policy_change(&inv->mem, &run));
    else
        (void)fprintf(inv->out, "%s from now on; receipt %s\n",
                      config ? "this is who is told" : "nobody is told", run.closing.id);
    run_done(&run);
    return status;
}

static int read_secret(const char *file, char room[NOTIFY_SECRET_TEXT_MAX], struct str *out,
                       struct err *err)
{
    AUTO_FD int fd = strcmp(file, "-") == 0 ? dup(STDIN_FILENO) : open(file, O_RDONLY | O_CLOEXEC);

    return fd < 0 ? err_os(err, "opening %s", file) : notify_secret_read(fd, room, out, err);
}

static int set(struct invocation *inv)
{
    char room[NOTIFY_SECRET_TEXT_MAX] = "";
    struct str secret = {0};
    const char *file = option_text(inv, "--secret-file");
    const struct notify_config config = {
        .webhook = option_text(inv, "--webhook"),
        .command = option_text(inv, "--command"),
        .args = option_words(inv, "--arg"),
    };
    struct err err;
    int status;

    if ((config.webhook != NULL) != (file != NULL)) {
        (void)err_set(&err, ERR_INVALID, "--webhook and --secret-file go together");
        return cli_error(inv, &err);
    }
    if (!config.command && config.args.n) {
        (void)err_set(&err, ERR_INVALID, "--arg belongs to a --command");
        return cli_error(inv, &err);
    }
    if (file && read_secret(file, room, &secret, &err) < 0)
        status = cli_error(inv, &err);
    else
        status = change(inv, &config, secret);
    secret_wipe(room, sizeof room);
    return status;
}

/* ---- test and send ---- */

static struct json *report_json(struct arena *mem, const struct notify_report *report)
{
    struct json *json = json_object(mem);

    if (report->has_webhook) {
        json_put_bool(mem, json, "webhook_ok", report->webhook_ok);
        if (!report->webhook_ok)
            json_put_text(mem, json, "webhook_error", report->webhook_error);
    }
    if (report->has_command) {
        json_put_bool(mem, json, "command_ok", report->command_ok);
        if (!report->command_ok)
            json_put_text(mem, json, "command_error", report->command_error);
    }
    return json;
}

static void print_test(struct invocation *inv, const char *who, bool ok, const char *why)
{
    (void)fprintf(inv->out, "%s: ", who);
    print_escaped(inv->out, str_of(ok ? "it was told" : why));
    (void)fputc('\n', inv->out);
}

static int test(struct invocation *inv)
{
    const struct notify_event event = {.type = "notify.test"};
    AUTO_BUF struct buf body = BUF(NOTIFY_BODY_MAX);
    struct notify_report report;
    const char *state_dir = NULL;
    struct err err;

    if (cli_state(inv, &state_dir, &err) < 0 || notify_event_text(&event, &body, &err) < 0 ||
        notify_deliver(state_dir, buf_str(&body), &report, &err) < 0)
        return cli_error(inv, &err);
    if (!report.has_webhook && !report.has_command) {
        (void)err_set(&err, ERR_NOT_FOUND, "nobody is to be told; see \"approvals notify set\"");
        return cli_error(inv, &err);
    }
    if (inv->json)
        (void)cli_json(inv, report_json(&inv->mem, &report));
    if (!inv->json && report.has_webhook)
        print_test(inv, "webhook", report.webhook_ok, report.webhook_error);
    if (!inv->json && report.has_command)
        print_test(inv, "command", report.command_ok, report.command_error);
    return report.webhook_ok == report.has_webhook && report.command_ok == report.has_command
               ? 0
               : cli_status(inv, ERR_UNAVAILABLE);
}

/* What flow/notify starts, and nobody types. */
static int deliver(struct invocation *inv)
{
    const char *state_dir = NULL;
    struct err err;

    return cli_state(inv, &state_dir, &err) < 0 || notify_send(state_dir, STDIN_FILENO, &err) < 0
               ? cli_error(inv, &err)
               : 0;
}

int run_approvals_notify(struct invocation *inv)
{
    static const struct {
        const char *name;
        int (*run)(struct invocation *inv);
    } verbs[] = {
        {"show", show   },
        {"set",  set    },
        {"test", test   },
        {"send", deliver},
    };
    const char *verb = inv->operands.n ? inv->operands.v[0] : "show";
    struct err err;

    for (size_t i = 0; i < COUNT(verbs); i++)
        if (strcmp(verbs[i].name, verb) == 0)
            return verbs[i].run(inv);
    if (strcmp(verb, "remove") == 0)
        return change(inv, NULL, (struct str){0});
    (void)err_set(&err, ERR_INVALID, "write \"show\", \"set\", \"remove\" or \"test\"");
    return cli_error(inv, &err);
}
