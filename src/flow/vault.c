/* SPDX-License-Identifier: Apache-2.0 */

/* The vault: who changed what in it, and which secret went where, is recorded like everything
 * else; what the secrets are is not. */

#include "flow/govern-parts.h"

#include <stdio.h>
#include <string.h>

#include "flow/record/record.h"
#include "lib/base/limits.h"
#include "lib/vault/vault-journal.h"
#include "lib/vault/vault.h"

static int carry_out(struct vault *vault, const struct vault_change *change, struct run *run,
                     struct vault_record *out, struct err *err)
{
    struct arena *mem = &run->mem;
    bool must_exist = change->action == ACTION_VAULT_ROTATE;

    if (change->action == ACTION_VAULT_SET || must_exist)
        return vault_set(vault, mem, change->name, change->value, must_exist, out, err);
    if (change->action == ACTION_VAULT_BIND)
        return vault_bind(vault, mem, change->name, change->binding, out, err);
    if (change->action == ACTION_VAULT_UNBIND)
        return vault_unbind(vault, mem, change->name, change->binding_id, out, err);
    if (change->action == ACTION_VAULT_REMOVE)
        return vault_remove(vault, change->name, err);
    return vault_rekey(vault, (enum vault_master)change->master, change->passphrase, err);
}

static void tell(struct run *run, const struct vault_change *change,
                 const struct vault_record *record)
{
    if (change->action == ACTION_VAULT_REKEY) {
        run->outcome.vault.master = vault_master_name((enum vault_master)change->master);
        return;
    }
    run->outcome.vault.name = arena_text(&run->mem, str_of(change->name));
    run->outcome.vault.version = record->version;
    if (change->action == ACTION_VAULT_BIND && record->binding_n)
        run->outcome.vault.binding = record->bindings[record->binding_n - 1].id;
    if (change->action == ACTION_VAULT_UNBIND)
        run->outcome.vault.binding = arena_text(&run->mem, str_of(change->binding_id));
}

int govern_vault(struct govern *govern, const struct request *request, struct vault *vault,
                 const struct vault_change *change, struct run *run, struct vault_record *out,
                 struct err *err)
{
    struct vault_record record = {0};
    struct deed deed;
    bool failed;

    if (deed_begin(&deed, govern, request, change->action, run, err) < 0)
        return -1;
    failed = carry_out(vault, change, run, &record, err) < 0;
    if (!failed) {
        tell(run, change, &record);
        *out = record;
    }
    return deed_end(&deed, failed ? REASON_VAULT_FAILED : REASON_NONE, err);
}

/* ---- uses ---- */

/* The use has the id of a run, of which there is one receipt: the ledger holds no second. */
static void put_use(const struct vault_used *use, struct run *run)
{
    const struct vault_question *q = &use->question;
    char slot[VAULT_SLOT_TEXT_BYTES];

    vault_slot_text(&q->slot, slot);
    (void)snprintf(run->id, sizeof run->id, "%s", use->id);
    (void)snprintf(run->sandbox_id, sizeof run->sandbox_id, "%s", use->sandbox);
    run->action.kind = ACTION_SECRET_USE;
    run->action.principal = q->subject;
    run->action.tenant = q->tenant;
    run->verdict = (struct verdict){.kind = VERDICT_ALLOW, .reason = REASON_SECRET_BOUND};
    run->outcome.vault.at = use->at;
    run->outcome.vault.name = q->name;
    run->outcome.vault.version = use->version;
    run->outcome.vault.binding = use->binding;
    run->outcome.vault.scheme = q->scheme;
    run->outcome.vault.host = q->host;
    run->outcome.vault.port = q->port;
    run->outcome.vault.method = q->method;
    run->outcome.vault.path = q->path;
    run->outcome.vault.slot = arena_text(&run->mem, str_of(slot));
    run->outcome.vault.pack = q->pack;
}

static int record_use(struct govern *govern, const struct vault_used *use, size_t *made,
                      struct err *err)
{
    struct run run;
    bool is_known = false;
    int failed;

    if (record_knows(govern->record, use->id, &is_known, err) < 0)
        return -1;
    if (is_known)
        return 0;
    run_init(&run);
    put_use(use, &run);
    failed = record_intent(govern->record, &run, err);
    run_done(&run);
    *made += !failed;
    return failed;
}

int govern_vault_uses(struct govern *govern, size_t *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(512 * MIB);
    AUTO(vault_journal) struct vault_journal *journal = NULL;
    struct vault_used *uses = NULL;
    size_t n = 0;

    *out = 0;
    if (vault_journal_take(govern->state_dir, &mem, &journal, &uses, &n, err) < 0)
        return err->code == ERR_CONFLICT ? 0 : -1;
    if (n && govern_ready(govern, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (record_use(govern, &uses[i], out, err) < 0)
            return err_in(err, "recording the use of a secret");
    return vault_journal_forget(journal, err);
}
