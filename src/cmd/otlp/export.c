/* SPDX-License-Identifier: Apache-2.0 */

/* One thread, one POST at a time. Whatever the collector does, items are taken from the daemon as
 * long as there is room, and what has none is counted: the daemon never waits for us, and we never
 * grow. */

#include "cmd/otlp/export.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/limits.h"

#define GATHER_US 1000000U /* how long an item may wait for others */
#define GATHERED_N 128U    /* unless there are so many */
#define POST_MS 10000U
#define ATTEMPTS_MAX 10U
#define IDLE_MS 60000U
#define FLUSH_US 3000000U /* after the daemon is gone */

struct lane {
    struct otlp_queue queue;
    uint64_t since_us; /* the first of them waits since then */
    unsigned attempts;
};

struct exporter {
    const struct export_config *config;
    struct post *post;
    struct lane lanes[OTLP_SIGNALS];
    unsigned turn;        /* whose is next */
    struct lane *current; /* whose POST is under way */
    size_t batch_n;
    struct buf body;
    uint64_t not_before_us;
    uint64_t until_us; /* the daemon is gone: when we go, too; 0: it is there */
    bool is_failing;
    char *message;
};

static void count(uint64_t *number, uint64_t n)
{
    __atomic_store_n(number, *number + n, __ATOMIC_RELAXED); /* nobody else writes it */
}

/* The milliseconds until then, if they are fewer. */
static uint64_t sooner(uint64_t at_us, uint64_t now, uint64_t wait_ms)
{
    uint64_t ms = at_us > now ? (at_us - now) / 1000U + 1 : 0;

    return ms < wait_ms ? ms : wait_ms;
}

/* ---- in ---- */

static void take_item(struct exporter *exporter, struct str message)
{
    unsigned signal = (unsigned char)message.p[0] - (unsigned)OTLP_SIGNAL_BYTE;
    struct lane *lane = signal < OTLP_SIGNALS ? &exporter->lanes[signal] : NULL;

    if (lane && lane->queue.n == 0)
        lane->since_us = clock_us();
    if (!lane || !otlp_queue_add(&lane->queue, (struct str){message.p + 1, message.n - 1}))
        count(&exporter->config->numbers->dropped, 1);
}

static void take_items(struct exporter *exporter)
{
    for (size_t i = 0; i < OTLP_ITEMS_MAX; i++) { /* then the collector has its turn, too */
        ssize_t n =
            recv(exporter->config->socket_fd, exporter->message, OTLP_ITEM_MAX, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            exporter->until_us = clock_us() + FLUSH_US;
            exporter->not_before_us = 0;
            return;
        }
        take_item(exporter, (struct str){exporter->message, (size_t)n});
    }
}

/* ---- out ---- */

static bool is_due(const struct exporter *exporter, const struct lane *lane, uint64_t now)
{
    return lane->queue.n &&
           (exporter->until_us || lane->queue.n >= GATHERED_N || now >= lane->since_us + GATHER_US);
}

static int write_body(struct exporter *exporter, enum otlp_signal signal, struct err *err)
{
    struct lane *lane = &exporter->lanes[signal];

    exporter->batch_n = otlp_queue_batch(&lane->queue, OTLP_BATCH_MAX, OTLP_BATCH_BYTES);
    buf_clear(&exporter->body);
    if (otlp_envelope_open(signal, &exporter->config->resource, &exporter->body, err) < 0)
        return -1;
    for (size_t i = 0; i < exporter->batch_n; i++)
        if ((i && buf_add_byte(&exporter->body, ',', err) < 0) ||
            buf_add_str(&exporter->body, otlp_queue_at(&lane->queue, i), err) < 0)
            return -1;
    return otlp_envelope_close(&exporter->body, err);
}

/* The next of the three that has something to say. */
static int begin_post(struct exporter *exporter, uint64_t now, struct err *err)
{
    uint64_t wait_ms = POST_MS;

    if (now < exporter->not_before_us || post_is_busy(exporter->post))
        return 0;
    if (exporter->until_us)
        wait_ms = sooner(exporter->until_us, now, POST_MS) + 1;
    for (unsigned i = 0; i < OTLP_SIGNALS; i++) {
        unsigned signal = (exporter->turn + i) % OTLP_SIGNALS;

        if (!is_due(exporter, &exporter->lanes[signal], now))
            continue;
        exporter->turn = signal + 1;
        exporter->current = &exporter->lanes[signal];
        if (write_body(exporter, signal, err) < 0)
            return -1;
        return post_begin(exporter->post, signal, buf_str(&exporter->body), wait_ms, err);
    }
    return 0;
}

/* ---- what came of it ---- */

/* Once when it begins to fail, and once when it is over: a line for each attempt would be an alarm
 * nobody hears. */
static void tell(struct exporter *exporter, const struct post_result *result, bool failed)
{
    if (failed == exporter->is_failing)
        return;
    exporter->is_failing = failed;
    if (failed)
        (void)dprintf(STDERR_FILENO,
                      "{\"level\":\"warn\",\"event\":\"otlp\",\"message\":\"the collector does not "
                      "take telemetry: %s\",\"status\":%ld}\n",
                      result->why && !result->status ? result->why : "it refuses", result->status);
    else
        (void)dprintf(STDERR_FILENO, "{\"level\":\"info\",\"event\":\"otlp\",\"message\":\"the "
                                     "collector takes telemetry again\"}\n");
}

static void end_batch(struct exporter *exporter, uint64_t taken)
{
    struct lane *lane = exporter->current;
    struct otlp_numbers *numbers = exporter->config->numbers;

    taken = taken < exporter->batch_n ? taken : exporter->batch_n;
    count(&numbers->sent, taken);
    count(&numbers->dropped, exporter->batch_n - taken);
    otlp_queue_drop(&lane->queue, exporter->batch_n);
    lane->attempts = 0;
    lane->since_us = clock_us();
}

static void judge(struct exporter *exporter, const struct post_result *result)
{
    struct lane *lane = exporter->current;
    bool taken = result->status >= 200 && result->status <= 299;
    uint64_t now = clock_us(), rejected;
    uint32_t chance = 0;

    tell(exporter, result, !taken);
    if (taken) {
        rejected = otlp_rejected(result->answer);
        end_batch(exporter, rejected < exporter->batch_n ? exporter->batch_n - rejected : 0);
        return;
    }
    count(&exporter->config->numbers->failed, 1);
    if ((result->status && !otlp_is_passing(result->status)) || ++lane->attempts >= ATTEMPTS_MAX) {
        end_batch(exporter, 0);
        return;
    }
    (void)!getrandom(&chance, sizeof chance, GRND_NONBLOCK); /* without it: the shortest wait */
    exporter->not_before_us =
        now + 1000U * otlp_wait_ms(lane->attempts, result->retry_after_s, chance);
}

/* ---- its life ---- */

/* How long nothing needs to be looked at unless something comes. */
static uint64_t patience_ms(const struct exporter *exporter, uint64_t now)
{
    uint64_t wait_ms = exporter->until_us ? sooner(exporter->until_us, now, IDLE_MS) : IDLE_MS;

    if (post_is_busy(exporter->post))
        return wait_ms;
    for (unsigned i = 0; i < OTLP_SIGNALS; i++) {
        const struct lane *lane = &exporter->lanes[i];
        uint64_t due_us = exporter->until_us ? now : lane->since_us + GATHER_US;

        if (lane->queue.n)
            wait_ms = sooner(due_us > exporter->not_before_us ? due_us : exporter->not_before_us,
                             now, wait_ms);
    }
    return wait_ms;
}

static bool has_ended(const struct exporter *exporter, uint64_t now)
{
    size_t waiting = 0;

    for (unsigned i = 0; i < OTLP_SIGNALS; i++)
        waiting += exporter->lanes[i].queue.n;
    return exporter->until_us && (waiting == 0 || now >= exporter->until_us);
}

static int run(struct exporter *exporter, struct err *err)
{
    struct post_result result;

    while (!has_ended(exporter, clock_us())) {
        if (!exporter->until_us)
            take_items(exporter);
        if (begin_post(exporter, clock_us(), err) < 0)
            return -1;
        if (post_wait(exporter->post, exporter->until_us ? -1 : exporter->config->socket_fd,
                      patience_ms(exporter, clock_us()), &result))
            judge(exporter, &result);
    }
    return 0;
}

int export_run(const struct export_config *config, struct err *err)
{
    /* An item may be larger than what is wanted of a batch. */
    struct exporter exporter = {.config = config,
                                .body = BUF(OTLP_BATCH_BYTES + OTLP_ITEM_MAX + 64 * KIB)};
    int failed;

    for (unsigned i = 0; i < OTLP_SIGNALS; i++)
        otlp_queue_init(&exporter.lanes[i].queue, OTLP_ITEMS_MAX, OTLP_QUEUE_MAX);
    exporter.message = xmalloc(OTLP_ITEM_MAX);
    failed = post_open(&config->post, &exporter.post, err);
    if (!failed)
        failed = run(&exporter, err);
    post_free(exporter.post);
    for (unsigned i = 0; i < OTLP_SIGNALS; i++) {
        count(&config->numbers->dropped, exporter.lanes[i].queue.n);
        otlp_queue_done(&exporter.lanes[i].queue);
    }
    free(exporter.message);
    buf_done(&exporter.body);
    return failed;
}
