/* SPDX-License-Identifier: Apache-2.0 */

/* A peer that says anything to a keeper of secrets, message after message: the one secret there is
 * comes with no answer but that to the question it is bound to, and with nothing before the vault
 * was opened.
 *
 * An input is messages one behind the other:
 *
 *     'r'  a byte with how much shorter than a request it is, then its bytes
 *     'q'  a byte with the verb, then ten lines: the texts of a question in their order, of which
 * an empty one is what the binding wants; then two bytes of the port, both zero for the right one
 */

#include "fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/keeper/vault-session.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#define VALUE "canary-7f3a9c51"
#define VAULT "/vault"

static char dir[] = "/tmp/brig-vault-XXXXXX";
static int dir_fd = -1;

static void forget(void)
{
    struct err err;

    if (dir_remove(AT_FDCWD, dir, &err) < 0)
        abort();
}

static void make_vault(void)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO(vault) struct vault *vault = NULL;
    const struct vault_binding bound = {
        .host = "api.example.org",
        .port = 443,
        .method = "GET",
        .path = "/v1/**",
        .slot = {VAULT_HEADER, "authorization"}
    };
    char folder[sizeof dir + sizeof VAULT];
    struct vault_record record;
    struct err err;

    if (!mkdtemp(dir) || vault_open(dir, (struct str){0}, &vault, &err) < 0 ||
        vault_set(vault, &mem, "KEY", STR_LIT(VALUE), false, &record, &err) < 0 ||
        vault_bind(vault, &mem, "KEY", &bound, &record, &err) < 0)
        abort();
    (void)atexit(forget);
    (void)strcpy(folder, dir);
    (void)strcat(folder, VAULT);
    dir_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        abort();
}

/* ---- what is promised ---- */

static bool is_text(const char *text, size_t size, const char *wanted)
{
    return strnlen(text, size) < size && strcmp(text, wanted) == 0;
}

static bool is_bound(const struct keeper_vault_question *q)
{
    return is_text(q->tenant, sizeof q->tenant, "default") &&
           is_text(q->host, sizeof q->host, "api.example.org") &&
           is_text(q->scheme, sizeof q->scheme, "https") &&
           is_text(q->method, sizeof q->method, "GET") &&
           is_text(q->slot, sizeof q->slot, "header:authorization") &&
           is_text(q->name, sizeof q->name, "KEY") && strncmp(q->path, "/v1/", 4) == 0 &&
           !strstr(q->path, "//") && !strstr(q->path, "/../") && q->port == 443;
}

static bool has_value(const struct keeper_vault_answer *answer)
{
    return memmem(answer, sizeof *answer, VALUE, strlen(VALUE)) != NULL;
}

/* An error names what it is about: whoever says the value is told what he said. */
static bool says_value(const struct keeper_vault_request *request)
{
    return memmem(request, sizeof *request, VALUE, strlen(VALUE)) != NULL;
}

static void check(const struct keeper_vault_request *request,
                  const struct keeper_vault_answer *answer, bool was_open, bool goes_on)
{
    bool is_reveal = request->verb == KEEPER_VAULT_REVEAL && answer->status == KEEPER_DONE;

    if (answer->magic != KEEPER_VAULT_MAGIC || answer->n > KEEPER_VAULT_VALUE_MAX ||
        answer->status > KEEPER_REFUSED || goes_on == (answer->status == KEEPER_REFUSED))
        abort();
    if (has_value(answer) != (is_reveal && goes_on) && !(says_value(request) && !is_reveal))
        abort();
    if (is_reveal && has_value(answer) && (!was_open || !is_bound(&request->body.question)))
        abort();
    if (answer->status != KEEPER_DONE &&
        (answer->n || strnlen(answer->body.text, sizeof answer->body.text) == 0))
        abort();
}

/* ---- messages ---- */

static const uint8_t *read_raw(const uint8_t *at, const uint8_t *end,
                               struct keeper_vault_request *out, size_t *size)
{
    size_t have = (size_t)(end - at);

    if (have == 0)
        return end;
    *size = sizeof *out - *at++;
    have = have - 1 < sizeof *out ? have - 1 : sizeof *out;
    memcpy(out, at, have);
    return at + have;
}

static const uint8_t *read_line(const uint8_t *at, const uint8_t *end, const char *right, char *out,
                                size_t size)
{
    const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));
    size_t n;

    stop = stop ? stop : end;
    n = (size_t)(stop - at) < size ? (size_t)(stop - at) : size;
    if (n)
        memcpy(out, at, n);
    else
        memcpy(out, right, strlen(right));
    return stop < end ? stop + 1 : end;
}

static const uint8_t *read_question(const uint8_t *at, const uint8_t *end,
                                    struct keeper_vault_request *out)
{
    struct keeper_vault_question *q = &out->body.question;

    *out = (struct keeper_vault_request){.magic = KEEPER_VAULT_MAGIC, .version = KEEPER_VERSION};
    if (at < end)
        out->verb = *at++;
    if (out->verb == KEEPER_VAULT_HELLO || out->verb == KEEPER_VAULT_OPEN)
        return at;
    at = read_line(at, end, "box7", q->sandbox, sizeof q->sandbox);
    at = read_line(at, end, "default", q->tenant, sizeof q->tenant);
    at = read_line(at, end, "alice", q->subject, sizeof q->subject);
    at = read_line(at, end, "", q->pack, sizeof q->pack);
    at = read_line(at, end, "api.example.org", q->host, sizeof q->host);
    at = read_line(at, end, "https", q->scheme, sizeof q->scheme);
    at = read_line(at, end, "GET", q->method, sizeof q->method);
    at = read_line(at, end, "header:authorization", q->slot, sizeof q->slot);
    at = read_line(at, end, "KEY", q->name, sizeof q->name);
    at = read_line(at, end, "/v1/things", q->path, sizeof q->path);
    q->port = 443;
    if (end - at >= 2 && (at[0] || at[1]))
        q->port = (uint32_t)(at[0] << 8 | at[1]);
    return end - at >= 2 ? at + 2 : end;
}

static size_t revealed_n;

static void run(const uint8_t *bytes, size_t n)
{
    const uint8_t *at = bytes, *end = bytes + n;
    struct vault_session session;
    bool goes_on = true;

    (void)unlinkat(dir_fd, "uses", 0); /* the journal, which would grow */
    vault_session_init(&session, dir_fd);
    while (goes_on && at < end) {
        static struct keeper_vault_answer answer;
        bool was_open = session.state == VAULT_SESSION_OPEN;
        struct keeper_vault_request request = {0};
        size_t size = sizeof request;
        bool is_raw = *at++ == 'r';

        at = is_raw ? read_raw(at, end, &request, &size) : read_question(at, end, &request);
        goes_on = vault_session_take(&session, (const unsigned char *)&request, size, 0, &answer);
        check(&request, &answer, was_open, goes_on);
        revealed_n += has_value(&answer);
    }
    vault_session_done(&session);
}

/* Once, that the right question has the right answer: else nothing above would mean anything. */
static void begin(void)
{
    static const char right[] = "q\1q\2q\3\n\n\n\n\n\n\n\n\n\n";

    make_vault();
    run((const uint8_t *)right, sizeof right - 1);
    if (revealed_n != 1)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (dir_fd < 0)
        begin();
    run(bytes, n);
    return 0;
}
