/* SPDX-License-Identifier: Apache-2.0 */

/* The real program, from the side of whoever asks it for secrets. */

#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/vault/vault-ask.h"
#include "lib/vault/vault-journal.h"

#define VALUE STR_LIT("canary-7f3a9c51")
#define WAIT_MS 8000

static char dir[] = "/tmp/brig-vault-ask-XXXXXX";
static int fd = -1;
static pid_t pid;

static struct vault_question question(void)
{
    return (struct vault_question){
        .tenant = "default",
        .subject = "alice",
        .pack = "",
        .host = "api.example.org",
        .port = 443,
        .scheme = "https",
        .method = "GET",
        .path = "/v1/things",
        .slot = {VAULT_HEADER, "authorization"},
        .name = "KEY"
    };
}

static void begin_with(enum vault_master master, struct str passphrase)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO(vault) struct vault *vault = NULL;
    struct vault_binding b = {.host = "api.example.org", .slot = question().slot};
    struct vault_record record;
    struct err err = {.text = ""};

    CHECK(mkdtemp(dir) != NULL);
    CHECK_INT(vault_open(dir, (struct str){0}, &vault, &err), 0);
    CHECK_INT(vault_set(vault, &mem, "KEY", VALUE, false, &record, &err), 0);
    CHECK_INT(vault_bind(vault, &mem, "KEY", &b, &record, &err), 0);
    if (master != VAULT_KEY_FILE)
        CHECK_INT(vault_rekey(vault, master, passphrase, &err), 0);
    CHECK_INT(vault_keeper_start(dir, passphrase, &fd, &pid, &err), 0);
    CHECK_TEXT(err.text, "");
}

static void begin(void)
{
    begin_with(VAULT_KEY_FILE, (struct str){0});
}

static void clean(void)
{
    struct err err;

    (void)close(fd);
    CHECK(waitpid(pid, NULL, 0) == pid); /* it ends by itself */
    CHECK_INT(dir_remove(AT_FDCWD, dir, &err), 0);
}

static size_t journal(void)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO(vault_journal) struct vault_journal *taken = NULL;
    struct vault_used *uses = NULL;
    struct err err;
    size_t n = 99;

    CHECK_INT(vault_journal_take(dir, &mem, &taken, &uses, &n, &err), 0);
    for (size_t i = 0; i < n; i++) {
        CHECK_TEXT(uses[i].question.name, "KEY");
        CHECK_TEXT(uses[i].question.path, "/v1/things");
        CHECK_TEXT(uses[i].sandbox, "box7");
        CHECK_INT(uses[i].version, 1);
    }
    return n;
}

static int reveal(const struct vault_question *q, struct err *err)
{
    AUTO(secret) struct secret *value = NULL;

    if (vault_ask_reveal(fd, "box7", q, WAIT_MS, &value, err) < 0)
        return -1;
    CHECK(str_eq(secret_reveal(value), VALUE));
    return 0;
}

TEST(a_bound_secret_is_handed_out_once_it_is_written_down)
{
    struct vault_question q = question();
    struct err err = {.text = ""};

    begin();
    CHECK_INT(reveal(&q, &err), 0);
    CHECK_TEXT(err.text, "");
    q.host = "evil.example.org";
    CHECK_INT(reveal(&q, &err), -1);
    CHECK_INT(err.code, ERR_FORBIDDEN);
    q = question();
    q.name = "NONE";
    CHECK_INT(reveal(&q, &err), -1);
    CHECK_INT(err.code, ERR_FORBIDDEN);
    CHECK_INT(journal(), 1);
    CHECK_INT(journal(), 1); /* taken and not forgotten: it comes again */
    clean();
}

TEST(a_passphrase_is_derived_outside_and_opens_it)
{
    struct vault_question q = question();
    struct err err = {.text = ""};

    begin_with(VAULT_KEY_PASSPHRASE, STR_LIT("a long enough passphrase"));
    CHECK_INT(reveal(&q, &err), 0);
    CHECK_TEXT(err.text, "");
    clean();
}

TEST(bound_slots_are_told)
{
    struct vault_question q = question();
    struct vault_slot slots[VAULT_BOUND_MAX];
    struct err err = {.text = ""};
    size_t n = 0;

    begin();
    CHECK_INT(vault_ask_bound(fd, "box7", &q, WAIT_MS, slots, &n, &err), 0);
    CHECK_INT(n, 1);
    CHECK_TEXT(slots[0].name, "authorization");
    CHECK_INT(journal(), 0);
    clean();
}

TEST(a_new_value_and_a_removed_binding_count_at_once)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO(vault) struct vault *vault = NULL;
    struct vault_question q = question();
    struct vault_record record;
    struct err err = {.text = ""};

    begin();
    CHECK_INT(reveal(&q, &err), 0);
    CHECK_INT(vault_open(dir, (struct str){0}, &vault, &err), 0);
    CHECK_INT(vault_show(vault, &mem, "KEY", &record, &err), 0);
    CHECK_INT(vault_unbind(vault, &mem, "KEY", record.bindings[0].id, &record, &err), 0);
    CHECK_INT(reveal(&q, &err), -1);
    CHECK_INT(err.code, ERR_FORBIDDEN);
    clean();
}

TEST(more_than_the_rate_is_refused)
{
    struct vault_question q = question();
    struct err err = {.text = ""};
    unsigned refused = 0;

    begin();
    q.name = "NONE"; /* no disk in the way */
    for (unsigned i = 0; i < 3 * KEEPER_VAULT_BURST; i++) {
        CHECK_INT(reveal(&q, &err), -1);
        refused += err.code == ERR_LIMIT;
    }
    CHECK(refused > 0);
    clean();
}

TEST(anything_else_ends_it)
{
    static const struct {
        const char *what;
        size_t n;
        uint16_t verb;
        size_t spoil; /* this byte of a good request; 0: none */
    } cases[] = {
        {"a short message",         100,                                 KEEPER_VAULT_REVEAL, 0 },
        {"an unknown verb",         sizeof(struct keeper_vault_request), 77,                  0 },
        {"out of turn",             sizeof(struct keeper_vault_request), KEEPER_VAULT_HELLO,  0 },
        {"opened twice",            sizeof(struct keeper_vault_request), KEEPER_VAULT_OPEN,   0 },
        {"bytes behind a text",     sizeof(struct keeper_vault_request), KEEPER_VAULT_REVEAL, 46},
        {"bytes where none belong", sizeof(struct keeper_vault_request), KEEPER_VAULT_REVEAL, 12},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct vault_question q = question();
        struct keeper_vault_request request;
        struct err err;
        char end;

        (void)strcpy(dir, "/tmp/brig-vault-ask-XXXXXX");
        begin();
        CHECK_INT(vault_ask_write(KEEPER_VAULT_REVEAL, 5, "box7", &q, &request, &err), 0);
        request.verb = cases[i].verb;
        if (cases[i].verb != KEEPER_VAULT_REVEAL)
            memset(&request.body, 0, sizeof request.body);
        if (cases[i].spoil)
            ((char *)&request)[cases[i].spoil] = 'x';
        CHECK_INT(send(fd, &request, cases[i].n, MSG_NOSIGNAL), (int64_t)cases[i].n);
        {
            struct keeper_vault_answer answer = {0};

            CHECK_INT(recv(fd, &answer, sizeof answer, 0), sizeof answer);
            CHECK_INT(answer.status, KEEPER_REFUSED);
            CHECK_INT(answer.n, 0);
            CHECK(memmem(&answer, sizeof answer, VALUE.p, VALUE.n) == NULL);
        }
        CHECK_INT(recv(fd, &end, 1, 0), 0);
        CHECK_INT(journal(), 0);
        clean();
    }
}

TEST(it_cannot_be_looked_into)
{
    struct vault_question q = question();
    struct err err;
    char path[64];

    begin();
    CHECK_INT(reveal(&q, &err), 0);
    (void)snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    if (geteuid() != 0)
        CHECK(open(path, O_RDONLY | O_CLOEXEC) < 0);
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    {
        AUTO_BUF struct buf status = BUF(64 * KIB);

        CHECK_INT(file_read(AT_FDCWD, path, &status, &err), 0);
        CHECK(strstr(buf_text(&status), "\nSeccomp:\t2\n") != NULL);
        CHECK(strstr(buf_text(&status), "\nNoNewPrivs:\t1\n") != NULL);
        CHECK(strstr(buf_text(&status), "\nCapEff:\t0000000000000000\n") != NULL);
    }
    clean();
}

TEST(uses_are_forgotten_only_when_told)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO(vault_journal) struct vault_journal *taken = NULL;
    struct vault_question q = question();
    struct vault_used *uses = NULL;
    struct vault_journal *second = NULL;
    struct err err;
    size_t n = 0;

    begin();
    CHECK_INT(reveal(&q, &err), 0);
    CHECK_INT(vault_journal_take(dir, &mem, &taken, &uses, &n, &err), 0);
    CHECK_INT(n, 1);
    CHECK_INT(reveal(&q, &err), 0); /* goes to the next journal */
    CHECK_INT(vault_journal_take(dir, &mem, &second, &uses, &n, &err), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
    CHECK_INT(vault_journal_forget(taken, &err), 0);
    vault_journal_free(TAKE(taken));
    CHECK_INT(vault_journal_take(dir, &mem, &taken, &uses, &n, &err), 0);
    CHECK_INT(n, 1);
    CHECK_INT(vault_journal_forget(taken, &err), 0);
    vault_journal_free(TAKE(taken));
    CHECK_INT(journal(), 0);
    clean();
}
