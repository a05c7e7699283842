/* SPDX-License-Identifier: Apache-2.0 */

/* Finding the egress program, or starting it.
 *
 * Whoever connects holds the lock of the folder. If nobody listens it makes the socket, starts the
 * program with it, and connects: the connection waits in the socket until the program has closed
 * its walls. The program takes the same lock before it ends, and does not end while a connection
 * waits, so none is lost between the two. */

#include "lib/egress/control-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/egress/control-wire.h"
#include "lib/linux/beside.h"

#define LOCK_WAIT_US 5000000U
#define LOCK_LOOK_US 2000U
#define LOG_MAX (1 * MIB)
#define BACKLOG 256

#define ENV_N 2
#define ENV_PATH_BYTES 4200

struct place {
    const char *state_dir;
    int dir_fd;
    int lock_fd;
    struct sockaddr_un address;
};

/* Through the descriptor: a path of any length fits. */
static int open_folder(const char *state_dir, bool makes, struct place *out, struct err *err)
{
    char path[PATH_BYTES_MAX];

    if (snprintf(path, sizeof path, "%s/" EGRESS_FOLDER, state_dir) >= (int)sizeof path)
        return err_set(err, ERR_INVALID, "%s: the path is too long", state_dir);
    if (makes && dir_make(path, 0700, err) < 0)
        return -1;
    out->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (out->dir_fd < 0)
        return err_os(err, "opening %s", path);
    out->address.sun_family = AF_UNIX;
    (void)snprintf(out->address.sun_path, sizeof out->address.sun_path,
                   "/proc/self/fd/%d/" EGRESS_SOCKET, out->dir_fd);
    return 0;
}

/* A folder others may enter would let them take our place. */
static int check_folder(const struct place *place, struct err *err)
{
    struct stat st;

    if (fstat(place->dir_fd, &st) < 0)
        return err_os(err, "looking at the folder of egress");
    if (st.st_uid != geteuid() || (st.st_mode & 077))
        return err_set(err, ERR_FORBIDDEN,
                       "%s/" EGRESS_FOLDER " is not ours alone; make it yours with mode 700",
                       place->state_dir);
    return 0;
}

/* Not a blocking flock: a starter that is stopped must not stop everybody. */
static int take_lock(struct place *place, struct err *err)
{
    uint64_t until_us = clock_us() + LOCK_WAIT_US;

    place->lock_fd =
        openat(place->dir_fd, EGRESS_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (place->lock_fd < 0)
        return err_os(err, "opening the lock of egress");
    while (flock(place->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        const struct timespec pause = {0, LOCK_LOOK_US * 1000};

        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_os(err, "locking %s/" EGRESS_FOLDER, place->state_dir);
        if (clock_us() >= until_us)
            return err_set(err, ERR_TIMEOUT,
                           "somebody else has been starting egress in %s for seconds; try again",
                           place->state_dir);
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

/* Whoever connects waits while the queue of the listener is full, so that has an end too. */
static int new_socket(struct err *err)
{
    const struct timeval wait = {LOCK_WAIT_US / 1000000U, 0};
    AUTO_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) < 0)
        return err_os(err, "making a socket to egress");
    return TAKE_FD(fd);
}

/* 0 and a descriptor, or 0 and -1 when nobody listens. */
static int try_connect(const struct place *place, int *out_fd, struct err *err)
{
    AUTO_FD int fd = new_socket(err);
    struct ucred peer;
    socklen_t n = sizeof peer;

    *out_fd = -1;
    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&place->address, sizeof place->address) < 0) {
        if (errno == ECONNREFUSED || errno == ENOENT)
            return 0;
        return err_os(err, "connecting to egress in %s", place->state_dir);
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || peer.uid != geteuid())
        return err_set(err, ERR_FORBIDDEN, "egress in %s is somebody else's", place->state_dir);
    *out_fd = TAKE_FD(fd);
    return 0;
}

static int make_listener(const struct place *place, int *out_fd, struct err *err)
{
    AUTO_FD int fd = new_socket(err);

    if (fd < 0)
        return -1;
    if (unlinkat(place->dir_fd, EGRESS_SOCKET, 0) < 0 && errno != ENOENT)
        return err_os(err, "removing the old socket of egress");
    if (bind(fd, (const struct sockaddr *)&place->address, sizeof place->address) < 0 ||
        fchmodat(place->dir_fd, EGRESS_SOCKET, 0600, 0) < 0 || listen(fd, BACKLOG) < 0)
        return err_os(err, "making the socket of egress in %s", place->state_dir);
    *out_fd = TAKE_FD(fd);
    return 0;
}

/* It outlives us, so nothing of ours may be held open by it: not even standard error. */
static int open_log(const struct place *place, int *out_fd, struct err *err)
{
    AUTO_FD int fd = openat(place->dir_fd, EGRESS_LOG,
                            O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || (st.st_size > (off_t)LOG_MAX && ftruncate(fd, 0) < 0))
        return err_os(err, "opening the log of egress in %s", place->state_dir);
    *out_fd = TAKE_FD(fd);
    return 0;
}

/* Its whole environment: the roots the operator wants servers to lead to. */
static const char *const *roots_of_operator(char (*memory)[ENV_PATH_BYTES], const char **env)
{
    static const char *const names[ENV_N] = {"SSL_CERT_FILE", "SSL_CERT_DIR"};
    size_t n = 0;

    for (size_t i = 0; i < ENV_N; i++) {
        const char *value = getenv(names[i]);

        if (!value || snprintf(memory[i], sizeof memory[i], "%s=%s", names[i], value) >=
                          (int)sizeof memory[i])
            continue;
        env[n++] = memory[i];
    }
    env[n] = NULL;
    return env;
}

/* What is started ends at once, and its child is nobody's: a daemon has no dead ones to collect. */
static int start(const struct place *place, struct err *err)
{
    static const char *const argv[] = {"egress", NULL};
    char memory[ENV_N][ENV_PATH_BYTES];
    const char *env[ENV_N + 1];
    AUTO_FD int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    AUTO_FD int listen_fd = -1;
    AUTO_FD int log_fd = -1;
    AUTO_FD int lock_fd = openat(place->dir_fd, EGRESS_LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    pid_t pid;
    int status;

    if (null_fd < 0 || lock_fd < 0)
        return err_os(err, "opening what egress is born with");
    if (make_listener(place, &listen_fd, err) < 0 || open_log(place, &log_fd, err) < 0 ||
        program_start(
            argv, roots_of_operator(memory, env),
            (const int[EGRESS_FD_N]){null_fd, null_fd, log_fd, listen_fd, place->dir_fd, lock_fd},
            EGRESS_FD_N, &pid, err) < 0)
        return -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_os(err, "starting egress");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(err, ERR_UNAVAILABLE,
                       "egress cannot be started; %s/" EGRESS_FOLDER "/" EGRESS_LOG " says why",
                       place->state_dir);
    return 0;
}

static int find_or_start(struct place *place, int *out_fd, struct err *err)
{
    if (open_folder(place->state_dir, true, place, err) < 0 || check_folder(place, err) < 0 ||
        take_lock(place, err) < 0 || try_connect(place, out_fd, err) < 0)
        return -1;
    if (*out_fd >= 0)
        return 0;
    if (start(place, err) < 0 || try_connect(place, out_fd, err) < 0)
        return -1;
    if (*out_fd < 0)
        return err_set(err, ERR_UNAVAILABLE, "egress has ended as soon as it was started");
    return 0;
}

static int not_running(const char *state_dir, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "no egress program runs in %s", state_dir);
}

int egress_connect_running(const char *state_dir, int *out_fd, struct err *err)
{
    struct place place = {.state_dir = state_dir, .dir_fd = -1, .lock_fd = -1};
    int fd = -1;
    int failed = open_folder(state_dir, false, &place, err);

    if (failed)
        return err->os == ENOENT ? not_running(state_dir, err) : -1;
    failed = check_folder(&place, err) < 0 || try_connect(&place, &fd, err) < 0;
    (void)close(place.dir_fd);
    if (failed)
        return -1;
    if (fd < 0)
        return not_running(state_dir, err);
    *out_fd = fd;
    return 0;
}

int egress_connect(const char *state_dir, int *out_fd, struct err *err)
{
    struct place place = {.state_dir = state_dir, .dir_fd = -1, .lock_fd = -1};
    int fd = -1;
    int failed = find_or_start(&place, &fd, err);

    if (place.lock_fd >= 0)
        (void)close(place.lock_fd);
    if (place.dir_fd >= 0)
        (void)close(place.dir_fd);
    if (failed)
        return -1;
    *out_fd = fd;
    return 0;
}
