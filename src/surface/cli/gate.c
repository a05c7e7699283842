/* SPDX-License-Identifier: Apache-2.0 */

/* brig gate: when an agent may do more than advise. */

#include "flow/advise/advise.h"

#include "flow/approve/approve.h"
#include "lib/base/text.h"
#include "lib/json/json.h"
#include "surface/cli/passphrase.h"
#include "surface/cli/sandbox.h"
#include "surface/view/view.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLOSED_STATUS 13 /* as an action that was aborted */
#define SECONDS_DIGITS_MAX 10
#define DAY_MS (24 * 60 * 60 * 1000ULL)

struct gate_call {
    struct sandbox_call call;
    struct gate_report report;
    struct gate_words words;
};

static int look(struct invocation *inv, struct gate_call *gate, int *status)
{
    uint64_t n = option_number(inv, "--runs");
    struct err err;

    inv->mem.max = ADVISE_MEMORY_MAX; /* an agent may have had 100 000 runs */
    if (sandbox_call_open(inv, &gate->call, status) < 0)
        return -1;
    if (govern_gate_look(gate->call.govern, &inv->mem, inv->operands.v[0],
                         option_text(inv, "--agent-version"),
                         n > GATE_RUNS_MAX ? GATE_RUNS_MAX + 1 : (unsigned)n, &gate->report,
                         &gate->words, &err) == 0)
        return 0;
    *status = cli_error(inv, &err);
    return -1;
}

/* timegm() makes the third of March of the thirty-first of February. */
static bool is_in_calendar(struct tm tm, int64_t *out)
{
    struct tm made = tm;

    *out = (int64_t)timegm(&made);
    return made.tm_mday == tm.tm_mday && made.tm_mon == tm.tm_mon && made.tm_sec == tm.tm_sec;
}

/* Until when, as somebody says it: seconds since 1970, a day or moment (UTC), or how long from now.
 */
static bool moment_of(const char *text, int64_t *out)
{
    static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"};
    size_t digits = strspn(text, "0123456789");
    const char *end;
    uint64_t ms = 0;
    struct err err;

    for (size_t i = 0; i < COUNT(forms); i++) {
        struct tm tm = {0};

        end = strptime(text, forms[i], &tm);
        if (end && !*end)
            return is_in_calendar(tm, out);
    }
    if (digits == 0 || digits > SECONDS_DIGITS_MAX)
        return false;
    *out = (int64_t)strtoll(text, NULL, 10);
    if (!text[digits])
        return *out > 0;
    if (strcmp(text + digits, "d") == 0)
        ms = (uint64_t)*out * DAY_MS;
    else if (duration_parse(str_of(text), &ms, &err) < 0)
        return false;
    *out = (int64_t)time(NULL) + (int64_t)(ms / 1000);
    return true;
}

static int read_signoff(struct invocation *inv, struct gate_signoff *out, struct err *err)
{
    const char *asked = option_text(inv, "--expires-at");

    *out = (struct gate_signoff){option_text(inv, "--as"), (int64_t)time(NULL) + GATE_VALID_S};
    if (!asked || moment_of(asked, &out->expires_at))
        return 0;
    return err_set(err, ERR_INVALID,
                   "--expires-at %.64s: write a day (2026-12-01), a moment (2026-12-01T08:00:00Z), "
                   "how long from now (36h, 7d) or seconds since 1970",
                   asked);
}

/* ---- report ---- */

static bool is_met(const struct gate_call *gate)
{
    return gate->report.all_passed && gate->words.valid >= GATE_SIGNATURES;
}

/* The sixth: on the hash of the other five. */
static struct json *signed_json(struct arena *mem, const struct gate_words *words)
{
    struct json *json = json_object(mem);

    json_put_text(mem, json, "name", "two_custodians");
    json_put_bool(mem, json, "passed", words->valid >= GATE_SIGNATURES);
    json_put(json, "words", words->list);
    return json;
}

static void print_condition(struct invocation *inv, const struct json *one)
{
    const struct json *passed = json_get(one, "passed");
    const struct json *evidence = json_get(one, "evidence");

    (void)fprintf(inv->out, "%s  " STR_FMT "\n", passed->boolean ? "met    " : "not met",
                  STR_ARG(json_get(one, "name")->text));
    for (const struct json *line = evidence->first; line; line = line->next) {
        (void)fputs("           ", inv->out);
        print_escaped(inv->out, line->text);
        (void)fputc('\n', inv->out);
    }
}

static void print_signed(struct invocation *inv, unsigned valid)
{
    unsigned more = valid > GATE_SIGNATURES ? valid - GATE_SIGNATURES : 0;

    (void)fprintf(inv->out, "%s  two_custodians (%u of %d",
                  valid >= GATE_SIGNATURES ? "met    " : "not met", valid - more, GATE_SIGNATURES);
    if (more)
        (void)fprintf(inv->out, ", and %u more", more);
    (void)fputs(")\n", inv->out);
}

static void print_report(struct invocation *inv, const struct gate_call *gate)
{
    const struct gate_report *report = &gate->report;

    (void)fprintf(inv->out, "agent %s %s%s\nreport %s over %zu of %u runs\n", report->agent_id,
                  report->agent_version,
                  report->is_claimed ? ", as a harness claims: Brig has not seen it run" : "",
                  report->sha256, report->run_n, report->n);
    json_each(one, json_get(report->json, "conditions")) print_condition(inv, one);
    print_signed(inv, gate->words.valid);
}

/* For one who signs elsewhere; none that would be refused afterwards. */
static int put_preimage(struct invocation *inv, const struct gate_call *gate,
                        const struct gate_signoff *signoff, struct json *doc, struct err *err)
{
    char text[HASH_TEXT_BYTES];
    struct hash preimage;

    if (govern_gate_may_sign(gate->call.govern, &gate->report, signoff->custodian, err) < 0 ||
        gate_preimage(&gate->report, signoff, &preimage, err) < 0)
        return -1;
    hash_text(&preimage, text);
    json_put_text(&inv->mem, doc, "preimage", text);
    json_put(doc, "signed", gate_signed(&inv->mem, &gate->report, signoff));
    json_put_int(&inv->mem, doc, "expires_at", signoff->expires_at);
    return 0;
}

static int put_report(struct invocation *inv, const struct gate_call *gate, struct json *doc,
                      struct err *err)
{
    struct gate_signoff signoff;

    json_each(member, gate->report.json) json_copy_member(&inv->mem, doc, member);
    json_put_text(&inv->mem, doc, "gate_report_sha256", gate->report.sha256);
    json_put_bool(&inv->mem, doc, "met", is_met(gate));
    json_put(doc, "signatures", signed_json(&inv->mem, &gate->words));
    if (read_signoff(inv, &signoff, err) < 0)
        return -1;
    return signoff.custodian ? put_preimage(inv, gate, &signoff, doc, err) : 0;
}

static int show_report(struct invocation *inv, const struct gate_call *gate, const struct json *doc)
{
    const struct json *preimage = json_get(doc, "preimage");
    int64_t until = 0;

    if (inv->json)
        return cli_json(inv, doc);
    print_report(inv, gate);
    if (preimage && json_is_int(json_get(doc, "expires_at"), &until))
        (void)fprintf(inv->out, "preimage " STR_FMT ", holds until %s\n", STR_ARG(preimage->text),
                      view_moment(&inv->mem, until));
    return 0;
}

int run_gate_report(struct invocation *inv)
{
    struct gate_call gate = {0};
    struct json *doc = json_object(&inv->mem);
    struct err err;
    int status;

    if (look(inv, &gate, &status) == 0) {
        if (put_report(inv, &gate, doc, &err) < 0)
            status = cli_error(inv, &err);
        else if ((status = show_report(inv, &gate, doc)) == 0)
            status = is_met(&gate) ? 0 : CLOSED_STATUS;
    }
    sandbox_call_done(&gate.call);
    return status;
}

/* ---- sign ---- */

static int given_signature(const char *hex, struct signature *out, struct err *err)
{
    return hex_decode(str_of(hex), out->b, sizeof out->b)
               ? 0
               : err_set(err, ERR_INVALID, "--signature: write %d hex digits, lower case",
                         2 * SIGNATURE_BYTES);
}

static int make_signature(struct invocation *inv, const struct gate_report *report,
                          const struct gate_signoff *signoff, struct signature *out,
                          struct err *err)
{
    AUTO(approvals) struct approvals *approvals = NULL;
    const char *state_dir = NULL;
    struct str passphrase = {0};
    struct hash preimage;
    int failed;

    if (cli_state(inv, &state_dir, err) < 0 || approvals_open(state_dir, &approvals, err) < 0 ||
        gate_preimage(report, signoff, &preimage, err) < 0 ||
        passphrase_read(inv, option_text(inv, "--passphrase-file"), "Passphrase: ", &passphrase,
                        err) < 0)
        return -1;
    failed = custodian_sign(approvals, signoff->custodian, passphrase, &preimage, out, err);
    passphrase_wipe(passphrase);
    return failed;
}

static int sign(struct invocation *inv, struct gate_call *gate, struct run *run, struct err *err)
{
    struct gate_signoff signoff;
    const char *hex = option_text(inv, "--signature");
    const char *read = option_text(inv, "--report");
    struct signature signature;

    if (read_signoff(inv, &signoff, err) < 0)
        return -1;
    if (!signoff.custodian)
        return err_set(err, ERR_INVALID, "who signs? --as NAME (\"brig approvals custodians\")");
    if (read && strcmp(read, gate->report.sha256) != 0)
        return err_set(err, ERR_CONFLICT, "the report is another one now: %s; read it again",
                       gate->report.sha256);
    if ((hex ? given_signature(hex, &signature, err)
             : make_signature(inv, &gate->report, &signoff, &signature, err)) < 0)
        return -1;
    return govern_gate_sign(gate->call.govern, &gate->call.request, &gate->report, &signoff,
                            &signature, run, err);
}

static int print_done(struct invocation *inv, const struct gate_call *gate, const char *what,
                      const struct run *run)
{
    struct json *doc = json_object(&inv->mem);

    json_put_text(&inv->mem, doc, "agent_id", inv->operands.v[0]);
    if (gate->report.json) {
        json_put_text(&inv->mem, doc, "agent_version", gate->report.agent_version);
        json_put_text(&inv->mem, doc, "gate_report_sha256", gate->report.sha256);
    }
    json_put_text(&inv->mem, doc, "receipt_id", run->closing.id);
    json_put_text(&inv->mem, doc, "state", what);
    if (inv->json)
        return cli_json(inv, doc);
    (void)fprintf(inv->out, "%s %s; receipt %s\n", what, inv->operands.v[0], run->closing.id);
    return 0;
}

static int do_gate(struct invocation *inv, const char *what,
                   int (*work)(struct invocation *inv, struct gate_call *gate, struct run *run,
                               struct err *err))
{
    struct gate_call gate = {0};
    struct run run;
    struct err err;
    int status;

    run_init(&run);
    if (look(inv, &gate, &status) == 0)
        status = work(inv, &gate, &run, &err) < 0 ? cli_error(inv, &err)
                                                  : print_done(inv, &gate, what, &run);
    run_done(&run);
    sandbox_call_done(&gate.call);
    return status;
}

int run_gate_sign(struct invocation *inv)
{
    return do_gate(inv, "signed", sign);
}

static int release(struct invocation *inv, struct gate_call *gate, struct run *run, struct err *err)
{
    (void)inv;
    return govern_gate_release(gate->call.govern, &gate->call.request, &gate->report, run, err);
}

int run_gate_release(struct invocation *inv)
{
    return do_gate(inv, "released", release);
}

/* ---- revoke, status ---- */

int run_gate_revoke(struct invocation *inv)
{
    struct gate_call gate = {0};
    struct run run;
    struct err err;
    int status;

    if (sandbox_call_open(inv, &gate.call, &status) < 0)
        return status;
    run_init(&run);
    status =
        govern_gate_revoke(gate.call.govern, &gate.call.request, inv->operands.v[0], &run, &err) < 0
            ? cli_error(inv, &err)
            : print_done(inv, &gate, "revoked", &run);
    run_done(&run);
    sandbox_call_done(&gate.call);
    return status;
}

int run_gate_status(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct json *doc = json_object(&inv->mem);
    struct gate_report report = {0};
    const char *why;
    int status;

    inv->mem.max = ADVISE_MEMORY_MAX;
    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    why = govern_gate_stands(call.govern, &inv->mem, inv->operands.v[0], NULL, &report);
    json_put_text(&inv->mem, doc, "agent_id", inv->operands.v[0]);
    json_put_text(&inv->mem, doc, "agent_version",
                  report.agent_version ? report.agent_version : "");
    json_put_bool(&inv->mem, doc, "released", why == NULL);
    json_put_text(&inv->mem, doc, "why_not", why ? why : "");
    if (inv->json) {
        (void)cli_json(inv, doc);
    } else if (!why) {
        (void)fprintf(inv->out, "released: %s %s\n", inv->operands.v[0], report.agent_version);
    } else {
        (void)fprintf(inv->out, "not released: ");
        print_escaped(inv->out, str_of(why));
        (void)fputc('\n', inv->out);
    }
    return why ? CLOSED_STATUS : 0;
}
