/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to flow/advise. */

#include "flow/advise/advise.h"

#include "lib/json/json.h"

#define EVENT_LINE_MAX (8UL * 1024)
#define SESSION_TEXT_MAX (16UL * 1024)
#define SAID_MAX (2 * ADVISE_TURN_BYTES_MAX) /* stored of what was said; the rest is hashed */

/* What was stored and cannot be read any more is nobody's wrong usage. */
static inline struct err *advise_damaged(struct err *err)
{
    err->code = err->code == ERR_INVALID ? ERR_INTEGRITY : err->code;
    return err;
}

/* While it is held nobody else adds; what others added has been read. */
struct hold {
    struct advise *advise; /* NULL: nothing is held */
};
int hold_take(struct advise *advise, struct hold *out, struct err *err) MUST_CHECK;
void hold_end(struct hold *hold);
#define AUTO_HOLD __attribute__((cleanup(hold_end)))

/* ---- chain.c ---- */

struct event {
    const char
        *kind; /* "start", "constitution", "prompt", "turn", "finding", "action", "box", "end" */
    const struct advisory_finding *finding; /* of a finding */
    struct json *more;                      /* members of the kind's own, or NULL */
};
/* Of a chain without events. */
void tally_begin(struct advise_tally *tally);
/* Appends, unsynced; the hold is the caller's. */
int chain_add(struct advise *advise, const struct event *event, struct err *err) MUST_CHECK;
int chain_sync(struct advise *advise, struct err *err) MUST_CHECK;
/* Whether a turn and all that may follow it can still be added. */
bool chain_has_room(const struct advise *advise);
/* Reads from where it was read to last, and checks each line. */
int chain_read(struct advise *advise, struct err *err) MUST_CHECK;
/* One line as it stands, checked against the event before it; moves the tally on. */
int chain_line(struct advise *advise, struct arena *mem, struct str line, const struct json **out,
               struct err *err) MUST_CHECK;

/* ---- session.c ---- */

int64_t now_s(void);
/* ERR_CONFLICT when it has ended, or its time is over (which ends it). */
int session_is_open(struct advise *advise, struct err *err) MUST_CHECK;
int file_text(struct arena *mem, int dir_fd, const char *name, size_t max, struct str *out,
              struct err *err) MUST_CHECK;
/* As file_replace(), beneath a folder that is open. */
int file_put(int dir_fd, const char *name, struct str text, struct err *err) MUST_CHECK;

/* ---- action.c ---- */

/* What a deed left whose Brig was killed over it. The hold is the caller's. */
void actions_clear(const struct advise *advise);

/* ---- turn.c ---- */

/* Shown where the agent said nothing that may be shown. */
extern const char advise_not_shown[];

/* What one says is judged like this, also later: past the ceiling it was not read. */
int judge_text(struct arena *mem, struct str text, bool strict_seed, struct advisory_result *out,
               struct err *err) MUST_CHECK;

/* The findings of a result as events. */
int add_findings(struct advise *advise, const struct advisory_result *result,
                 struct err *err) MUST_CHECK;
int keep_said(struct advise *advise, uint64_t turn, bool by_agent, struct str text,
              struct err *err) MUST_CHECK;
