/* SPDX-License-Identifier: Apache-2.0 */

/* Which daemon, if any; and how it is asked. */

#include "surface/cli/remote.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "surface/cli/build.h"
#include "surface/cli/commands.h"
#include "surface/cli/sandbox.h"

#define LOCK_TEXT_MAX (2 * PATH_BYTES_MAX + 64)
#define SOCKET_OFF "off"
#define LOOK_WAIT_MS 60000U

/* ---- where it is ---- */

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static bool is_same(struct str line, const char *name)
{
    const char *value = getenv(name);

    return str_is(line, value ? value : "");
}

/* The socket, from the lock of our state directory. Whatever is wrong with it, there is no daemon
 * we can use: then the work is done here, and here is where a fault of the state is told. */
static const char *noted_socket(struct invocation *inv, bool *other_home)
{
    AUTO_BUF struct buf text = BUF(LOCK_TEXT_MAX);
    const char *dir = NULL;
    bool exists = false;
    struct str rest, line;
    struct err ignored;

    if (cli_state_find(inv, &dir, &exists, &ignored) < 0 || !exists ||
        file_read(AT_FDCWD, arena_printf(&inv->mem, "%s/daemon.lock", dir), &text, &ignored) < 0)
        return NULL;
    rest = buf_str(&text);
    (void)str_cut(&rest, '\n');
    line = str_cut(&rest, '\n');
    *other_home = !is_same(str_cut(&rest, '\n'), "HOME");
    if (!line.n || line.p[0] != '/' || !is_same(str_cut(&rest, '\n'), "BRIG_UID_BASE"))
        return NULL;
    return arena_text(&inv->mem, line);
}

static int find_own(struct invocation *inv, struct remote *out)
{
    const char *path = noted_socket(inv, &out->other_home);
    struct err ignored; /* nobody there: as if there had never been one */

    if (!path || http_client_open(path, &out->client, &ignored) < 0)
        return 0;
    if (http_client_peer(out->client) == geteuid() || http_client_peer(out->client) == 0)
        return 1;
    remote_done(out);
    return 0;
}

/* Whoever may put a socket into that folder could pose as the daemon. */
static int check_place(const char *path, unsigned peer, struct err *err)
{
    AUTO_FREE char *folder = xstrdup(path);
    char *slash = strrchr(folder, '/');
    struct stat s;

    if (peer == geteuid() || peer == 0)
        return 0;
    *(slash == folder ? slash + 1 : slash) = '\0';
    if (stat(folder, &s) < 0)
        return err_os(err, "looking at %s", folder);
    if (s.st_uid != peer || (s.st_mode & (S_IWGRP | S_IWOTH)))
        return err_set(err, ERR_FORBIDDEN,
                       "BRIG_SOCKET: user %u listens at %s, who is neither root nor you nor the "
                       "only one who may put a socket there",
                       peer, path);
    return 0;
}

static int find_chosen(const char *path, struct remote *out, struct err *err)
{
    out->chosen = true;
    if (*path != '/')
        return err_set(err, ERR_INVALID,
                       "BRIG_SOCKET is the absolute path of a daemon's socket, or \"" SOCKET_OFF
                       "\" to use none");
    if (http_client_open(path, &out->client, err) < 0)
        return err_in(err, "BRIG_SOCKET: no daemon can be reached");
    return check_place(path, http_client_peer(out->client), err) < 0 ? -1 : 1;
}

int remote_find(struct invocation *inv, struct remote *out, struct err *err)
{
    const char *chosen = variable("BRIG_SOCKET");

    if (chosen && strcmp(chosen, SOCKET_OFF) == 0)
        return 0;
    out->token = variable("BRIG_TOKEN");
    if (chosen)
        return find_chosen(chosen, out, err);
    return inv->command->remote ? find_own(inv, out) : 0;
}

void remote_done(struct remote *remote)
{
    http_client_free(remote->client);
    remote->client = NULL;
}

static int refuse_apart(struct invocation *inv)
{
    const struct command *command = inv->command;
    struct err err;

    (void)err_set(&err, ERR_UNAVAILABLE, "\"%s %s\" is not done through BRIG_SOCKET: %s",
                  inv->program, command->path,
                  command->apart ? command->apart : "it works on a state directory of your own");
    return cli_error(inv, &err);
}

int command_run(struct invocation *inv)
{
    AUTO_REMOTE struct remote remote = {0};
    struct err err;
    int status;
    int found;

    if (inv->command->local)
        return inv->command->run(inv);
    found = remote_find(inv, &remote, &err);
    if (found < 0)
        return cli_error(inv, &err);
    if (found && inv->command->remote) {
        status = inv->command->remote(inv, &remote);
        if (status != REMOTE_NOT_DONE)
            return status;
    }
    return remote.chosen ? refuse_apart(inv) : inv->command->run(inv);
}

/* ---- asking ---- */

size_t remote_headers(struct invocation *inv, const struct remote *remote, const char *type,
                      struct http_header out[REMOTE_HEADERS])
{
    size_t n = 0;

    /* Another build may mean something else by the same words. */
    if (!remote->chosen)
        out[n++] = (struct http_header){STR_LIT("Brig-Build"), STR_LIT(BUILD_VERSION " " BUILD_ID)};
    else if (remote->token)
        out[n++] = (struct http_header){
            STR_LIT("Authorization"), str_of(arena_printf(&inv->mem, "Bearer %s", remote->token))};
    if (type)
        out[n++] = (struct http_header){STR_LIT("Content-Type"), str_of(type)};
    return n;
}

static enum err_code code_named(struct str name, int status)
{
    static const struct {
        const char *name;
        enum err_code code;
    } codes[] = {
#define X(id, name, http, status) {name, ERR_##id},
        ERR_CODES(X)
#undef X
    };

    for (size_t i = 0; i < COUNT(codes); i++)
        if (str_is(name, codes[i].name))
            return codes[i].code;
    return status == 503 ? ERR_UNAVAILABLE : ERR_INTERNAL;
}

static enum reason reason_named(struct str code)
{
    for (enum reason reason = 0; reason < REASON_COUNT; reason++)
        if (str_is(code, reason_code(reason)))
            return reason;
    return REASON_NONE;
}

int remote_read_error(struct remote *remote, const struct json *answer, struct err *err)
{
    const struct json *error = json_get(answer, "error");
    struct str message = STR_LIT("the daemon said no, and not why"), code = {0}, reason = {0};

    (void)json_is_text(json_get(error, "message"), &message);
    (void)json_is_text(json_get(error, "code"), &code);
    (void)json_is_text(json_get(error, "reason_code"), &reason);
    remote->reason = reason_named(reason);
    remote->details = json_get(error, "details");
    return err_set(err, code_named(code, remote->status), "%.*s",
                   message.n < sizeof err->text ? (int)message.n : (int)sizeof err->text - 1,
                   message.p);
}

static int read_doc(struct invocation *inv, struct remote *remote, const struct json **out,
                    struct err *err)
{
    AUTO_BUF struct buf text = BUF(JSON_TEXT_MAX);
    struct mark where;

    *out = NULL;
    if (http_client_body_all(remote->client, &text, err) < 0)
        return -1;
    return text.n == 0 ? 0 : json_parse(&inv->mem, buf_str(&text), out, &where, err);
}

/* 421: another build. 503 in the words of the server and not of a handler, or of a daemon that
 * begins nothing any more: it is about to end. */
static bool was_not_for_us(int status, const struct json *answer)
{
    struct str type = {0}, reason = {0};

    (void)json_is_text(json_at(answer, "/error/type"), &type);
    (void)json_is_text(json_at(answer, "/error/reason_code"), &reason);
    return status == 421 ||
           (status == 503 &&
            (str_is(type, "http") || str_is(reason, reason_code(REASON_DAEMON_STOPPING))));
}

int remote_refusal(struct invocation *inv, struct remote *remote, int status, struct err *err)
{
    const struct json *answer = NULL;

    remote->status = status;
    if (read_doc(inv, remote, &answer, err) < 0)
        return -1;
    remote->not_done = was_not_for_us(status, answer);
    return remote_read_error(remote, answer, err);
}

int remote_ask(struct invocation *inv, struct remote *remote, enum http_method method,
               const char *target, const struct json *body, const struct json **doc,
               struct err *err)
{
    static const char *const names[] = {
        [HTTP_GET] = "GET", [HTTP_POST] = "POST", [HTTP_DELETE] = "DELETE"};
    AUTO_BUF struct buf text = BUF(API_BODY_MAX);
    struct http_header headers[REMOTE_HEADERS];
    struct http_ask ask = {.method = str_of(names[method]),
                           .target = str_of(target),
                           .host = STR_LIT("localhost"),
                           .headers = headers,
                           .framing = body ? HTTP_LENGTH : HTTP_NO_BODY};
    struct http_head *head = arena_new(&inv->mem, struct http_head);

    if (body && json_compact(body, &text, err) < 0) {
        remote->not_done = true;
        return -1;
    }
    ask.header_count = remote_headers(inv, remote, body ? "application/json" : NULL, headers);
    ask.length = text.n;
    http_client_patience(remote->client, method == HTTP_GET ? LOOK_WAIT_MS : 0);
    if (http_client_ask(remote->client, &ask, buf_str(&text), err) < 0 ||
        http_client_answer(remote->client, method, head, err) < 0)
        return err_in(err, "asking the daemon");
    if (head->status >= 300)
        return remote_refusal(inv, remote, head->status, err);
    remote->status = head->status;
    if (read_doc(inv, remote, doc, err) < 0)
        return err_in(err, "asking the daemon");
    return *doc ? 0 : err_set(err, ERR_INTEGRITY, "the daemon answered without a word");
}

int remote_fetch(struct invocation *inv, struct remote *remote, const char *target, int fd,
                 uint64_t *lines, struct err *err)
{
    struct http_header headers[REMOTE_HEADERS];
    struct http_ask ask = {.method = STR_LIT("GET"),
                           .target = str_of(target),
                           .host = STR_LIT("localhost"),
                           .headers = headers,
                           .header_count = remote_headers(inv, remote, NULL, headers)};
    struct http_head *head = arena_new(&inv->mem, struct http_head);
    struct str piece;
    int got;

    http_client_patience(remote->client, 0);
    if (http_client_ask(remote->client, &ask, (struct str){0}, err) < 0 ||
        http_client_answer(remote->client, HTTP_GET, head, err) < 0)
        return err_in(err, "asking the daemon");
    if (head->status >= 300)
        return remote_refusal(inv, remote, head->status, err);
    while ((got = http_client_body(remote->client, &piece, err)) == 1) {
        for (size_t i = 0; lines && i < piece.n; i++)
            *lines += piece.p[i] == '\n';
        if (write_all(fd, piece.p, piece.n, err) < 0)
            return -1;
    }
    return got;
}

int remote_failed(struct invocation *inv, const struct remote *remote, const struct err *err)
{
    if (remote->not_done && !remote->chosen && !remote->has_done)
        return REMOTE_NOT_DONE;
    return cli_error_with(inv, err, remote->reason, NULL);
}

/* ---- naming ---- */

const char *remote_escape(struct invocation *inv, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    static const char digits[] = "0123456789ABCDEF";
    char *out = arena_alloc(&inv->mem, 3 * strlen(text) + 1);
    size_t n = 0;

    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (strchr(plain, c)) {
            out[n++] = *text;
            continue;
        }
        out[n++] = '%';
        out[n++] = digits[c >> 4];
        out[n++] = digits[c & 15U];
    }
    return out;
}

const char *remote_sandbox_path(struct invocation *inv, const char *id, const char *rest)
{
    if (!*id || strchr(id, '/') || strcmp(id, ".") == 0 || strcmp(id, "..") == 0)
        return NULL;
    return arena_printf(&inv->mem, "/v1/sandboxes/%s%s", remote_escape(inv, id), rest);
}

/* Asked only when something was not found: was it the sandbox? */
void remote_look_unknown(struct invocation *inv, struct remote *remote, const char *id,
                         struct err *err)
{
    struct remote before = *remote;
    const struct json *doc = NULL;
    struct err other;

    if (remote->status != 404)
        return;
    if (remote_ask(inv, remote, HTTP_GET, remote_sandbox_path(inv, id, ""), NULL, &doc, &other) <
            0 &&
        remote->status == 404)
        (void)sandbox_unknown(inv, id, err);
    remote->status = before.status;
    remote->reason = before.reason;
    remote->details = before.details;
}
