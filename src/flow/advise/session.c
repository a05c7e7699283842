/* SPDX-License-Identifier: Apache-2.0 */

/* The folder of a session: made, found, listed, ended. */

#include "flow/advise/parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"

int64_t now_s(void)
{
    return (int64_t)time(NULL);
}

int file_text(struct arena *mem, int dir_fd, const char *name, size_t max, struct str *out,
              struct err *err)
{
    AUTO_BUF struct buf text = BUF(max);
    AUTO_FD int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return err_os(err, "opening %s", name);
    if (read_all(fd, &text, err) < 0)
        return err_in(err, "%s", name);
    *out = arena_str(mem, buf_str(&text));
    return 0;
}

int file_put(int dir_fd, const char *name, struct str text, struct err *err)
{
    char path[PATH_MAX];

    /* The folder is ours alone; its name may be what we were not told. */
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d/%s", dir_fd, name);
    return file_replace(path, text.p, text.n, 0600, err);
}

/* ---- session.json ---- */

static int write_session(struct advise *advise, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(1024UL * 1024);
    AUTO_BUF struct buf text = BUF(SESSION_TEXT_MAX);
    const struct advise_terms *terms = &advise->terms;
    struct json *json = json_object(&mem);

    json_put_int(&mem, json, "action_s", terms->action_s);
    json_put_text(&mem, json, "agent_id", terms->agent_id);
    json_put_text(&mem, json, "agent_version", terms->agent_version);
    json_put_text(&mem, json, "channel", terms->channel);
    json_put_text(&mem, json, "constitution_sha256", advise->constitution_sha256);
    json_put_int(&mem, json, "created_at", advise->created_at);
    json_put_int(&mem, json, "deadline_s", terms->deadline_s);
    json_put_int(&mem, json, "idle_s", terms->idle_s);
    json_put_text(&mem, json, "intent_id", advise->intent_id);
    json_put_text(&mem, json, "requester", terms->requester);
    json_put_text(&mem, json, "run_id", advise->id);
    json_put_bool(&mem, json, "strict_seed", terms->strict_seed);
    json_put_int(&mem, json, "turns_max", terms->turns_max);
    json_put_int(&mem, json, "v", 1);
    if (json_canonical(json, &text, err) < 0 || buf_add_byte(&text, '\n', err) < 0)
        return -1;
    return file_put(advise->dir_fd, "session.json", buf_str(&text), err);
}

static const char *text_at(struct arena *mem, const struct json *json, const char *key)
{
    struct str text = {"", 0};

    (void)json_is_text(json_get(json, key), &text);
    return arena_text(mem, text);
}

static unsigned number_at(const struct json *json, const char *key)
{
    int64_t value = 0;

    (void)json_is_int(json_get(json, key), &value);
    return value > 0 && value <= INT32_MAX ? (unsigned)value : 0;
}

static int read_session(struct advise *advise, struct err *err)
{
    struct arena *mem = &advise->mem;
    const struct json *json = NULL;
    struct str text, hash = {0};
    struct mark where;

    if (file_text(mem, advise->dir_fd, "session.json", SESSION_TEXT_MAX, &text, err) < 0)
        return -1;
    if (json_parse(mem, text, &json, &where, err) < 0)
        return err_in(advise_damaged(err), "session.json");
    advise->terms = (struct advise_terms){
        .agent_id = text_at(mem, json, "agent_id"),
        .agent_version = text_at(mem, json, "agent_version"),
        .requester = text_at(mem, json, "requester"),
        .channel = text_at(mem, json, "channel"),
        .turns_max = number_at(json, "turns_max"),
        .deadline_s = number_at(json, "deadline_s"),
        .idle_s = number_at(json, "idle_s"),
        .action_s = number_at(json, "action_s"),
    };
    (void)json_is_bool(json_get(json, "strict_seed"), &advise->terms.strict_seed);
    (void)json_is_int(json_get(json, "created_at"), &advise->created_at);
    advise->intent_id = text_at(mem, json, "intent_id");
    if (!json_is_text(json_get(json, "constitution_sha256"), &hash) || hash.n >= HASH_TEXT_BYTES ||
        strcmp(text_at(mem, json, "run_id"), advise->id) != 0)
        return err_set(err, ERR_INTEGRITY, "session.json is of another session");
    (void)snprintf(advise->constitution_sha256, HASH_TEXT_BYTES, STR_FMT, STR_ARG(hash));
    return 0;
}

int advise_anchored(struct advise *advise, const char *intent_id, struct err *err)
{
    advise->intent_id = arena_text(&advise->mem, str_of(intent_id));
    return write_session(advise, err);
}

/* ---- making one ---- */

static bool is_name(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n <= ADVISE_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:@/+") ==
               n;
}

static int check_terms(const struct advise_terms *terms, struct err *err)
{
    if (!is_agent_id(str_of(terms->agent_id)))
        return err_set(err, ERR_INVALID, "agent id \"%.64s\": write 1 to %d " AGENT_ID_TEXT,
                       terms->agent_id, POLICY_AGENT_MAX);
    if (!is_name(terms->agent_version))
        return err_set(err, ERR_INVALID,
                       "agent version \"%.64s\": write 1 to %d letters, digits, - _ . : @ / +",
                       terms->agent_version, ADVISE_NAME_MAX);
    if (terms->turns_max > ADVISE_TURNS_MAX)
        return err_set(err, ERR_LIMIT, "a session has at most %d turns", ADVISE_TURNS_MAX);
    if (terms->constitution.n == 0)
        return err_set(err, ERR_INVALID, "the constitution is empty; an agent begins with one");
    if (terms->constitution.n > ADVISE_CONSTITUTION_MAX)
        return err_set(err, ERR_LIMIT, "a constitution of more than %lu KiB",
                       ADVISE_CONSTITUTION_MAX / 1024);
    return str_is_utf8(terms->constitution)
               ? 0
               : err_set(err, ERR_INVALID, "the constitution is no UTF-8 text");
}

static struct advise *advise_new(const char *state_dir, const char *id)
{
    struct advise *advise = xcalloc(1, sizeof *advise);

    advise->mem = ARENA(ADVISE_MEMORY_MAX);
    (void)snprintf(advise->id, sizeof advise->id, "%s", id);
    advise->dir = arena_printf(&advise->mem, "%s/advisory/%s", state_dir, id);
    advise->dir_fd = advise->events_fd = -1;
    advise->intent_id = "";
    tally_begin(&advise->tally);
    return advise;
}

void advise_free(struct advise *advise)
{
    if (!advise)
        return;
    if (advise->events_fd >= 0)
        (void)close(advise->events_fd);
    if (advise->dir_fd >= 0)
        (void)close(advise->dir_fd);
    arena_done(&advise->mem);
    free(advise);
}

static int make_folders(struct advise *advise, struct err *err)
{
    static const char *const below[] = {"", "/actions", "/sandbox", "/sandbox/output"};

    for (size_t i = 0; i < COUNT(below); i++)
        if (dir_make(arena_printf(&advise->mem, "%s%s", advise->dir, below[i]), i < 2 ? 0700 : 0755,
                     err) < 0)
            return -1;
    advise->dir_fd = open(advise->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (advise->dir_fd < 0)
        return err_os(err, "opening %s", advise->dir);
    /* Whose agent is in a box here: ours until it is freed, or we are gone (may_end()). A harness
     * comes and goes. */
    advise->is_ours = !advise_is_claimed(advise->terms.channel);
    return advise->is_ours && flock(advise->dir_fd, LOCK_EX | LOCK_NB) < 0
               ? err_os(err, "locking %s", advise->dir)
               : 0;
}

static int open_events(struct advise *advise, int flags, struct err *err)
{
    advise->events_fd =
        openat(advise->dir_fd, "events.jsonl", flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    return advise->events_fd < 0 ? err_os(err, "opening the telemetry of session %s", advise->id)
                                 : 0;
}

static void copy_terms(struct advise *advise, const struct advise_terms *terms)
{
    struct arena *mem = &advise->mem;

    advise->terms = *terms;
    advise->terms.agent_id = arena_text(mem, str_of(terms->agent_id));
    advise->terms.agent_version = arena_text(mem, str_of(terms->agent_version));
    advise->terms.requester = arena_text(mem, str_of(terms->requester));
    advise->terms.channel = arena_text(mem, str_of(terms->channel));
    advise->terms.constitution = (struct str){"", 0};
    if (!advise->terms.turns_max)
        advise->terms.turns_max = ADVISE_TURNS_DEFAULT;
    if (!advise->terms.deadline_s)
        advise->terms.deadline_s = ADVISE_DEADLINE_S;
    if (!advise->terms.idle_s)
        advise->terms.idle_s = ADVISE_IDLE_S;
    if (!advise->terms.action_s)
        advise->terms.action_s = ADVISE_ACTION_S;
}

static int first_events(struct advise *advise, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64UL * 1024);
    AUTO_HOLD struct hold hold = {0};
    const struct advise_terms *terms = &advise->terms;
    struct json *more = json_object(&mem);

    json_put_int(&mem, more, "action_s", terms->action_s);
    json_put_text(&mem, more, "channel", terms->channel);
    json_put_int(&mem, more, "created_at", advise->created_at);
    json_put_int(&mem, more, "deadline_s", terms->deadline_s);
    json_put_int(&mem, more, "idle_s", terms->idle_s);
    json_put_text(&mem, more, "profile", advise_profile(terms));
    json_put_text(&mem, more, "requester", terms->requester);
    json_put_int(&mem, more, "turns_max", terms->turns_max);
    if (hold_take(advise, &hold, err) < 0 ||
        chain_add(advise, &(struct event){.kind = "start", .more = more}, err) < 0 ||
        chain_add(advise, &(struct event){.kind = "constitution"}, err) < 0)
        return -1;
    return chain_sync(advise, err);
}

static bool is_id(const char *id)
{
    return strlen(id) == ID_BYTES - 1 &&
           strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") == ID_BYTES - 1;
}

static int check_room(const char *state_dir, struct err *err)
{
    AUTO_FREE char *path = NULL;
    size_t n = 0;
    DIR *dir;

    if (asprintf(&path, "%s/advisory", state_dir) < 0) {
        path = NULL;
        return err_os(err, "naming the sessions");
    }
    dir = opendir(path);
    if (!dir)
        return errno == ENOENT ? 0 : err_os(err, "listing %s", path);
    for (const struct dirent *entry; (entry = readdir(dir));)
        n += is_id(entry->d_name);
    (void)closedir(dir);
    return n < ADVISE_SESSIONS_MAX ? 0
                                   : err_set(err, ERR_LIMIT,
                                             "there are %d advisory sessions; move old ones out of "
                                             "%s",
                                             ADVISE_SESSIONS_MAX, path);
}

static int fill_folder(struct advise *advise, struct str constitution, struct err *err)
{
    if (make_folders(advise, err) < 0 ||
        file_put(advise->dir_fd, "constitution", constitution, err) < 0 ||
        write_session(advise, err) < 0 || open_events(advise, O_CREAT | O_EXCL, err) < 0)
        return -1;
    return first_events(advise, err);
}

/* Under another name until all of it is there: whoever lists sessions never sees half a one. */
static int make_session(struct advise *advise, const char *state_dir, struct str constitution,
                        struct err *err)
{
    const char *dir = advise->dir;
    struct err ignored;

    advise->dir =
        arena_printf(&advise->mem, "%s/advisory/" ADVISE_NEW_PREFIX "%s", state_dir, advise->id);
    if (fill_folder(advise, constitution, err) == 0) {
        CRASH_POINT("advisory-session-made");
        if (rename(advise->dir, dir) == 0) {
            advise->dir = dir;
            return 0;
        }
        (void)err_os(err, "naming %s", dir);
    }
    (void)!dir_remove(AT_FDCWD, advise->dir, &ignored); /* or whoever begins the next one does */
    return -1;
}

int advise_start(const char *state_dir, const struct advise_terms *terms, struct advise **out,
                 struct err *err)
{
    AUTO(advise) struct advise *advise = NULL;
    char id[ID_BYTES];

    if (check_terms(terms, err) < 0 || check_room(state_dir, err) < 0)
        return -1;
    id_new(id);
    advise = advise_new(state_dir, id);
    copy_terms(advise, terms);
    hash_text_of(terms->constitution, advise->constitution_sha256);
    advise->created_at = now_s();
    if (make_session(advise, state_dir, terms->constitution, err) < 0)
        return err_in(err, "beginning a session");
    *out = TAKE(advise);
    return 0;
}

static int check_constitution(struct advise *advise, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(2 * ADVISE_CONSTITUTION_MAX);
    char hash[HASH_TEXT_BYTES];
    struct str text;

    if (file_text(&mem, advise->dir_fd, "constitution", ADVISE_CONSTITUTION_MAX, &text, err) < 0)
        return -1;
    hash_text_of(text, hash);
    return strcmp(hash, advise->constitution_sha256) == 0
               ? 0
               : err_set(err, ERR_INTEGRITY, "the constitution of session %s was changed",
                         advise->id);
}

int advise_open(const char *state_dir, const char *id, struct advise **out, struct err *err)
{
    AUTO(advise) struct advise *advise = NULL;

    if (!is_id(id))
        return err_set(err, ERR_NOT_FOUND, "there is no advisory session \"%.40s\"", id);
    advise = advise_new(state_dir, id);
    advise->dir_fd = open(advise->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (advise->dir_fd < 0)
        return errno == ENOENT
                   ? err_set(err, ERR_NOT_FOUND,
                             "there is no advisory session %s; \"brig advisory report\" shows them",
                             id)
                   : err_os(err, "opening %s", advise->dir);
    if (read_session(advise, err) < 0 || check_constitution(advise, err) < 0 ||
        open_events(advise, 0, err) < 0 || advise_refresh(advise, err) < 0) {
        if (err->os == ENOENT || err->os == ELOOP) /* of a session that is there */
            err->code = ERR_INTEGRITY;
        return err_in(err, "session %s", id);
    }
    *out = TAKE(advise);
    return 0;
}

int advise_glance(const char *state_dir, const char *id, struct advise **out, struct err *err)
{
    AUTO(advise) struct advise *advise = advise_new(state_dir, id);

    advise->dir_fd = open(advise->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (advise->dir_fd < 0)
        return err_os(err, "opening %s", advise->dir);
    if (read_session(advise, err) < 0)
        return err_in(err, "session %s", id);
    *out = TAKE(advise);
    return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_session(const struct dirent *entry)
{
    return is_id(entry->d_name);
}

int advise_each(const char *state_dir, int (*visit)(void *context, const char *id, struct err *err),
                void *context, struct err *err)
{
    AUTO_FREE char *path = NULL;
    struct dirent **list = NULL;
    int failed = 0;
    int n;

    if (asprintf(&path, "%s/advisory", state_dir) < 0) {
        path = NULL;
        return err_os(err, "naming the sessions");
    }
    n = scandir(path, &list, is_session, by_name);
    if (n < 0)
        return errno == ENOENT ? 0 : err_os(err, "listing %s", path);
    for (int i = 0; i < n; i++) {
        if (!failed && i < ADVISE_SESSIONS_MAX)
            failed = visit(context, list[i]->d_name, err);
        free(list[i]);
    }
    free(list);
    return failed;
}

/* ---- how long it is open ---- */

static int add_end(struct advise *advise, const char *why, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64UL * 1024);
    struct json *more = json_object(&mem);

    actions_clear(advise);
    json_put_text(&mem, more, "why", why);
    if (chain_add(advise, &(struct event){.kind = "end", .more = more}, err) < 0)
        return -1;
    return chain_sync(advise, err);
}

/* Times are whole seconds, rounded down: one more has passed when all of them have. */
static bool has_passed(int64_t since, unsigned seconds)
{
    return now_s() > since + (int64_t)seconds;
}

/* Whoever talks with a box looks at the clock himself while the agent is due to answer; how long
 * people think before they ask is no matter of the agent's. */
static const char *over_by(const struct advise *advise)
{
    if (!chain_has_room(advise))
        return "its telemetry is full";
    if (has_passed(advise->created_at, advise->terms.deadline_s))
        return "deadline";
    return !advise->is_ours && has_passed(advise->tally.last_at, advise->terms.idle_s) ? "idle"
                                                                                       : NULL;
}

int session_is_open(struct advise *advise, struct err *err)
{
    const char *why = over_by(advise);

    if (!advise->tally.is_ended && why && add_end(advise, why, err) < 0)
        return -1;
    return advise->tally.is_ended
               ? err_set(err, ERR_CONFLICT, "session %s is over%s%s; begin another one", advise->id,
                         why ? ": " : "", why ? why : "")
               : 0;
}

/* Whoever made it and lives ends it himself; any number of others may once he is gone. */
static int may_end(const struct advise *advise, struct err *err)
{
    if (advise->is_ours || flock(advise->dir_fd, LOCK_SH | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK
               ? err_set(err, ERR_CONFLICT,
                         "session %s is being held by a Brig that runs; interrupt that one, and it "
                         "ends the session",
                         advise->id)
               : err_os(err, "looking for who holds session %s", advise->id);
}

int advise_end(struct advise *advise, const char *why, struct err *err)
{
    AUTO_HOLD struct hold hold = {0};

    if (may_end(advise, err) < 0 || hold_take(advise, &hold, err) < 0)
        return -1;
    return advise->tally.is_ended ? 0 : add_end(advise, why, err);
}
