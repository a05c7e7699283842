/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/vault/vault.h"

#define NO_PASSPHRASE ((struct str){0})
#define VALUE STR_LIT("canary-7f3a9c51")

static const char *state_dir(void)
{
    static char dir[] = "/tmp/brig-vault-XXXXXX";
    static bool is_made;

    if (!is_made)
        CHECK(mkdtemp(dir) != NULL);
    is_made = true;
    return dir;
}

static char *path_of(const char *name)
{
    char *path = NULL;

    CHECK(asprintf(&path, "%s/vault/%s", state_dir(), name) > 0);
    return path;
}

static void clean(void)
{
    struct err err;

    CHECK_INT(dir_remove(AT_FDCWD, state_dir(), &err), 0);
}

static struct vault_binding binding(void)
{
    struct vault_binding b = {.host = "api.example.org"};
    struct err err;

    CHECK_INT(vault_slot_parse(STR_LIT("header:authorization"), &b.slot, &err), 0);
    return b;
}

static struct vault_question question(void)
{
    struct vault_question q = {.tenant = "default",
                               .subject = "alice",
                               .pack = "",
                               .host = "api.example.org",
                               .port = 443,
                               .scheme = "https",
                               .method = "GET",
                               .path = "/v1/things",
                               .name = "KEY"};

    q.slot = binding().slot;
    return q;
}

static struct vault *open_vault(struct arena *mem)
{
    struct vault *vault = NULL;
    struct vault_record record;
    struct vault_binding b = binding();
    struct err err = {.text = ""};

    CHECK_INT(vault_open(state_dir(), NO_PASSPHRASE, &vault, &err), 0);
    CHECK_INT(vault_set(vault, mem, "KEY", VALUE, false, &record, &err), 0);
    CHECK_INT(vault_bind(vault, mem, "KEY", &b, &record, &err), 0);
    CHECK_TEXT(err.text, "");
    return vault;
}

static int ask(struct vault *vault, const struct vault_question *q, struct err *err)
{
    struct vault_answer answer = {0};
    int got = vault_reveal(vault, q, &answer, err);

    if (got == 0)
        CHECK(str_eq(secret_reveal(answer.value), VALUE));
    secret_free(answer.value);
    return got;
}

TEST(a_bound_secret_is_revealed_and_nothing_else)
{
    static const struct {
        const char *member;
        struct vault_question q;
    } cases[] = {
  /* clang-format off */
        {"tenant", {.tenant = "other"}}, {"host", {.host = "api.example.com"}}, {"host", {.host = "xapi.example.org"}},
        {"port", {.port = 8443}}, {"scheme", {.scheme = "http"}}, {"name", {.name = "OTHER"}},
        {"slot", {.slot = {VAULT_HEADER, "x-api-key"}}}, {"slot", {.slot = {VAULT_BASIC_USER, ""}}},
        {"path", {.path = "/v1/../x"}}, {"path", {.path = "/v1//x"}}, {"path", {.path = "/v1/%2E%2e/x"}},
        {"path", {.path = "/v1/a%2Fb"}}, {"path", {.path = "/v1/.."}}, {"path", {.path = "x"}}, {"path", {.path = "/a\\b"}},
  /* clang-format on */
    };
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO(vault) struct vault *vault = open_vault(&mem);
    struct vault_question q = question();
    struct err err;

    CHECK_INT(ask(vault, &q, &err), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct vault_question other = question();
        const struct vault_question *c = &cases[i].q;

        other.tenant = c->tenant ? c->tenant : other.tenant;
        other.host = c->host ? c->host : other.host;
        other.port = c->port ? c->port : other.port;
        other.scheme = c->scheme ? c->scheme : other.scheme;
        other.name = c->name ? c->name : other.name;
        other.path = c->path ? c->path : other.path;
        if (c->slot.kind)
            other.slot = c->slot;
        CHECK_INT(ask(vault, &other, &err), -1);
        CHECK_INT(err.code, ERR_FORBIDDEN);
    }
    clean();
}

TEST(patterns_narrow_a_binding)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO(vault) struct vault *vault = NULL;
    struct vault_binding b = binding();
    struct vault_question q = question();
    struct vault_record record;
    struct err err;

    (void)strcpy(b.subject, "agent:*");
    (void)strcpy(b.pack, "mail");
    (void)strcpy(b.method, "POST");
    (void)strcpy(b.path, "/v1/*/send");
    CHECK_INT(vault_open(state_dir(), NO_PASSPHRASE, &vault, &err), 0);
    CHECK_INT(vault_set(vault, &mem, "KEY", VALUE, false, &record, &err), 0);
    CHECK_INT(ask(vault, &q, &err), -1); /* without a binding: never */
    CHECK_INT(vault_bind(vault, &mem, "KEY", &b, &record, &err), 0);
    CHECK_INT(ask(vault, &q, &err), -1);
    q.subject = "agent:7";
    q.pack = "mail";
    q.method = "POST";
    q.path = "/v1/a/send";
    CHECK_INT(ask(vault, &q, &err), 0);
    q.path = "/v1/a/b/send";
    CHECK_INT(ask(vault, &q, &err), -1);
    clean();
}

TEST(the_slots_of_an_endpoint_are_told)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO(vault) struct vault *vault = open_vault(&mem);
    struct vault_slot slots[VAULT_BOUND_MAX];
    struct vault_question q = question();
    struct err err;
    size_t n = 9;

    CHECK_INT(vault_bound(vault, &q, slots, &n, &err), 0);
    CHECK_INT(n, 1);
    CHECK_TEXT(slots[0].name, "authorization");
    q.host = "other.example.org";
    CHECK_INT(vault_bound(vault, &q, slots, &n, &err), 0);
    CHECK_INT(n, 0);
    clean();
}

TEST(bindings_are_read_strictly)
{
    static const struct {
        struct vault_binding b;
        const char *text;
    } cases[] = {
  /* clang-format off */
        {{.host = ""}, "a binding needs one host, in lower case and without patterns"},
        {{.host = "*.example.org"}, "a binding needs one host, in lower case and without patterns"},
        {{.host = "API.example.org"}, "a binding needs one host, in lower case and without patterns"},
        {{.host = "a..b"}, "a binding needs one host, in lower case and without patterns"},
        {{.host = "a", .scheme = "ftp"}, "the scheme of a binding is https or http"},
        {{.host = "a", .port = 70000}, "a port is at most 65535"},
        {{.host = "a", .method = "get"}, "the method of a binding is one in capitals, or *"},
        {{.host = "a", .path = "v1"}, "the path of a binding begins with /"},
        {{.host = "a", .tenant = "A b"}, "a tenant's name has lower-case letters, digits and -"},
        {{.host = "a"}, "a binding needs a slot"},
  /* clang-format on */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct vault_binding b = cases[i].b;
        struct err err;

        CHECK_INT(vault_binding_check(&b, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
        CHECK_TEXT(err.text, cases[i].text);
    }
}

TEST(what_is_set_again_is_gone)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO(vault) struct vault *vault = open_vault(&mem);
    struct vault_question q = question();
    struct vault_answer answer = {0};
    struct vault_record record;
    struct err err;

    CHECK_INT(vault_set(vault, &mem, "NONE", VALUE, true, &record, &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
    CHECK_INT(vault_set(vault, &mem, "KEY", STR_LIT("another-value"), true, &record, &err), 0);
    CHECK_INT(record.version, 2);
    CHECK_INT(record.binding_n, 1);
    CHECK_INT(vault_reveal(vault, &q, &answer, &err), 0);
    CHECK(str_is(secret_reveal(answer.value), "another-value"));
    CHECK_INT(answer.version, 2);
    secret_free(answer.value);
    CHECK_INT(vault_unbind(vault, &mem, "KEY", record.bindings[0].id, &record, &err), 0);
    CHECK_INT(vault_reveal(vault, &q, &answer, &err), -1);
    CHECK_INT(vault_remove(vault, "KEY", &err), 0);
    CHECK_INT(vault_remove(vault, "KEY", &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
    clean();
}

TEST(names_and_sizes_are_bounded)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO(vault) struct vault *vault = NULL;
    static char large[VAULT_VALUE_MAX + 1];
    struct vault_record record;
    struct err err;

    memset(large, 'x', sizeof large);
    CHECK_INT(vault_open(state_dir(), NO_PASSPHRASE, &vault, &err), 0);
    CHECK_INT(vault_set(vault, &mem, "../x", VALUE, false, &record, &err), -1);
    CHECK_INT(vault_set(vault, &mem, "v1_x", VALUE, false, &record, &err), -1);
    CHECK_INT(vault_set(vault, &mem, "A", STR_LIT("short"), false, &record, &err), -1);
    CHECK_INT(err.code, ERR_INVALID);
    CHECK_INT(vault_set(vault, &mem, "A", (struct str){large, sizeof large}, false, &record, &err),
              -1);
    CHECK_INT(
        vault_set(vault, &mem, "A", (struct str){large, VAULT_VALUE_MAX}, false, &record, &err), 0);
    clean();
}

/* ---- at rest ---- */

static void read_secrets(struct buf *out)
{
    AUTO_FREE char *path = path_of("secrets");
    struct err err;

    CHECK_INT(file_read(AT_FDCWD, path, out, &err), 0);
}

static void write_secrets(struct str text)
{
    AUTO_FREE char *path = path_of("secrets");
    struct err err;

    CHECK_INT(file_replace(path, text.p, text.n, 0600, &err), 0);
}

TEST(every_byte_of_the_file_is_authenticated)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO_BUF struct buf text = BUF(1 * MIB);
    struct err err;

    vault_free(open_vault(&mem));
    read_secrets(&text);
    CHECK(memmem(text.p, text.n, VALUE.p, VALUE.n) == NULL);
    for (size_t i = 0; i < text.n; i++) {
        struct vault *vault = NULL;

        text.p[i] ^= 1;
        write_secrets(buf_str(&text));
        CHECK_INT(vault_open(state_dir(), NO_PASSPHRASE, &vault, &err), -1);
        text.p[i] ^= 1;
    }
    for (size_t cut = 0; cut < text.n; cut += 37) {
        struct vault *vault = NULL;

        write_secrets((struct str){text.p, cut});
        CHECK_INT(vault_open(state_dir(), NO_PASSPHRASE, &vault, &err), -1);
        CHECK_INT(err.code, ERR_INTEGRITY);
    }
    clean();
}

TEST(an_older_file_is_noticed)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO(vault) struct vault *vault = open_vault(&mem);
    AUTO_BUF struct buf text = BUF(1 * MIB);
    struct vault *again = NULL;
    struct err err;

    read_secrets(&text);
    CHECK_INT(vault_remove(vault, "KEY", &err), 0);
    write_secrets(buf_str(&text));
    CHECK_INT(vault_open(state_dir(), NO_PASSPHRASE, &again, &err), -1);
    CHECK_INT(err.code, ERR_INTEGRITY);
    CHECK(strstr(err.text, "older than it was") != NULL);
    clean();
}

TEST(a_key_others_can_read_is_refused)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO_FREE char *key = path_of("vault.key");
    struct vault *vault = open_vault(&mem);
    struct err err;

    vault_free(vault);
    CHECK_INT(chmod(key, 0640), 0);
    CHECK_INT(vault_open(state_dir(), NO_PASSPHRASE, &vault, &err), -1);
    CHECK(strstr(err.text, "can be reached by others (mode 0640)") != NULL);
    CHECK_INT(unlink(key), 0);
    CHECK_INT(vault_open(state_dir(), NO_PASSPHRASE, &vault, &err), -1);
    CHECK_TEXT(err.text, "the vault's key vault.key is missing: restore it from a backup");
    clean();
}

/* ---- the master key ---- */

TEST(another_master_key_opens_the_same_secrets)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO(vault) struct vault *vault = open_vault(&mem);
    AUTO_FREE char *key = path_of("vault.key");
    const struct str passphrase = STR_LIT("a long enough passphrase");
    struct vault_question q = question();
    struct vault *again = NULL;
    enum vault_master kind;
    struct err err;

    CHECK_INT(vault_rekey(vault, VAULT_KEY_FILE, NO_PASSPHRASE, &err), 0);
    CHECK_INT(access(key, F_OK), -1); /* the old one is gone */
    CHECK_INT(ask(vault, &q, &err), 0);
    CHECK_INT(vault_rekey(vault, VAULT_KEY_PASSPHRASE, passphrase, &err), 0);
    CHECK_INT(ask(vault, &q, &err), 0);
    CHECK_INT(vault_look(state_dir(), &kind, &err), 0);
    CHECK_INT(kind, VAULT_KEY_PASSPHRASE);
    CHECK_INT(vault_open(state_dir(), NO_PASSPHRASE, &again, &err), -1);
    CHECK_TEXT(err.text, "the vault needs its passphrase");
    CHECK_INT(vault_open(state_dir(), STR_LIT("another passphrase"), &again, &err), -1);
    CHECK_INT(err.code, ERR_FORBIDDEN);
    CHECK_INT(vault_open(state_dir(), passphrase, &again, &err), 0);
    CHECK_INT(ask(again, &q, &err), 0);
    vault_free(again);
    clean();
}

TEST(the_keyring_holds_a_master_key)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO(vault) struct vault *vault = open_vault(&mem);
    struct vault_question q = question();
    struct vault *again = NULL;
    struct err err;

    if (vault_rekey(vault, VAULT_KEY_KEYRING, NO_PASSPHRASE, &err) < 0) {
        CHECK_INT(err.code, ERR_UNAVAILABLE);
        clean();
        test_skip("no keyring here");
    }
    CHECK_INT(vault_open(state_dir(), NO_PASSPHRASE, &again, &err), 0);
    CHECK_INT(ask(again, &q, &err), 0);
    vault_free(again);
    CHECK_INT(vault_rekey(vault, VAULT_KEY_FILE, NO_PASSPHRASE, &err), 0);
    CHECK_INT(ask(vault, &q, &err), 0);
    clean();
}

/* ---- crashes ---- */

TEST(a_crash_leaves_the_state_before_or_after)
{
#ifndef BRIG_CRASH_POINTS
    test_skip("built without crash points");
#else
    static const char *const points[] = {"vault-sealed", "vault-saved", "vault-key-made",
                                         "vault-rekeyed"};
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);

    vault_free(open_vault(&mem));
    for (size_t i = 0; i < COUNT(points); i++) {
        struct vault_question q = question();
        struct vault *vault = NULL;
        struct vault_record record;
        struct err err = {.text = ""};
        int status = 0;
        pid_t pid = fork();

        if (pid == 0) {
            (void)setenv("BRIG_CRASH_AT", points[i], 1);
            if (vault_open(state_dir(), NO_PASSPHRASE, &vault, &err) == 0 &&
                vault_set(vault, &mem, "KEY", VALUE, true, &record, &err) == 0 &&
                vault_rekey(vault, VAULT_KEY_FILE, NO_PASSPHRASE, &err) == 0)
                _exit(0);
            _exit(1);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
        CHECK_INT(vault_open(state_dir(), NO_PASSPHRASE, &vault, &err), 0);
        CHECK_TEXT(err.text, "");
        CHECK_INT(ask(vault, &q, &err), 0);
        CHECK_INT(vault_set(vault, &mem, "KEY", VALUE, true, &record, &err), 0);
        vault_free(vault);
    }
    clean();
#endif
}
