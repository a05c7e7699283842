/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to cmd/otlp: one POST at a time, by libcurl, while its owner does other things. */

#include "lib/base/buf.h"
#include "lib/otlp/otlp.h"

struct post_config {
    const char *url;
    const char *headers; /* as in OTEL_EXPORTER_OTLP_HEADERS, or "" */
    struct str ca;       /* PEM, instead of the machine's; empty: the machine's */
    bool plain_anywhere;
};

struct post_result {
    long status; /* 0: there was no answer */
    uint64_t retry_after_s;
    struct str answer;
    const char *why; /* without an answer: libcurl's words, never the collector's */
};

struct post;
int post_open(const struct post_config *config, struct post **out, struct err *err) MUST_CHECK;
void post_free(struct post *post);
AUTO_TYPE(post)

/* Begins one; body must stay as it is until it has ended. */
int post_begin(struct post *post, enum otlp_signal signal, struct str body, uint64_t wait_ms,
               struct err *err) MUST_CHECK;
bool post_is_busy(const struct post *post);
/* Waits until something moves, fd (or -1) can be read, or wait_ms are over. True: the POST has
 * ended, and *out, which lives until the next, says how. */
bool post_wait(struct post *post, int fd, uint64_t wait_ms, struct post_result *out);
