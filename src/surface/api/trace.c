/* SPDX-License-Identifier: Apache-2.0 */

/* What is told of a call to those who watch: a line of the log and, where there is a collector, the
 * same as a record, and spans: the request, what it ran, and each stage of that.
 *
 * A run is told by its ids, its verdict and its end. What was run, with which environment, and what
 * came out is in the receipts, for those who may read them: nothing here looks at it. */

#include "surface/api/api-private.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "model/run.h"
#include "surface/api/telemetry.h"

#define LINE_MAX_BYTES (4 * KIB)
#define FACTS_MAX 20

/* What is left of a run when it is let go. */
struct run_note {
    struct run_note *next;
    enum action_kind kind;
    char id[ID_BYTES];
    char sandbox_id[ID_BYTES];
    char receipt_id[ID_BYTES];
    enum verdict_kind verdict;
    enum reason reason;
    bool failed; /* by us, not by the command */
    bool ended;
    int exit_code; /* when signal is 0 */
    int signal;
    uint64_t duration_us;
    uint64_t entered_us[STAGES];
    uint64_t let_go_us;
};

void call_note_run(void *context, const struct run *run)
{
    struct call *call = context;
    bool allowed = run->verdict.kind == VERDICT_ALLOW;
    const struct receipt_ref *last = run->closing.id[0] ? &run->closing : &run->intent;
    struct run_note *note;

    if (call->trace.run_n == OTLP_RUNS_MAX)
        return;
    note = arena_alloc(&call->mem, sizeof *note);
    *note = (struct run_note){
        .next = call->trace.runs,
        .kind = run->action.kind,
        .verdict = run->verdict.kind,
        .reason = allowed && run->outcome.reason ? run->outcome.reason : run->verdict.reason,
        .failed = run->outcome.failure != NULL,
        .ended = run->outcome.started && run->outcome.ended,
        .exit_code = run->outcome.exit_code,
        .signal = run->outcome.signal,
        .duration_us = run->outcome.duration_us,
        .let_go_us = clock_us(),
    };
    memcpy(note->id, run->id, sizeof note->id);
    memcpy(note->sandbox_id, run->sandbox_id, sizeof note->sandbox_id);
    memcpy(note->receipt_id, last->id, sizeof note->receipt_id);
    memcpy(note->entered_us, run->entered_us, sizeof note->entered_us);
    call->trace.runs = note;
    call->trace.run_n++;
}

/* ---- whose trace it is ---- */

/* A caller's trace goes on; two of them are none. */
static bool has_parent(const struct http_head *head, struct trace_context *out)
{
    struct str value, other;
    size_t at = 0;

    return http_find_next(head, "traceparent", &at, &value) &&
           !http_find_next(head, "traceparent", &at, &other) && traceparent_parse(value, out);
}

void call_trace(struct call *call, const struct http_head *head)
{
    struct call_trace *trace = &call->trace;
    struct trace_context parent;
    char text[TRACEPARENT_BYTES];

    if (has_parent(head, &parent)) {
        trace->own = parent;
        memcpy(trace->parent_id, parent.span_id, sizeof trace->parent_id);
    } else if (call->api->telemetry) {
        trace_id_new(trace->own.trace_id);
        trace->own.sampled = true;
    } else {
        return;
    }
    span_id_new(trace->own.span_id);
    traceparent_write(&trace->own, text);
    call_header(call, "traceparent", text);
}

/* ---- facts ---- */

/* One list for all: attributes of a record, members of a line. */
struct telling {
    struct otlp_attribute of[FACTS_MAX];
    size_t n;
};

static void add_text(struct telling *facts, const char *key, const char *text)
{
    facts->of[facts->n++] = (struct otlp_attribute){key, text, 0};
}

static void add_number(struct telling *facts, const char *key, int64_t number)
{
    facts->of[facts->n++] = (struct otlp_attribute){key, NULL, number};
}

static void add_request(struct telling *facts, const struct call *call, int status)
{
    add_text(facts, "http.request.method", http_method_name(call->route->method));
    add_text(facts, "http.route", call->route->path);
    add_number(facts, "http.response.status_code", status);
    add_text(facts, "brig.route", call->route->name);
    add_text(facts, "brig.request_id", call->id);
    add_text(facts, "brig.tenant", call->caller.tenant);
    add_text(facts, "brig.principal", call->caller.principal);
}

static const char *end_name(const struct run_note *note)
{
    return note->signal ? "brig.signal" : "brig.exit_code";
}

static int end_number(const struct run_note *note)
{
    return note->signal ? note->signal : note->exit_code;
}

static void add_run(struct telling *facts, const struct run_note *note)
{
    add_text(facts, "brig.run_id", note->id);
    add_text(facts, "brig.action", action_name(note->kind));
    add_text(facts, "brig.sandbox_id", note->sandbox_id);
    add_text(facts, "brig.receipt_id", note->receipt_id);
    add_text(facts, "brig.verdict", verdict_name(note->verdict));
    add_text(facts, "brig.reason_code", note->reason ? reason_code(note->reason) : "");
    if (note->ended)
        add_number(facts, end_name(note), end_number(note));
    if (note->duration_us)
        add_number(facts, "brig.duration_us", (int64_t)note->duration_us);
}

/* ---- the log ---- */

static void put_run(struct arena *mem, struct json *line, const struct run_note *note)
{
    json_put_text(mem, line, "run_id", note->id);
    json_put_text(mem, line, "sandbox_id", note->sandbox_id);
    json_put_text(mem, line, "receipt_id", note->receipt_id);
    json_put_text(mem, line, "verdict", verdict_name(note->verdict));
    if (note->reason)
        json_put_text(mem, line, "reason_code", reason_code(note->reason));
    if (note->ended)
        json_put_int(mem, line, end_name(note) + strlen("brig."), end_number(note));
}

static void write_line(struct call *call, int status, uint64_t took_us)
{
    AUTO_BUF struct buf text = BUF(LINE_MAX_BYTES);
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    struct json *line = json_object(&mem);
    char now[TIMESTAMP_BYTES];
    struct err ignored; /* a log that cannot be written has nobody to tell */

    clock_timestamp(now);
    json_put_text(&mem, line, "level", status >= 500 ? "error" : "info");
    json_put_text(&mem, line, "event", "request");
    json_put_text(&mem, line, "request_id", call->id);
    json_put_text(&mem, line, "route", call->route->name);
    json_put_int(&mem, line, "status", status);
    json_put_int(&mem, line, "duration_us", (int64_t)took_us);
    json_put_text(&mem, line, "tenant", call->caller.tenant);
    json_put_text(&mem, line, "principal", call->caller.principal);
    json_put_text(&mem, line, "time", now);
    if (call->trace.own.trace_id[0]) {
        json_put_text(&mem, line, "trace_id", call->trace.own.trace_id);
        json_put_text(&mem, line, "span_id", call->trace.own.span_id);
    }
    if (call->trace.runs)
        put_run(&mem, line, call->trace.runs);
    if (json_compact(line, &text, &ignored) == 0 && buf_add_byte(&text, '\n', &ignored) == 0)
        (void)fwrite(text.p, 1, text.n, stderr);
}

static void tell_record(const struct call *call, int status, uint64_t now_ns)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    struct telling facts = {.n = 0};
    struct otlp_log log = {.at_ns = now_ns,
                           .severity = status >= 500 ? OTLP_ERROR : OTLP_INFO,
                           .body = "request",
                           .trace_id = call->trace.own.trace_id,
                           .span_id = call->trace.own.span_id,
                           .attributes = facts.of};

    add_request(&facts, call, status);
    if (call->trace.runs)
        add_run(&facts, call->trace.runs);
    log.attribute_n = facts.n;
    telemetry_send(call->api->telemetry, OTLP_LOGS, otlp_log_json(&mem, &log));
}

/* ---- spans ---- */

struct spans {
    struct arena mem;
    struct json *list;
    const char *trace_id;
    uint64_t now_us, now_ns;
};

/* All by one look at both clocks, so that their order is that of the steady one. */
static uint64_t wall_ns(const struct spans *spans, uint64_t at_us)
{
    return spans->now_ns - 1000U * (spans->now_us - at_us);
}

static void add_span(struct spans *spans, struct otlp_span span, uint64_t began_us,
                     uint64_t ended_us, const struct telling *facts)
{
    span.trace_id = spans->trace_id;
    span.began_ns = wall_ns(spans, began_us);
    span.ended_ns = wall_ns(spans, ended_us);
    span.attributes = facts->of;
    span.attribute_n = facts->n;
    json_push(spans->list, otlp_span_json(&spans->mem, &span));
}

/* Until the next stage that was entered. */
static uint64_t stage_end(const struct run_note *note, unsigned stage)
{
    while (++stage < STAGES)
        if (note->entered_us[stage])
            return note->entered_us[stage];
    return note->let_go_us;
}

static void add_stages(struct spans *spans, const struct run_note *note, const char *parent_id)
{
    const struct telling none = {.n = 0};

    for (unsigned stage = 0; stage < STAGE_END; stage++) {
        char id[SPAN_ID_TEXT_BYTES];

        if (!note->entered_us[stage])
            continue;
        span_id_new(id);
        add_span(spans,
                 (struct otlp_span){.span_id = id,
                                    .parent_id = parent_id,
                                    .name = stage_name((enum stage)stage),
                                    .kind = OTLP_SPAN_INTERNAL},
                 note->entered_us[stage], stage_end(note, stage), &none);
    }
}

static void add_run_span(struct spans *spans, const struct run_note *note, const char *parent_id)
{
    struct telling facts = {.n = 0};
    char id[SPAN_ID_TEXT_BYTES];

    span_id_new(id);
    add_run(&facts, note);
    add_span(spans,
             (struct otlp_span){.span_id = id,
                                .parent_id = parent_id,
                                .name = action_name(note->kind),
                                .kind = OTLP_SPAN_INTERNAL,
                                .failed = note->failed},
             note->entered_us[STAGE_ADMIT],
             note->entered_us[STAGE_END] ? note->entered_us[STAGE_END] : note->let_go_us, &facts);
    add_stages(spans, note, id);
}

static void tell_spans(const struct call *call, int status, uint64_t took_us, uint64_t now_ns)
{
    const struct trace_context *own = &call->trace.own;
    struct spans spans = {.mem = ARENA(1 * MIB),
                          .trace_id = own->trace_id,
                          .now_us = call->began_us + took_us,
                          .now_ns = now_ns};
    struct telling facts = {.n = 0};

    spans.list = json_array(&spans.mem);
    add_request(&facts, call, status);
    add_span(&spans,
             (struct otlp_span){.span_id = own->span_id,
                                .parent_id = call->trace.parent_id,
                                .name = call->route->name,
                                .kind = OTLP_SPAN_SERVER,
                                .failed = status >= 500},
             call->began_us, spans.now_us, &facts);
    for (const struct run_note *note = call->trace.runs; note; note = note->next)
        add_run_span(&spans, note, own->span_id);
    telemetry_send_all(call->api->telemetry, OTLP_TRACES, spans.list);
    arena_done(&spans.mem);
}

void call_tell(struct call *call, int status, uint64_t took_us)
{
    uint64_t now_ns = clock_wall_ns();

    write_line(call, status, took_us);
    if (!call->api->telemetry)
        return;
    tell_record(call, status, now_ns);
    if (call->trace.own.sampled)
        tell_spans(call, status, took_us, now_ns);
}
