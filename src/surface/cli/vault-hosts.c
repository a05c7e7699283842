/* SPDX-License-Identifier: Apache-2.0 */

/* Hosts that bindings of the vault name, for those who tell what a rule would open. */

#include "surface/cli/suggest.h"

#include <unistd.h>

#include "lib/vault/vault.h"

struct hosts {
    struct invocation *inv;
    void (*on_host)(void *context, struct str host, unsigned port);
    void *context;
};

static int read_bindings(const struct hosts *hosts, const char *state_dir, struct err *err)
{
    AUTO(vault) struct vault *vault = NULL;
    struct vault_record *records = NULL;
    size_t n = 0;

    if (vault_open(state_dir, (struct str){"", 0}, &vault, err) < 0 ||
        vault_list(vault, &hosts->inv->mem, &records, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < records[i].binding_n; k++)
            hosts->on_host(hosts->context, str_of(records[i].bindings[k].host),
                           records[i].bindings[k].port);
    return 0;
}

const char *vault_hosts(struct invocation *inv, const char *state_dir,
                        void (*on_host)(void *context, struct str host, unsigned port),
                        void *context)
{
    const struct hosts hosts = {inv, on_host, context};
    const char *secrets = arena_printf(&inv->mem, "%s/" VAULT_FOLDER "/secrets", state_dir);
    enum vault_master kind;
    struct err err;

    if (access(secrets, F_OK) < 0)
        return NULL;
    if (vault_look(state_dir, &kind, &err) < 0)
        return arena_text(&inv->mem, str_of(err.text));
    if (kind == VAULT_KEY_PASSPHRASE)
        return "the vault is closed: whether a binding names one of these hosts is not known "
               "(\"brig vault list\" shows them)";
    return read_bindings(&hosts, state_dir, &err) < 0 ? arena_text(&inv->mem, str_of(err.text))
                                                      : NULL;
}
