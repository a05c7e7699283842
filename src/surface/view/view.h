/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How things look from outside: the JSON that the command line and the API both answer with. One
 * place, so that a sandbox is the same object whoever asks. Everything is made in mem. */

#include "lib/base/err.h"
#include "lib/base/memory.h"
#include "lib/base/str.h"
#include "lib/shell/shell.h"
#include "model/reason.h"

struct config;
struct file_entry;
struct file_listing;
struct image;
struct json;
struct kept_exec;
struct kept_process;
struct kept_state;
struct record_check;
struct record_report;
struct run;
struct snapshot;
struct approval;
struct custodian;
struct frozen;
struct token;
struct vault_record;
struct usage;

/* {"error":{"message","type","code","reason_code","details"}}; details may be NULL. */
struct json *view_error(struct arena *mem, const struct err *err, enum reason reason,
                        struct json *details);
/* The reason a code implies by itself. */
enum reason view_reason(enum err_code code);

/* A run that has its receipts: verdict, posture, limits, outcome. */
struct json *view_run(struct arena *mem, const struct run *run);
/* One that goes on without its caller. */
struct json *view_detached(struct arena *mem, const struct run *run);
/* An order to a kept sandbox. */
struct json *view_change(struct arena *mem, const struct run *run);

struct json *view_sandbox(struct arena *mem, const struct config *config,
                          const struct kept_state *state);
struct json *view_exec(struct arena *mem, const struct kept_exec *exec);
struct json *view_process(struct arena *mem, const struct kept_process *process);
const char *view_exec_state(const struct kept_exec *exec);
/* "" for never. */
const char *view_expiry(struct arena *mem, uint64_t left_ms);
/* "2026-11-15T20:59:01Z"; "" for 0. */
const char *view_moment(struct arena *mem, int64_t seconds);
struct json *view_words(struct arena *mem, struct words words);

struct json *view_image(struct arena *mem, const struct image *image);
uint64_t view_image_bytes(const struct image *image); /* of all its layers, unpacked */

struct json *view_snapshot(struct arena *mem, const struct snapshot *snapshot);
/* What came of taking one, going back to one, or taking one in. */
struct json *view_snapshot_made(struct arena *mem, const struct run *run);
/* Whether it was done, and its receipt: of what has no answer of its own. */
void view_put_done(struct arena *mem, struct json *object, const struct run *run);

/* A kept sandbox, and the run that would make it today. */
struct view_explanation {
    const struct config *config;
    const struct kept_state *state;
    const struct run *run;
    bool drift; /* that would be another one */
};
/* Another policy from now on. */
struct json *view_policy_change(struct arena *mem, const struct run *run);

struct json *view_explain(struct arena *mem, const struct view_explanation *explanation);
const char *view_user_origin(const struct view_explanation *explanation);
/* What it cannot do, and what would change that. */
struct view_refusal {
    const char *what;
    const char *change;
};
extern const struct view_refusal view_refusals[];
extern const size_t view_refusal_n;

/* A sandbox that was built and compared: each check, expected and observed. */
struct json *view_preflight(struct arena *mem, const struct run *run);

/* What a policy's text says of itself: valid or not, and where it is wrong. */
struct policy;
struct json *view_policy(struct arena *mem, const struct policy *policy);
struct json *view_policy_error(struct arena *mem, unsigned line, unsigned column,
                               const struct err *err);

/* Verdicts that refuse a run besides its rules: a list of reasons. */
struct verdict;
struct json *view_hindrances(struct arena *mem, const struct verdict *refusals, size_t n);
/* As text where it is UTF-8, else as {"bytes_b64": …}, as in a request (docs/formats/request.md).
 */
void view_push_word(struct arena *mem, struct json *array, const char *word);
/* What the reader of commands makes of one, as members "seen" and "seen_count". */
#define VIEW_SEEN_MAX 64 /* commands that are told one by one, and so many words of each */
#define VIEW_SEEN_WORDS_MAX 32
const char *view_known_name(enum shell_known known);
void view_put_seen(struct arena *mem, struct json *answer, struct words argv);

struct json *view_file(struct arena *mem, const struct file_entry *entry);
struct json *view_listing(struct arena *mem, const struct file_listing *listing);
const char *view_file_type(uint32_t mode);
/* What a transfer has moved, and its receipt. */
void view_put_moved(struct arena *mem, struct json *object, const struct run *run);

struct json *view_verification(struct arena *mem, const struct record_check *check,
                               const struct record_report *report);
/* Nothing is wrong; not knowing whether it is complete is not wrong. */
bool view_is_good(const struct record_report *report);

/* The details of the error that says why it does not hold. */
struct json *view_doubted(struct arena *mem, const struct json *receipt);

/* Without its words. */
struct json *view_token(struct arena *mem, const struct token *token);
/* Without its value. */
struct json *view_secret(struct arena *mem, const struct vault_record *record);
struct json *view_approval(struct arena *mem, const struct approval *approval);
struct json *view_custodian(struct arena *mem, const struct custodian *custodian);
struct advisory_result;
struct advisory_finding;
struct json *view_advisory(struct arena *mem, const struct advisory_result *result);
struct json *view_advisory_finding(struct arena *mem, const struct advisory_finding *finding);

/* What differs in one answer, and in all of them: differences is a list of the former. */
struct advise_difference;
struct advise_replay;
struct json *view_difference(struct arena *mem, const char *run_id,
                             const struct advise_difference *it);
struct json *view_replay(struct arena *mem, const struct advise_replay *replay, size_t sessions,
                         size_t left_out, struct json *differences);
struct json *view_usage(struct arena *mem, const struct usage *usage);
struct budget_state;
/* Of one principal, or (NULL) all. */
struct json *view_budgets(struct arena *mem, const struct budget_state *state,
                          const char *principal);
struct json *view_frozen(struct arena *mem, const struct frozen *entry);

/* ---- what these objects have, for whoever describes them ---- */

enum shape_kind {
    SHAPE_END,
    SHAPE_TEXT,
    SHAPE_BYTES, /* a text; as NAME_b64 in base64 when it is none */
    SHAPE_INT,
    SHAPE_BOOL,
    SHAPE_TEXTS, /* an array of texts */
    SHAPE_ONE,   /* an object of the shape .of */
    SHAPE_LIST,  /* an array of them */
    SHAPE_MAP,   /* an object whose members are all of them */
    SHAPE_ANY,
    SHAPE_ALSO, /* all members of .of are members here */
};

struct shape {
    const char *name;
    const struct shape_member *members; /* ends with SHAPE_END */
};

struct shape_member {
    const char *name;
    enum shape_kind kind;
    const struct shape *of;
    bool optional;
    bool nullable;
};

/* By name; NULL: there is none. */
const struct shape *view_shape(const char *name);
extern const struct shape view_shapes[]; /* ends with a name of NULL */
/* JSON Schema of one; others are referred to as PREFIX and their names. */
struct json *view_schema(struct arena *mem, const struct shape *shape, const char *prefix);
