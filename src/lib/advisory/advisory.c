/* SPDX-License-Identifier: Apache-2.0 */

/* One check: what is asked, the words for it, and how findings become a verdict. */

#include "lib/advisory/advisory-private.h"

#include "lib/base/attrs.h"
#include "lib/base/limits.h"
#include "lib/shapes/shapes.h"

#include <string.h>

#define WHERE_MAX 256

const char advisory_custodial_text[] = "This action exceeds my custodial authority. Here is a safe "
                                       "advisory version instead\xe2\x80\xa6";
const char advisory_envelope_reason[] = "Helix aligned sandbox mode";

/* ---- words ---- */

static const char *const kinds[] = {
    [ADVISORY_COMMAND] = "command",
    [ADVISORY_PATH] = "path",
    [ADVISORY_OUTPUT] = "output",
    [ADVISORY_ACTION] = "action",
};
static const char *const accesses[] = {
    [ACCESS_READ] = "read",     [ACCESS_LIST] = "list",     [ACCESS_CREATE] = "create",
    [ACCESS_MODIFY] = "modify", [ACCESS_DELETE] = "delete", [ACCESS_EXECUTE] = "execute",
};

static const struct {
    const char *name;
    enum advisory_drift drift;
} categories[] = {
#define X(id, name, drift) {name, drift},
    ADVISORY_CATEGORIES(X)
#undef X
};

static bool find_word(struct str word, const char *const *words, size_t n, size_t *out)
{
    for (size_t i = 0; i < n; i++)
        if (str_is(word, words[i])) {
            *out = i;
            return true;
        }
    return false;
}

const char *advisory_kind_name(enum advisory_kind kind)
{
    return kinds[kind];
}

bool advisory_kind_read(struct str word, enum advisory_kind *out)
{
    size_t i;

    if (!find_word(word, kinds, COUNT(kinds), &i))
        return false;
    *out = (enum advisory_kind)i;
    return true;
}

bool advisory_access_read(struct str word, enum advisory_access *out)
{
    size_t i;

    if (!find_word(word, accesses, COUNT(accesses), &i))
        return false;
    *out = (enum advisory_access)i;
    return true;
}

const char *advisory_verdict_name(enum advisory_verdict verdict)
{
    static const char *const names[] = {
        [ADVISORY_REJECT] = "reject",
        [ADVISORY_GATE] = "gate",
        [ADVISORY_ADVISE] = "advisory",
        [ADVISORY_ALLOW] = "allow",
    };

    return names[verdict];
}

const char *advisory_category_name(enum advisory_category category)
{
    return categories[category].name;
}

enum advisory_drift advisory_category_drift(enum advisory_category category)
{
    return categories[category].drift;
}

const char *advisory_drift_code(enum advisory_drift drift)
{
    static const char *const codes[] = {
        [DRIFT_NONE] = "0",     [DRIFT_LINGUISTIC] = "L",     [DRIFT_STRUCTURAL] = "S",
        [DRIFT_SEMANTIC] = "M", [DRIFT_CONSTITUTIONAL] = "C",
    };

    return codes[drift];
}

const char *advisory_drift_severity(enum advisory_drift drift)
{
    static const char *const names[] = {
        [DRIFT_NONE] = "info",
        [DRIFT_LINGUISTIC] = "warning",
        [DRIFT_STRUCTURAL] = "warning",
        [DRIFT_SEMANTIC] = "critical",
        [DRIFT_CONSTITUTIONAL] = "emergency",
    };

    return names[drift];
}

/* ---- places ---- */

size_t mark_offset(struct str text, struct mark mark)
{
    size_t at = 0;

    for (unsigned line = 1; line < mark.line; line++) {
        const char *end = memchr(text.p + at, '\n', text.n - at);

        if (!end)
            break;
        at = (size_t)(end - text.p) + 1;
    }
    at += mark.column ? mark.column - 1 : 0;
    return at < text.n ? at : text.n;
}

struct mark offset_mark(struct str text, size_t offset)
{
    struct mark mark = {1, 1};

    for (size_t i = 0; i < offset && i < text.n; i++) {
        mark.column++;
        if (text.p[i] == '\n')
            mark = (struct mark){mark.line + 1, 1};
    }
    return mark;
}

static size_t value_place(const struct passage *passage, size_t i)
{
    return passage->at ? passage->at[i] : i;
}

/* A JSON pointer; -1 when it is longer than anybody would read. */
static int place_write(const struct place *place, struct buf *out)
{
    struct str key;
    struct err err;

    if (!place)
        return 0;
    if (place_write(place->outer, out) < 0)
        return -1;
    key = place->key;
    if (!key.p)
        return buf_addf(out, &err, "/%zu", place->index);
    if (buf_add_byte(out, '/', &err) < 0)
        return -1;
    for (size_t i = 0; i < key.n; i++) {
        const char *escaped = key.p[i] == '~' ? "~0" : key.p[i] == '/' ? "~1" : NULL;

        if ((escaped ? buf_add_text(out, escaped, &err) : buf_add_byte(out, key.p[i], &err)) < 0)
            return -1;
    }
    return 0;
}

static const char *place_text(struct arena *mem, const struct place *place)
{
    AUTO_BUF struct buf out = BUF(WHERE_MAX);
    bool is_cut = place_write(place, &out) < 0;
    struct str text = buf_str(&out);

    text.n = str_utf8_prefix(text);
    return arena_printf(mem, STR_FMT "%s", STR_ARG(text), is_cut ? "..." : "");
}

/* ---- quoting ---- */

/* The same bytes, those of secrets as stars. */
static struct str cover(struct arena *mem, struct str text)
{
    char *copy = arena_text(mem, text);
    struct shape_hit hit;

    for (size_t at = 0; shape_next(text, at, false, &hit); at = hit.at + (hit.n ? hit.n : 1))
        memset(copy + hit.at, '*', hit.n);
    for (size_t at = 0; shape_named_next(text, at, &hit); at = hit.at + hit.n)
        memset(copy + hit.at, '*', hit.n);
    return (struct str){copy, text.n};
}

/* At most so many bytes, all of them UTF-8. */
static struct str cut(struct arena *mem, struct str text)
{
    char *out = arena_alloc(mem, ADVISORY_EXCERPT_MAX + 1);
    size_t n = 0, i = 0;

    while (i < text.n) {
        size_t length = str_utf8_length((struct str){text.p + i, text.n - i});

        if (n + (length ? length : 1) > ADVISORY_EXCERPT_MAX)
            break;
        if (length)
            memcpy(out + n, text.p + i, length);
        else
            out[n] = '?';
        n += length ? length : 1;
        i += length ? length : 1;
    }
    return (struct str){out, n};
}

static struct str part(struct str text, size_t start, size_t end)
{
    end = end < text.n ? end : text.n;
    start = start < end ? start : end;
    return (struct str){text.p + start, end - start};
}

struct str advisory_excerpt(struct arena *mem, struct str text, size_t start, size_t end)
{
    return cut(mem, part(cover(mem, text), start, end));
}

static struct str quote(struct checking *checking, struct str text, size_t start, size_t end)
{
    if (!checking->covered_of || checking->covered_of != text.p || checking->covered.n != text.n) {
        checking->covered = cover(checking->mem, text);
        checking->covered_of = text.p;
    }
    return cut(checking->mem, part(checking->covered, start, end));
}

/* ---- findings ---- */

void advisory_note(struct checking *checking, const struct passage *passage,
                   const struct found *found)
{
    struct advisory_result *out = checking->out;
    struct advisory_span span = {value_place(passage, found->start),
                                 value_place(passage, found->end)};

    out->counts[found->category]++;
    if (found->verdict < out->verdict)
        out->verdict = found->verdict;
    if (out->rule[0] == '\0' || found->drift > out->drift) {
        out->rule = found->rule;
        out->span = span;
    }
    if (found->drift > out->drift)
        out->drift = found->drift;
    if (out->finding_n == ADVISORY_FINDINGS_MAX) {
        out->unlisted++;
        return;
    }
    out->findings[out->finding_n++] = (struct advisory_finding){
        .category = found->category,
        .verdict = found->verdict,
        .drift = found->drift,
        .rule = found->rule,
        .span = span,
        .excerpt = quote(checking, passage->text, found->start, found->end),
        .where = place_text(checking->mem, passage->place),
    };
}

void advisory_note_plain(struct checking *checking, const struct passage *passage,
                         enum advisory_category category, enum advisory_verdict verdict,
                         const char *rule, size_t start, size_t end)
{
    struct found found = {category, verdict, categories[category].drift, rule, start, end};

    advisory_note(checking, passage, &found);
}

void advisory_note_fault(struct checking *checking, const char *rule, const char *fault,
                         size_t offset)
{
    struct passage all = {.text = checking->value};
    struct advisory_result *out = checking->out;

    if (out->is_valid) {
        out->is_valid = false;
        out->fault = fault;
        out->offset = offset;
        out->where = offset_mark(checking->value, offset);
    }
    advisory_note_plain(checking, &all, ADVISORY_IS_STRUCTURE, ADVISORY_REJECT, rule, offset,
                        checking->value.n);
}

/* ---- the check ---- */

int advisory_check(struct arena *mem, enum advisory_kind kind, struct str value,
                   const struct advisory_options *options, struct advisory_result *out,
                   struct err *err)
{
    struct checking checking = {.mem = mem, .value = value, .options = options, .out = out};

    if (value.n > ADVISORY_VALUE_MAX)
        return err_set(err, ERR_LIMIT, "a value of more than %lu bytes is not checked",
                       ADVISORY_VALUE_MAX);
    if (!value.p)
        checking.value = (struct str){"", 0};
    *out = (struct advisory_result){
        .kind = kind,
        .verdict = ADVISORY_ALLOW,
        .rule = "",
        .normalized = STR_LIT(""),
        .advisory_text = STR_LIT(""),
        .findings = arena_array(mem, struct advisory_finding, ADVISORY_FINDINGS_MAX),
        .compliance = 100,
        .is_valid = true,
        .fault = "",
        .client_view = STR_LIT(""),
    };
    switch (kind) {
    case ADVISORY_COMMAND:
        check_command(&checking);
        break;
    case ADVISORY_PATH:
        check_path(&checking);
        break;
    case ADVISORY_OUTPUT:
        check_output(&checking);
        break;
    case ADVISORY_ACTION:
        check_action(&checking);
        break;
    }
    return 0;
}

int advisory_exit(const struct advisory_result *result)
{
    if (!result->is_valid)
        return 14;
    switch (result->verdict) {
    case ADVISORY_REJECT:
        return 11;
    case ADVISORY_GATE:
        return 12;
    case ADVISORY_ADVISE:
        return 10;
    case ADVISORY_ALLOW:
        return 0;
    }
    return 11;
}
