/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flow/record/record.h"
#include "lib/json/json.h"

/* A state directory of its own for the test, and runs to record in it. */
void fixture_begin(void);
void fixture_end(void);
const char *fixture_dir(void);
const char *fixture_path(const char *name); /* below the directory; until the next call */

/* A run as govern.c would hand it over: planned and allowed. */
void fixture_run(struct run *run);
/* The same after its command has ended with this status. */
void fixture_ended(struct run *run, int exit_code);

/* Opens the ledger, records that many allowed runs (two receipts each), closes it. */
void fixture_fill(unsigned runs);
struct record *fixture_open(void);

/* One value of a receipt as text: fixture_member(json, "/outcome/exit_code"). */
const char *fixture_member(const struct json *json, const char *pointer);
/* The receipt with this number or id; complete. */
const struct json *fixture_show(struct arena *mem, const char *name);

/* What verifying the ledger with its own key says. */
void fixture_verify(struct record_report *out);
/* SQL on the ledger, as somebody with an editor would do it. */
void fixture_sql(const char *sql);
