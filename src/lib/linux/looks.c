/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/looks.h"

#include <string.h>
#include <sys/stat.h>

/* File systems keep times in steps of up to two seconds. Within one step a second change leaves
 * the same time as the first. */
#define SETTLED_S 3

static struct look look_at(const char *path, enum look_for what)
{
    struct look look = {.path = path, .what = what};
    struct stat st;

    if (stat(path, &st) < 0)
        return look;
    look.found = true;
    look.device = st.st_dev;
    look.inode = st.st_ino;
    look.mode = st.st_mode;
    look.special = st.st_rdev;
    if (what == LOOK_CONTENT) {
        look.size = st.st_size;
        look.modified = st.st_mtim;
        look.changed = st.st_ctim;
    }
    return look;
}

void looks_begin(struct looks *looks)
{
    looks->n = 0;
    looks->unsettled = false;
    looks->now_s = time(NULL);
}

void looks_add(struct looks *looks, const char *path, enum look_for what)
{
    struct look *look = &looks->of[looks->n];

    if (looks->n == LOOKS_MAX) {
        looks->unsettled = true; /* what was not looked at is not known to be the same */
        return;
    }
    *look = look_at(path, what);
    if (look->found && what == LOOK_CONTENT &&
        (look->changed.tv_sec + SETTLED_S > looks->now_s ||
         look->modified.tv_sec + SETTLED_S > looks->now_s))
        looks->unsettled = true;
    looks->n++;
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same(const struct look *a, const struct look *b)
{
    return a->found == b->found && a->device == b->device && a->inode == b->inode &&
           a->mode == b->mode && a->special == b->special && a->size == b->size &&
           same_time(a->modified, b->modified) && same_time(a->changed, b->changed);
}

bool looks_hold(const struct looks *looks)
{
    if (looks->unsettled)
        return false;
    for (size_t i = 0; i < looks->n; i++) {
        struct look now = look_at(looks->of[i].path, looks->of[i].what);

        if (!same(&looks->of[i], &now))
            return false;
    }
    return true;
}
