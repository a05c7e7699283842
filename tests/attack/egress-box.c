/* SPDX-License-Identifier: Apache-2.0 */

/* Stands in for box and its controller, so that egress can be driven without either:
 *
 *     egress-box STATE RULES COMMAND...
 *
 * makes a network namespace as decision 0032 has it, hands its listeners over, runs the command in
 * it, and says who calls connect. RULES is canonical JSON. On SIGUSR1 the rules of RULES.swap are
 * given instead, and what came of it is written to STATE/swapped. At the end what was counted is
 * written to STATE/counters.json. With EGRESS_BOX_SILENT nothing is said about callers;
 * EGRESS_BOX_ID is what the sandbox is called. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "cmd/box/box-egress.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/egress/control.h"
#include "lib/egress/handover.h"
#include "lib/linux/fd-pass.h"

/* The ports some rule of some test names. */
static const uint16_t ports[] = {22, 25, 80, 443, 2222, 7000, 8080};

static const char *id(void)
{
    return getenv("EGRESS_BOX_ID") ? getenv("EGRESS_BOX_ID") : "test";
}

static NORETURN void die(const char *what)
{
    (void)fprintf(stderr, "egress-box: %s: %s\n", what, strerror(errno));
    _exit(99);
}

/* ---- inside ---- */

/* With box's own hands. */
static void hand_over(int to)
{
    int fds[HANDOVER_FD_COUNT];
    struct err err;

    if (system("ip link set lo up") != 0)
        die("setting lo up");
    if (egress_build(ports, COUNT(ports), fds, &err) < 0 || egress_hand_over(to, fds, &err) < 0)
        die(err.text);
}

static int notify_connect(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {COUNT(filter), filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        die("no_new_privs");
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                        &program);
}

static NORETURN void be_inside(int handover_fd, int notify_to, char **command)
{
    struct err err;
    int notify_fd;

    if (unshare(CLONE_NEWNET) < 0)
        die("unshare");
    hand_over(handover_fd);
    (void)close(handover_fd);
    notify_fd = notify_connect();
    if (notify_fd < 0 || fd_send(notify_to, notify_fd, &err) < 0)
        die("seccomp");
    (void)close(notify_fd);
    (void)close(notify_to);
    (void)execvp(command[0], command);
    die(command[0]);
}

/* ---- outside ---- */

#define PROGRAM_MAX (512 * MIB) /* as box has it: node alone has 100 MiB */

/* Of a process' executable, as far as a test needs it. One that asks a thousand times is read once.
 */
static void look_at(pid_t pid, struct handover_program *out, char path[PATH_BYTES_MAX])
{
    static struct stat seen;
    static struct hash seen_hash;
    AUTO_BUF struct buf content = BUF(PROGRAM_MAX);
    char link[64];
    struct stat st;
    struct err err;
    ssize_t n;

    (void)snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    n = readlink(link, path, HANDOVER_PATH_MAX);
    if (n <= 0 || stat(link, &st) < 0)
        return;
    if (st.st_dev != seen.st_dev || st.st_ino != seen.st_ino || st.st_size != seen.st_size ||
        st.st_ctim.tv_sec != seen.st_ctim.tv_sec || st.st_ctim.tv_nsec != seen.st_ctim.tv_nsec) {
        if (file_read(AT_FDCWD, link, &content, &err) < 0)
            return;
        hash_of(buf_str(&content), &seen_hash);
        seen = st;
    }
    *out = (struct handover_program){
        .flags = HANDOVER_HASHED, .path = {path, (size_t)n},
             .hash = seen_hash
    };
}

static uint64_t cookie_of(pid_t pid, int fd)
{
    AUTO_FD int pidfd = pidfd_open(pid, 0);
    AUTO_FD int copy = pidfd < 0 ? -1 : pidfd_getfd(pidfd, fd, 0);
    uint64_t cookie = 0;
    socklen_t n = sizeof cookie;
    int type = 0;
    socklen_t type_n = sizeof type;

    if (copy < 0 || getsockopt(copy, SOL_SOCKET, SO_TYPE, &type, &type_n) < 0 ||
        type != SOCK_STREAM || getsockopt(copy, SOL_SOCKET, SO_COOKIE, &cookie, &n) < 0)
        return 0;
    return cookie;
}

static void tell_caller(int handover_fd, const struct seccomp_notif *call)
{
    static char message[HANDOVER_MESSAGE_MAX];
    char path[PATH_BYTES_MAX];
    struct handover_caller caller = {.family = AF_INET, .pid = (uint32_t)call->pid};

    caller.cookie = cookie_of((pid_t)call->pid, (int)call->data.args[0]);
    caller.exe.flags = HANDOVER_NO_PATH;
    look_at((pid_t)call->pid, &caller.exe, path);
    if (caller.cookie && !getenv("EGRESS_BOX_SILENT"))
        (void)send(handover_fd, message, handover_caller(&caller, message), MSG_NOSIGNAL);
}

static void on_call(int notify_fd, int handover_fd)
{
    static struct seccomp_notif call;
    struct seccomp_notif_resp go_on = {.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};

    memset(&call, 0, sizeof call);
    if (ioctl(notify_fd, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
        return;
    tell_caller(handover_fd, &call);
    go_on.id = call.id;
    (void)ioctl(notify_fd, SECCOMP_IOCTL_NOTIF_SEND, &go_on);
}

static volatile sig_atomic_t asked_to_swap;

static void on_usr1(int number)
{
    (void)number;
    asked_to_swap = 1;
}

static void write_text(const char *state, const char *name, struct str text)
{
    char path[PATH_BYTES_MAX];
    struct err err;

    (void)snprintf(path, sizeof path, "%s/%s", state, name);
    if (file_exchange(path, text.p, text.n, 0644, &err) < 0)
        die(err.text);
}

static void swap(struct egress *egress, const char *state, const char *rules_path)
{
    AUTO_BUF struct buf rules = BUF(4 * MIB);
    char path[PATH_BYTES_MAX], hash[HASH_TEXT_BYTES];
    struct hash compiled;
    struct err err;

    (void)snprintf(path, sizeof path, "%s.swap", rules_path);
    if (file_read(AT_FDCWD, path, &rules, &err) < 0 ||
        egress_swap(egress, id(), buf_str(&rules), &compiled, &err) < 0) {
        write_text(state, "swapped", str_of(err.text));
        return;
    }
    hash_text(&compiled, hash);
    write_text(state, "swapped", str_of(hash));
}

static void tell_counters(struct egress *egress, const char *state)
{
    AUTO_ARENA struct arena mem = ARENA(64 * MIB);
    AUTO_BUF struct buf text = BUF(4 * MIB);
    const struct json *counters;
    struct err err;

    if (egress_counters(egress, id(), NULL, false, &mem, &counters, &err) < 0 ||
        json_compact(counters, &text, &err) < 0)
        write_text(state, "counters.json", str_of(err.text));
    else
        write_text(state, "counters.json", buf_str(&text));
}

int main(int argc, char **argv)
{
    AUTO(egress) struct egress *egress = NULL;
    AUTO_BUF struct buf rules = BUF(4 * MIB);
    struct sigaction act = {.sa_handler = on_usr1};
    struct pollfd calls = {.events = POLLIN};
    int pair[2], notify[2], status;
    struct hash hash;
    struct err err;
    pid_t pid;

    if (argc < 4)
        return 64;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, notify) < 0)
        die("socketpair");
    if (egress_open(argv[1], &egress, &err) < 0 || file_read(AT_FDCWD, argv[2], &rules, &err) < 0 ||
        egress_sandbox(egress, id(), buf_str(&rules), pair[0], &hash, &err) < 0) {
        (void)fprintf(stderr, "egress-box: %s\n", err.text);
        return 98;
    }
    (void)close(pair[0]);
    (void)sigaction(SIGUSR1, &act, NULL);
    pid = fork();
    if (pid == 0)
        be_inside(pair[1], notify[1], argv + 3);
    (void)close(notify[1]);
    if (fd_receive(notify[0], &calls.fd, &err) < 0)
        die("the inside");
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (asked_to_swap) {
            asked_to_swap = 0;
            swap(egress, argv[1], argv[2]);
        }
        if (poll(&calls, 1, 50) == 1 && (calls.revents & POLLIN))
            on_call(calls.fd, pair[1]);
    }
    tell_counters(egress, argv[1]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
