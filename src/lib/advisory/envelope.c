/* SPDX-License-Identifier: Apache-2.0 */

/* One turn of an agent: the envelope, read strictly, and every text in it.
 *
 * The walk that checks a text also makes the one that may be kept and shown, so that nothing is in
 * the second that the first has not seen. What is no envelope is checked as plain prose: its events
 * count all the same. */

#include "lib/advisory/advisory-private.h"

#include "lib/base/attrs.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SENTENCE_MIN 50 /* characters; a shorter one needs no label */
#define COVERAGE_MIN 95 /* percent */
#define NORMALIZED_MAX (32 * MIB)

struct claim {
    struct hash hash; /* of its text, made plain */
    const struct json *node;
};

struct envelope {
    struct checking *checking;
    const uint32_t *lines; /* where each begins */
    size_t line_n;
    struct claim *claims;
    size_t claim_n;
    size_t sentences, labelled;
    uint64_t characters, unlabelled;
};

/* ---- where things stand ---- */

static void find_lines(struct envelope *e)
{
    struct str text = e->checking->value;
    size_t n = 1;
    uint32_t *lines;

    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    lines = arena_array(e->checking->mem, uint32_t, n);
    n = 1;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '\n')
            lines[n++] = (uint32_t)(i + 1);
    e->lines = lines;
    e->line_n = n;
}

static size_t offset_of(const struct envelope *e, struct mark mark)
{
    size_t at;

    if (mark.line == 0 || mark.line > e->line_n)
        return 0;
    at = e->lines[mark.line - 1] + (mark.column ? mark.column - 1 : 0);
    return at < e->checking->value.n ? at : e->checking->value.n;
}

/* Bytes an escape at raw[i] takes, and how many it stands for. */
static size_t escape_length(struct str raw, size_t i, size_t *decoded)
{
    char digits[5] = {0};
    unsigned long unit;

    *decoded = 1;
    if (i + 1 >= raw.n || raw.p[i + 1] != 'u' || i + 6 > raw.n)
        return 2;
    memcpy(digits, raw.p + i + 2, 4);
    unit = strtoul(digits, NULL, 16);
    *decoded = unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3;
    if (unit < 0xd800 || unit >= 0xe000)
        return 6;
    *decoded = 4; /* a pair: the reader lets no single one in */
    return 12;
}

/* For every byte of a string where it stands in the value. */
static const uint32_t *map_text(struct envelope *e, struct str text, struct mark mark)
{
    struct str raw = e->checking->value;
    uint32_t *at = arena_array(e->checking->mem, uint32_t, text.n + 1);
    size_t from = offset_of(e, mark) + 1, i = 0;

    while (i < text.n && from < raw.n) {
        size_t decoded = 1, length = raw.p[from] == '\\' ? escape_length(raw, from, &decoded) : 1;

        for (; decoded && i < text.n; decoded--)
            at[i++] = (uint32_t)from;
        from += length;
    }
    while (i <= text.n)
        at[i++] = (uint32_t)(from < raw.n ? from : raw.n);
    return at;
}

static int fault(struct envelope *e, const char *rule, const char *what, struct mark mark)
{
    advisory_note_fault(e->checking, rule, what, offset_of(e, mark));
    return -1;
}

/* ---- claims ---- */

/* Of a claim only its words count: not their letters' size, nor how much white space is between
 * them. */
static void hash_claim(struct str text, struct hash *out)
{
    AUTO_ARENA struct arena scratch = ARENA(ADVISORY_MEMORY_MAX);
    struct copy copy = {0};
    struct str rest;
    size_t n = 0;
    char *plain;

    fold_copy(&scratch, text, FOLD_ANSI | FOLD_INVISIBLE | FOLD_QUOTES, &copy);
    (void)sentence_label(copy_str(&copy), &rest);
    plain = copy.p + (rest.p - copy.p);
    for (size_t i = 0; i < rest.n; i++) {
        bool is_blank = rest.p[i] && strchr(" \t\r\n", rest.p[i]);

        if (!is_blank)
            plain[n++] = small_letter(rest.p[i]);
        else if (n && plain[n - 1] != ' ')
            plain[n++] = ' ';
    }
    while (n && strchr(".!? ", plain[n - 1]) && plain[n - 1])
        n--;
    hash_of((struct str){plain, n}, out);
}

/* Nothing, or a label of nothing. */
static bool is_blank_claim(struct str text)
{
    struct str rest;

    (void)sentence_label(text, &rest);
    return is_blank_text(text) || is_blank_text(rest);
}

static int claim_order(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;

    return memcmp(x->hash.b, y->hash.b, HASH_BYTES);
}

static bool is_claim(const struct envelope *e, struct str sentence)
{
    struct claim wanted = {.node = NULL};

    hash_claim(sentence, &wanted.hash);
    return e->claim_n && bsearch(&wanted, e->claims, e->claim_n, sizeof wanted, claim_order);
}

static int read_source(struct envelope *e, const struct json *member)
{
    struct str text;

    if (!json_is_text(member, &text))
        return fault(e, "envelope.kind", "a claim's source is a text", member->mark);
    return 0;
}

/* A number from 0 to 1, as JSON writes it. */
static int read_confidence(struct envelope *e, const struct json *member)
{
    double value = -1;

    if (member->kind == JSON_NUMBER)
        value = strtod(arena_text(e->checking->mem, member->text), NULL);
    if (!(value >= 0 && value <= 1))
        return fault(e, "envelope.kind", "a claim's confidence is a number from 0 to 1",
                     member->mark);
    return 0;
}

/* A text, or {text, source?, confidence?}. */
static int read_claim(struct envelope *e, const struct json *item, const struct json **text)
{
    *text = item->kind == JSON_OBJECT ? json_get(item, "text") : item;
    if (!*text || (*text)->kind != JSON_STRING)
        return fault(e, "envelope.kind", "a claim is a text, or an object with a text", item->mark);
    if (is_blank_claim((*text)->text) || (*text)->text.n > ADVISORY_CLAIM_MAX)
        return fault(e, "envelope.claim", "a claim says something, in at most 16384 bytes",
                     item->mark);
    if (item->kind != JSON_OBJECT)
        return 0;
    json_each(member, item)
    {
        if (str_is(member->key, "text"))
            continue;
        if (str_is(member->key, "source") ? read_source(e, member)
            : str_is(member->key, "confidence")
                ? read_confidence(e, member)
                : fault(e, "envelope.unknown_key", "a claim has text, source and confidence",
                        member->key_mark))
            return -1;
    }
    return 0;
}

static int read_list(struct envelope *e, const struct json *list)
{
    const struct json *text;

    if (list->kind != JSON_ARRAY)
        return fault(e, "envelope.kind", "facts, hypotheses and assumptions are lists", list->mark);
    json_each(item, list)
    {
        if (e->claim_n == ADVISORY_CLAIMS_MAX)
            return fault(e, "envelope.claim", "there are more than 4096 claims", item->mark);
        if (read_claim(e, item, &text) < 0)
            return -1;
        hash_claim(text->text, &e->claims[e->claim_n].hash);
        e->claims[e->claim_n++].node = text;
    }
    return 0;
}

/* One claim is one thing: known, supposed or assumed. */
static int check_duplicates(struct envelope *e)
{
    struct passage all = {.text = e->checking->value};

    qsort(e->claims, e->claim_n, sizeof *e->claims, claim_order);
    for (size_t i = 1; i < e->claim_n; i++)
        if (claim_order(&e->claims[i - 1], &e->claims[i]) == 0) {
            const struct json *node = e->claims[i].node;
            size_t at = offset_of(e, node->mark);

            advisory_note_plain(e->checking, &all, ADVISORY_IS_EPISTEMIC, ADVISORY_REJECT,
                                "duplicate_claim", at, at + 1);
            return fault(e, "envelope.duplicate_claim", "a claim stands in one list, once",
                         node->mark);
        }
    return 0;
}

/* ---- the four members ---- */

/* Exactly these members, all of them. */
static int check_keys(struct envelope *e, const struct json *object, const char *const *keys,
                      size_t n, const char *what)
{
    if (object->kind != JSON_OBJECT)
        return fault(e, "envelope.kind", what, object->mark);
    json_each(member, object)
    {
        bool known = false;

        for (size_t i = 0; i < n; i++)
            known |= str_is(member->key, keys[i]);
        if (!known)
            return fault(
                e,
                str_is(member->key, "governance") ? "envelope.governance" : "envelope.unknown_key",
                str_is(member->key, "governance") ? "governance is added by the runtime" : what,
                member->key_mark);
    }
    return object->n == n ? 0 : fault(e, "envelope.missing_key", what, object->mark);
}

static int read_epistemic(struct envelope *e, const struct json *object)
{
    static const char *const keys[] = {"facts", "hypotheses", "assumptions"};

    if (check_keys(e, object, keys, COUNT(keys),
                   "epistemic has facts, hypotheses and assumptions, and nothing else") < 0)
        return -1;
    json_each(list, object)
    {
        if (read_list(e, list) < 0)
            return -1;
    }
    return check_duplicates(e);
}

static int read_sandbox(struct envelope *e, const struct json *object)
{
    static const char *const keys[] = {"actions_permitted", "reason"};
    const struct json *permitted = json_get(object, "actions_permitted");
    const struct json *reason = json_get(object, "reason");
    bool value = true;

    if (check_keys(e, object, keys, COUNT(keys),
                   "sandbox has actions_permitted and reason, and nothing else") < 0)
        return -1;
    if (!json_is_bool(permitted, &value) || value)
        return fault(e, "envelope.actions_permitted", "actions_permitted is false, always",
                     permitted->mark);
    if (reason->kind != JSON_STRING || reason->text.n == 0)
        return fault(e, "envelope.kind", "reason is a text", reason->mark);
    return 0;
}

static int read_envelope(struct envelope *e, const struct json *root)
{
    static const char *const keys[] = {"epistemic", "advisory", "sandbox", "client_view"};
    const struct json *advisory = json_get(root, "advisory"), *view = json_get(root, "client_view");

    if (check_keys(e, root, keys, COUNT(keys),
                   "an envelope has epistemic, advisory, sandbox and client_view, and nothing "
                   "else") < 0 ||
        read_epistemic(e, json_get(root, "epistemic")) < 0 ||
        read_sandbox(e, json_get(root, "sandbox")) < 0)
        return -1;
    if (advisory->kind != JSON_OBJECT)
        return fault(e, "envelope.kind", "advisory is an object", advisory->mark);
    if (view->kind != JSON_STRING || is_blank_text(view->text))
        return fault(e, "envelope.client_view", "client_view is a text that says something",
                     view->mark);
    return 0;
}

/* ---- its texts ---- */

static size_t characters(struct str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += (s.p[i] & 0xc0) != 0x80;
    return n;
}

static void note_label(struct envelope *e, const struct passage *passage, struct str sentence,
                       const char *rule)
{
    size_t at = (size_t)(sentence.p - passage->text.p);

    advisory_note_plain(e->checking, passage, ADVISORY_IS_STRUCTURE, ADVISORY_ADVISE, rule, at,
                        at + sentence.n);
}

/* How much of a text says what kind of claim it is. */
static void count_labels(struct envelope *e, const struct passage *passage)
{
    struct str sentence, rest;
    size_t from = 0;

    while (sentence_next(passage->text, &from, &sentence)) {
        enum label label = sentence_label(sentence, &rest);
        size_t n = characters(sentence);

        if (label == LABEL_NESTED)
            note_label(e, passage, sentence, "label_nested");
        if (label == LABEL_UNKNOWN)
            note_label(e, passage, sentence, "label_unknown");
        e->characters += n;
        if (n <= SENTENCE_MIN)
            continue;
        e->sentences++;
        if (label == LABEL_ONE || is_claim(e, sentence))
            e->labelled++;
        else
            e->unlabelled += n;
    }
}

/* However its letters are written. */
static bool is_key(struct str key, const char *name)
{
    return key.n == strlen(name) && strncasecmp(key.p, name, key.n) == 0;
}

static bool is_command_key(struct str key)
{
    static const char *const keys[] = {"command",       "commands",       "cmd",
                                       "cmds",          "command_line",   "shell",
                                       "shell_command", "shell_commands", "exec",
                                       "execute",       "bash",           "script",
                                       "argv",          "tool_call",      "tool_calls",
                                       "function_call", "function_calls", "tool",
                                       "tool_name",     "tool_use",       "run"};

    for (size_t i = 0; i < COUNT(keys); i++)
        if (is_key(key, keys[i]))
            return true;
    return false;
}

struct walk {
    struct envelope *e;
    bool is_claim; /* a claim: labelled by the list it is in */
    bool is_shell; /* below a member for commands */
};

/* One text: what it says, and how it may be said. */
static struct str check_text(struct walk walk, struct str text, struct mark mark,
                             const struct place *place)
{
    struct checking *checking = walk.e->checking;
    struct passage passage = {text, map_text(walk.e, text, mark), place};
    struct command_hit hit = {0};
    struct str safe = text;

    check_prose(checking, &passage);
    check_mentions(checking, &passage, &safe);
    if (!walk.is_claim)
        count_labels(walk.e, &passage);
    if (!walk.is_shell)
        return safe;
    if (checking->spans++ >= ADVISORY_SPANS_MAX) {
        advisory_note_plain(checking, &passage, ADVISORY_IS_STRUCTURE, ADVISORY_ADVISE,
                            "code_spans", 0, text.n);
        return STR_LIT("");
    }
    advisory_command_read(text, checking->options->strict_seed ? COMMAND_STRICT_SEED : 0, &hit);
    if (!hit.rule)
        return safe;
    advisory_note_plain(checking, &passage, ADVISORY_IS_UNSAFE_COMMAND, ADVISORY_ADVISE, hit.rule,
                        hit.start, hit.end);
    return str_of(arena_printf(checking->mem, "%s %s", advisory_custodial_text, hit.about));
}

static void append(struct json *container, struct json *value)
{
    if (container->last)
        container->last->next = value;
    else
        container->first = value;
    container->last = value;
    container->n++;
}

static struct json *convert(struct walk walk, const struct json *value, const struct place *place,
                            unsigned depth);

static bool is_false(const struct json *value)
{
    return value->kind == JSON_BOOL && !value->boolean;
}

/* {"HUMAN_CONFIRMED": true}, and anything else it may stand for; {"actions_permitted": true}. */
static void note_confirmation(struct walk walk, const struct json *member,
                              const struct place *place)
{
    struct passage passage = {member->key, NULL, place};
    const char *rule = is_key(member->key, "HUMAN_CONFIRMED")     ? "forged_confirmation"
                       : is_key(member->key, "actions_permitted") ? "actions_permitted"
                                                                  : NULL;

    if (!rule || is_false(member))
        return;
    passage.at = map_text(walk.e, member->key, member->key_mark);
    advisory_note_plain(walk.e->checking, &passage, ADVISORY_IS_PERMISSION, ADVISORY_ADVISE, rule,
                        0, member->key.n);
}

/* The name of a member is a text like any other. */
static void convert_member(struct walk walk, const struct json *member, struct json *out,
                           const struct place *outer, unsigned depth)
{
    struct place place = {outer, member->key, 0};
    struct json *made;

    if (is_command_key(member->key)) {
        struct passage passage = {member->key, map_text(walk.e, member->key, member->key_mark),
                                  &place};

        walk.is_shell = true;
        advisory_note_plain(walk.e->checking, &passage, ADVISORY_IS_SHELL_EXECUTION,
                            ADVISORY_ADVISE, "tool_call", 0, member->key.n);
    }
    note_confirmation(walk, member, &place);
    made = convert(walk, member, &place, depth);
    made->key =
        check_text((struct walk){walk.e, true, false}, member->key, member->key_mark, &place);
    if (!str_eq(made->key, member->key)) /* what replaced two names is still two */
        made->key = str_of(
            arena_printf(walk.e->checking->mem, STR_FMT " (%zu)", STR_ARG(made->key), out->n + 1));
    append(out, made);
}

static struct json *convert(struct walk walk, const struct json *value, const struct place *place,
                            unsigned depth)
{
    struct arena *mem = walk.e->checking->mem;
    struct json *out = arena_new(mem, struct json);
    size_t index = 0;

    *out = (struct json){.kind = value->kind, .boolean = value->boolean, .text = value->text};
    if (value->kind == JSON_STRING)
        out->text = check_text(walk, value->text, value->mark, place);
    if (depth == ADVISORY_DEPTH_MAX && value->first) {
        (void)fault(walk.e, "envelope.depth", "an envelope is not that deep", value->mark);
        return out;
    }
    json_each(item, value)
    {
        struct place inner = {
            place, {NULL, 0},
             index++
        };

        if (value->kind == JSON_OBJECT)
            convert_member(walk, item, out, place, depth + 1);
        else
            append(out, convert(walk, item, &inner, depth + 1));
    }
    return out;
}

/* ---- the whole ---- */

static void check_labels(struct envelope *e, const struct json *root)
{
    struct advisory_result *out = e->checking->out;
    struct passage all = {.text = e->checking->value};
    size_t at = offset_of(e, json_get(root, "client_view")->mark);
    struct found found = {
        ADVISORY_IS_EPISTEMIC, ADVISORY_ADVISE, DRIFT_STRUCTURAL, "label_coverage", at, at + 1};

    if (e->sentences)
        out->compliance = (unsigned)(e->labelled * 100 / e->sentences);
    if (e->characters)
        out->drift_thousands = (unsigned)(e->unlabelled * 1000 / e->characters);
    if (out->compliance < COVERAGE_MIN)
        advisory_note(e->checking, &all, &found);
    found.rule = "no_claims";
    if (e->claim_n == 0 && json_get(root, "advisory")->n)
        advisory_note(e->checking, &all, &found);
}

static void check_texts(struct envelope *e, const struct json *root)
{
    AUTO_BUF struct buf text = BUF(NORMALIZED_MAX);
    struct advisory_result *out = e->checking->out;
    struct json *safe = json_object(e->checking->mem);
    struct err err;

    json_each(member, root)
    {
        struct place place = {NULL, member->key, 0};
        struct walk walk = {
            e, !str_is(member->key, "advisory") && !str_is(member->key, "client_view"), false};
        struct json *made = convert(walk, member, &place, 1);

        made->key = member->key;
        append(safe, made);
    }
    check_labels(e, root);
    out->envelope = root;
    out->client_view = json_get(safe, "client_view")->text;
    if (json_canonical(safe, &text, &err) == 0)
        out->normalized = arena_str(e->checking->mem, buf_str(&text));
}

static void say(struct checking *checking)
{
    struct advisory_result *out = checking->out;

    if (!out->is_valid)
        out->advisory_text =
            str_of(arena_printf(checking->mem, "The output is no envelope: line %u, column %u: %s.",
                                out->where.line, out->where.column, out->fault));
    else if (out->counts[ADVISORY_IS_UNSAFE_COMMAND])
        out->advisory_text = str_of(advisory_custodial_text);
    else if (out->counts[ADVISORY_IS_PATH_VIOLATION])
        out->advisory_text = str_of(advisory_path_text);
}

/* No envelope, and it says that it may act: written so that only a reader of JSON sees it. */
static void check_permitted(struct envelope *e, const struct json *root)
{
    const struct json *permitted =
        root ? json_get(json_get(root, "sandbox"), "actions_permitted") : NULL;
    struct passage all = {.text = e->checking->value};
    bool value = false;
    size_t at;

    if (!permitted || !json_is_bool(permitted, &value) || !value ||
        e->checking->out->counts[ADVISORY_IS_PERMISSION])
        return;
    at = offset_of(e, permitted->mark);
    advisory_note_plain(e->checking, &all, ADVISORY_IS_PERMISSION, ADVISORY_REJECT,
                        "actions_permitted", at, at + strlen("true"));
}

void check_output(struct checking *checking)
{
    struct envelope e = {.checking = checking};
    struct passage all = {.text = checking->value};
    const struct json *root = NULL;
    struct mark where = {1, 1};
    struct str safe;
    struct err err;
    bool good;

    find_lines(&e);
    e.claims = arena_array(checking->mem, struct claim, ADVISORY_CLAIMS_MAX);
    good = json_parse(checking->mem, checking->value, &root, &where, &err) == 0;
    if (!good)
        (void)fault(&e, "envelope.json", arena_text(checking->mem, str_of(err.text)), where);
    good = good && read_envelope(&e, root) == 0;
    if (good) {
        check_texts(&e, root);
        /* Too deep, as it turned out: it counts as none. */
        if (!checking->out->is_valid)
            checking->out->envelope = NULL;
    } else {
        check_prose(checking, &all);
        check_mentions(checking, &all, &safe);
        check_permitted(&e, root);
    }
    say(checking);
}
