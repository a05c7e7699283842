/* SPDX-License-Identifier: Apache-2.0 */

/* A session told again: its events in order, each checked once more, and beside a prompt or a turn
 * what was said. The telemetry has only the hash of that; what is on disk has to have the same.
 *
 * One line of each file is in memory at a time. */

#include "flow/advise/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/limits.h"

#define SAID_LINE_MAX (8 * ADVISORY_VALUE_MAX)
#define SAID_MEMORY_MAX (64UL * 1024 * 1024) /* of one line, as a tree */

/* ---- lines ---- */

struct lines {
    FILE *file; /* NULL: there is none */
    struct buf text;
};

static void lines_done(struct lines *lines)
{
    if (lines->file)
        (void)fclose(lines->file);
    buf_done(&lines->text);
}
#define AUTO_LINES __attribute__((cleanup(lines_done)))

static int lines_open(struct lines *lines, const struct advise *advise, const char *name,
                      size_t line_max, struct err *err)
{
    AUTO_FD int fd = openat(advise->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);

    lines->text = BUF(line_max);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(err, "opening %s of session %s", name, advise->id);
    lines->file = fdopen(fd, "re");
    if (!lines->file)
        return err_os(err, "reading %s of session %s", name, advise->id);
    (void)TAKE_FD(fd);
    return 0;
}

/* 1: a line, without its end; 0: there is none. A last line that has no end was never
 * acknowledged. */
static int lines_next(struct lines *lines, struct str *out, struct err *err)
{
    int byte;

    if (!lines->file)
        return 0;
    buf_clear(&lines->text);
    while ((byte = getc_unlocked(lines->file)) != EOF && byte != '\n')
        if (buf_add_byte(&lines->text, (char)byte, err) < 0)
            return err_in(err, "a line of a session");
    if (ferror(lines->file))
        return err_os(err, "reading a session");
    *out = buf_str(&lines->text);
    return byte == '\n';
}

/* ---- what was said ---- */

/* Where the line of each turn begins, by who said it and its number. Who died between the line and
 * its event wrote the line again: the last one counts. */
struct said {
    struct lines lines;
    long at[2][ADVISE_EVENTS_MAX + 1]; /* plus one; 0: there is none */
};

static void said_free(struct said *said)
{
    if (!said)
        return;
    lines_done(&said->lines);
    free(said);
}
AUTO_TYPE(said)

static int read_said(struct arena *mem, struct str line, struct advise_said *out, struct err *err)
{
    struct str by = {0}, encoded = {0};
    const struct json *json = NULL;
    struct mark where;
    int64_t turn = 0;

    if (json_parse(mem, line, &json, &where, err) < 0)
        return err_in(advise_damaged(err), "what was said");
    *out = (struct advise_said){0};
    if (!json_is_int(json_get(json, "turn"), &turn) || turn < 1 || turn > ADVISE_EVENTS_MAX ||
        !json_is_text(json_get(json, "by"), &by))
        return err_set(err, ERR_INTEGRITY, "what was said: a line that is no turn");
    out->turn = (uint64_t)turn;
    out->by_agent = str_is(by, "agent");
    if (json_is_text(json_get(json, "text_b64"), &encoded)) {
        char *bytes = arena_alloc(mem, encoded.n + 1);

        if (!base64_decode(encoded, bytes, &out->text.n))
            return err_set(err, ERR_INTEGRITY, "what was said: a line that is no turn");
        out->text.p = bytes;
    } else if (!json_is_text(json_get(json, "text"), &out->text)) {
        return err_set(err, ERR_INTEGRITY, "what was said: a line without text");
    }
    return 0;
}

static int index_said(struct said *said, struct err *err)
{
    struct str line;
    long at = 0;
    int got;

    while ((got = lines_next(&said->lines, &line, err)) > 0) {
        AUTO_ARENA struct arena mem = ARENA(SAID_MEMORY_MAX);
        struct advise_said one;

        if (read_said(&mem, line, &one, err) < 0)
            return -1;
        said->at[one.by_agent][one.turn] = at + 1;
        at += (long)line.n + 1;
    }
    return got;
}

static int said_open(const struct advise *advise, struct said **out, struct err *err)
{
    AUTO(said) struct said *said = xcalloc(1, sizeof *said);

    if (lines_open(&said->lines, advise, "turns.jsonl", SAID_LINE_MAX, err) < 0 ||
        index_said(said, err) < 0)
        return err_in(err, "session %s", advise->id);
    *out = TAKE(said);
    return 0;
}

/* Fills text and state of *told, whose event is a prompt or a turn. */
static int find_said(struct said *said, struct arena *mem, struct advise_told *told,
                     struct err *err)
{
    bool by_agent = told->kind == ADVISE_TOLD_TURN;
    int64_t turn = 0, bytes = 0;
    struct advise_said one;
    struct str line, wanted = {0};
    char hash[HASH_TEXT_BYTES];

    (void)json_is_int(json_get(told->event, "turn"), &turn);
    (void)json_is_int(json_get(told->event, "bytes"), &bytes);
    (void)json_is_text(json_get(told->event, "text_sha256"), &wanted);
    told->turn = (uint64_t)turn;
    if (turn < 1 || turn > ADVISE_EVENTS_MAX || !said->at[by_agent][turn])
        return 0;
    if (fseek(said->lines.file, said->at[by_agent][turn] - 1, SEEK_SET) < 0)
        return err_os(err, "reading a session");
    if (lines_next(&said->lines, &line, err) <= 0 || read_said(mem, line, &one, err) < 0 ||
        one.by_agent != by_agent || one.turn != (uint64_t)turn)
        return err_set(err, ERR_INTEGRITY, "what was said changed while it was read");
    told->text = one.text;
    told->is_whole = bytes <= (int64_t)SAID_MAX;
    told->is_stored = true;
    hash_text_of(one.text, hash);
    return !told->is_whole || str_is(wanted, hash)
               ? 0
               : err_set(err, ERR_INTEGRITY, "what %s said in turn %lld was changed",
                         by_agent ? "the agent" : "the user", (long long)turn);
}

/* ---- told ---- */

static enum advise_told_kind kind_of(const struct json *event)
{
    static const struct {
        const char *name;
        enum advise_told_kind kind;
    } kinds[] = {
        {"prompt",  ADVISE_TOLD_PROMPT },
        {"turn",    ADVISE_TOLD_TURN   },
        {"finding", ADVISE_TOLD_FINDING},
        {"action",  ADVISE_TOLD_ACTION }
    };
    struct str kind = {0};

    (void)json_is_text(json_get(event, "kind"), &kind);
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (str_is(kind, kinds[i].name))
            return kinds[i].kind;
    return ADVISE_TOLD_OTHER;
}

static int tell_line(struct advise *again, struct said *said, struct str line, advise_hears *visit,
                     void *context, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(SAID_MEMORY_MAX);
    struct advise_told told = {0};

    if (chain_line(again, &mem, line, &told.event, err) < 0)
        return -1;
    told.seq = again->tally.events;
    told.kind = kind_of(told.event);
    if ((told.kind == ADVISE_TOLD_PROMPT || told.kind == ADVISE_TOLD_TURN) &&
        find_said(said, &mem, &told, err) < 0)
        return err_in(err, "session %s", again->id);
    return visit(context, &told, err);
}

int advise_tell(const struct advise *advise, advise_hears *visit, void *context, struct err *err)
{
    AUTO(said) struct said *said = NULL;
    AUTO_LINES struct lines lines = {0};
    struct advise again = *advise; /* only its tally is its own */
    struct str line;

    tally_begin(&again.tally);
    if (said_open(advise, &said, err) < 0 ||
        lines_open(&lines, advise, "events.jsonl", EVENT_LINE_MAX, err) < 0)
        return -1;
    /* As far as it was read before: somebody may be adding. */
    while (again.tally.events < advise->tally.events) {
        int got = lines_next(&lines, &line, err);

        if (got == 0)
            return err_set(err, ERR_INTEGRITY, "telemetry of session %s: what was there is gone",
                           advise->id);
        if (got < 0 || tell_line(&again, said, line, visit, context, err) < 0)
            return -1;
    }
    return strcmp(again.tally.head, advise->tally.head) == 0
               ? 0
               : err_set(err, ERR_INTEGRITY, "telemetry of session %s changed while it was read",
                         advise->id);
}
