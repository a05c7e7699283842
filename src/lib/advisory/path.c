/* SPDX-License-Identifier: Apache-2.0 */

/* Paths as words: what stays within /sandbox, and what may be done there.
 *
 * A path is judged as it stands and after each of three rounds of decoding; what breaks a rule in
 * any of them is refused, and so is what has another structure when decoded, or is still not done
 * then. Nothing is ever expanded. What links and mounts make of it is path-open.c's matter. */

#include "lib/advisory/advisory-private.h"

#include "lib/base/attrs.h"
#include "lib/base/limits.h"

#include <string.h>
#include <strings.h>

#define ROUNDS_MAX 3
#define COMPONENT_MAX 255

const char advisory_path_text[] = "REJECT: Path exceeds sandbox boundary.";

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name_byte(char c)
{
    return is_alpha(c) || (c >= '0' && c <= '9') || c == '_';
}

static bool is_slash(char c)
{
    return c == '/' || c == '\\';
}

/* A rule that is broken, and the bytes that break it. */
struct breach {
    const char *rule;
    size_t start, end;
};

static bool breaks(struct breach *breach, const char *rule, size_t start, size_t end)
{
    *breach = (struct breach){rule, start, end};
    return true;
}

/* R1 */
static bool is_malformed(struct str s, struct breach *out)
{
    size_t good;

    if (s.n == 0)
        return breaks(out, "R1.empty", 0, 0);
    if (s.n > PATH_BYTES_MAX)
        return breaks(out, "R1.length", PATH_BYTES_MAX, s.n);
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
            return breaks(out, "R1.control", i, i + 1);
    good = str_utf8_prefix(s);
    return good < s.n && breaks(out, "R1.encoding", good, good + 1);
}

/* "name:" at the start, as URLs and drives have it. */
static size_t scheme_length(struct str s)
{
    size_t i = 0;

    if (s.n == 0 || !is_alpha(s.p[0]))
        return 0;
    while (i < s.n && (is_name_byte(s.p[i]) || (s.p[i] && strchr("+.-", s.p[i]))))
        i++;
    return i < s.n && s.p[i] == ':' ? i : 0;
}

static bool is_sandbox(struct str s)
{
    return str_is(s, "/sandbox") || str_starts(s, "/sandbox/");
}

/* R3. `\` stands for `/` here, so \\host and \\?\ are //. */
static bool is_elsewhere(struct str s, struct breach *out)
{
    size_t scheme = scheme_length(s);

    if (scheme)
        return breaks(out, scheme == 1 ? "R3.drive" : "R3.scheme", 0, scheme + 1);
    for (size_t i = 1; i < s.n; i++)
        if (is_slash(s.p[i]) && is_slash(s.p[i - 1]))
            return breaks(out, i == 1 ? "R3.unc" : "R3.empty_component", i - 1, i + 1);
    if (s.p[0] == '\\' || (s.p[0] == '/' && !is_sandbox(s)))
        return breaks(out, "R3.absolute", 0, s.n);
    return false;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* %NAME% and !NAME!: the length behind the first sign, or 0. "%c0%" is a byte. */
static size_t wrapped_name(struct str s, size_t at)
{
    size_t i = at + 1;

    if (i >= s.n || !(is_alpha(s.p[i]) || s.p[i] == '_'))
        return 0;
    while (i < s.n && (is_name_byte(s.p[i]) || s.p[i] == '(' || s.p[i] == ')'))
        i++;
    if (i - at == 3 && hex_digit(s.p[at + 1]) >= 0 && hex_digit(s.p[at + 2]) >= 0)
        return 0;
    return i < s.n && s.p[i] == s.p[at] ? i + 1 - at : 0;
}

/* R4 */
static bool is_expanded(struct str s, struct breach *out)
{
    for (size_t i = 0; i < s.n; i++) {
        size_t n;

        if (s.p[i] == '$' || s.p[i] == '`')
            return breaks(out, s.p[i] == '$' ? "R4.variable" : "R4.substitution", i, s.n);
        if (s.p[i] == '~' && (i == 0 || is_slash(s.p[i - 1])))
            return breaks(out, "R4.home", i, i + 1);
        n = s.p[i] == '%' || s.p[i] == '!' ? wrapped_name(s, i) : 0;
        if (n)
            return breaks(out, "R4.variable", i, i + n);
    }
    return false;
}

/* CON, NUL.txt, com1: names Windows gives to devices. */
static bool is_device(struct str name)
{
    static const char *const names[] = {"con", "prn", "aux", "nul", "conin$", "conout$"};
    const char *dot = memchr(name.p, '.', name.n);
    size_t n = dot ? (size_t)(dot - name.p) : name.n;

    for (size_t i = 0; i < COUNT(names); i++)
        if (n == strlen(names[i]) && strncasecmp(name.p, names[i], n) == 0)
            return true;
    return n == 4 && (strncasecmp(name.p, "com", 3) == 0 || strncasecmp(name.p, "lpt", 3) == 0) &&
           name.p[3] >= '0' && name.p[3] <= '9';
}

/* R2 and R5, of one component. "." is the folder itself and says nothing. */
static bool is_bad_name(struct str name, size_t at, struct breach *out)
{
    size_t end = at + name.n;

    if (str_is(name, ".") || name.n == 0)
        return false;
    if (str_is(name, ".."))
        return breaks(out, "R2.parent", at, end);
    if (name.n > COMPONENT_MAX)
        return breaks(out, "R1.component", at, end);
    if (memchr(name.p, ':', name.n))
        return breaks(out, "R5.stream", at, end);
    if (name.p[name.n - 1] == '.' || name.p[name.n - 1] == ' ')
        return breaks(out, "R5.trailing", end - 1, end);
    return is_device(name) && breaks(out, "R5.device", at, end);
}

static bool has_bad_name(struct str s, struct breach *out, size_t *names)
{
    size_t start = 0;

    *names = 0;
    for (size_t i = 0; i <= s.n; i++) {
        if (i < s.n && !is_slash(s.p[i]))
            continue;
        if (is_bad_name((struct str){s.p + start, i - start}, start, out))
            return true;
        *names += i > start;
        start = i + 1;
    }
    return false;
}

/* One form of the path. R2 first: a way up is what it is wherever it begins. */
static bool is_bad_form(struct str s, struct breach *out, size_t *names)
{
    struct breach first;

    if (is_malformed(s, out))
        return true;
    if (has_bad_name(s, out, names)) {
        if (strcmp(out->rule, "R2.parent") == 0)
            return true;
        first = *out;
        if (!is_elsewhere(s, out) && !is_expanded(s, out))
            *out = first;
        return true;
    }
    return is_elsewhere(s, out) || is_expanded(s, out);
}

/* ---- decoding ---- */

static void percent_decode(struct arena *mem, const struct copy *text, struct copy *out)
{
    out->p = arena_alloc(mem, text->n + 1);
    out->at = arena_array(mem, uint32_t, text->n + 1);
    out->n = 0;
    for (size_t i = 0; i < text->n; i++) {
        int high = text->p[i] == '%' && i + 2 < text->n ? hex_digit(text->p[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(text->p[i + 2]) : -1;

        out->at[out->n] = text->at[i];
        out->p[out->n] = text->p[i];
        if (low >= 0) {
            out->p[out->n] = (char)(high * 16 + low);
            i += 2;
        }
        out->n++;
    }
    out->at[out->n] = text->at[text->n];
}

/* One round; whether anything is another than before. `\` is read as `/` by every rule. What
 * nobody sees is noted before it is taken out. */
static bool decode_round(struct arena *mem, const struct copy *text, struct sandbox_path *unseen,
                         struct copy *out)
{
    struct copy plain = {0};
    size_t start, end;

    percent_decode(mem, text, &plain);
    if (!unseen->rule && find_unseen(copy_str(&plain), &start, &end))
        *unseen = (struct sandbox_path){
            .rule = "R1.control", .start = plain.at[start], .end = plain.at[end]};
    fold_again(mem, &plain, FOLD_INVISIBLE, out);
    return out->n != text->n || memcmp(out->p, text->p, out->n) != 0;
}

static void set_breach(struct sandbox_path *out, const struct copy *form,
                       const struct breach *breach)
{
    out->rule = breach->rule;
    out->start = form->at[breach->start];
    out->end = form->at[breach->end < form->n ? breach->end : form->n];
}

/* Every form of it; false: *out says what breaks which rule. */
static bool is_within(struct arena *mem, struct str text, struct sandbox_path *out)
{
    struct copy form = {0}, next = {0};
    struct sandbox_path unseen = {0};
    struct breach breach = {0};
    size_t names = 0, decoded_names;
    const char *backslash;

    form.p = arena_text(mem, text);
    form.n = text.n;
    form.at = arena_array(mem, uint32_t, text.n + 1);
    for (size_t i = 0; i <= text.n; i++)
        form.at[i] = (uint32_t)i;
    if (is_bad_form(copy_str(&form), &breach, &names)) {
        set_breach(out, &form, &breach);
        return false;
    }
    for (unsigned round = 0; decode_round(mem, &form, &unseen, &next); round++) {
        form = next;
        if (round == ROUNDS_MAX)
            breaks(&breach, "R1.encoding", 0, form.n);
        else if (!is_bad_form(copy_str(&form), &breach, &decoded_names)) {
            if (decoded_names == names)
                continue;
            breaks(&breach, "R1.encoding", 0, form.n);
        }
        set_breach(out, &form, &breach);
        return false;
    }
    /* Last, so that a way up with something in it is told as one. */
    if (unseen.rule) {
        *out = unseen;
        return false;
    }
    /* A backslash is part of a name here and a separator elsewhere: it has no one meaning. Its
     * place is that in the text, not in a form of it. */
    backslash = memchr(text.p, '\\', text.n);
    if (backslash)
        *out = (struct sandbox_path){
            .rule = "R3.backslash", .start = (size_t)(backslash - text.p), .end = text.n};
    return !backslash;
}

/* ---- where it is ---- */

static void append(char *path, size_t *n, struct str name)
{
    if (name.n == 0 || str_is(name, "."))
        return;
    if (*n)
        path[(*n)++] = '/';
    memcpy(path + *n, name.p, name.n);
    *n += name.n;
}

static void append_all(char *path, size_t *n, struct str s)
{
    while (s.n)
        append(path, n, str_cut(&s, '/'));
}

static struct str below_sandbox(struct str s)
{
    size_t cut = strlen("/sandbox");

    return s.n && s.p[0] == '/' ? (struct str){s.p + cut, s.n - cut} : s;
}

static enum zone zone_of(struct str path)
{
    struct str rest = path, first = str_cut(&rest, '/');

    if (path.n == 0)
        return ZONE_ROOT;
    return str_is(first, "input")    ? ZONE_INPUT
           : str_is(first, "output") ? ZONE_OUTPUT
           : str_is(first, "tmp")    ? ZONE_TMP
                                     : ZONE_NONE;
}

void sandbox_path_read(struct arena *mem, struct str text, struct str cwd, struct sandbox_path *out)
{
    struct sandbox_path base = {0};
    char *path;
    size_t n = 0;

    *out = (struct sandbox_path){0};
    if (cwd.n && !is_within(mem, cwd, &base)) {
        *out = (struct sandbox_path){.rule = "R3.cwd", .start = 0, .end = text.n};
        return;
    }
    if (!is_within(mem, text, out))
        return;
    path = arena_alloc(mem, text.n + cwd.n + 2);
    if (text.p[0] != '/')
        append_all(path, &n, below_sandbox(cwd));
    append_all(path, &n, below_sandbox(text));
    out->path = (struct str){path, n};
    out->zone = zone_of(out->path);
    if (n > PATH_BYTES_MAX - sizeof "/sandbox/")
        *out = (struct sandbox_path){.rule = "R1.length", .start = 0, .end = text.n};
}

/* R7. A zone itself is neither made nor removed. */
const char *zone_fault(enum zone zone, enum advisory_access access, bool *gated)
{
    bool is_write = access == ACCESS_CREATE || access == ACCESS_MODIFY || access == ACCESS_DELETE;

    *gated = false;
    if (access == ACCESS_EXECUTE)
        return "R7.execute";
    switch (zone) {
    case ZONE_NONE:
        return "R7.zone";
    case ZONE_ROOT:
        return access == ACCESS_LIST ? NULL : "R7.root";
    case ZONE_INPUT:
        return is_write ? "R7.input" : NULL;
    case ZONE_TMP:
        return NULL;
    case ZONE_OUTPUT:
        *gated = is_write;
        return NULL;
    }
    return "R7.zone";
}

static bool is_zone_itself(const struct sandbox_path *path)
{
    return path->zone >= ZONE_INPUT && !memchr(path->path.p, '/', path->path.n);
}

void check_path(struct checking *checking)
{
    struct advisory_result *out = checking->out;
    struct passage all = {.text = checking->value};
    struct sandbox_path path;
    const char *fault;
    bool gated;

    sandbox_path_read(checking->mem, checking->value, checking->options->cwd, &path);
    if (path.rule) {
        advisory_note_plain(checking, &all, ADVISORY_IS_PATH_VIOLATION, ADVISORY_REJECT, path.rule,
                            path.start, path.end);
        out->advisory_text = str_of(advisory_path_text);
        return;
    }
    out->normalized = str_of(arena_printf(checking->mem, "/sandbox%s" STR_FMT,
                                          path.path.n ? "/" : "", STR_ARG(path.path)));
    fault = zone_fault(path.zone, checking->options->access, &gated);
    if (!fault && checking->options->access >= ACCESS_CREATE && is_zone_itself(&path))
        fault = "R7.zone";
    if (fault) {
        advisory_note_plain(checking, &all, ADVISORY_IS_FILE_OPERATION, ADVISORY_REJECT, fault, 0,
                            checking->value.n);
        out->advisory_text = STR_LIT("REJECT: Operation is not supported on this path.");
        return;
    }
    out->verdict = gated ? ADVISORY_GATE : ADVISORY_ALLOW;
}
