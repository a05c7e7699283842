/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/cli/passphrase.h"

#include <fcntl.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/crypto/sealed.h"

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

/* Echo is off only while it is typed. */
static int read_terminal(struct invocation *inv, const char *prompt, struct str *out,
                         struct err *err)
{
    AUTO_FD int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    char bytes[PASSPHRASE_MAX + 2];
    struct termios before, unseen;
    ssize_t n;

    if (fd < 0 || tcgetattr(fd, &before) < 0)
        return err_set(err, ERR_UNAVAILABLE,
                       "there is no terminal to ask for a passphrase: use --passphrase-file");
    unseen = before;
    unseen.c_lflag &= ~(tcflag_t)ECHO;
    (void)tcsetattr(fd, TCSAFLUSH, &unseen);
    (void)dprintf(fd, "%s", prompt);
    n = read(fd, bytes, sizeof bytes);
    (void)dprintf(fd, "\n");
    (void)tcsetattr(fd, TCSAFLUSH, &before);
    if (n < 0)
        return err_os(err, "reading the passphrase");
    return take_line(inv, bytes, (size_t)n, out, err);
}

int passphrase_read(struct invocation *inv, const char *file, const char *prompt, struct str *out,
                    struct err *err)
{
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
