/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A session of the test's own, in a folder that goes with the test. */

#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "flow/advise/advise.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#define ENVELOPE(view)                                                                             \
    "{\"epistemic\":{\"facts\":[],\"hypotheses\":[],\"assumptions\":[]},\"advisory\":{},"          \
    "\"sandbox\":{\"actions_permitted\":false,\"reason\":\"Helix aligned sandbox mode\"},"         \
    "\"client_view\":\"" view "\"}"

static char state_dir[] = "/tmp/brig-advise-XXXXXX";

__attribute__((destructor)) static void remove_state(void)
{
    struct err err;

    if (!strstr(state_dir, "XXXXXX"))
        (void)!dir_remove(AT_FDCWD, state_dir, &err);
}

static inline struct advise *begin(bool strict_seed)
{
    const struct advise_terms terms = {.agent_id = "agent",
                                       .agent_version = "sha256:0",
                                       .requester = "uid:4711",
                                       .channel = "api",
                                       .constitution = STR_LIT("be good"),
                                       .strict_seed = strict_seed};
    struct advise *advise = NULL;
    struct err err;

    CHECK(mkdtemp(state_dir) != NULL);
    if (advise_start(state_dir, &terms, &advise, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return advise;
}

static inline void say(struct advise *advise, const char *prompt, struct str answer)
{
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    struct advise_answer heard;
    struct err err;

    if (advise_prompt(advise, str_of(prompt), &err) < 0 ||
        advise_heard(advise, &mem, answer, &heard, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

/* The whole of one of its files; the caller frees it. */
static inline char *read_whole(const struct advise *advise, const char *name)
{
    AUTO_BUF struct buf text = BUF(64 * MIB);
    struct err err;

    if (file_read(advise->dir_fd, name, &text, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return buf_take(&text, &(size_t){0});
}

static inline void write_whole(const struct advise *advise, const char *name, const char *text)
{
    AUTO_FD int fd = openat(advise->dir_fd, name, O_WRONLY | O_TRUNC | O_CLOEXEC);
    struct err err;

    CHECK(fd >= 0);
    CHECK_INT(write_all(fd, text, strlen(text), &err), 0);
}
