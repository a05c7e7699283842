/* SPDX-License-Identifier: Apache-2.0 */

/* brig policy ceiling: the layer above every policy of the machine. */

#include "surface/cli/sandbox.h"

#include <fcntl.h>
#include <string.h>

#include "flow/decide/decide.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"
#include "model/run.h"
#include "surface/view/view.h"

static int show_ceiling(struct invocation *inv)
{
    AUTO(policy) struct policy *ceiling = NULL;
    const char *state_dir = NULL, *text = NULL;
    struct json *answer;
    bool exists = false;
    struct mark where;
    struct err err;

    if (cli_state_find(inv, &state_dir, &exists, &err) < 0 ||
        (exists && govern_ceiling_text(state_dir, &inv->mem, &text, &err) < 0) ||
        (text && ceiling_parse(str_of(text), &ceiling, &where, &err) < 0))
        return cli_error(inv, &err);
    if (inv->json) {
        answer = json_object(&inv->mem);
        json_put_bool(&inv->mem, answer, "standing", text != NULL);
        if (text) {
            json_put_text(&inv->mem, answer, "policy_hash", policy_hash(ceiling));
            json_put_int(&inv->mem, answer, "rules", (int64_t)policy_rule_count(ceiling));
            json_put_bytes(&inv->mem, answer, "text", str_of(text));
        }
        return cli_json(inv, answer);
    }
    if (text)
        (void)fputs(text, inv->out);
    else
        (void)fprintf(inv->err, "%s: there is no ceiling\n", inv->program);
    return 0;
}

/* By a governor of no rules: nothing of it is decided. */
static int change_ceiling(struct invocation *inv, const char *text)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {.by_no_rules = true};
    struct run run;
    struct err err;
    int status = 0;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    if (govern_ceiling_set(call.govern, &call.request, text, &run, &err) < 0)
        status = cli_error(inv, &err);
    else if (inv->json)
        status = cli_json(inv, view_policy_change(&inv->mem, &run));
    else if (text)
        (void)fprintf(inv->out, "this ceiling holds from now on: %s; receipt %s\n",
                      run.outcome.policy.hash, run.closing.id);
    else
        (void)fprintf(inv->out, "there is no ceiling from now on; receipt %s\n", run.closing.id);
    run_done(&run);
    return status;
}

static int set_ceiling(struct invocation *inv, const char *path)
{
    AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);
    AUTO(policy) struct policy *ceiling = NULL;
    struct mark where = {0, 0};
    struct err err;

    if (file_read(AT_FDCWD, path, &text, &err) < 0)
        return cli_error(inv, &err);
    if (ceiling_parse(buf_str(&text), &ceiling, &where, &err) == 0)
        return change_ceiling(inv, buf_text(&text));
    (void)err_in(&err, "%s", path);
    cli_show_place(inv, where, buf_str(&text));
    return cli_error(inv, &err);
}

int run_policy_ceiling(struct invocation *inv)
{
    const char *verb = inv->operands.n ? inv->operands.v[0] : "show";
    const char *file = inv->operands.n > 1 ? inv->operands.v[1] : NULL;
    struct err err;

    inv->subject = NULL;
    if (strcmp(verb, "show") == 0 && !file)
        return show_ceiling(inv);
    if (strcmp(verb, "set") == 0 && file)
        return set_ceiling(inv, file);
    if (strcmp(verb, "remove") == 0 && !file)
        return change_ceiling(inv, NULL);
    (void)err_set(&err, ERR_INVALID, "write \"show\", \"set\" and a file, or \"remove\"");
    return cli_error(inv, &err);
}
