/* SPDX-License-Identifier: Apache-2.0 */

/* The deployment gate over HTTP, to look at. Signing and releasing is the command line's. */

#include "flow/advise/advise.h"

#include "surface/api/call.h"
#include "surface/api/tables.h"

struct gate_query {
    const char *agent_version;
    uint64_t runs;
};

/* clang-format off */
static const struct field gate_fields[] = {
    {"agent_version", FIELD_TEXT, offsetof(struct gate_query, agent_version), .max = ADVISE_NAME_MAX,
     .help = "Of the last run by default."},
    {"runs", FIELD_COUNT, offsetof(struct gate_query, runs), .min = 1, .max = GATE_RUNS_MAX, .help = "10 by default."},
    {0},
};
/* clang-format on */

static struct json *signatures_json(struct arena *mem, const struct gate_words *words)
{
    struct json *json = json_object(mem);

    json_put_text(mem, json, "name", "two_custodians");
    json_put_bool(mem, json, "passed", words->valid >= GATE_SIGNATURES);
    json_put(json, "words", words->list);
    return json;
}

static struct json *gate_json(struct arena *mem, const struct gate_report *report,
                              const struct gate_words *words, const char *why)
{
    struct json *json = json_object(mem);

    json_each(member, report->json) json_copy_member(mem, json, member);
    json_put_text(mem, json, "gate_report_sha256", report->sha256);
    json_put_bool(mem, json, "met", report->all_passed && words->valid >= GATE_SIGNATURES);
    json_put(json, "signatures", signatures_json(mem, words));
    json_put_bool(mem, json, "released", why == NULL);
    json_put_text(mem, json, "why_not", why ? why : "");
    return json;
}

static int show(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct gate_query *asked = query;
    struct gate_report report = {0}, released = {0};
    struct gate_words words = {0};
    struct lent lent;
    const char *why = NULL;
    int failed;

    (void)body;
    if (call_govern(call, &lent, err) < 0)
        return -1;
    failed = govern_gate_look(lent.govern, &call->mem, call->params[0], asked->agent_version,
                              (unsigned)asked->runs, &report, &words, err);
    if (!failed)
        why = govern_gate_stands(lent.govern, &call->mem, call->params[0], asked->agent_version,
                                 &released);
    call_release(call, &lent);
    return failed ? -1 : call_answer(call, 200, gate_json(&call->mem, &report, &words, why), err);
}

/* clang-format off */
const struct route routes_gate[] = {
    {.method = HTTP_GET,
     .path = "/v1/gate/{agent}",
     .kind = ROUTE_RUN,
     .scope = SCOPE_READ,
     .query = gate_fields,
     .query_size = sizeof(struct gate_query),
     .name = "showGate",
     .summary = "Whether an agent may do more than advise.",
     .answer = "The report over its last runs, who signed it, and whether a release stands at this moment. evidence is "
               "claimed when the version of a run is what a harness said. 404: it has no run.",
     .handle = show},
    {0},
};
/* clang-format on */
