/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/shell/reader-private.h"

/* Redirections of a command that is being read. */
struct redirect_node {
    struct shell_redirect redirect;
    struct redirect_node *next;
};

struct redirect_list {
    struct redirect_node *first, **last;
    size_t n;
};

bool is_redirect(struct reader *r);
int read_redirect(struct reader *r, size_t entry, struct redirect_list *list);
/* Puts the redirections into the command, and tells its here-documents where they belong. */
void keep_redirects(struct reader *r, size_t entry, const struct redirect_list *list,
                    struct heredoc **here);
