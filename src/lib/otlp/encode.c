/* SPDX-License-Identifier: Apache-2.0 */

/* From our structs to the JSON of opentelemetry-proto. Nothing is written that is not named here:
 * there is no way for an argument, an environment or an output into it. */

#include "lib/otlp/otlp.h"

#include "lib/base/limits.h"
#include "lib/json/json.h"

#include <string.h>

#define STATUS_ERROR 2
#define TEMPORALITY_CUMULATIVE 2

static const struct {
    const char *path;
    const char *resources, *scopes, *items; /* the lists around an item */
} signals[OTLP_SIGNALS] = {
    [OTLP_TRACES] = {"/v1/traces",  "resourceSpans",   "scopeSpans",   "spans"     },
    [OTLP_LOGS] = {"/v1/logs",    "resourceLogs",    "scopeLogs",    "logRecords"},
    [OTLP_METRICS] = {"/v1/metrics", "resourceMetrics", "scopeMetrics", "metrics"   },
};

const char *otlp_path(enum otlp_signal signal)
{
    return signals[signal].path;
}

/* 64-bit numbers are text in protobuf's JSON: a double would not hold them. */
static struct json *wide(struct arena *mem, uint64_t number)
{
    return json_text(mem, str_of(arena_printf(mem, "%llu", (unsigned long long)number)));
}

static struct json *real(struct arena *mem, double number)
{
    struct json *node = json_int(mem, 0);

    node->text = str_of(arena_printf(mem, "%.17g", number));
    return node;
}

static struct json *value_json(struct arena *mem, const struct otlp_attribute *attribute)
{
    struct json *value = json_object(mem);

    if (attribute->text)
        json_put_text(mem, value, "stringValue", attribute->text);
    else
        json_put_text(mem, value, "intValue",
                      arena_printf(mem, "%lld", (long long)attribute->number));
    return value;
}

static struct json *attributes_json(struct arena *mem, const struct otlp_attribute *attributes,
                                    size_t n)
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < n; i++) {
        struct json *pair;

        if (!attributes[i].key || (attributes[i].text && !*attributes[i].text))
            continue;
        pair = json_object(mem);
        json_put_text(mem, pair, "key", attributes[i].key);
        json_put(pair, "value", value_json(mem, &attributes[i]));
        json_push(list, pair);
    }
    return list;
}

struct json *otlp_span_json(struct arena *mem, const struct otlp_span *span)
{
    struct json *root = json_object(mem);

    json_put_text(mem, root, "traceId", span->trace_id);
    json_put_text(mem, root, "spanId", span->span_id);
    if (*span->parent_id)
        json_put_text(mem, root, "parentSpanId", span->parent_id);
    json_put_text(mem, root, "name", span->name);
    json_put_int(mem, root, "kind", span->kind);
    json_put(root, "startTimeUnixNano", wide(mem, span->began_ns));
    json_put(root, "endTimeUnixNano", wide(mem, span->ended_ns));
    json_put(root, "attributes", attributes_json(mem, span->attributes, span->attribute_n));
    if (span->failed) {
        struct json *status = json_object(mem);

        json_put_int(mem, status, "code", STATUS_ERROR);
        json_put(root, "status", status);
    }
    return root;
}

static const char *severity_text(enum otlp_severity severity)
{
    switch (severity) {
    case OTLP_INFO:
        return "INFO";
    case OTLP_WARN:
        return "WARN";
    case OTLP_ERROR:
        return "ERROR";
    }
    return "";
}

struct json *otlp_log_json(struct arena *mem, const struct otlp_log *log)
{
    const struct otlp_attribute body = {.text = log->body};
    struct json *root = json_object(mem);

    json_put(root, "timeUnixNano", wide(mem, log->at_ns));
    json_put(root, "observedTimeUnixNano", wide(mem, log->at_ns));
    json_put_int(mem, root, "severityNumber", log->severity);
    json_put_text(mem, root, "severityText", severity_text(log->severity));
    json_put(root, "body", value_json(mem, &body));
    json_put(root, "attributes", attributes_json(mem, log->attributes, log->attribute_n));
    if (*log->trace_id) {
        json_put_text(mem, root, "traceId", log->trace_id);
        json_put_text(mem, root, "spanId", log->span_id);
    }
    return root;
}

/* ---- metrics ---- */

static const char *metric_member(enum otlp_metric_kind kind)
{
    switch (kind) {
    case OTLP_GAUGE:
        return "gauge";
    case OTLP_SUM:
        return "sum";
    case OTLP_HISTOGRAM:
        return "histogram";
    }
    return "";
}

/* The names say the unit, as Prometheus wants it; a collector that translates knows it by them. */
struct json *otlp_metric_json(struct arena *mem, const struct otlp_metric *metric)
{
    struct json *root = json_object(mem), *data = json_object(mem);

    json_put_text(mem, root, "name", metric->name);
    json_put_text(mem, root, "description", metric->help);
    json_put(data, "dataPoints", json_array(mem));
    if (metric->kind != OTLP_GAUGE)
        json_put_int(mem, data, "aggregationTemporality", TEMPORALITY_CUMULATIVE);
    if (metric->kind == OTLP_SUM)
        json_put_bool(mem, data, "isMonotonic", true);
    json_put(root, metric_member(metric->kind), data);
    return root;
}

static void put_buckets(struct arena *mem, struct json *root, const struct otlp_point *point)
{
    struct json *bounds = json_array(mem), *counts = json_array(mem);

    for (size_t i = 0; i < point->bound_n; i++)
        json_push(bounds, real(mem, point->bounds[i]));
    for (size_t i = 0; i <= point->bound_n; i++)
        json_push(counts, wide(mem, point->buckets[i]));
    json_put(root, "count", wide(mem, point->count));
    json_put(root, "sum", real(mem, point->value));
    json_put(root, "explicitBounds", bounds);
    json_put(root, "bucketCounts", counts);
}

void otlp_metric_point(struct arena *mem, struct json *metric_json,
                       const struct otlp_metric *metric, const struct otlp_point *point)
{
    struct json *root = json_object(mem);

    json_put(root, "attributes", attributes_json(mem, point->attributes, point->attribute_n));
    if (metric->kind != OTLP_GAUGE)
        json_put(root, "startTimeUnixNano", wide(mem, metric->began_ns));
    json_put(root, "timeUnixNano", wide(mem, metric->at_ns));
    if (metric->kind == OTLP_HISTOGRAM)
        put_buckets(mem, root, point);
    else
        json_put(root, "asDouble", real(mem, point->value));
    json_push(metric_json->last->first, root); /* the data is its last member, the points the data's
                                                  first */
}

/* ---- around them ---- */

int otlp_envelope_open(enum otlp_signal signal, const struct otlp_resource *resource,
                       struct buf *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    const struct otlp_attribute attributes[] = {
        {"service.name",        "brig",             0},
        {"service.version",     resource->version,  0},
        {"service.instance.id", resource->instance, 0},
        {"host.name",           resource->host,     0},
    };
    struct json *list = attributes_json(&mem, attributes, COUNT(attributes));

    if (buf_addf(out, err, "{\"%s\":[{\"resource\":{\"attributes\":", signals[signal].resources) <
            0 ||
        json_compact(list, out, err) < 0)
        return -1;
    return buf_addf(out, err, "},\"%s\":[{\"scope\":{\"name\":\"brig\"},\"%s\":[",
                    signals[signal].scopes, signals[signal].items);
}

int otlp_envelope_close(struct buf *out, struct err *err)
{
    return buf_add_text(out, "]}]}]}", err);
}

uint64_t otlp_rejected(struct str answer)
{
    static const char *const members[] = {"rejectedSpans", "rejectedLogRecords",
                                          "rejectedDataPoints"};
    /* A node takes two bytes of text at least, and less than 256 of memory. */
    AUTO_ARENA struct arena mem = ARENA(128 * OTLP_ANSWER_MAX + 1 * MIB);
    const struct json *root = NULL, *partial;
    struct mark where;
    struct err ignored; /* whatever it is, it is not a partial success */
    uint64_t sum = 0;

    if (answer.n > OTLP_ANSWER_MAX || json_parse(&mem, answer, &root, &where, &ignored) < 0)
        return 0;
    partial = json_get(root, "partialSuccess");
    for (size_t i = 0; partial && i < COUNT(members); i++) {
        const struct json *member = json_get(partial, members[i]);
        uint64_t n = 0;

        /* As text or as a number: both are allowed, and either is digits. */
        if (member && (member->kind == JSON_STRING || member->kind == JSON_NUMBER) &&
            str_u64(member->text, &n) && n <= OTLP_BATCH_MAX)
            sum += n;
    }
    return sum;
}
