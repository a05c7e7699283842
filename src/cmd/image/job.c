/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/image/worker.h"

int job_in_time(const struct job *job, struct err *err)
{
    if (clock_us() < job->deadline_us)
        return 0;
    return err_set(err, ERR_TIMEOUT, "not finished in time; --timeout gives it longer");
}

const char *request_text(struct job *job, const char *key)
{
    struct str text = {NULL, 0};

    return json_is_text(json_get(job->request, key), &text) ? arena_text(&job->mem, text) : NULL;
}

bool request_flag(const struct job *job, const char *key)
{
    bool flag = false;

    return json_is_bool(json_get(job->request, key), &flag) && flag;
}

uint64_t request_number(const struct job *job, const char *key)
{
    int64_t n = 0;

    return json_is_int(json_get(job->request, key), &n) && n > 0 ? (uint64_t)n : 0;
}
