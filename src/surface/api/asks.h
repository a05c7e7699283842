/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/api: questions, whose answers need a receipt and nothing else.
 *
 * A thread for each of them would cost more than the judging: one to be woken for every request,
 * and to wait for a disk that all of them wait for. So the questions of a tenant have one clerk. It
 * takes all that wait, judges one after the other, records them in one transaction, and wakes the
 * loop once for all the answers. A question that comes alone waits for nobody; what comes meanwhile
 * is the next round. No answer is given before its receipt is durable.
 *
 * What turns out to need more (a person, an upstream, a refusal with a receipt of its own) goes
 * back and gets a thread as any other request. */

#include "lib/base/err.h"
#include "lib/base/memory.h"
#include "surface/api/jobs.h"

#include <stdbool.h>

struct api;
struct asks;
struct call;

/* Of a tenant; all zero at first. It has at most one job under way. */
struct clerk {
    struct job job;
    struct asks *asks;
    struct call *first, *last;
    bool is_busy;
};

int asks_open(struct api *api, struct asks **out, struct err *err) MUST_CHECK;
/* Waits until everything that was taken is answered. */
void asks_free(struct asks *asks);

/* In the loop: this one waits for its tenant's clerk. ERR_LIMIT: too many do. */
int asks_take(struct asks *asks, struct call *call, struct err *err) MUST_CHECK;
