/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>

#include "lib/base/io.h"
#include "test.h"

static char dir[] = "/tmp/brig-record-XXXXXX";

void fixture_begin(void)
{
    CHECK(mkdtemp(dir) != NULL);
}

void fixture_end(void)
{
    struct err err;

    CHECK_INT(dir_remove(AT_FDCWD, dir, &err), 0);
}

const char *fixture_dir(void)
{
    return dir;
}

const char *fixture_path(const char *name)
{
    static char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void fill_hash(char out[MODEL_HASH_BYTES], const char *of)
{
    hash_text_of(str_of(of), out);
}

void fixture_run(struct run *run)
{
    static const char *const argv[] = {"sh", "-c", "echo CANARY-ARGUMENT", NULL};
    static const char *const env[] = {"TOKEN=CANARY-VARIABLE", NULL};

    run_init(run);
    run->action.principal = "uid:1000";
    run->action.tenant = "default";
    run->action.provider = "local";
    run->action.argv = (struct words){argv, 3};
    run->action.env = (struct words){env, 1};
    fill_hash(run->action.request_hash, "request");
    fill_hash(run->policy_hash, "policy");
    run->verdict = (struct verdict){
        VERDICT_ALLOW, REASON_POLICY_ALLOW, "build tools", 12, "allows CANARY-PARTICULARS", NULL,
        NULL};
    for (int kind = 0; kind < LIMIT_COUNT; kind++)
        run->plan.limits.of[kind] =
            (struct limit){limit_default((enum limit_kind)kind), MEANS_CGROUP, ORIGIN_DEFAULT};
    (void)snprintf(run->planned.provider_version, sizeof run->planned.provider_version,
                   "local/0.1.0 linux/6.1 landlock/7");
    run->planned.evidence = EVIDENCE_CLAIMED; /* what equip counts on */
    fill_hash(run->planned.sandbox_spec_hash, "spec");
    fill_hash(run->planned.image_digest, "image");
    fill_hash(run->planned.mounts_hash, "mounts");
    fill_hash(run->planned.egress_policy_hash, "egress");
    fill_hash(run->planned.resource_limits_hash, "limits");
    fill_hash(run->planned.preimage_hash, "preimage");
}

void fixture_ended(struct run *run, int exit_code)
{
    run->observed = run->planned;
    run->observed.evidence = EVIDENCE_OBSERVED;
    run->outcome = (struct outcome){.started = true,
                                    .ended = true,
                                    .exit_code = exit_code,
                                    .duration_us = 1234,
                                    .cpu_us = 567,
                                    .peak_memory_bytes = 89};
    run->outcome.out.bytes = 6;
    fill_hash(run->outcome.out.hash, "hello\n");
    fill_hash(run->outcome.err.hash, "");
    fill_hash(run->outcome.output_hash, "both");
}

struct record *fixture_open(void)
{
    struct record *record = NULL;
    struct err err;

    if (record_open(dir, &record, &err) < 0) {
        test_fail(__FILE__, __LINE__, "%s", err.text);
        exit(1);
    }
    return record;
}

void fixture_fill(unsigned runs)
{
    AUTO(record) struct record *record = fixture_open();
    struct err err;

    for (unsigned i = 0; i < runs; i++) {
        struct run run;

        fixture_run(&run);
        CHECK_INT(record_intent(record, &run, &err), 0);
        fixture_ended(&run, 0);
        CHECK_INT(record_close(record, &run, &err), 0);
        run_done(&run);
    }
}

const char *fixture_member(const struct json *json, const char *pointer)
{
    static char text[256];
    const struct json *value = json_at(json, pointer);
    AUTO_BUF struct buf out = BUF(sizeof text);
    struct err err;

    if (!value)
        return "(absent)";
    if (value->kind == JSON_STRING)
        (void)snprintf(text, sizeof text, STR_FMT, STR_ARG(value->text));
    else if (json_canonical(value, &out, &err) == 0)
        (void)snprintf(text, sizeof text, "%s", buf_text(&out));
    return text;
}

const struct json *fixture_show(struct arena *mem, const char *name)
{
    AUTO(record) struct record *record = fixture_open();
    const struct json *json = NULL;
    struct err err;

    if (record_show(record, mem, name, &json, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return json;
}

void fixture_verify(struct record_report *out)
{
    AUTO(record) struct record *record = fixture_open();
    struct record_trust trust = {.why = "test"};
    struct record_check check = {.trust = &trust};
    struct err err;

    CHECK_INT(record_own_key(dir, &trust.key, &err), 0);
    CHECK_INT(record_verify(record, &check, out, &err), 0);
}

void fixture_sql(const char *sql)
{
    sqlite3 *db = NULL;
    char *text = NULL;

    CHECK_INT(sqlite3_open(fixture_path("receipts.db"), &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", sql, text);
    sqlite3_free(text);
    CHECK_INT(sqlite3_close(db), SQLITE_OK);
}
