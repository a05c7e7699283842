/* SPDX-License-Identifier: Apache-2.0 */

/* The vault is one file that is replaced as a whole (decision 0033). What is kept was said of a
 * file that was looked at before the question: had another one taken its place meanwhile, the next
 * look would not find the same. A file that is new may be replaced again within one step of the
 * clock that stamps files, by one with the same number; so nothing is kept of one younger than
 * that. */

#include "cmd/egress/unbound.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>

#define FRESH_S 2 /* longer than any step of a clock that stamps files */
#define VAULT_FILE VAULT_FOLDER "/" VAULT_SECRETS

void unbound_init(struct unbound *unbound, int state_fd)
{
    *unbound = (struct unbound){.state_fd = state_fd};
}

static bool is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino && a->st_ino == b->st_ino && a->st_dev == b->st_dev &&
           a->st_size == b->st_size && is_same_time(a->st_mtim, b->st_mtim) &&
           is_same_time(a->st_ctim, b->st_ctim);
}

static bool is_fresh(const struct stat *st)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return st->st_ctim.tv_sec > now.tv_sec - FRESH_S;
}

/* Every text with its end, so that no two questions are one. */
static void hash_question(const struct vault_question *question, struct hash *out)
{
    const char *texts[] = {question->tenant, question->subject, question->pack, question->host,
                           question->scheme, question->method,  question->path};
    struct hasher hasher;

    hasher_init(&hasher);
    hasher_add(&hasher, &question->port, sizeof question->port);
    for (size_t i = 0; i < COUNT(texts); i++)
        hasher_add(&hasher, texts[i], strlen(texts[i]) + 1);
    hasher_end(&hasher, out);
}

static struct hash *place_of(struct unbound *unbound, const struct hash *question)
{
    size_t at;

    memcpy(&at, question, sizeof at);
    return &unbound->known[at % UNBOUND_MAX];
}

bool unbound_has(struct unbound *unbound, const struct vault_question *question,
                 struct unbound_asked *out)
{
    *out = (struct unbound_asked){.file.st_ino = 0};
    if (unbound->state_fd < 0 || fstatat(unbound->state_fd, VAULT_FILE, &out->file, 0) < 0)
        return false;
    hash_question(question, &out->question);
    return is_same_file(&out->file, &unbound->file) &&
           hash_is_same(place_of(unbound, &out->question), &out->question);
}

void unbound_add(struct unbound *unbound, const struct unbound_asked *asked)
{
    if (asked->file.st_ino == 0 || is_fresh(&asked->file))
        return;
    if (!is_same_file(&asked->file, &unbound->file)) {
        memset(unbound->known, 0, sizeof unbound->known);
        unbound->file = asked->file;
    }
    *place_of(unbound, &asked->question) = asked->question;
}
