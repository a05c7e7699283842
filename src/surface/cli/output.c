/* SPDX-License-Identifier: Apache-2.0 */

/* How results and failures leave the program. */

#include "surface/cli/commands.h"

#include <unistd.h>

#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "lib/json/json.h"
#include "surface/view/view.h"

#define EXIT_HELM_DENIED 1
#define EXIT_HELM_USAGE 2

int cli_status(const struct invocation *inv, enum err_code code)
{
    if (inv->as_helm && code == ERR_INVALID)
        return EXIT_HELM_USAGE;
    if (inv->as_helm && (code == ERR_FORBIDDEN || code == ERR_FROZEN))
        return EXIT_HELM_DENIED;
    return err_exit(code);
}

int cli_status_denied(const struct invocation *inv)
{
    return cli_status(inv, ERR_FORBIDDEN);
}

int cli_json(struct invocation *inv, const struct json *value)
{
    struct err err;

    /* cli_main() looks at the stream's state. */
    if (json_print(value, inv->out, &err) < 0) {
        (void)fprintf(inv->err, "%s: printing the result: %s\n", inv->program, err.text);
        return cli_status(inv, err.code);
    }
    return 0;
}

void cli_none(const struct invocation *inv, const char *what)
{
    if (!inv->json)
        (void)fprintf(inv->err, "%s: %s\n", inv->program, what);
}

/* What stands behind this line break is a line of a file, as mark_show() shows it. */
static bool begins_excerpt(struct str rest)
{
    size_t n = 1;

    while (n < rest.n && (rest.p[n] == ' ' || (rest.p[n] >= '0' && rest.p[n] <= '9')))
        n++;
    return rest.n == 1 || (n + 1 < rest.n && rest.p[n] == '|' && rest.p[n + 1] == ' ');
}

/* Bytes of the character at the beginning; 0: it must not be seen as it is. */
static size_t shown_length(struct str rest)
{
    unsigned char c = (unsigned char)rest.p[0];
    size_t n = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
    uint32_t point;

    if (c == '\n')
        return begins_excerpt(rest) ? 1 : 0;
    if (c < 0x80)
        return c == '\t' || (c >= ' ' && c != 0x7f) ? 1 : 0;
    /* One by one: a text that was cut has half a character at its end. */
    if (n > rest.n || !str_is_utf8((struct str){rest.p, n}) || text_misleads(rest, 0, &point))
        return 0;
    return n;
}

/* Names and reasons given by others may hold anything: a terminal must not be steered by them, and
 * no line of theirs may look like one of ours. */
static void put_message(FILE *to, struct str text)
{
    while (text.n) {
        size_t n = shown_length(text);

        if (n)
            (void)fwrite(text.p, 1, n, to);
        else
            (void)fputc('?', to);
        text = (struct str){text.p + (n ? n : 1), text.n - (n ? n : 1)};
    }
}

int cli_error_with(struct invocation *inv, const struct err *err, enum reason reason,
                   struct json *details)
{
    if (!inv->json) {
        (void)fflush(inv->out); /* keep the order on a terminal */
        (void)fprintf(inv->err, "%s: ", inv->program);
        put_message(inv->err, str_of(err->text));
        (void)fputc('\n', inv->err);
        return cli_status(inv, err->code);
    }
    (void)cli_json(inv, view_error(&inv->mem, err, reason, details));
    return cli_status(inv, err->code);
}

int cli_error(struct invocation *inv, const struct err *err)
{
    return cli_error_with(inv, err, view_reason(err->code), NULL);
}
