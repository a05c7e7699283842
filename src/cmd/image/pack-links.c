/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/image/pack.h"

#include <string.h>

#define LINKS_FIRST 256U /* a power of two */

struct link_item {
    ino_t inode; /* 0: free */
    char *path;
};

struct link_table {
    struct link_item *items;
    size_t room;
    size_t n;
};

struct link_table *links_new(void)
{
    struct link_table *links = xcalloc(1, sizeof *links);

    links->room = LINKS_FIRST;
    links->items = xcalloc(links->room, sizeof *links->items);
    return links;
}

void links_free(struct link_table *links)
{
    if (!links)
        return;
    for (size_t i = 0; i < links->room; i++)
        free(links->items[i].path);
    free(links->items);
    free(links);
}

/* Inode numbers are the sandbox's to choose only in so far as it can make files; a bad spread
 * costs time within the job's deadline. */
static size_t slot_of(const struct link_item *items, size_t room, ino_t inode)
{
    size_t at = (size_t)((uint64_t)inode * 0x9E3779B97F4A7C15U >> 20) & (room - 1);

    while (items[at].inode && items[at].inode != inode)
        at = (at + 1) & (room - 1);
    return at;
}

const char *links_find(const struct link_table *links, ino_t inode)
{
    return links->items[slot_of(links->items, links->room, inode)].path;
}

static void grow(struct link_table *links)
{
    size_t room = 2 * links->room;
    struct link_item *items = xcalloc(room, sizeof *items);

    for (size_t i = 0; i < links->room; i++)
        if (links->items[i].inode)
            items[slot_of(items, room, links->items[i].inode)] = links->items[i];
    free(links->items);
    links->items = items;
    links->room = room;
}

int links_add(struct link_table *links, ino_t inode, const char *path, struct err *err)
{
    struct link_item *item;

    if (links->n == IMAGE_ENTRIES_MAX)
        return err_set(err, ERR_LIMIT, "more than %d hard links", IMAGE_ENTRIES_MAX);
    if (2 * links->n >= links->room)
        grow(links);
    item = &links->items[slot_of(links->items, links->room, inode)];
    if (item->inode)
        return 0;
    *item = (struct link_item){inode, xstrdup(path)};
    links->n++;
    return 0;
}
