/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/vault/vault-use.h"

static const struct {
    const char *code;
    const char *text;
} faults[] = {
  /* clang-format off */
    {"", ""},
#define X(id, code, text) {code, text},
    VAULT_FAULTS(X)
#undef X
  /* clang-format on */
};

const char *vault_fault_code(enum vault_fault fault)
{
    return faults[fault].code;
}

const char *vault_fault_text(enum vault_fault fault)
{
    return faults[fault].text;
}
