/* SPDX-License-Identifier: Apache-2.0 */

/* What is said: to the agent, and by it. */

#include "flow/advise/parts.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"

const char advise_not_shown[] =
    "The agent's answer is not an advisory envelope and is not shown; it was recorded as a "
    "structural violation.";

/* A last line without its end: whoever wrote it died over it, or the disk was full. What is added
 * would be part of it. */
static int cut_half_line(int fd, off_t *end)
{
    off_t at = lseek(fd, 0, SEEK_END);
    char piece[4096];

    *end = at;
    while (at > 0) {
        size_t want = at > (off_t)sizeof piece ? sizeof piece : (size_t)at;
        ssize_t n = pread(fd, piece, want, at - (off_t)want);

        if (n != (ssize_t)want)
            return -1;
        while (want > 0 && piece[want - 1] != '\n')
            want--;
        at -= n - (ssize_t)want;
        if (want > 0)
            break;
    }
    if (at < 0 || at == *end)
        return at < 0 ? -1 : 0;
    *end = at;
    return ftruncate(fd, at);
}

int keep_said(struct advise *advise, uint64_t turn, bool by_agent, struct str text, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(4 * ADVISORY_VALUE_MAX);
    AUTO_BUF struct buf line = BUF(8 * ADVISORY_VALUE_MAX);
    AUTO_FD int fd = openat(advise->dir_fd, "turns.jsonl",
                            O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct json *json = json_object(&mem);
    off_t end = 0;

    if (fd < 0)
        return err_os(err, "opening the turns of session %s", advise->id);
    if (cut_half_line(fd, &end) < 0)
        return err_os(err, "reading the turns of session %s", advise->id);
    if ((uint64_t)end > ADVISE_TURNS_BYTES_MAX)
        return err_set(err, ERR_LIMIT, "session %s has said all it can", advise->id);
    json_put_text(&mem, json, "by", by_agent ? "agent" : "user");
    json_put_bytes(&mem, json, "text", text);
    json_put_int(&mem, json, "turn", (int64_t)turn);
    if (json_canonical(json, &line, err) < 0 || buf_add_byte(&line, '\n', err) < 0)
        return err_in(err, "keeping a turn");
    if (write_all(fd, line.p, line.n, err) < 0) {
        (void)!ftruncate(fd, end); /* or the next one does */
        return err_in(err, "keeping a turn");
    }
    return fdatasync(fd) < 0 ? err_os(err, "keeping a turn") : 0;
}

/* ---- to it ---- */

static int add_prompt(struct advise *advise, struct str text, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64UL * 1024);
    struct json *more = json_object(&mem);
    char hash[HASH_TEXT_BYTES];

    hash_text_of(text, hash);
    json_put_int(&mem, more, "bytes", (int64_t)text.n);
    json_put_text(&mem, more, "text_sha256", hash);
    json_put_int(&mem, more, "turn", (int64_t)advise->tally.prompts + 1);
    if (keep_said(advise, advise->tally.prompts + 1, false, text, err) < 0 ||
        chain_add(advise, &(struct event){.kind = "prompt", .more = more}, err) < 0)
        return -1;
    return chain_sync(advise, err);
}

static bool has_turns_left(const struct advise *advise)
{
    return advise->tally.prompts < advise->terms.turns_max;
}

/* The hold is the caller's. */
static int take_prompt(struct advise *advise, struct str text, struct err *err)
{
    if (session_is_open(advise, err) < 0)
        return -1;
    if (!has_turns_left(advise))
        return err_set(err, ERR_CONFLICT, "session %s has had its %u turns", advise->id,
                       advise->terms.turns_max);
    return add_prompt(advise, text, err);
}

static int check_prompt(struct str text, struct err *err)
{
    return text.n > ADVISE_TURN_BYTES_MAX ? err_set(err, ERR_LIMIT, "a turn of more than %lu KiB",
                                                    ADVISE_TURN_BYTES_MAX / 1024)
                                          : 0;
}

int advise_prompt(struct advise *advise, struct str text, struct err *err)
{
    AUTO_HOLD struct hold hold = {0};

    if (check_prompt(text, err) < 0 || hold_take(advise, &hold, err) < 0)
        return -1;
    return take_prompt(advise, text, err);
}

/* ---- by it ---- */

int add_findings(struct advise *advise, const struct advisory_result *result, struct err *err)
{
    for (size_t i = 0; i < result->finding_n; i++)
        if (chain_add(advise, &(struct event){.kind = "finding", .finding = &result->findings[i]},
                      err) < 0)
            return -1;
    return 0;
}

static int add_note(struct advise *advise, struct arena *mem, enum advisory_category category,
                    const char *rule, struct str text, struct err *err)
{
    const struct advisory_finding finding = {
        .category = category,
        .verdict = ADVISORY_REJECT,
        .drift = advisory_category_drift(category),
        .rule = rule,
        .span = {0, text.n},
        .excerpt = advisory_excerpt(mem, text, 0, text.n),
        .where = "",
    };

    return chain_add(advise, &(struct event){.kind = "finding", .finding = &finding}, err);
}

static int add_turn(struct advise *advise, struct str text, const struct advise_answer *answer,
                    struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64UL * 1024);
    const struct advisory_result *result = &answer->result;
    struct json *more = json_object(&mem);
    char hash[HASH_TEXT_BYTES];

    hash_text_of(text, hash);
    json_put_int(&mem, more, "bytes", (int64_t)text.n);
    json_put_bool(&mem, more, "closes", !answer->is_unprompted);
    json_put_int(&mem, more, "compliance", result->compliance);
    json_put_text(&mem, more, "drift", advisory_drift_code(result->drift));
    json_put_int(&mem, more, "drift_thousands", result->drift_thousands);
    json_put_int(&mem, more, "findings", (int64_t)result->finding_n);
    json_put_text(&mem, more, "text_sha256", hash);
    json_put_int(&mem, more, "turn", (int64_t)advise->tally.turns + 1);
    json_put_int(&mem, more, "unlisted", (int64_t)result->unlisted);
    json_put_bool(&mem, more, "valid", result->is_valid);
    json_put_text(&mem, more, "verdict", advisory_verdict_name(result->verdict));
    return chain_add(advise, &(struct event){.kind = "turn", .more = more}, err);
}

/* What is past the ceiling was not read, and is no envelope. */
int judge_text(struct arena *mem, struct str text, bool strict_seed, struct advisory_result *out,
               struct err *err)
{
    const struct advisory_options options = {.strict_seed = strict_seed};
    struct str read = text.n > ADVISE_TURN_BYTES_MAX ? STR_LIT("") : text;

    return advisory_check(mem, ADVISORY_OUTPUT, read, &options, out, err);
}

int advise_judge(const struct advise *advise, struct arena *mem, struct str text,
                 struct advise_answer *out, struct err *err)
{
    if (judge_text(mem, text, advise->terms.strict_seed, &out->result, err) < 0)
        return -1;
    out->client_view = out->result.is_valid ? out->result.client_view : str_of(advise_not_shown);
    return 0;
}

/* What was judged is kept; the hold is the caller's. */
static int take_answer(struct advise *advise, struct arena *mem, struct str text,
                       struct advise_answer *out, struct err *err)
{
    out->is_unprompted = advise->tally.answered >= advise->tally.prompts;
    out->first_seq = advise->tally.events + 1;
    if (keep_said(advise, advise->tally.turns + 1, true,
                  text.n > SAID_MAX ? (struct str){text.p, SAID_MAX} : text, err) < 0 ||
        add_turn(advise, text, out, err) < 0 || add_findings(advise, &out->result, err) < 0)
        return -1;
    if (out->is_unprompted &&
        add_note(advise, mem, ADVISORY_IS_QUIESCENCE, "unprompted_turn", text, err) < 0)
        return -1;
    out->is_over = advise->tally.turns >= advise->terms.turns_max;
    out->last_seq = advise->tally.events;
    return chain_sync(advise, err);
}

int advise_heard(struct advise *advise, struct arena *mem, struct str text,
                 struct advise_answer *out, struct err *err)
{
    AUTO_HOLD struct hold hold = {0};

    *out = (struct advise_answer){0};
    if (advise_judge(advise, mem, text, out, err) < 0 || hold_take(advise, &hold, err) < 0 ||
        session_is_open(advise, err) < 0)
        return -1;
    return take_answer(advise, mem, text, out, err);
}

/* What an agent says beyond its turns is no turn, but it was said. How often that can be is bounded
 * by the room of the chain, which ends the session. */
static int note_past_budget(struct advise *advise, struct arena *mem, struct str said,
                            struct advise_answer *out, struct err *err)
{
    if (session_is_open(advise, err) < 0)
        return -1;
    if (has_turns_left(advise))
        return 0;
    if (add_note(advise, mem, ADVISORY_IS_QUIESCENCE, "turn_budget", said, err) < 0 ||
        chain_sync(advise, err) < 0)
        return -1;
    out->is_past_budget = true;
    return 0;
}

int advise_exchange(struct advise *advise, struct arena *mem, struct str asked, struct str said,
                    struct advise_answer *out, struct err *err)
{
    AUTO_HOLD struct hold hold = {0};

    *out = (struct advise_answer){0};
    if (check_prompt(asked, err) < 0 || advise_judge(advise, mem, said, out, err) < 0 ||
        hold_take(advise, &hold, err) < 0 || note_past_budget(advise, mem, said, out, err) < 0 ||
        take_prompt(advise, asked, err) < 0)
        return -1;
    return take_answer(advise, mem, said, out, err);
}

int advise_note(struct advise *advise, struct arena *mem, enum advisory_category category,
                const char *rule, struct str text, struct err *err)
{
    AUTO_HOLD struct hold hold = {0};

    if (hold_take(advise, &hold, err) < 0)
        return -1;
    if (advise->tally.is_ended || !chain_has_room(advise))
        return err_set(err, ERR_CONFLICT, "session %s is over", advise->id);
    if (add_note(advise, mem, category, rule, text, err) < 0)
        return -1;
    return chain_sync(advise, err);
}

static int add_attempts(struct advise *advise, struct arena *mem, int64_t attempts, struct err *err)
{
    const enum advisory_category category = ADVISORY_IS_SHELL_EXECUTION;
    const struct advisory_finding finding = {
        .category = category,
        .verdict = ADVISORY_REJECT,
        .drift = advisory_category_drift(category),
        .rule = "program_refused",
        .excerpt = STR_LIT(""),
        .where = "",
    };
    struct json *more = json_object(mem);

    json_put_int(mem, more, "attempts", attempts);
    return chain_add(advise, &(struct event){.kind = "finding", .finding = &finding, .more = more},
                     err);
}

/* The finding first: who died between the two has not said that this was all. */
int advise_box_gone(struct advise *advise, bool begun, uint64_t attempts, struct err *err)
{
    AUTO_HOLD struct hold hold = {0};
    AUTO_ARENA struct arena mem = ARENA(64UL * 1024);
    int64_t times =
        attempts > ADVISE_ATTEMPTS_MAX ? (int64_t)ADVISE_ATTEMPTS_MAX : (int64_t)attempts;
    struct json *more = json_object(&mem);

    json_put_int(&mem, more, "attempts", times);
    json_put_bool(&mem, more, "begun", begun);
    if (hold_take(advise, &hold, err) < 0 ||
        (times && add_attempts(advise, &mem, times, err) < 0) ||
        chain_add(advise, &(struct event){.kind = "box", .more = more}, err) < 0)
        return -1;
    return chain_sync(advise, err);
}
