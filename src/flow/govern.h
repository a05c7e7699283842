/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flow/admit/admit.h"
#include "flow/budget/budget.h"
#include "flow/execute/execute.h"
#include "lib/base/err.h"
#include "lib/crypto/crypto.h"
#include "lib/egress/proposal.h"

struct policy;
struct rule_step;
struct external;

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

/* One that only looks, for govern_explain(): it tells nothing of what dead runs have left, and
 * makes nothing, not even the state directory, which need not exist. root_dir as above;
 * config->shared is not looked at. */
int govern_open_to_look(const struct govern_config *config, const char *root_dir,
                        struct govern **out, struct err *err) MUST_CHECK;

/* Once more what opening does: for one who has waited for something to end. */
int govern_sweep(struct govern *govern, struct err *err) MUST_CHECK;

/* The provider the profile names, or NULL. */
const char *govern_provider(const struct govern *govern);

/* Admits, decides, equips, executes, records; returns when nothing of the run is left. 0: the run
 * has its receipts, and run->verdict and run->outcome say what happened; a denial is such an
 * answer. -1: nothing ran, or it cannot be recorded how it ended. */
int govern_run(struct govern *govern, const struct request *request, const struct streams *streams,
               struct run *run, struct err *err) MUST_CHECK;

/* A command on the machine itself, without walls: when a rule of "elevated" in the standing policy
 * spells it out and a person has confirmed it. For the command line alone. */
int govern_elevate(struct govern *govern, const struct request *request,
                   const struct streams *streams, struct run *run, struct err *err) MUST_CHECK;

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
 * a receipt: it is nobody's answer yet. Somebody else may have to be waited for, a person or a
 * decider outside: then it needs govern_ask(). Else all receipts in one transaction, whoever's
 * rules the governor has: all or none. */
#define ASKED_TOGETHER_MAX 64
int govern_consider(struct govern *govern, const struct request *request, struct run *run,
                    struct err *err) MUST_CHECK;
bool govern_must_wait(const struct govern *govern, const struct run *run);
int govern_record_asked(struct govern *govern, struct run *const *runs, size_t n,
                        struct err *err) MUST_CHECK;
/* What a run (ACTION_RUN) would come to now, told without one: run->verdict is what it would get,
 * but for whether its sandbox can be built, which only a preflight tells. Nothing is reserved or
 * recorded, and nobody is asked but, on demand, deciders outside. */
#define PROSPECT_REFUSALS_MAX 6
struct prospect_decider {
    const char *layer;
    const struct external *external;
};
struct prospect {
    void (*visit)(void *context, const struct rule_step *step); /* of every rule; or NULL */
    void *context;
    bool has_cost; /* what it would cost at most is known */
    uint64_t cost;
    bool ask_deciders;

    struct prospect_decider deciders[2]; /* whom the ceiling and the policy name */
    size_t decider_n;
    /* Whatever refuses it besides rules and deciders, in the order in which a run meets it; what
     * the texts point to lives in the run. */
    struct verdict refusals[PROSPECT_REFUSALS_MAX];
    size_t refusal_n;
};
int govern_explain(struct govern *govern, const struct request *request, struct prospect *prospect,
                   struct run *run, struct err *err) MUST_CHECK;

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
/* Some of what nobody answered in time gets its receipt, in this tenant's name; each once, however
 * many come across it. After a failure whoever comes next does it. */
int govern_record_expired(struct govern *govern, const char *tenant, struct err *err);
/* Another custodian: custodian_enroll(); or one less: custodian_remove(). */
struct custodian;
struct enrollment {
    const char *name;
    bool dismiss; /* he is to be none any more; then only `by` counts of the rest */
    struct str passphrase;
    struct public_key key;
    const char *by;
    struct str by_passphrase;
};
int govern_enroll(struct govern *govern, const struct request *request,
                  const struct enrollment *ask, struct run *run, struct custodian *out,
                  struct err *err) MUST_CHECK;
/* Where what waits and who is a custodian was lost (approvals_open): begins without. */
int govern_approvals_renew(struct govern *govern, const struct request *request, struct run *run,
                           struct err *err) MUST_CHECK;
/* Who is told when something waits for a person (flow/notify), for all tenants; or (NULL) nobody
 * any more. */
struct notify_config;
int govern_notify_set(struct govern *govern, const struct request *request,
                      const struct notify_config *config, struct str secret, struct run *run,
                      struct err *err) MUST_CHECK;

/* The standing policy of a state directory, for requests that bring none: *out is NULL when there
 * is none, and then the built-in one holds. And another one from now on, or (NULL) none any more;
 * what was made before keeps its own. */
int govern_policy_text(const char *state_dir, struct arena *mem, const char **out,
                       struct err *err) MUST_CHECK;
int govern_policy_apply(struct govern *govern, const struct request *request, const char *text,
                        struct run *run, struct err *err) MUST_CHECK;

/* The ceiling of a machine (docs/policy.md): the text, or NULL; and another one for everything that
 * is decided from now on, or (NULL) none any more. */
int govern_ceiling_text(const char *root_dir, struct arena *mem, const char **out,
                        struct err *err) MUST_CHECK;
int govern_ceiling_set(struct govern *govern, const struct request *request, const char *text,
                       struct run *run, struct err *err) MUST_CHECK;

/* Whose bundles count on this machine (docs/policy.md, "Bundles"): a list of objects; and one more,
 * or (key NULL) one less. */
#define PUBLISHERS_MAX 64
struct publisher_change {
    const struct public_key *key; /* to trust; NULL: not any more */
    const char *key_id;
    const char *name; /* for people */
};
int govern_publishers(const char *root_dir, struct arena *mem, const struct json **out,
                      struct err *err) MUST_CHECK;
int govern_publisher_change(struct govern *govern, const struct request *request,
                            const struct publisher_change *change, struct run *run,
                            struct err *err) MUST_CHECK;
/* Whether a bundle counts now: its publisher is trusted, its time not over and, unless what it is
 * for stands already, no later version was applied. -1: it does not; *why and err say why. */
struct policy_bundle;
struct bundle_place {
    const char *root_dir;
    const char *state_dir;
    bool stands;
    bool keeps_time; /* what time it is is written down, for a clock that is put back later */
};
int govern_bundle_check(const struct bundle_place *place, const struct policy_bundle *bundle,
                        enum reason *why, struct err *err) MUST_CHECK;

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

/* What runs may use together (flow/budget). The operator's own limits, which hold beside those of
 * any policy: set, or (all zero) taken away. */
int govern_budget_limit(struct govern *govern, const struct request *request,
                        const struct budget_limit *limit, struct run *run,
                        struct err *err) MUST_CHECK;
int govern_budget_price(struct govern *govern, const struct request *request,
                        const struct budget_prices *prices, struct run *run,
                        struct err *err) MUST_CHECK;
struct budget_reset {
    enum budget_scope scope;
    const char *name; /* NULL: of everybody */
};
int govern_budget_reset(struct govern *govern, const struct request *request,
                        const struct budget_reset *reset, struct run *run,
                        struct err *err) MUST_CHECK;
/* Where all of it was lost (budgets_open): begins with no limits and nothing used. */
int govern_budget_renew(struct govern *govern, const struct request *request, struct run *run,
                        struct err *err) MUST_CHECK;
/* How it stands; runs that ended without their Brig are settled first. */
struct budget_state {
    struct budget_limit *limits; /* the operator's */
    size_t limit_n;
    const struct budget_limit *policy_limits; /* of the governor's policy */
    size_t policy_limit_n;
    struct budget_prices prices;
    struct budget_account *accounts;
    size_t account_n;
};
int govern_budgets(struct govern *govern, struct arena *mem, struct budget_state *out,
                   struct err *err) MUST_CHECK;

/* From now on new effects of a principal, a tenant or everybody are refused (SYSTEM_FROZEN), or no
 * longer; what runs goes on, and ending things stays possible. The list is that of root_dir; *entry
 * becomes what stands in it, or stood until now: since when, and by whom. */
struct frozen;
int govern_freeze(struct govern *govern, const struct request *request, const char *root_dir,
                  struct frozen *entry, struct run *run, struct err *err) MUST_CHECK;
int govern_unfreeze(struct govern *govern, const struct request *request, const char *root_dir,
                    struct frozen *entry, struct run *run, struct err *err) MUST_CHECK;

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

/* ---- advisory sessions (flow/advise, docs/advisory.md) ---- */

struct advise;
struct advise_terms;
struct advise_action;
/* Begins one: its chain has its beginning in the ledger, as an intent with the session's id. */
int govern_advise_start(struct govern *govern, const struct request *request,
                        const struct advise_terms *terms, struct run *run, struct advise **out,
                        struct err *err) MUST_CHECK;
/* Its end in the ledger: how many events there were, and the hash of the last. Twice is once. */
int govern_advise_end(struct govern *govern, const struct request *request, struct advise *advise,
                      const char *why, struct run *run, struct err *err) MUST_CHECK;

/* A person's word on what an agent asked for, by the principal of the request, or by a custodian
 * who has signed advise_preimage(). Confirmed, it is done now, once, and *out says what became of
 * it. */
struct advise_decision {
    const char *action;
    bool confirm;
    struct str words;      /* exactly what was said: HUMAN_CONFIRMED: true, or it is aborted */
    const char *digest;    /* what was looked at, or NULL */
    const char *custodian; /* or NULL */
    struct signature signature;
};
int govern_advise_decide(struct govern *govern, const struct request *request,
                         struct advise *advise, const struct advise_decision *decision,
                         struct run *run, struct advise_action *out, struct err *err) MUST_CHECK;

/* Tells whoever is to be told (flow/notify) of one that waits for a custodian. */
void govern_advise_tell(struct govern *govern, const char *tenant, const struct advise *advise,
                        const struct advise_action *action);

/* An agent program in a box of its own, spoken with line by line. */
struct advise_answer;
struct advise_talk {
    const char *program; /* on this machine; a copy of it runs, and its hash is the version */
    struct words args;
    const char *input; /* folder shown at /sandbox/input, or NULL */
    int stop_fd;       /* readable once it is to end; is never read here */
    void *context;
    /* What is said to it next: 1, or 0 when nothing more is. The text lives until it is asked
     * again. Neither this nor the others wait any longer once it is to end, or the session's time
     * (until_us of clock_us()) is over: that is ERR_TIMEOUT here. agent_fd hangs up when there is
     * no agent any more, and is never read here: what comes of that is not this one's to say. */
    int (*next)(void *context, uint64_t until_us, int agent_fd, struct str *out, struct err *err);
    /* What it answered, or asked for, or what became of that. Any may be NULL. */
    void (*on_answer)(void *context, const struct advise_answer *answer);
    void (*on_action)(void *context, const struct advise *advise,
                      const struct advise_action *action);
};
/* terms->agent_version is not looked at. The session has ended when it returns, and *out is it; the
 * box's own run is *run. One that was to end has ended by ADVISE_INTERRUPTED. */
int govern_advise_run(struct govern *govern, const struct request *request,
                      const struct advise_terms *terms, const struct advise_talk *talk,
                      struct run *run, struct advise **out, struct err *err) MUST_CHECK;

/* Sessions the ledger knows both ends of, oldest first: one by its id, or those of an agent, or
 * all. A ledger that does not hold is ERR_INTEGRITY; one session that was asked for and has no end
 * is ERR_CONFLICT, others without end are counted and left out. What it points to lives in mem. */
struct anchor;
struct advise_known {
    const char *id;
    const struct anchor *anchor;
};
struct advise_choice {
    const char *run_id;   /* or NULL */
    const char *agent_id; /* or NULL */
    uint64_t last;        /* so many; 0: all */

    const struct advise_known *runs;
    size_t run_n;
    size_t open_n;
};
int govern_advise_choose(struct govern *govern, struct arena *mem, struct advise_choice *choice,
                         struct err *err) MUST_CHECK;
/* Opens one: its chain holds and ends where the ledger says, or it is ERR_INTEGRITY. */
int govern_advise_believed(struct govern *govern, const struct advise_known *known,
                           struct advise **out, struct err *err) MUST_CHECK;

/* What the ledger has of all sessions now; from a ledger that holds, or it is ERR_INTEGRITY. */
struct advise_ledger;
int govern_advise_ledger(struct govern *govern, struct arena *mem, struct advise_ledger **out,
                         struct err *err) MUST_CHECK;
/* Whether a session that was opened after that is one of them: it begins there, and when it has its
 * end there it is what it was then. Else ERR_INTEGRITY. */
int govern_advise_agrees(struct govern *govern, struct advise_ledger *ledger,
                         const struct advise *advise, struct err *err) MUST_CHECK;

/* ---- the deployment gate (docs/advisory.md) ---- */

struct gate_report;
struct gate_signoff;
/* What the last n runs of an agent (0: ten; version NULL: of its last run) say about it. */
int govern_gate_report(struct govern *govern, struct arena *mem, const char *agent_id,
                       const char *version, unsigned n, struct gate_report *out,
                       struct err *err) MUST_CHECK;
/* And the words on exactly that: all there are, with the reason when one does not count. */
struct gate_words {
    struct json *list;
    unsigned valid;
    const char *custodians[16];
};
int govern_gate_look(struct govern *govern, struct arena *mem, const char *agent_id,
                     const char *version, unsigned n, struct gate_report *report,
                     struct gate_words *words, struct err *err) MUST_CHECK;
/* ERR_FORBIDDEN: whatever he signs of this report, it would not count. */
int govern_gate_may_sign(struct govern *govern, const struct gate_report *report,
                         const char *custodian, struct err *err) MUST_CHECK;
/* A custodian's word; ERR_FORBIDDEN: a condition is not met, or it is not his to give. */
int govern_gate_sign(struct govern *govern, const struct request *request,
                     const struct gate_report *report, const struct gate_signoff *signoff,
                     const struct signature *signature, struct run *run,
                     struct err *err) MUST_CHECK;
/* ERR_FORBIDDEN: a condition is not met, the sixth included. */
int govern_gate_release(struct govern *govern, const struct request *request,
                        const struct gate_report *report, struct run *run,
                        struct err *err) MUST_CHECK;
int govern_gate_revoke(struct govern *govern, const struct request *request, const char *agent_id,
                       struct run *run, struct err *err) MUST_CHECK;
/* What the policy's mode makes of a verdict. Whether an agent is released is not looked at. */
void govern_check_mode(struct run *run);

/* NULL: a release of this version (NULL: any) stands at this moment, on *out. Else why not. */
const char *govern_gate_stands(struct govern *govern, struct arena *mem, const char *agent_id,
                               const char *version, struct gate_report *out);

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
