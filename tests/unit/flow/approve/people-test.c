/* SPDX-License-Identifier: Apache-2.0 */

/* The cases of tests/vectors/approvals/people.json: who may confirm, and what stands then. */

#include "cases.h"

#include "flow/approve/approve.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REQUESTER "agent"
#define HASH "sha256:00000000000000000000000000000000000000000000000000000000000000aa"

/* ---- one request ---- */

struct scene {
    char folder[64];
    struct approvals *approvals;
    struct run run;
    struct approval_terms terms;
    const char *id; /* of the approval that was made last, or NULL */
};

static void scene_make(struct scene *out, const char *word)
{
    const char **argv;
    struct err err;

    *out = (struct scene){.folder = "/tmp/brig-people-XXXXXX"};
    run_init(&out->run);
    argv = arena_array(&out->run.mem, const char *, 3);
    argv[0] = "echo";
    argv[1] = word;
    out->run.action.argv = (struct words){argv, 2};
    out->run.action.kind = ACTION_RUN;
    out->run.action.principal = REQUESTER;
    out->run.action.tenant = "default";
    out->run.action.provider = "local";
    (void)snprintf(out->run.planned.preimage_hash, sizeof out->run.planned.preimage_hash, HASH);
    out->run.verdict = (struct verdict){.kind = VERDICT_ASK};
    if (!mkdtemp(out->folder) || approvals_open(out->folder, &out->approvals, &err) < 0)
        test_fail(__FILE__, __LINE__, "no list of approvals");
}

static void scene_end(struct scene *scene)
{
    char command[128];

    approvals_free(scene->approvals);
    run_done(&scene->run);
    (void)snprintf(command, sizeof command, "rm -rf %s", scene->folder);
    CHECK_INT(system(command), 0);
}

static int ask(struct scene *scene, struct approval *out, struct err *err)
{
    const struct operands none = {0};
    bool is_new;

    if (approvals_ask(scene->approvals, &scene->run.mem, &scene->run, &none, out, err) < 0)
        return -1;
    return out->stands
               ? 0
               : approvals_stand(scene->approvals, &scene->run.mem, out->id, 1, out, &is_new, err);
}

/* ---- the steps ---- */

static void say(const char *name, size_t step, const char *got, const char *wanted)
{
    if (strcmp(got, wanted) != 0)
        test_fail(__FILE__, __LINE__, "%s, step %zu: %s, should be %s", name, step, got, wanted);
}

static void step_ask(struct scene *scene, const struct json *step, const char *name, size_t at)
{
    struct arena *mem = &scene->run.mem;
    const char *before = scene->id;
    struct approval approval = {0};
    struct err err = {0};

    if (ask(scene, &approval, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s, step %zu: %s", name, at, err.text);
    say(name, at, approval_state_name(approval.state), text_in(mem, step, "ask"));
    if (json_get(step, "anew") && before)
        say(name, at, strcmp(approval.id, before) == 0 ? "the same" : "anew",
            flag_in(step, "anew", false) ? "anew" : "the same");
    scene->id = approval.id;
}

static const char *joined(struct arena *mem, struct words words)
{
    const char *all = "";

    for (size_t i = 0; i < words.n; i++)
        all = arena_printf(mem, "%s%s%s", all, *all ? " " : "", words.v[i]);
    return all;
}

static void step_word(struct scene *scene, const struct json *step, const char *name, size_t at)
{
    struct arena *mem = &scene->run.mem;
    const char *comment = text_in(mem, step, "comment");
    const struct approval_voice voice = {
        .by = text_in(mem, step, "by"),
        .made_by = joined(mem, words_in(mem, step, "made_by")),
        .is_custodian = flag_in(step, "custodian", false),
        .confirm = flag_in(step, "confirm", true),
        .comment = comment ? comment : "",
        .run_id = "",
    };
    struct approval approval = {0};
    struct err err = {0};

    if (approvals_decide(scene->approvals, mem, scene->id, &voice, &approval, &err) < 0)
        say(name, at, err_name(err.code), text_in(mem, step, "expect"));
    else
        say(name, at, approval_state_name(approval.state), text_in(mem, step, "expect"));
}

static void run_case(const struct json *one)
{
    struct scene scene;
    const char *name;
    size_t at = 0;

    scene_make(&scene, "hello");
    name = text_in(&scene.run.mem, one, "name");
    if (json_get(one, "terms")) {
        const struct json *terms = json_get(one, "terms");

        scene.terms = (struct approval_terms){
            .group = "default",
            .by = words_in(&scene.run.mem, terms, "by"),
            .quorum = (unsigned)(number_in(terms, "quorum") ? number_in(terms, "quorum") : 1),
            .wait_s = (uint64_t)number_in(terms, "timeout_s"),
            .use_s = (uint64_t)number_in(terms, "use_within_s"),
            .reason_required = flag_in(terms, "reason_required", false),
        };
        scene.run.verdict.terms = &scene.terms;
    }
    json_each(step, json_get(one, "steps"))
    {
        at++;
        if (json_get(step, "wait_s"))
            (void)sleep((unsigned)number_in(step, "wait_s"));
        else if (json_get(step, "ask"))
            step_ask(&scene, step, name, at);
        else
            step_word(&scene, step, name, at);
    }
    scene_end(&scene);
}

TEST(every_case_of_the_vectors_goes_as_it_says)
{
    AUTO_ARENA struct arena mem = ARENA(16 * MIB);
    const struct json *cases = read_cases(&mem, "people.json");

    CHECK(cases->n > 15);
    json_each(one, cases) run_case(one);
}

TEST(a_request_whose_receipt_took_longer_than_its_time_stands_all_the_same)
{
    const struct operands none = {0};
    struct approval approval = {0};
    struct scene scene;
    bool is_new = false;
    struct err err;

    scene_make(&scene, "hello");
    scene.terms = (struct approval_terms){.group = "default", .quorum = 1, .wait_s = 1};
    scene.run.verdict.terms = &scene.terms;
    CHECK_INT(approvals_ask(scene.approvals, &scene.run.mem, &scene.run, &none, &approval, &err),
              0);
    CHECK(!approval.stands);
    (void)sleep(2);
    CHECK_INT(
        approvals_stand(scene.approvals, &scene.run.mem, approval.id, 1, &approval, &is_new, &err),
        0);
    CHECK(is_new && approval.stands);
    CHECK_INT(approval.expires_at - approval.asked_at, 1);
    scene_end(&scene);
}

/* ---- many at once ---- */

#define MANY 8

/* How many of them came back with 0. */
static unsigned at_once(const struct scene *scene, int (*act)(struct scene *scene, unsigned who))
{
    unsigned good = 0;
    int gate[2];

    CHECK_INT(pipe(gate), 0);
    for (unsigned i = 0; i < MANY; i++) {
        pid_t pid = fork();
        struct scene own = *scene;
        struct err err;
        char byte;

        if (pid != 0)
            continue;
        (void)close(gate[1]);
        own.approvals = NULL;
        if (approvals_open(own.folder, &own.approvals, &err) < 0)
            _exit(2);
        (void)!read(gate[0], &byte, 1); /* until everybody is there */
        _exit(act(&own, i));
    }
    (void)close(gate[0]);
    (void)close(gate[1]);
    for (unsigned i = 0; i < MANY; i++) {
        int status = 0;

        (void)wait(&status);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) != 2);
        good += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return good;
}

static int confirm_as(struct scene *scene, unsigned who)
{
    char name[32];
    const struct approval_voice voice = {
        .by = name, .made_by = "", .confirm = true, .comment = "", .run_id = ""};
    struct approval approval;
    struct err err;

    (void)snprintf(name, sizeof name, "person-%u", who);
    if (approvals_decide(scene->approvals, &scene->run.mem, scene->id, &voice, &approval, &err) ==
        0)
        return 0;
    return err.code == ERR_CONFLICT ? 1 : 2;
}

static int use_it(struct scene *scene, unsigned who)
{
    struct approval approval;
    struct err err;

    (void)who;
    if (ask(scene, &approval, &err) < 0)
        return 2;
    return approval.state == APPROVAL_USED ? 0 : 1;
}

TEST(of_many_who_confirm_at_once_as_many_count_as_are_wanted_and_it_is_used_once)
{
    for (unsigned quorum = 1; quorum <= 3; quorum++) {
        struct approval approval;
        struct scene scene;
        struct err err;

        scene_make(&scene, "many");
        scene.terms = (struct approval_terms){.group = "default", .quorum = quorum};
        scene.run.verdict.terms = &scene.terms;
        CHECK_INT(ask(&scene, &approval, &err), 0);
        scene.id = approval.id;
        CHECK_INT(at_once(&scene, confirm_as), quorum);
        CHECK_INT(approvals_show(scene.approvals, &scene.run.mem, scene.id, &approval, &err), 0);
        CHECK_INT(approval.state, APPROVAL_CONFIRMED);
        CHECK_INT(approval.confirmations, quorum);
        CHECK_INT(approval.word_n, quorum);
        CHECK_INT(at_once(&scene, use_it), 1);
        scene_end(&scene);
    }
}

/* ---- custodians ---- */

static const struct str pass = {"a long passphrase", 17};

static void enroll(struct scene *scene, const char *name)
{
    struct custodian made;
    struct err err = {0};

    if (custodian_enroll(scene->approvals, name, pass, NULL, "anna", pass, &made, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", name, err.text);
}

/* His signature was good when it was looked at; he was removed before his word was kept. */
TEST(who_is_removed_between_his_signature_and_his_word_has_none)
{
    struct approval_voice voice = {.by = "custodian:ben",
                                   .made_by = "",
                                   .is_custodian = true,
                                   .confirm = true,
                                   .comment = "",
                                   .run_id = ""};
    struct approval approval;
    struct custodian gone;
    struct scene scene;
    struct err err;

    scene_make(&scene, "gone");
    enroll(&scene, "anna");
    enroll(&scene, "ben");
    CHECK_INT(ask(&scene, &approval, &err), 0);
    CHECK_INT(custodian_remove(scene.approvals, &scene.run.mem, "ben", "anna", pass, &gone, &err),
              0);
    CHECK_INT(
        approvals_decide(scene.approvals, &scene.run.mem, approval.id, &voice, &approval, &err),
        -1);
    CHECK_INT(err.code, ERR_FORBIDDEN);
    CHECK_TEXT(err.text, "ben is no custodian any more");
    voice.by = "custodian:anna";
    CHECK_INT(
        approvals_decide(scene.approvals, &scene.run.mem, approval.id, &voice, &approval, &err), 0);
    CHECK_INT(approval.state, APPROVAL_CONFIRMED);
    scene_end(&scene);
}

/* ---- pages ---- */

struct page {
    size_t n;
    uint64_t last;
};

static int on_approval(void *context, const struct approval *approval, struct err *err)
{
    struct page *page = context;

    (void)err;
    page->n++;
    page->last = approval->seq;
    return 0;
}

/* Whoever looks has as much memory as a page has, not as much as others wrote. */
/* ---- how many ---- */

/* The n-th request of somebody. */
static int ask_nth(struct scene *scene, const char *principal, size_t n, struct err *err)
{
    const struct run first = scene->run;
    struct approval approval;
    int failed;

    run_init(&scene->run);
    scene->run.action = first.action;
    scene->run.action.principal = principal;
    scene->run.verdict = first.verdict;
    (void)snprintf(scene->run.planned.preimage_hash, sizeof scene->run.planned.preimage_hash,
                   "sha256:%064zu", n);
    failed = ask(scene, &approval, err);
    run_done(&scene->run);
    scene->run = first;
    return failed;
}

static void ask_many(struct scene *scene, const char *principal, size_t n)
{
    struct err err;

    for (size_t i = 0; i < n; i++)
        if (ask_nth(scene, principal, i, &err) < 0)
            test_fail(__FILE__, __LINE__, "%s, %zu: %s", principal, i, err.text);
}

/* All that waits has waited for too long. */
static void end_all(const struct scene *scene)
{
    char path[128];
    sqlite3 *db = NULL;

    (void)snprintf(path, sizeof path, "%s/approvals.db", scene->folder);
    CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_INT(sqlite3_exec(db, "UPDATE approvals SET expires_at = 1", NULL, NULL, NULL), SQLITE_OK);
    CHECK_INT(sqlite3_close(db), SQLITE_OK);
}

TEST(of_one_principal_a_thousand_wait_and_what_is_over_does_not_count)
{
    struct scene scene;
    struct err err = {0};

    scene_make(&scene, "hello");
    /* More than are written down as over at once, and before his. */
    ask_many(&scene, "earlier", 200);
    ask_many(&scene, REQUESTER, APPROVALS_PENDING_EACH_MAX);
    CHECK_INT(ask_nth(&scene, REQUESTER, APPROVALS_PENDING_EACH_MAX, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK_INT(ask_nth(&scene, REQUESTER, 0, &err), 0); /* waits already */
    CHECK_INT(ask_nth(&scene, "another", 0, &err), 0);
    end_all(&scene);
    CHECK_INT(ask_nth(&scene, REQUESTER, APPROVALS_PENDING_EACH_MAX, &err), 0);
    scene_end(&scene);
}

TEST(a_page_of_large_requests_is_shorter_and_says_so)
{
    struct approvals_query query = {.state = APPROVAL_PENDING, .limit = 100};
    struct approval approval;
    struct scene scene;
    struct page page;
    size_t seen = 0;
    struct err err;
    char *large = malloc(400 * KIB);
    int more;

    memset(large, 'x', 400 * KIB - 1);
    large[400 * KIB - 1] = '\0';
    scene_make(&scene, large);
    for (unsigned i = 0; i < 7; i++) {
        (void)snprintf(scene.run.action.request_hash, sizeof scene.run.action.request_hash, "%u",
                       i);
        CHECK_INT(ask(&scene, &approval, &err), 0);
    }
    do {
        page = (struct page){0};
        more = approvals_each(scene.approvals, &query, on_approval, &page, &err);
        CHECK(more == (page.n == 3));
        CHECK(page.n == 3 || page.n == 1);
        seen += page.n;
        query.after_seq = page.last;
    } while (more == 1);
    CHECK_INT(seen, 7);
    query = (struct approvals_query){.state = -1, .limit = 2};
    page = (struct page){0};
    CHECK_INT(approvals_each(scene.approvals, &query, on_approval, &page, &err), 1);
    CHECK_INT(page.n, 2);
    scene_end(&scene);
    free(large);
}
