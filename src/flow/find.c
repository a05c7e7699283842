/* SPDX-License-Identifier: Apache-2.0 */

/* Kept sandboxes by what people call them. */

#include "flow/govern.h"

#include <string.h>

struct search {
    struct execute *execute;
    struct arena *mem;
    const char *wanted;
    const char *found;
    unsigned matches;
};

static bool is_called(const struct search *search, const char *id)
{
    struct config config;
    const char *text = NULL;
    struct err gone; /* it may end while we look */

    return execute_kept_config(search->execute, search->mem, id, &text, &gone) == 0 &&
           config_read(search->mem, str_of(text), &config, &gone) == 0 &&
           strcmp(config.request.name, search->wanted) == 0;
}

static int on_candidate(void *context, const char *id, struct err *err)
{
    struct search *search = context;

    (void)err;
    if (!is_called(search, id))
        return 0;
    search->found = arena_text(search->mem, str_of(id));
    search->matches++;
    return 0;
}

int govern_find(struct execute *execute, struct arena *mem, const char *wanted, const char **out,
                struct err *err)
{
    struct search search = {.execute = execute, .mem = mem, .wanted = wanted};

    /* An id is nobody else's, whatever others are called, and needs no look at them: with a
     * hundred sandboxes that look is most of a command's way. */
    if (execute_kept_has(execute, wanted)) {
        *out = arena_text(mem, str_of(wanted));
        return 0;
    }
    if (execute_kept_each(execute, on_candidate, &search, err) < 0)
        return -1;
    if (search.matches == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no sandbox \"%.40s\"", wanted);
    if (search.matches > 1)
        return err_set(err, ERR_CONFLICT, "%u sandboxes are called \"%.40s\"; use the id",
                       search.matches, wanted);
    *out = search.found;
    return 0;
}
