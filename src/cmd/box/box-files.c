/* SPDX-License-Identifier: Apache-2.0 */

/* Files and ports of a kept sandbox, for its caller outside.
 *
 * A keeper does this: a process of the sandbox, inside all its walls, as its user. A path is
 * resolved beneath the sandbox's root because this process has no other, and reaches what a
 * command could reach and nothing else. Opening never waits: a FIFO, a device, a socket and a
 * file under a lease are refused, so nothing in the sandbox can hold a caller up. */

#include "cmd/box/box.h"

#include "flow/execute/file-wire.h"
#include "lib/base/buf.h"
#include "lib/base/io.h"
#include "lib/linux/fd-pass.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define CONNECT_WAIT_MS 5000
#define MODE_MAX                                                                                   \
    0777U /* no set-id, no sticky bit: the seccomp filter refuses the former anyway                \
           */
#define NEW_FILE_MODE 0644U
#define TEMP_BYTES 32

/* The file that is being written, beside the place it is meant for. */
struct writing {
    int dir_fd; /* -1: none */
    int fd;
    char temp[TEMP_BYTES];
    char name[NAME_MAX + 1];
};

static struct writing writing = {.dir_fd = -1, .fd = -1};

static int fail(const char *path, struct err *err)
{
    int os = errno;

    (void)err_os(err, "%.300s", path);
    if (os == ENOENT || os == ENOTDIR)
        err->code = ERR_NOT_FOUND;
    return -1;
}

/* The folder that holds the last name of a path, and that name: operations on the name itself
 * must not follow it. */
static int open_parent(const char *path, char name[NAME_MAX + 1], struct err *err)
{
    char parent[FILE_PATH_BYTES];
    size_t n = strlen(path);
    size_t start;
    int fd;

    while (n > 1 && path[n - 1] == '/')
        n--;
    for (start = n; start > 0 && path[start - 1] != '/'; start--)
        continue;
    if (n == start || n - start > NAME_MAX)
        return err_set(err, ERR_INVALID, "%.300s: there is no name at its end", path);
    memcpy(name, path + start, n - start);
    name[n - start] = '\0';
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return err_set(err, ERR_INVALID, "%.300s: name the thing itself", path);
    memcpy(parent, path, start);
    parent[start] = '\0';
    fd = open(start ? parent : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? fail(path, err) : fd;
}

static int answer_with(int fd, uint64_t value, struct err *err)
{
    struct box_message message = {.kind = BOX_FILE, .value = value};

    return fds_send(BOX_FD_INSIDE, &message, sizeof message, &fd, fd >= 0, err);
}

/* ---- looking ---- */

static int add_record(struct buf *out, int dir_fd, const char *shown, const char *name, int flags,
                      struct err *err)
{
    char target[FILE_PATH_BYTES];
    struct file_record record;
    ssize_t target_n = 0;
    struct stat st;

    if (fstatat(dir_fd, name, &st, flags) < 0) {
        if (dir_fd == AT_FDCWD)
            return fail(name, err);
        if (errno == ENOENT)
            return 0;          /* gone meanwhile */
        st = (struct stat){0}; /* its name is all that may be known */
    }
    if (S_ISLNK(st.st_mode))
        target_n = readlinkat(dir_fd, name, target, sizeof target);
    record = (struct file_record){
        .mode = st.st_mode,
        .uid = st.st_uid,
        .gid = st.st_gid,
        .mtime_s = st.st_mtim.tv_sec,
        .mtime_ns = (uint32_t)st.st_mtim.tv_nsec,
        .size = (uint64_t)st.st_size,
        .name_n = (uint16_t)strlen(shown),
        .target_n = (uint16_t)(target_n > 0 ? target_n : 0),
    };
    if (buf_add(out, &record, sizeof record, err) < 0 ||
        buf_add(out, shown, record.name_n, err) < 0)
        return -1;
    return buf_add(out, target, record.target_n, err);
}

static int answer_records(const struct buf *records, bool more, struct err *err)
{
    AUTO_FD int fd = memfd_create("listing", MFD_CLOEXEC);

    /* Refused where memory is only watched: see filters.h. */
    if (fd < 0)
        fd = open("/sandbox/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_os(err, "making a listing");
    if (write_all(fd, records->p, records->n, err) < 0)
        return -1;
    return answer_with(fd, more, err);
}

static int list_folder(const struct file_request *request, struct err *err)
{
    AUTO_BUF struct buf records = BUF(FILE_LISTING_MAX);
    int follow = request->flags & FILE_FOLLOW ? 0 : O_NOFOLLOW;
    int fd = open(request->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC | follow);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    unsigned n = 0;
    bool more = false;

    if (!dir)
        return fail(request->path, err);
    while (!more && (entry = readdir(dir)) != NULL) {
        struct err full;
        size_t before = records.n;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        more = ++n > FILE_ENTRIES_MAX || add_record(&records, dirfd(dir), entry->d_name,
                                                    entry->d_name, AT_SYMLINK_NOFOLLOW, &full) < 0;
        if (more)
            records.n = before;
    }
    (void)closedir(dir);
    return answer_records(&records, more, err);
}

static int look_at(const struct file_request *request, struct err *err)
{
    AUTO_BUF struct buf records = BUF(FILE_LISTING_MAX);
    int flags = request->flags & FILE_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW;

    if (add_record(&records, AT_FDCWD, ".", request->path, flags, err) < 0) {
        errno = err->os;
        return fail(request->path, err);
    }
    return answer_records(&records, false, err);
}

/* Files of the kernel have no content of their own; some of them wait, some tell of the host. */
static bool is_of_kernel(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
           fs.f_type == CGROUP_SUPER_MAGIC || fs.f_type == CGROUP2_SUPER_MAGIC;
}

static int refuse_special(const char *path, struct err *err)
{
    return err_set(err, ERR_INVALID, "%.300s is no regular file; only those are handed out", path);
}

static int open_to_read(const struct file_request *request, struct err *err)
{
    AUTO_FD int fd = -1;
    int follow = request->flags & FILE_FOLLOW ? 0 : O_NOFOLLOW;
    struct stat st;

    /* Looked at first, because opening a device may do something; and again, because it may be
     * another one by then. */
    if (fstatat(AT_FDCWD, request->path, &st, follow ? AT_SYMLINK_NOFOLLOW : 0) < 0)
        return fail(request->path, err);
    if (S_ISDIR(st.st_mode))
        return err_set(err, ERR_INVALID, "%.300s is a directory", request->path);
    if (!S_ISREG(st.st_mode))
        return refuse_special(request->path, err);
    fd = open(request->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | follow);
    if (fd < 0 || fstat(fd, &st) < 0)
        return fail(request->path, err);
    if (!S_ISREG(st.st_mode) || is_of_kernel(fd))
        return refuse_special(request->path, err);
    return answer_with(fd, 0, err);
}

/* Read name by name from outside, by one who follows no link (decision 0012). */
static int open_workspace(const struct file_request *request, struct err *err)
{
    AUTO_FD int fd = open(WORKSPACE_TARGET, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    (void)request;
    if (fd < 0)
        return fail(WORKSPACE_TARGET, err);
    return answer_with(fd, 0, err);
}

/* ---- writing ---- */

static void drop_writing(void)
{
    if (writing.dir_fd < 0)
        return;
    (void)unlinkat(writing.dir_fd, writing.temp, 0); /* renamed already, or the sandbox took it */
    (void)close(writing.dir_fd);
    (void)close(writing.fd);
    writing.dir_fd = writing.fd = -1;
}

static int name_temp(char out[TEMP_BYTES], struct err *err)
{
    unsigned long long random = 0;

    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return err_os(err, "taking random bytes");
    (void)snprintf(out, TEMP_BYTES, ".brig-%016llx", random);
    return 0;
}

/* How long a file may become that a command writes; 0: as long as it likes. */
static uint64_t length_limit(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ? 0
                                                                                  : limit.rlim_cur;
}

static int create_file(const struct file_request *request, struct err *err)
{
    struct stat st;

    drop_writing();
    if (name_temp(writing.temp, err) < 0)
        return -1;
    writing.dir_fd = open_parent(request->path, writing.name, err);
    if (writing.dir_fd < 0)
        return -1;
    if (fstatat(writing.dir_fd, writing.name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISDIR(st.st_mode))
            return err_set(err, ERR_INVALID, "%.300s is a directory", request->path);
        if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
            return refuse_special(request->path, err);
    }
    writing.fd = openat(writing.dir_fd, writing.temp,
                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (writing.fd < 0)
        return fail(request->path, err);
    if (is_of_kernel(writing.fd))
        return refuse_special(request->path, err);
    return answer_with(writing.fd, length_limit(), err);
}

static int set_both(int fd, const struct file_request *request, uint32_t mode)
{
    struct timespec times[] = {
        {.tv_nsec = UTIME_OMIT        },
        { .tv_sec = request->mtime_s, .tv_nsec = request->mtime_ns}
    };

    if (fchmod(fd, mode & MODE_MAX) < 0)
        return -1;
    return request->flags & FILE_TIMES ? futimens(fd, times) : 0;
}

static int commit_file(const struct file_request *request, struct err *err)
{
    uint32_t mode = request->mode;
    struct stat st;

    if (writing.dir_fd < 0)
        return err_set(err, ERR_INVALID, "nothing is being written");
    if (request->flags & FILE_KEEP_MODE)
        mode = fstatat(writing.dir_fd, writing.name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                       S_ISREG(st.st_mode)
                   ? st.st_mode
                   : NEW_FILE_MODE;
    if (set_both(writing.fd, request, mode) < 0 ||
        renameat(writing.dir_fd, writing.temp, writing.dir_fd, writing.name) < 0)
        return fail(writing.name, err);
    return answer_with(-1, 0, err);
}

static int remove_path(const struct file_request *request, struct err *err)
{
    char name[NAME_MAX + 1];
    AUTO_FD int dir_fd = open_parent(request->path, name, err);
    struct stat st;

    if (dir_fd < 0)
        return -1;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return fail(request->path, err);
    if (S_ISDIR(st.st_mode) && !(request->flags & FILE_RECURSIVE))
        return err_set(err, ERR_INVALID, "%.300s is a directory; give --recursive to remove it",
                       request->path);
    if (S_ISDIR(st.st_mode)) {
        if (dir_remove(dir_fd, name, err) < 0)
            return -1;
    } else if (unlinkat(dir_fd, name, 0) < 0) {
        return fail(request->path, err);
    }
    return answer_with(-1, 0, err);
}

/* Into a folder, or to another name. */
static int move_path(const struct file_request *request, struct err *err)
{
    char name[NAME_MAX + 1];
    char to_name[NAME_MAX + 1];
    AUTO_FD int from_fd = open_parent(request->path, name, err);
    AUTO_FD int to_fd = -1;

    if (from_fd < 0)
        return -1;
    to_fd = open(request->other, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (to_fd >= 0)
        (void)strcpy(to_name, name);
    else
        to_fd = open_parent(request->other, to_name, err);
    if (to_fd < 0)
        return -1;
    if (renameat(from_fd, name, to_fd, to_name) == 0)
        return answer_with(-1, 0, err);
    if (errno == EXDEV)
        return err_set(err, ERR_INVALID,
                       "%.150s and %.150s are on two file systems; copy and remove instead",
                       request->path, request->other);
    return fail(request->path, err);
}

static int make_folder(const struct file_request *request, struct err *err)
{
    char path[FILE_PATH_BYTES];
    struct stat st;

    (void)strcpy(path, request->path);
    for (char *slash = path + 1; request->flags & FILE_RECURSIVE && *slash; slash++)
        if (*slash == '/') {
            *slash = '\0';
            if (mkdir(path, 0755) < 0 && errno != EEXIST && errno != EACCES && errno != EROFS)
                return fail(path, err);
            *slash = '/';
        }
    if (mkdir(path, request->mode & MODE_MAX) == 0)
        return answer_with(-1, 0, err);
    if (errno == EEXIST && request->flags & FILE_RECURSIVE && stat(path, &st) == 0 &&
        S_ISDIR(st.st_mode))
        return answer_with(-1, 1, err);
    return fail(request->path, err);
}

static int make_link(const struct file_request *request, struct err *err)
{
    char name[NAME_MAX + 1];
    char temp[TEMP_BYTES];
    AUTO_FD int dir_fd = open_parent(request->path, name, err);

    if (dir_fd < 0 || name_temp(temp, err) < 0)
        return -1;
    if (symlinkat(request->other, dir_fd, temp) < 0)
        return fail(request->path, err);
    if (renameat(dir_fd, temp, dir_fd, name) < 0) {
        (void)fail(request->path, err);
        (void)unlinkat(dir_fd, temp, 0); /* ours, made just now */
        return -1;
    }
    return answer_with(-1, 0, err);
}

static int set_folder(const struct file_request *request, struct err *err)
{
    AUTO_FD int fd =
        open(request->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 || set_both(fd, request, request->mode) < 0)
        return fail(request->path, err);
    return answer_with(-1, 0, err);
}

/* ---- watching ---- */

static int send_events(const char *bytes, size_t n)
{
    size_t at = 0;

    while (at + sizeof(struct inotify_event) <= n) {
        struct inotify_event head;
        struct file_event event = {0};

        memcpy(&head, bytes + at, sizeof head);
        at += sizeof head;
        event.mask = head.mask;
        event.cookie = head.cookie;
        if (head.len)
            (void)snprintf(event.name, sizeof event.name, "%s", bytes + at);
        at += head.len;
        if (send(BOX_FD_INSIDE, &event, sizeof event, MSG_NOSIGNAL) != (ssize_t)sizeof event)
            return -1;
    }
    return 0;
}

static int watch_path(const struct file_request *request, struct err *err)
{
    _Alignas(struct inotify_event) char bytes[16384];
    AUTO_FD int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    struct pollfd polled[] = {
        {.fd = fd,            .events = POLLIN},
        {.fd = BOX_FD_INSIDE, .events = POLLIN}
    };

    if (fd < 0 ||
        inotify_add_watch(fd, request->path,
                          IN_CREATE | IN_DELETE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB |
                              IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF) < 0)
        return fail(request->path, err);
    if (answer_with(-1, 0, err) < 0)
        return -1;
    for (;;) {
        ssize_t n;

        if (poll(polled, COUNT(polled), -1) < 0 && errno != EINTR)
            return err_os(err, "waiting for changes");
        if (polled[1].revents)
            return 0; /* whatever it is, it ends the watch */
        n = read(fd, bytes, sizeof bytes);
        if (n > 0 && send_events(bytes, (size_t)n) < 0)
            return 0; /* nobody listens any more */
    }
}

/* ---- the loop ---- */

static int abort_file(const struct file_request *request, struct err *err)
{
    (void)request;
    return answer_with(-1, 0, err);
}

static int serve_one(const struct file_request *request, struct err *err)
{
    static int (*const operations[])(const struct file_request *, struct err *) = {
        [FILE_LIST] = list_folder,     [FILE_STAT] = look_at,
        [FILE_READ] = open_to_read,    [FILE_CREATE] = create_file,
        [FILE_COMMIT] = commit_file,   [FILE_ABORT] = abort_file,
        [FILE_REMOVE] = remove_path,   [FILE_MOVE] = move_path,
        [FILE_MAKE_DIR] = make_folder, [FILE_MAKE_LINK] = make_link,
        [FILE_SET] = set_folder,       [FILE_WORKSPACE] = open_workspace,
        [FILE_WATCH] = watch_path,
    };
    int failed;

    if (request->op >= COUNT(operations) || !memchr(request->path, '\0', sizeof request->path) ||
        !memchr(request->other, '\0', sizeof request->other))
        return err_set(err, ERR_INTEGRITY, "not a file request");
    failed = operations[request->op](request, err);
    if (request->op != FILE_CREATE || failed)
        drop_writing(); /* in place, given up, or forgotten */
    return failed;
}

int files_serve(const struct box *box, struct err *err)
{
    static struct file_request request;
    struct box_message failed = {.kind = BOX_FAILED};

    (void)signal(SIGXFSZ, SIG_IGN); /* the limit shows as an error */
    (void)umask(0);
    if (chdir(plan_text(box->plan, box->plan->workdir)) < 0 && chdir("/") < 0)
        return err_os(err, "entering the working directory");
    for (;;) {
        ssize_t got = recv(BOX_FD_INSIDE, &request, sizeof request, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got != (ssize_t)sizeof request)
            break;
        if (serve_one(&request, &failed.err) < 0 && message_send(BOX_FD_INSIDE, &failed, err) < 0)
            break;
    }
    drop_writing();
    return 0; /* the caller is gone, which is how it ends */
}

/* ---- ports ---- */

static int connect_to(const struct sockaddr *address, socklen_t n, struct err *err)
{
    AUTO_FD int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd polled = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t error_n = sizeof error;

    if (fd < 0)
        return err_os(err, "making a socket");
    if (connect(fd, address, n) == 0)
        return TAKE_FD(fd);
    if (errno != EINPROGRESS)
        return err_os(err, "connecting");
    if (poll(&polled, 1, CONNECT_WAIT_MS) != 1)
        return err_set(err, ERR_TIMEOUT, "nobody takes the connection");
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_n) < 0 || error) {
        errno = error ? error : errno;
        return err_os(err, "connecting");
    }
    return TAKE_FD(fd);
}

static int connect_inside(uint16_t port, struct err *err)
{
    struct sockaddr_in four = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 six = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct err first;
    int fd = connect_to((const struct sockaddr *)&four, sizeof four, err);

    if (fd >= 0)
        return fd;
    first = *err;
    fd = connect_to((const struct sockaddr *)&six, sizeof six, err);
    if (fd < 0)
        *err = first;
    return fd;
}

int ports_serve(const struct box_message *first, struct err *err)
{
    struct box_message message = *first;
    int got = 1;

    for (; got > 0; got = message_receive(BOX_FD_INSIDE, &message, err)) {
        struct box_message failed = {.kind = BOX_FAILED, .pid = message.pid};
        AUTO_FD int fd = -1;

        if (message.kind == BOX_CONNECT && message.value == 0)
            continue; /* only says that others will follow */
        if (message.kind != BOX_CONNECT || message.value > UINT16_MAX)
            return err_set(err, ERR_INVALID, "not an order for a connection");
        fd = connect_inside((uint16_t)message.value, &failed.err);
        if (fd < 0) {
            if (message_send(BOX_FD_INSIDE, &failed, err) < 0)
                return 0;
        } else if (fds_send(BOX_FD_INSIDE, &message, sizeof message, &fd, 1, err) < 0) {
            return 0;
        }
    }
    return got;
}
