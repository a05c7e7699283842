/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/image/worker.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/image/wire.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const struct request {
    const char *name;
    int (*run)(struct job *job, struct err *err);
    struct walls walls;
} requests[] = {
    {"pull",   run_pull,   {.network = true}    },
    {"import", run_import, {0}                  },
    {"export", run_export, {0}                  },
    {"verify", run_verify, {0}                  },
    {"sweep",  run_sweep,  {0}                  },
    {"pack",   run_pack,   {0}                  },
    {"unpack", run_unpack, {.write_trees = true}},
    {"hash",   run_hash,   {0}                  },
};

static const struct request *find_request(struct job *job)
{
    const char *name = request_text(job, "do");

    for (size_t i = 0; name && i < COUNT(requests); i++)
        if (strcmp(requests[i].name, name) == 0)
            return &requests[i];
    return NULL;
}

static int read_request(struct job *job, struct err *err)
{
    AUTO_BUF struct buf text = BUF(IMAGE_REQUEST_MAX);
    struct mark where;

    if (read_all(IMAGE_FD_REQUEST, &text, err) < 0)
        return -1;
    return json_parse(&job->mem, buf_str(&text), &job->request, &where, err);
}

/* The descriptors are there by their numbers; the request says where each belongs. */
static int read_trees(struct job *job, struct err *err)
{
    const struct json *list = json_get(job->request, "trees");

    if (!list)
        return 0;
    if (list->n > IMAGE_TREES_MAX)
        return err_set(err, ERR_INTERNAL, "too many folders");
    json_each(item, list)
    {
        job->trees[job->tree_n] = (struct image_tree){
            .fd = IMAGE_FD_TREES + (int)job->tree_n,
            .prefix = arena_text(&job->mem, item->text),
        };
        job->tree_n++;
    }
    return 0;
}

static int open_folder(int at, const char *name, int *out, struct err *err)
{
    if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
        return err_os(err, "creating %s in the image store", name);
    *out = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *out < 0 ? err_os(err, "opening %s in the image store", name) : 0;
}

static int open_store(struct job *job, struct err *err)
{
    AUTO_FD int blobs = -1;

    if (open_folder(job->content_fd, "blobs", &blobs, err) < 0 ||
        open_folder(blobs, "sha256", &job->blobs_fd, err) < 0 ||
        open_folder(job->content_fd, "layers", &job->layers_fd, err) < 0)
        return -1;
    return open_folder(job->content_fd, "temp", &job->temp_fd, err);
}

/* As whom we have become: what brig opened may be no more than a place. */
static int open_trees(struct job *job, struct err *err)
{
    for (size_t i = 0; i < job->tree_n; i++) {
        job->trees[i].fd = openat(job->trees[i].fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (job->trees[i].fd < 0)
            return err_os(err, "opening the folder for \"%.100s\"", job->trees[i].prefix);
    }
    return 0;
}

static int run(struct job *job, struct err *err)
{
    const struct request *request;

    if (read_request(job, err) < 0 || read_trees(job, err) < 0)
        return err_in(err, "request");
    request = find_request(job);
    if (!request)
        return err_set(err, ERR_INTERNAL, "unknown request");
    job->deadline_us = clock_us() + request_number(job, "timeout_ms") * 1000U;
    if (become((uid_t)request_number(job, "uid"), (gid_t)request_number(job, "gid"), err) < 0)
        return -1;
    if ((uint64_t)getppid() != request_number(job, "parent"))
        return err_set(err, ERR_UNAVAILABLE, "brig is gone");
    /* Before the walls: both read files of the system once. Names in archives are UTF-8. */
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !setlocale(LC_CTYPE, "C.UTF-8"))
        return err_set(err, ERR_UNAVAILABLE, "libcurl or the locale C.UTF-8 cannot be used");
    (void)umask(0);
    if (job->tree_n && open_own_files((uid_t)request_number(job, "uid"),
                                      (gid_t)request_number(job, "gid"), err) < 0)
        return -1;
    if (confine(job, &request->walls, err) < 0 || open_store(job, err) < 0 ||
        open_trees(job, err) < 0)
        return -1;
    return request->run(job, err);
}

int main(void)
{
    struct job job = {
        .mem = ARENA(IMAGE_MEMORY_MAX),
        .content_fd = IMAGE_FD_CONTENT,
        .blobs_fd = -1,
        .layers_fd = -1,
        .temp_fd = -1,
    };
    struct err err;

    if (close_range(IMAGE_FD_REQUEST, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ||
        fcntl(IMAGE_FD_EXTRA, F_GETFD) < 0) {
        (void)fprintf(stderr, "image is started by brig, not by hand\n");
        return 64;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* the write fails instead */
    if (run(&job, &err) == 0)
        _exit(0); /* nothing is left to write, and what runs at exit may want files we gave up */
    event_failed(&err);
    _exit(1);
}
