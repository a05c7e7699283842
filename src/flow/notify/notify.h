/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Telling people that something waits for them, or was decided (decision 0052).
 *
 *   STATE/notify.json       where to: only the operator says so, never a policy or a request
 *   STATE/notify/           the webhook's secret, how it went, and a place for each who sends
 *
 * A message is sent by a process of its own, which nobody waits for and which ends by itself. What
 * becomes of it changes no verdict and fails no run. */

#include "lib/base/buf.h"
#include "lib/base/memory.h"
#include "lib/crypto/crypto.h"

#define NOTIFY_ARGS_MAX 64
#define NOTIFY_SENDERS_MAX 8
#define NOTIFY_BODY_MAX (64UL * 1024)
#define NOTIFY_ERROR_BYTES 256

/* ---- where to ---- */

struct notify_config {
    const char *webhook; /* an URL, or NULL */
    const char *secret;  /* name of the file with its secret, or NULL */
    const char *command; /* a program, or NULL */
    struct words args;
};

/* All NULL: nobody is to be told. */
int notify_read(const char *root_dir, struct arena *mem, struct notify_config *out,
                struct err *err) MUST_CHECK;
/* Instead of what was there before. The secret is "whsec_" and base64, or 24 to 64 bytes as they
 * are; out is a hash of what was written, in which no secret is. */
int notify_write(const char *root_dir, const struct notify_config *config, struct str secret,
                 char out[HASH_TEXT_BYTES], struct err *err) MUST_CHECK;
/* That text from a descriptor, without the end of its line; the caller wipes room. */
#define NOTIFY_SECRET_TEXT_MAX 128
int notify_secret_read(int fd, char room[NOTIFY_SECRET_TEXT_MAX], struct str *out,
                       struct err *err) MUST_CHECK;
int notify_remove(const char *root_dir, struct err *err) MUST_CHECK;

/* ---- what is told ---- */

struct notify_word {
    const char *by;
    bool confirms;
    int64_t at;
};

struct notify_event {
    const char *type; /* "approval.pending" */
    const char *tenant;
    const char *id;
    const char *run_id;   /* of an advisory session, or NULL */
    const char *agent_id; /* whose it is, or NULL */
    const char *digest;
    const char *requester;
    const char *state;
    const char *subject; /* JSON without secrets: what would happen */
    int64_t expires_at;
    unsigned quorum;
    unsigned confirmations;
    const struct notify_word *words;
    size_t word_n;
};

/* As JSON: who asks, for what in at most 200 bytes, and how it stands. */
int notify_event_text(const struct notify_event *event, struct buf *out,
                      struct err *err) MUST_CHECK;

/* Hands it to a process that sends it, if anybody is to be told. */
void notify_start(const char *root_dir, const struct notify_event *event);

/* ---- sending ---- */

struct notify_report {
    bool has_webhook, webhook_ok;
    bool has_command, command_ok;
    char webhook_error[NOTIFY_ERROR_BYTES];
    char command_error[NOTIFY_ERROR_BYTES];
};

/* Sends the body to all there are, waits, at most some 35 seconds, and counts how it went. -1:
 * nothing was tried. */
int notify_deliver(const char *root_dir, struct str body, struct notify_report *out,
                   struct err *err) MUST_CHECK;
/* The process of notify_start(): leaves its parent, sends what is in the sealed memory file, and
 * keeps how it went. Returns in the parent at once, in the child at the end. */
int notify_send(const char *root_dir, int message_fd, struct err *err) MUST_CHECK;

/* ---- how it went ---- */

struct notify_tally {
    int64_t webhook_ok, webhook_failed;
    int64_t command_ok, command_failed;
    int64_t dropped; /* as many were being sent as can be at once, or none could be started */
    char last_error[NOTIFY_ERROR_BYTES];
    char last_error_at[32];
};

int notify_tally_read(const char *root_dir, struct notify_tally *out, struct err *err) MUST_CHECK;
