/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/api: the way to the collector. The program that talks to it (cmd/otlp) is
 * another one; an item is one message to it, or it is dropped and counted. Nothing here waits, and
 * nothing is kept. In the loop only. All of it takes NULL for a daemon that tells nobody. */

#include "lib/otlp/otlp.h"
#include "surface/api/api.h"

struct api;
struct telemetry;

int telemetry_open(struct api *api, const struct telemetry_config *config, struct telemetry **out,
                   struct err *err) MUST_CHECK;
/* The last numbers, then nothing any more. Calls back when what was sent has been delivered or
 * could not be within a few seconds; at once where there is nothing to wait for. */
void telemetry_end(struct telemetry *telemetry, void (*on_ended)(void *context), void *context);
/* Freed by the loop. */
void telemetry_close(struct telemetry *telemetry);

void telemetry_send(struct telemetry *telemetry, enum otlp_signal signal, const struct json *item);
/* Several that belong together. */
void telemetry_send_all(struct telemetry *telemetry, enum otlp_signal signal,
                        const struct json *array);
struct otlp_numbers telemetry_look(const struct telemetry *telemetry);
