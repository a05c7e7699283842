/* SPDX-License-Identifier: Apache-2.0 */

/* Counters, as Prometheus reads them and as a collector is told them. */

#include "surface/api/api-private.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/advisory/advisory.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "surface/api/telemetry.h"

#include <fcntl.h>

static const uint64_t bounds_us[] = {100,   250,   500,    1000,   2500,   5000,    10000,
                                     25000, 50000, 100000, 250000, 500000, 1000000, 5000000};
#define BOUNDS COUNT(bounds_us)
#define CLASSES 6 /* of status: 0 stands for none, then 1xx to 5xx */

struct route_counts {
    const struct route *route;
    uint64_t by_class[CLASSES];
    uint64_t buckets[BOUNDS];
    uint64_t n;
    uint64_t sum_us;
};

struct counts {
    struct route_counts *of;
    size_t n;
    _Atomic uint64_t found[ADVISORY_CATEGORY_COUNT];
};

struct counts *counts_new(void)
{
    struct counts *counts = xcalloc(1, sizeof *counts);

    route_each(route) counts->n++;
    counts->of = xcalloc(counts->n + 1, sizeof *counts->of); /* the last: no route */
    counts->n = 0;
    route_each(route) counts->of[counts->n++].route = route;
    return counts;
}

void counts_free(struct counts *counts)
{
    if (!counts)
        return;
    free(counts->of);
    free(counts);
}

void counts_add(struct counts *counts, const struct route *route, int status, uint64_t took_us)
{
    struct route_counts *at = counts->of;

    while (at->route && at->route != route)
        at++;
    at->by_class[status >= 100 && status < 600 ? status / 100 : 0]++;
    at->n++;
    at->sum_us += took_us;
    for (size_t i = 0; i < BOUNDS; i++)
        at->buckets[i] += took_us <= bounds_us[i];
}

static int write_requests(const struct counts *counts, struct buf *out, struct err *err)
{
    if (buf_add_text(out,
                     "# HELP brig_http_requests_total Requests by route and class of status.\n"
                     "# TYPE brig_http_requests_total counter\n",
                     err) < 0)
        return -1;
    for (size_t i = 0; i <= counts->n; i++)
        for (size_t class = 0; class < CLASSES; class ++)
            if (counts->of[i].by_class[class] &&
                buf_addf(out, err, "brig_http_requests_total{route=\"%s\",status=\"%zuxx\"} %llu\n",
                         counts->of[i].route ? counts->of[i].route->name : "none", class,
                         (unsigned long long)counts->of[i].by_class[class]) < 0)
                return -1;
    return 0;
}

static int write_durations(const struct counts *counts, struct buf *out, struct err *err)
{
    if (buf_add_text(out,
                     "# HELP brig_http_request_seconds How long requests took, by route.\n"
                     "# TYPE brig_http_request_seconds histogram\n",
                     err) < 0)
        return -1;
    for (size_t i = 0; i < counts->n; i++) {
        const struct route_counts *at = &counts->of[i];

        for (size_t b = 0; at->n && b < BOUNDS; b++)
            if (buf_addf(out, err,
                         "brig_http_request_seconds_bucket{route=\"%s\",le=\"%g\"} %llu\n",
                         at->route->name, (double)bounds_us[b] / 1e6,
                         (unsigned long long)at->buckets[b]) < 0)
                return -1;
        if (at->n &&
            buf_addf(out, err,
                     "brig_http_request_seconds_bucket{route=\"%s\",le=\"+Inf\"} %llu\n"
                     "brig_http_request_seconds_sum{route=\"%s\"} %.6f\n"
                     "brig_http_request_seconds_count{route=\"%s\"} %llu\n",
                     at->route->name, (unsigned long long)at->n, at->route->name,
                     (double)at->sum_us / 1e6, at->route->name, (unsigned long long)at->n) < 0)
            return -1;
    }
    return 0;
}

void counts_found(struct counts *counts, const struct advisory_result *result)
{
    for (size_t i = 0; i < ADVISORY_CATEGORY_COUNT; i++)
        counts->found[i] += result->counts[i];
}

void counts_breach(struct counts *counts)
{
    counts->found[ADVISORY_IS_QUIESCENCE]++;
}

#define FOUND_NAME "brig_advisory_findings_total"
#define FOUND_HELP "Found in what agents in advisory mode said over HTTP, by category."

/* All categories: one that was never met is known to be none. */
static int write_found(const struct counts *counts, struct buf *out, struct err *err)
{
    if (buf_add_text(out, "# HELP " FOUND_NAME " " FOUND_HELP "\n# TYPE " FOUND_NAME " counter\n",
                     err) < 0)
        return -1;
    for (size_t i = 0; i < ADVISORY_CATEGORY_COUNT; i++)
        if (buf_addf(out, err, FOUND_NAME "{category=\"%s\"} %llu\n",
                     advisory_category_name((enum advisory_category)i),
                     (unsigned long long)counts->found[i]) < 0)
            return -1;
    return 0;
}

static uint64_t resident_bytes(void)
{
    AUTO_BUF struct buf text = BUF(256);
    struct str rest;
    uint64_t pages = 0;
    struct err ignored;

    if (file_read(AT_FDCWD, "/proc/self/statm", &text, &ignored) < 0)
        return 0;
    rest = buf_str(&text);
    (void)str_cut(&rest, ' ');
    return str_u64(str_cut(&rest, ' '), &pages) ? pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* What is one number each. */
struct row {
    const char *name, *help;
    bool is_counter;
    double value;
};
#define ROWS 14

static double processor_seconds(void)
{
    struct rusage used = {0};

    (void)getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void read_rows(const struct api *api, struct row out[ROWS])
{
    struct http_counts http = http_server_counts(api->server);
    struct jobs_numbers runs = jobs_look(api->runs);
    struct otlp_numbers otlp = telemetry_look(api->telemetry);
    /* clang-format off */
    const struct row rows[ROWS] = {
        {"brig_connections", "Open connections.", false, http.connections},
        {"brig_connections_accepted_total", "Connections since the start.", true, (double)http.accepted},
        {"brig_connections_refused_total", "Connections turned away.", true, (double)http.overflow},
        {"brig_http_faults_total", "Requests refused for their framing.", true, (double)http.refused},
        {"brig_http_timeouts_total", "Connections that stopped half way.", true, (double)http.timeouts},
        {"brig_calls", "Requests under way.", false, (double)api->call_n},
        {"brig_runs", "Handlers that run something now.", false, (double)runs.running},
        {"brig_runs_waiting", "Requests that wait for their turn to run.", false, (double)runs.waiting},
        {"process_start_seconds_ago", "Seconds since the start.", false,
         (double)(clock_us() - api->began_us) / 1e6},
        {"process_resident_memory_bytes", "Resident memory.", false, (double)resident_bytes()},
        {"process_cpu_seconds_total", "Processor time.", true, processor_seconds()},
        {"brig_otlp_sent_total", "Telemetry a collector has taken.", true, (double)otlp.sent},
        {"brig_otlp_dropped_total", "Telemetry nobody has taken: there was no room, or no use.", true,
         (double)otlp.dropped},
        {"brig_otlp_failures_total", "Requests to the collector that came to nothing.", true,
         (double)otlp.failed},
    };
    /* clang-format on */

    memcpy(out, rows, sizeof rows);
}

static int write_row(struct buf *out, const struct row *row, struct err *err)
{
    return buf_addf(out, err, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", row->name, row->help,
                    row->name, row->is_counter ? "counter" : "gauge", row->name, row->value);
}

int counts_write(const struct api *api, struct buf *out, struct err *err)
{
    struct row rows[ROWS];

    read_rows(api, rows);
    for (size_t i = 0; i < ROWS; i++)
        if (write_row(out, &rows[i], err) < 0)
            return -1;
    return write_found(api->counts, out, err) < 0 || write_requests(api->counts, out, err) < 0
               ? -1
               : write_durations(api->counts, out, err);
}

/* ---- to a collector ---- */

/* One metric with its points, each message its own. */
struct telling {
    struct telemetry *to;
    struct arena mem;
    uint64_t began_ns, now_ns;
};

static void tell_rows(struct telling *telling, const struct api *api)
{
    struct row rows[ROWS];

    read_rows(api, rows);
    for (size_t i = 0; i < ROWS; i++) {
        const struct otlp_metric metric = {rows[i].name, rows[i].help,
                                           rows[i].is_counter ? OTLP_SUM : OTLP_GAUGE,
                                           telling->began_ns, telling->now_ns};
        const struct otlp_point point = {.value = rows[i].value};
        struct json *json = otlp_metric_json(&telling->mem, &metric);

        otlp_metric_point(&telling->mem, json, &metric, &point);
        telemetry_send(telling->to, OTLP_METRICS, json);
    }
}

static void tell_found(struct telling *telling, const struct counts *counts)
{
    const struct otlp_metric metric = {FOUND_NAME, FOUND_HELP, OTLP_SUM, telling->began_ns,
                                       telling->now_ns};
    struct json *json = otlp_metric_json(&telling->mem, &metric);

    for (size_t i = 0; i < ADVISORY_CATEGORY_COUNT; i++) {
        const struct otlp_attribute category = {
            "category", advisory_category_name((enum advisory_category)i), 0};
        const struct otlp_point point = {
            .attributes = &category, .attribute_n = 1, .value = (double)counts->found[i]};

        otlp_metric_point(&telling->mem, json, &metric, &point);
    }
    telemetry_send(telling->to, OTLP_METRICS, json);
}

static const char *route_name(const struct route_counts *at)
{
    return at->route ? at->route->name : "none";
}

static void tell_requests(struct telling *telling, const struct counts *counts)
{
    const struct otlp_metric metric = {"brig_http_requests_total",
                                       "Requests by route and class of status.", OTLP_SUM,
                                       telling->began_ns, telling->now_ns};
    struct json *json = otlp_metric_json(&telling->mem, &metric);
    size_t n = 0;

    for (size_t i = 0; i <= counts->n; i++)
        for (size_t class = 0; class < CLASSES; class ++) {
            const struct otlp_attribute attributes[] = {
                {"route",  route_name(&counts->of[i]), 0},
                { "status", arena_printf(&telling->mem,                     "%zuxx", class), 0},
            };
            const struct otlp_point point = {.attributes = attributes,
                                             .attribute_n = COUNT(attributes),
                                             .value = (double)counts->of[i].by_class[class]};

            if (!counts->of[i].by_class[class])
                continue;
            otlp_metric_point(&telling->mem, json, &metric, &point);
            n++;
        }
    if (n)
        telemetry_send(telling->to, OTLP_METRICS, json);
}

/* Ours say how many took so long or less; OTLP wants those of each bucket alone. */
static void part_buckets(const struct route_counts *at, uint64_t out[BOUNDS + 1])
{
    uint64_t below = 0;

    for (size_t i = 0; i < BOUNDS; i++) {
        out[i] = at->buckets[i] - below;
        below = at->buckets[i];
    }
    out[BOUNDS] = at->n - below;
}

static void tell_durations(struct telling *telling, const struct counts *counts)
{
    const struct otlp_metric metric = {"brig_http_request_seconds",
                                       "How long requests took, by route.", OTLP_HISTOGRAM,
                                       telling->began_ns, telling->now_ns};
    struct json *json = otlp_metric_json(&telling->mem, &metric);
    double bounds[BOUNDS];
    size_t n = 0;

    for (size_t i = 0; i < BOUNDS; i++)
        bounds[i] = (double)bounds_us[i] / 1e6;
    for (size_t i = 0; i < counts->n; i++) {
        const struct route_counts *at = &counts->of[i];
        const struct otlp_attribute route = {"route", route_name(at), 0};
        uint64_t buckets[BOUNDS + 1];
        const struct otlp_point point = {&route,  1,     (double)at->sum_us / 1e6, at->n, bounds,
                                         buckets, BOUNDS};

        if (!at->n)
            continue;
        part_buckets(at, buckets);
        otlp_metric_point(&telling->mem, json, &metric, &point);
        n++;
    }
    if (n)
        telemetry_send(telling->to, OTLP_METRICS, json);
}

void counts_tell(const struct api *api)
{
    uint64_t now_ns = clock_wall_ns();
    struct telling telling = {api->telemetry, ARENA(16 * MIB),
                              now_ns - 1000U * (clock_us() - api->began_us), now_ns};

    if (!api->telemetry)
        return;
    tell_rows(&telling, api);
    tell_found(&telling, api->counts);
    tell_requests(&telling, api->counts);
    tell_durations(&telling, api->counts);
    arena_done(&telling.mem);
}
