/* SPDX-License-Identifier: Apache-2.0 */

/* What an agent asks for, and a person's word on it.
 *
 *     PENDING ──HUMAN_CONFIRMED: true──▶ CONFIRMED, and done once
 *        ├─ no ────────────────────────▶ REJECTED
 *        ├─ too late ──────────────────▶ EXPIRED
 *        └─ anything else ─────────────▶ ABORTED
 *
 * That it is confirmed is on disk before it is done: after a crash in between it is not done, and
 * never done again. */

#include "flow/advise/parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#define CONFIRM_DOMAIN "brig/advisory-confirm/1"
#define ACTION_TEXT_MAX (4 * ADVISORY_VALUE_MAX)
#define CLOCK_STEP_S 10 /* a clock that is set right may go back so far */

const char *advise_state_name(enum advise_state state)
{
    static const char *const names[] = {
#define X(id, name) [ADVISE_##id] = (name),
        ADVISE_STATES(X)
#undef X
    };

    return names[state];
}

void advise_preimage(const char *id, const char *digest, bool confirm, struct hash *out)
{
    const char *word = confirm ? "confirm" : "reject";
    struct hasher hasher;

    hasher_init(&hasher);
    hasher_add(&hasher, CONFIRM_DOMAIN, sizeof CONFIRM_DOMAIN); /* each with its NUL */
    hasher_add(&hasher, word, strlen(word) + 1);
    hasher_add(&hasher, id, strlen(id) + 1);
    hasher_add(&hasher, digest, strlen(digest));
    hasher_end(&hasher, out);
}

/* ---- the file of one ---- */

struct json *advise_action_json(struct arena *mem, const struct advise_action *action)
{
    struct json *json = json_object(mem);

    json_put_int(mem, json, "created_at", action->created_at);
    json_put_text(mem, json, "decided_by", action->decided_by);
    json_put_text(mem, json, "digest", action->digest);
    json_put_bool(mem, json, "done", action->is_done);
    json_put_text(mem, json, "drift", action->drift);
    json_put_int(mem, json, "expires_at", action->expires_at);
    json_put(json, "request", json_text(mem, action->request));
    json_put_text(mem, json, "request_id", action->id);
    json_put_text(mem, json, "state", advise_state_name(action->state));
    json_put_text(mem, json, "why", action->why);
    return json;
}

static const char *file_of(struct arena *mem, const char *id)
{
    return arena_printf(mem, "actions/%s.json", id);
}

/* What became of it is chained, too: the file alone could be changed by anybody who is us. */
static int add_event(struct advise *advise, const struct advise_action *action, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64UL * 1024);
    struct json *more = json_object(&mem);

    json_put_text(&mem, more, "decided_by", action->decided_by);
    json_put_text(&mem, more, "digest", action->digest);
    json_put_bool(&mem, more, "done", action->is_done);
    json_put_text(&mem, more, "request_id", action->id);
    json_put_text(&mem, more, "state", advise_state_name(action->state));
    if (chain_add(advise, &(struct event){.kind = "action", .more = more}, err) < 0)
        return -1;
    return chain_sync(advise, err);
}

static int keep(struct advise *advise, const struct advise_action *action, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(8 * ACTION_TEXT_MAX);
    AUTO_BUF struct buf text = BUF(2 * ACTION_TEXT_MAX);

    if (json_canonical(advise_action_json(&mem, action), &text, err) < 0)
        return -1;
    if (file_put(advise->dir_fd, file_of(&mem, action->id), buf_str(&text), err) < 0)
        return err_in(err, "keeping an action request");
    return add_event(advise, action, err);
}

static const char *member(struct arena *mem, const struct json *json, const char *key)
{
    struct str text = {"", 0};

    (void)json_is_text(json_get(json, key), &text);
    return arena_text(mem, text);
}

static int read_action(const struct advise *advise, struct arena *mem, const char *id,
                       struct advise_action *out, struct err *err)
{
    const struct json *json = NULL;
    struct str text = {0}, state = {0};
    struct mark where;

    if (strlen(id) != ID_BYTES - 1 || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") != 20)
        return err_set(err, ERR_NOT_FOUND, "session %s has no action \"%.40s\"", advise->id, id);
    if (faccessat(advise->dir_fd, file_of(mem, id), F_OK, 0) < 0 && errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND, "session %s has no action %s", advise->id, id);
    if (file_text(mem, advise->dir_fd, file_of(mem, id), ACTION_TEXT_MAX * 2, &text, err) < 0)
        return -1;
    if (json_parse(mem, text, &json, &where, err) < 0)
        return err_in(advise_damaged(err), "action %s", id);
    *out = (struct advise_action){.id = arena_text(mem, str_of(id)),
                                  .digest = member(mem, json, "digest"),
                                  .request = str_of(member(mem, json, "request")),
                                  .drift = member(mem, json, "drift"),
                                  .decided_by = member(mem, json, "decided_by"),
                                  .why = member(mem, json, "why")};
    (void)json_is_text(json_get(json, "state"), &state);
    for (int i = 0; i < ADVISE_STATE_COUNT; i++)
        if (str_is(state, advise_state_name((enum advise_state)i)))
            out->state = (enum advise_state)i;
    (void)json_is_int(json_get(json, "created_at"), &out->created_at);
    (void)json_is_int(json_get(json, "expires_at"), &out->expires_at);
    (void)json_is_bool(json_get(json, "done"), &out->is_done);
    return 0;
}

/* ---- asked ---- */

/* The folder that is /sandbox to what is asked for. */
static int open_root(const struct advise *advise, struct err *err)
{
    int fd = openat(advise->dir_fd, "sandbox", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    return fd < 0 ? err_os(err, "opening the folder of session %s", advise->id) : fd;
}

static int digest_with(const struct advise *advise, struct arena *mem,
                       const struct advise_action *action, const struct advisory_action *asked,
                       const struct advisory_target *target, char out[HASH_TEXT_BYTES],
                       struct err *err)
{
    const struct advisory_binding binding = {.request_id = action->id,
                                             .run_id = advise->id,
                                             .agent_id = advise->terms.agent_id,
                                             .created_at = action->created_at,
                                             .expires_at = action->expires_at,
                                             .drift = action->drift};

    return advisory_action_digest(mem, asked, target, &binding, out, err);
}

static int digest_of(const struct advise *advise, struct arena *mem,
                     const struct advise_action *action, const struct advisory_action *asked,
                     char out[HASH_TEXT_BYTES], const char **rule, struct err *err)
{
    AUTO_FD int root_fd = open_root(advise, err);
    struct advisory_target target = {0};

    if (root_fd < 0 || advisory_target_look(mem, root_fd, asked->target, &target, rule, err) < 0)
        return -1;
    return digest_with(advise, mem, action, asked, &target, out, err);
}

/* Brig does nothing for an agent but this. */
static const char *not_done(const struct advisory_action *asked)
{
    if (asked->type != ACTION_TYPE_FILESYSTEM)
        return "only files of /sandbox/output are changed on request";
    switch (asked->operation) {
    case ACTION_OP_CREATE:
    case ACTION_OP_MODIFY:
    case ACTION_OP_DELETE:
    case ACTION_OP_MOVE:
        return NULL;
    case ACTION_OP_NONE:
    case ACTION_OP_EXECUTE:
    case ACTION_OP_FETCH:
    case ACTION_OP_MOUNT:
    case ACTION_OP_GRANT:
        break;
    }
    return "that operation is never done on request";
}

/* ID.json, and nothing that somebody who was killed over it left beside it. */
static int count_file(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);

    return n == ID_BYTES - 1 + strlen(".json") &&
           strcmp(entry->d_name + ID_BYTES - 1, ".json") == 0;
}

static int count_actions(const struct advise *advise)
{
    char path[64];
    struct dirent **list = NULL;
    int n;

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d/actions", advise->dir_fd);
    n = scandir(path, &list, count_file, alphasort);
    for (int i = 0; i < n; i++)
        free(list[i]);
    free(list);
    return n;
}

static void reject(struct advise_action *action, const char *why)
{
    action->state = ADVISE_REJECTED;
    action->why = why;
}

/* Kept where only a person can let it happen; everything else has its answer at once. */
static int take_request(struct advise *advise, struct arena *mem,
                        const struct advisory_result *result, struct advise_action *action,
                        struct err *err)
{
    const char *why = result->is_valid ? not_done(&result->action) : result->fault;
    char digest[HASH_TEXT_BYTES] = "";
    const char *rule = NULL;

    if (result->is_valid && result->verdict == ADVISORY_REJECT)
        why = result->advisory_text.n ? arena_text(mem, result->advisory_text) : result->rule;
    if (!why && digest_of(advise, mem, action, &result->action, digest, &rule, err) < 0) {
        if (!rule)
            return -1;
        why = advisory_path_text;
    }
    action->digest = arena_text(mem, str_of(digest));
    if (why)
        reject(action, why);
    return keep(advise, action, err);
}

int advise_ask(struct advise *advise, struct arena *mem, struct str request,
               struct advise_answer *answer, struct advise_action *out, struct err *err)
{
    const struct advisory_options options = {.strict_seed = advise->terms.strict_seed};
    AUTO_HOLD struct hold hold = {0};
    char id[ID_BYTES];

    *answer = (struct advise_answer){0};
    if (request.n > ADVISE_TURN_BYTES_MAX)
        return err_set(err, ERR_LIMIT, "an action request of more than %lu KiB",
                       ADVISE_TURN_BYTES_MAX / 1024);
    if (advisory_check(mem, ADVISORY_ACTION, request, &options, &answer->result, err) < 0 ||
        hold_take(advise, &hold, err) < 0 || session_is_open(advise, err) < 0)
        return -1;
    /* Also what was rejected is kept, and takes room. */
    if (count_actions(advise) >= ADVISE_ACTIONS_MAX)
        return err_set(err, ERR_LIMIT, "session %s has asked %d times, which is all it can",
                       advise->id, ADVISE_ACTIONS_MAX);
    id_new(id);
    *out = (struct advise_action){
        .id = arena_text(mem, str_of(id)),
        .state = ADVISE_PENDING,
        .digest = "",
        .drift = "",
        .decided_by = "",
        .why = "",
        .request = answer->result.is_valid ? arena_str(mem, request) : (struct str){"", 0},
        .created_at = now_s()
    };
    out->expires_at = out->created_at + (int64_t)advise->terms.action_s;
    answer->first_seq = advise->tally.events + 1;
    if (add_findings(advise, &answer->result, err) < 0)
        return -1;
    out->drift = advisory_drift_code(advise->tally.drift);
    if (take_request(advise, mem, &answer->result, out, err) < 0)
        return -1;
    answer->last_seq = advise->tally.events;
    return 0;
}

/* ---- looked at ---- */

/* Why nobody can confirm it any more, or NULL. A clock that goes back is no longer time to think.
 */
static const char *too_late(const struct advise *advise, const struct advise_action *action)
{
    int64_t latest =
        action->created_at > advise->tally.last_at ? action->created_at : advise->tally.last_at;

    if (now_s() >= action->expires_at)
        return "nobody confirmed it in time";
    return now_s() + CLOCK_STEP_S < latest ? "the clock went back" : NULL;
}

static int expire(struct advise *advise, struct advise_action *action, struct err *err)
{
    const char *why = action->state == ADVISE_PENDING ? too_late(advise, action) : NULL;

    if (!why)
        return 0;
    action->state = ADVISE_EXPIRED;
    action->why = why;
    return keep(advise, action, err);
}

int advise_action_show(struct advise *advise, struct arena *mem, const char *id,
                       struct advise_action *out, struct err *err)
{
    AUTO_HOLD struct hold hold = {0};

    if (hold_take(advise, &hold, err) < 0 || read_action(advise, mem, id, out, err) < 0)
        return -1;
    return advise->tally.is_ended ? 0 : expire(advise, out, err);
}

int advise_action_each(struct advise *advise,
                       int (*visit)(void *context, const struct advise_action *action,
                                    struct err *err),
                       void *context, struct err *err)
{
    char path[64];
    struct dirent **list = NULL;
    int failed = 0;
    int n;

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d/actions", advise->dir_fd);
    n = scandir(path, &list, count_file, alphasort);
    for (int i = 0; i < n; i++) {
        AUTO_ARENA struct arena mem = ARENA(16 * ACTION_TEXT_MAX);
        struct advise_action action;
        char id[ID_BYTES] = "";

        (void)snprintf(id, sizeof id, "%.20s", list[i]->d_name);
        if (!failed)
            failed =
                read_action(advise, &mem, id, &action, err) < 0 || visit(context, &action, err) < 0
                    ? -1
                    : 0;
        free(list[i]);
    }
    free(list);
    return failed;
}

/* The request as it was kept, read once more. */
static int read_request(const struct advise *advise, struct arena *mem,
                        const struct advise_action *action, struct advisory_result *out,
                        struct err *err)
{
    const struct advisory_options options = {.strict_seed = advise->terms.strict_seed};

    if (advisory_check(mem, ADVISORY_ACTION, action->request, &options, out, err) < 0)
        return -1;
    return out->is_valid ? 0 : err_set(err, ERR_INTEGRITY, "action %s was changed", action->id);
}

/* ---- as Brig reads it ---- */

static struct json *target_json(struct arena *mem, const struct advisory_target *target,
                                const char *refused)
{
    struct json *json = json_object(mem);

    json_put_bool(mem, json, "exists", target->exists);
    if (target->exists) {
        json_put_text(mem, json, "sha256", target->sha256);
        json_put_int(mem, json, "size_bytes", (int64_t)target->size_bytes);
    }
    if (refused)
        json_put_text(mem, json, "refused", refused);
    return json;
}

int advise_action_reading(const struct advise *advise, struct arena *mem,
                          const struct advise_action *action, struct json **out, struct err *err)
{
    AUTO_FD int root_fd = open_root(advise, err);
    struct json *json = json_object(mem);
    const struct json *normal = NULL;
    char digest[HASH_TEXT_BYTES] = "";
    struct advisory_target target = {0};
    struct advisory_result asked;
    const char *rule = NULL;
    struct mark where;

    if (root_fd < 0 || read_request(advise, mem, action, &asked, err) < 0)
        return -1;
    if (!asked.normalized.n)
        return err_set(err, ERR_INTEGRITY, "action %s was changed", action->id);
    if (json_parse(mem, asked.normalized, &normal, &where, err) < 0)
        return -1;
    if ((advisory_target_look(mem, root_fd, asked.action.target, &target, &rule, err) < 0 ||
         digest_of(advise, mem, action, &asked.action, digest, &rule, err) < 0) &&
        !rule)
        return -1;
    json_each(member, normal) json_copy_member(mem, json, member);
    json_put_bool(mem, json, "as_asked", strcmp(digest, action->digest) == 0);
    json_put(json, "target_now", target_json(mem, &target, rule));
    *out = json;
    return 0;
}

/* ---- decided ---- */

static const char target_changed[] = "its target is not what it was when it was asked";

/* Why his word does not count, or NULL. */
static const char *refusal(const struct advise *advise, struct arena *mem,
                           const struct advise_word *word, const struct advise_action *action)
{
    char digest[HASH_TEXT_BYTES] = "";
    struct advisory_result asked;
    const char *rule = NULL;
    struct err err;

    if (!str_is(word->words, ADVISE_CONFIRM_WORDS))
        return "what was said is not \"" ADVISE_CONFIRM_WORDS "\"";
    if (word->digest && strcmp(word->digest, action->digest) != 0)
        return "the digest is of another request";
    if (read_request(advise, mem, action, &asked, &err) < 0 ||
        digest_of(advise, mem, action, &asked.action, digest, &rule, &err) < 0)
        return rule ? advisory_path_text : "the request cannot be read any more";
    return strcmp(digest, action->digest) == 0 ? NULL : target_changed;
}

/* The hold is the caller's. */
static int decide(struct advise *advise, struct arena *mem, const char *id,
                  const struct advise_word *word, struct advise_action *out, struct err *err)
{
    const char *why;

    if (read_action(advise, mem, id, out, err) < 0)
        return -1;
    if (strcmp(word->by, advise->terms.requester) == 0)
        return err_set(err, ERR_FORBIDDEN, "%s asked for it, and cannot confirm it", word->by);
    if (advise->tally.is_ended)
        return err_set(err, ERR_CONFLICT, "session %s is over", advise->id);
    if (expire(advise, out, err) < 0)
        return -1;
    if (out->state != ADVISE_PENDING)
        return err_set(err, ERR_CONFLICT, "action %s is %s", id, advise_state_name(out->state));
    why = word->reject ? "a person rejected it" : refusal(advise, mem, word, out);
    out->decided_by = arena_text(mem, str_of(word->by));
    out->state = word->reject ? ADVISE_REJECTED : why ? ADVISE_ABORTED : ADVISE_CONFIRMED;
    out->why = why ? why : "";
    return keep(advise, out, err);
}

/* ---- done ---- */

void actions_clear(const struct advise *advise)
{
    struct err ignored;
    AUTO_FD int root_fd = open_root(advise, &ignored);

    if (root_fd >= 0)
        advisory_path_clear(root_fd);
}

/* What is to be done, and what kept it from that. */
struct deed {
    const struct advise *advise;
    struct arena *mem;
    const struct advise_action *action;
    const struct advisory_action *asked;
    const char *rule; /* it was refused; or NULL */
    bool is_changed;  /* its target is another one */
};

static int find_changed(struct deed *deed, struct err *err)
{
    deed->is_changed = true;
    return err_set(err, ERR_CONFLICT, "%s", target_changed);
}

/* Between the word and the deed somebody else's may have come. What is open is what the digest is
 * compared with and what is changed: nothing is looked up again. What is replaced is compared once
 * more when nobody can find it any more. */
static int check_opened(void *context, const struct advisory_opened *opened, struct err *err)
{
    struct deed *deed = context;
    char digest[HASH_TEXT_BYTES] = "";
    struct advisory_target target;

    if (advisory_target_of(opened, &target, &deed->rule, err) < 0 ||
        digest_with(deed->advise, deed->mem, deed->action, deed->asked, &target, digest, err) < 0)
        return -1;
    return strcmp(digest, deed->action->digest) == 0 ? 0 : find_changed(deed, err);
}

/* Before a file is made: that nobody has its name was confirmed. That nobody has it still is seen
 * to by the kernel. */
static int check_absent(struct deed *deed, struct err *err)
{
    const struct advisory_target absent = {0};
    char digest[HASH_TEXT_BYTES] = "";

    if (digest_with(deed->advise, deed->mem, deed->action, deed->asked, &absent, digest, err) < 0)
        return -1;
    if (strcmp(digest, deed->action->digest) == 0)
        return 0;
    if (digest_of(deed->advise, deed->mem, deed->action, deed->asked, digest, &deed->rule, err) < 0)
        return -1;
    return strcmp(digest, deed->action->digest) == 0
               ? err_set(err, ERR_CONFLICT, STR_FMT " exists", STR_ARG(deed->asked->target))
               : find_changed(deed, err);
}

static int put_content(struct deed *deed, int root_fd, const struct advisory_opened *opened,
                       struct err *err)
{
    int failed =
        advisory_path_put(root_fd, opened, deed->asked->content, check_opened, deed, err) < 0;

    deed->is_changed = failed && err->code == ERR_CONFLICT;
    return failed ? -1 : 0;
}

static int change_file(struct deed *deed, int root_fd, struct err *err)
{
    static const enum advisory_access access[] = {[ACTION_OP_CREATE] = ACCESS_CREATE,
                                                  [ACTION_OP_MODIFY] = ACCESS_MODIFY,
                                                  [ACTION_OP_DELETE] = ACCESS_DELETE,
                                                  [ACTION_OP_MOVE] = ACCESS_DELETE};
    const struct advisory_action *asked = deed->asked;
    struct advisory_opened opened = ADVISORY_OPENED;
    bool is_new = asked->operation == ACTION_OP_CREATE;
    int failed;

    if (is_new && check_absent(deed, err) < 0)
        return -1;
    if (advisory_path_open(deed->mem, root_fd, asked->target, access[asked->operation], &opened,
                           &deed->rule, err) < 0) {
        deed->is_changed = err->code == (is_new ? ERR_CONFLICT : ERR_NOT_FOUND);
        return -1;
    }
    if (!is_new && check_opened(deed, &opened, err) < 0)
        failed = -1;
    else if (asked->operation == ACTION_OP_DELETE)
        failed = advisory_path_remove(root_fd, &opened, err);
    else if (asked->operation == ACTION_OP_MOVE)
        failed =
            advisory_path_move(deed->mem, root_fd, &opened, asked->destination, &deed->rule, err);
    else
        failed = put_content(deed, root_fd, &opened, err);
    advisory_opened_done(&opened);
    return failed;
}

/* As decide(). */
static int carry_out(struct advise *advise, struct arena *mem, const char *id,
                     struct advise_action *out, struct err *err)
{
    AUTO_FD int root_fd = open_root(advise, err);
    struct advisory_result asked;
    struct deed deed = {.advise = advise, .mem = mem, .action = out, .asked = &asked.action};
    struct err why = {0};

    if (root_fd < 0 || read_action(advise, mem, id, out, err) < 0)
        return -1;
    advisory_path_clear(root_fd);
    if (out->state != ADVISE_CONFIRMED || out->is_done || *out->why)
        return err_set(err, ERR_CONFLICT, "action %s is not waiting to be done", id);
    if (read_request(advise, mem, out, &asked, err) < 0)
        return -1;
    /* On disk that it was tried: whatever happens from here on, it is not tried again. */
    out->why = "it was begun";
    if (keep(advise, out, err) < 0)
        return -1;
    CRASH_POINT("advisory-action-begun");
    out->is_done = not_done(&asked.action) == NULL && change_file(&deed, root_fd, &why) == 0;
    if (deed.is_changed)
        out->state = ADVISE_ABORTED;
    out->why = out->is_done ? "done"
               : deed.rule  ? advisory_path_text
                            : arena_text(mem, str_of(why.text));
    return keep(advise, out, err);
}

int advise_action_decide(struct advise *advise, struct arena *mem, const char *id,
                         const struct advise_word *word, struct advise_action *out, struct err *err)
{
    AUTO_HOLD struct hold hold = {0};

    return hold_take(advise, &hold, err) < 0 ? -1 : decide(advise, mem, id, word, out, err);
}

int advise_action_do(struct advise *advise, struct arena *mem, const char *id,
                     struct advise_action *out, struct err *err)
{
    AUTO_HOLD struct hold hold = {0};

    return hold_take(advise, &hold, err) < 0 ? -1 : carry_out(advise, mem, id, out, err);
}

int advise_action_settle(struct advise *advise, struct arena *mem, const char *id,
                         const struct advise_word *word, struct advise_action *out, struct err *err)
{
    AUTO_HOLD struct hold hold = {0};

    if (hold_take(advise, &hold, err) < 0 || decide(advise, mem, id, word, out, err) < 0)
        return -1;
    return out->state == ADVISE_CONFIRMED ? carry_out(advise, mem, id, out, err) : 0;
}
