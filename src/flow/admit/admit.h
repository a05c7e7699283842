/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/err.h"
#include "model/run.h"

/* A request as some surface received it; everything borrowed. */
struct request {
    const char *principal;
    const char *tenant;
    const char *provider;
    const char *image;
    struct words argv;
    struct words env;    /* "K=V", or "K" to take the value from the caller's own environment */
    struct words mounts; /* "SRC:DST", "SRC:DST:ro", "SRC:DST:rw" */
    const char *workdir;
    bool network_policy;
    bool stdin_stream;
    bool tty;
    uint64_t limits[LIMIT_COUNT]; /* 0: not asked for */
};

/* Fills run->action with copies of all of it, checked, and its request_hash
 * (docs/formats/posture.md says over what). ERR_INVALID and ERR_LIMIT: it is not a request. */
int admit_run(const struct request *request, struct run *run, struct err *err) MUST_CHECK;
