/* SPDX-License-Identifier: Apache-2.0 */

/* Secrets that were handed out get a receipt each, exactly one, whoever dies when. */

#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "flow/decide/decide.h"
#include "flow/govern.h"
#include "flow/record/record.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "lib/vault/vault-journal.h"
#include "model/run.h"

static char state[] = "/tmp/brig-uses-XXXXXX";
static struct policy *policy;
static struct govern *govern;

static void set_up(void)
{
    struct govern_config config = {.state_dir = state};
    struct vault *vault = NULL;
    struct err err;

    CHECK(mkdtemp(state) != NULL);
    CHECK_INT(policy_builtin(&policy, &err), 0);
    config.policy = policy;
    CHECK_INT(vault_open(state, (struct str){0}, &vault, &err), 0);
    vault_free(vault);
    CHECK_INT(govern_open(&config, &govern, &err), 0);
}

static void tear_down(void)
{
    struct err err;

    govern_free(govern);
    policy_free(policy);
    CHECK_INT(dir_remove(AT_FDCWD, state, &err), 0);
}

static void use(const char *path)
{
    const struct vault_question q = {
        .tenant = "default",
        .subject = "alice",
        .pack = "",
        .host = "api.example.org",
        .port = 443,
        .scheme = "https",
        .method = "GET",
        .path = path,
        .slot = {VAULT_HEADER, "authorization"},
        .name = "KEY"
    };
    const struct vault_answer answer = {.version = 3, .binding = "b0123"};
    AUTO_FREE char *folder = NULL;
    AUTO_FD int fd = -1;
    struct err err;

    CHECK(asprintf(&folder, "%s/vault", state) > 0);
    fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK_INT(vault_journal_add(fd, "box7", &q, &answer, &err), 0);
}

static int on_receipt(void *context, const struct json *receipt, struct err *err)
{
    struct str kind, name;

    (void)err;
    if (json_is_text(json_get(receipt, "kind"), &kind) && str_is(kind, "secret_use")) {
        (*(size_t *)context)++;
        CHECK(json_is_text(json_at(receipt, "/secret/name"), &name) && str_is(name, "KEY"));
        CHECK(json_is_text(json_at(receipt, "/secret/slot"), &name) &&
              str_is(name, "header:authorization"));
        CHECK(json_is_text(json_get(receipt, "sandbox_id"), &name) && str_is(name, "box7"));
        CHECK(json_is_text(json_get(receipt, "principal"), &name) && str_is(name, "alice"));
    }
    return 0;
}

static size_t receipts(void)
{
    AUTO(record) struct record *record = NULL;
    const struct record_query all = {.limit = 100};
    struct err err;
    size_t n = 0;

    CHECK_INT(record_open(state, &record, &err), 0);
    CHECK_INT(record_list(record, &all, on_receipt, &n, &err), 0);
    return n;
}

TEST(each_use_gets_one_receipt)
{
    struct err err;
    size_t n = 9;

    set_up();
    CHECK_INT(govern_vault_uses(govern, &n, &err), 0);
    CHECK_INT(n, 0);
    use("/a");
    use("/b");
    CHECK_INT(govern_vault_uses(govern, &n, &err), 0);
    CHECK_INT(n, 2);
    CHECK_INT(govern_vault_uses(govern, &n, &err), 0);
    CHECK_INT(n, 0);
    use("/c");
    CHECK_INT(govern_vault_uses(govern, &n, &err), 0);
    CHECK_INT(n, 1);
    CHECK_INT(receipts(), 3);
    tear_down();
}

/* As if the recorder had died after the ledger's commit and before the journal was removed. */
TEST(uses_that_come_again_are_passed_over)
{
    AUTO_FREE char *from = NULL, *to = NULL;
    AUTO_BUF struct buf kept = BUF(64 * KIB);
    struct err err;
    size_t n = 0;

    set_up();
    use("/a");
    use("/b");
    CHECK(asprintf(&from, "%s/vault/uses", state) > 0 &&
          asprintf(&to, "%s/vault/uses.taken", state) > 0);
    CHECK_INT(file_read(AT_FDCWD, from, &kept, &err), 0);
    CHECK_INT(govern_vault_uses(govern, &n, &err), 0);
    CHECK_INT(n, 2);
    CHECK_INT(file_replace(to, kept.p, kept.n, 0600, &err), 0);
    use("/c");
    CHECK_INT(govern_vault_uses(govern, &n, &err), 0);
    CHECK_INT(n, 0); /* those that were taken before; */
    CHECK_INT(govern_vault_uses(govern, &n, &err), 0);
    CHECK_INT(n, 1); /* then the others */
    CHECK_INT(receipts(), 3);
    tear_down();
}

TEST(a_torn_line_was_never_handed_out)
{
    AUTO_FREE char *path = NULL;
    struct err err;
    size_t n = 0;
    int fd;

    set_up();
    use("/a");
    CHECK(asprintf(&path, "%s/vault/uses", state) > 0);
    fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    CHECK_INT(write(fd, "{\"at\":\"20", 9), 9);
    (void)close(fd);
    use("/b"); /* begins a line of its own */
    fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    CHECK_INT(write(fd, "{\"at\":\"20", 9), 9);
    (void)close(fd);
    CHECK_INT(govern_vault_uses(govern, &n, &err), 0);
    CHECK_INT(n, 2);
    CHECK_INT(receipts(), 2);
    tear_down();
}
