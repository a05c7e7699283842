/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/api/post.h"

#include <pthread.h>
#include <uv.h>

#include "lib/base/memory.h"
#include "lib/http/http-server.h"

struct post {
    struct posted what;
    struct post *next;
};

struct posts {
    uv_async_t async;
    struct http_server *server;
    pthread_mutex_t lock;
    struct post *first, **last;
};

static struct post *take_all(struct posts *posts)
{
    struct post *all;

    (void)pthread_mutex_lock(&posts->lock);
    all = posts->first;
    posts->first = NULL;
    posts->last = &posts->first;
    (void)pthread_mutex_unlock(&posts->lock);
    return all;
}

static void on_async(uv_async_t *async)
{
    struct posts *posts = async->data;
    struct post *post = take_all(posts);

    while (post) {
        struct post *next = post->next;

        post->what.run(post->what.exchange ? http_exchange_find(posts->server, post->what.exchange)
                                           : NULL,
                       post->what.argument);
        free(post);
        post = next;
    }
}

int posts_open(struct uv_loop_s *loop, struct http_server *server, struct posts **out,
               struct err *err)
{
    struct posts *posts = xcalloc(1, sizeof *posts);

    posts->server = server;
    posts->last = &posts->first;
    (void)pthread_mutex_init(&posts->lock, NULL);
    posts->async.data = posts;
    if (uv_async_init(loop, &posts->async, on_async) < 0) {
        (void)pthread_mutex_destroy(&posts->lock);
        free(posts);
        return err_set(err, ERR_OS, "the loop takes no messages");
    }
    *out = posts;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct posts *posts = handle->data;

    (void)pthread_mutex_destroy(&posts->lock);
    free(posts);
}

void posts_close(struct posts *posts)
{
    if (posts)
        uv_close((uv_handle_t *)&posts->async, on_closed);
}

void posts_add_many(struct posts *posts, const struct posted *all, size_t n)
{
    struct post *first = NULL, **last = &first;

    for (size_t i = 0; i < n; i++) {
        *last = xcalloc(1, sizeof **last);
        (*last)->what = all[i];
        last = &(*last)->next;
    }
    if (!first)
        return;
    (void)pthread_mutex_lock(&posts->lock);
    *posts->last = first;
    posts->last = last;
    (void)pthread_mutex_unlock(&posts->lock);
    (void)uv_async_send(&posts->async);
}

void posts_add(struct posts *posts, uint64_t exchange, post_run *run, void *argument)
{
    posts_add_many(posts, &(struct posted){exchange, run, argument}, 1);
}
