/* SPDX-License-Identifier: Apache-2.0 */

/* The caller's side of the files of a kept sandbox: requests, answers, and nothing believed. */

#include "flow/execute/files.h"
#include "flow/execute/orders.h"

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/linux/fd-pass.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define ANSWER_WAIT_MS 120000 /* removing a large tree takes its time */

/* ---- the connection ---- */

int files_open(struct execute *execute, struct run *run, const struct files_progress *progress,
               struct files **out, struct err *err)
{
    AUTO(files) struct files *files = xcalloc(1, sizeof *files);
    struct box_message hello = {.kind = BOX_FILE};
    char run_dir[RUN_DIR_BYTES];

    files->fd = files->signals_fd = -1;
    files->execute = execute;
    files->moved = &run->outcome.moved;
    if (progress)
        files->progress = *progress;
    if (orders_hold(execute, &files->before, &files->signals_fd, err) < 0 ||
        kept_open(execute, run->action.sandbox, run_dir, err) < 0 ||
        kept_connect(run_dir, "execs", &files->fd, err) < 0)
        return -1;
    if (send(files->fd, &hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello)
        return err_os(err, "asking the sandbox for its files");
    *out = TAKE(files);
    return 0;
}

void files_free(struct files *files)
{
    if (!files)
        return;
    if (files->fd >= 0)
        (void)close(files->fd);
    orders_release(files->execute, &files->before, files->signals_fd);
    free(files);
}

bool files_cancelled(const struct files *files)
{
    return files->cancelled;
}

/* It was seen to be there, and not read. */
enum reason files_cancel_reason(const struct files *files)
{
    struct signalfd_siginfo order = {.ssi_signo = SIGTERM};

    (void)!read(files->signals_fd, &order, sizeof order);
    return order_reason(&order);
}

void files_tell(struct files *files)
{
    if (files->progress.on_moved)
        files->progress.on_moved(files->progress.context, files->moved);
}

int files_wait(struct files *files, int fd, short events, int wait_ms, struct err *err)
{
    struct pollfd polled[] = {
        {.fd = fd,                .events = events},
        {.fd = files->signals_fd, .events = POLLIN}
    };
    int got;

    do
        got = poll(polled, COUNT(polled), wait_ms);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return err_os(err, "waiting");
    if (polled[1].revents) {
        files->cancelled = true;
        return err_set(err, ERR_CONFLICT, "interrupted");
    }
    return polled[0].revents ? 0 : err_set(err, ERR_TIMEOUT, "the sandbox does not answer");
}

int file_request_fill(struct file_request *request, enum file_op op, uint32_t flags,
                      const char *path, const char *other, struct err *err)
{
    memset(request, 0, sizeof *request);
    request->op = op;
    request->flags = flags;
    if (strlen(path) >= sizeof request->path || strlen(other) >= sizeof request->other)
        return err_set(err, ERR_LIMIT, "a path of more than %zu bytes", sizeof request->path - 1);
    (void)strcpy(request->path, path);
    (void)strcpy(request->other, other);
    return 0;
}

/* Regular files cannot make us wait. */
static int check_file(int fd, struct err *err)
{
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(err, ERR_INTEGRITY, "the sandbox handed out something that is no file");
    return 0;
}

int files_ask(struct files *files, const struct file_request *request, int *fd, struct err *err)
{
    struct box_message answer;
    AUTO_FD int got_fd = -1;
    int got;

    if (send(files->fd, request, sizeof *request, MSG_NOSIGNAL) != (ssize_t)sizeof *request)
        return err_set(err, ERR_UNAVAILABLE, "the sandbox ended");
    if (files_wait(files, files->fd, POLLIN, ANSWER_WAIT_MS, err) < 0)
        return -1;
    got = fds_receive(files->fd, &answer, sizeof answer, &got_fd, 1, err);
    if (got < 0)
        return -1;
    if (got != (int)sizeof answer || (answer.kind != BOX_FILE && answer.kind != BOX_FAILED))
        return err_set(err, ERR_UNAVAILABLE, "the sandbox ended, or its keeper was killed");
    if (answer.kind == BOX_FAILED) {
        *err = answer.err;
        err->text[sizeof err->text - 1] = '\0';
        if (err->code < ERR_INVALID || err->code > ERR_OS)
            err->code = ERR_INTEGRITY;
        return -1;
    }
    if (fd) {
        if (check_file(got_fd, err) < 0)
            return -1;
        *fd = TAKE_FD(got_fd);
    }
    if (request->op == FILE_CREATE)
        files->file_max = answer.value;
    return answer.value != 0;
}

static int ask_plain(struct files *files, enum file_op op, uint32_t flags, const char *path,
                     const char *other, uint32_t mode, struct err *err)
{
    struct file_request request;

    if (file_request_fill(&request, op, flags, path, other, err) < 0)
        return -1;
    request.mode = mode;
    return files_ask(files, &request, NULL, err) < 0 ? -1 : 0;
}

/* ---- looking ---- */

/* A file of the sandbox's, so its size is what it says and no more is read. */
static int read_records(int fd, struct buf *out, struct err *err)
{
    char chunk[65536];
    off_t at = 0;

    for (;;) {
        ssize_t n = pread(fd, chunk, sizeof chunk, at);

        if (n < 0)
            return err_os(err, "reading a listing");
        if (n == 0)
            return 0;
        if (buf_add(out, chunk, (size_t)n, err) < 0)
            return err_in(err, "a listing");
        at += n;
    }
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct file_entry *)a)->name, ((const struct file_entry *)b)->name);
}

static int take_entries(struct arena *mem, struct str rest, bool checked, struct file_listing *out,
                        struct err *err)
{
    size_t room = rest.n / sizeof(struct file_record) + 1;
    struct file_entry entry;
    int got;

    if (room > FILE_ENTRIES_MAX)
        room = FILE_ENTRIES_MAX;
    out->entries = arena_array(mem, struct file_entry, room);
    while ((got = file_record_next(&rest, &entry, err)) > 0) {
        if (checked && !file_name_is_safe(entry.name))
            return err_set(err, ERR_INTEGRITY, "the sandbox shows a name that cannot be one");
        if (out->n == room)
            return err_set(err, ERR_LIMIT, "a listing of more than %zu entries", room);
        entry.name = arena_str(mem, entry.name);
        entry.target = arena_str(mem, entry.target);
        out->entries[out->n++] = entry;
    }
    if (out->n > 1)
        qsort(out->entries, out->n, sizeof *out->entries, by_name);
    return got;
}

int files_list_folder(struct files *files, struct arena *mem, const char *path, bool follow,
                      struct file_listing *out, struct err *err)
{
    AUTO_BUF struct buf records = BUF(FILE_LISTING_MAX);
    AUTO_FD int fd = -1;
    struct file_request request;
    int more;

    *out = (struct file_listing){0};
    if (file_request_fill(&request, FILE_LIST, follow ? FILE_FOLLOW : 0, path, "", err) < 0)
        return -1;
    more = files_ask(files, &request, &fd, err);
    if (more < 0 || read_records(fd, &records, err) < 0)
        return -1;
    out->more = more;
    return take_entries(mem, buf_str(&records), true, out, err);
}

int files_stat(struct files *files, struct arena *mem, const char *path, bool follow,
               struct file_entry *out, struct err *err)
{
    AUTO_BUF struct buf records = BUF(FILE_LISTING_MAX);
    AUTO_FD int fd = -1;
    struct file_listing listing = {0};
    struct file_request request;

    if (file_request_fill(&request, FILE_STAT, follow ? FILE_FOLLOW : 0, path, "", err) < 0 ||
        files_ask(files, &request, &fd, err) < 0 || read_records(fd, &records, err) < 0 ||
        take_entries(mem, buf_str(&records), false, &listing, err) < 0)
        return -1;
    if (listing.n != 1)
        return err_set(err, ERR_INTEGRITY, "the sandbox shows %zu files for one", listing.n);
    *out = listing.entries[0];
    out->name = arena_str(mem, str_of(path));
    files->moved->entries++;
    return 0;
}

int files_list(struct files *files, struct arena *mem, const char *path, struct file_listing *out,
               struct err *err)
{
    int failed = files_list_folder(files, mem, path, true, out, err);

    if (failed && err->os == ENOTDIR) {
        *out = (struct file_listing){.entries = arena_new(mem, struct file_entry), .n = 1};
        return files_stat(files, mem, path, false, out->entries, err);
    }
    files->moved->entries += out->n;
    return failed;
}

/* ---- changing ---- */

static int count_one(struct files *files, int failed)
{
    files->moved->entries += failed == 0;
    return failed;
}

int files_remove(struct files *files, const char *path, bool recursive, struct err *err)
{
    return count_one(
        files, ask_plain(files, FILE_REMOVE, recursive ? FILE_RECURSIVE : 0, path, "", 0, err));
}

int files_move(struct files *files, const char *path, const char *to, struct err *err)
{
    return count_one(files, ask_plain(files, FILE_MOVE, 0, path, to, 0, err));
}

int files_make_dir(struct files *files, const char *path, bool parents, struct err *err)
{
    return count_one(
        files, ask_plain(files, FILE_MAKE_DIR, parents ? FILE_RECURSIVE : 0, path, "", 0755, err));
}

/* ---- watching ---- */

static const char *change_name(uint32_t mask)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {
        {IN_CREATE,      "create"     },
        {IN_DELETE,      "delete"     },
        {IN_MODIFY,      "modify"     },
        {IN_CLOSE_WRITE, "close_write"},
        {IN_ATTRIB,      "attributes" },
        {IN_MOVED_FROM,  "moved_from" },
        {IN_MOVED_TO,    "moved_to"   },
        {IN_DELETE_SELF, "gone"       },
        {IN_MOVE_SELF,   "moved"      },
        {IN_Q_OVERFLOW,  "overflow"   },
    };

    for (size_t i = 0; i < COUNT(names); i++)
        if (mask & names[i].bit)
            return names[i].name;
    return NULL;
}

/* 0 when the watched thing is gone. */
static int take_event(struct files *files,
                      int (*on_change)(void *context, const struct file_change *change,
                                       struct err *err),
                      void *context, struct err *err)
{
    struct file_event event;
    struct file_change change;
    ssize_t got = recv(files->fd, &event, sizeof event, 0);

    if (got != (ssize_t)sizeof event)
        return err_set(err, ERR_UNAVAILABLE, "the sandbox ended, or its keeper was killed");
    if (event.mask & IN_IGNORED)
        return 0;
    event.name[sizeof event.name - 1] = '\0';
    change = (struct file_change){change_name(event.mask), str_of(event.name)};
    if (!change.name || (change.entry.n && !file_name_is_safe(change.entry)))
        return 1;
    files->moved->entries++;
    return on_change(context, &change, err) < 0 ? -1 : 1;
}

int files_watch(struct files *files, const char *path, uint64_t wait_ms,
                int (*on_change)(void *context, const struct file_change *change, struct err *err),
                void *context, struct err *err)
{
    uint64_t end_us = wait_ms ? clock_us() + wait_ms * 1000U : UINT64_MAX;
    int going = 1;

    if (ask_plain(files, FILE_WATCH, 0, path, "", 0, err) < 0)
        return -1;
    while (going > 0) {
        uint64_t now = clock_us();
        uint64_t left_ms = end_us == UINT64_MAX ? 3600000U : (end_us - now) / 1000U + 1;

        if (now >= end_us)
            return 0;
        if (files_wait(files, files->fd, POLLIN, (int)(left_ms > 3600000U ? 3600000U : left_ms),
                       err) == 0)
            going = take_event(files, on_change, context, err);
        else if (err->code != ERR_TIMEOUT)
            return files->cancelled ? 0 : -1; /* a watch that is interrupted has done its work */
    }
    return going;
}
