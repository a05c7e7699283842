/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/access/access.h"
#include "lib/access/freeze.h"
#include "lib/base/io.h"

static char dir[] = "/tmp/brig-access-XXXXXX";

static struct access *open_access(void)
{
    struct access *access = NULL;
    struct err err;

    CHECK(access_open(dir, &access, &err) == 0);
    return access;
}

static void begin(void)
{
    CHECK(mkdtemp(dir) != NULL);
}

static void clean(void)
{
    struct err err;

    CHECK_INT(dir_remove(AT_FDCWD, dir, &err), 0);
}

static struct token ask(const char *tenant, unsigned scopes)
{
    struct token token = {.scopes = scopes};

    (void)snprintf(token.tenant, sizeof token.tenant, "%s", tenant);
    return token;
}

static int issue(struct access *access, const char *tenant, struct token *out,
                 char text[TOKEN_TEXT_BYTES])
{
    struct token wanted = ask(tenant, SCOPE_READ);
    struct err err;

    return access_issue(access, &wanted, out, text, &err);
}

TEST(a_token_lets_its_bearer_in_and_nobody_else)
{
    AUTO(access) struct access *access = NULL;
    char text[TOKEN_TEXT_BYTES], wrong[TOKEN_TEXT_BYTES + 1];
    const struct token *found;
    struct token token;

    begin();
    access = open_access();
    CHECK_INT(issue(access, "acme", &token, text), 0);
    found = access_check(access, str_of(text));
    CHECK(found && strcmp(found->tenant, "acme") == 0);
    CHECK(found && found->scopes == SCOPE_READ);
    for (size_t i = 0; text[i]; i++) {
        memcpy(wrong, text, sizeof text);
        wrong[i] = (char)(wrong[i] == 'a' ? 'b' : 'a');
        CHECK(access_check(access, str_of(wrong)) == NULL);
        CHECK(access_check(access, (struct str){text, i}) == NULL);
    }
    (void)snprintf(wrong, sizeof wrong, "%s0", text);
    CHECK(access_check(access, str_of(wrong)) == NULL);
    CHECK(access_check(access, STR_LIT("")) == NULL);
    clean();
}

TEST(its_words_are_not_in_the_file)
{
    AUTO(access) struct access *access = NULL;
    AUTO_BUF struct buf bytes = BUF(1 << 20);
    char text[TOKEN_TEXT_BYTES], path[96];
    struct token token;
    struct err err;

    begin();
    access = open_access();
    CHECK_INT(issue(access, "default", &token, text), 0);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/access.db%s", dir, i ? "-wal" : "");
        CHECK_INT(file_read(AT_FDCWD, path, &bytes, &err), 0);
    }
    CHECK(memmem(bytes.p, bytes.n, token.id, strlen(token.id)) != NULL);
    CHECK(memmem(bytes.p, bytes.n, text + strlen("brig_") + strlen(token.id) + 1, 64) == NULL);
    clean();
}

TEST(what_another_process_revokes_is_refused_at_once)
{
    AUTO(access) struct access *server = NULL;
    AUTO(access) struct access *person = NULL;
    char text[TOKEN_TEXT_BYTES], later[TOKEN_TEXT_BYTES];
    struct token token, gone, second;
    struct err err;

    begin();
    server = open_access();
    person = open_access();
    CHECK_INT(issue(person, "acme", &token, text), 0);
    CHECK(access_check(server, str_of(text)) != NULL);
    CHECK_INT(issue(person, "acme", &second, later), 0);
    CHECK(access_check(server, str_of(later)) != NULL);
    CHECK_INT(access_revoke(person, token.id, "other", &gone, &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
    CHECK_INT(access_revoke(person, token.id, "acme", &gone, &err), 0);
    CHECK(gone.revoked_at > 0);
    CHECK(access_check(server, str_of(text)) == NULL);
    CHECK(access_check(person, str_of(text)) == NULL);
    CHECK(access_check(server, str_of(later)) != NULL);
    CHECK_INT(access_revoke(server, second.id, NULL, &gone, &err), 0); /* our own change counts */
    CHECK(access_check(server, str_of(later)) == NULL);
    clean();
}

TEST(a_token_ends_at_its_time)
{
    AUTO(access) struct access *access = NULL;
    struct token wanted = ask("default", SCOPE_RUN), token;
    char text[TOKEN_TEXT_BYTES];
    struct err err;

    begin();
    access = open_access();
    wanted.expires_at = (int64_t)time(NULL) - 1;
    CHECK_INT(access_issue(access, &wanted, &token, text, &err), 0);
    CHECK(access_check(access, str_of(text)) == NULL);
    wanted.expires_at = (int64_t)time(NULL) + 1000;
    CHECK_INT(access_issue(access, &wanted, &token, text, &err), 0);
    CHECK(access_check(access, str_of(text)) != NULL);
    clean();
}

static int on_used(void *context, const struct token *token, struct err *err)
{
    int64_t *used = context;

    (void)err;
    *used = token->used_at;
    return 0;
}

TEST(the_last_use_is_written_down)
{
    AUTO(access) struct access *access = NULL;
    AUTO(access) struct access *other = NULL;
    char text[TOKEN_TEXT_BYTES];
    struct token token;
    int64_t used = -1;
    struct err err;

    begin();
    access = open_access();
    other = open_access();
    CHECK_INT(issue(access, "default", &token, text), 0);
    CHECK_INT(access_each(other, NULL, on_used, &used, &err), 0);
    CHECK_INT(used, 0);
    CHECK(access_check(access, str_of(text)) != NULL);
    CHECK_INT(access_settle(access, &err), 0);
    CHECK_INT(access_each(other, "default", on_used, &used, &err), 0);
    CHECK(used > 0);
    used = -1;
    CHECK_INT(access_each(other, "acme", on_used, &used, &err), 0);
    CHECK_INT(used, -1);
    clean();
}

TEST(what_is_no_token_is_not_made)
{
    static const struct {
        const char *tenant;
        unsigned scopes;
        const char *principal;
    } cases[] = {
        {"",        SCOPE_READ,        ""   },
        {"Acme",    SCOPE_READ,        ""   },
        {"-acme",   SCOPE_READ,        ""   },
        {"../acme", SCOPE_READ,        ""   },
        {"acme",    0,                 ""   },
        {"acme",    1U << SCOPE_COUNT, ""   },
        {"acme",    SCOPE_READ,        "a b"},
        {"acme",    SCOPE_READ,        "a\n"},
    };
    AUTO(access) struct access *access = NULL;
    char text[TOKEN_TEXT_BYTES];
    struct token token;
    struct err err;

    begin();
    access = open_access();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct token wanted = ask(cases[i].tenant, cases[i].scopes);

        (void)snprintf(wanted.principal, sizeof wanted.principal, "%s", cases[i].principal);
        CHECK_INT(access_issue(access, &wanted, &token, text, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
    }
    clean();
}

TEST(scopes_have_names)
{
    AUTO_ARENA struct arena mem = ARENA(4096);
    unsigned scope = 0;
    struct err err;

    CHECK_TEXT(scopes_text(&mem, SCOPE_READ | SCOPE_ADMIN), "read,admin");
    CHECK_INT(scope_parse(STR_LIT("run"), &scope, &err), 0);
    CHECK_INT(scope, SCOPE_RUN);
    CHECK_INT(scope_parse(STR_LIT("root"), &scope, &err), -1);
    CHECK(strstr(err.text, "approve") != NULL);
}

/* ---- who is frozen ---- */

static void issue_by(struct access *access, const char *made_by, const char *principal)
{
    struct token wanted = ask(TENANT_DEFAULT, SCOPE_RUN), token;
    char text[TOKEN_TEXT_BYTES];
    struct err err;

    (void)snprintf(wanted.principal, sizeof wanted.principal, "%s", principal);
    (void)snprintf(wanted.made_by, sizeof wanted.made_by, "%s", made_by);
    CHECK_INT(access_issue(access, &wanted, &token, text, &err), 0);
}

static void freeze_one(const char *tenant, const char *principal)
{
    struct frozen entry = {.since = 1};
    struct err err;

    (void)snprintf(entry.tenant, sizeof entry.tenant, "%s", tenant);
    (void)snprintf(entry.principal, sizeof entry.principal, "%s", principal);
    CHECK_INT(freeze_add(dir, &entry, &err), 0);
}

static bool stops(struct freezer *freezer, const char *principal, const char *made_by,
                  struct frozen *out)
{
    return freezer_stops(freezer, &(struct actor){TENANT_DEFAULT, principal, made_by}, out);
}

TEST(who_is_frozen_acts_through_no_token_of_his)
{
    AUTO(access) struct access *access = NULL;
    struct freezer *freezer;
    struct frozen by;

    begin();
    access = open_access();
    freezer = freezer_new(dir);
    issue_by(access, "boss", "mask");
    issue_by(access, "mask", "below");
    issue_by(access, "below", "mask"); /* round and round */
    issue_by(access, "uid:0", "friend");
    CHECK(!stops(freezer, "mask", "boss", &by));
    freeze_one("", "boss");
    CHECK(stops(freezer, "boss", "", &by));
    CHECK(stops(freezer, "mask", "boss", &by));
    CHECK_TEXT(by.principal, "boss");
    CHECK(stops(freezer, "below", "mask", &by));
    CHECK_TEXT(by.principal, "boss");
    CHECK(stops(freezer, "mask", "below", &by));
    CHECK(!stops(freezer, "mask", NULL, &by)); /* by another way in */
    CHECK(!stops(freezer, "mask", "uid:0", &by));
    CHECK(!stops(freezer, "friend", "uid:0", &by));
    /* One that is made meanwhile counts at once. */
    CHECK(!stops(freezer, "third", "friend", &by));
    issue_by(access, "mask", "friend");
    CHECK(stops(freezer, "third", "friend", &by));
    freezer_free(freezer);
    clean();
}

TEST(an_entry_of_a_tenant_concerns_that_one)
{
    struct freezer *freezer;
    struct frozen by;

    begin();
    freezer = freezer_new(dir);
    freeze_one("acme", "boss");
    CHECK(!stops(freezer, "mask", "boss", &by));
    CHECK(freezer_stops(freezer, &(struct actor){"acme", "mask", "boss"}, &by));
    freezer_free(freezer);
    clean();
}

TEST(whose_makers_cannot_be_told_is_stopped_while_somebody_is_frozen)
{
    struct freezer *freezer;
    char path[64];
    struct frozen by;
    struct err err;

    begin();
    freezer = freezer_new(dir);
    (void)snprintf(path, sizeof path, "%s/access.db", dir);
    CHECK_INT(file_replace(path, "nonsense that is no database", 28, 0600, &err), 0);
    freeze_one(TENANT_DEFAULT "x", ""); /* a tenant: nobody has to be told */
    CHECK(!stops(freezer, "mask", "boss", &by));
    freeze_one("", "somebody");
    CHECK(stops(freezer, "mask", "boss", &by));
    CHECK_INT(by.since, 0);
    CHECK(strstr(by.reason, "who has made this token cannot be told") != NULL);
    CHECK(!stops(freezer, "mask", "", &by)); /* came without one */
    freezer_free(freezer);
    clean();
}
