/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The nouns a run hands along: action, verdict, plan, posture, outcome, and the run itself.
 *
 * A run belongs to whoever called run_init(); everything its members point to lives in its
 * arena. Each stage fills its own member and reads the earlier ones. */

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/memory.h"
#include "lib/base/str.h"
#include "model/demand.h"
#include "model/facts.h"
#include "model/limits.h"
#include "model/offer.h"
#include "model/reason.h"

struct json;

#define MODEL_HASH_BYTES 72       /* "sha256:", 64 hex digits, NUL */
#define MODEL_SIGNATURE_BYTES 129 /* 128 hex digits, NUL */

/* ---- action: filled by admit ---- */

enum mount_access {
    MOUNT_RO, /* zero is the closed side */
    MOUNT_RW,
};

struct mount_ask {
    const char *source; /* on the host, as written */
    const char *target; /* inside, absolute */
    enum mount_access access;
};

/* The image that is this machine's own system directories, and the provider without walls. */
#define IMAGE_HOST "host"
#define PROVIDER_HOST "host"

#define WORKSPACE_TARGET "/workspace"
#define HOME_TARGET "/home/sandbox"
#define ADVISORY_AGENT_TARGET "/sandbox/agent"
#define ADVISORY_INPUT_TARGET "/sandbox/input"
#define ADVISORY_OUTPUT_TARGET "/sandbox/output"
#define ADVISORY_SCRATCH_TARGET "/sandbox/tmp"
#define MIRROR_LAYER "workspace" /* name of the layer a mirrored one is in */

/* The folder a run works on, shown at WORKSPACE_TARGET. */
enum workspace_kind {
    WORKSPACE_UNSET,
    WORKSPACE_NONE,   /* an empty folder that stays empty */
    WORKSPACE_BIND,   /* one of the mounts that were asked for */
    WORKSPACE_MIRROR, /* a copy in a layer of the sandbox's own */
};

enum network_ask {
    NETWORK_NONE,    /* closed, whatever the policy says */
    NETWORK_POLICY,  /* by the policy's network rules; without any it is refused */
    NETWORK_DEFAULT, /* not said: by the policy's network rules, closed when it has none */
};
const char *network_name(enum network_ask ask); /* "none", "policy", "default" */

enum stdin_kind {
    STDIN_EMPTY,  /* the command reads end of file at once */
    STDIN_STREAM, /* bytes arrive while it runs; their hash is in the outcome */
};

/* What is to happen. Everything but a plain run names a sandbox that is kept. */
enum action_kind {
    ACTION_RUN, /* one command in a sandbox of its own */
    ACTION_CREATE,
    ACTION_EXEC,
    ACTION_PAUSE,
    ACTION_RESUME,
    ACTION_EXTEND,
    ACTION_DESTROY,
    ACTION_FILES, /* a file of it read, written or looked at: verb and path say which */
    ACTION_PORT,  /* connections to a port inside */
    ACTION_SNAPSHOT,
    ACTION_RESTORE,
    ACTION_SNAPSHOT_REMOVE,
    ACTION_SNAPSHOT_EXPORT,
    ACTION_SNAPSHOT_IMPORT,
    ACTION_IMAGE_PULL, /* images; no sandbox is part of it */
    ACTION_IMAGE_IMPORT,
    ACTION_IMAGE_REMOVE,
    ACTION_IMAGE_EXPORT,
    ACTION_TOKEN_CREATE, /* who may knock; no sandbox is part of it */
    ACTION_TOKEN_REVOKE,
    ACTION_APPROVE, /* a person's word; no sandbox is part of it */
    ACTION_REJECT,
    ACTION_ENROLL,  /* and who that person is */
    ACTION_DISMISS, /* and is no longer */
    ACTION_POLICY,  /* which rules stand; no sandbox is part of it */
    ACTION_FREEZE,  /* whose new effects are refused; no sandbox is part of it */
    ACTION_UNFREEZE,
    ACTION_BUDGET,    /* what may be used together; no sandbox is part of it */
    ACTION_PROPOSE,   /* a command somebody asks about, before it is run; nothing happens */
    ACTION_TOOL,      /* a call of a tool that is not ours, likewise */
    ACTION_PREPARE,   /* a sandbox built ahead, for whoever asks for exactly it */
    ACTION_VAULT_SET, /* the vault; no sandbox is part of it */
    ACTION_VAULT_ROTATE,
    ACTION_VAULT_BIND,
    ACTION_VAULT_UNBIND,
    ACTION_VAULT_REMOVE,
    ACTION_VAULT_REKEY,
    ACTION_ELEVATE,    /* one command on the machine itself, without walls */
    ACTION_SECRET_USE, /* a secret went into a request of a sandbox's */
    ACTION_ADVISE,     /* an advisory session: its intent is its beginning, its outcome its end */
    ACTION_ADVISE_ACT, /* what a person confirmed in one, or did not */
    ACTION_GATE_SIGN,  /* a custodian's word on an agent's report */
    ACTION_GATE_RELEASE,
    ACTION_GATE_REVOKE,
    ACTION_APPROVAL_EXPIRE, /* nobody said anything in time; no sandbox is part of it */
    ACTION_APPROVALS_RENEW, /* what waits and who is a custodian was lost, and begins anew */
};

const char *action_name(enum action_kind kind);
/* Ends something, or says who may: goes on where everything else is frozen. */
bool action_thaws(enum action_kind kind);
bool action_keeps(enum action_kind kind); /* makes a sandbox that stays */
/* Is only judged: its receipt is a decision, and nothing follows. */
bool action_is_question(enum action_kind kind);

/* How long a kept sandbox lives; 0: no such bound. */
struct lifetime {
    uint64_t ttl_ms;  /* from creation or the last extension */
    uint64_t idle_ms; /* without a process in it */
    uint64_t max_ms;  /* from creation, whatever is extended */
};

struct action {
    enum action_kind kind;
    const char *sandbox; /* id of the kept sandbox; NULL for RUN and CREATE */
    const char *config;  /* CREATE: what it is made from, kept with it */
    const char *name;    /* CREATE: what people call it; NULL, "": nothing */
    const char *base;    /* snapshot it stands on, or that the action is about; NULL: none */
    struct lifetime lifetime;
    uint64_t extend_ms;
    bool keep_background;      /* EXEC: what it leaves running stays */
    bool detach;               /* EXEC: it goes on without its caller */
    uint64_t approval_wait_ms; /* how long its caller waits for a person, if one must confirm it */
    bool no_pool;              /* RUN, CREATE: build it, even if there is one */
    uint64_t wall_ms;          /* EXEC: its own time; 0: the one the sandbox was made with */
    const char *verb;          /* FILES: "cat", "cp-in", … */
    const char *path;          /* FILES: inside, as written */
    const char *other;         /* FILES: the other path of a move or copy, or NULL */
    uint16_t port;             /* PORT: inside */
    const char *principal;
    const char *made_by; /* who made the token it came with; NULL, "": none, or nobody knows */
    const char *tenant;
    const char *provider;
    const char *image;  /* "host"; IMAGE_…: the one it is about, or "" when it is not known yet */
    struct words argv;  /* exactly what runs; TOOL: the words rules see */
    const char *tool;   /* TOOL: its name */
    const char *effect; /* TOOL: what its caller says it has; NULL: nothing */
    char args_hash[MODEL_HASH_BYTES]; /* TOOL: over its arguments, canonical */
    struct words env;                 /* "K=V", sorted, only what was asked for */
    const char *user;                 /* "USER[:GROUP]", names or numbers; NULL: not said */
    const char *workdir;              /* inside; NULL: the default */
    const struct mount_ask *mounts;
    size_t mount_n;
    enum workspace_kind workspace;
    const char *workspace_source; /* MIRROR: on the host, as written */
    bool allow_protected;         /* files that host tools run by themselves may be changed */
    const struct words *held;     /* the protected places it was made with; NULL: find them */
    enum network_ask network;
    bool sockets_none; /* asked for; a profile can ask, too */
    bool advisory;     /* RUN: an agent that may only advise; see plan.exec_once */
    bool is_refusal;   /* a no, or less trust: lets nothing happen that did not */
    enum stdin_kind stdin_kind;
    bool tty;
    uint16_t tty_rows, tty_columns; /* at first; 0: not said. Not part of what is asked for */
    struct limits limits;           /* what flags asked for; value 0: not asked */
    char request_hash[MODEL_HASH_BYTES];
};

/* ---- verdict: filled by decide; all zero is a denial ---- */

enum verdict_kind {
    VERDICT_DENY,
    VERDICT_ASK,
    VERDICT_ALLOW,
};

/* Whose word something needs and how long that may take. */
#define APPROVAL_QUORUM_MAX 5
struct approval_terms {
    const char *group; /* of the policy's approvals */
    struct words by;   /* patterns of principals; none: whoever may confirm at all */
    unsigned quorum;   /* so many different ones; 0: one */
    uint64_t wait_s;   /* how long they have; 0: the default */
    uint64_t use_s;    /* and then who asked; 0: the default */
    bool reason_required;
    bool allow_unbound; /* also what it works on that is too large to be bound by content */
    const struct approval_terms *also; /* who must name a person as well; NULL: nobody */
};

struct verdict {
    enum verdict_kind kind;
    enum reason reason;
    const char *rule;  /* its name, or NULL */
    unsigned line;     /* of the rule in the policy, or 0 */
    const char *text;  /* a sentence with the particulars, or NULL */
    const char *layer; /* "ceiling", "policy", "overlay 1"; NULL: there is but one */
    const struct approval_terms *terms; /* ASK; NULL: one word of whoever may confirm */
};

const char *verdict_name(enum verdict_kind kind); /* "ALLOW", "DENY", "ASK" */

/* ---- plan: filled by equip ---- */

struct guard; /* known to equip only */

enum mount_kind {
    MOUNT_BIND,
    MOUNT_TMPFS,
    MOUNT_PROC,
    MOUNT_DEVPTS,
    MOUNT_LAYER,     /* a folder of the run's own writable layer, on disk */
    MOUNT_READONLY,  /* something below an earlier mount, made read-only in place */
    MOUNT_MASK,      /* something below an earlier mount, covered by nothing */
    MOUNT_PROTECTED, /* something below an earlier bind that host tools run by themselves: read-only
                        in place, or with MOUNT_RW only held in its place, because of what is in it
                      */
    MOUNT_NESTED,    /* came along with an earlier bind */
    MOUNT_SYMLINK,   /* not a mount: a link made in the root */
    MOUNT_FOLDER,    /* not a mount: an empty folder made in the root */
    MOUNT_FILE,      /* not a mount: a small file made in the root */
};

/* A folder below a writable layer: seen through it, never written. */
struct plan_lower {
    const char *path;
    uint64_t device;
    uint64_t inode;
};

/* One thing in the sandbox's file system, in the order in which it is made. */
struct plan_mount {
    enum mount_kind kind;
    enum mount_access access;
    bool noexec;
    bool from_user;     /* asked for by flag or policy, not part of the host root */
    bool is_file;       /* BIND, MASK: it is no directory */
    bool is_device;     /* BIND: a device node that must work */
    const char *source; /* BIND: host path; LAYER: name in the layer; SYMLINK: target; FILE: text */
    const char *target; /* absolute, inside */
    uint64_t device;    /* BIND, PROTECTED: identity of the source that was validated */
    uint64_t inode;
    int fd;              /* BIND, from_user: the validated source, or -1 */
    uint64_t size_bytes; /* TMPFS */
    bool idmapped;       /* BIND, rw, started by root: the source's owner is the user inside */
    uint32_t owner_uid;
    uint32_t owner_gid;
    const struct plan_lower *lowers; /* LAYER: what lies below it, uppermost first */
    size_t lower_n;
    size_t base_n;   /* the first of them, which are a snapshot's: what a sandbox wrote */
    const char *why; /* PROTECTED: who runs it */
    bool is_trust;   /* BIND: in whom programs inside have to trust */
};

#define PLAN_HOLDS_MAX 64

/* Landlock: what may be done beneath a path inside. */
struct plan_path {
    const char *path;
    bool write;
    bool exec;
    bool device;
    bool list_only;
    bool optional; /* left out when it does not exist */
};

#define PLAN_PORTS_MAX 1024

/* The way out: rules as egress compiles them, and what the sandbox is given besides. */
struct plan_egress {
    struct str rules; /* canonical JSON; empty: no network */
    char hash[MODEL_HASH_BYTES];
    const uint16_t *ports; /* those some rule names, ascending */
    size_t port_n;
    bool opens_tls;   /* some rule looks into TLS, so the sandbox has to trust who does */
    struct words env; /* the variables programs find the way by */
    int handover_fd;  /* box's end of the pair over which egress gets its listeners; -1: none */
};
static inline bool plan_has_network(const struct plan_egress *egress)
{
    return egress->rules.n != 0;
}

struct plan {
    const char *provider_version_pin; /* from the profile, or NULL */
    const char *image_digest_pin;     /* from the profile, or NULL */
    const char *image;
    const char *hostname;
    const char *workdir;
    struct words env; /* complete environment of the command */
    struct plan_mount *mounts;
    size_t mount_n;
    const struct plan_path *paths;
    size_t path_n;
    struct limits limits;
    struct rlimit_fact rlimits[RLIMITS_MAX];
    size_t rlimit_n;
    uint32_t inside_uid; /* whom the command is inside, */
    uint32_t inside_gid;
    const char *user_name; /* and what it is called there */
    const char *home;
    bool demand_observed; /* what a provider merely claims is not enough */
    bool allow_protected; /* by the action or by the profile */
    bool sockets_none;    /* the command can make no socket */
    bool exec_once;       /* no process of it runs another program, whatever it is */
    struct guard
        *guard;  /* protected files as they were, for looking again; NULL: none to look at */
    int hold_fd; /* keeps the image in its store while the sandbox exists; -1: none */
    int base_holds[PLAN_HOLDS_MAX]; /* the same for the snapshots below it */
    size_t base_hold_n;
    const char *mirror_source; /* CREATE with a mirror: the folder that was validated */
    int mirror_fd;             /* and itself; -1: none */
    struct plan_egress egress;
};

/* User and group 1000 unless somebody says otherwise. */
#define INSIDE_ID 1000U
static inline bool plan_is_usual_user(const struct plan *plan)
{
    return plan->inside_uid == INSIDE_ID && plan->inside_gid == INSIDE_ID;
}

/* ---- posture: planned by equip, observed by the provider ---- */

enum evidence {
    EVIDENCE_NONE,
    EVIDENCE_CLAIMED,  /* the provider says so */
    EVIDENCE_OBSERVED, /* read back or probed by us */
};

struct posture {
    char provider_version[192];
    char sandbox_spec_hash[MODEL_HASH_BYTES];
    char image_digest[MODEL_HASH_BYTES];
    char mounts_hash[MODEL_HASH_BYTES];
    char egress_policy_hash[MODEL_HASH_BYTES];
    char resource_limits_hash[MODEL_HASH_BYTES];
    char preimage_hash[MODEL_HASH_BYTES]; /* over the six above joined by '|' */
    enum evidence evidence;
};

/* One line of a preflight: what was expected, what was seen. */
struct check {
    const char *name;
    enum reason reason; /* the denial when it fails */
    const char *expected;
    const char *observed;
    bool passed;
};

#define CHECKS_MAX 32

struct checks {
    struct check of[CHECKS_MAX];
    size_t n;
};

/* ---- outcome: filled by execute ---- */

struct stream_result {
    uint64_t bytes;              /* all of them */
    char hash[MODEL_HASH_BYTES]; /* over all of them */
    struct str kept;             /* the first output_bytes of them, when asked to keep */
    bool truncated;
    bool unread; /* its reader was left behind */
};

/* What a FILES or PORT action moved. */
struct moved {
    uint64_t bytes;              /* content of files; over a port: into the sandbox */
    uint64_t bytes_out;          /* over a port: out of it */
    uint64_t entries;            /* files, folders and links; over a port: connections */
    uint64_t skipped;            /* special files, links that lead out; connections refused */
    uint64_t conflicts;          /* of a workspace: changes that were left alone */
    uint64_t unsteady;           /* files that never held still, and were left out */
    const char *left_out;        /* the first of those, for people; NULL: none */
    bool is_tree;                /* hash is over all entries, see docs/formats/receipt.md */
    char hash[MODEL_HASH_BYTES]; /* of the content; "": none moved */
};

/* What became of files that host tools run by themselves, below folders that could be written. */
enum protected_kind {
    PROTECTED_NEW,
    PROTECTED_CHANGED,
    PROTECTED_REMOVED,
};

struct protected_change {
    const char *path; /* inside */
    enum protected_kind kind;
    char hash[MODEL_HASH_BYTES]; /* of what is there now; "": removed */
};

struct protected_changes {
    bool looked;
    bool incomplete; /* there was more to look at than there is patience */
    uint64_t count;  /* all of them; n are listed */
    const struct protected_change *of;
    size_t n;
};

/* What went out and what was kept from it. */
struct egress_counts {
    uint64_t requests; /* judged: connections, requests, names */
    uint64_t refused;
    uint64_t bytes_out;
    uint64_t bytes_in;
    bool lost;  /* whoever counted is gone: there may have been more */
    bool spent; /* what a budget left for it was used up, and something kept back */
};

struct outcome {
    bool started;       /* the command's first instruction ran */
    bool ended;         /* and it has ended */
    bool detached;      /* it runs on; its end is recorded by whoever finds it */
    enum reason reason; /* why it ended otherwise than by itself, or NONE */
    int exit_code;      /* when signal is 0 */
    int signal;
    bool timed_out;
    bool oom_killed;
    uint64_t execs_refused; /* of a plan with exec_once: how often it tried to run a program */
    bool execs_counted;     /* to the last: whoever counts them has told of the end */
    struct stream_result out;
    struct stream_result err;
    char output_hash[MODEL_HASH_BYTES]; /* over out.hash "|" err.hash */
    char stdin_hash[MODEL_HASH_BYTES];
    uint64_t stdin_bytes;
    uint64_t duration_us;
    uint64_t cpu_us;
    bool cpu_is_whole; /* a cgroup of its own counted it: nothing is missing */
    uint64_t peak_memory_bytes;
    uint64_t read_bytes; /* from and to disks, by the command and what it waited for */
    uint64_t written_bytes;
    const char *failure; /* a sentence when Brig or the provider failed, or NULL */
    enum err_code failure_code;
    struct moved moved;
    struct protected_changes protected_changes;
    struct egress_counts egress;
    struct {
        const char *id;     /* of the snapshot that was made or used, or NULL */
        bool live;          /* processes were held still and their files copied */
        uint64_t held_us;   /* for so long */
        const char *digest; /* of the image it left or came in, or NULL */
        uint64_t dropped;   /* files the filter left out, and files it changed */
        uint64_t replaced;
    } snapshot;
    struct {
        const char *reference; /* of the image that came, went or was written, or NULL */
        const char *digest;    /* of its manifest, or NULL */
    } image;
    struct {
        const char *id; /* of the token that was made or revoked, or NULL */
        const char *tenant;
        const char *principal;
        const char *scopes; /* "read,run" */
        int64_t expires_at; /* seconds since 1970; 0: never */
    } token;
    struct {
        const char *id; /* of the approval that was given or refused, or NULL */
        const char *digest;
        const char *requester;
        const char *comment;
        const char *signature;  /* of the custodian, hex, or NULL */
        unsigned confirmations; /* so far, */
        unsigned quorum;        /* of so many; 0: one was enough */
        const char *custodian;  /* that was enrolled, or NULL */
        const char *key_id;
    } approval;
    struct {
        const char *hash;   /* of the policy that holds from now on, or NULL */
        const char *layer;  /* "ceiling", "publisher", "notify" when it is that; NULL: a policy */
        const char *key_id; /* of a publisher; or NULL */
        bool is_standing;   /* else it is the built-in one, or a sandbox's */
        const char *network_hash; /* of a sandbox: of the rules egress has from now on; or NULL */
        uint64_t added, removed, changed; /* entries of network_policies, network_peers */
    } policy;
    struct {
        const char *tenant;    /* that was frozen or unfrozen, "" for all; NULL: none was */
        const char *principal; /* "": everybody of it */
        const char *why;       /* for people, or "" */
    } freeze;
    struct {
        const char *verb; /* "set", "remove", "reset", "price"; NULL: nothing was changed */
        const struct budget_limit *limit; /* that was set or removed; or NULL */
        const char *scope;                /* whose counts were reset; NULL: everybody's */
        const char *name;
        uint64_t prices[3]; /* of a run, a vCPU second, a GiB second */
    } budget;
    struct {
        const char *name;    /* of the secret that was changed or used, or NULL */
        const char *master;  /* where the vault's key is from now on, or NULL */
        const char *binding; /* that came, went or was used, or NULL */
        uint64_t version;    /* of the secret; 0: it is gone */
        const char *at;      /* SECRET_USE: when; and for which request: */
        const char *scheme;
        const char *host;
        unsigned port;
        const char *method;
        const char *path;
        const char *slot;
        const char *pack;
    } vault;
    const struct json *advisory; /* ADVISE…, GATE…: what the receipt says of it, or NULL */
};

/* ---- receipts of the run: filled by record ---- */

struct receipt_ref {
    char id[ID_BYTES];
    char hash[MODEL_HASH_BYTES];
    uint64_t seq;
    uint64_t lamport_clock;
    char timestamp[TIMESTAMP_BYTES];
    char signature[MODEL_SIGNATURE_BYTES];
};

/* ---- how long each part of it took ---- */

/* In the order in which a run meets them. One it does not meet is never entered; each lasts until
 * the next that is. */
enum stage {
    STAGE_ADMIT,
    STAGE_DECIDE,
    STAGE_EQUIP,
    STAGE_APPROVE, /* a person is waited for */
    STAGE_INTEND,  /* the intent becomes durable; a sandbox is being built meanwhile */
    STAGE_PARK,    /* the sandbox stands and is compared with the plan */
    STAGE_EXECUTE,
    STAGE_RECORD,
    STAGE_END,
};
#define STAGES (STAGE_END + 1)
const char *stage_name(enum stage stage);

struct run;

/* Whoever wants to know what became of a run: told once, as it is let go. */
struct run_watch {
    void (*tell)(void *context, const struct run *run); /* or NULL */
    void *context;
    /* From now on a person is waited for, about run->approval.id; or NULL. */
    void (*wait)(void *context, const struct run *run);
};

/* Whoever knows what a run costs at most, in millionths of a currency: asked by decide, and only if
 * a rule is about that. -1: it is not known, and err says why. */
struct cost_source {
    int (*most)(void *context, const struct run *run, uint64_t *out, struct err *err); /* or NULL */
    void *context;
};
/* One that is only said: the context is a uint64_t. */
int cost_as_said(void *context, const struct run *run, uint64_t *out, struct err *err);

struct run {
    struct arena mem;
    char id[ID_BYTES];
    char decision_id[ID_BYTES];
    char effect_id[ID_BYTES];
    char session_id[ID_BYTES];
    char sandbox_id[ID_BYTES];
    struct action action;
    char policy_hash[MODEL_HASH_BYTES];
    int64_t decided_at; /* seconds since 1970 that rules about time see; 0: when they are asked */
    struct cost_source cost_source; /* while it is decided */
    struct verdict verdict;
    struct {
        const char *id; /* what kind of effect it has, as far as its words tell; NULL: not asked */
        unsigned risk;  /* E0 to E4 */
    } effect;           /* filled by decide, next to the verdict */
    struct {
        const char *id; /* of what a person is asked, or was; NULL: nobody needs to be */
        const char *digest;
        const char *by; /* whose word it has, or NULL */
        bool is_hidden; /* people see it once the receipt is there */
    } approval;
    struct {
        bool is_held;          /* something is reserved for it */
        uint64_t wall_ms;      /* all the time that is left for it; 0: its own limit is less */
        uint64_t egress_bytes; /* all that may pass, both ways; 0: no such bound */
        const char *by;        /* whose budget cuts the time, a sentence; or NULL */
        const char *egress_by; /* whose bounds the bytes; or NULL */
    } budget;
    bool is_consulted;    /* deciders outside were asked, about the question it is the plan of */
    struct demand demand; /* filled by decide, next to the verdict */
    struct offer offer;   /* what the chosen provider can do here: filled by execute */
    struct plan plan;
    struct facts intended; /* the plan as facts, by equip */
    struct facts seen;     /* the parked sandbox as facts, by execute */
    struct posture planned;
    struct posture observed;
    struct checks checks;
    struct outcome outcome;
    struct receipt_ref intent;  /* also the only receipt of a run denied before it was planned */
    struct receipt_ref closing; /* outcome, or the denial at preflight */
    uint64_t entered_us[STAGES];
    struct run_watch watch;
};

/* What its policy and the layers around that allow at most of it; 0: they do not say. */
uint64_t run_limit_most(const struct run *run, enum limit_kind kind);
/* Without walls: what was asked for, else the default or what is allowed, whichever is less. */
struct limit run_limit_elevated(const struct run *run, enum limit_kind kind);

void run_init(struct run *run);
void run_done(struct run *run);
void run_enter(struct run *run, enum stage stage);

/* Where a command starts inside, as far as the request says; NULL: where its image says, or at
 * home. */
const char *action_start(const struct action *action);
/* The same as far as it is known; NULL: its image says, which is known once there is a plan. A
 * tool's is that of a project, which is what its rules are about. */
const char *run_start(const struct run *run);
