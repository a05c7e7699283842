/* SPDX-License-Identifier: Apache-2.0 */

/* The mock provider: decides, plans and records like every other one, and runs nothing. What it
 * answers depends on the request alone. The only thing here that pretends, and it says so. */

#include "flow/execute/backend.h"

#include "lib/base/buf.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "lib/crypto/crypto.h"

#include <string.h>

#define MOCK_VERSION "mock/1"

static int offer(struct execute *execute, struct run *run, struct err *err)
{
    (void)execute;
    (void)err;
    run->offer.version = MOCK_VERSION;
    run->offer.isolation = "none";
    run->offer.runs_nothing = true;
    run->offer.holds_network = true; /* there is nothing to hold back */
    return 0;
}

static int begin(struct execute *execute, struct run *run, struct err *err)
{
    return execute_claim(execute, run, err);
}

/* Nothing stands, so there is nothing to see but what was planned. The posture calls that
 * claimed. */
static int park(struct execute *execute, struct run *run, struct err *err)
{
    (void)execute;
    (void)err;
    run->seen = run->intended;
    return 0;
}

static int describe(const struct run *run, struct buf *out, struct err *err)
{
    if (buf_add_text(out, "[mock: nothing was run]", err) < 0)
        return -1;
    for (size_t i = 0; i < run->action.argv.n; i++)
        if (buf_add_byte(out, ' ', err) < 0 ||
            text_escape(str_of(run->action.argv.v[i]), out, err) < 0)
            return -1;
    return buf_add_byte(out, '\n', err);
}

static int release(struct execute *execute, struct run *run, const struct streams *streams,
                   struct err *err)
{
    AUTO_BUF struct buf text = BUF(4 * ARGV_BYTES_MAX + 64);
    struct outcome *outcome = &run->outcome;
    char both[2 * MODEL_HASH_BYTES];

    (void)execute;
    if (describe(run, &text, err) < 0)
        return -1;
    if (streams->out_fd >= 0 && write_all(streams->out_fd, text.p, text.n, err) < 0)
        return err_in(err, "writing the output");
    *outcome = (struct outcome){.started = false, .ended = true, .reason = REASON_MOCK};
    outcome->out.bytes = text.n;
    hash_text_of(buf_str(&text), outcome->out.hash);
    hash_text_of(STR_LIT(""), outcome->err.hash);
    hash_text_of(STR_LIT(""), outcome->stdin_hash);
    if (streams->keep)
        outcome->out.kept = arena_str(&run->mem, buf_str(&text));
    (void)strcpy(both, outcome->out.hash);
    (void)strcat(both, "|");
    (void)strcat(both, outcome->err.hash);
    hash_text_of(str_of(both), outcome->output_hash);
    return 0;
}

static void drop(struct execute *execute, struct run *run)
{
    (void)execute;
    (void)run;
}

const struct backend backend_mock = {
    .name = "mock",
    .offer = offer,
    .begin = begin,
    .park = park,
    .release = release,
    .drop = drop,
};
