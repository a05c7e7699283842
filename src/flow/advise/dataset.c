/* SPDX-License-Identifier: Apache-2.0 */

/* A session as lines of a dataset that may leave this machine. Free text is covered: what looks
 * like a secret, and absolute paths outside /sandbox. People's names are left out, and so is every
 * hash of something that was covered or left out: it would confirm a guess. Decoded texts are
 * covered, not lines of JSON, in which a secret can be written so that nothing recognises it. */

#include "flow/advise/parts.h"

#include <string.h>

#include "lib/base/limits.h"
#include "lib/shapes/shapes.h"

#define LINE_BYTES_MAX (16 * ADVISORY_VALUE_MAX)
#define LINE_MEMORY_MAX (128UL * 1024 * 1024)
#define SECRET_COVER "[secret]"
#define PATH_COVER "[path]"

/* ---- covered ---- */

/* What a path stands behind, and what ends it, in prose, in a shell and in JSON. */
static bool is_border(char c)
{
    return (unsigned char)c <= ' ' || strchr("\"'`()[]{}<>=,;|&:", c) != NULL;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether a printer's dash or quote (U+2013 to U+201F) ends in front of i. */
static bool is_behind_quote(struct str text, size_t i)
{
    const unsigned char *p = (const unsigned char *)text.p + i;

    return i >= 3 && p[-3] == 0xe2 && p[-2] == 0x80 && p[-1] >= 0x93 && p[-1] <= 0x9f;
}

/* Bytes that say that a path of a machine begins here, or 0. */
static size_t path_head(struct str s)
{
    if (s.n > 2 && is_letter(s.p[0]) && s.p[1] == ':' && s.p[2] == '\\')
        return 3; /* C:\... */
    if (s.n > 2 && str_starts(s, "\\\\") && s.p[2] != '\\')
        return 3; /* \\host\... */
    return s.p[0] == '/' || (s.n > 1 && s.p[0] == '~' && (s.p[1] == '/' || is_letter(s.p[1])));
}

/* Bytes of a path of this machine that begins at i, or 0. */
static size_t path_at(struct str text, size_t i)
{
    struct str rest = {text.p + i, text.n - i};
    bool at_border = i == 0 || is_border(text.p[i - 1]) || is_behind_quote(text, i);
    bool is_url = i >= 7 && memcmp(text.p + i - 7, "file://", 7) == 0;
    bool is_host = i > 0 && text.p[i - 1] == ':' && str_starts(rest, "//");
    size_t n = (!at_border && !is_url) || is_host ? 0 : path_head(rest);

    if (n == 0)
        return 0;
    while (n < rest.n && !is_border(rest.p[n]))
        n++;
    rest.n = n;
    if (str_is(rest, "/sandbox") ||
        (str_starts(rest, "/sandbox/") && !memmem(rest.p, rest.n, "/..", 3)))
        return 0;
    return n > 1 ? n : 0;
}

static int add_valid(struct buf *out, struct str text, struct err *err)
{
    size_t i = 0;

    while (i < text.n) {
        size_t n = str_utf8_prefix((struct str){text.p + i, text.n - i});

        if (buf_add(out, text.p + i, n, err) < 0)
            return -1;
        i += n;
        if (i < text.n && buf_add_text(out, "\xef\xbf\xbd", err) < 0)
            return -1;
        i += i < text.n;
    }
    return 0;
}

static int cover_paths(struct buf *out, struct str text, struct err *err)
{
    size_t from = 0;

    for (size_t i = 0; i < text.n; i++) {
        size_t n = path_at(text, i);

        if (n == 0)
            continue;
        if (add_valid(out, (struct str){text.p + from, i - from}, err) < 0 ||
            buf_add_text(out, PATH_COVER, err) < 0)
            return -1;
        from = i + n;
        i = from - 1;
    }
    return add_valid(out, (struct str){text.p + from, text.n - from}, err);
}

static int cover_named(struct buf *out, struct str text, struct err *err)
{
    struct shape_hit hit;
    size_t at = 0;

    while (at < text.n && shape_named_next(text, at, &hit)) {
        if (buf_add(out, text.p + at, hit.at - at, err) < 0 ||
            buf_add_text(out, SECRET_COVER, err) < 0)
            return -1;
        at = hit.at + hit.n;
    }
    return at < text.n ? buf_add(out, text.p + at, text.n - at, err) : 0;
}

static int cover_shapes(struct buf *out, struct str text, struct err *err)
{
    struct shape_hit hit;
    size_t at = 0;

    while (at < text.n && shape_next(text, at, false, &hit)) {
        if (buf_add(out, text.p + at, hit.at - at, err) < 0 ||
            buf_add_text(out, SECRET_COVER, err) < 0)
            return -1;
        at = hit.at + (hit.n ? hit.n : 1);
    }
    return at < text.n ? buf_add(out, text.p + at, text.n - at, err) : 0;
}

/* The printable character that \u00xx stands for at i, or 0. */
static char escaped_at(struct str text, size_t i)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *high, *low;
    unsigned code;

    if (text.n - i < 6 || memcmp(text.p + i, "\\u00", 4) != 0)
        return 0;
    high = memchr(digits, text.p[i + 4], sizeof digits - 1);
    low = memchr(digits, text.p[i + 5], sizeof digits - 1);
    if (!high || !low)
        return 0;
    code = (unsigned)((high - digits) % 16 * 16 + (low - digits) % 16);
    if (code <= ' ' || code >= 0x7f)
        return 0;
    return (char)code;
}

/* What is escaped as JSON does it is written out, to be recognised. */
static struct str without_escapes(struct arena *mem, struct str text)
{
    char *out = arena_alloc(mem, text.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        char code = escaped_at(text, i);

        if (code) {
            out[n++] = code;
            i += 5;
        } else if (text.n - i >= 2 && text.p[i] == '\\' && text.p[i + 1] == '/') {
            out[n++] = text.p[++i];
        } else {
            out[n++] = text.p[i];
        }
    }
    return (struct str){out, n};
}

/* UTF-8, whatever it was. */
static int cover(struct arena *mem, struct str text, struct str *out, struct err *err)
{
    AUTO_BUF struct buf shapes = BUF(LINE_BYTES_MAX);
    AUTO_BUF struct buf safe = BUF(LINE_BYTES_MAX);
    AUTO_BUF struct buf whole = BUF(LINE_BYTES_MAX);

    if (cover_shapes(&shapes, without_escapes(mem, text), err) < 0 ||
        cover_named(&safe, buf_str(&shapes), err) < 0 ||
        cover_paths(&whole, buf_str(&safe), err) < 0)
        return err_in(err, "covering a text");
    *out = arena_str(mem, buf_str(&whole));
    return 0;
}

static int put_covered(struct arena *mem, struct json *object, const char *key, struct str text,
                       struct err *err)
{
    struct str covered;

    if (cover(mem, text, &covered, err) < 0)
        return -1;
    json_put(object, key, json_text(mem, covered));
    return 0;
}

/* Two names that are the same once they are covered stay two: behind each that has a cover in it
 * stands which member it is. */
static int cover_name(struct arena *mem, struct str name, size_t i, const char **out,
                      struct err *err)
{
    struct str covered;

    if (cover(mem, name, &covered, err) < 0)
        return -1;
    *out = memmem(covered.p, covered.n, SECRET_COVER, strlen(SECRET_COVER)) ||
                   memmem(covered.p, covered.n, PATH_COVER, strlen(PATH_COVER))
               ? arena_printf(mem, STR_FMT " (%zu)", STR_ARG(covered), i)
               : arena_text(mem, covered);
    return 0;
}

static int cover_tree(struct arena *mem, const struct json *value, struct json **out,
                      struct err *err);

static int cover_members(struct arena *mem, const struct json *value, struct json *out,
                         struct err *err)
{
    size_t i = 0;

    json_each(one, value)
    {
        struct json *inner = NULL;
        const char *name = NULL;

        if (cover_tree(mem, one, &inner, err) < 0)
            return -1;
        if (one->kind == JSON_STRING && shape_is_secret_name(one->key))
            inner = json_text(mem, STR_LIT(SECRET_COVER));
        if (value->kind == JSON_ARRAY) {
            json_push(out, inner);
            continue;
        }
        if (cover_name(mem, one->key, ++i, &name, err) < 0)
            return -1;
        json_put(out, name, inner);
    }
    return 0;
}

/* The same tree, all texts and names in it covered. As deep as the reader lets it be. */
static int cover_tree(struct arena *mem, const struct json *value, struct json **out,
                      struct err *err)
{
    struct str covered;

    switch (value->kind) {
    case JSON_STRING:
        if (cover(mem, value->text, &covered, err) < 0)
            return -1;
        *out = json_text(mem, covered);
        return 0;
    case JSON_OBJECT:
        *out = json_object(mem);
        return cover_members(mem, value, *out, err);
    case JSON_ARRAY:
        *out = json_array(mem);
        return cover_members(mem, value, *out, err);
    case JSON_NULL:
    case JSON_BOOL:
    case JSON_NUMBER:
        break;
    }
    *out = arena_new(mem, struct json);
    **out = (struct json){
        .kind = value->kind, .boolean = value->boolean, .text = arena_str(mem, value->text)};
    return 0;
}

/* ---- lines ---- */

struct exporting {
    const struct advise *advise;
    struct advise_dataset *dataset;
    struct arena mem;  /* of the turn that is collected */
    struct json *turn; /* NULL: none is */
    struct json *findings;
    struct json *actions; /* asked for since the turn before */
    uint64_t expected;

    struct arena prompt_mem;
    struct json *prompt; /* nobody has answered it; or NULL */
    uint64_t prompt_seq;
    uint64_t prompt_turn;
};

static void exporting_done(struct exporting *exporting)
{
    arena_done(&exporting->mem);
    arena_done(&exporting->prompt_mem);
}

static int put_session(const struct advise *advise, struct arena *mem, struct json *line,
                       const char *record, uint64_t seq, struct err *err)
{
    json_put_text(mem, line, "agent_version", advise->terms.agent_version);
    json_put_text(mem, line, "constitution_sha256", advise->constitution_sha256);
    json_put_text(mem, line, "record", record);
    json_put_text(mem, line, "run_id", advise->id);
    json_put_int(mem, line, "seq", (int64_t)seq);
    json_put_int(mem, line, "v", 1);
    return put_covered(mem, line, "agent_id", str_of(advise->terms.agent_id), err);
}

static int write_line(struct exporting *exporting, const struct json *line, uint64_t *count,
                      struct err *err)
{
    AUTO_BUF struct buf text = BUF(LINE_BYTES_MAX);

    if (json_compact(line, &text, err) < 0)
        return err_in(err, "a line of session %s", exporting->advise->id);
    ++*count;
    return exporting->dataset->write(exporting->dataset->context, buf_str(&text), err);
}

/* ---- events ---- */

/* Members that leave, and no others. An excerpt does not: cut off where it is, or escaped, a secret
 * in it is recognised by nobody; what was said is in the turn. */
/* clang-format off */
static const struct member {
    const char *name;
    enum { AS_IT_IS, COVERED, PLACE } how;
} members[] = {
    {"at", AS_IT_IS},         {"attempts", AS_IT_IS},        {"begun", AS_IT_IS},
    {"bytes", AS_IT_IS},      {"category", AS_IT_IS},
    {"closes", AS_IT_IS},     {"compliance", AS_IT_IS},      {"done", AS_IT_IS},
    {"drift", AS_IT_IS},      {"drift_thousands", AS_IT_IS}, {"findings", AS_IT_IS},
    {"kind", AS_IT_IS},       {"request_id", AS_IT_IS},      {"rule", AS_IT_IS},
    {"severity", AS_IT_IS},   {"span", AS_IT_IS},            {"state", AS_IT_IS},
    {"ts", AS_IT_IS},         {"turn", AS_IT_IS},            {"turns_max", AS_IT_IS},
    {"unlisted", AS_IT_IS},   {"valid", AS_IT_IS},           {"verdict", AS_IT_IS},
    {"where", PLACE},         {"why", COVERED},
};
/* clang-format on */

/* A pointer into an envelope as far as its names are ours, and not the agent's. */
static const char *place(struct arena *mem, struct str where)
{
    static const char *const ours[] = {"epistemic", "facts",  "hypotheses",        "assumptions",
                                       "text",      "source", "confidence",        "advisory",
                                       "sandbox",   "reason", "actions_permitted", "client_view"};
    const char *out = "";
    struct str rest = where;

    (void)str_cut(&rest, '/');
    while (rest.n) {
        struct str name = str_cut(&rest, '/');
        uint64_t number;
        bool known = str_u64(name, &number);

        for (size_t i = 0; i < COUNT(ours); i++)
            known = known || str_is(name, ours[i]);
        if (!known)
            return arena_printf(mem, "%s/...", out);
        out = arena_printf(mem, "%s/" STR_FMT, out, STR_ARG(name));
    }
    return out;
}

/* Words and numbers of ours. The event is gone before its turn is written. */
static struct json *copy_value(struct arena *mem, const struct json *value)
{
    struct json *copy = arena_new(mem, struct json);

    *copy = (struct json){
        .kind = value->kind, .boolean = value->boolean, .text = arena_str(mem, value->text)};
    json_each(member, value) json_put(copy, arena_text(mem, member->key), copy_value(mem, member));
    return copy;
}

static int copy_members(struct arena *mem, struct json *to, const struct json *event,
                        const char *const *names, struct err *err)
{
    for (size_t i = 0; i < COUNT(members); i++) {
        const struct json *value = json_get(event, members[i].name);
        bool wanted = value && !names;

        for (size_t k = 0; value && names && names[k]; k++)
            wanted = wanted || strcmp(names[k], members[i].name) == 0;
        if (!wanted)
            continue;
        if (members[i].how == AS_IT_IS)
            json_put(to, members[i].name, copy_value(mem, value));
        else if (members[i].how == PLACE)
            json_put_text(mem, to, members[i].name, place(mem, value->text));
        else if (put_covered(mem, to, members[i].name, value->text, err) < 0)
            return -1;
    }
    return 0;
}

static int export_event(struct exporting *exporting, const struct advise_told *told,
                        struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(1024UL * 1024);
    struct json *line = json_object(&mem);

    if (put_session(exporting->advise, &mem, line, "event", told->seq, err) < 0 ||
        copy_members(&mem, line, told->event, NULL, err) < 0)
        return -1;
    return write_line(exporting, line, &exporting->dataset->events, err);
}

/* ---- turns ---- */

static int close_turn(struct exporting *exporting, struct err *err)
{
    struct arena *mem = &exporting->mem;
    int failed;

    if (!exporting->turn)
        return 0;
    json_put(exporting->turn, "findings", exporting->findings);
    failed = write_line(exporting, exporting->turn, &exporting->dataset->turns, err);
    exporting->turn = NULL;
    arena_done(mem);
    *mem = ARENA(LINE_MEMORY_MAX);
    exporting->actions = json_array(mem);
    return failed;
}

/* Nobody answered: a turn all the same. */
static int close_prompt(struct exporting *exporting, struct err *err)
{
    struct arena *mem = &exporting->prompt_mem;
    struct json *line;

    if (!exporting->prompt)
        return 0;
    line = json_object(mem);
    json_put(line, "output", json_null(mem));
    json_put(line, "prompt", exporting->prompt);
    json_put_int(mem, line, "turn", (int64_t)exporting->prompt_turn);
    exporting->prompt = NULL;
    if (put_session(exporting->advise, mem, line, "turn", exporting->prompt_seq, err) < 0)
        return -1;
    return write_line(exporting, line, &exporting->dataset->turns, err);
}

static int open_prompt(struct exporting *exporting, const struct advise_told *told, struct err *err)
{
    struct arena *mem = &exporting->prompt_mem;
    struct str covered;

    if (close_prompt(exporting, err) < 0)
        return -1;
    arena_done(mem);
    *mem = ARENA(LINE_MEMORY_MAX);
    exporting->prompt_seq = told->seq;
    exporting->prompt_turn = told->turn;
    if (cover(mem, told->text, &covered, err) < 0)
        return -1;
    exporting->prompt = told->is_stored ? json_text(mem, covered) : json_null(mem);
    return 0;
}

/* {"envelope"} for a document, {"text"} for anything else; null when it is not stored. */
static int output_json(struct arena *mem, const struct advise_told *told, struct json **out,
                       struct err *err)
{
    struct json *output = json_object(mem);
    const struct json *parsed = NULL;
    struct json *covered = NULL;
    struct mark where;
    struct err ignored;

    *out = json_null(mem);
    if (!told->is_stored)
        return 0;
    json_put_bool(mem, output, "whole", told->is_whole);
    *out = output;
    if (json_parse(mem, told->text, &parsed, &where, &ignored) < 0 || parsed->kind != JSON_OBJECT)
        return put_covered(mem, output, "text", told->text, err);
    if (cover_tree(mem, parsed, &covered, err) < 0)
        return -1;
    json_put(output, "envelope", covered);
    return 0;
}

static int open_turn(struct exporting *exporting, const struct advise_told *told, struct err *err)
{
    static const char *const wanted[] = {"at",   "compliance", "drift", "drift_thousands", "ts",
                                         "turn", "unlisted",   "valid", "verdict",         NULL};
    struct arena *mem = &exporting->mem;
    struct json *line = json_object(mem);
    struct json *output = NULL;
    int64_t expected = ADVISORY_FINDINGS_MAX;

    if (put_session(exporting->advise, mem, line, "turn", told->seq, err) < 0 ||
        copy_members(mem, line, told->event, wanted, err) < 0 ||
        output_json(mem, told, &output, err) < 0)
        return -1;
    json_put(line, "actions", exporting->actions);
    json_put(line, "output", output);
    json_put(line, "prompt",
             exporting->prompt ? json_text(mem, exporting->prompt->text) : json_null(mem));
    exporting->prompt = NULL;
    exporting->turn = line;
    exporting->findings = json_array(mem);
    (void)json_is_int(json_get(told->event, "findings"), &expected);
    exporting->expected = (uint64_t)(expected > 0 ? expected : 0);
    return 0;
}

static int take_finding(struct exporting *exporting, const struct json *event, struct err *err)
{
    static const char *const wanted[] = {"category", "drift",   "rule",  "severity",
                                         "span",     "verdict", "where", NULL};
    struct str category = {0};
    struct json *finding;

    /* Behind those of the text stand those of the session; any others are of an action. */
    (void)json_is_text(json_get(event, "category"), &category);
    if (!exporting->turn || (exporting->expected == 0 &&
                             !str_is(category, advisory_category_name(ADVISORY_IS_QUIESCENCE))))
        return 0;
    exporting->expected -= exporting->expected > 0;
    finding = json_object(&exporting->mem);
    if (copy_members(&exporting->mem, finding, event, wanted, err) < 0)
        return -1;
    json_push(exporting->findings, finding);
    return 0;
}

/* What became of it last. */
static int take_action(struct exporting *exporting, const struct json *event, struct err *err)
{
    static const char *const wanted[] = {"done", "request_id", "state", NULL};
    struct arena *mem = &exporting->mem;
    struct json *list = json_array(mem);
    struct json *action = json_object(mem);
    struct str id = {0}, other = {0};

    if (copy_members(mem, action, event, wanted, err) < 0)
        return -1;
    (void)json_is_text(json_get(action, "request_id"), &id);
    for (struct json *one = exporting->actions->first, *next; one; one = next) {
        next = one->next;
        one->next = NULL;
        if (json_is_text(json_get(one, "request_id"), &other) && !str_eq(id, other))
            json_push(list, one);
    }
    json_push(list, action);
    exporting->actions = list;
    return 0;
}

static int on_told(void *context, const struct advise_told *told, struct err *err)
{
    struct exporting *exporting = context;

    if (told->kind != ADVISE_TOLD_FINDING && close_turn(exporting, err) < 0)
        return -1;
    if (export_event(exporting, told, err) < 0)
        return -1;
    switch (told->kind) {
    case ADVISE_TOLD_PROMPT:
        return open_prompt(exporting, told, err);
    case ADVISE_TOLD_TURN:
        return open_turn(exporting, told, err);
    case ADVISE_TOLD_FINDING:
        return take_finding(exporting, told->event, err);
    case ADVISE_TOLD_ACTION:
        return take_action(exporting, told->event, err);
    case ADVISE_TOLD_OTHER:
        break;
    }
    return 0;
}

int advise_export(const struct advise *advise, struct advise_dataset *dataset, struct err *err)
{
    __attribute__((cleanup(exporting_done))) struct exporting exporting = {
        .advise = advise,
        .dataset = dataset,
        .mem = ARENA(LINE_MEMORY_MAX),
        .prompt_mem = ARENA(LINE_MEMORY_MAX),
    };

    exporting.actions = json_array(&exporting.mem);
    if (advise_tell(advise, on_told, &exporting, err) < 0 || close_turn(&exporting, err) < 0)
        return -1;
    return close_prompt(&exporting, err);
}
