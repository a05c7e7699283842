/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/cli: the table and what walks it. */

#include "surface/cli/cli.h"

struct buf;

/* The first word of commands that come in groups. */
struct command_group {
    const char *name;
    const char *summary;
};

/* The rows of commands-sandbox.c. */
extern const struct command pool_fill, pool_list, pool_refill, pool_drain;
extern const struct command sandbox_exec, sandbox_create, sandbox_list, sandbox_show, sandbox_pause,
    sandbox_resume, sandbox_extend, sandbox_destroy, sandbox_recreate, sandbox_explain, sandbox_top,
    sandbox_logs, sandbox_attach, sandbox_ps, sandbox_files, sandbox_cp, sandbox_port, sandbox_diff,
    sandbox_sync, sandbox_preflight, sandbox_conform;

/* The rows of commands-policy.c. */
extern const struct command policy_explain, policy_preset, policy_suggest_row, policy_proposals_row,
    policy_ceiling, policy_bundle_row, policy_trust_row, policy_diff_row, policy_test_row;

/* The rows of commands-advisory.c. */
extern const struct command advisory_check_row;

/* The rows of commands-vault.c. */
extern const struct command advisory_run_row, advisory_report_row, advisory_confirm_row,
    advisory_replay_row, advisory_export_row, advisory_reject_row, advisory_end_row,
    advisory_actions_row, gate_report_row, gate_sign_row, gate_release_row, gate_revoke_row,
    gate_status_row;
extern const struct command vault_set_row, vault_rotate_row, vault_bind_row, vault_unbind_row,
    vault_list_row, vault_show_row, vault_remove_row, vault_rekey_row;
extern const struct command budget_show_row, budget_set_row, budget_remove_row, budget_reset_row,
    budget_renew_row, budget_price_row;

/* The rows of commands-snapshot.c. */
extern const struct command sandbox_snapshot, sandbox_restore, sandbox_fork, snapshot_list_row,
    snapshot_show_row, snapshot_remove_row, snapshot_verify_row, snapshot_tend_row,
    snapshot_export_row, snapshot_import_row;

extern const struct command *const commands[];
extern const size_t command_n;
extern const struct command_group command_groups[];
extern const size_t command_group_n;

const struct command *command_find(const char *path);
const struct command_group *command_group_find(const char *name);
const struct cli_option *command_option(const struct command *command, const char *name);

/* Whether the command's path starts with this group word, and what stands behind it. */
const char *command_in_group(const struct command *command, const char *group);

/* The candidate that was probably meant, or NULL when none is close. */
struct nearest {
    const char *wanted;
    const char *best;
    size_t distance;
};
void nearest_try(struct nearest *nearest, const char *candidate);
const char *nearest_found(const struct nearest *nearest);

void help_overview(const struct invocation *inv, FILE *to);
void help_group(const struct invocation *inv, const struct command_group *group, FILE *to);
void help_command(const struct invocation *inv, const struct command *command, FILE *to);

/* Fills *inv from the words behind the command's path. */
int parse_options(struct invocation *inv, const char *const *words, size_t n,
                  struct err *err) MUST_CHECK;

/* Says which values of --env look like credentials: env-secrets.c. */
void env_say_secrets(struct invocation *inv);

/* From now on nothing more is said of how long it takes: somebody is asked for something. */
void patience_end(void); /* run.c */

/* Runs the command where it belongs: remote.c. */
int command_run(struct invocation *inv);

/* The same by a daemon; each returns the exit status, or REMOTE_NOT_DONE. */
int remote_sandbox_exec(struct invocation *inv, struct remote *remote);   /* remote-exec.c */
int remote_sandbox_create(struct invocation *inv, struct remote *remote); /* remote-kept.c */
int remote_sandbox_list(struct invocation *inv, struct remote *remote);
int remote_sandbox_show(struct invocation *inv, struct remote *remote);
int remote_sandbox_recreate(struct invocation *inv, struct remote *remote);
int remote_sandbox_pause(struct invocation *inv, struct remote *remote);
int remote_sandbox_resume(struct invocation *inv, struct remote *remote);
int remote_sandbox_extend(struct invocation *inv, struct remote *remote);
int remote_sandbox_destroy(struct invocation *inv, struct remote *remote);

int remote_sandbox_ps(struct invocation *inv, struct remote *remote); /* remote-look.c */
int remote_sandbox_files(struct invocation *inv, struct remote *remote);
int remote_receipts_list(struct invocation *inv, struct remote *remote);
int remote_receipts_show(struct invocation *inv, struct remote *remote);
int remote_receipts_head(struct invocation *inv, struct remote *remote);
int remote_receipts_export(struct invocation *inv, struct remote *remote);

int remote_freeze(struct invocation *inv, struct remote *remote); /* freeze.c */
int remote_unfreeze(struct invocation *inv, struct remote *remote);
int remote_approvals_list(struct invocation *inv, struct remote *remote); /* approvals.c */
int remote_approvals_show(struct invocation *inv, struct remote *remote);
int remote_approvals_confirm(struct invocation *inv, struct remote *remote);
int remote_approvals_reject(struct invocation *inv, struct remote *remote);

/* Receipts as "receipts list" prints them. */
#define RECEIPTS_LIST_DEFAULT 20
int receipts_print(struct invocation *inv, const struct json *list, struct err *err) MUST_CHECK;
/* One that does not hold, and why; returns the exit status. Shown all the same: whoever looks for
 * what was changed wants to see it. With --json it is in the details of the error. */
int receipt_doubted(struct invocation *inv, const struct json *receipt, const struct err *why);

/* Handlers, by file. Each returns the exit status. */
int run_sandbox_exec(struct invocation *inv);   /* exec.c */
int run_sandbox_create(struct invocation *inv); /* kept.c */
int run_sandbox_list(struct invocation *inv);
int run_sandbox_show(struct invocation *inv);
int run_sandbox_pause(struct invocation *inv);
int run_sandbox_resume(struct invocation *inv);
int run_sandbox_extend(struct invocation *inv);
int run_sandbox_destroy(struct invocation *inv);
int run_sandbox_files(struct invocation *inv); /* files.c */
int run_sandbox_cp(struct invocation *inv);
int run_sandbox_port(struct invocation *inv); /* port.c */
int run_sandbox_diff(struct invocation *inv); /* workspace.c */
int run_sandbox_sync(struct invocation *inv);
int run_sandbox_explain(struct invocation *inv); /* explain.c */
int run_sandbox_recreate(struct invocation *inv);
int run_sandbox_top(struct invocation *inv); /* top.c */
int run_pool_fill(struct invocation *inv);   /* pool.c */
int run_pool_list(struct invocation *inv);
int run_pool_refill(struct invocation *inv);
int run_pool_drain(struct invocation *inv);
int run_serve(struct invocation *inv);
int run_approvals_list(struct invocation *inv); /* approvals.c */
int run_approvals_show(struct invocation *inv);
int run_approvals_confirm(struct invocation *inv);
int run_approvals_reject(struct invocation *inv);
int run_approvals_enroll(struct invocation *inv);
int run_approvals_renew(struct invocation *inv);
int run_approvals_custodians(struct invocation *inv);
int run_approvals_notify(struct invocation *inv); /* notify.c */
int run_usage(struct invocation *inv);            /* usage.c */
int run_budget_show(struct invocation *inv);      /* budget.c */
int run_budget_set(struct invocation *inv);
int run_budget_remove(struct invocation *inv);
int run_budget_reset(struct invocation *inv);
int run_budget_renew(struct invocation *inv);
int run_budget_price(struct invocation *inv);
int run_freeze(struct invocation *inv); /* freeze.c */
int run_unfreeze(struct invocation *inv);
int run_vault_set(struct invocation *inv); /* vault.c */
int run_vault_rotate(struct invocation *inv);
int run_vault_bind(struct invocation *inv);
int run_vault_unbind(struct invocation *inv);
int run_vault_list(struct invocation *inv);
int run_vault_show(struct invocation *inv);
int run_vault_remove(struct invocation *inv);
int run_vault_rekey(struct invocation *inv);
int run_advisory_run(struct invocation *inv);    /* advise-run.c */
int run_advisory_report(struct invocation *inv); /* advise.c */
int run_advisory_replay(struct invocation *inv); /* advise-replay.c */
int run_advisory_export(struct invocation *inv);
int run_advisory_actions(struct invocation *inv); /* advise-actions.c */
int run_advisory_confirm(struct invocation *inv);
int run_advisory_reject(struct invocation *inv);
int run_advisory_end(struct invocation *inv);
int run_gate_report(struct invocation *inv); /* gate.c */
int run_gate_sign(struct invocation *inv);
int run_gate_release(struct invocation *inv);
int run_gate_revoke(struct invocation *inv);
int run_gate_status(struct invocation *inv);
int run_token_create(struct invocation *inv);
int run_token_list(struct invocation *inv);
int run_token_revoke(struct invocation *inv);
int run_sandbox_logs(struct invocation *inv); /* execs.c */
int run_sandbox_attach(struct invocation *inv);
int run_sandbox_ps(struct invocation *inv);
int run_sandbox_preflight(struct invocation *inv); /* preflight.c */
int run_sandbox_conform(struct invocation *inv);   /* conform.c */
int run_sandbox_snapshot(struct invocation *inv);  /* snapshot.c */
int run_sandbox_restore(struct invocation *inv);
int run_sandbox_fork(struct invocation *inv);
int run_snapshot_list(struct invocation *inv);
int run_snapshot_show(struct invocation *inv);
int run_snapshot_remove(struct invocation *inv);
int run_snapshot_verify(struct invocation *inv);
int run_snapshot_tend(struct invocation *inv);
int run_snapshot_export(struct invocation *inv);
int run_snapshot_import(struct invocation *inv);
int run_receipts_list(struct invocation *inv); /* receipts.c */
int run_receipts_show(struct invocation *inv);
int run_receipts_verify(struct invocation *inv);
int run_receipts_head(struct invocation *inv);
int run_receipts_export(struct invocation *inv);
int run_verify(struct invocation *inv);           /* verify.c */
int run_policy_check(struct invocation *inv);     /* policy.c */
int run_policy_proposals(struct invocation *inv); /* policy-proposals.c */
int run_policy_apply(struct invocation *inv);
int run_policy_reset(struct invocation *inv);
int run_policy_ceiling(struct invocation *inv); /* policy-layers.c */
int run_policy_bundle(struct invocation *inv);  /* policy-bundle.c */
int run_policy_trust(struct invocation *inv);
int run_policy_diff(struct invocation *inv);    /* policy-diff.c */
int run_policy_test(struct invocation *inv);    /* policy-test.c */
int run_policy_explain(struct invocation *inv); /* policy-explain.c */
int run_policy_preset(struct invocation *inv);  /* policy-preset.c */
int run_policy_suggest(struct invocation *inv); /* policy-suggest.c */
int run_image_pull(struct invocation *inv);     /* image.c */
int run_image_import(struct invocation *inv);
int run_image_list(struct invocation *inv);
int run_image_show(struct invocation *inv);
int run_image_remove(struct invocation *inv);
int run_image_export(struct invocation *inv);
int run_image_verify(struct invocation *inv);
int run_advisory_check(struct invocation *inv); /* advisory.c */
int run_doctor(struct invocation *inv);         /* doctor.c */
int run_version(struct invocation *inv);        /* version.c */
int run_completion(struct invocation *inv);     /* completion.c */
int run_help(struct invocation *inv);           /* help.c */
