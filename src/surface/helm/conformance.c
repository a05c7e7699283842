/* SPDX-License-Identifier: Apache-2.0 */

/* Conformance: the checks of "brig sandbox conform", run for real, and their reports kept beside
 * the ledger. */

#include "surface/helm/helm-private.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#define REPORT_MAX (256 * KIB)
#define REPORTS "conformance"

struct run_body {
    const char *level;
    const char *profile;
};

/* clang-format off */
static const struct field run_fields[] = {
    {"level", FIELD_TEXT, offsetof(struct run_body, level), .required = true,
     .choices = "L1 L2 L3", .help = "compatible, verified, sovereign."},
    {"profile", FIELD_TEXT, offsetof(struct run_body, profile), .max = 64,
     .help = "Taken and not used: there is one set of checks."},
    {0},
};
/* clang-format on */

struct tally {
    struct arena *mem;
    struct json *details;
    int64_t gates, failed;
};

static void on_check(void *context, const char *name, bool passed, const char *why)
{
    struct tally *tally = context;

    tally->gates++;
    tally->failed += !passed;
    json_put(
        tally->details, name,
        json_text(tally->mem, str_of(passed ? "PASS" : arena_printf(tally->mem, "FAIL: %s", why))));
}

static struct json *report_json(struct call *call, const char *id, const char *level,
                                const struct tally *tally, bool all)
{
    struct json *report = json_object(&call->mem);

    json_put_text(&call->mem, report, "report_id", id);
    json_put_text(&call->mem, report, "level", level);
    json_put_text(&call->mem, report, "verdict", all ? "PASS" : "FAIL");
    json_put_int(&call->mem, report, "gates", tally->gates);
    json_put_int(&call->mem, report, "failed", tally->failed);
    json_put(report, "details", tally->details);
    return report;
}

static const char *report_path(struct call *call, const char *id)
{
    return arena_printf(&call->mem, "%s/" REPORTS "/%s.json", tenant_state_dir(call->tenant), id);
}

static int keep(struct call *call, const char *id, struct err *err)
{
    const char *dir = arena_printf(&call->mem, "%s/" REPORTS, tenant_state_dir(call->tenant));

    return dir_make(dir, 0700, err) < 0
               ? -1
               : file_replace(report_path(call, id), call->answer.p, call->answer.n, 0600, err);
}

static int run_it(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct run_body *wanted = body;
    const enum conform_tier tier = (enum conform_tier)(wanted->level[1] - '1');
    struct request request = call_request(call, ACTION_RUN);
    struct tally tally = {.mem = &call->mem, .details = json_object(&call->mem)};
    char id[ID_BYTES];
    struct lent lent;
    bool all;

    (void)query;
    if (call_govern(call, &lent, err) < 0)
        return -1;
    all = govern_conform(lent.govern, &request, tier, on_check, &tally);
    call_release(call, &lent);
    id_new(id);
    if (call_answer(call, 200, report_json(call, id, wanted->level, &tally, all), err) < 0)
        return -1;
    return keep(call, id, err);
}

static bool is_id(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789");

    return n > 0 && n < ID_BYTES && !text[n];
}

static int show(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO_BUF struct buf text = BUF(REPORT_MAX);
    struct err why;

    (void)body;
    (void)query;
    if (!is_id(call->params[0]) ||
        file_read(AT_FDCWD, report_path(call, call->params[0]), &text, &why) < 0)
        return err_set(err, ERR_NOT_FOUND, "there is no such report");
    return call_answer_bytes(call, 200, "application/json", buf_str(&text), err);
}

/* clang-format off */
const struct route helm_routes_conformance[] = {
    {.method = HTTP_POST,
     .path = "/api/v1/conformance/run",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .body = BODY_JSON,
     .fields = run_fields,
     .body_size = sizeof(struct run_body),
     .name = "helmRunConformance",
     .summary = "Hold the local provider to what is promised of it.",
     .answer = "The report: how many gates there were, how many failed, and each of them.",
     .refusal = HELM_REFUSAL,
     .handle = run_it},
    {.method = HTTP_GET,
     .path = "/api/v1/conformance/reports/{id}",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .name = "helmGetConformance",
     .summary = "A report as it was made.",
     .answer = "The report.",
     .refusal = HELM_REFUSAL,
     .handle = show},
    {0},
};
/* clang-format on */
