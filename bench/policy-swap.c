/* SPDX-License-Identifier: Apache-2.0 */

/* policy-swap: how long a sandbox's rules take from being sent to being acknowledged.
 *
 *     policy-swap [SWAPS] [RULES]
 *
 * An egress program in a directory of its own gets a sandbox and then two sets of rules in turn.
 * Beside it, in the same run: the same bytes to and from a socket pair, which is what cannot be
 * saved. */

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/egress/control.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define SWAPS_MAX 10000

static NORETURN void give_up(const char *why)
{
    (void)fprintf(stderr, "policy-swap: %s\n", why);
    exit(1);
}

static void write_rules(struct buf *out, unsigned set, unsigned rules)
{
    struct err err;
    int failed = buf_add_text(
        out,
        "{\"network_policies\":{\"e\":{\"binaries\":[{\"path\":\"/usr/bin/curl\"}],\"endpoints\":[",
        &err);

    for (unsigned i = 0; !failed && i < rules; i++)
        failed = buf_addf(out, &err, "%s{\"host\":\"h%u.example%u.org\",\"port\":443}",
                          i ? "," : "", i, set);
    if (failed || buf_add_text(out, "]}}}", &err) < 0)
        give_up(err.text);
}

static int by_size(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void tell(const char *what, uint64_t *us, unsigned n)
{
    qsort(us, n, sizeof *us, by_size);
    printf("%-28s median %6llu us   p95 %6llu us   (%u times)\n", what,
           (unsigned long long)us[n / 2], (unsigned long long)us[n * 95 / 100], n);
}

static void measure_pair(struct str text, uint64_t *us, unsigned n)
{
    AUTO_FREE char *room = xmalloc(text.n);
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        give_up("no socket pair");
    for (unsigned i = 0; i < n; i++) {
        uint64_t began = clock_us();
        struct err err;

        for (size_t at = 0; at < text.n;) {
            size_t part = text.n - at < 32 * KIB ? text.n - at : 32 * KIB;

            if (write_all(ends[0], text.p + at, part, &err) < 0)
                give_up(err.text);
            for (size_t got = 0; got < part;) {
                ssize_t more = read(ends[1], room, part - got);

                if (more <= 0)
                    give_up("the pair broke");
                got += (size_t)more;
            }
            at += part;
        }
        us[i] = clock_us() - began;
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
}

int main(int argc, char **argv)
{
    unsigned swaps = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 300;
    unsigned rules = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1000;
    struct buf sets[2] = {BUF(8 * MIB), BUF(8 * MIB)};
    AUTO(egress) struct egress *egress = NULL;
    char dir[] = "/tmp/policy-swap-XXXXXX";
    static uint64_t us[SWAPS_MAX];
    struct hash hash;
    struct err err;
    int ends[2];

    if (swaps == 0 || swaps > SWAPS_MAX)
        give_up("1 to 10000 swaps");
    write_rules(&sets[0], 0, rules);
    write_rules(&sets[1], 1, rules);
    if (!mkdtemp(dir) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        give_up("no directory, or no socket pair");
    if (egress_open(dir, &egress, &err) < 0 ||
        egress_sandbox(egress, "bench", buf_str(&sets[0]), ends[1], &hash, &err) < 0)
        give_up(err.text);
    for (unsigned i = 0; i < swaps; i++) {
        uint64_t began = clock_us();

        if (egress_swap(egress, "bench", buf_str(&sets[(i + 1) % 2]), &hash, &err) < 0)
            give_up(err.text);
        us[i] = clock_us() - began;
    }
    printf("%u rules, %zu bytes\n", rules, sets[0].n);
    tell("swap to acknowledgement", us, swaps);
    measure_pair(buf_str(&sets[0]), us, swaps);
    tell("the bytes over a socket pair", us, swaps);
    if (egress_end(egress, "bench", &err) < 0 || dir_remove(AT_FDCWD, dir, &err) < 0)
        give_up(err.text);
    return 0;
}
