/* SPDX-License-Identifier: Apache-2.0 */

/* The processes of a kept sandbox, as the kernel shows them on this machine. Children of its PID 1
 * that are of its session are keepers, called like their run, and everything below one belongs to
 * it. What else there is belongs to the run PID 1 is called like: no command can be of a session
 * that it did not begin. A process may end while it is looked at; then it is left out. */

#include "flow/execute/kept.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESSES_MAX 4096U
#define DEPTH_MAX 128U
#define COMMAND_BYTES_MAX 4096U
#define COMM_BYTES 16

struct walk {
    int (*on_process)(void *context, const struct kept_process *process, struct err *err);
    void *context;
    int session; /* of PID 1 */
    char exec[COMM_BYTES];
    unsigned seen;
};

static bool read_proc(int pid, const char *name, struct buf *out)
{
    char path[128];
    struct err ignored; /* it ended meanwhile */

    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return file_read(AT_FDCWD, path, out, &ignored) == 0 && out->n > 0;
}

/* The last number of a line of status: the innermost id. */
static int last_number(const char *status, const char *key)
{
    const char *at = strstr(status, key);
    int number = 0;

    for (at = at ? at + strlen(key) : ""; *at && *at != '\n';) {
        char *end;
        long value = strtol(at, &end, 10);

        if (end == at)
            break;
        number = (int)value;
        at = end;
    }
    return number;
}

/* Fields of stat stand behind the name in parentheses, which may hold anything. */
static bool take_stat(int pid, struct kept_process *out)
{
    AUTO_BUF struct buf text = BUF(PROC_TEXT_MAX);
    unsigned long long user = 0, system = 0;
    const char *behind;
    long resident = 0;
    char state = 0;

    if (!read_proc(pid, "stat", &text))
        return false;
    behind = strrchr(buf_text(&text), ')');
    if (!behind || sscanf(behind + 1,
                          " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d "
                          "%*d %*d %*u %*u %ld",
                          &state, &user, &system, &resident) != 4)
        return false;
    out->state = state;
    out->cpu_us = (user + system) * 1000000U / (unsigned long long)sysconf(_SC_CLK_TCK);
    out->memory_bytes = (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
    return true;
}

static int tell(struct walk *walk, int pid, struct err *err)
{
    AUTO_BUF struct buf status = BUF(PROC_TEXT_MAX);
    AUTO_BUF struct buf command = BUF(PROC_TEXT_MAX);
    struct kept_process process = {.exec = walk->exec};

    if (!read_proc(pid, "status", &status) || !take_stat(pid, &process))
        return 0;
    process.pid = last_number(buf_text(&status), "\nNSpid:");
    if (!read_proc(pid, "cmdline", &command))
        (void)read_proc(pid, "comm", &command);
    for (size_t i = 0; i + 1 < command.n; i++)
        if (command.p[i] == '\0')
            command.p[i] = ' ';
    process.command = buf_str(&command);
    while (process.command.n && strchr("\n", process.command.p[process.command.n - 1]))
        process.command.n--; /* strchr finds the closing NUL as well */
    if (process.command.n > COMMAND_BYTES_MAX)
        process.command.n = COMMAND_BYTES_MAX;
    return walk->on_process(walk->context, &process, err);
}

static void take_name(struct walk *walk, int pid)
{
    AUTO_BUF struct buf comm = BUF(PROC_TEXT_MAX);

    walk->exec[0] = '\0';
    if (read_proc(pid, "comm", &comm))
        (void)snprintf(walk->exec, sizeof walk->exec, "%.*s", (int)strcspn(buf_text(&comm), "\n"),
                       buf_text(&comm));
}

/* -1: it ended meanwhile. */
static int session_of(int pid)
{
    AUTO_BUF struct buf text = BUF(PROC_TEXT_MAX);
    const char *behind;
    int session = -1;

    if (!read_proc(pid, "stat", &text))
        return -1;
    behind = strrchr(buf_text(&text), ')');
    return behind && sscanf(behind + 1, " %*c %*d %*d %d", &session) == 1 ? session : -1;
}

static int walk_children(struct walk *walk, int parent, unsigned depth, struct err *err)
{
    AUTO_BUF struct buf children = BUF(PROC_TEXT_MAX);
    char name[64];
    const char *at;
    char *end;

    (void)snprintf(name, sizeof name, "task/%d/children", parent);
    if (depth > DEPTH_MAX || !read_proc(parent, name, &children))
        return 0;
    for (at = buf_text(&children); walk->seen < PROCESSES_MAX; at = end) {
        long pid = strtol(at, &end, 10);

        if (end == at || pid <= 0)
            return 0;
        walk->seen++;
        if (depth == 0 && session_of((int)pid) == walk->session) {
            take_name(walk, (int)pid);
        } else {
            if (depth == 0)
                take_name(walk, parent);
            if (tell(walk, (int)pid, err) < 0)
                return -1;
        }
        if (walk_children(walk, (int)pid, depth + 1, err) < 0)
            return -1;
    }
    return 0;
}

int execute_kept_processes(struct execute *execute, const char *id,
                           int (*on_process)(void *context, const struct kept_process *process,
                                             struct err *err),
                           void *context, struct err *err)
{
    struct walk walk = {.on_process = on_process, .context = context};
    struct kept_state state;

    if (execute_kept_state(execute, id, &state, err) < 0)
        return -1;
    walk.session = session_of(state.pid);
    return walk_children(&walk, state.pid, 0, err);
}
