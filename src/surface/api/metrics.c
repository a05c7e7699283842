/* SPDX-License-Identifier: Apache-2.0 */

/* Counters, as Prometheus reads them. */

#include "surface/api/api-private.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/io.h"

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

static int write_gauge(struct buf *out, const char *name, const char *type, const char *help,
                       double value, struct err *err)
{
    return buf_addf(out, err, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, type,
                    name, value);
}

int counts_write(const struct api *api, struct buf *out, struct err *err)
{
    struct http_counts http = http_server_counts(api->server);
    struct jobs_numbers runs = jobs_look(api->runs);
    struct rusage used = {0};
    const struct {
        const char *name, *type, *help;
        double value;
    } rows[] = {
        {"brig_connections",                "gauge",   "Open connections.",                         http.connections        },
        {"brig_connections_accepted_total", "counter", "Connections since the start.",
         (double)http.accepted                                                                                              },
        {"brig_connections_refused_total",  "counter", "Connections turned away.",
         (double)http.overflow                                                                                              },
        {"brig_http_faults_total",          "counter", "Requests refused for their framing.",
         (double)http.refused                                                                                               },
        {"brig_http_timeouts_total",        "counter", "Connections that stopped half way.",
         (double)http.timeouts                                                                                              },
        {"brig_calls",                      "gauge",   "Requests under way.",                       (double)api->call_n     },
        {"brig_runs",                       "gauge",   "Handlers that run something now.",          (double)runs.running    },
        {"brig_runs_waiting",               "gauge",   "Requests that wait for their turn to run.",
         (double)runs.waiting                                                                                               },
        {"process_start_seconds_ago",       "gauge",   "Seconds since the start.",
         (double)(clock_us() - api->began_us) / 1e6                                                                         },
        {"process_resident_memory_bytes",   "gauge",   "Resident memory.",                          (double)resident_bytes()},
    };

    (void)getrusage(RUSAGE_SELF, &used);
    for (size_t i = 0; i < COUNT(rows); i++)
        if (write_gauge(out, rows[i].name, rows[i].type, rows[i].help, rows[i].value, err) < 0)
            return -1;
    if (write_gauge(out, "process_cpu_seconds_total", "counter", "Processor time.",
                    (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                        (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6,
                    err) < 0)
        return -1;
    return write_requests(api->counts, out, err) < 0 ? -1 : write_durations(api->counts, out, err);
}
