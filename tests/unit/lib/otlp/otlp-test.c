/* SPDX-License-Identifier: Apache-2.0 */

#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "lib/otlp/otlp.h"

static struct err err;

/* ---- trace context ---- */

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

TEST(a_traceparent_is_read_strictly)
{
    static const struct {
        const char *text;
        bool good, sampled;
    } cases[] = {
        {"00-" TRACE "-" SPAN "-01",                        true,  true },
        {"00-" TRACE "-" SPAN "-00",                        true,  false},
        {"00-" TRACE "-" SPAN "-03",                        true,  true },
        {"cc-" TRACE "-" SPAN "-01",                        true,  true },
        {"cc-" TRACE "-" SPAN "-01-what-comes-later",       true,  true },
        {"cc-" TRACE "-" SPAN "-01.what",                   false, false},
        {"00-" TRACE "-" SPAN "-01-more",                   false, false},
        {"ff-" TRACE "-" SPAN "-01",                        false, false},
        {"00-" TRACE "-" SPAN "-0",                         false, false},
        {"00-" TRACE "-" SPAN "-0g",                        false, false},
        {"00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01", false, false},
        {"00-00000000000000000000000000000000-" SPAN "-01", false, false},
        {"00-" TRACE "-0000000000000000-01",                false, false},
        {"00_" TRACE "-" SPAN "-01",                        false, false},
        {" 00-" TRACE "-" SPAN "-01",                       false, false},
        {"",                                                false, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct trace_context got = {0};

        CHECK_INT(traceparent_parse(str_of(cases[i].text), &got), cases[i].good);
        CHECK_INT(got.sampled, cases[i].sampled);
        CHECK_TEXT(got.trace_id, cases[i].good ? TRACE : "");
        CHECK_TEXT(got.span_id, cases[i].good ? SPAN : "");
    }
}

TEST(what_is_written_can_be_read)
{
    struct trace_context made = {.sampled = true}, got;
    char text[TRACEPARENT_BYTES], other[SPAN_ID_TEXT_BYTES];

    trace_id_new(made.trace_id);
    span_id_new(made.span_id);
    span_id_new(other);
    traceparent_write(&made, text);
    CHECK_INT(strlen(text), TRACEPARENT_BYTES - 1);
    CHECK(traceparent_parse(str_of(text), &got));
    CHECK_TEXT(got.trace_id, made.trace_id);
    CHECK_TEXT(got.span_id, made.span_id);
    CHECK(strcmp(other, made.span_id) != 0);
}

/* ---- JSON ---- */

static void check_json(const struct json *json, const char *wanted)
{
    AUTO_BUF struct buf text = BUF(64 * KIB);

    CHECK_INT(json_compact(json, &text, &err), 0);
    CHECK_TEXT(buf_text(&text), wanted);
}

TEST(a_span_has_hex_ids_and_wide_numbers_as_text)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    const struct otlp_attribute attributes[] = {
        {"text",    "a \"b\"\n", 0                  },
        {"missing", "",          0                  },
        {"number",  NULL,        -9007199254740993LL},
    };
    const struct otlp_span span = {
        .trace_id = TRACE,
        .span_id = SPAN,
        .parent_id = "",
        .name = "run",
        .kind = OTLP_SPAN_SERVER,
        .began_ns = 18446744073709551614ULL,
        .ended_ns = 18446744073709551615ULL,
        .attributes = attributes,
        .attribute_n = COUNT(attributes),
        .failed = true,
    };

    check_json(otlp_span_json(&mem, &span),
               "{\"traceId\":\"" TRACE "\",\"spanId\":\"" SPAN "\",\"name\":\"run\",\"kind\":2,"
               "\"startTimeUnixNano\":\"18446744073709551614\","
               "\"endTimeUnixNano\":\"18446744073709551615\",\"attributes\":["
               "{\"key\":\"text\",\"value\":{\"stringValue\":\"a \\\"b\\\"\\n\"}},"
               "{\"key\":\"number\",\"value\":{\"intValue\":\"-9007199254740993\"}}],"
               "\"status\":{\"code\":2}}");
}

TEST(a_log_record_names_its_span)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    const struct otlp_log log = {
        .at_ns = 5, .severity = OTLP_ERROR, .body = "request", .trace_id = TRACE, .span_id = SPAN};

    check_json(otlp_log_json(&mem, &log),
               "{\"timeUnixNano\":\"5\",\"observedTimeUnixNano\":\"5\",\"severityNumber\":17,"
               "\"severityText\":\"ERROR\",\"body\":{\"stringValue\":\"request\"},"
               "\"attributes\":[],\"traceId\":\"" TRACE "\",\"spanId\":\"" SPAN "\"}");
}

TEST(metrics_are_sums_gauges_and_histograms)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    const double bounds[] = {0.5, 1};
    const uint64_t buckets[] = {1, 0, 2};
    const struct otlp_attribute route = {"route", "run", 0};
    const struct otlp_metric metrics[] = {
        {"a_total", "A.", OTLP_SUM,       1, 2},
        {"b",       "B.", OTLP_GAUGE,     1, 2},
        {"c",       "C.", OTLP_HISTOGRAM, 1, 2},
    };
    /* clang-format off */
    const struct otlp_point points[] = {
        {.value = 3},
        {.value = 0.25},
        {&route, 1, 4.5, 3, bounds, buckets, COUNT(bounds)},
    };
    /* clang-format on */
    static const char *const wanted[] = {
        "{\"name\":\"a_total\",\"description\":\"A.\",\"sum\":{\"dataPoints\":[{\"attributes\":[],"
        "\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"2\",\"asDouble\":3}],"
        "\"aggregationTemporality\":2,\"isMonotonic\":true}}",
        "{\"name\":\"b\",\"description\":\"B.\",\"gauge\":{\"dataPoints\":[{\"attributes\":[],"
        "\"timeUnixNano\":\"2\",\"asDouble\":0.25}]}}",
        "{\"name\":\"c\",\"description\":\"C.\",\"histogram\":{\"dataPoints\":[{\"attributes\":["
        "{\"key\":\"route\",\"value\":{\"stringValue\":\"run\"}}],\"startTimeUnixNano\":\"1\","
        "\"timeUnixNano\":\"2\",\"count\":\"3\",\"sum\":4.5,\"explicitBounds\":[0.5,1],"
        "\"bucketCounts\":[\"1\",\"0\",\"2\"]}],\"aggregationTemporality\":2}}",
    };

    for (size_t i = 0; i < COUNT(metrics); i++) {
        struct json *json = otlp_metric_json(&mem, &metrics[i]);

        otlp_metric_point(&mem, json, &metrics[i], &points[i]);
        check_json(json, wanted[i]);
    }
}

TEST(an_envelope_around_items_is_one_request)
{
    const struct otlp_resource resource = {"0.1", "i", ""};
    AUTO_BUF struct buf text = BUF(4 * KIB);

    CHECK_INT(otlp_envelope_open(OTLP_LOGS, &resource, &text, &err), 0);
    CHECK_INT(buf_add_text(&text, "{},{}", &err), 0);
    CHECK_INT(otlp_envelope_close(&text, &err), 0);
    CHECK_TEXT(buf_text(&text),
               "{\"resourceLogs\":[{\"resource\":{\"attributes\":["
               "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"brig\"}},"
               "{\"key\":\"service.version\",\"value\":{\"stringValue\":\"0.1\"}},"
               "{\"key\":\"service.instance.id\",\"value\":{\"stringValue\":\"i\"}}]},"
               "\"scopeLogs\":[{\"scope\":{\"name\":\"brig\"},\"logRecords\":[{},{}]}]}]}");
    CHECK_TEXT(otlp_path(OTLP_TRACES), "/v1/traces");
    CHECK_TEXT(otlp_path(OTLP_LOGS), "/v1/logs");
    CHECK_TEXT(otlp_path(OTLP_METRICS), "/v1/metrics");
}

TEST(only_a_partial_success_rejects_something)
{
    static const struct {
        const char *answer;
        uint64_t n;
    } cases[] = {
        {"{\"partialSuccess\":{\"rejectedSpans\":\"3\"}}",                    3},
        {"{\"partialSuccess\":{\"rejectedLogRecords\":2}}",                   2},
        {"{\"partialSuccess\":{\"rejectedDataPoints\":\"1\"}}",               1},
        {"{\"partialSuccess\":{\"rejectedSpans\":\"-3\"}}",                   0},
        {"{\"partialSuccess\":{\"rejectedSpans\":\"99999999999999999999\"}}", 0},
        {"{\"partialSuccess\":{\"rejectedSpans\":[1]}}",                      0},
        {"{\"partialSuccess\":7}",                                            0},
        {"{}",                                                                0},
        {"[]",                                                                0},
        {"",                                                                  0},
        {"nonsense",                                                          0},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        CHECK_INT(otlp_rejected(str_of(cases[i].answer)), cases[i].n);
}

/* ---- where to ---- */

#define TAKEN (-1)

TEST(addresses_are_https_or_this_machine)
{
    static const struct {
        const char *url;
        bool plain;
        int code;
    } cases[] = {
        {"https://collector.example",         false, TAKEN        },
        {"https://collector.example:4318/a/", false, TAKEN        },
        {"http://127.0.0.1:4318",             false, TAKEN        },
        {"http://localhost:4318/",            false, TAKEN        },
        {"http://[::1]:4318",                 false, TAKEN        },
        {"http://collector.example",          false, ERR_FORBIDDEN},
        {"http://localhost.example",          false, ERR_FORBIDDEN},
        {"http://[::2]:4318",                 false, ERR_FORBIDDEN},
        {"http://collector.example",          true,  TAKEN        },
        {"https://user:word@collector",       true,  ERR_INVALID  },
        {"https://collector/?key=1",          true,  ERR_INVALID  },
        {"https://collector/#a",              true,  ERR_INVALID  },
        {"https://col lector",                true,  ERR_INVALID  },
        {"https://",                          true,  ERR_INVALID  },
        {"https://:4318",                     true,  ERR_INVALID  },
        {"ftp://collector",                   true,  ERR_INVALID  },
        {"collector:4318",                    true,  ERR_INVALID  },
        {"",                                  true,  ERR_INVALID  },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int failed = otlp_url_check(cases[i].url, cases[i].plain, &err);

        CHECK_INT(failed, cases[i].code == TAKEN ? 0 : -1);
        if (failed)
            CHECK_INT(err.code, cases[i].code);
    }
}

static int gather(void *context, const char *line, struct err *unused)
{
    struct buf *out = context;

    (void)unused;
    return buf_addf(out, &err, "%s|", line);
}

TEST(headers_are_names_and_values)
{
    static const struct {
        const char *text, *lines; /* lines NULL: refused */
    } cases[] = {
        {"",                             ""                          },
        {"api-key=abc",                  "api-key: abc|"             },
        {" a = 1 , b=2=3,,",             "a: 1|b: 2=3|"              },
        {"authorization=Bearer%20a%2Cb", "authorization: Bearer a,b|"},
        {"a",                            "a: |"                      },
        {"=1",                           NULL                        },
        {"a b=1",                        NULL                        },
        {"a=1%0d%0ax: y",                NULL                        },
        {"a=%4",                         NULL                        },
        {"a=%zz",                        NULL                        },
        {"a=1\r\nx: y",                  NULL                        },
        {"Content-Length=3",             NULL                        },
        {"host=elsewhere",               NULL                        },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUF struct buf lines = BUF(4 * KIB);
        int failed = otlp_headers_each(cases[i].text, gather, &lines, &err);

        CHECK_INT(failed, cases[i].lines ? 0 : -1);
        if (!failed)
            CHECK_TEXT(buf_text(&lines), cases[i].lines);
    }
}

/* ---- what waits ---- */

TEST(a_queue_has_so_many_items_and_no_more)
{
    struct otlp_queue queue;

    otlp_queue_init(&queue, 3, 1000);
    for (int round = 0; round < 5; round++) { /* around the ring */
        CHECK(otlp_queue_add(&queue, STR_LIT("a")));
        CHECK(otlp_queue_add(&queue, STR_LIT("bb")));
        CHECK(otlp_queue_add(&queue, STR_LIT("ccc")));
        CHECK(!otlp_queue_add(&queue, STR_LIT("d")));
        CHECK_INT(queue.bytes, 6);
        CHECK(str_is(otlp_queue_at(&queue, 1), "bb"));
        otlp_queue_drop(&queue, 1);
        CHECK(str_is(otlp_queue_at(&queue, 0), "bb"));
        CHECK(otlp_queue_add(&queue, STR_LIT("d")));
        CHECK(str_is(otlp_queue_at(&queue, 2), "d"));
        otlp_queue_drop(&queue, 3);
        CHECK_INT(queue.n, 0);
        CHECK_INT(queue.bytes, 0);
    }
    otlp_queue_done(&queue);
}

TEST(a_queue_has_so_many_bytes_and_no_more)
{
    struct otlp_queue queue;

    otlp_queue_init(&queue, 100, 5);
    CHECK(!otlp_queue_add(&queue, STR_LIT("123456")));
    CHECK(otlp_queue_add(&queue, STR_LIT("123")));
    CHECK(!otlp_queue_add(&queue, STR_LIT("123")));
    CHECK(otlp_queue_add(&queue, STR_LIT("12")));
    CHECK(!otlp_queue_add(&queue, STR_LIT("1")));
    CHECK_INT(queue.n, 2);
    otlp_queue_done(&queue);
}

TEST(a_batch_is_what_fits_and_one_at_least)
{
    struct otlp_queue queue;

    otlp_queue_init(&queue, 10, 1000);
    CHECK_INT(otlp_queue_batch(&queue, 5, 100), 0);
    CHECK(otlp_queue_add(&queue, STR_LIT("1234567890")));
    for (int i = 0; i < 6; i++)
        CHECK(otlp_queue_add(&queue, STR_LIT("1")));
    CHECK_INT(otlp_queue_batch(&queue, 5, 100), 5);
    CHECK_INT(otlp_queue_batch(&queue, 10, 100), 7);
    CHECK_INT(otlp_queue_batch(&queue, 10, 15), 3);
    CHECK_INT(otlp_queue_batch(&queue, 10, 1), 1);
    otlp_queue_done(&queue);
}

TEST(waits_grow_to_a_ceiling_and_differ)
{
    CHECK_INT(otlp_wait_ms(1, 0, 0), 250);
    CHECK_INT(otlp_wait_ms(1, 0, 250), 500);
    CHECK_INT(otlp_wait_ms(3, 0, 1000), 2000);
    CHECK_INT(otlp_wait_ms(10, 0, 0), 15000);
    CHECK_INT(otlp_wait_ms(4000000000U, 0, 15000), 30000);
    CHECK_INT(otlp_wait_ms(9, 7, 0), 7000);
    CHECK_INT(otlp_wait_ms(1, 7, 499), 7499);
    CHECK_INT(otlp_wait_ms(1, UINT64_MAX, 0), 60000);
    CHECK(otlp_is_passing(429) && otlp_is_passing(502) && otlp_is_passing(503) &&
          otlp_is_passing(504));
    CHECK(!otlp_is_passing(500) && !otlp_is_passing(400) && !otlp_is_passing(301) &&
          !otlp_is_passing(200));
}
