/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/egress/handover.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

struct head {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;
};

struct body {
    uint64_t cookie;
    uint32_t flags;
    uint32_t pid;
    uint32_t family;
    uint32_t ancestor_n;
};

struct program_head {
    struct hash hash;
    uint16_t flags;
    uint16_t path_n;
};

static_assert(sizeof(struct head) == HANDOVER_HEAD_BYTES, "no padding");
static_assert(sizeof(struct body) == 24, "no padding");
static_assert(sizeof(struct program_head) == HANDOVER_PROGRAM_BYTES, "no padding");

/* ---- writing ---- */

static char *put(char *at, const void *bytes, size_t n)
{
    memcpy(at, bytes, n);
    return at + n;
}

static char *put_head(char *at, enum handover_kind kind)
{
    struct head head = {HANDOVER_MAGIC, HANDOVER_VERSION, (uint16_t)kind};

    return put(at, &head, sizeof head);
}

static char *put_program(char *at, const struct handover_program *program)
{
    struct program_head head = {program->hash, program->flags, (uint16_t)program->path.n};

    assert(program->path.n <= HANDOVER_PATH_MAX);
    at = put(at, &head, sizeof head);
    return program->path.n ? put(at, program->path.p, program->path.n) : at;
}

size_t handover_listeners(char out[HANDOVER_MESSAGE_MAX])
{
    return (size_t)(put_head(out, HANDOVER_LISTENERS) - out);
}

size_t handover_caller(const struct handover_caller *caller, char out[HANDOVER_MESSAGE_MAX])
{
    struct body body = {caller->cookie, caller->flags, caller->pid, caller->family,
                        caller->ancestor_n};
    char *at = put_head(out, HANDOVER_CALLER);

    assert(caller->ancestor_n <= HANDOVER_ANCESTORS_MAX);
    at = put(at, &body, sizeof body);
    at = put_program(at, &caller->exe);
    if (caller->flags & CALLER_HAS_SCRIPT)
        at = put_program(at, &caller->script);
    for (uint32_t i = 0; i < caller->ancestor_n; i++)
        at = put_program(at, &caller->ancestors[i]);
    return (size_t)(at - out);
}

/* ---- reading ---- */

static bool take(struct str *rest, void *out, size_t n)
{
    if (rest->n < n)
        return false;
    memcpy(out, rest->p, n);
    *rest = (struct str){rest->p + n, rest->n - n};
    return true;
}

static bool is_zero(const struct hash *hash)
{
    static const struct hash zero;

    return memcmp(hash, &zero, sizeof zero) == 0;
}

static bool program_holds(const struct program_head *head, struct str path)
{
    bool no_path = head->flags & HANDOVER_NO_PATH;

    if (head->flags & ~HANDOVER_PROGRAM_FLAGS || path.n > HANDOVER_PATH_MAX)
        return false;
    if (!(head->flags & HANDOVER_HASHED) && !is_zero(&head->hash))
        return false;
    if (no_path != (path.n == 0))
        return false;
    return no_path || (path.p[0] == '/' && !memchr(path.p, '\0', path.n));
}

static bool take_program(struct str *rest, struct handover_program *out)
{
    struct program_head head;
    struct str path;

    if (!take(rest, &head, sizeof head) || rest->n < head.path_n)
        return false;
    path = (struct str){rest->p, head.path_n};
    if (!program_holds(&head, path))
        return false;
    *out = (struct handover_program){head.hash, head.flags, path};
    *rest = (struct str){rest->p + path.n, rest->n - path.n};
    return true;
}

static bool body_holds(const struct body *body)
{
    const uint32_t script = CALLER_HAS_SCRIPT | CALLER_SCRIPT_UNKNOWN;

    return body->cookie != 0 && !(body->flags & ~CALLER_FLAGS) &&
           (body->flags & script) != script &&
           (body->family == AF_INET || body->family == AF_INET6) &&
           body->ancestor_n <= HANDOVER_ANCESTORS_MAX;
}

static bool take_caller(struct str *rest, struct handover_caller *out)
{
    struct body body;

    if (!take(rest, &body, sizeof body) || !body_holds(&body))
        return false;
    *out = (struct handover_caller){.cookie = body.cookie,
                                    .flags = body.flags,
                                    .pid = body.pid,
                                    .family = body.family,
                                    .ancestor_n = body.ancestor_n};
    if (!take_program(rest, &out->exe))
        return false;
    if ((body.flags & CALLER_HAS_SCRIPT) && !take_program(rest, &out->script))
        return false;
    for (uint32_t i = 0; i < body.ancestor_n; i++)
        if (!take_program(rest, &out->ancestors[i]))
            return false;
    return true;
}

int handover_read(struct str message, size_t fd_n, struct handover *out, struct err *err)
{
    struct handover read = {.kind = HANDOVER_NOTHING};
    struct str rest = message;
    struct head head;

    if (!take(&rest, &head, sizeof head) || head.magic != HANDOVER_MAGIC ||
        head.version != HANDOVER_VERSION)
        return err_set(err, ERR_INTEGRITY, "a message that no box of this build sends");
    if (head.kind != HANDOVER_LISTENERS && head.kind != HANDOVER_CALLER)
        return err_set(err, ERR_INTEGRITY, "a message of kind %u", head.kind);
    if (fd_n != (head.kind == HANDOVER_LISTENERS ? HANDOVER_FD_COUNT : 0))
        return err_set(err, ERR_INTEGRITY, "%zu descriptors with a message of kind %u", fd_n,
                       head.kind);
    read.kind = (enum handover_kind)head.kind;
    if (read.kind == HANDOVER_CALLER && !take_caller(&rest, &read.caller))
        return err_set(err, ERR_INTEGRITY, "a caller that does not hold together");
    if (rest.n)
        return err_set(err, ERR_INTEGRITY, "%zu bytes behind the end of a message", rest.n);
    *out = read;
    return 0;
}
