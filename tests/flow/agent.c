/* SPDX-License-Identifier: Apache-2.0 */

/* An agent for the tests of advisory sessions: static, so that it runs in any root. It answers each
 * turn by what the turn says:
 *
 *     anything else     a good envelope
 *     envelope TEXT     a good envelope whose client_view is TEXT, JSON-escaped as it stands
 *     raw TEXT          TEXT as it stands
 *     ask TEXT          {"action_request":TEXT}, waits for the result, and tells it as an envelope
 *     talk              two envelopes where one is due
 *     try WHAT          really tries something, and tells in its envelope what came of it
 *     silent            nothing
 *     leave             ends without an answer
 *     half TEXT         TEXT without the end of its line, and ends
 *     flood             envelopes, for ever
 *     stream            bytes without the end of a line, for ever
 *     parts TEXT        a good envelope whose client_view is TEXT, a byte at a time
 *     nuls              a line of zero bytes
 *     large             a line of 1 MiB
 *     demand            action requests of 100 KiB, for ever
 *     bother TEXT       as ask, and talks while it waits, for ever
 *     linger            closes its output and stays; a child of its own stays, too
 *     forever           goes on when it was told to end */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char line[1 << 20];

static void envelope(const char *view)
{
    printf("{\"epistemic\":{\"facts\":[\"the test runs\"],\"hypotheses\":[],\"assumptions\":[]},"
           "\"advisory\":{\"note\":\"[FACT] nothing to do\"},"
           "\"sandbox\":{\"actions_permitted\":false,\"reason\":\"Helix aligned sandbox mode\"},"
           "\"client_view\":\"%s\"}\n",
           view);
    fflush(stdout);
}

static int next(void)
{
    return fgets(line, sizeof line, stdin) != NULL;
}

/* ---- what it tries ---- */

static const char *outcome(int failed)
{
    static char text[64];

    if (!failed)
        return "worked";
    snprintf(text, sizeof text, "errno %d", errno);
    return text;
}

/* exec never writes to its arguments; its prototype is older than const. */
static char *const *words(const char *const *argv)
{
    return (char *const *)(uintptr_t)argv;
}

static const char *exec_path(const char *path, const char *const *argv)
{
    static char *const none[] = {NULL};
    int status = 0;
    int fds[2];
    int error = 0;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return "no pipe";
    pid = fork();
    if (pid == 0) {
        execve(path, words(argv), none);
        error = errno;
        (void)!write(fds[1], &error, sizeof error);
        _exit(127);
    }
    close(fds[1]);
    if (read(fds[0], &error, sizeof error) == (ssize_t)sizeof error)
        errno = error;
    else
        error = 0;
    waitpid(pid, &status, 0);
    close(fds[0]);
    return outcome(error != 0);
}

static const char *try_exec(const char *path)
{
    const char *const argv[] = {path, "-c", "exit 0", NULL};

    return exec_path(path, argv);
}

/* A copy of ourselves where we may write. */
static int copy_self(const char *to)
{
    int in = open("/proc/self/exe", O_RDONLY);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    ssize_t n;

    if (in < 0 || out < 0)
        return -1;
    while ((n = read(in, line, sizeof line)) > 0)
        if (write(out, line, (size_t)n) != n)
            return -1;
    close(in);
    return close(out);
}

static const char *try_file(void)
{
    if (copy_self("/sandbox/tmp/self") < 0)
        return "no copy";
    return try_exec("/sandbox/tmp/self");
}

static const char *try_memory(void)
{
    static const char *const argv[] = {"self", NULL};
    int in = open("/proc/self/exe", O_RDONLY);
    int fd = (int)syscall(SYS_memfd_create, "self", 0);
    ssize_t n;

    if (in < 0 || fd < 0)
        return outcome(1);
    while ((n = read(in, line, sizeof line)) > 0)
        if (write(fd, line, (size_t)n) != n)
            return "no copy";
    return outcome(syscall(SYS_execveat, fd, "", argv, argv + 1, AT_EMPTY_PATH) < 0);
}

static const char *try_loader(void)
{
    const char *const argv[] = {"ld.so", "/bin/true", NULL};

    return exec_path("/lib64/ld-linux-x86-64.so.2", argv);
}

static const char *try_network(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(80)};

    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    return outcome(fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0);
}

static const char *try_write(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0644);

    return outcome(fd < 0 || write(fd, "x", 1) != 1);
}

static const char *try_forks(void)
{
    int n = 0;

    while (n < 100000) {
        pid_t pid = fork();

        if (pid == 0) {
            pause();
            _exit(0);
        }
        if (pid < 0)
            break;
        n++;
    }
    return n < 100000 ? "stopped" : "worked";
}

/* So often, in this process: each call that is refused comes back. */
static const char *try_execs(const char *times)
{
    static char *const none[] = {NULL};
    int n = atoi(times);

    for (int i = 0; i < n; i++)
        execve("/bin/true", none, none);
    return outcome(1);
}

static void exec_for_ever(int told_fd)
{
    try_execs("1");
    (void)!write(told_fd, "x", 1);
    for (;;)
        try_execs("1");
}

/* In children that stay. */
static const char *try_storm(void)
{
    int told[2];
    char one;

    if (pipe2(told, O_CLOEXEC) < 0)
        return "no pipe";
    for (int i = 0; i < 4; i++)
        if (fork() == 0)
            exec_for_ever(told[1]);
    return outcome(read(told[0], &one, 1) != 1);
}

/* Whoever hears of a call may let it go on. */
static const char *try_listener(void)
{
    struct sock_filter filter[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = 1, .filter = filter};

    return outcome(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                           &program) < 0);
}

static const char *attempt(const char *what)
{
    static const struct {
        const char *name;
        const char *(*call)(void);
    } calls[] = {
        {"file",     try_file    },
        {"memory",   try_memory  },
        {"loader",   try_loader  },
        {"network",  try_network },
        {"forks",    try_forks   },
        {"storm",    try_storm   },
        {"listener", try_listener},
    };

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(what, calls[i].name) == 0)
            return calls[i].call();
    if (strncmp(what, "exec ", 5) == 0)
        return try_exec(what + 5);
    if (strncmp(what, "execs ", 6) == 0)
        return try_execs(what + 6);
    if (strncmp(what, "write ", 6) == 0)
        return try_write(what + 6);
    if (strncmp(what, "read ", 5) == 0)
        return outcome(open(what + 5, O_RDONLY) < 0);
    return "nothing of that name";
}

/* ---- turns ---- */

/* The text of a turn as it stands in the line; the tests write nothing that needs escapes but
 * quotes, which are taken out. */
static char *text_of(void)
{
    static char text[1 << 20];
    const char *p = strstr(line, "\"text\":\"");
    size_t n = 0;

    for (p = p ? p + 8 : ""; *p && *p != '"'; p++) {
        if (*p == '\\' && p[1])
            p++;
        text[n++] = *p;
    }
    text[n] = '\0';
    return text;
}

static void ask(const char *what)
{
    char view[1024];

    printf("{\"action_request\":%s}\n", what);
    fflush(stdout);
    if (!next())
        return;
    snprintf(view, sizeof view, "[FACT] The result is %s, %s.",
             strstr(line, "\"state\":\"confirmed\"")  ? "confirmed"
             : strstr(line, "\"state\":\"rejected\"") ? "rejected"
             : strstr(line, "\"state\":\"expired\"")  ? "expired"
                                                      : "aborted",
             strstr(line, "\"done\":true") ? "done" : "not done");
    envelope(view);
}

/* ---- what no agent should do ---- */

static void fill(char byte, size_t n)
{
    memset(line, byte, n);
    fwrite(line, 1, n, stdout);
}

static void flood(void)
{
    for (;;)
        envelope("[FACT] And another thing.");
}

static void stream(void)
{
    for (;;)
        fill('x', 65536);
}

static void parts(const char *view)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    envelope(view);
}

static void nuls(void)
{
    fill('\0', 4096);
    puts("");
    fflush(stdout);
}

static void large(void)
{
    fill('x', sizeof line);
    puts("");
    fflush(stdout);
}

static void demand(void)
{
    for (;;) {
        printf("{\"action_request\":{\"type\":\"process\",\"operation\":\"execute\","
               "\"risk\":\"irreversible\",\"target\":\"/sandbox/output/x\",\"content\":\"");
        fill('x', 100000);
        puts("\"}}");
        fflush(stdout);
    }
}

static void bother(const char *what)
{
    printf("{\"action_request\":%s}\n", what);
    flood();
}

static void linger(void)
{
    (void)!fork();
    close(STDOUT_FILENO);
    for (;;)
        pause();
}

static int misbehaves(const char *text)
{
    static const struct {
        const char *name;
        void (*call)(void);
    } calls[] = {
        {"flood",  flood },
        {"stream", stream},
        {"nuls",   nuls  },
        {"large",  large },
        {"demand", demand},
        {"linger", linger},
    };

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(text, calls[i].name) == 0) {
            calls[i].call();
            return 1;
        }
    if (strncmp(text, "half ", 5) == 0) {
        fputs(text + 5, stdout);
        exit(0);
    }
    if (strncmp(text, "bother ", 7) == 0)
        bother(text + 7);
    if (strncmp(text, "parts ", 6) == 0)
        parts(text + 6);
    return strncmp(text, "parts ", 6) == 0;
}

static void answer(const char *text)
{
    char view[4096];

    if (misbehaves(text))
        return;

    if (strncmp(text, "raw ", 4) == 0) {
        puts(text + 4);
        fflush(stdout);
    } else if (strncmp(text, "envelope ", 9) == 0) {
        envelope(text + 9);
    } else if (strncmp(text, "ask ", 4) == 0) {
        ask(text + 4);
    } else if (strcmp(text, "talk") == 0) {
        envelope("[FACT] One.");
        envelope("[FACT] Two.");
    } else if (strncmp(text, "try ", 4) == 0) {
        snprintf(view, sizeof view, "[FACT] It %s.", attempt(text + 4));
        envelope(view);
    } else if (strcmp(text, "leave") == 0) {
        exit(0);
    } else if (strcmp(text, "silent") != 0) {
        envelope("[FACT] The advice is to wait.");
    }
}

int main(void)
{
    int stays = 0;

    while (next()) {
        if (strstr(line, "\"type\":\"turn\"")) {
            const char *text = text_of();

            stays |= strcmp(text, "forever") == 0;
            answer(text);
        }
        if (strstr(line, "\"type\":\"end\""))
            break;
    }
    while (stays) {
        envelope("[FACT] I go on.");
        usleep(100000);
    }
    return 0;
}
