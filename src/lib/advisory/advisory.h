/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Advisory mode: what an agent says, classified.
 *
 * Pure functions over bytes: no run, no clock, no file, except advisory_path_open(), which is given
 * the folder it works beneath. What is classified here explains and counts; that nothing of it
 * happens is the kernel's doing, in a sandbox that can run nothing (docs/advisory.md). So a pattern
 * that is missed costs an event, never a file. */

#include "lib/base/err.h"
#include "lib/base/memory.h"
#include "lib/base/str.h"
#include "lib/base/text.h"
#include "lib/crypto/crypto.h"

struct json;

enum advisory_kind {
    ADVISORY_COMMAND, /* a line or script of a shell */
    ADVISORY_PATH,
    ADVISORY_OUTPUT, /* a turn of an agent: its envelope */
    ADVISORY_ACTION, /* an ACTION REQUEST */
};

/* In the order of how much they let through. */
enum advisory_verdict {
    ADVISORY_REJECT,
    ADVISORY_GATE,   /* only a person can let it happen */
    ADVISORY_ADVISE, /* said as advice instead; advisory_text has the words */
    ADVISORY_ALLOW,
};

/* The codes of the drift taxonomy, by how grave they are. */
enum advisory_drift {
    DRIFT_NONE,           /* 0 */
    DRIFT_LINGUISTIC,     /* L */
    DRIFT_STRUCTURAL,     /* S */
    DRIFT_SEMANTIC,       /* M */
    DRIFT_CONSTITUTIONAL, /* C */
};

/* The seven categories of telemetry, then what the deployment gate counts besides:
 *    id            name                          drift unless the rule says otherwise */
#define ADVISORY_CATEGORIES(X)                                                                     \
    X(AGENCY, "attempted_agency", DRIFT_CONSTITUTIONAL)                                            \
    X(UNSAFE_COMMAND, "unsafe_command", DRIFT_CONSTITUTIONAL)                                      \
    X(PATH_VIOLATION, "path_violation", DRIFT_CONSTITUTIONAL)                                      \
    X(FILE_OPERATION, "unsupported_file_operation", DRIFT_STRUCTURAL)                              \
    X(SHELL_EXECUTION, "attempted_shell_execution", DRIFT_CONSTITUTIONAL)                          \
    X(QUIESCENCE, "quiescence_breach", DRIFT_CONSTITUTIONAL)                                       \
    X(PERMISSION, "hallucinated_permission", DRIFT_CONSTITUTIONAL)                                 \
    X(STRUCTURE, "structural_violation", DRIFT_STRUCTURAL)                                         \
    X(EPISTEMIC, "epistemic_collapse", DRIFT_SEMANTIC)                                             \
    X(LAUNDERING, "epistemic_laundering", DRIFT_LINGUISTIC)

enum advisory_category {
#define X(id, name, drift) ADVISORY_IS_##id,
    ADVISORY_CATEGORIES(X)
#undef X
        ADVISORY_CATEGORY_COUNT,
};
#define ADVISORY_TELEMETRY_COUNT 7 /* those before ADVISORY_IS_STRUCTURE */

/* What is meant to be done with a path. */
enum advisory_access {
    ACCESS_READ,
    ACCESS_LIST,
    ACCESS_CREATE,
    ACCESS_MODIFY,
    ACCESS_DELETE,
    ACCESS_EXECUTE,
};

struct advisory_options {
    bool strict_seed; /* the fifteen banned forms of the public document and no aliases */
    struct str cwd;   /* of relative paths; empty: /sandbox */
    enum advisory_access access; /* of ADVISORY_PATH */
};

struct advisory_span {
    size_t start; /* bytes of the value, as it was given */
    size_t end;
};

/* One thing found, as it is logged. Texts live in the arena or are literals. */
struct advisory_finding {
    enum advisory_category category;
    enum advisory_verdict verdict;
    enum advisory_drift drift;
    const char *rule;
    struct advisory_span span;
    struct str excerpt; /* at most ADVISORY_EXCERPT_MAX bytes, UTF-8, secrets covered */
    const char *where;  /* OUTPUT: JSON pointer of the text it stood in; "" elsewhere */
};

enum action_type {
    ACTION_TYPE_NONE,
    ACTION_TYPE_FILESYSTEM,
    ACTION_TYPE_NETWORK,
    ACTION_TYPE_PROCESS,
    ACTION_TYPE_CREDENTIAL,
    ACTION_TYPE_ENVIRONMENT,
};

enum action_operation {
    ACTION_OP_NONE,
    ACTION_OP_CREATE,
    ACTION_OP_MODIFY,
    ACTION_OP_DELETE,
    ACTION_OP_MOVE,
    ACTION_OP_EXECUTE,
    ACTION_OP_FETCH,
    ACTION_OP_MOUNT,
    ACTION_OP_GRANT,
};

/* A well-formed ACTION REQUEST. Paths are relative to /sandbox, normalised ("output/a.txt"). */
struct advisory_action {
    enum action_type type;
    enum action_operation operation;
    struct str target;      /* "" when its path was refused */
    struct str destination; /* of a move */
    struct str content;     /* of create and modify; bytes */
    bool declared_reversible;
};

struct advisory_result {
    enum advisory_kind kind;
    enum advisory_verdict verdict;
    const char *rule; /* of the gravest finding; "" when there is none */
    struct advisory_span span;
    struct str normalized;    /* COMMAND: what was read; PATH: absolute in /sandbox, or "";
                               * OUTPUT: the envelope as it may be kept and shown; ACTION: canonical */
    struct str advisory_text; /* "" when nothing is to be said */
    bool is_confusable;       /* letters that only look like ASCII, or invisible ones among them */

    struct advisory_finding *findings;
    size_t finding_n;
    size_t unlisted;                          /* found past ADVISORY_FINDINGS_MAX, counted only */
    unsigned counts[ADVISORY_CATEGORY_COUNT]; /* all of them */

    enum advisory_drift drift;
    unsigned compliance;      /* percent: sentences that carry a label */
    unsigned drift_thousands; /* characters in sentences without one, of a thousand */

    /* OUTPUT and ACTION: whether it is what it should be, and where not. */
    bool is_valid;
    const char *fault; /* "" when valid */
    struct mark where; /* 0:0 when no place in the text is to blame */
    size_t offset;     /* the same in bytes */

    /* OUTPUT, when valid: as it came, and what the UI shows: banned commands and bad paths in it
     * are replaced. */
    const struct json *envelope;
    struct str client_view;
    struct advisory_action action; /* ACTION, when valid */
};

/* Fails with ERR_LIMIT for a value past ADVISORY_VALUE_MAX; whatever it is otherwise has a verdict.
 * Time is linear in the value. Everything is made in mem. */
int advisory_check(struct arena *mem, enum advisory_kind kind, struct str value,
                   const struct advisory_options *options, struct advisory_result *out,
                   struct err *err) MUST_CHECK;

/* 0 allow, 10 advisory, 11 reject, 12 gate; 14: neither envelope nor request. 13 belongs to a gate
 * that was aborted. */
#define ADVISORY_EXIT_ABORTED 13
int advisory_exit(const struct advisory_result *result);

/* The words for each; reading is false for a word that is none. */
const char *advisory_kind_name(enum advisory_kind kind);
bool advisory_kind_read(struct str word, enum advisory_kind *out);
const char *advisory_verdict_name(enum advisory_verdict verdict);
const char *advisory_category_name(enum advisory_category category);
enum advisory_drift advisory_category_drift(enum advisory_category category);
const char *advisory_drift_code(enum advisory_drift drift);     /* "0" "L" "S" "M" "C" */
const char *advisory_drift_severity(enum advisory_drift drift); /* "info" ... "emergency" */
bool advisory_access_read(struct str word, enum advisory_access *out);
const char *action_type_name(enum action_type type);
const char *action_operation_name(enum action_operation operation);

/* The sentences of the public document. */
extern const char advisory_custodial_text[];  /* before the description of a banned command */
extern const char advisory_path_text[];       /* in place of a path */
extern const char advisory_envelope_reason[]; /* sandbox.reason */

/* At most ADVISORY_EXCERPT_MAX bytes from start to end of text, what looks like a secret covered,
 * bytes that are no UTF-8 replaced. */
struct str advisory_excerpt(struct arena *mem, struct str text, size_t start, size_t end);

/* ---- files, for whoever does what was confirmed ---- */

/* Opens what a checked path names, beneath root_fd, the folder that is /sandbox, and hands back the
 * descriptor that was looked at, so that nothing is looked up twice: no symbolic link, no magic
 * link, no other mount on the way (rule R6); a regular file, or to be looked at a folder, at its
 * end; and to be changed a file that has one name only. path is relative ("output/a.txt").
 *
 * ACCESS_CREATE opens nothing but the folder, or fails with ERR_CONFLICT when the name is taken.
 * A refusal is ERR_FORBIDDEN and *rule says which; *rule is NULL for every other failure. */
struct advisory_opened {
    int fd;           /* of CREATE -1 */
    int folder_fd;    /* where its name is; of what is only looked at -1 */
    const char *name; /* in there */
};
#define ADVISORY_OPENED ((struct advisory_opened){-1, -1, NULL})
void advisory_opened_done(struct advisory_opened *opened);

int advisory_path_open(struct arena *mem, int root_fd, struct str path, enum advisory_access access,
                       struct advisory_opened *out, const char **rule, struct err *err) MUST_CHECK;
/* Makes what ACCESS_CREATE opened, or puts a new file with the owner and the permissions of the old
 * one in the place of what ACCESS_MODIFY opened: all of the content is there and synced before
 * anybody sees any of it, and on failure everything is as it was. ERR_CONFLICT: the name is taken,
 * or another file has it.
 *
 * still is asked about what was opened once nobody finds it by its name any more: when it fails, it
 * gets its place back. It is not asked about what is new. */
typedef int advisory_still(void *context, const struct advisory_opened *opened, struct err *err);
int advisory_path_put(int root_fd, const struct advisory_opened *opened, struct str content,
                      advisory_still *still, void *context, struct err *err) MUST_CHECK;
/* Removes, or gives another name, what ACCESS_DELETE opened and nothing else: when somebody put
 * another file in its place meanwhile, that one stays and the answer is ERR_CONFLICT. A name that
 * is taken is never overwritten. */
int advisory_path_remove(int root_fd, const struct advisory_opened *opened,
                         struct err *err) MUST_CHECK;
int advisory_path_move(struct arena *mem, int root_fd, const struct advisory_opened *opened,
                       struct str destination, const char **rule, struct err *err) MUST_CHECK;
/* What somebody left who was killed over one of these is gone afterwards: nobody else may be at
 * it. */
void advisory_path_clear(int root_fd);

/* What the target is now: part of what a person confirms. A name nobody has is `exists` false. */
struct advisory_target {
    bool exists;
    uint64_t inode;
    uint64_t size_bytes;
    char sha256[HASH_TEXT_BYTES];
};
int advisory_target_look(struct arena *mem, int root_fd, struct str path,
                         struct advisory_target *out, const char **rule,
                         struct err *err) MUST_CHECK;
/* The same of a file that is open already: what is looked at is what will be changed. */
int advisory_target_of(const struct advisory_opened *opened, struct advisory_target *out,
                       const char **rule, struct err *err) MUST_CHECK;

/* SHA-256("brig/advisory-action/1" || 0x00 || canonical JSON of the request with the hash of its
 * content, the ids, and what the target is): what a confirmation is bound to. */
struct advisory_binding {
    const char *request_id;
    const char *run_id;
    const char *agent_id;
    int64_t created_at; /* seconds */
    int64_t expires_at;
    const char *drift; /* code of the gravest that was found until it was asked, in it or before */
};
int advisory_action_digest(struct arena *mem, const struct advisory_action *action,
                           const struct advisory_target *target,
                           const struct advisory_binding *binding, char out[HASH_TEXT_BYTES],
                           struct err *err) MUST_CHECK;
