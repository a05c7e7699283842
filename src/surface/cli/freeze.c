/* SPDX-License-Identifier: Apache-2.0 */

/* brig freeze, brig unfreeze: the stop button. */

#include "lib/access/freeze.h"

#include "lib/json/json.h"
#include "model/run.h"
#include "surface/cli/sandbox.h"
#include "surface/view/view.h"

#include <string.h>

static int copy_option(struct invocation *inv, const char *option, char *out, size_t size,
                       struct err *err)
{
    const char *text = option_text(inv, option);

    if (text && (!*text || strlen(text) >= size))
        return err_set(err, ERR_INVALID, "%s takes 1 to %zu bytes", option, size - 1);
    if (text)
        memcpy(out, text, strlen(text) + 1);
    return 0;
}

static int read_entry(struct invocation *inv, struct frozen *out, struct err *err)
{
    *out = (struct frozen){0};
    if (copy_option(inv, "--tenant", out->tenant, sizeof out->tenant, err) < 0 ||
        copy_option(inv, "--principal", out->principal, sizeof out->principal, err) < 0)
        return -1;
    if (out->tenant[0] && !is_tenant_name(str_of(out->tenant)))
        return err_set(err, ERR_INVALID, "--tenant %s: that is not the name of a tenant",
                       out->tenant);
    return 0;
}

static const char *whom(struct arena *mem, const struct frozen *entry)
{
    if (entry->tenant[0] && entry->principal[0])
        return arena_printf(mem, "%s of tenant %s", entry->principal, entry->tenant);
    if (entry->tenant[0])
        return arena_printf(mem, "tenant %s", entry->tenant);
    return entry->principal[0] ? arena_text(mem, str_of(entry->principal)) : "everything";
}

/* ---- --status ---- */

struct listing {
    struct invocation *inv;
    struct json *list;
};

static int on_entry(void *context, const struct frozen *entry, struct err *err)
{
    struct listing *listing = context;
    struct invocation *inv = listing->inv;

    (void)err;
    if (inv->json) {
        json_push(listing->list, view_frozen(&inv->mem, entry));
        return 0;
    }
    (void)fprintf(inv->out, "%s  ", view_moment(&inv->mem, entry->since));
    print_escaped(inv->out, str_of(whom(&inv->mem, entry)));
    (void)fprintf(inv->out, ", by %s%s", entry->by, entry->reason[0] ? ": " : "");
    print_escaped(inv->out, str_of(entry->reason));
    (void)fputc('\n', inv->out);
    return 0;
}

static int print_status(struct invocation *inv)
{
    struct listing listing = {inv, json_array(&inv->mem)};
    struct json *result = json_object(&inv->mem);
    const char *state_dir = NULL;
    struct err err;

    if (cli_state(inv, &state_dir, &err) < 0 ||
        freeze_each(state_dir, on_entry, &listing, &err) < 0)
        return cli_error(inv, &err);
    json_put(result, "frozen", listing.list);
    return inv->json ? cli_json(inv, result) : 0;
}

/* ---- pressing and releasing ---- */

static int print_done(struct invocation *inv, const struct frozen *entry, const struct run *run)
{
    struct json *object;

    if (!inv->json) {
        (void)fprintf(inv->out, "%s %s; receipt %s\n",
                      run->action.kind == ACTION_FREEZE ? "frozen:" : "no longer frozen:",
                      whom(&inv->mem, entry), run->closing.id);
        return 0;
    }
    object = view_frozen(&inv->mem, entry);
    json_put_text(&inv->mem, object, "receipt_id", run->closing.id);
    return cli_json(inv, object);
}

static int change(struct invocation *inv, const struct frozen *entry, enum action_kind kind)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    const char *state_dir = NULL;
    struct run run;
    struct err err;
    int failed, status;

    if (cli_state(inv, &state_dir, &err) < 0)
        return cli_error(inv, &err);
    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    failed = kind == ACTION_FREEZE
                 ? govern_freeze(call.govern, &call.request, state_dir, entry, &run, &err)
                 : govern_unfreeze(call.govern, &call.request, state_dir, entry, &run, &err);
    status = failed ? cli_error(inv, &err) : print_done(inv, entry, &run);
    run_done(&run);
    return status;
}

int run_freeze(struct invocation *inv)
{
    struct frozen entry;
    struct err err;

    if (option_flag(inv, "--status"))
        return print_status(inv);
    if (read_entry(inv, &entry, &err) < 0 ||
        copy_option(inv, "--reason", entry.reason, sizeof entry.reason, &err) < 0)
        return cli_error(inv, &err);
    return change(inv, &entry, ACTION_FREEZE);
}

int run_unfreeze(struct invocation *inv)
{
    struct frozen entry;
    struct err err;

    if (read_entry(inv, &entry, &err) < 0)
        return cli_error(inv, &err);
    return change(inv, &entry, ACTION_UNFREEZE);
}
