/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* OpenTelemetry, as far as we speak it: OTLP/HTTP with JSON (opentelemetry-proto 1.x, "JSON
 * Protobuf Encoding": ids in hex, 64-bit numbers as text, enums as numbers) and W3C Trace Context.
 * Bytes in, bytes out; who sends them is cmd/otlp. */

#include "lib/base/buf.h"
#include "lib/base/memory.h"

struct json;

/* ---- whose trace it is ---- */

#define TRACE_ID_TEXT_BYTES 33 /* 32 hex digits and a NUL */
#define SPAN_ID_TEXT_BYTES 17
#define TRACEPARENT_BYTES 56

struct trace_context {
    char trace_id[TRACE_ID_TEXT_BYTES];
    char span_id[SPAN_ID_TEXT_BYTES];
    bool sampled;
};

/* https://www.w3.org/TR/trace-context/: 00-<32 hex>-<16 hex>-<2 hex>, lower case, ids not zero. A
 * later version may have more behind it; "ff" is none. False: start a trace of one's own. */
bool traceparent_parse(struct str text, struct trace_context *out);
void traceparent_write(const struct trace_context *trace, char out[TRACEPARENT_BYTES]);
void trace_id_new(char out[TRACE_ID_TEXT_BYTES]);
void span_id_new(char out[SPAN_ID_TEXT_BYTES]);

/* ---- what is told ---- */

enum otlp_signal {
    OTLP_TRACES,
    OTLP_LOGS,
    OTLP_METRICS,
    OTLP_SIGNALS,
};

const char *otlp_path(enum otlp_signal signal); /* "/v1/traces" */

/* An attribute without a text is a number; one whose text is "" is left out. */
struct otlp_attribute {
    const char *key;
    const char *text;
    int64_t number;
};

enum otlp_span_kind {
    OTLP_SPAN_INTERNAL = 1,
    OTLP_SPAN_SERVER = 2,
};

struct otlp_span {
    const char *trace_id;
    const char *span_id;
    const char *parent_id; /* or "" */
    const char *name;
    enum otlp_span_kind kind;
    uint64_t began_ns; /* since 1970 */
    uint64_t ended_ns;
    const struct otlp_attribute *attributes;
    size_t attribute_n;
    bool failed;
};

enum otlp_severity {
    OTLP_INFO = 9,
    OTLP_WARN = 13,
    OTLP_ERROR = 17,
};

struct otlp_log {
    uint64_t at_ns;
    enum otlp_severity severity;
    const char *body;
    const char *trace_id; /* or "" */
    const char *span_id;
    const struct otlp_attribute *attributes;
    size_t attribute_n;
};

enum otlp_metric_kind {
    OTLP_GAUGE,
    OTLP_SUM, /* since the start, never less */
    OTLP_HISTOGRAM,
};

struct otlp_metric {
    const char *name;
    const char *help;
    enum otlp_metric_kind kind;
    uint64_t began_ns; /* since when it is counted */
    uint64_t at_ns;
};

struct otlp_point {
    const struct otlp_attribute *attributes;
    size_t attribute_n;
    double value;   /* HISTOGRAM: the sum */
    uint64_t count; /* HISTOGRAM, and what follows */
    const double *bounds;
    const uint64_t *buckets; /* bound_n + 1, each what is in it alone */
    size_t bound_n;
};

struct json *otlp_span_json(struct arena *mem, const struct otlp_span *span);
struct json *otlp_log_json(struct arena *mem, const struct otlp_log *log);
/* Without points yet. */
struct json *otlp_metric_json(struct arena *mem, const struct otlp_metric *metric);
void otlp_metric_point(struct arena *mem, struct json *metric_json,
                       const struct otlp_metric *metric, const struct otlp_point *point);

/* One body of a POST: what stands around the items, which are joined by commas. */
struct otlp_resource {
    const char *version;  /* of Brig */
    const char *instance; /* one life of a daemon */
    const char *host;
};
int otlp_envelope_open(enum otlp_signal signal, const struct otlp_resource *resource,
                       struct buf *out, struct err *err) MUST_CHECK;
int otlp_envelope_close(struct buf *out, struct err *err) MUST_CHECK;

/* How many of them a collector says it did not want (partial success); 0 for every other answer. */
uint64_t otlp_rejected(struct str answer);

/* ---- where it goes ---- */

/* An address to put paths behind: https, or http to this machine; http elsewhere only when
 * plain_anywhere. Nothing of it is a password, a query or a fragment. */
int otlp_url_check(const char *url, bool plain_anywhere, struct err *err) MUST_CHECK;
bool otlp_url_is_plain(const char *url);

/* "name=value,name=value", values percent-encoded, as OTEL_EXPORTER_OTLP_HEADERS has them. Each
 * comes as "name: value"; what would not be one header is refused, without quoting it: it may be a
 * password. */
typedef int otlp_header_visitor(void *context, const char *line, struct err *err);
int otlp_headers_each(const char *text, otlp_header_visitor *visit, void *context,
                      struct err *err) MUST_CHECK;

/* ---- what waits ---- */

/* Items in order, each its own copy, at most so many and of so many bytes. What is beyond is not
 * taken. */
struct otlp_queue {
    struct otlp_item *items; /* a ring */
    size_t max, first, n;
    size_t bytes, bytes_max;
};
void otlp_queue_init(struct otlp_queue *queue, size_t max, size_t bytes_max);
void otlp_queue_done(struct otlp_queue *queue);
bool otlp_queue_add(struct otlp_queue *queue, struct str text);
struct str otlp_queue_at(const struct otlp_queue *queue, size_t i);
/* How many of the first go together into so many bytes, joined by commas; one at least, if there is
 * one. */
size_t otlp_queue_batch(const struct otlp_queue *queue, size_t n_max, size_t bytes_max);
void otlp_queue_drop(struct otlp_queue *queue, size_t n);

/* How long to wait before another attempt: doubled each time up to a ceiling, and by chance (0 to
 * UINT32_MAX) between half of that and all of it. What a collector asks for is heard, up to a
 * ceiling of its own. */
uint64_t otlp_wait_ms(unsigned attempts, uint64_t retry_after_s, uint32_t chance);
bool otlp_is_passing(long http_status);

/* ---- between the daemon and cmd/otlp ----
 *
 * One message of a SOCK_SEQPACKET socket is one item: a byte that names the signal, and the text of
 * one object, or of several joined by commas, of what the innermost list of its request has. The
 * numbers are a page that both have mapped; the daemon believes nothing of it but that they are
 * numbers. */
#define OTLP_SOCKET_FD 3
#define OTLP_PAGE_FD 4
#define OTLP_FD_N 5
#define OTLP_SIGNAL_BYTE '0'

struct otlp_numbers {
    uint64_t sent;    /* items a collector has taken */
    uint64_t dropped; /* items given up: no room, or no use */
    uint64_t failed;  /* requests that came to nothing; some are repeated */
};
