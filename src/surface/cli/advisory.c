/* SPDX-License-Identifier: Apache-2.0 */

/* brig advisory check: one value, or one a line, classified. */

#include "surface/cli/commands.h"

#include "lib/advisory/advisory.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "lib/json/json.h"
#include "surface/view/view.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- one ---- */

static int read_options(struct invocation *inv, enum advisory_kind *kind,
                        struct advisory_options *out, struct err *err)
{
    const char *word = option_text(inv, "--kind"), *access = option_text(inv, "--access");
    const char *cwd = option_text(inv, "--cwd"), *profile = option_text(inv, "--profile");

    if (!word || !advisory_kind_read(str_of(word), kind))
        return err_set(err, ERR_INVALID, "give --kind command, path, output or action");
    if (access && !advisory_access_read(str_of(access), &out->access))
        return err_set(err, ERR_INVALID, "\"%s\" is nothing that is done with a path", access);
    out->cwd = str_of(cwd ? cwd : "");
    out->strict_seed = profile && strcmp(profile, "strict-seed") == 0;
    return 0;
}

static int read_value(struct invocation *inv, struct buf *text, struct str *out, struct err *err)
{
    if (inv->operands.n != 1)
        return err_set(err, ERR_INVALID, "missing value: %s advisory check --kind KIND -- VALUE",
                       inv->program);
    *out = str_of(inv->operands.v[0]);
    if (!str_is(*out, "-"))
        return 0;
    if (read_all(STDIN_FILENO, text, err) < 0)
        return err_in(err, "standard input");
    *out = buf_str(text);
    return 0;
}

static int print(struct invocation *inv, const struct advisory_result *result)
{
    const char *before = " (";
    int failed;

    if (inv->json) {
        failed = cli_json(inv, view_advisory(&inv->mem, result));
        return failed ? failed : advisory_exit(result);
    }
    (void)fprintf(inv->out, "%s", advisory_verdict_name(result->verdict));
    if (result->rule[0])
        (void)fprintf(inv->out, " by %s, bytes %zu to %zu", result->rule, result->span.start,
                      result->span.end);
    for (enum advisory_category c = 0; c < ADVISORY_CATEGORY_COUNT; c++)
        if (result->counts[c]) {
            (void)fprintf(inv->out, "%s%s", before, advisory_category_name(c));
            before = ", ";
        }
    (void)fprintf(inv->out, "%s\n", *before == ',' ? ")" : "");
    if (!result->is_valid)
        (void)fprintf(inv->out, "line %u, column %u: %s\n", result->where.line,
                      result->where.column, result->fault);
    if (result->advisory_text.n && result->is_valid)
        (void)fprintf(inv->out, STR_FMT "\n", STR_ARG(result->advisory_text));
    return advisory_exit(result);
}

static int check_one(struct invocation *inv)
{
    AUTO_BUF struct buf text = BUF(ADVISORY_VALUE_MAX);
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    struct advisory_options options = {.strict_seed = false};
    enum advisory_kind kind = ADVISORY_COMMAND;
    struct advisory_result result;
    struct str value = STR_LIT("");
    struct err err;

    if (read_options(inv, &kind, &options, &err) < 0 || read_value(inv, &text, &value, &err) < 0 ||
        advisory_check(&mem, kind, value, &options, &result, &err) < 0)
        return cli_error(inv, &err);
    return print(inv, &result);
}

/* ---- many ---- */

/* What a line may hold. Unknown members are refused: one that is misspelt would be answered as if
 * it were not there. */
struct asked {
    enum advisory_kind kind;
    struct str value;
    struct advisory_options options;
    bool has_kind, has_value;
};

static int read_base64(struct arena *mem, struct str text, struct str *out, struct err *err)
{
    char *decoded = arena_alloc(mem, text.n / 4 * 3 + 1);
    size_t n = 0;

    if (!base64_decode(text, decoded, &n))
        return err_set(err, ERR_INVALID, "value_b64 must be base64 with padding");
    *out = (struct str){decoded, n};
    return 0;
}

static int read_asked_value(struct arena *mem, const struct json *member, struct asked *out,
                            struct err *err)
{
    if (out->has_value)
        return err_set(err, ERR_INVALID, "give value or value_b64, not both");
    out->has_value = true;
    out->value = member->text;
    return str_is(member->key, "value") ? 0 : read_base64(mem, member->text, &out->value, err);
}

static int read_asked(struct arena *mem, const struct json *member, struct asked *out,
                      struct err *err)
{
    if (member->kind != JSON_STRING)
        return err_set(err, ERR_INVALID, "\"" STR_FMT "\" must be a text", STR_ARG(member->key));
    if (str_is(member->key, "value") || str_is(member->key, "value_b64"))
        return read_asked_value(mem, member, out, err);
    if (str_is(member->key, "kind") && advisory_kind_read(member->text, &out->kind)) {
        out->has_kind = true;
    } else if (str_is(member->key, "cwd")) {
        out->options.cwd = member->text;
    } else if (str_is(member->key, "profile") &&
               (str_is(member->text, "default") || str_is(member->text, "strict-seed"))) {
        out->options.strict_seed = str_is(member->text, "strict-seed");
    } else if (!str_is(member->key, "access") ||
               !advisory_access_read(member->text, &out->options.access)) {
        return err_set(err, ERR_INVALID, "\"%.64s\": \"%.64s\" is nothing that is known here",
                       arena_text(mem, member->key), arena_text(mem, member->text));
    }
    return 0;
}

/* {"kind","value" or "value_b64","cwd","access","profile"} */
static int check_line(struct arena *mem, struct str line, struct advisory_result *out,
                      struct err *err)
{
    struct asked asked = {.has_kind = false};
    const struct json *root = NULL;
    struct mark where;

    if (json_parse(mem, line, &root, &where, err) < 0)
        return -1;
    if (root->kind != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "a line is {\"kind\":\"command\",\"value\":\"...\"}");
    json_each(member, root)
    {
        if (read_asked(mem, member, &asked, err) < 0)
            return -1;
    }
    if (!asked.has_kind || !asked.has_value)
        return err_set(err, ERR_INVALID, "a line is {\"kind\":\"command\",\"value\":\"...\"}");
    return advisory_check(mem, asked.kind, asked.value, &asked.options, out, err);
}

/* One line for one line, also where it could not be checked: *failed is why. */
static int answer_line(struct invocation *inv, struct str line, bool *failed, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    AUTO_BUF struct buf text = BUF(API_ANSWER_MAX);
    struct advisory_result result;
    struct err printing;

    *failed = *failed || check_line(&mem, line, &result, err) < 0;
    if (json_compact(*failed ? view_error(&mem, err, view_reason(err->code), NULL)
                             : view_advisory(&mem, &result),
                     &text, &printing) < 0) {
        *err = printing;
        return -1;
    }
    (void)fwrite(text.p, 1, text.n, inv->out); /* cli_main() looks at the stream's state */
    (void)fputc('\n', inv->out);
    return 0;
}

/* The next line of standard input; 0: there is none. One that is too long is passed over, *failed
 * then, and its end is where it ends. */
static int read_line(struct buf *line, bool *failed, struct err *err)
{
    struct err ignored;
    int c;

    buf_clear(line);
    *failed = false;
    while ((c = getc(stdin)) != EOF && c != '\n')
        if (buf_add_byte(line, (char)c, *failed ? &ignored : err) < 0)
            *failed = true;
    if (ferror(stdin))
        return err_os(err, "reading standard input");
    return c == '\n' || line->n;
}

/* Every line is answered; the first that could not be checked is the exit status. */
static int check_lines(struct invocation *inv)
{
    AUTO_BUF struct buf line = BUF(JSON_TEXT_MAX);
    unsigned n = 0, bad = 0;
    struct err err, first = {0};
    bool failed;
    int more;

    while ((more = read_line(&line, &failed, &err)) > 0) {
        n++;
        more = answer_line(inv, buf_str(&line), &failed, &err);
        if (more < 0)
            break;
        if (failed && bad++ == 0) {
            first = err;
            (void)err_in(&first, "line %u", n);
        }
    }
    if (more < 0) {
        (void)err_in(&err, "line %u", n);
        return cli_error(inv, &err);
    }
    if (bad == 0)
        return 0;
    if (bad > 1)
        (void)err_in(&first, "%u lines could not be checked, the first of them", bad);
    inv->json = false; /* standard output has one line a line and no more */
    return cli_error(inv, &first);
}

int run_advisory_check(struct invocation *inv)
{
    return option_flag(inv, "--lines") ? check_lines(inv) : check_one(inv);
}
