/* SPDX-License-Identifier: Apache-2.0 */

/* brig approvals: what waits for a person, and that person's word. */

#include "flow/approve/approve.h"

#include "lib/json/json.h"
#include "model/run.h"
#include "surface/cli/approvals.h"
#include "surface/cli/passphrase.h"
#include "surface/cli/remote.h"
#include "surface/cli/sandbox.h"
#include "surface/view/view.h"

#include <limits.h>
#include <string.h>

#define LIST_DEFAULT 100

static int open_store(struct invocation *inv, struct approvals **out, struct err *err)
{
    const char *state_dir = NULL;

    return cli_state(inv, &state_dir, err) < 0 ? -1 : approvals_open(state_dir, out, err);
}

/* What nobody answered in time gets its receipt. Looking goes on where that cannot be written:
 * whoever comes next does it. */
static void record_expired(struct invocation *inv, struct approvals *approvals)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {.by_no_rules = true};
    bool is_some = false;
    struct err ignored;
    int status;

    if (approvals_have_ends(approvals, &is_some, &ignored) == 0 && is_some &&
        sandbox_call_open(inv, &call, &status) == 0)
        (void)govern_record_expired(call.govern, call.request.tenant, &ignored);
}

/* ---- list ---- */

struct listing {
    struct invocation *inv;
    struct json *list;
    uint64_t last;
    size_t n;
};

static uint64_t limit_wanted(struct invocation *inv)
{
    uint64_t limit = option_number(inv, "--limit");

    return limit ? limit : LIST_DEFAULT;
}

static bool is_narrowed(const struct invocation *inv)
{
    return option_text(inv, "--state") || option_text(inv, "--requester") ||
           option_number(inv, "--after");
}

/* Where the next page begins, for people; documents have it as next_after. */
static int print_list(struct invocation *inv, const struct json *doc)
{
    const struct json *list = json_get(doc, "approvals");

    if (inv->json)
        return cli_json(inv, doc);
    for (const struct json *one = list ? list->first : NULL; one; one = one->next)
        print_approval_line(inv, one);
    if (!list || !list->n)
        cli_none(inv, is_narrowed(inv) ? "no such approvals" : "nothing waits for a person");
    if (doc_bool(doc, "more"))
        (void)fprintf(inv->err, "%s: there may be more: --after %llu\n", inv->program,
                      (unsigned long long)doc_number(doc, "next_after"));
    return 0;
}

static int on_approval(void *context, const struct approval *approval, struct err *err)
{
    struct listing *listing = context;

    (void)err;
    listing->last = approval->seq;
    json_push(listing->list, view_approval(&listing->inv->mem, approval));
    return 0;
}

static int state_wanted(struct invocation *inv)
{
    const char *text = option_text(inv, "--state");

    if (!text)
        return APPROVAL_PENDING;
    for (int state = 0; state < APPROVAL_STATE_COUNT; state++)
        if (strcmp(approval_state_name((enum approval_state)state), text) == 0)
            return state;
    return -1;
}

int run_approvals_list(struct invocation *inv)
{
    AUTO(approvals) struct approvals *approvals = NULL;
    struct listing listing = {inv, json_array(&inv->mem), option_number(inv, "--after"), 0};
    struct json *result = json_object(&inv->mem);
    struct approvals_query query = {
        .state = state_wanted(inv),
        .requester = option_text(inv, "--requester"),
        .after_seq = option_number(inv, "--after"),
        .limit = limit_wanted(inv) < UINT_MAX ? (unsigned)limit_wanted(inv) : UINT_MAX,
    };
    struct err err;
    int more;

    if (open_store(inv, &approvals, &err) < 0)
        return cli_error(inv, &err);
    record_expired(inv, approvals);
    more = approvals_each(approvals, &query, on_approval, &listing, &err);
    if (more < 0)
        return cli_error(inv, &err);
    json_put(result, "approvals", listing.list);
    json_put_bool(&inv->mem, result, "more", more > 0);
    json_put_int(&inv->mem, result, "next_after", (int64_t)listing.last);
    return print_list(inv, result);
}

/* ---- show ---- */

int run_approvals_show(struct invocation *inv)
{
    AUTO(approvals) struct approvals *approvals = NULL;
    struct approval approval;
    struct err err;

    if (open_store(inv, &approvals, &err) < 0)
        return cli_error(inv, &err);
    record_expired(inv, approvals);
    if (approvals_show(approvals, &inv->mem, inv->operands.v[0], &approval, &err) < 0)
        return cli_error(inv, &err);
    return print_approval(inv, view_approval(&inv->mem, &approval));
}

/* ---- confirm and reject ---- */

/* What stands is signed, not what somebody says it is. */
static int sign(struct invocation *inv, struct approval_word *word, struct err *err)
{
    AUTO(approvals) struct approvals *approvals = NULL;
    struct approval approval;
    struct str passphrase = {0};
    struct hash preimage;
    int failed;

    word->custodian = option_text(inv, "--as");
    if (!word->custodian)
        return 0;
    if (open_store(inv, &approvals, err) < 0 ||
        approvals_show(approvals, &inv->mem, word->id, &approval, err) < 0 ||
        passphrase_read(inv, option_text(inv, "--passphrase-file"), "Passphrase: ", &passphrase,
                        err) < 0)
        return -1;
    approval_preimage(&approval, word->confirm, &preimage);
    failed =
        custodian_sign(approvals, word->custodian, passphrase, &preimage, &word->signature, err);
    passphrase_wipe(passphrase);
    return failed;
}

static int print_word(struct invocation *inv, const struct json *doc)
{
    struct arena *mem = &inv->mem;

    if (inv->json)
        return cli_json(inv, doc);
    if (strcmp(doc_text(mem, doc, "state"), "pending") == 0)
        (void)fprintf(inv->out, "%llu of %llu have confirmed %s; receipt %s\n",
                      (unsigned long long)doc_number(doc, "confirmations"),
                      (unsigned long long)doc_number(doc, "quorum"),
                      doc_text(mem, doc, "approval_id"), doc_text(mem, doc, "receipt_id"));
    else
        (void)fprintf(inv->out, "%s %s, by %s; receipt %s\n", doc_text(mem, doc, "state"),
                      doc_text(mem, doc, "approval_id"), doc_text(mem, doc, "decided_by"),
                      doc_text(mem, doc, "receipt_id"));
    return 0;
}

static int give_word(struct invocation *inv, bool confirm)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct approval_word word = {
        .id = inv->operands.v[0], .confirm = confirm, .comment = option_text(inv, "--comment")};
    struct approval approval;
    struct json *doc;
    struct run run;
    struct err err;
    int status;

    if (sign(inv, &word, &err) < 0)
        return cli_error(inv, &err);
    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    if (govern_approve(call.govern, &call.request, &word, &run, &approval, &err) < 0) {
        status = cli_error(inv, &err);
    } else {
        doc = view_approval(&inv->mem, &approval);
        json_put_text(&inv->mem, doc, "receipt_id", run.closing.id);
        status = print_word(inv, doc);
    }
    run_done(&run);
    return status;
}

int run_approvals_confirm(struct invocation *inv)
{
    return give_word(inv, true);
}

int run_approvals_reject(struct invocation *inv)
{
    return give_word(inv, false);
}

/* ---- by a daemon ---- */

int remote_approvals_list(struct invocation *inv, struct remote *remote)
{
    const char *requester = option_text(inv, "--requester");
    int state = state_wanted(inv);
    const struct json *doc = NULL;
    struct err err;

    if (remote_ask(inv, remote, HTTP_GET,
                   arena_printf(&inv->mem, "/v1/approvals?limit=%llu&after=%llu&state=%s%s%s",
                                (unsigned long long)limit_wanted(inv),
                                (unsigned long long)option_number(inv, "--after"),
                                state < 0 ? "any" : approval_state_name((enum approval_state)state),
                                requester ? "&requester=" : "",
                                requester ? remote_escape(inv, requester) : ""),
                   NULL, &doc, &err) < 0) {
        remote->not_done |= remote->status == 400; /* more than it answers at once */
        return remote_failed(inv, remote, &err);
    }
    return print_list(inv, doc);
}

/* An id is asked for as it was written. */
static const char *approval_path(struct invocation *inv, const char *rest)
{
    const char *id = inv->operands.v[0];

    return *id && strcmp(id, ".") != 0 && strcmp(id, "..") != 0
               ? arena_printf(&inv->mem, "/v1/approvals/%s%s", remote_escape(inv, id), rest)
               : NULL;
}

int remote_approvals_show(struct invocation *inv, struct remote *remote)
{
    const char *target = approval_path(inv, "");
    const struct json *doc = NULL;
    struct err err;

    if (!target)
        return REMOTE_NOT_DONE;
    if (remote_ask(inv, remote, HTTP_GET, target, NULL, &doc, &err) < 0)
        return remote_failed(inv, remote, &err);
    return print_approval(inv, doc);
}

/* A custodian's signature is made here, with a key that is in the state directory. */
static int remote_word(struct invocation *inv, struct remote *remote, const char *rest)
{
    const char *target = approval_path(inv, rest), *comment = option_text(inv, "--comment");
    struct json *body = json_object(&inv->mem);
    const struct json *doc = NULL;
    struct err err;

    if (!target || option_text(inv, "--as") || (comment && !str_is_utf8(str_of(comment))))
        return REMOTE_NOT_DONE;
    if (comment)
        json_put_text(&inv->mem, body, "comment", comment);
    if (remote_ask(inv, remote, HTTP_POST, target, body, &doc, &err) < 0) {
        remote->not_done |= remote->status == 400;
        return remote_failed(inv, remote, &err);
    }
    return print_word(inv, doc);
}

int remote_approvals_confirm(struct invocation *inv, struct remote *remote)
{
    return remote_word(inv, remote, "/confirm");
}

int remote_approvals_reject(struct invocation *inv, struct remote *remote)
{
    return remote_word(inv, remote, "/reject");
}

/* ---- custodians ---- */

static int read_sponsor(struct invocation *inv, struct enrollment *out, struct err *err)
{
    out->by = option_text(inv, "--by");
    return out->by
               ? passphrase_read(inv, option_text(inv, "--by-passphrase-file"),
                                 "Passphrase of the custodian who says so: ", &out->by_passphrase,
                                 err)
               : 0;
}

static int read_enrollment(struct invocation *inv, struct enrollment *out, struct err *err)
{
    const char *key = option_text(inv, "--public-key");

    *out = (struct enrollment){.name = inv->operands.v[0]};
    if (read_sponsor(inv, out, err) < 0)
        return -1;
    if (key)
        return public_key_read(str_of(key), &out->key, err);
    return passphrase_choose(inv, option_text(inv, "--passphrase-file"), &out->passphrase, err);
}

static int print_custodian(struct invocation *inv, const struct custodian *custodian,
                           const struct run *run)
{
    struct json *object = view_custodian(&inv->mem, custodian);
    char id[KEY_ID_BYTES];

    if (inv->json) {
        json_put_text(&inv->mem, object, "receipt_id", run->closing.id);
        return cli_json(inv, object);
    }
    key_id(&custodian->key, id);
    (void)fprintf(inv->out, "%s is %s, key %s; receipt %s\n", custodian->name,
                  custodian->revoked_at ? "no custodian any more" : "a custodian now", id,
                  run->closing.id);
    return 0;
}

static int change_custodian(struct invocation *inv, const struct enrollment *ask)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct custodian custodian;
    struct run run;
    struct err err;
    int status;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    status = govern_enroll(call.govern, &call.request, ask, &run, &custodian, &err) < 0
                 ? cli_error(inv, &err)
                 : print_custodian(inv, &custodian, &run);
    run_done(&run);
    return status;
}

int run_approvals_enroll(struct invocation *inv)
{
    struct enrollment ask;
    struct err err;
    int status;

    status =
        read_enrollment(inv, &ask, &err) < 0 ? cli_error(inv, &err) : change_custodian(inv, &ask);
    passphrase_wipe(ask.passphrase);
    passphrase_wipe(ask.by_passphrase);
    return status;
}

int run_approvals_renew(struct invocation *inv)
{
    AUTO_SANDBOX_CALL struct sandbox_call call = {0};
    struct json *doc = json_object(&inv->mem);
    struct run run;
    struct err err;
    int status = 0;

    if (sandbox_call_open(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    if (govern_approvals_renew(call.govern, &call.request, &run, &err) < 0) {
        status = cli_error(inv, &err);
    } else if (inv->json) {
        json_put_text(&inv->mem, doc, "receipt_id", run.closing.id);
        status = cli_json(inv, doc);
    } else {
        (void)fprintf(
            inv->out,
            "nothing waits, and nobody is a custodian: \"brig approvals enroll\"; receipt "
            "%s\n",
            run.closing.id);
    }
    run_done(&run);
    return status;
}

static int on_custodian(void *context, const struct custodian *custodian, struct err *err)
{
    struct listing *listing = context;
    struct invocation *inv = listing->inv;
    char id[KEY_ID_BYTES];

    (void)err;
    listing->n++;
    key_id(&custodian->key, id);
    if (inv->json)
        json_push(listing->list, view_custodian(&inv->mem, custodian));
    else
        (void)fprintf(inv->out, "%-16s  %s  %s%s%s\n", custodian->name, id,
                      view_moment(&inv->mem, custodian->enrolled_at),
                      custodian->revoked_at ? "  removed " : "",
                      custodian->revoked_at ? view_moment(&inv->mem, custodian->revoked_at) : "");
    return 0;
}

static int remove_custodian(struct invocation *inv, const char *name)
{
    struct enrollment ask = {.name = name, .dismiss = true};
    struct err err;
    int status;

    status = read_sponsor(inv, &ask, &err) < 0 ? cli_error(inv, &err) : change_custodian(inv, &ask);
    passphrase_wipe(ask.by_passphrase);
    return status;
}

int run_approvals_custodians(struct invocation *inv)
{
    AUTO(approvals) struct approvals *approvals = NULL;
    struct listing listing = {inv, json_array(&inv->mem), 0, 0};
    struct json *result = json_object(&inv->mem);
    struct err err;

    if (option_text(inv, "--remove"))
        return remove_custodian(inv, option_text(inv, "--remove"));
    if (open_store(inv, &approvals, &err) < 0 ||
        custodian_each(approvals, on_custodian, &listing, &err) < 0)
        return cli_error(inv, &err);
    if (listing.n == 0)
        cli_none(inv, "nobody is a custodian (\"brig approvals enroll\")");
    json_put(result, "custodians", listing.list);
    return inv->json ? cli_json(inv, result) : 0;
}
