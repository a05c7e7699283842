/* SPDX-License-Identifier: Apache-2.0 */

/* brig vault: secrets, and where each may go. A value comes in and never out. */

#include "lib/vault/vault.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/json/json.h"
#include "model/run.h"
#include "surface/cli/passphrase.h"
#include "surface/cli/sandbox.h"
#include "surface/view/view.h"

struct vault_call {
    struct sandbox_call open;
    struct vault *vault;
};

static void vault_call_done(struct vault_call *call)
{
    vault_free(call->vault);
    sandbox_call_done(&call->open);
}

#define AUTO_VAULT_CALL __attribute__((cleanup(vault_call_done)))

static int open_vault(struct invocation *inv, struct vault **out, struct err *err)
{
    const char *state_dir = NULL;
    struct str passphrase = {0};
    enum vault_master kind;
    int failed;

    if (cli_state(inv, &state_dir, err) < 0 || vault_look(state_dir, &kind, err) < 0)
        return -1;
    if (kind == VAULT_KEY_PASSPHRASE &&
        passphrase_read(inv, option_text(inv, "--passphrase-file"),
                        "Passphrase of the vault: ", &passphrase, err) < 0)
        return -1;
    failed = vault_open(state_dir, passphrase, out, err);
    passphrase_wipe(passphrase);
    return failed;
}

static int vault_call_open(struct invocation *inv, struct vault_call *call, int *status)
{
    struct err err;

    if (sandbox_call_open(inv, &call->open, status) < 0)
        return -1;
    if (open_vault(inv, &call->vault, &err) == 0)
        return 0;
    *status = cli_error(inv, &err);
    return -1;
}

/* ---- the value ---- */

static int read_value_from(int fd, char **out, size_t *n, struct invocation *inv, struct err *err)
{
    char *bytes = arena_array(&inv->mem, char, VAULT_VALUE_MAX + 3);
    ssize_t got = 0;

    *n = 0;
    while (*n < VAULT_VALUE_MAX + 2 &&
           (got = read(fd, bytes + *n, VAULT_VALUE_MAX + 2 - *n)) != 0) {
        if (got < 0 && errno != EINTR)
            return err_os(err, "reading the value");
        *n += got > 0 ? (size_t)got : 0;
    }
    if (*n && bytes[*n - 1] == '\n')
        bytes[--*n] = '\0';
    if (*n && bytes[*n - 1] == '\r')
        bytes[--*n] = '\0';
    *out = bytes;
    return 0;
}

static int read_value(struct invocation *inv, struct str *out, struct err *err)
{
    const char *file = option_text(inv, "--file");
    bool is_stdin = !file || strcmp(file, "-") == 0;
    AUTO_FD int fd = -1;
    char *bytes = NULL;
    size_t n = 0;

    if (!file && isatty(STDIN_FILENO))
        return passphrase_read(inv, NULL, "Value: ", out, err);
    fd = is_stdin ? dup(STDIN_FILENO) : open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return err_os(err, "opening %s", file ? file : "standard input");
    if (read_value_from(fd, &bytes, &n, inv, err) < 0)
        return -1;
    *out = (struct str){bytes, n};
    return 0;
}

/* ---- telling ---- */

static void print_binding(struct invocation *inv, const struct vault_binding *b)
{
    char slot[VAULT_SLOT_TEXT_BYTES];

    vault_slot_text(&b->slot, slot);
    (void)fprintf(inv->out, "%s  %s %s://%s:%u", b->id, b->method, b->scheme, b->host, b->port);
    print_escaped(inv->out, str_of(b->path));
    (void)fprintf(inv->out, "  %s  subject ", slot);
    print_escaped(inv->out, str_of(b->subject));
    (void)fputs(", pack ", inv->out);
    print_escaped(inv->out, str_of(b->pack));
    (void)fprintf(inv->out, ", tenant %s\n", b->tenant);
}

static int print_done(struct invocation *inv, const struct vault_change *change,
                      const struct vault_record *record, const struct run *run)
{
    struct json *object;

    if (!inv->json) {
        (void)fprintf(inv->out, "%s %s (receipt %s)\n", action_name(change->action),
                      change->name ? change->name : vault_master_name(change->master),
                      run->closing.id);
        for (size_t i = 0; change->action == ACTION_VAULT_BIND && i < record->binding_n; i++)
            print_binding(inv, &record->bindings[i]);
        return 0;
    }
    object = change->action == ACTION_VAULT_REMOVE || change->action == ACTION_VAULT_REKEY
                 ? json_object(&inv->mem)
                 : view_secret(&inv->mem, record);
    if (change->action == ACTION_VAULT_REMOVE)
        json_put_text(&inv->mem, object, "name", change->name);
    if (change->action == ACTION_VAULT_REKEY)
        json_put_text(&inv->mem, object, "master", vault_master_name(change->master));
    json_put_text(&inv->mem, object, "receipt_id", run->closing.id);
    return cli_json(inv, object);
}

/* ---- changes ---- */

static int change_vault(struct invocation *inv, const struct vault_change *change)
{
    AUTO_VAULT_CALL struct vault_call call = {0};
    struct vault_record record = {0};
    struct run run;
    struct err err;
    int status;

    if (vault_call_open(inv, &call, &status) < 0)
        return status;
    run_init(&run);
    if (govern_vault(call.open.govern, &call.open.request, call.vault, change, &run, &record,
                     &err) < 0)
        status = cli_error(inv, &err);
    else
        status = print_done(inv, change, &record, &run);
    run_done(&run);
    return status;
}

static int set_value(struct invocation *inv, enum action_kind action)
{
    struct vault_change change = {.action = action, .name = inv->operands.v[0]};
    struct err err;
    int status;

    if (read_value(inv, &change.value, &err) < 0)
        return cli_error(inv, &err);
    status = change_vault(inv, &change);
    passphrase_wipe(change.value);
    return status;
}

int run_vault_set(struct invocation *inv)
{
    return set_value(inv, ACTION_VAULT_SET);
}

int run_vault_rotate(struct invocation *inv)
{
    return set_value(inv, ACTION_VAULT_ROTATE);
}

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

static int read_binding(struct invocation *inv, struct vault_binding *out, struct err *err)
{
    const char *slot = option_text(inv, "--slot");

    *out = (struct vault_binding){.port = (unsigned)option_number(inv, "--port")};
    if (!slot)
        return err_set(err, ERR_INVALID, "say with --slot where in a request the secret goes");
    if (copy_option(inv, "--host", out->host, sizeof out->host, err) < 0 ||
        copy_option(inv, "--scheme", out->scheme, sizeof out->scheme, err) < 0 ||
        copy_option(inv, "--method", out->method, sizeof out->method, err) < 0 ||
        copy_option(inv, "--path", out->path, sizeof out->path, err) < 0 ||
        copy_option(inv, "--subject", out->subject, sizeof out->subject, err) < 0 ||
        copy_option(inv, "--pack", out->pack, sizeof out->pack, err) < 0 ||
        copy_option(inv, "--tenant", out->tenant, sizeof out->tenant, err) < 0 ||
        vault_slot_parse(str_of(slot), &out->slot, err) < 0)
        return -1;
    return vault_binding_check(out, err);
}

int run_vault_bind(struct invocation *inv)
{
    struct vault_binding binding;
    struct vault_change change = {
        .action = ACTION_VAULT_BIND, .name = inv->operands.v[0], .binding = &binding};
    struct err err;

    if (read_binding(inv, &binding, &err) < 0)
        return cli_error(inv, &err);
    return change_vault(inv, &change);
}

int run_vault_unbind(struct invocation *inv)
{
    const struct vault_change change = {.action = ACTION_VAULT_UNBIND,
                                        .name = inv->operands.v[0],
                                        .binding_id = inv->operands.v[1]};

    return change_vault(inv, &change);
}

int run_vault_remove(struct invocation *inv)
{
    const struct vault_change change = {.action = ACTION_VAULT_REMOVE, .name = inv->operands.v[0]};

    return change_vault(inv, &change);
}

int run_vault_rekey(struct invocation *inv)
{
    const char *kind = option_text(inv, "--master");
    enum vault_master master = VAULT_KEY_FILE;
    struct vault_change change = {.action = ACTION_VAULT_REKEY};
    struct err err;
    int status;

    if (kind && vault_master_parse(str_of(kind), &master, &err) < 0)
        return cli_error(inv, &err);
    change.master = master;
    if (master == VAULT_KEY_PASSPHRASE &&
        passphrase_choose(inv, option_text(inv, "--new-passphrase-file"), &change.passphrase,
                          &err) < 0)
        return cli_error(inv, &err);
    status = change_vault(inv, &change);
    passphrase_wipe(change.passphrase);
    return status;
}

/* ---- looking ---- */

int run_vault_list(struct invocation *inv)
{
    AUTO(vault) struct vault *vault = NULL;
    struct json *list = json_array(&inv->mem), *result = json_object(&inv->mem);
    struct vault_record *records = NULL;
    struct err err;
    size_t n = 0;

    if (open_vault(inv, &vault, &err) < 0 || vault_list(vault, &inv->mem, &records, &n, &err) < 0)
        return cli_error(inv, &err);
    for (size_t i = 0; i < n; i++) {
        if (inv->json)
            json_push(list, view_secret(&inv->mem, &records[i]));
        else
            (void)fprintf(inv->out, "%-32s  v%-4llu  %s  %zu binding%s\n", records[i].name,
                          (unsigned long long)records[i].version,
                          view_moment(&inv->mem, records[i].changed_at), records[i].binding_n,
                          records[i].binding_n == 1 ? "" : "s");
    }
    if (n == 0)
        cli_none(inv, "no secrets");
    json_put(result, "secrets", list);
    return inv->json ? cli_json(inv, result) : 0;
}

int run_vault_show(struct invocation *inv)
{
    AUTO(vault) struct vault *vault = NULL;
    struct vault_record record;
    struct err err;

    if (open_vault(inv, &vault, &err) < 0 ||
        vault_show(vault, &inv->mem, inv->operands.v[0], &record, &err) < 0)
        return cli_error(inv, &err);
    if (inv->json)
        return cli_json(inv, view_secret(&inv->mem, &record));
    (void)fprintf(inv->out, "%s  version %llu, %zu bytes, changed %s\n", record.name,
                  (unsigned long long)record.version, record.size,
                  view_moment(&inv->mem, record.changed_at));
    for (size_t i = 0; i < record.binding_n; i++)
        print_binding(inv, &record.bindings[i]);
    if (record.binding_n == 0)
        (void)fprintf(inv->out, "not bound: it goes nowhere (brig vault bind)\n");
    return 0;
}
