/* SPDX-License-Identifier: Apache-2.0 */

/* Advisory receipts without looking at the whole ledger each time: what is looked at, and that
 * nothing is believed which the whole ledger would not say. */

#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#define TAIL 64 /* entries behind the last one that is known, at most */

static char path[128];
static struct record_trust trust = {.why = "the test says so"};
static bool only_look;

static void begin(void)
{
    struct err err;

    fixture_begin();
    (void)snprintf(path, sizeof path, "%s", fixture_path("checked"));
    fixture_fill(1);
    CHECK_INT(record_own_key(fixture_dir(), &trust.key, &err), 0);
    fixture_sql("DELETE FROM receipts");
}

/* A run of the gate or of an advisory session: an intent, and an outcome with the member. */
static void advise(const char *agent, const char *stage)
{
    AUTO(record) struct record *record = fixture_open();
    struct json *about;
    struct run run;
    struct err err;

    fixture_run(&run);
    CHECK_INT(record_intent(record, &run, &err), 0);
    fixture_ended(&run, 0);
    about = json_object(&run.mem);
    json_put_text(&run.mem, about, "agent_id", agent);
    json_put_text(&run.mem, about, "stage", stage);
    run.outcome.advisory = about;
    CHECK_INT(record_close(record, &run, &err), 0);
    run_done(&run);
}

struct seen {
    char stages[256];
    uint64_t verified;
};

static int on_receipt(void *context, const struct json *receipt, struct err *err)
{
    struct seen *seen = context;
    size_t n = strlen(seen->stages);

    (void)err;
    (void)snprintf(seen->stages + n, sizeof seen->stages - n, "%s ",
                   fixture_member(receipt, "/advisory/stage"));
    return 0;
}

static int look(const char *agent, struct seen *out, struct err *err)
{
    AUTO(record) struct record *record = fixture_open();
    const struct record_advised ask = {&trust, agent, path, on_receipt, out, only_look};

    *out = (struct seen){0};
    return record_advised(record, &ask, &out->verified, err);
}

#define CHECK_SEES(agent, expected, entries)                                                       \
    do {                                                                                           \
        struct seen seen_;                                                                         \
        struct err err_ = {0};                                                                     \
        CHECK_INT(look((agent), &seen_, &err_), 0);                                                \
        CHECK_TEXT(err_.text, "");                                                                 \
        CHECK_TEXT(seen_.stages, (expected));                                                      \
        CHECK_INT(seen_.verified, (entries));                                                      \
    } while (0)

#define CHECK_REFUSES(agent)                                                                       \
    do {                                                                                           \
        struct seen seen_;                                                                         \
        struct err err_;                                                                           \
        CHECK_INT(look((agent), &seen_, &err_), -1);                                               \
        CHECK_INT(err_.code, ERR_INTEGRITY);                                                       \
    } while (0)

/* A ledger of 8 entries: 4 and 6 say something of a, 8 of b. */
static void fill(void)
{
    fixture_sql("DELETE FROM receipts");
    (void)unlink(path);
    fixture_fill(1);
    advise("a", "end");
    advise("a", "release");
    advise("b", "end");
    CHECK_SEES("a", "end release ", 8 + 2);
}

static void keep_copy(struct buf *out)
{
    struct err err;

    CHECK_INT(file_read(AT_FDCWD, path, out, &err), 0);
}

static void put(struct str bytes)
{
    struct err err;

    CHECK_INT(file_replace(path, bytes.p, bytes.n, 0600, &err), 0);
}

TEST(whoever_only_looks_finds_the_same_and_keeps_nothing)
{
    struct stat st;

    begin();
    fill();
    only_look = true;
    CHECK_SEES("a", "end release ", 1 + 2); /* what is known helps him, too */
    (void)unlink(path);
    CHECK_SEES("a", "end release ", 8 + 2);
    CHECK_SEES("a", "end release ", 8 + 2);
    CHECK_INT(stat(path, &st), -1);
}

TEST(all_is_verified_once_and_then_only_what_is_new)
{
    struct stat st;

    begin();
    fill();
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0600);
    CHECK_SEES("a", "end release ", 1 + 2); /* the last that is known, and its own once more */
    CHECK_SEES("b", "end ", 1 + 1);
    CHECK_SEES("nobody", "", 1);
    advise("a", "revoke");
    CHECK_SEES("a", "end release revoke ", 3 + 3);
    fixture_end();
}

TEST(the_work_does_not_grow_with_the_ledger)
{
    uint64_t most = 0;

    begin();
    fill();
    for (unsigned round = 0; round < 40; round++) {
        struct seen seen;
        struct err err;

        fixture_fill(7); /* 14 entries: 560 in the end */
        CHECK_INT(look("a", &seen, &err), 0);
        CHECK_TEXT(seen.stages, "end release ");
        if (seen.verified > most)
            most = seen.verified;
    }
    CHECK(most < 1 + TAIL + 14 + 2);
    fixture_end();
}

TEST(an_advisory_receipt_that_is_gone_or_changed_is_noticed)
{
    static const char *const changes[] = {
        "DELETE FROM receipts WHERE seq = 6",
        "UPDATE receipts SET body = replace(body, 'release', 'revoked') WHERE seq = 6",
        "UPDATE receipts SET signature = zeroblob(64) WHERE seq = 6",
        "UPDATE receipts SET hash = (SELECT hash FROM receipts WHERE seq = 4) WHERE seq = 6",
        "UPDATE receipts SET kind = 'intent' WHERE seq = 6",
        /* Another authentic one in its place. */
        "DELETE FROM receipts WHERE seq = 6; UPDATE receipts SET seq = 6 WHERE seq = 4",
    };

    begin();
    for (size_t i = 0; i < COUNT(changes); i++) {
        fill();
        fixture_fill(3);
        CHECK_SEES("a", "end release ", 7 + 2);
        fixture_sql(changes[i]);
        CHECK_REFUSES("a");
        /* And not believed without the file either. */
        CHECK_INT(unlink(path), 0);
        CHECK_REFUSES("a");
    }
    fixture_end();
}

TEST(what_says_nothing_of_the_agent_is_not_looked_at_again)
{
    begin();
    fill();
    fixture_sql("DELETE FROM receipts WHERE seq = 2");
    CHECK_SEES("a", "end release ", 1 + 2);
    CHECK_INT(unlink(path), 0);
    CHECK_REFUSES("a");
    fixture_end();
}

TEST(damage_behind_what_is_known_is_noticed)
{
    static const char *const changes[] = {
        "DELETE FROM receipts WHERE seq = 10",
        "DELETE FROM receipts WHERE seq = 9",
        "UPDATE receipts SET body = replace(body, 'default', 'another') WHERE seq = 11",
        "UPDATE receipts SET signature = zeroblob(64) WHERE seq = 12",
        "UPDATE receipts SET seq = 13 WHERE seq = 12",
        /* The one it goes on from. */
        "DELETE FROM receipts WHERE seq = 8",
        "DELETE FROM receipts WHERE seq >= 8",
        "UPDATE receipts SET body = replace(body, 'end', 'bad') WHERE seq = 8",
    };

    begin();
    for (size_t i = 0; i < COUNT(changes); i++) {
        fill();
        fixture_fill(2);
        CHECK_SEES("a", "end release ", 5 + 2);
        fixture_sql(changes[i]);
        CHECK_REFUSES("a");
    }
    fixture_end();
}

TEST(a_file_that_is_not_ours_says_nothing)
{
    AUTO_BUF struct buf good = BUF(MIB);

    begin();
    fill();
    keep_copy(&good);
    CHECK_INT(good.n, 22 + 8 + 32 + 3 * 48 + 64);
    /* A byte anywhere, an end that is missing, one too many, nothing. */
    for (size_t i = 0; i < good.n; i += 3) {
        good.p[i] = (char)(good.p[i] ^ 1);
        put(buf_str(&good));
        good.p[i] = (char)(good.p[i] ^ 1);
        CHECK_SEES("a", "end release ", 8 + 2);
    }
    for (size_t n = 0; n < good.n; n += 48) {
        put((struct str){good.p, n});
        CHECK_SEES("a", "end release ", 8 + 2);
    }
    /* One receipt of the list is left out. */
    memmove(good.p + 62 + 48, good.p + 62 + 96, good.n - 62 - 96);
    put((struct str){good.p, good.n - 48});
    CHECK_SEES("a", "end release ", 8 + 2);
    CHECK_SEES("a", "end release ", 1 + 2); /* and a good one was made of it each time */
    CHECK_INT(unlink(path), 0);
    CHECK_INT(mkdir(path, 0700), 0);
    CHECK_SEES("a", "end release ", 8 + 2);
    fixture_end();
}

TEST(an_old_file_leaves_more_to_verify_and_hides_nothing)
{
    AUTO_BUF struct buf old = BUF(MIB);

    begin();
    fill();
    keep_copy(&old);
    advise("a", "revoke");
    fixture_fill(TAIL);
    CHECK_SEES("a", "end release revoke ", 1 + 2 + 2 * TAIL + 3);
    CHECK_SEES("a", "end release revoke ", 1 + 3);
    put(buf_str(&old));
    CHECK_SEES("a", "end release revoke ", 1 + 2 + 2 * TAIL + 3);
    put(buf_str(&old));
    fixture_sql("DELETE FROM receipts WHERE seq = 10");
    CHECK_REFUSES("a");
    fixture_end();
}

TEST(the_file_of_another_ledger_says_nothing)
{
    AUTO_BUF struct buf other = BUF(MIB);

    begin();
    fill();
    keep_copy(&other);
    /* The same key, another chain. */
    fixture_sql("DELETE FROM receipts");
    fixture_fill(1);
    advise("a", "end");
    fixture_fill(3);
    put(buf_str(&other));
    CHECK_REFUSES("a");
    CHECK_INT(unlink(path), 0);
    CHECK_SEES("a", "end ", 10 + 1);
    fixture_end();
}

TEST(without_room_for_the_file_all_is_verified_each_time)
{
    begin();
    fixture_fill(1);
    advise("a", "end");
    (void)snprintf(path, sizeof path, "%s", fixture_path("nowhere/checked"));
    CHECK_SEES("a", "end ", 4 + 1);
    CHECK_SEES("a", "end ", 4 + 1);
    fixture_end();
}
