/* SPDX-License-Identifier: Apache-2.0 */

/* cold: how long it takes from asking for a process until it is reaped, for several programs side
 * by side.
 *
 *     cold [-n SAMPLES] [-w WARM-UPS] [-p PAUSE-MS] [-i] [-r A/B]... :: NAME [ns=FILE] ARGV... ::
 * ...
 *
 * Every round runs each program once, so whatever else the machine does falls on all of them. -p
 * rests before each start: what the kernel does only after a rest shows then. -i waits before a
 * round until the machine has been idle for a moment (and gives up after a while; how often is
 * told). -r prints the ratio of two medians. ns= starts a program in another mount namespace.
 *
 * A program that does not end with status 0 stops the measurement: what fails fast is not fast. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/base/attrs.h"

#define CONTENDERS_MAX 16
#define RATIOS_MAX 16
#define IDLE_WINDOW_MS 20
#define IDLE_TRIES 25
#define IDLE_SHARE 85 /* per cent of all processors */

extern char **environ;

struct contender {
    const char *name;
    char **argv;
    int ns_fd; /* mount namespace to start in, or -1 */
    uint64_t *ns;
    uint64_t *cpu_ns; /* of itself and all it waited for */
    long peak_kib;    /* of itself or anything it waited for */
};

static struct {
    struct contender of[CONTENDERS_MAX];
    size_t n;
    const char *ratios[RATIOS_MAX];
    size_t ratio_n;
    size_t samples;
    size_t warm_ups;
    long pause_ms;
    bool idle;
    size_t busy_rounds;
} bench = {.samples = 300, .warm_ups = 10};

static NORETURN void PRINTF(1, 2) stop(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)fputs("cold: ", stderr);
    (void)vfprintf(stderr, fmt, args);
    (void)fputc('\n', stderr);
    va_end(args);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static void rest(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    if (ms > 0)
        (void)nanosleep(&t, NULL);
}

/* ---- one start ---- */

/* posix_spawn cannot change namespaces; this is what it does inside, with one call more. */
static pid_t start_elsewhere(const struct contender *c)
{
    pid_t pid = vfork();

    if (pid == 0) {
        if (setns(c->ns_fd, CLONE_NEWNS) == 0)
            (void)execv(c->argv[0], c->argv);
        _exit(127);
    }
    return pid;
}

static uint64_t ns_of(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_usec * 1000U;
}

static uint64_t run_once(struct contender *c, uint64_t *cpu_ns)
{
    struct rusage usage;
    uint64_t began = now_ns();
    uint64_t took;
    pid_t pid = -1;
    int status = 0;

    if (c->ns_fd >= 0)
        pid = start_elsewhere(c);
    else if (posix_spawn(&pid, c->argv[0], NULL, NULL, c->argv, environ) != 0)
        stop("%s: cannot start %s", c->name, c->argv[0]);
    while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR)
        continue;
    took = now_ns() - began;
    if (status != 0)
        stop("%s: %s ended with status %#x", c->name, c->argv[0], (unsigned)status);
    if (usage.ru_maxrss > c->peak_kib)
        c->peak_kib = usage.ru_maxrss;
    *cpu_ns = ns_of(usage.ru_utime) + ns_of(usage.ru_stime);
    return took;
}

/* ---- rounds ---- */

static bool read_idle(unsigned long long *idle, unsigned long long *all)
{
    unsigned long long t[8] = {0};
    FILE *file = fopen("/proc/stat", "re");
    int n = file ? fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2],
                          &t[3], &t[4], &t[5], &t[6], &t[7])
                 : 0;

    if (file)
        (void)fclose(file);
    *idle = t[3] + t[4];
    *all = 0;
    for (size_t i = 0; i < COUNT(t); i++)
        *all += t[i];
    return n == 8;
}

static bool is_idle_now(void)
{
    unsigned long long idle[2], all[2];

    if (!read_idle(&idle[0], &all[0]))
        return true;
    rest(IDLE_WINDOW_MS);
    return read_idle(&idle[1], &all[1]) &&
           (idle[1] - idle[0]) * 100 >= (all[1] - all[0]) * IDLE_SHARE;
}

static void wait_until_idle(void)
{
    for (int i = 0; i < IDLE_TRIES; i++)
        if (is_idle_now())
            return;
    bench.busy_rounds++;
}

static void measure(void)
{
    for (size_t round = 0; round < bench.warm_ups + bench.samples; round++) {
        if (bench.idle && round >= bench.warm_ups)
            wait_until_idle();
        for (size_t i = 0; i < bench.n; i++) {
            /* Another order each round: nobody always comes after the same one. */
            struct contender *c = &bench.of[(i + round) % bench.n];
            uint64_t took, cpu_ns;

            rest(bench.pause_ms);
            took = run_once(c, &cpu_ns);
            if (round >= bench.warm_ups) {
                c->ns[round - bench.warm_ups] = took;
                c->cpu_ns[round - bench.warm_ups] = cpu_ns;
            }
        }
    }
}

/* What the programs print is not ours to show. */
static void mute(bool on)
{
    static int shown_fd = -1;
    int null_fd;

    if (!on) {
        (void)dup2(shown_fd, STDOUT_FILENO);
        return;
    }
    shown_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    /* Not /dev/null: crun gives its streams to the user of the container. */
    null_fd = memfd_create("nothing", MFD_CLOEXEC);
    if (shown_fd < 0 || dup2(null_fd, STDOUT_FILENO) < 0 || dup2(null_fd, STDIN_FILENO) < 0)
        stop("memory file: %s", strerror(errno));
}

/* ---- figures ---- */

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

static double ms_at(const struct contender *c, unsigned permille)
{
    return (double)c->ns[(bench.samples - 1) * permille / 1000] / 1e6;
}

static double cpu_ms(const struct contender *c)
{
    return (double)c->cpu_ns[bench.samples / 2] / 1e6;
}

static const struct contender *find(const char *name, size_t n)
{
    for (size_t i = 0; i < bench.n; i++)
        if (strlen(bench.of[i].name) == n && strncmp(bench.of[i].name, name, n) == 0)
            return &bench.of[i];
    stop("there is no \"%.*s\" to compare", (int)n, name);
}

static void print_table(void)
{
    (void)printf("| %-22s | %8s | %8s | %8s | %8s | %8s | %8s | %8s |\n", "ms", "min", "p50", "p95",
                 "p99", "x first", "cpu p50", "peak KiB");
    (void)printf(
        "| ---------------------- | -------: | -------: | -------: | -------: | -------: | "
        "-------: | -------: |\n");
    for (size_t i = 0; i < bench.n; i++) {
        struct contender *c = &bench.of[i];

        qsort(c->ns, bench.samples, sizeof *c->ns, by_value);
        qsort(c->cpu_ns, bench.samples, sizeof *c->cpu_ns, by_value);
        (void)printf("| %-22s | %8.2f | %8.2f | %8.2f | %8.2f | %8.2f | %8.2f | %8ld |\n", c->name,
                     ms_at(c, 0), ms_at(c, 500), ms_at(c, 950), ms_at(c, 990),
                     ms_at(c, 500) / ms_at(&bench.of[0], 500), cpu_ms(c), c->peak_kib);
    }
    (void)printf("%zu samples each\n", bench.samples);
    for (size_t i = 0; i < bench.ratio_n; i++) {
        const char *slash = strchr(bench.ratios[i], '/');
        const struct contender *a, *b;

        if (!slash)
            stop("-r wants A/B, not %s", bench.ratios[i]);
        a = find(bench.ratios[i], (size_t)(slash - bench.ratios[i]));
        b = find(slash + 1, strlen(slash + 1));
        (void)printf("%s: %.2f of the median, %.2f of the processor time\n", bench.ratios[i],
                     ms_at(a, 500) / ms_at(b, 500), cpu_ms(a) / cpu_ms(b));
    }
    if (bench.idle && bench.busy_rounds)
        (void)printf("%zu of %zu rounds began while the machine was busy\n", bench.busy_rounds,
                     bench.samples);
}

/* ---- the command line ---- */

static void add_contender(char **words, size_t n)
{
    struct contender *c = &bench.of[bench.n];

    if (n < 2 || bench.n == CONTENDERS_MAX)
        stop("each of at most %d programs is a name and its words", CONTENDERS_MAX);
    *c = (struct contender){.name = words[0], .argv = words + 1, .ns_fd = -1};
    if (strncmp(words[1], "ns=", 3) == 0) {
        c->ns_fd = open(words[1] + 3, O_RDONLY | O_CLOEXEC);
        if (c->ns_fd < 0)
            stop("%s: %s", words[1] + 3, strerror(errno));
        c->argv++;
    }
    c->ns = calloc(bench.samples, sizeof *c->ns);
    c->cpu_ns = calloc(bench.samples, sizeof *c->cpu_ns);
    if (!c->argv[0] || !c->ns || !c->cpu_ns)
        stop("%s has no program", c->name);
    bench.n++;
}

static int read_options(int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "+n:w:p:ir:")) != -1) {
        if (option == 'n')
            bench.samples = strtoul(optarg, NULL, 10);
        else if (option == 'w')
            bench.warm_ups = strtoul(optarg, NULL, 10);
        else if (option == 'p')
            bench.pause_ms = strtol(optarg, NULL, 10);
        else if (option == 'i')
            bench.idle = true;
        else if (option == 'r' && bench.ratio_n < RATIOS_MAX)
            bench.ratios[bench.ratio_n++] = optarg;
        else
            stop("usage: cold [-n N] [-w N] [-p MS] [-i] [-r A/B]... :: NAME [ns=FILE] ARGV...");
    }
    if (bench.samples == 0)
        stop("-n wants a number above 0");
    return optind;
}

int main(int argc, char **argv)
{
    int at = read_options(argc, argv);

    while (at < argc) {
        int first = ++at;

        while (at < argc && strcmp(argv[at], "::") != 0)
            at++;
        argv[at] = NULL; /* the separator, or the end of argv, which is NULL already */
        add_contender(argv + first, (size_t)(at - first));
    }
    if (bench.n == 0)
        stop("nothing to measure");
    mute(true);
    measure();
    mute(false);
    print_table();
    return 0;
}
