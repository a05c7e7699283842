/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/egress/proposals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/memory.h"

#define FILE_NAME "proposals"
#define FILE_NEW FILE_NAME ".new"
#define LINE_MEMORY (4 * MIB) /* to read one */

const char *proposal_status_name(enum proposal_status status)
{
    static const char *const names[] = {
        [PROPOSAL_PENDING] = "pending",
        [PROPOSAL_APPROVED] = "approved",
        [PROPOSAL_REJECTED] = "rejected",
        [PROPOSAL_EXPIRED] = "expired",
    };

    return names[status];
}

static char *copy(struct str text)
{
    char *to = xmalloc(text.n + 1);

    memcpy(to, text.p, text.n);
    to[text.n] = '\0';
    return to;
}

static void waiting_free(struct waiting *waiting)
{
    free(waiting->name);
    free(waiting->rule);
    free(waiting->record);
    free(waiting->reason);
    free(waiting);
}

void proposals_done(struct proposals *proposals)
{
    while (proposals->first) {
        struct waiting *gone = proposals->first;

        proposals->first = gone->next;
        waiting_free(gone);
    }
    proposals->n = 0;
    if (proposals->fd >= 0)
        (void)close(TAKE_FD(proposals->fd));
}

/* Those nobody waits for any more make room; what waits stays. */
static void expire(struct proposals *proposals)
{
    uint64_t now = clock_wall_ns();

    for (struct waiting *waiting = proposals->first; waiting; waiting = waiting->next)
        if (waiting->status == PROPOSAL_PENDING && waiting->expires_ns <= now)
            waiting->status = PROPOSAL_EXPIRED;
}

static void forget_oldest(struct proposals *proposals)
{
    struct waiting **last = NULL;

    for (struct waiting **at = &proposals->first; *at; at = &(*at)->next)
        if ((*at)->status != PROPOSAL_PENDING)
            last = at;
    if (last) {
        struct waiting *gone = *last;

        *last = gone->next;
        waiting_free(gone);
        proposals->n--;
    }
}

/* ---- lines ---- */

static struct str text_in(const struct json *map, const char *key)
{
    struct str text = {"", 0};

    (void)json_is_text(json_get(map, key), &text); /* absent is empty */
    return text;
}

static struct waiting *find_any(struct proposals *proposals, struct str id)
{
    struct waiting *waiting = proposals->first;

    while (waiting && !str_is(id, waiting->id))
        waiting = waiting->next;
    return waiting;
}

/* From its line; false: it is not one of ours. */
static bool take_record(struct proposals *proposals, const struct json *map, struct str line)
{
    AUTO_BUF struct buf rule = BUF(PROPOSAL_BODY_MAX);
    struct str id = text_in(map, "id"), sandbox = text_in(map, "sandbox");
    struct waiting *waiting;
    int64_t expires;
    struct err err;

    if (id.n == 0 || id.n >= PROPOSAL_ID_BYTES || sandbox.n == 0 ||
        sandbox.n >= EGRESS_NAME_BYTES || find_any(proposals, id) ||
        !json_is_int(json_get(map, "expires"), &expires) || expires < 0 || !json_get(map, "rule") ||
        json_canonical(json_get(map, "rule"), &rule, &err) < 0)
        return false;
    waiting = xcalloc(1, sizeof *waiting);
    memcpy(waiting->id, id.p, id.n);
    memcpy(waiting->sandbox, sandbox.p, sandbox.n);
    waiting->expires_ns = (uint64_t)expires * 1000000000U;
    waiting->name = copy(text_in(map, "rule_name"));
    waiting->rule = copy(buf_str(&rule));
    waiting->record = copy(line);
    waiting->next = proposals->first;
    proposals->first = waiting;
    proposals->n++;
    return true;
}

static void take_word(struct proposals *proposals, const struct json *map)
{
    struct waiting *waiting = find_any(proposals, text_in(map, "id"));

    if (waiting)
        waiting->status =
            str_is(text_in(map, "status"), "approved") ? PROPOSAL_APPROVED : PROPOSAL_REJECTED;
}

/* The last line may be torn: nobody has heard of what it says. */
static void take_lines(struct proposals *proposals, struct str text)
{
    while (text.n) {
        AUTO_ARENA struct arena mem = ARENA(LINE_MEMORY);
        struct str line = str_cut(&text, '\n');
        const struct json *map = NULL;
        struct mark where;
        struct err err;

        if (line.n == 0 || json_parse(&mem, line, &map, &where, &err) < 0)
            continue;
        if (str_is(text_in(map, "kind"), "proposal"))
            (void)take_record(proposals, map, line); /* what is none is passed over */
        else
            take_word(proposals, map);
    }
}

/* ---- the file ---- */

static int read_file(struct proposals *proposals, int dir_fd, struct err *err)
{
    AUTO_BUF struct buf text = BUF(2 * PROPOSALS_FILE_MAX);

    if (file_read(dir_fd, FILE_NAME, &text, err) < 0)
        return err->os == ENOENT ? 0 : -1;
    take_lines(proposals, buf_str(&text));
    expire(proposals);
    return 0;
}

static int append(struct proposals *proposals, struct str line, struct err *err)
{
    if (proposals->size + line.n > PROPOSALS_FILE_MAX)
        return err_set(err, ERR_LIMIT, "there is no room for more proposals; ask a person");
    if (write_all(proposals->fd, line.p, line.n, err) < 0 || fdatasync(proposals->fd) < 0)
        return err_set(err, ERR_UNAVAILABLE, "the proposal could not be kept; try again");
    proposals->size += line.n;
    return 0;
}

static int write_pending(struct proposals *proposals, struct err *err)
{
    AUTO_BUF struct buf lines = BUF(PROPOSALS_FILE_MAX);
    const struct waiting *oldest_first[PROPOSALS_MAX];
    size_t n = 0;

    for (const struct waiting *waiting = proposals->first; waiting && n < PROPOSALS_MAX;
         waiting = waiting->next)
        oldest_first[n++] = waiting;
    while (n--)
        if (buf_add_text(&lines, oldest_first[n]->record, err) < 0 ||
            buf_add_byte(&lines, '\n', err) < 0)
            return -1;
    return append(proposals, buf_str(&lines), err);
}

static void forget_answered(struct proposals *proposals)
{
    size_t n;

    do {
        n = proposals->n;
        forget_oldest(proposals);
    } while (proposals->n != n);
}

int proposals_open(struct proposals *proposals, int dir_fd, struct err *err)
{
    *proposals = (struct proposals){.fd = -1};
    if (read_file(proposals, dir_fd, err) < 0)
        return err_in(err, "proposals");
    forget_answered(proposals);
    proposals->fd = openat(dir_fd, FILE_NEW,
                           O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (proposals->fd < 0)
        return err_os(err, "opening " FILE_NEW);
    if (write_pending(proposals, err) < 0)
        return err_in(err, "proposals");
    if (renameat(dir_fd, FILE_NEW, dir_fd, FILE_NAME) < 0)
        return err_os(err, "renaming " FILE_NEW);
    return 0;
}

/* ---- more ---- */

static struct waiting *find_same(struct proposals *proposals, const char *sandbox, struct str name,
                                 struct str rule)
{
    for (struct waiting *waiting = proposals->first; waiting; waiting = waiting->next)
        if (waiting->status == PROPOSAL_PENDING && strcmp(waiting->sandbox, sandbox) == 0 &&
            str_is(name, waiting->name) && str_is(rule, waiting->rule))
            return waiting;
    return NULL;
}

/* A sandbox has its share, and so have all together. */
static int find_room(struct proposals *proposals, const char *sandbox, struct err *err)
{
    size_t pending = 0, all = 0;

    for (struct waiting *waiting = proposals->first; waiting; waiting = waiting->next)
        if (strcmp(waiting->sandbox, sandbox) == 0) {
            pending += waiting->status == PROPOSAL_PENDING;
            all++;
        }
    if (pending >= PROPOSALS_PENDING_MAX)
        return err_set(err, ERR_LIMIT,
                       "%d proposals of this sandbox wait for a person; wait for an answer",
                       PROPOSALS_PENDING_MAX);
    if (all >= PROPOSALS_SANDBOX_MAX)
        return err_set(err, ERR_LIMIT, "this sandbox has asked %d times; a person can do the rest",
                       PROPOSALS_SANDBOX_MAX);
    if (proposals->n >= PROPOSALS_MAX)
        forget_oldest(proposals);
    return proposals->n < PROPOSALS_MAX
               ? 0
               : err_set(err, ERR_LIMIT, "too many proposals wait for people; try again later");
}

static struct json *record_json(const struct proposal_new *ask, const char *id, uint64_t now_s,
                                struct arena *mem)
{
    struct json *map = json_object(mem);
    char time[TIMESTAMP_BYTES];

    clock_timestamp(time);
    json_put_text(mem, map, "kind", "proposal");
    json_put_text(mem, map, "id", id);
    json_put_text(mem, map, "sandbox", ask->sandbox);
    json_put_text(mem, map, "tenant", ask->who->tenant);
    json_put_bytes(mem, map, "subject", str_of(ask->who->subject));
    json_put_text(mem, map, "created_at", time);
    json_put_int(mem, map, "expires", (int64_t)(now_s + PROPOSAL_SECONDS));
    json_put(map, "intent_summary", json_text(mem, ask->intent));
    json_put_bytes(mem, map, "binary", ask->binary);
    json_put(map, "rule_name", json_text(mem, ask->proposal->name));
    json_put(map, "rule", proposal_json(mem, ask->proposal));
    json_put_text(mem, map, "base_policy_hash", ask->rules_hash);
    return map;
}

static int write_record(struct proposals *proposals, const struct proposal_new *ask, const char *id,
                        struct arena *mem, struct err *err)
{
    AUTO_BUF struct buf line = BUF(2 * PROPOSAL_BODY_MAX);
    struct json *map = record_json(ask, id, clock_wall_ns() / 1000000000U, mem);
    char digest[HASH_TEXT_BYTES];

    if (json_canonical(map, &line, err) < 0)
        return -1;
    hash_text_of(buf_str(&line), digest);
    json_put_text(mem, map, "digest", digest);
    buf_clear(&line);
    if (json_canonical(map, &line, err) < 0 || buf_add_byte(&line, '\n', err) < 0 ||
        append(proposals, buf_str(&line), err) < 0)
        return -1;
    line.n--;
    return take_record(proposals, map, buf_str(&line))
               ? 0
               : err_set(err, ERR_INTERNAL, "a proposal that is none");
}

int proposals_add(struct proposals *proposals, const struct proposal_new *ask, const char **out,
                  struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(LINE_MEMORY);
    AUTO_BUF struct buf rule = BUF(PROPOSAL_BODY_MAX);
    char id[PROPOSAL_ID_BYTES] = "prop-";
    struct waiting *same;

    expire(proposals);
    if (json_canonical(proposal_json(&mem, ask->proposal), &rule, err) < 0)
        return -1;
    same = find_same(proposals, ask->sandbox, ask->proposal->name, buf_str(&rule));
    if (same) {
        *out = same->id;
        return 0;
    }
    id_new(id + 5);
    if (find_room(proposals, ask->sandbox, err) < 0 ||
        write_record(proposals, ask, id, &mem, err) < 0)
        return -1;
    *out = proposals->first->id;
    return 0;
}

struct waiting *proposals_find(struct proposals *proposals, const char *sandbox, struct str id)
{
    struct waiting *waiting = find_any(proposals, id);

    expire(proposals);
    return waiting && strcmp(waiting->sandbox, sandbox) == 0 ? waiting : NULL;
}

/* ---- answers ---- */

static int write_word(struct proposals *proposals, const struct waiting *waiting,
                      const struct proposal_word *word, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(LINE_MEMORY);
    AUTO_BUF struct buf line = BUF(2 * PROPOSAL_BODY_MAX);
    struct json *map = json_object(&mem);
    char time[TIMESTAMP_BYTES];

    clock_timestamp(time);
    json_put_text(&mem, map, "kind", "decision");
    json_put_text(&mem, map, "id", waiting->id);
    json_put_text(&mem, map, "status", word->approve ? "approved" : "rejected");
    json_put_text(&mem, map, "decided_at", time);
    json_put_bytes(&mem, map, "by", word->by);
    json_put_bytes(&mem, map, "reason", word->reason);
    json_put_bytes(&mem, map, "policy_hash", word->policy_hash);
    if (json_canonical(map, &line, err) < 0 || buf_add_byte(&line, '\n', err) < 0)
        return -1;
    return append(proposals, buf_str(&line), err);
}

int proposals_decide(struct proposals *proposals, struct waiting *waiting,
                     const struct proposal_word *word, struct err *err)
{
    if (waiting->status != PROPOSAL_PENDING)
        return err_set(err, ERR_CONFLICT, "the proposal is %s already",
                       proposal_status_name(waiting->status));
    if (write_word(proposals, waiting, word, err) < 0)
        return -1;
    waiting->status = word->approve ? PROPOSAL_APPROVED : PROPOSAL_REJECTED;
    waiting->reason = copy(word->reason);
    (void)snprintf(waiting->policy_hash, sizeof waiting->policy_hash, STR_FMT,
                   STR_ARG(word->policy_hash));
    return 0;
}

/* ---- telling ---- */

struct json *proposals_json(struct proposals *proposals, const char *sandbox, struct arena *mem)
{
    struct json *list = json_array(mem);
    size_t told = 0;

    expire(proposals);
    for (const struct waiting *waiting = proposals->first; waiting; waiting = waiting->next) {
        const struct json *record = NULL;
        struct json *map = json_object(mem);
        struct mark where;
        struct err err;

        if (sandbox && strcmp(waiting->sandbox, sandbox) != 0)
            continue;
        told += strlen(waiting->record) + 2 * KIB;
        if (told > PROPOSALS_ANSWER_MAX)
            break;
        if (json_parse(mem, arena_str(mem, str_of(waiting->record)), &record, &where, &err) < 0)
            continue;
        json_each(member, record) json_copy_member(mem, map, member);
        json_put_text(mem, map, "status", proposal_status_name(waiting->status));
        if (waiting->reason)
            json_put_bytes(mem, map, "reason", str_of(waiting->reason));
        json_push(list, map);
    }
    return list;
}
