/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/cli/passphrase.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/crypto/sealed.h"
#include "surface/cli/commands.h"

/* A copy in mem of the first line; what it was read into is wiped. */
static int take_line(struct invocation *inv, char *bytes, size_t n, struct str *out,
                     struct err *err)
{
    struct str rest = {bytes, n};
    struct str line = str_cut(&rest, '\n');
    char *copy;

    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    copy = arena_array(&inv->mem, char, line.n + 1);
    memcpy(copy, line.p, line.n);
    explicit_bzero(bytes, n);
    *out = (struct str){copy, line.n};
    return line.n ? 0 : err_set(err, ERR_INVALID, "the passphrase is empty");
}

static int read_file(struct invocation *inv, const char *file, struct str *out, struct err *err)
{
    char bytes[PASSPHRASE_MAX + 2];
    AUTO_FD int fd = strcmp(file, "-") == 0 ? dup(STDIN_FILENO) : open(file, O_RDONLY | O_CLOEXEC);
    ssize_t got, n = 0;

    if (fd < 0)
        return err_os(err, "opening %s", file);
    while ((got = read(fd, bytes + n, sizeof bytes - (size_t)n)) > 0)
        n += got;
    if (got < 0)
        return err_os(err, "reading %s", file);
    return take_line(inv, bytes, (size_t)n, out, err);
}

/* What would end the program while nothing typed is shown: it has to wait until that is undone. It
 * is let in while there is nothing to read, and at no other moment: one that came between a look at
 * what has come and the next read would leave that read waiting. */
static const int endings[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
static volatile sig_atomic_t ended_by;

struct held {
    struct sigaction actions[COUNT(endings)];
    sigset_t mask;
};

static void on_ending(int number)
{
    ended_by = number;
}

static void hold_endings(struct held *before)
{
    const struct sigaction hold = {.sa_handler = on_ending};
    sigset_t all;

    ended_by = 0;
    (void)sigemptyset(&all);
    for (size_t i = 0; i < COUNT(endings); i++)
        (void)sigaddset(&all, endings[i]);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before->mask);
    for (size_t i = 0; i < COUNT(endings); i++) {
        (void)sigaction(endings[i], NULL, &before->actions[i]);
        if (before->actions[i].sa_handler != SIG_IGN)
            (void)sigaction(endings[i], &hold, NULL);
    }
}

static void let_endings(const struct held *before)
{
    for (size_t i = 0; i < COUNT(endings); i++)
        (void)sigaction(endings[i], &before->actions[i], NULL);
    if (ended_by)
        (void)raise(ended_by);
    (void)pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
}

/* -1 with EINTR: one of the endings came. */
static ssize_t read_held(int fd, const struct held *held, char *bytes, size_t size)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};

    while (ppoll(&polled, 1, NULL, &held->mask) < 0)
        if (errno != EINTR || ended_by)
            return -1;
    return read(fd, bytes, size);
}

/* Echo is off only while it is typed. */
static int read_terminal(struct invocation *inv, const char *prompt, struct str *out,
                         struct err *err)
{
    AUTO_FD int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    char bytes[PASSPHRASE_MAX + 2];
    struct held held;
    struct termios before, unseen;
    ssize_t n;
    int os;

    if (fd < 0 || tcgetattr(fd, &before) < 0)
        return err_set(err, ERR_UNAVAILABLE,
                       "there is no terminal to ask for a passphrase: use --passphrase-file");
    unseen = before;
    unseen.c_lflag &= ~(tcflag_t)ECHO;
    hold_endings(&held);
    (void)tcsetattr(fd, TCSAFLUSH, &unseen);
    (void)dprintf(fd, "%s", prompt);
    n = read_held(fd, &held, bytes, sizeof bytes);
    os = errno;
    (void)dprintf(fd, "\n");
    (void)tcsetattr(fd, TCSAFLUSH, &before);
    let_endings(&held);
    errno = os;
    if (n < 0)
        return err_os(err, "reading the passphrase");
    return take_line(inv, bytes, (size_t)n, out, err);
}

int passphrase_read(struct invocation *inv, const char *file, const char *prompt, struct str *out,
                    struct err *err)
{
    patience_end();
    return file ? read_file(inv, file, out, err) : read_terminal(inv, prompt, out, err);
}

int passphrase_choose(struct invocation *inv, const char *file, struct str *out, struct err *err)
{
    struct str again = {0};

    if (passphrase_read(inv, file, "New passphrase: ", out, err) < 0)
        return -1;
    if (file)
        return 0;
    if (read_terminal(inv, "The same again: ", &again, err) < 0)
        return -1;
    if (again.n == out->n && memcmp(again.p, out->p, out->n) == 0) {
        passphrase_wipe(again);
        return 0;
    }
    passphrase_wipe(again);
    return err_set(err, ERR_INVALID, "these were two different ones");
}

void passphrase_wipe(struct str passphrase)
{
    if (passphrase.p)
        explicit_bzero((char *)(uintptr_t)passphrase.p, passphrase.n);
}
