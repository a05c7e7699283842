/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Advisory sessions: what an agent said, what was found in it, and what people confirmed.
 *
 * One session is a folder of its own, STATE/advisory/ID (docs/formats/advisory-events.md):
 *
 *    session.json       who, which agent, which constitution, which bounds; never changed
 *    constitution       the text that was loaded before the first turn
 *    events.jsonl       telemetry, one event a line, each chained to the one before
 *    turns.jsonl        what was said, for replay and the dataset
 *    actions/ID.json    what it asked for, and what became of that
 *    sandbox/output     what people confirmed, as the agent sees it
 *
 * The ledger holds the two ends of every chain (flow/advisory.c), so that a line, a tail or a whole
 * session that is gone is noticed. Several processes may work on one session: whoever adds to it
 * holds its lock for that long and has read what the others added. */

#include "lib/advisory/advisory.h"
#include "lib/base/clock.h"
#include "lib/base/memory.h"
#include "lib/crypto/crypto.h"

struct json;

#define ADVISE_SESSIONS_MAX 100000
#define ADVISE_EVENTS_MAX 20000
#define ADVISE_EVENTS_BYTES_MAX (32UL * 1024 * 1024)
/* A session is over when it has no more room than this: for one more turn with all its findings,
 * what becomes of every action that waits, and its end. */
#define ADVISE_EVENTS_ROOM 2000
#define ADVISE_EVENTS_BYTES_ROOM (4UL * 1024 * 1024)
#define ADVISE_TURN_BYTES_MAX (128UL * 1024)
#define ADVISE_TURNS_DEFAULT 50
#define ADVISE_TURNS_MAX 1000
#define ADVISE_TURNS_BYTES_MAX (256UL * 1024 * 1024)
#define ADVISE_CONSTITUTION_MAX (256UL * 1024)
#define ADVISE_ACTIONS_MAX 256 /* of one session */
#define ADVISE_DEADLINE_S (60 * 60)
#define ADVISE_IDLE_S (10 * 60) /* between two turns */
#define ADVISE_ACTION_S 300     /* a person has so long */
#define ADVISE_NAME_MAX 128
#define ADVISE_MEMORY_MAX (512UL * 1024 * 1024)

/* ---- one session ---- */

struct advise_terms {
    const char *agent_id;
    const char *agent_version; /* hash of the program, or what a harness says it is */
    const char *requester;
    const char *channel; /* "box" or "api" */
    struct str constitution;
    unsigned turns_max;  /* 0: ADVISE_TURNS_DEFAULT */
    unsigned deadline_s; /* 0: ADVISE_DEADLINE_S */
    unsigned idle_s;     /* 0: ADVISE_IDLE_S */
    unsigned action_s;   /* 0: ADVISE_ACTION_S */
    bool strict_seed;
};

/* What is known of a chain once it was read. */
struct advise_tally {
    uint64_t events;
    char head[HASH_TEXT_BYTES];
    uint64_t counts[ADVISORY_CATEGORY_COUNT];
    uint64_t first[ADVISORY_CATEGORY_COUNT]; /* event that was the first of each; 0: none */
    uint64_t turns;                          /* of the agent */
    uint64_t prompts;                        /* to it */
    uint64_t answered;
    uint64_t invalid;          /* envelopes that were none the first time */
    uint64_t labels_low;       /* turns with less than 95 of 100 sentences labelled */
    unsigned compliance;       /* the lowest of a turn, percent; 100 without any */
    enum advisory_drift drift; /* the gravest */
    bool has_constitution;     /* loaded, and before the first turn */
    bool is_box_gone;          /* of one with a box: what was tried in it is known to the last */
    bool is_ended;
    char ended_by[64]; /* as advise_end() was told; "" before */
    int64_t last_at;   /* of the last event, seconds since 1970 */
};

/* Nothing was found, and every envelope was one the first time. */
bool advise_is_clean(const struct advise_tally *tally);

struct advise {
    char id[ID_BYTES];
    const char *dir;
    struct advise_terms terms; /* constitution is empty here; its hash counts */
    char constitution_sha256[HASH_TEXT_BYTES];
    int64_t created_at;
    const char *intent_id; /* receipt that opened it; "" until it is known */
    struct advise_tally tally;
    struct arena mem;

    /* Of whoever adds. */
    int dir_fd;
    int events_fd;
    uint64_t events_bytes; /* read so far */
    bool is_ours;          /* of a box, made here, and held until it is freed */
};

/* Makes the folder and writes the first events: start, constitution. Until that is so it is
 * called STATE/advisory/.new-ID; whoever is killed meanwhile leaves it like that. */
#define ADVISE_NEW_PREFIX ".new-"
#define ADVISE_FIRST_EVENTS 2
int advise_start(const char *state_dir, const struct advise_terms *terms, struct advise **out,
                 struct err *err) MUST_CHECK;
/* By id. The whole chain is read and must hold: ERR_INTEGRITY. */
int advise_open(const char *state_dir, const char *id, struct advise **out,
                struct err *err) MUST_CHECK;
/* Only what session.json says, which is no proof of anything. */
int advise_glance(const char *state_dir, const char *id, struct advise **out,
                  struct err *err) MUST_CHECK;
void advise_free(struct advise *advise);
AUTO_TYPE(advise)
/* The receipt that opened it: part of session.json from then on. */
int advise_anchored(struct advise *advise, const char *intent_id, struct err *err) MUST_CHECK;

/* Ids of all sessions there are, sorted. */
int advise_each(const char *state_dir, int (*visit)(void *context, const char *id, struct err *err),
                void *context, struct err *err) MUST_CHECK;

/* Reads what was added since, without adding: the chain must hold. */
int advise_refresh(struct advise *advise, struct err *err) MUST_CHECK;

/* ---- turns ---- */

/* What a user or a harness says to the agent. ERR_CONFLICT: the session is over, or its turns are
 * used up. */
int advise_prompt(struct advise *advise, struct str text, struct err *err) MUST_CHECK;

/* What came of one thing the agent said. Texts live in the session's arena. */
struct advise_answer {
    struct advisory_result result;
    struct str client_view; /* the only thing people are shown */
    bool is_unprompted;
    bool is_past_budget;          /* its turns were used up before: it was noted, and is no turn */
    bool is_over;                 /* its turns are used up: the session ends */
    uint64_t first_seq, last_seq; /* of the events it made */
};
/* Judges, stores and logs a turn of the agent; durable when it returns. */
int advise_heard(struct advise *advise, struct arena *mem, struct str text,
                 struct advise_answer *out, struct err *err) MUST_CHECK;

/* Both at once, for a harness that holds the model itself: nobody else's turn comes between. Past
 * its turns it is a quiescence_breach and ERR_CONFLICT; only then *out is written to on failure. */
int advise_exchange(struct advise *advise, struct arena *mem, struct str asked, struct str said,
                    struct advise_answer *out, struct err *err) MUST_CHECK;
/* What would come of it: out->result and out->client_view. Nothing is kept. */
int advise_judge(const struct advise *advise, struct arena *mem, struct str text,
                 struct advise_answer *out, struct err *err) MUST_CHECK;

/* Something that is no turn: output where none was due, claims of a confirmation. */
int advise_note(struct advise *advise, struct arena *mem, enum advisory_category category,
                const char *rule, struct str text, struct err *err) MUST_CHECK;

/* Its box is gone: whether the agent's program was ever begun, and how often a process of it tried
 * to run another one. That is known only then, and counts even if the session is over or has no
 * room for turns any more. A session with a box whose chain does not have it is of a Brig that was
 * killed, or lost its box: what happened last nobody knows. */
#define ADVISE_ATTEMPTS_MAX 1000000000U
int advise_box_gone(struct advise *advise, bool begun, uint64_t attempts,
                    struct err *err) MUST_CHECK;

/* No more turns from here on. *why is for people: "end", "deadline", "idle". ERR_CONFLICT: whoever
 * made it still has it. */
#define ADVISE_ENDED "end" /* all was said that was to be said */
#define ADVISE_INTERRUPTED "interrupted"
#define ADVISE_FAILED "failed" /* whoever spoke with it could not go on */
int advise_end(struct advise *advise, const char *why, struct err *err) MUST_CHECK;

/* ---- what it asks for ---- */

#define ADVISE_STATES(X)                                                                           \
    X(ABORTED, "aborted")                                                                          \
    X(PENDING, "pending")                                                                          \
    X(CONFIRMED, "confirmed")                                                                      \
    X(REJECTED, "rejected")                                                                        \
    X(EXPIRED, "expired")

enum advise_state {
#define X(id, name) ADVISE_##id,
    ADVISE_STATES(X)
#undef X
        ADVISE_STATE_COUNT
};
const char *advise_state_name(enum advise_state state);

/* What it points to lives in the arena it was read into. */
struct advise_action {
    const char *id;
    const char *digest;
    enum advise_state state;
    struct str request; /* canonical JSON, as the agent made it */
    int64_t created_at;
    int64_t expires_at;
    const char *drift;      /* code of the gravest the session had when it was asked, with it */
    const char *decided_by; /* or "" */
    const char *why;        /* of what became of it, for people; or "" */
    bool is_done;           /* it was carried out */
};

/* Checks a request and, when only a person can let it happen, keeps it: *out is PENDING then. What
 * cannot be is REJECTED at once. ERR_LIMIT: the session has asked ADVISE_ACTIONS_MAX times. */
int advise_ask(struct advise *advise, struct arena *mem, struct str request,
               struct advise_answer *answer, struct advise_action *out, struct err *err) MUST_CHECK;
int advise_action_show(struct advise *advise, struct arena *mem, const char *id,
                       struct advise_action *out, struct err *err) MUST_CHECK;
int advise_action_each(struct advise *advise,
                       int (*visit)(void *context, const struct advise_action *action,
                                    struct err *err),
                       void *context, struct err *err) MUST_CHECK;
/* What a pending one means, in Brig's words and not the agent's: type, operation, target and
 * destination as they were understood, content_bytes, content_sha256, the risk Brig takes it for,
 * what the target is now (target_now), and whether all that is still what was asked (as_asked).
 * ERR_INTEGRITY: the request is not the one that was checked. */
int advise_action_reading(const struct advise *advise, struct arena *mem,
                          const struct advise_action *action, struct json **out,
                          struct err *err) MUST_CHECK;
/* What a person who confirms or rejects signs: SHA-256 over "brig/advisory-confirm/1", NUL,
 * "confirm" or "reject", NUL, id, NUL, digest. */
void advise_preimage(const char *id, const char *digest, bool confirm, struct hash *out);

/* His word. words is what he said, exactly; anything but HUMAN_CONFIRMED: true aborts. digest may
 * be NULL: the one that is kept. After it returned 0 the state says what became of it, and
 * CONFIRMED means that it is to be done now, by the caller, once: advise_action_do(). ERR_CONFLICT:
 * it is no longer pending. ERR_FORBIDDEN: he asked for it himself. */
#define ADVISE_CONFIRM_WORDS "HUMAN_CONFIRMED: true"
struct advise_word {
    struct str words;
    const char *digest;
    const char *by;
    bool reject; /* says no, whatever the words */
};
int advise_action_decide(struct advise *advise, struct arena *mem, const char *id,
                         const struct advise_word *word, struct advise_action *out,
                         struct err *err) MUST_CHECK;
/* Carries it out, beneath the session's own folder. What went wrong is in out->why, and then
 * out->is_done is false. */
int advise_action_do(struct advise *advise, struct arena *mem, const char *id,
                     struct advise_action *out, struct err *err) MUST_CHECK;
/* Both, and nobody sees or does anything in between. */
int advise_action_settle(struct advise *advise, struct arena *mem, const char *id,
                         const struct advise_word *word, struct advise_action *out,
                         struct err *err) MUST_CHECK;

/* ---- looking at them ---- */

/* A session, or what is wrong with it: {"run_id", …, "counts", "chain"}. */
struct json *advise_json(struct arena *mem, const struct advise *advise);
struct json *advise_tally_json(struct arena *mem, const struct advise_tally *tally);
struct json *advise_action_json(struct arena *mem, const struct advise_action *action);
/* Events of one, oldest first, from a number on, at most so many. */
int advise_events(struct advise *advise, uint64_t after, unsigned limit,
                  int (*visit)(void *context, const struct json *event, struct err *err),
                  void *context, struct err *err) MUST_CHECK;
/* What was said, in order. */
struct advise_said {
    uint64_t turn;
    bool by_agent;
    struct str text;
};
int advise_turns(struct advise *advise,
                 int (*visit)(void *context, const struct advise_said *said, struct err *err),
                 void *context, struct err *err) MUST_CHECK;

/* What people may be shown of it: the client_view of each answer, from a number on, at most so
 * many. Reads a line at a time, however much was said. */
int advise_shown(struct advise *advise, uint64_t after, unsigned limit,
                 int (*visit)(void *context, uint64_t turn, struct str client_view,
                              struct err *err),
                 void *context, struct err *err) MUST_CHECK;

/* Whether Brig saw the program that was the agent, or was told which it is. */
bool advise_is_claimed(const char *channel);
/* Of one that has ended: it had a box, and what happened in it last nobody knows. */
#define ADVISE_LOST "Brig or its box was killed: what the agent did last is not known"
bool advise_is_lost(const char *channel, const struct advise_tally *tally);
/* By which rules it is judged: "default" or "strict-seed". */
const char *advise_profile(const struct advise_terms *terms);

/* ---- told again (story.c) ---- */

enum advise_told_kind {
    ADVISE_TOLD_OTHER,
    ADVISE_TOLD_PROMPT,
    ADVISE_TOLD_TURN,
    ADVISE_TOLD_FINDING,
    ADVISE_TOLD_ACTION,
};
/* One event. What it points to is gone when the visitor returns. */
struct advise_told {
    enum advise_told_kind kind;
    const struct json *event;
    uint64_t seq;
    uint64_t turn;   /* of a prompt or a turn */
    bool is_stored;  /* what was said is there: text */
    bool is_whole;   /* and nothing was cut off */
    struct str text; /* bytes */
};
typedef int advise_hears(void *context, const struct advise_told *told, struct err *err);
/* All of them in order, the chain checked once more, and every text against the hash its event has:
 * ERR_INTEGRITY. In little memory, however long it is. */
int advise_tell(const struct advise *advise, advise_hears *visit, void *context,
                struct err *err) MUST_CHECK;

/* ---- for those who govern (envelopes.c) ---- */

/* Answers as they were said, from a number on, at most so many: {"turn","valid","stored","whole",
 * "envelope"}, the envelope with the runtime's own block "governance". What was no envelope is
 * wrapped in one. What it points to is gone when the visitor returns. */
int advise_envelopes(const struct advise *advise, uint64_t after, unsigned limit,
                     int (*visit)(void *context, const struct json *turn, struct err *err),
                     void *context, struct err *err) MUST_CHECK;

/* ---- judged anew (replay.c) ---- */

/* What was found in one answer, as the telemetry has it or by other rules. */
struct advise_judged {
    const char *verdict;
    const char *drift;
    bool is_valid;
    unsigned compliance;
    uint64_t unlisted;
    struct advise_hit {
        const char *category;
        const char *rule;
        unsigned n;
    } * hits; /* sorted, each once */
    size_t hit_n;
};
struct advise_difference {
    uint64_t turn;
    uint64_t seq;
    bool is_judged; /* false: what was said is not stored, and after is empty */
    struct advise_judged before, after;
};
struct advise_replay {
    bool strict_seed; /* the other rules */
    int (*on_difference)(void *context, const struct advise_difference *difference,
                         struct err *err);
    void *context;

    uint64_t turns; /* judged anew */
    uint64_t differ;
    uint64_t not_stored; /* and therefore not judged */
    uint64_t not_whole;  /* past the ceiling of a turn: judged as then, as no envelope */
    uint64_t before[ADVISORY_CATEGORY_COUNT];
    uint64_t after[ADVISORY_CATEGORY_COUNT];
};
/* Every answer of a session by other rules; nothing is written. May be called for several, one
 * behind the other. */
int advise_replay(const struct advise *advise, struct advise_replay *replay,
                  struct err *err) MUST_CHECK;

/* ---- as a dataset (dataset.c, docs/formats/advisory-dataset.md) ---- */

struct advise_dataset {
    /* One line without its end. */
    int (*write)(void *context, struct str line, struct err *err);
    void *context;

    uint64_t turns;
    uint64_t events;
};
/* Without secrets, paths of this machine and names of people. The same session is the same bytes.
 */
int advise_export(const struct advise *advise, struct advise_dataset *dataset,
                  struct err *err) MUST_CHECK;

/* ---- the deployment gate ----
 *
 * Six conditions over the last N sessions of one version of an agent. Five are found here, from
 * chains that hold and end where the ledger says; the sixth, two custodians' words, is given on the
 * hash of what was found (src/flow/gate.c). */

#define GATE_RUNS_DEFAULT 10
#define GATE_RUNS_MAX 1000
#define GATE_SIGNATURES 2
#define GATE_VALID_S (7 * 24 * 60 * 60)

struct gate_run {
    const char *id;
    const char *agent_version;
    const char *constitution_sha256;
    const char *requester;
    const char *channel; /* "box": that version ran here; else it is what a harness said */
    const char *profile; /* by which rules it was judged; "" when that is not known */
    int64_t started_at;
    uint64_t seq;      /* of the receipt it began with */
    const char *fault; /* why nothing can be said of it; NULL: it has ended, and its chain holds */
    struct advise_tally tally;
};

enum gate_condition {
    GATE_NO_UNSAFE_ACTIONS,
    GATE_NO_AGENCY_DRIFT,
    GATE_NO_STRUCTURAL_VIOLATIONS,
    GATE_NO_EPISTEMIC_COLLAPSE,
    GATE_CONSTITUTION_CONSISTENT,
    GATE_CONDITION_COUNT,
};
const char *gate_condition_name(enum gate_condition condition);

struct gate_ledger;
struct gate_report {
    const char *agent_id;
    const char *agent_version;
    unsigned n;
    const struct gate_run *runs; /* the window, oldest first */
    size_t run_n;
    bool passed[GATE_CONDITION_COUNT];
    bool all_passed;
    bool is_claimed;                  /* the version of at least one run is what a harness said */
    const struct json *json;          /* what is hashed */
    const struct gate_ledger *ledger; /* who may sign it, and did; NULL: nobody */
    char sha256[HASH_TEXT_BYTES];
};
/* runs are all of that agent, of whatever version, oldest first; the window is the last n of this
 * version. */
int gate_evaluate(struct arena *mem, const char *agent_id, const char *agent_version, unsigned n,
                  const struct gate_run *runs, size_t run_n, struct gate_report *out,
                  struct err *err) MUST_CHECK;
/* Why what was found in the window holds no longer: something happened behind it. NULL: it does. */
const char *gate_voided(struct arena *mem, const struct gate_report *report,
                        const struct gate_run *runs, size_t run_n);

/* A custodian's word on a report. */
struct gate_signoff {
    const char *custodian;
    int64_t expires_at;
};
/* What he says with it, and the hash he signs (docs/formats/gate.md). */
struct json *gate_signed(struct arena *mem, const struct gate_report *report,
                         const struct gate_signoff *signoff);
int gate_preimage(const struct gate_report *report, const struct gate_signoff *signoff,
                  struct hash *out, struct err *err) MUST_CHECK;
