/* SPDX-License-Identifier: Apache-2.0 */

/* terminal: puts words into the mouth of whoever types at the terminal on descriptor 0, or at a
 * terminal made here when there is none. */

#include "attack.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

static int own_terminal(void)
{
    int unlock = 0;
    unsigned number = 0;
    char path[64];
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);

    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0 ||
        ioctl(master, TIOCGPTN, &number) < 0) {
        answer("a terminal of our own", errno);
        exit(1);
    }
    (void)snprintf(path, sizeof path, "/dev/pts/%u", number);
    (void)setsid();
    return open(path, O_RDWR); /* becomes the controlling one */
}

int main(void)
{
    static const struct {
        const char *name;
        unsigned long request;
    } requests[] = {
        {"TIOCSTI",   TIOCSTI  },
        {"TIOCLINUX", TIOCLINUX},
        {"TIOCSETD",  TIOCSETD },
        {"TIOCCONS",  TIOCCONS },
    };
    static const unsigned long highs[] = {0, 1UL << 32, 1UL << 63, 0xffffffffUL << 32};
    struct winsize size;
    int fd = isatty(0) ? 0 : own_terminal();
    int value = 3; /* TIOCLINUX: shift state; a letter for TIOCSTI; a discipline for TIOCSETD */

    (void)printf("descriptor 0 is %sa terminal\n", isatty(0) ? "" : "not ");
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        for (size_t h = 0; h < sizeof highs / sizeof highs[0]; h++) {
            char name[64];

            (void)snprintf(name, sizeof name, "%s + %#lx", requests[i].name, highs[h]);
            (void)attempt(name, syscall(SYS_ioctl, fd, requests[i].request | highs[h], &value));
        }
    (void)attempt("TIOCGWINSZ", ioctl(fd, TIOCGWINSZ, &size));
    (void)attempt("TIOCGWINSZ + 0x100000000",
                  syscall(SYS_ioctl, fd, TIOCGWINSZ | 1UL << 32, &size));
    return 0;
}
