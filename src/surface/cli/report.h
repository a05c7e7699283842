/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/cli: how a verification is told, for the ledger and for files alike. */

#include "flow/record/record.h"
#include "surface/cli/cli.h"

/* Reads the file of --head, when given, into *head and lets check->head point to it. */
int report_head(struct invocation *inv, struct record_check *check, struct record_head *head,
                struct err *err) MUST_CHECK;

void report_print(struct invocation *inv, const struct record_check *check,
                  const struct record_report *report);
/* 0 when nothing is wrong; not knowing whether it is complete is not wrong. */
int report_status(const struct invocation *inv, const struct record_report *report);
