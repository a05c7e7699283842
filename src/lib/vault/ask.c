/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/vault/vault-ask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "lib/base/io.h"
#include "lib/base/memory.h"
#include "lib/linux/beside.h"

#define OPEN_WAIT_MS 8000

_Static_assert(KEEPER_VAULT_VALUE_MAX == VAULT_VALUE_MAX, "a value fits an answer");
_Static_assert(KEEPER_VAULT_SLOT_BYTES >= VAULT_SLOT_TEXT_BYTES, "a slot fits");
_Static_assert(KEEPER_VAULT_SLOTS_MAX == VAULT_BOUND_MAX, "all slots fit");

static int lost(struct err *err)
{
    return err_set(err, ERR_KEEPER, "the keeper of the vault has ended");
}

/* ---- messages ---- */

static bool put(char *to, size_t size, const char *text)
{
    size_t n = strlen(text);

    if (n >= size)
        return false;
    memcpy(to, text, n + 1);
    return true;
}

int vault_ask_write(enum keeper_vault_verb verb, uint32_t serial, const char *sandbox,
                    const struct vault_question *question, struct keeper_vault_request *out,
                    struct err *err)
{
    struct keeper_vault_question *q = &out->body.question;
    char slot[VAULT_SLOT_TEXT_BYTES] = "";

    *out = (struct keeper_vault_request){.magic = KEEPER_VAULT_MAGIC,
                                         .version = KEEPER_VERSION,
                                         .verb = (uint16_t)verb,
                                         .serial = serial};
    if (verb == KEEPER_VAULT_REVEAL)
        vault_slot_text(&question->slot, slot);
    q->port = question->port;
    if (!put(q->sandbox, sizeof q->sandbox, sandbox) ||
        !put(q->tenant, sizeof q->tenant, question->tenant) ||
        !put(q->subject, sizeof q->subject, question->subject) ||
        !put(q->pack, sizeof q->pack, question->pack) ||
        !put(q->host, sizeof q->host, question->host) ||
        !put(q->scheme, sizeof q->scheme, question->scheme) ||
        !put(q->method, sizeof q->method, question->method) ||
        !put(q->path, sizeof q->path, question->path) || !put(q->slot, sizeof q->slot, slot) ||
        (verb == KEEPER_VAULT_REVEAL && !put(q->name, sizeof q->name, question->name)))
        return err_set(err, ERR_LIMIT, "a request too long for a secret to be put into it");
    return 0;
}

static int check_answer(const struct keeper_vault_answer *answer, uint32_t serial, struct err *err)
{
    if (answer->magic != KEEPER_VAULT_MAGIC || answer->version != KEEPER_VERSION ||
        answer->serial != serial)
        return err_set(err, ERR_KEEPER, "the keeper of the vault answers something else");
    if (answer->status == KEEPER_DONE)
        return 0;
    return err_set(err,
                   answer->status == KEEPER_FAILED && answer->code >= 0 && answer->code <= ERR_OS
                       ? (enum err_code)answer->code
                       : ERR_KEEPER,
                   "%.400s", answer->body.text);
}

int vault_ask_value(struct keeper_vault_answer *answer, uint32_t serial, struct secret **out,
                    struct err *err)
{
    int failed = check_answer(answer, serial, err);

    if (!failed && answer->n > sizeof answer->body.value)
        failed = lost(err);
    if (!failed)
        failed = secret_new((struct str){answer->body.value, answer->n}, out, err);
    secret_wipe(answer, sizeof *answer);
    return failed;
}

int vault_ask_slots(struct keeper_vault_answer *answer, uint32_t serial,
                    struct vault_slot out[VAULT_BOUND_MAX], size_t *n, struct err *err)
{
    if (check_answer(answer, serial, err) < 0)
        return -1;
    if (answer->n > VAULT_BOUND_MAX)
        return lost(err);
    for (size_t i = 0; i < answer->n; i++) {
        struct str text = {answer->body.slots[i],
                           strnlen(answer->body.slots[i], KEEPER_VAULT_SLOT_BYTES)};

        if (vault_slot_parse(text, &out[i], err) < 0)
            return -1;
    }
    *n = answer->n;
    return 0;
}

/* ---- waiting ---- */

static int converse(int fd, const struct keeper_vault_request *request, unsigned wait_ms,
                    struct keeper_vault_answer *out, struct err *err)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    ssize_t got;
    int polled;

    if (send(fd, request, sizeof *request, MSG_NOSIGNAL) != (ssize_t)sizeof *request)
        return lost(err);
    do
        polled = poll(&ready, 1, (int)wait_ms);
    while (polled < 0 && errno == EINTR);
    if (polled == 0)
        return err_set(err, ERR_TIMEOUT, "the keeper of the vault does not answer");
    got = recv(fd, out, sizeof *out, MSG_TRUNC);
    return got == (ssize_t)sizeof *out ? 0 : lost(err);
}

int vault_ask_reveal(int fd, const char *sandbox, const struct vault_question *question,
                     unsigned wait_ms, struct secret **out, struct err *err)
{
    struct keeper_vault_request request;
    struct keeper_vault_answer answer;

    if (vault_ask_write(KEEPER_VAULT_REVEAL, 1, sandbox, question, &request, err) < 0 ||
        converse(fd, &request, wait_ms, &answer, err) < 0)
        return -1;
    return vault_ask_value(&answer, 1, out, err);
}

int vault_ask_bound(int fd, const char *sandbox, const struct vault_question *question,
                    unsigned wait_ms, struct vault_slot out[VAULT_BOUND_MAX], size_t *n,
                    struct err *err)
{
    struct keeper_vault_request request;
    struct keeper_vault_answer answer;

    if (vault_ask_write(KEEPER_VAULT_BOUND, 1, sandbox, question, &request, err) < 0 ||
        converse(fd, &request, wait_ms, &answer, err) < 0)
        return -1;
    return vault_ask_slots(&answer, 1, out, n, err);
}

/* ---- starting one ---- */

static int simple(int fd, enum keeper_vault_verb verb, struct str key, struct err *err)
{
    struct keeper_vault_request request = {.magic = KEEPER_VAULT_MAGIC,
                                           .version = KEEPER_VERSION,
                                           .verb = (uint16_t)verb,
                                           .serial = verb};
    struct keeper_vault_answer answer;
    int failed;

    if (key.n)
        memcpy(request.body.key, key.p, key.n);
    failed = converse(fd, &request, OPEN_WAIT_MS, &answer, err);
    secret_wipe(&request, sizeof request);
    return failed < 0 ? -1 : check_answer(&answer, verb, err);
}

static int born(const char *folder, int socket_fd, pid_t *out, struct err *err)
{
    static const char *const argv[] = {"keeper", "vault", NULL};
    AUTO_FD int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    AUTO_FD int folder_fd = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int fds[KEEPER_FD_N] = {null_fd, null_fd, STDERR_FILENO, socket_fd, folder_fd};

    if (null_fd < 0 || folder_fd < 0)
        return err_os(err, "opening %s for its keeper", folder);
    return program_start(argv, NULL, fds, KEEPER_FD_N, out, err);
}

/* It outlives us, so it has nothing of ours; what is started ends at once, and its child is
 * nobody's. */
static int born_apart(const char *folder, int socket_fd, struct err *err)
{
    static const char *const argv[] = {"keeper", "vault", "apart", NULL};
    AUTO_FD int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    AUTO_FD int folder_fd = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int fds[KEEPER_FD_N] = {null_fd, null_fd, null_fd, socket_fd, folder_fd};
    pid_t pid;

    if (null_fd < 0 || folder_fd < 0)
        return err_os(err, "opening %s for its keeper", folder);
    if (program_start(argv, NULL, fds, KEEPER_FD_N, &pid, err) < 0)
        return -1;
    while (waitpid(pid, NULL, 0) < 0)
        if (errno != EINTR)
            return err_os(err, "starting the keeper of the vault");
    return 0;
}

/* The key of a key file is the keeper's to read; any other is found here and handed over. */
static int open_it(int fd, const char *state_dir, struct str passphrase, struct err *err)
{
    AUTO(vault) struct vault *vault = NULL;
    enum vault_master kind;
    struct str key = {"", 0};

    if (vault_look(state_dir, &kind, err) < 0 ||
        (kind != VAULT_KEY_FILE && vault_open(state_dir, passphrase, &vault, err) < 0))
        return -1;
    if (vault)
        key = vault_master_reveal(vault);
    if (simple(fd, KEEPER_VAULT_HELLO, (struct str){"", 0}, err) < 0)
        return -1;
    return simple(fd, KEEPER_VAULT_OPEN, key, err);
}

int vault_keeper_start(const char *state_dir, struct str passphrase, int *out_fd, pid_t *out_pid,
                       struct err *err)
{
    AUTO_FREE char *folder = NULL;
    AUTO_FD int ours = -1;
    AUTO_FD int theirs = -1;
    int sockets[2];

    if (asprintf(&folder, "%s/" VAULT_FOLDER, state_dir) < 0)
        return err_os(err, "naming the vault");
    if (dir_make(folder, 0700, err) < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return err_os(err, "making a socket to the keeper of the vault");
    ours = sockets[0];
    theirs = sockets[1];
    if ((out_pid ? born(folder, theirs, out_pid, err) : born_apart(folder, theirs, err)) < 0)
        return -1;
    (void)close(TAKE_FD(theirs));
    if (open_it(ours, state_dir, passphrase, err) < 0)
        return err_in(err, "opening the vault");
    *out_fd = TAKE_FD(ours);
    return 0;
}
