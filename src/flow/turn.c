/* SPDX-License-Identifier: Apache-2.0 */

/* Being alone in a kept sandbox, and who is in the way. */

#include "flow/govern-parts.h"

#include "lib/base/limits.h"

#include <stdio.h>
#include <string.h>

#define NAMED_MAX 3 /* approvals, so that the sentence can be read */
#define PAGES_MAX 64
#define PAGE_ROWS 256

struct blocking {
    const char *mark; /* what the subject of one that is about this sandbox holds */
    char ids[NAMED_MAX * (ID_BYTES + 2)];
    unsigned n;
    uint64_t last;
};

/* Canonical JSON writes a member in one way only, and quotes in texts differently. */
static int on_pending(void *context, const struct approval *approval, struct err *err)
{
    struct blocking *blocking = context;
    size_t used = strlen(blocking->ids);

    (void)err;
    blocking->last = approval->seq;
    if (blocking->n == NAMED_MAX || !strstr(approval->subject, blocking->mark))
        return 0;
    (void)snprintf(blocking->ids + used, sizeof blocking->ids - used, "%s%s",
                   blocking->n ? ", " : "", approval->id);
    blocking->n++;
    return 0;
}

static void find_blocking(struct govern *govern, struct blocking *blocking)
{
    struct approvals_query query = {.state = APPROVAL_PENDING, .limit = PAGE_ROWS};
    struct approvals *approvals;
    struct err ignored; /* then they are not named */
    int more = 1;

    approvals = govern_has_approvals(govern) ? govern_approvals(govern, &ignored) : NULL;
    for (unsigned i = 0; approvals && more == 1 && i < PAGES_MAX && blocking->n < NAMED_MAX; i++) {
        more = approvals_each(approvals, &query, on_pending, blocking, &ignored);
        query.after_seq = blocking->last;
    }
}

int govern_turn_alone(struct govern *govern, const char *sandbox, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(4 * KIB);
    struct blocking blocking = {.mark = arena_printf(&mem, "\"sandbox_id\":\"%s\"", sandbox)};

    if (execute_turn(govern->execute, sandbox, true, err) == 0)
        return 0;
    if (err->code != ERR_TIMEOUT)
        return -1;
    find_blocking(govern, &blocking);
    if (!blocking.n)
        return -1;
    return err_set(
        err, ERR_TIMEOUT,
        "a command waits in sandbox %s for a person, about approval %s: let it be "
        "answered (\"brig approvals show\", \"confirm\", \"reject\") or end the command, "
        "and try again",
        sandbox, blocking.ids);
}
