/* SPDX-License-Identifier: Apache-2.0 */

/* What was approved and has not run yet.
 *
 * HELM's adapters ask about a vector and send a string: its words with a blank between them. Two
 * different vectors can become the same string, and a string says nothing about where one word
 * ends. So the vector that was approved is kept, the string only finds it, and it is the vector
 * that runs. When two that are waiting are written the same, nobody knows which of them a string
 * means: neither runs.
 *
 * An approval is for one tenant, one principal and one sandbox, for one use, and for five minutes.
 * They live in memory: a daemon that starts again has approved nothing. */

#include "surface/helm/helm-private.h"

#include <pthread.h>
#include <string.h>

#include "lib/base/clock.h"

#define LIFE_US (300ULL * 1000000)
#define ALL_MAX 16384   /* of the whole daemon, */
#define TENANT_MAX 2048 /* of one tenant, */
#define SANDBOX_MAX 64  /* and of one sandbox */
#define COMMAND_BYTES_MAX (256 * 1024)

struct waiting {
    struct arena mem;
    struct pending_owner owner;
    struct pending_command command;
    const char *text; /* the words with blanks between them */
    bool is_ambiguous;
    uint64_t ends_us;
    struct waiting *next;
};

struct pending {
    pthread_mutex_t lock;
    struct waiting *first; /* newest first */
    size_t n;
};

struct pending *pending_new(void)
{
    struct pending *pending = xcalloc(1, sizeof *pending);

    (void)pthread_mutex_init(&pending->lock, NULL);
    return pending;
}

static void waiting_free(struct waiting *waiting)
{
    arena_done(&waiting->mem);
    free(waiting);
}

void pending_free(struct pending *pending)
{
    if (!pending)
        return;
    while (pending->first) {
        struct waiting *waiting = pending->first;

        pending->first = waiting->next;
        waiting_free(waiting);
    }
    (void)pthread_mutex_destroy(&pending->lock);
    free(pending);
}

/* ---- words ---- */

static const char *join(struct arena *mem, struct words words)
{
    size_t n = 1;
    char *text, *end;

    for (size_t i = 0; i < words.n; i++)
        n += strlen(words.v[i]) + 1;
    text = end = arena_alloc(mem, n);
    for (size_t i = 0; i < words.n; i++) {
        if (i)
            *end++ = ' ';
        end = stpcpy(end, words.v[i]);
    }
    return text;
}

static struct words copy_words(struct arena *mem, struct words words)
{
    const char **copy = arena_array(mem, const char *, words.n + 1);

    for (size_t i = 0; i < words.n; i++)
        copy[i] = arena_text(mem, str_of(words.v[i]));
    return (struct words){copy, words.n};
}

static const char *copy_or_null(struct arena *mem, const char *text)
{
    return text ? arena_text(mem, str_of(text)) : NULL;
}

static void copy_command(struct arena *mem, const struct pending_command *from,
                         struct pending_command *out)
{
    *out = (struct pending_command){
        .argv = copy_words(mem, from->argv),
        .env = copy_words(mem, from->env),
        .cwd = copy_or_null(mem, from->cwd),
        .timeout_s = from->timeout_s,
        .approval_id = copy_or_null(mem, from->approval_id),
        .approval_digest = copy_or_null(mem, from->approval_digest),
        .approved_by = copy_or_null(mem, from->approved_by),
    };
}

static bool is_same_vector(struct words a, struct words b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (strcmp(a.v[i], b.v[i]) != 0)
            return false;
    return true;
}

/* Members of an object have no order; names are unique on both sides. */
static bool is_same_env(struct words a, struct words b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++) {
        size_t j = 0;

        while (j < b.n && strcmp(a.v[i], b.v[j]) != 0)
            j++;
        if (j == b.n)
            return false;
    }
    return true;
}

static bool is_same_owner(const struct pending_owner *a, const struct pending_owner *b)
{
    return strcmp(a->tenant, b->tenant) == 0 && strcmp(a->principal, b->principal) == 0 &&
           strcmp(a->sandbox, b->sandbox) == 0;
}

static size_t bytes_of(struct words words)
{
    size_t n = 0;

    for (size_t i = 0; i < words.n; i++)
        n += strlen(words.v[i]) + 1 + sizeof(char *);
    return n;
}

/* ---- under the lock ---- */

static void drop(struct pending *pending, struct waiting **at)
{
    struct waiting *waiting = *at;

    *at = waiting->next;
    pending->n--;
    waiting_free(waiting);
}

static void drop_expired(struct pending *pending)
{
    uint64_t now_us = clock_us();

    for (struct waiting **at = &pending->first; *at;)
        if ((*at)->ends_us <= now_us)
            drop(pending, at);
        else
            at = &(*at)->next;
}

static int check_room(const struct pending *pending, const struct pending_owner *owner,
                      struct err *err)
{
    size_t tenant_n = 0, sandbox_n = 0;

    for (const struct waiting *w = pending->first; w; w = w->next) {
        bool is_tenants = strcmp(w->owner.tenant, owner->tenant) == 0;

        tenant_n += is_tenants;
        sandbox_n += is_tenants && strcmp(w->owner.sandbox, owner->sandbox) == 0;
    }
    if (pending->n >= ALL_MAX || tenant_n >= TENANT_MAX || sandbox_n >= SANDBOX_MAX)
        return err_set(err, ERR_LIMIT,
                       "too many approved commands wait to be run; run them, or wait until they "
                       "expire");
    return 0;
}

/* Whether one that waits is written the same and is another one; then it is marked. */
static bool mark_ambiguous(struct pending *pending, const struct pending_owner *owner,
                           const char *text, struct words argv)
{
    bool found = false;

    for (struct waiting *w = pending->first; w; w = w->next)
        if (is_same_owner(&w->owner, owner) && strcmp(w->text, text) == 0 &&
            (w->is_ambiguous || !is_same_vector(w->command.argv, argv)))
            found = w->is_ambiguous = true;
    return found;
}

static void insert(struct pending *pending, const struct pending_owner *owner,
                   const struct pending_command *command)
{
    struct waiting *waiting = xcalloc(1, sizeof *waiting);

    waiting->mem = ARENA(4 * COMMAND_BYTES_MAX);
    waiting->owner = (struct pending_owner){
        .tenant = arena_text(&waiting->mem, str_of(owner->tenant)),
        .principal = arena_text(&waiting->mem, str_of(owner->principal)),
        .sandbox = arena_text(&waiting->mem, str_of(owner->sandbox)),
    };
    copy_command(&waiting->mem, command, &waiting->command);
    waiting->text = join(&waiting->mem, command->argv);
    waiting->ends_us = clock_us() + LIFE_US;
    waiting->next = pending->first;
    pending->first = waiting;
    pending->n++;
}

static int add(struct pending *pending, const struct pending_owner *owner,
               const struct pending_command *command, const char *text, struct err *err)
{
    drop_expired(pending);
    if (mark_ambiguous(pending, owner, text, command->argv))
        return err_set(err, ERR_CONFLICT,
                       "another command that waits to be run reads the same but has other words; "
                       "neither will run: ask again for the one that is meant");
    if (check_room(pending, owner, err) < 0)
        return -1;
    insert(pending, owner, command);
    return 0;
}

static bool is_asked_for(const struct waiting *waiting, const struct pending_owner *owner,
                         const char *text)
{
    return is_same_owner(&waiting->owner, owner) && strcmp(waiting->text, text) == 0;
}

static bool is_as_approved(const struct pending_command *approved,
                           const struct pending_command *asked)
{
    bool same_cwd = approved->cwd && asked->cwd ? strcmp(approved->cwd, asked->cwd) == 0
                                                : approved->cwd == asked->cwd;

    return same_cwd && is_same_env(approved->env, asked->env) &&
           (!approved->timeout_s || approved->timeout_s == asked->timeout_s);
}

static int take(struct pending *pending, const struct pending_owner *owner, const char *text,
                const struct pending_command *asked, struct arena *mem, struct pending_command *out,
                struct err *err)
{
    bool was_there = false;

    drop_expired(pending);
    for (struct waiting **at = &pending->first; *at; at = &(*at)->next) {
        if (!is_asked_for(*at, owner, text))
            continue;
        if ((*at)->is_ambiguous) {
            drop(pending, at);
            return err_set(err, ERR_CONFLICT,
                           "two different commands that read like this were approved: neither "
                           "runs; ask again for the one that is meant");
        }
        was_there = true;
        if (!is_as_approved(&(*at)->command, asked))
            continue;
        copy_command(mem, &(*at)->command, out);
        drop(pending, at);
        return 0;
    }
    return err_set(err, ERR_FORBIDDEN,
                   was_there ? "the command was approved with another environment, working "
                               "directory or time: only what was approved runs"
                             : "this command was not approved, or its approval is used or over; "
                               "ask " HELM_MODEL " about it first");
}

/* ---- for everyone ---- */

int pending_add(struct pending *pending, const struct pending_owner *owner,
                const struct pending_command *command, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(4 * COMMAND_BYTES_MAX);
    int failed;

    if (bytes_of(command->argv) + bytes_of(command->env) > COMMAND_BYTES_MAX)
        return err_set(err, ERR_LIMIT, "a command of more than %d bytes", COMMAND_BYTES_MAX);
    (void)pthread_mutex_lock(&pending->lock);
    failed = add(pending, owner, command, join(&mem, command->argv), err);
    (void)pthread_mutex_unlock(&pending->lock);
    return failed;
}

int pending_take(struct pending *pending, const struct pending_owner *owner, const char *text,
                 const struct pending_command *asked, struct arena *mem,
                 struct pending_command *out, struct err *err)
{
    int failed;

    (void)pthread_mutex_lock(&pending->lock);
    failed = take(pending, owner, text, asked, mem, out, err);
    (void)pthread_mutex_unlock(&pending->lock);
    return failed;
}

void pending_forget(struct pending *pending, const struct pending_owner *owner)
{
    (void)pthread_mutex_lock(&pending->lock);
    for (struct waiting **at = &pending->first; *at;)
        if (strcmp((*at)->owner.tenant, owner->tenant) == 0 &&
            strcmp((*at)->owner.sandbox, owner->sandbox) == 0)
            drop(pending, at);
        else
            at = &(*at)->next;
    (void)pthread_mutex_unlock(&pending->lock);
}
