/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/egress/control.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/egress/control-private.h"
#include "lib/egress/control-wire.h"
#include "lib/linux/fd-pass.h"
#include "lib/linux/memory-file.h"

#define ANSWER_WAIT_US 5000000U
#define ATTEMPTS 2

struct egress {
    char *state_dir;
    pthread_mutex_t lock; /* one conversation at a time */
    /* Under the lock: */
    int fd; /* -1: there is none */
    uint32_t serial;
};

/* What goes with a request, and what comes with its answer. */
struct talk {
    struct egress_request request;
    int fds[EGRESS_REQUEST_FDS];
    size_t fd_n;
    bool starts;    /* also where there is no program yet */
    bool wants_doc; /* a document comes with the answer */
    struct egress_answer answer;
    int doc_fd;
};

static int lost(struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE, "the egress program has ended");
}

static int await(int fd, short events, uint64_t until_us, struct err *err)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        int got = poll(&p, 1, clock_ms_until(until_us));

        if (got > 0)
            return 0;
        if (got < 0 && errno != EINTR)
            return err_os(err, "waiting for egress");
        if (got == 0 && clock_us() >= until_us)
            return err_set(err, ERR_UNAVAILABLE, "the egress program does not answer");
    }
}

static int hear(int fd, struct talk *talk, uint64_t until_us, struct err *err)
{
    struct egress_answer *answer = &talk->answer;
    int got;

    if (await(fd, POLLIN, until_us, err) < 0)
        return -1;
    got = fds_receive(fd, answer, sizeof *answer, &talk->doc_fd, 1, err);
    if (got != (int)sizeof *answer || answer->magic != EGRESS_MAGIC ||
        answer->version != EGRESS_VERSION || answer->serial != talk->request.serial)
        return lost(err);
    return 0;
}

static int exchange(int fd, struct talk *talk, struct err *err)
{
    uint64_t until_us = clock_us() + ANSWER_WAIT_US;

    if (await(fd, POLLOUT, until_us, err) < 0)
        return -1;
    if (fds_send(fd, &talk->request, sizeof talk->request, talk->fds, talk->fd_n, err) < 0)
        return lost(err);
    return hear(fd, talk, until_us, err);
}

/* What it could not do is its answer. */
static int check(struct talk *talk, struct err *err)
{
    const struct egress_answer *answer = &talk->answer;

    if (answer->status == EGRESS_DONE && talk->wants_doc && talk->doc_fd < 0)
        return err_set(err, ERR_INTERNAL, "egress answered without a document");
    if (answer->status == EGRESS_DONE)
        return 0;
    if (answer->code < 0 || answer->code > ERR_OS)
        return err_set(err, ERR_INTERNAL, "egress answered with an unknown code");
    (void)err_set(err, (enum err_code)answer->code, "%.*s",
                  (int)strnlen(answer->text, sizeof answer->text), answer->text);
    err->os = answer->os;
    return -1;
}

static void hang_up(struct egress *egress)
{
    if (egress->fd >= 0)
        (void)close(TAKE_FD(egress->fd));
}

static int say(struct egress *egress, struct talk *talk, struct err *err)
{
    if (egress->fd < 0 && (talk->starts ? egress_connect : egress_connect_running)(
                              egress->state_dir, &egress->fd, err) < 0)
        return -1;
    talk->request.magic = EGRESS_MAGIC;
    talk->request.version = EGRESS_VERSION;
    talk->request.serial = ++egress->serial;
    talk->doc_fd = -1;
    if (exchange(egress->fd, talk, err) == 0)
        return 0;
    if (talk->doc_fd >= 0)
        (void)close(TAKE_FD(talk->doc_fd));
    hang_up(egress); /* answers nobody waits for may still come */
    return -1;
}

/* A program that ended between two requests has forgotten its sandboxes. What brings a new one, or
 * wants nothing of an old one, is said again to its successor; the rest has failed. */
static int converse(struct egress *egress, struct talk *talk, struct err *err)
{
    int failed = -1;

    for (unsigned attempt = 0; failed && attempt < (talk->starts ? ATTEMPTS : 1U); attempt++)
        failed = say(egress, talk, err);
    if (failed)
        return -1;
    if (check(talk, err) == 0)
        return 0;
    if (talk->doc_fd >= 0)
        (void)close(TAKE_FD(talk->doc_fd));
    return -1;
}

static int ask(struct egress *egress, struct talk *talk, struct err *err)
{
    int failed;

    (void)pthread_mutex_lock(&egress->lock);
    failed = converse(egress, talk, err);
    (void)pthread_mutex_unlock(&egress->lock);
    return failed;
}

/* With a sandbox, and with a run in it, comes the vault that this state directory has by now. Of
 * two who bring it at once one keeper stays, and the other's pair is closed. */
static void bring_vault(struct egress *egress, const struct egress_answer *answer)
{
    struct talk talk = {.request.verb = EGRESS_VAULT, .fd_n = 1};
    enum egress_absence why = EGRESS_VAULT_MISSING;
    AUTO_FD int fd = -1;
    struct err ignored; /* without one, what asks for a secret is refused and told */

    if (answer->has_vault)
        return;
    fd = egress_vault_start(egress->state_dir, &why);
    talk.fds[0] = fd;
    if (fd < 0)
        talk = (struct talk){
            .request = {.verb = EGRESS_NO_VAULT, .last = why}
        };
    (void)ask(egress, &talk, &ignored);
}

/* ---- what is asked ---- */

static int put_name(char out[EGRESS_NAME_BYTES], const char *name, struct err *err)
{
    size_t n = strlen(name);

    if (n == 0 || n >= EGRESS_NAME_BYTES)
        return err_set(err, ERR_INVALID, "a name of %zu bytes; 1 to %d are taken", n,
                       EGRESS_NAME_BYTES - 1);
    memcpy(out, name, n + 1);
    return 0;
}

static int ask_with_rules(struct egress *egress, struct talk *talk, const char *id,
                          struct str rules, struct hash *out, struct err *err)
{
    AUTO_FD int rules_fd = -1;

    if (put_name(talk->request.id, id, err) < 0 ||
        memory_file_make("egress-rules", rules, &rules_fd, err) < 0)
        return -1;
    talk->fds[0] = rules_fd;
    if (ask(egress, talk, err) < 0)
        return -1;
    *out = talk->answer.hash;
    return 0;
}

int egress_sandbox(struct egress *egress, const char *id, struct str rules, int handover_fd,
                   struct hash *out, struct err *err)
{
    struct talk talk = {
        .request.verb = EGRESS_SANDBOX, .fds = {-1, handover_fd},
             .fd_n = 2, .starts = true
    };

    if (ask_with_rules(egress, &talk, id, rules, out, err) < 0)
        return -1;
    bring_vault(egress, &talk.answer);
    return 0;
}

int egress_swap(struct egress *egress, const char *id, struct str rules, struct hash *out,
                struct err *err)
{
    struct talk talk = {.request.verb = EGRESS_SWAP, .fd_n = 1};

    return ask_with_rules(egress, &talk, id, rules, out, err);
}

int egress_window(struct egress *egress, const char *id, const char *mark, uint64_t bytes,
                  struct err *err)
{
    struct talk talk = {.request.verb = EGRESS_WINDOW, .request.number = bytes};

    if (put_name(talk.request.id, id, err) < 0 || put_name(talk.request.mark, mark, err) < 0)
        return -1;
    if (ask(egress, &talk, err) < 0)
        return -1;
    bring_vault(egress, &talk.answer);
    return 0;
}

static int put_who(char *out, size_t size, const char *text, struct err *err)
{
    if (strlen(text) >= size)
        return err_set(err, ERR_LIMIT, "\"%.100s\" is too long to be who uses a secret", text);
    (void)snprintf(out, size, "%s", text);
    return 0;
}

int egress_who(struct egress *egress, const char *id, const struct egress_who *who, struct err *err)
{
    struct talk talk = {.request.verb = EGRESS_WHO};
    struct egress_who_text *text = &talk.request.who;

    if (put_name(talk.request.id, id, err) < 0 ||
        put_who(text->tenant, sizeof text->tenant, who->tenant, err) < 0 ||
        put_who(text->subject, sizeof text->subject, who->subject, err) < 0 ||
        put_who(text->pack, sizeof text->pack, who->pack, err) < 0)
        return -1;
    if (strlen(who->name) < sizeof text->name)
        (void)snprintf(text->name, sizeof text->name, "%s", who->name);
    return ask(egress, &talk, err);
}

int egress_end(struct egress *egress, const char *id, struct err *err)
{
    struct talk talk = {.request.verb = EGRESS_END};

    if (put_name(talk.request.id, id, err) < 0)
        return -1;
    return ask(egress, &talk, err);
}

static int ask_document(struct egress *egress, struct talk *talk, struct arena *mem,
                        const struct json **out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(JSON_TEXT_MAX);
    AUTO_FD int fd = -1;
    struct mark where;

    talk->wants_doc = true;
    if (ask(egress, talk, err) < 0)
        return -1;
    fd = talk->doc_fd;
    if (memory_file_read(fd, &text, err) < 0)
        return -1;
    /* The tree borrows from the text, and that is to live as long as the tree. */
    return json_parse(mem, arena_str(mem, buf_str(&text)), out, &where, err);
}

int egress_counters(struct egress *egress, const char *id, const char *mark, bool last,
                    struct arena *mem, const struct json **out, struct err *err)
{
    struct talk talk = {.request.verb = EGRESS_COUNTERS, .request.last = last};

    if (put_name(talk.request.id, id, err) < 0 ||
        (mark && put_name(talk.request.mark, mark, err) < 0))
        return -1;
    return ask_document(egress, &talk, mem, out, err);
}

int egress_events(struct egress *egress, uint64_t after, struct arena *mem, const struct json **out,
                  struct err *err)
{
    struct talk talk = {.request.verb = EGRESS_EVENTS, .request.number = after, .starts = true};

    return ask_document(egress, &talk, mem, out, err);
}

int egress_proposals(struct egress *egress, const char *id, struct arena *mem,
                     const struct json **out, struct err *err)
{
    struct talk talk = {.request.verb = EGRESS_PROPOSALS, .starts = true};

    if (id && put_name(talk.request.id, id, err) < 0)
        return -1;
    return ask_document(egress, &talk, mem, out, err);
}

static int put_word(const struct egress_word *word, int *out_fd, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    AUTO_BUF struct buf text = BUF(EGRESS_WORD_MAX);
    struct json *map = json_object(&mem);

    json_put_bytes(&mem, map, "by", str_of(word->by));
    json_put_bytes(&mem, map, "reason", str_of(word->reason));
    json_put_text(&mem, map, "policy_hash", word->policy_hash);
    if (json_compact(map, &text, err) < 0)
        return -1;
    return memory_file_make("egress-word", buf_str(&text), out_fd, err);
}

int egress_decide(struct egress *egress, const char *id, const char *proposal,
                  const struct egress_word *word, struct err *err)
{
    struct talk talk = {
        .request.verb = EGRESS_DECIDE, .request.last = word->approve, .fd_n = 1, .starts = true};
    AUTO_FD int fd = -1;

    if (put_name(talk.request.id, id, err) < 0 || put_name(talk.request.mark, proposal, err) < 0 ||
        put_word(word, &fd, err) < 0)
        return -1;
    talk.fds[0] = fd;
    return ask(egress, &talk, err);
}

/* ---- its life ---- */

static int greet(struct egress *egress, struct err *err)
{
    struct talk talk = {.request.verb = EGRESS_HELLO, .starts = true};

    if (ask(egress, &talk, err) == 0)
        return 0;
    return err_in(err, "egress in %s/" EGRESS_FOLDER " (its " EGRESS_LOG " may say more)",
                  egress->state_dir);
}

static struct egress *egress_new(const char *state_dir)
{
    struct egress *egress = xcalloc(1, sizeof *egress);

    egress->fd = -1;
    egress->state_dir = xstrdup(state_dir);
    (void)pthread_mutex_init(&egress->lock, NULL);
    return egress;
}

int egress_find(const char *state_dir, struct egress **out, struct err *err)
{
    AUTO(egress) struct egress *egress = egress_new(state_dir);

    if (egress_connect_running(state_dir, &egress->fd, err) < 0)
        return -1;
    *out = TAKE(egress);
    return 0;
}

int egress_open(const char *state_dir, struct egress **out, struct err *err)
{
    AUTO(egress) struct egress *egress = egress_new(state_dir);

    if (greet(egress, err) < 0)
        return -1;
    *out = TAKE(egress);
    return 0;
}

void egress_free(struct egress *egress)
{
    if (!egress)
        return;
    hang_up(egress);
    (void)pthread_mutex_destroy(&egress->lock);
    free(egress->state_dir);
    free(egress);
}
