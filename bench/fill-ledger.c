/* SPDX-License-Identifier: Apache-2.0 */

/* fill-ledger STATE N: N receipts of runs that were refused, so that a ledger is as long as one
 * that was used for a year. */

#include <stdio.h>
#include <stdlib.h>

#include "flow/admit/admit.h"
#include "flow/record/record.h"

#define AT_ONCE 500

static void fill(struct record *record, size_t n)
{
    static const char *const argv[] = {"true", NULL};
    static struct run runs[AT_ONCE];
    static struct record_entry entries[AT_ONCE];
    const struct request request = {
        .principal = "bench",
        .tenant = "default",
        .provider = "local",
        .image = "host",
        .argv = {argv, 1}
    };
    struct err err;

    for (size_t i = 0; i < n; i++) {
        run_init(&runs[i]);
        if (admit_run(&request, &runs[i], &err) < 0)
            exit(1);
        runs[i].verdict = (struct verdict){.reason = REASON_POLICY_DENY};
        entries[i] = (struct record_entry){.run = &runs[i]};
    }
    if (record_append_many(record, entries, n, &err) < 0) {
        (void)fprintf(stderr, "fill-ledger: %s\n", err.text);
        exit(1);
    }
    for (size_t i = 0; i < n; i++)
        run_done(&runs[i]);
}

int main(int argc, char **argv)
{
    AUTO(record) struct record *record = NULL;
    size_t left = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    struct err err;

    if (left == 0 || record_open(argv[1], &record, &err) < 0)
        return 1;
    for (; left; left -= left < AT_ONCE ? left : AT_ONCE)
        fill(record, left < AT_ONCE ? left : AT_ONCE);
    return 0;
}
