/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to flow/notify. */

#include "flow/notify/notify.h"

#define NOTIFY_FOLDER "notify"
#define NOTIFY_FILE "notify.json"

#define NOTIFY_KEY_MIN 24 /* as Standard Webhooks says */
#define NOTIFY_KEY_MAX 64

struct notify_key {
    unsigned char b[NOTIFY_KEY_MAX];
    size_t n;
};

int notify_key_parse(struct str text, struct notify_key *out, struct err *err) MUST_CHECK;
int notify_key_read(const char *root_dir, const char *name, struct notify_key *out,
                    struct err *err) MUST_CHECK;

#define NOTIFY_SIGNATURE_BYTES 48 /* "v1,", 44 of base64, NUL */
int notify_sign(const struct notify_key *key, const char *id, int64_t at, struct str body,
                char out[NOTIFY_SIGNATURE_BYTES], struct err *err) MUST_CHECK;

/* At most three tries within 30 seconds. */
int notify_post(const char *url, const struct notify_key *key, struct str body,
                struct err *err) MUST_CHECK;

/* ERR_FORBIDDEN: somebody else could change what would run. out has PATH_BYTES_MAX bytes. */
int notify_check_program(const char *path, char *out, struct err *err) MUST_CHECK;
/* Runs it to its end, at most ten seconds. */
int notify_run_program(const char *path, struct words args, struct str body,
                       struct err *err) MUST_CHECK;

/* One more that was dropped; or how the sending of one went. */
void notify_tally_dropped(const char *root_dir, const char *why);
void notify_tally_report(const char *root_dir, const struct notify_report *report);
