/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flow/admit/admit.h"
#include "flow/execute/execute.h"
#include "lib/base/err.h"
#include "lib/crypto/crypto.h"
#include "lib/egress/proposal.h"

struct policy;

/* One governed run: the only path there is. */
struct govern;

/* What the governors of one process share, each in a thread of its own: the ledger, so that their
 * receipts become durable together, and what is known of this machine. */
struct govern_shared;
/* What is frozen is told by root_dir, the state directory of the daemon that serves this one; or
 * NULL: by this one. */
struct govern_shared *govern_shared_new(const char *state_dir, const char *root_dir);
void govern_shared_free(struct govern_shared *shared); /* after the last of them */

struct govern_config {
    const char *state_dir;
    const struct policy *policy;  /* borrowed */
    const char *profile_path;     /* or NULL */
    const char *profile_text;     /* one that was read before, instead; or NULL */
    struct spawner *spawner;      /* builds sandboxes; borrowed, or NULL */
    struct govern_shared *shared; /* of the same state_dir; borrowed, or NULL: its own */
};

/* Opens the ledger, finds what dead runs have left and gives each its receipt; of several that
 * share only the first does, and govern_sweep() is the caller's from then on. */
int govern_open(const struct govern_config *config, struct govern **out,
                struct err *err) MUST_CHECK;
void govern_free(struct govern *govern);
AUTO_TYPE(govern)

/* Once more what opening does: for one who has waited for something to end. */
int govern_sweep(struct govern *govern, struct err *err) MUST_CHECK;

/* The provider the profile names, or NULL. */
const char *govern_provider(const struct govern *govern);

/* Admits, decides, equips, executes, records; returns when nothing of the run is left. 0: the run
 * has its receipts, and run->verdict and run->outcome say what happened; a denial is such an
 * answer. -1: nothing ran, or it cannot be recorded how it ended. */
int govern_run(struct govern *govern, const struct request *request, const struct streams *streams,
               struct run *run, struct err *err) MUST_CHECK;

/* Makes a sandbox that stays; its id is run->sandbox_id. */
int govern_create(struct govern *govern, const struct request *request, struct run *run,
                  struct err *err) MUST_CHECK;
/* What would be made of such a request now, without making or recording anything: verdict, plan
 * and planned posture are in run, and the config it would keep in *config. What the plan has opened
 * stays open until execute_forget(). */
int govern_rehearse(struct govern *govern, const struct request *request, struct run *run,
                    struct config *config, struct err *err) MUST_CHECK;
/* A command in a sandbox that stays (request->sandbox). Of the request only what belongs to the
 * command counts: argv, env on top, workdir, tty, time; the rest is as it was made. */
int govern_exec(struct govern *govern, const struct request *request, const struct streams *streams,
                struct run *run, struct err *err) MUST_CHECK;
/* Pauses, resumes, extends or destroys one. */
int govern_change(struct govern *govern, const struct request *request, struct run *run,
                  struct err *err) MUST_CHECK;

/* Files of one: what request->verb names is done by `work` while the connection stands, and what
 * it moved is in run->outcome.moved. A failure of the work is an outcome: its words and code are
 * in run->outcome. */
struct files_work {
    int (*run)(void *context, struct files *files, struct err *err);
    void *context;
    struct files_progress progress;
};
int govern_files(struct govern *govern, const struct request *request,
                 const struct files_work *work, struct run *run, struct err *err) MUST_CHECK;
/* A port of one on a loopback port of this machine, until it is asked to end. */
int govern_port(struct govern *govern, const struct request *request, const struct port_call *call,
                struct run *run, struct err *err) MUST_CHECK;
/* That connections to a port of one may be made for a while; verb says how they come. */
int govern_port_grant(struct govern *govern, const struct request *request, struct run *run,
                      struct err *err) MUST_CHECK;

/* Puts what a sandbox (request->sandbox) has written into a snapshot of the name request->name. The
 * sandbox goes on: on top of the snapshot when nobody lived in it, else as it was. What came of it
 * is in run->outcome.snapshot; when the sandbox could not be built again it has ended, and the
 * outcome says so. */
int govern_snapshot(struct govern *govern, const struct request *request, struct run *run,
                    struct err *err) MUST_CHECK;
/* Puts a sandbox back to the snapshot request->base: whatever lives in it ends. */
int govern_restore(struct govern *govern, const struct request *request, struct run *run,
                   struct err *err) MUST_CHECK;
/* Writes the snapshot request->base to the file request->path, as an OCI layer; what is in it that
 * looks like a credential is left out and told in *out, unless request->verb is "everything". And
 * such a file taken in, as a snapshot of the name request->name. */
struct image_packed;
int govern_snapshot_export(struct govern *govern, const struct request *request, struct run *run,
                           struct image_packed *out, struct err *err) MUST_CHECK;
int govern_snapshot_import(struct govern *govern, const struct request *request, struct run *run,
                           struct err *err) MUST_CHECK;
/* Takes the snapshot request->base out of sight, and away when nobody stands on it: *freed. */
int govern_snapshot_remove(struct govern *govern, const struct request *request, struct run *run,
                           bool *freed, struct err *err) MUST_CHECK;

/* An image comes, goes or is written (request->kind), by `work`, once the intent is durable. It
 * fills run->outcome.image as far as it is known, in the run's arena. What it may
 * not do (ERR_FORBIDDEN) and what is not what it should be (ERR_INTEGRITY) is a denial, any other
 * failure an outcome; code and words of either are in run->outcome. */
struct image_work {
    int (*run)(void *context, struct run *run, struct err *err);
    void *context;
};
int govern_image(struct govern *govern, const struct request *request,
                 const struct image_work *work, struct run *run, struct err *err) MUST_CHECK;

/* A question: would this be allowed? Admitted, decided and recorded like a run, and nothing more:
 * a receipt of kind "decision", or "denial". request->kind is PROPOSE (a command) or TOOL. The
 * receipt is run->intent, the answer run->verdict. */
int govern_ask(struct govern *govern, const struct request *request, struct run *run,
               struct err *err) MUST_CHECK;
/* The same in two steps, so that many questions become durable together. First the verdict, without
 * a receipt: it is nobody's answer yet. One of ASK needs a person and with that govern_ask(). Then
 * all receipts in one transaction, whoever's rules the governor has: all or none. */
#define ASKED_TOGETHER_MAX 64
int govern_consider(struct govern *govern, const struct request *request, struct run *run,
                    struct err *err) MUST_CHECK;
int govern_record_asked(struct govern *govern, struct run *const *runs, size_t n,
                        struct err *err) MUST_CHECK;
/* Something that is refused whatever the policy says: recorded as a denial with this reason. text,
 * a sentence, must live as long as the run; bytes is the request as it came. */
int govern_refuse(struct govern *govern, const struct request *request, struct str bytes,
                  enum reason reason, const char *text, struct run *run,
                  struct err *err) MUST_CHECK;

/* Whether a provider is what is promised of it; each check is a run of its own. */
enum conform_tier {
    CONFORM_COMPATIBLE,
    CONFORM_VERIFIED,
    CONFORM_SOVEREIGN,
};
const char *conform_tier_name(enum conform_tier tier);
typedef void conform_visitor(void *context, const char *name, bool passed, const char *why);
/* Of the request everything but the command. True: all of them passed. */
bool govern_conform(struct govern *govern, const struct request *request, enum conform_tier tier,
                    conform_visitor *visit, void *context);

/* Who may knock (lib/access). A token is issued, its words go to text (TOKEN_TEXT_BYTES); or one
 * is revoked, of a tenant or (NULL) of any. The principal of the request is whoever asks. */
struct access;
struct token;
int govern_token_issue(struct govern *govern, const struct request *request, struct access *access,
                       const struct token *ask, struct run *run, struct token *out, char *text,
                       struct err *err) MUST_CHECK;
int govern_token_revoke(struct govern *govern, const struct request *request, struct access *access,
                        const char *id, const char *tenant, struct run *run, struct token *out,
                        struct err *err) MUST_CHECK;

/* A person's word on what waits for one (flow/approve), by the principal of the request; or by a
 * custodian who has signed it, whatever the principal is. *out lives in the run. */
struct approval;
struct approval_word {
    const char *id; /* or the beginning of one */
    bool confirm;
    const char *comment;   /* or NULL */
    const char *custodian; /* or NULL */
    struct signature signature;
};
int govern_approve(struct govern *govern, const struct request *request,
                   const struct approval_word *word, struct run *run, struct approval *out,
                   struct err *err) MUST_CHECK;
/* Another custodian: custodian_enroll(). */
struct custodian;
struct enrollment {
    const char *name;
    struct str passphrase;
    struct public_key key;
    const char *by;
    struct str by_passphrase;
};
int govern_enroll(struct govern *govern, const struct request *request,
                  const struct enrollment *ask, struct run *run, struct custodian *out,
                  struct err *err) MUST_CHECK;

/* The standing policy of a state directory, for requests that bring none: *out is NULL when there
 * is none, and then the built-in one holds. And another one from now on, or (NULL) none any more;
 * what was made before keeps its own. */
int govern_policy_text(const char *state_dir, struct arena *mem, const char **out,
                       struct err *err) MUST_CHECK;
int govern_policy_apply(struct govern *govern, const struct request *request, const char *text,
                        struct run *run, struct err *err) MUST_CHECK;

/* Another policy for the kept sandbox request->sandbox, whose governor this is: its network rules
 * are exchanged while it runs, its commands are decided by it from now on. What else it would
 * change is ERR_CONFLICT, and nothing is. */
int govern_policy_swap(struct govern *govern, const struct request *request, const char *text,
                       struct run *run, struct err *err) MUST_CHECK;

/* ---- what sandboxes asked for at policy.local (docs/egress.md) ---- */

/* All of them, the latest first: {"proposals":[…]}, as docs/formats/egress-proposals.md has one. */
int govern_proposals(const char *state_dir, struct arena *mem, const struct json **out,
                     struct err *err) MUST_CHECK;

/* One of them, by its id or the beginning of one, checked against its digest. */
struct proposal_asked {
    const struct json *record;
    struct proposal proposal;
    const char *id;
    const char *sandbox;
    const char *status; /* "pending", "approved", "rejected", "expired" */
};
int govern_proposal_find(const char *state_dir, struct arena *mem, const char *id,
                         struct proposal_asked *out, struct err *err) MUST_CHECK;

/* What it would make of the policy its sandbox has now; -1 when it could not stand there. */
struct proposal_effect {
    const char *text; /* of the policy with it */
    struct net_rules *before, *after;
    bool is_changed;              /* the rules are others than those it was asked on top of */
    char digest[HASH_TEXT_BYTES]; /* of the proposal and of `before`: what a yes is for */
};
void proposal_effect_done(struct proposal_effect *effect);
#define AUTO_PROPOSAL_EFFECT __attribute__((cleanup(proposal_effect_done)))
int govern_proposal_look(struct execute *execute, struct arena *mem,
                         const struct proposal_asked *asked, struct proposal_effect *out,
                         struct err *err) MUST_CHECK;

/* A person's word, by the principal of the request. A yes exchanges the rules of the sandbox as
 * govern_policy_swap() does, by a governor with its policy; whoever waits inside hears it then.
 * ERR_CONFLICT: there is a word already, or the rules are others than the digest (NULL: than the
 * proposal) was made with; then nothing is changed. */
struct proposal_decision {
    bool approve;
    const char *reason; /* or "" */
    const char *digest; /* or NULL */
};
int govern_proposal_decide(struct govern *govern, const struct request *request,
                           const struct proposal_asked *asked,
                           const struct proposal_decision *decision, struct run *run,
                           struct err *err) MUST_CHECK;

/* What was used, by day and principal, the newest day first: sums over the ledger. */
struct usage {
    struct str day; /* "2026-11-16" */
    struct str principal;
    uint64_t commands;  /* that ended */
    uint64_t sandboxes; /* that were made to stay */
    uint64_t denied;
    uint64_t duration_us; /* of commands */
    uint64_t cpu_us;
    uint64_t output_bytes;
    uint64_t disk_written_bytes;
};
struct usage_query {
    const char *since;     /* a day, or NULL */
    const char *principal; /* or NULL */
    unsigned limit;
};
typedef int usage_visitor(void *context, const struct usage *usage, struct err *err);
int govern_usage(struct govern *govern, const struct usage_query *query, usage_visitor *visit,
                 void *context, struct err *err) MUST_CHECK;

/* From now on new effects of a principal, a tenant or everybody are refused (SYSTEM_FROZEN), or no
 * longer; what runs goes on, and ending things stays possible. The list is that of root_dir. */
struct frozen;
int govern_freeze(struct govern *govern, const struct request *request, const char *root_dir,
                  const struct frozen *entry, struct run *run, struct err *err) MUST_CHECK;
int govern_unfreeze(struct govern *govern, const struct request *request, const char *root_dir,
                    const struct frozen *entry, struct run *run, struct err *err) MUST_CHECK;

/* ---- the vault ---- */

struct vault;
struct vault_binding;
struct vault_record;
/* One change of the vault; action says which, and what of the rest counts. */
struct vault_change {
    enum action_kind action; /* VAULT_SET … VAULT_REKEY */
    const char *name;
    struct str value;                    /* SET, ROTATE */
    const struct vault_binding *binding; /* BIND */
    const char *binding_id;              /* UNBIND */
    unsigned master;                     /* REKEY: enum vault_master, and its passphrase */
    struct str passphrase;
};
/* The record is what the secret is afterwards (nothing for REMOVE and REKEY); it lives in the run.
 * No value is in any receipt. */
int govern_vault(struct govern *govern, const struct request *request, struct vault *vault,
                 const struct vault_change *change, struct run *run, struct vault_record *out,
                 struct err *err) MUST_CHECK;
/* Makes receipts (kind "secret_use") of secrets that were handed out, each exactly once, whoever
 * crashed when; *out is how many. Nothing happens while somebody else is at it. */
int govern_vault_uses(struct govern *govern, size_t *out, struct err *err) MUST_CHECK;

/* ---- the pool: sandboxes built ahead, so that making one is a hand-over (decision 0014) ----
 *
 * govern_run() and govern_create() take one that is exactly what they planned, by themselves. */

/* Builds one for the pool. */
int govern_prepare(struct govern *govern, const struct request *request, struct run *run,
                   struct err *err) MUST_CHECK;

struct pool_report {
    char key[POOL_KEY_BYTES];
    size_t size;  /* how many there should be */
    size_t ready; /* and are */
    size_t made;
    size_t ended; /* those that were too many, or not what would be made today */
};
/* From now on there should be so many for requests like this one; makes those that are missing.
 * The last run is in *run: when it was denied, why; its receipts say the rest. */
int govern_pool_fill(struct govern *govern, const struct request *request, size_t size,
                     struct run *run, struct pool_report *out, struct err *err) MUST_CHECK;
/* The same as it was last asked for. The governor must be opened with the policy and the profile of
 * its request, which govern_pool_request() tells. ERR_CONFLICT: somebody else will do it. */
int govern_pool_request(struct execute *execute, struct arena *mem, const char *key,
                        struct request *out, size_t *size, struct err *err) MUST_CHECK;
int govern_pool_refill(struct govern *govern, const char *key, struct run *run,
                       struct pool_report *out, struct err *err) MUST_CHECK;
/* Ends all that nobody has taken, and makes no more. */
int govern_pool_drain(struct govern *govern, const char *key, struct pool_report *out,
                      struct err *err) MUST_CHECK;
/* Something was taken out of a pool, or there was nothing to take. */
bool govern_wants_refill(const struct govern *govern);

/* The id of the kept sandbox that has this id or name; it lives in mem. ERR_CONFLICT: several. */
int govern_find(struct execute *execute, struct arena *mem, const char *wanted, const char **out,
                struct err *err) MUST_CHECK;

/* Which network a kept sandbox has: "none"; "policy", by the rules it was made with or got since;
 * "lost", whoever held them has ended, so there is none until it is made again. */
struct config;
const char *govern_network(struct execute *execute, const struct config *config);

/* For those who list: the execute stage, borrowed. */
struct execute *govern_execute(struct govern *govern);

/* The same up to the comparison of plan and sandbox; the command is not run. */
int govern_preflight(struct govern *govern, const struct request *request, struct run *run,
                     struct err *err) MUST_CHECK;
