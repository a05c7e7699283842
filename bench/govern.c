/* SPDX-License-Identifier: Apache-2.0 */

/* What governance costs: deciding, writing a receipt, signing it, making it durable.
 *
 *     ninja -C build bench/govern && build/bench/govern [DIRECTORY]
 *
 * The directory (default: the current one) decides which disk is measured. Every figure stands
 * next to the bare operation it cannot be faster than, taken in the same run. */

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "flow/decide/decide.h"
#include "flow/record/record.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/keeper/keeper.h"

#define ROUNDS 20000
#define WARM_UP 500
#define IN_FLIGHT_MAX 256
#define BATCHES_MAX 10000
#define GROUP_NS 2000000000ULL
#define RECEIPTS_BYTES 2000 /* of the bare rows; about what a receipt has */

static const char policy_text[] = "version: 1\n"
                                  "default: deny\n"
                                  "commands:\n"
                                  "  - name: build\n"
                                  "    allow: [make, \"*\"]\n"
                                  "  - name: tests\n"
                                  "    allow: [npm, test]\n"
                                  "  - name: listing\n"
                                  "    allow: [ls, \"**\"]\n"
                                  "  - name: no-deleting\n"
                                  "    deny: [rm, \"**\"]\n";

static void print_times(const char *what, uint64_t *ns, size_t n)
{
    sort_ns(ns, n);
    (void)printf("%-52s %9.1f %9.1f %9.1f\n", what, (double)ns[n / 2] / 1e3,
                 (double)ns[n * 99 / 100] / 1e3, (double)ns[n - 1] / 1e3);
}

/* Batches of so many took these times: the rate over all of them, and that of the median batch,
 * which a busy neighbour disturbs less. */
static void print_rate(const char *what, size_t each, uint64_t *ns, size_t n)
{
    uint64_t all = 0;

    for (size_t i = 0; i < n; i++)
        all += ns[i];
    sort_ns(ns, n);
    (void)printf("%-52s %9.0f /s  median batch %9.0f /s\n", what,
                 (double)(n * each) * 1e9 / (double)all, (double)each * 1e9 / (double)ns[n / 2]);
}

/* A run as it comes out of admit and equip; decide fills the rest. */
static void make_run(struct run *run, bool allowed)
{
    static const char *const make[] = {"make", "all", NULL};
    static const char *const rm[] = {"rm", "-rf", "/", NULL};

    run_init(run);
    run->action.principal = "uid:1000";
    run->action.tenant = "default";
    run->action.provider = "local";
    run->action.argv = allowed ? (struct words){make, 2} : (struct words){rm, 3};
    hash_text_of(STR_LIT("request"), run->action.request_hash);
    for (int kind = 0; kind < LIMIT_COUNT; kind++)
        run->plan.limits.of[kind] =
            (struct limit){limit_default((enum limit_kind)kind), MEANS_CGROUP, ORIGIN_DEFAULT};
    (void)snprintf(run->planned.provider_version, sizeof run->planned.provider_version,
                   "local/0.1.0 linux/6.1.0 landlock/7");
    hash_text_of(STR_LIT("spec"), run->planned.sandbox_spec_hash);
    hash_text_of(STR_LIT("image"), run->planned.image_digest);
    hash_text_of(STR_LIT("mounts"), run->planned.mounts_hash);
    hash_text_of(STR_LIT("egress"), run->planned.egress_policy_hash);
    hash_text_of(STR_LIT("limits"), run->planned.resource_limits_hash);
    hash_text_of(STR_LIT("preimage"), run->planned.preimage_hash);
}

static void decide(const struct policy *policy, struct run *run, bool allowed)
{
    struct err err;

    if (decide_run(policy, run, &err) < 0)
        give_up("deciding", err.text);
    if (run->verdict.kind != (allowed ? VERDICT_ALLOW : VERDICT_DENY)) {
        (void)fprintf(stderr, "govern: the verdict is %s, so this measures the wrong branch\n",
                      verdict_name(run->verdict.kind));
        exit(1);
    }
}

static void measure_in_memory(struct record *record, const struct policy *policy, bool allowed,
                              const char *what)
{
    static uint64_t ns[ROUNDS];
    struct err err;

    for (unsigned i = 0; i < ROUNDS + WARM_UP; i++) {
        struct run run;
        uint64_t start;

        make_run(&run, allowed);
        start = now_ns();
        decide(policy, &run, allowed);
        if (record_rehearse(record, &run, &err) < 0)
            give_up("signing", err.text);
        if (i >= WARM_UP)
            ns[i - WARM_UP] = now_ns() - start;
        run_done(&run);
    }
    print_times(what, ns, ROUNDS);
}

static void measure_signature(const char *dir)
{
    AUTO(signing_key) struct signing_key *key = NULL;
    AUTO_FREE char *path = NULL;
    static uint64_t ns[ROUNDS];
    struct hash hash = {{1}};
    struct signature signature;
    struct err err;

    if (asprintf(&path, "%s/receipts.key", dir) < 0 || signing_key_open(path, &key, &err) < 0)
        give_up("opening the key", err.text);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t start = now_ns();

        signing_key_sign(key, &hash, &signature);
        memcpy(hash.b, signature.b, sizeof hash.b);
        ns[i] = now_ns() - start;
    }
    print_times("bare Ed25519 signature", ns, ROUNDS);
}

/* What it costs that the key lies in another process: a batch of n, each. */
static void measure_keeper(struct signer *signer, size_t n, const char *what)
{
    static uint64_t ns[ROUNDS];
    struct hash hashes[SIGNER_BATCH_MAX] = {0};
    struct signature signatures[SIGNER_BATCH_MAX];
    unsigned rounds = ROUNDS / (unsigned)n;
    struct err err;

    for (unsigned i = 0; i < rounds; i++) {
        uint64_t start = now_ns();

        if (signer->sign(signer, hashes, n, signatures, &err) < 0)
            give_up("asking the keeper", err.text);
        memcpy(hashes[0].b, signatures[0].b, sizeof hashes[0].b);
        ns[i] = (now_ns() - start) / n;
    }
    print_times(what, ns, rounds);
}

static void measure_one_by_one(struct record *record, const struct policy *policy)
{
    enum { N = 1000 };
    static uint64_t ns[N];
    struct err err;

    for (unsigned i = 0; i < N; i++) {
        struct run run;
        uint64_t start;

        make_run(&run, true);
        start = now_ns();
        decide(policy, &run, true);
        if (record_intent(record, &run, &err) < 0)
            give_up("recording", err.text);
        ns[i] = now_ns() - start;
        run_done(&run);
    }
    print_times("decide + receipt + signature, durable one by one", ns, N);
}

static uint64_t batch_ns[BATCHES_MAX];

static void decide_batch(const struct policy *policy, struct run *runs,
                         struct record_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        make_run(&runs[i], true);
        decide(policy, &runs[i], true);
        entries[i] = (struct record_entry){&runs[i], false};
    }
}

/* As many clients as are in flight, each with its next run as soon as its receipt is durable. */
static void measure_group(struct record *record, const struct policy *policy, size_t in_flight)
{
    static struct run runs[IN_FLIGHT_MAX];
    struct record_entry entries[IN_FLIGHT_MAX];
    uint64_t end = now_ns() + GROUP_NS;
    char what[64];
    size_t n = 0;
    struct err err;

    for (; n < BATCHES_MAX && now_ns() < end; n++) {
        uint64_t start = now_ns();

        decide_batch(policy, runs, entries, in_flight);
        if (record_append_many(record, entries, in_flight, &err) < 0)
            give_up("recording", err.text);
        for (size_t i = 0; i < in_flight; i++)
            run_done(&runs[i]);
        batch_ns[n] = now_ns() - start;
    }
    (void)snprintf(what, sizeof what, "decided, signed, durable, %zu in flight", in_flight);
    print_rate(what, in_flight, batch_ns, n);
}

static void insert_bare_rows(sqlite3_stmt *insert, size_t n)
{
    static char body[RECEIPTS_BYTES];

    memset(body, 'x', sizeof body);
    for (size_t i = 0; i < n; i++) {
        char id[ID_BYTES];

        id_new(id);
        (void)sqlite3_bind_text(insert, 1, id, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(insert, 2, body, sizeof body, SQLITE_STATIC);
        if (sqlite3_step(insert) != SQLITE_DONE)
            exit(1);
        (void)sqlite3_reset(insert);
    }
}

/* The same bytes, without decision, receipt, chain or signature. */
static void measure_bare_rows(const char *dir, size_t in_flight)
{
    AUTO_FREE char *path = NULL;
    sqlite3 *db = NULL;
    sqlite3_stmt *insert = NULL;
    uint64_t end = now_ns() + GROUP_NS;
    char what[64];
    size_t n = 0;

    if (asprintf(&path, "%s/bare.db", dir) < 0 || sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                     "CREATE TABLE IF NOT EXISTS t (seq INTEGER PRIMARY KEY, id TEXT UNIQUE,"
                     " body TEXT)",
                     NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "INSERT INTO t (id, body) VALUES (?, ?)", -1, &insert, NULL) !=
            SQLITE_OK)
        exit(1);
    for (; n < BATCHES_MAX && now_ns() < end; n++) {
        uint64_t start = now_ns();

        (void)sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
        insert_bare_rows(insert, in_flight);
        (void)sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
        batch_ns[n] = now_ns() - start;
    }
    (void)snprintf(what, sizeof what, "bare SQLite rows, durable, %zu a transaction", in_flight);
    print_rate(what, in_flight, batch_ns, n);
    (void)sqlite3_finalize(insert);
    (void)sqlite3_close(db);
}

/* What a one-shot program pays, in processes of their own so that nothing is warm but the disk
 * cache: opening key and ledger, an intent, an outcome, closing. */
static void measure_one_shot(const char *dir)
{
    enum { N = 200, STEPS = 4 };
    static const char *const names[STEPS] = {"one-shot: open key and ledger", "one-shot: intent",
                                             "one-shot: outcome", "one-shot: close"};
    static uint64_t ns[STEPS][N];
    int fds[2];

    if (pipe(fds) < 0)
        exit(1);
    for (unsigned i = 0; i < N; i++) {
        uint64_t at[STEPS + 1];
        pid_t pid = fork();

        if (pid == 0) {
            struct record *record = NULL;
            struct run run;
            struct err err;

            make_run(&run, true);
            run.verdict = (struct verdict){
                .kind = VERDICT_ALLOW, .reason = REASON_POLICY_ALLOW, .rule = "build", .line = 4};
            at[0] = now_ns();
            if (record_open(dir, &record, &err) < 0)
                give_up("opening", err.text);
            at[1] = now_ns();
            if (record_intent(record, &run, &err) < 0)
                give_up("intent", err.text);
            at[2] = now_ns();
            if (record_close(record, &run, &err) < 0)
                give_up("outcome", err.text);
            at[3] = now_ns();
            record_free(record);
            at[4] = now_ns();
            _exit(write(fds[1], at, sizeof at) == (ssize_t)sizeof at ? 0 : 1);
        }
        if (waitpid(pid, NULL, 0) != pid || read(fds[0], at, sizeof at) != (ssize_t)sizeof at)
            exit(1);
        for (unsigned k = 0; k < STEPS; k++)
            ns[k][i] = at[k + 1] - at[k];
    }
    for (unsigned k = 0; k < STEPS; k++)
        print_times(names[k], ns[k], N);
}

static void measure_verify(struct record *record, const char *dir)
{
    struct record_trust trust = {.why = "ours"};
    struct record_check check = {.trust = &trust};
    struct record_report report;
    uint64_t start = now_ns();
    uint64_t took;
    struct err err;

    if (record_own_key(dir, &trust.key, &err) < 0 ||
        record_verify(record, &check, &report, &err) < 0)
        give_up("verifying", err.text);
    if (report.integrity != INTEGRITY_INTACT) {
        (void)fprintf(stderr, "govern: %s\n", report.fault_text);
        exit(1);
    }
    took = now_ns() - start;
    print_rate("verify the ledger written here", report.entries, &took, 1);
}

static void measure_kept(const char *dir, const struct policy *policy)
{
    static struct record_signing signing;
    static const size_t in_flight[] = {1, 16, 64, 256};
    AUTO(keeper) struct keeper *keeper = NULL;
    AUTO(signer) struct signer *signer = NULL;
    AUTO(record) struct record *record = NULL;
    struct err err;

    if (keeper_open(dir, NULL, &keeper, &err) < 0 || keeper_signer(keeper, dir, &signer, &err) < 0)
        give_up("starting a keeper", err.text);
    (void)printf("the same, signed by a keeper:\n");
    measure_keeper(signer, 1, "signature by the keeper, alone");
    measure_keeper(signer, 16, "signature by the keeper, each of 16");
    measure_keeper(signer, 64, "signature by the keeper, each of 64");
    signing = (struct record_signing){keeper_signer, keeper};
    record_sign_elsewhere(&signing);
    if (record_open(dir, &record, &err) < 0)
        give_up("opening", err.text);
    measure_one_by_one(record, policy);
    for (size_t i = 0; i < COUNT(in_flight); i++)
        measure_group(record, policy, in_flight[i]);
    record_sign_elsewhere(NULL);
}

static void measure_all(const char *dir)
{
    static const size_t in_flight[] = {1, 16, 64, 256};
    AUTO(policy) struct policy *policy = NULL;
    AUTO(record) struct record *record = NULL;
    struct mark where;
    struct err err;

    if (policy_parse(str_of(policy_text), &policy, &where, &err) < 0)
        give_up("policy", err.text);
    (void)printf("%-52s %9s %9s %9s\n", "microseconds", "p50", "p99", "max");
    measure_one_shot(dir);
    if (record_open(dir, &record, &err) < 0)
        give_up("opening", err.text);
    measure_signature(dir);
    measure_in_memory(record, policy, true, "decide + receipt + signature, ALLOW, in memory");
    measure_in_memory(record, policy, false, "decide + receipt + signature, DENY, in memory");
    measure_one_by_one(record, policy);
    for (size_t i = 0; i < COUNT(in_flight); i++) {
        measure_bare_rows(dir, in_flight[i]);
        measure_group(record, policy, in_flight[i]);
    }
    measure_kept(dir, policy);
    measure_verify(record, dir);
}

int main(int argc, char **argv)
{
    AUTO_FREE char *dir = NULL;
    struct err err;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (asprintf(&dir, "%s/bench-govern-XXXXXX", argc > 1 ? argv[1] : ".") < 0 || !mkdtemp(dir)) {
        (void)fprintf(stderr, "govern: cannot make a directory in %s\n", argc > 1 ? argv[1] : ".");
        return 1;
    }
    measure_all(dir);
    if (dir_remove(AT_FDCWD, dir, &err) < 0)
        give_up("cleaning up", err.text);
    return 0;
}
