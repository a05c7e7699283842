/* SPDX-License-Identifier: Apache-2.0 */

/* How results and failures leave the program. */

#include "surface/cli/commands.h"

#include <unistd.h>

#include "lib/base/limits.h"
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

/* Names given by others may hold anything; a terminal must not be steered by them. Line breaks
 * stay: some errors show the place in a file. */
static void put_message(FILE *to, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        (void)fputc((c < ' ' && c != '\n' && c != '\t') || c == 0x7f ? '?' : c, to);
    }
}

int cli_error_with(struct invocation *inv, const struct err *err, enum reason reason,
                   struct json *details)
{
    if (!inv->json) {
        (void)fflush(inv->out); /* keep the order on a terminal */
        (void)fprintf(inv->err, "%s: ", inv->program);
        put_message(inv->err, err->text);
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
