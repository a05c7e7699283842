/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/box/box-identity.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEXT_BYTES 4096
#define FLAGS_AT 5 /* fields behind the state */
#define STARTED_AT 18

static ssize_t read_text(int dir_fd, const char *name, char *out, size_t size)
{
    AUTO_FD int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

    out[n > 0 ? n : 0] = '\0';
    return n;
}

/* "PID (NAME) STATE PARENT …", where NAME is anything; the rest is numbers. */
bool facts_read(int dir_fd, const char *name, struct process_facts *out)
{
    char text[TEXT_BYTES];
    char *at;

    if (read_text(dir_fd, name, text, sizeof text) <= 0)
        return false;
    at = strrchr(text, ')');
    if (!at || strlen(at) < 4)
        return false;
    at += 4; /* the state is one letter between blanks */
    for (int field = 0; field <= STARTED_AT; field++) {
        unsigned long long number = strtoull(at, &at, 10);

        if (field == 0)
            out->parent = (pid_t)number;
        else if (field == FLAGS_AT)
            out->flags = (unsigned long)number;
        else if (field == STARTED_AT)
            out->started = number;
    }
    return true;
}

/* "NSpid:" has a number for each namespace, the outermost first. */
pid_t facts_inner_pid(int dir_fd)
{
    char text[TEXT_BYTES];
    char *at, *end;

    if (read_text(dir_fd, "status", text, sizeof text) <= 0)
        return -1;
    at = strstr(text, "\nNSpid:"); /* a name before it has its line ends escaped */
    end = at ? strchr(at + 1, '\n') : NULL;
    if (!end)
        return -1;
    *end = '\0';
    at = strrchr(at, '\t');
    return at ? (pid_t)strtol(at, NULL, 10) : -1;
}

/* ---- commands ---- */

static struct commands *noted;

int commands_make(struct commands **out, struct err *err)
{
    struct commands *made =
        mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (made == MAP_FAILED)
        return err_os(err, "making room for the commands of a sandbox");
    *out = made;
    return 0;
}

void commands_use(struct commands *commands)
{
    noted = commands;
}

/* Not noted for whatever reason is seen as lost. */
void commands_note(void)
{
    struct process_facts facts;
    uint32_t at;

    if (!noted || !facts_read(AT_FDCWD, "/proc/self/stat", &facts))
        return;
    at = atomic_fetch_add(&noted->n, 1) % COMMANDS_MAX;
    noted->of[at].started = facts.started;
    noted->of[at].pid = getpid();
}

bool commands_has(const struct commands *commands, pid_t inner, uint64_t started)
{
    for (size_t i = 0; inner > 0 && i < COMMANDS_MAX; i++)
        if (commands->of[i].pid == inner && commands->of[i].started == started)
            return true;
    return false;
}
