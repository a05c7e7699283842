/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/api/telemetry.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/linux/beside.h"
#include "surface/api/api-private.h"

#define TELL_MS 15000 /* between two times that numbers are told, and a sender is looked for */
#define END_MS 4000   /* the sender's own bound is shorter */
#define ENV_MAX 12

struct telemetry {
    struct api *api;
    char *url, *headers, *certificate;
    bool plain_anywhere;
    char instance[ID_BYTES];
    int fd; /* to the sender; -1: there is none now */
    pid_t pid;
    int page_fd;
    struct otlp_numbers *page;
    uint64_t dropped; /* here: the socket was full, or led nowhere */
    struct buf message;
    uv_poll_t *poll; /* of fd: it can be read when the sender is gone */
    uv_timer_t timer;
    void (*on_ended)(void *context);
    void *context;
    bool has_replaced; /* a sender that was lost, since the last time */
    bool is_ending;
};

/* ---- the sender ---- */

/* The names it needs of our environment; certificates and proxies are the operator's choice. */
static size_t gather_env(struct telemetry *telemetry, struct arena *mem, const char *out[ENV_MAX])
{
    static const char *const inherited[] = {"https_proxy",   "HTTPS_PROXY",  "no_proxy", "NO_PROXY",
                                            "SSL_CERT_FILE", "SSL_CERT_DIR", "PATH"};
    size_t n = 0;

    for (size_t i = 0; i < COUNT(inherited); i++) {
        const char *value = getenv(inherited[i]);

        if (value)
            out[n++] = arena_printf(mem, "%s=%s", inherited[i], value);
    }
    if (telemetry->headers)
        out[n++] = arena_printf(mem, "OTEL_EXPORTER_OTLP_HEADERS=%s", telemetry->headers);
    if (telemetry->certificate)
        out[n++] = arena_printf(mem, "OTEL_EXPORTER_OTLP_CERTIFICATE=%s", telemetry->certificate);
    out[n] = NULL;
    return n;
}

static int start_program(struct telemetry *telemetry, int socket_fd, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO_FD int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int fds[OTLP_FD_N] = {null_fd, null_fd, STDERR_FILENO, socket_fd, telemetry->page_fd};
    const char *argv[] = {"otlp",
                          telemetry->api->version,
                          telemetry->instance,
                          telemetry->url,
                          telemetry->plain_anywhere ? "plain" : NULL,
                          NULL};
    const char *env[ENV_MAX];

    if (null_fd < 0)
        return err_os(err, "opening /dev/null");
    (void)gather_env(telemetry, &mem, env);
    return program_start(argv, env, fds, OTLP_FD_N, &telemetry->pid, err);
}

static void on_poll_closed(uv_handle_t *handle)
{
    free(handle);
}

static void lose_sender(struct telemetry *telemetry)
{
    if (telemetry->poll)
        uv_close((uv_handle_t *)telemetry->poll, on_poll_closed);
    telemetry->poll = NULL;
    if (telemetry->fd >= 0)
        (void)close(telemetry->fd);
    telemetry->fd = -1;
    if (telemetry->pid > 0) {
        (void)kill(telemetry->pid, SIGKILL); /* it is gone already, or should be */
        (void)waitpid(telemetry->pid, NULL, 0);
    }
    telemetry->pid = 0;
}

static void tell_ended(struct telemetry *telemetry)
{
    void (*on_ended)(void *context) = telemetry->on_ended;

    telemetry->on_ended = NULL;
    if (on_ended)
        on_ended(telemetry->context);
}

static void replace_sender(struct telemetry *telemetry);

/* It says nothing: what can be read is its end. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct telemetry *telemetry = poll->data;
    char byte;

    (void)status, (void)events;
    if (recv(telemetry->fd, &byte, sizeof byte, MSG_DONTWAIT) < 0 &&
        (errno == EAGAIN || errno == EINTR))
        return;
    lose_sender(telemetry);
    if (telemetry->is_ending) {
        tell_ended(telemetry);
        return;
    }
    (void)fprintf(stderr, "{\"level\":\"error\",\"event\":\"otlp\",\"message\":\"the program that "
                          "sends telemetry has ended; there will be another\"}\n");
    /* One at once; if that does not live either, one a while. */
    if (!telemetry->has_replaced)
        replace_sender(telemetry);
    telemetry->has_replaced = true;
}

static int start_sender(struct telemetry *telemetry, struct err *err)
{
    const int room = 208 * KIB; /* as much as every kernel allows; it takes it twice */
    AUTO_FD int ours = -1;
    AUTO_FD int theirs = -1;
    int sockets[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return err_os(err, "making a socket for telemetry");
    ours = sockets[0];
    theirs = sockets[1];
    (void)setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    if (start_program(telemetry, theirs, err) < 0)
        return err_in(err, "telemetry");
    telemetry->fd = TAKE_FD(ours);
    telemetry->poll = xcalloc(1, sizeof *telemetry->poll);
    (void)uv_poll_init(telemetry->api->loop, telemetry->poll, telemetry->fd);
    telemetry->poll->data = telemetry;
    uv_unref((uv_handle_t *)telemetry->poll);
    (void)uv_poll_start(telemetry->poll, UV_READABLE, on_readable);
    return 0;
}

static void replace_sender(struct telemetry *telemetry)
{
    struct err ignored; /* what is dropped meanwhile is counted */

    (void)!start_sender(telemetry, &ignored);
}

/* ---- its life ---- */

static void on_time(uv_timer_t *timer)
{
    struct telemetry *telemetry = timer->data;

    if (telemetry->is_ending) {
        lose_sender(telemetry);
        tell_ended(telemetry);
        return;
    }
    telemetry->has_replaced = false;
    if (telemetry->fd < 0)
        replace_sender(telemetry);
    counts_tell(telemetry->api);
}

/* Of one size for good: whoever shares it cannot take it away from under us. */
static int make_page(struct telemetry *telemetry, struct err *err)
{
    const size_t size = sizeof *telemetry->page;
    void *page;

    telemetry->page_fd = memfd_create("otlp", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (telemetry->page_fd < 0 || ftruncate(telemetry->page_fd, (off_t)size) < 0 ||
        fcntl(telemetry->page_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return err_os(err, "making a page for numbers");
    page = mmap(NULL, size, PROT_READ, MAP_SHARED, telemetry->page_fd, 0);
    if (page == MAP_FAILED)
        return err_os(err, "mapping a page for numbers");
    telemetry->page = page;
    return 0;
}

static int ignore_header(void *context, const char *line, struct err *err)
{
    (void)context, (void)line, (void)err;
    return 0;
}

static int check(const struct telemetry_config *config, struct err *err)
{
    if (otlp_url_check(config->url, config->plain_anywhere, err) < 0)
        return err_in(err, "--otlp");
    if (config->headers && otlp_headers_each(config->headers, ignore_header, NULL, err) < 0)
        return err_in(err, "OTEL_EXPORTER_OTLP_HEADERS");
    if (config->certificate && access(config->certificate, R_OK) < 0)
        return err_os(err, "OTEL_EXPORTER_OTLP_CERTIFICATE: %s", config->certificate);
    return 0;
}

int telemetry_open(struct api *api, const struct telemetry_config *config, struct telemetry **out,
                   struct err *err)
{
    struct telemetry *telemetry;

    if (check(config, err) < 0)
        return -1;
    telemetry = xcalloc(1, sizeof *telemetry);
    telemetry->api = api;
    telemetry->url = xstrdup(config->url);
    telemetry->headers = config->headers ? xstrdup(config->headers) : NULL;
    telemetry->certificate = config->certificate ? xstrdup(config->certificate) : NULL;
    telemetry->plain_anywhere = config->plain_anywhere;
    telemetry->fd = telemetry->page_fd = -1;
    telemetry->message = BUF(OTLP_ITEM_MAX);
    id_new(telemetry->instance);
    (void)uv_timer_init(api->loop, &telemetry->timer);
    telemetry->timer.data = telemetry;
    uv_unref((uv_handle_t *)&telemetry->timer);
    *out = telemetry; /* its owner closes it, half built or not */
    if (make_page(telemetry, err) < 0 || start_sender(telemetry, err) < 0)
        return -1;
    (void)uv_timer_start(&telemetry->timer, on_time, TELL_MS, TELL_MS);
    return 0;
}

void telemetry_end(struct telemetry *telemetry, void (*on_ended)(void *context), void *context)
{
    /* Told a second time, it waits for nobody. */
    if (!telemetry || telemetry->fd < 0 || telemetry->is_ending) {
        on_ended(context);
        return;
    }
    counts_tell(telemetry->api);
    telemetry->on_ended = on_ended;
    telemetry->context = context;
    telemetry->is_ending = true;
    (void)shutdown(telemetry->fd, SHUT_WR);
    (void)uv_timer_start(&telemetry->timer, on_time, END_MS, 0);
    uv_ref((uv_handle_t *)&telemetry->timer);
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void telemetry_close(struct telemetry *telemetry)
{
    if (!telemetry)
        return;
    lose_sender(telemetry);
    if (telemetry->page)
        (void)munmap(telemetry->page, sizeof *telemetry->page);
    if (telemetry->page_fd >= 0)
        (void)close(telemetry->page_fd);
    buf_done(&telemetry->message);
    free(telemetry->url);
    free(telemetry->headers);
    free(telemetry->certificate);
    uv_close((uv_handle_t *)&telemetry->timer, on_timer_closed);
}

/* ---- items ---- */

static int add_items(struct buf *out, const struct json *first, bool siblings, struct err *err)
{
    for (const struct json *item = first; item; item = siblings ? item->next : NULL)
        if ((item != first && buf_add_byte(out, ',', err) < 0) || json_compact(item, out, err) < 0)
            return -1;
    return 0;
}

static void send_items(struct telemetry *telemetry, enum otlp_signal signal,
                       const struct json *first, bool siblings)
{
    struct buf *message = &telemetry->message;
    struct err ignored; /* whatever it was, it is one item less */

    buf_clear(message);
    if (telemetry->fd < 0 ||
        buf_add_byte(message, (char)(OTLP_SIGNAL_BYTE + signal), &ignored) < 0 ||
        add_items(message, first, siblings, &ignored) < 0 ||
        send(telemetry->fd, message->p, message->n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        telemetry->dropped++;
}

void telemetry_send(struct telemetry *telemetry, enum otlp_signal signal, const struct json *item)
{
    if (telemetry)
        send_items(telemetry, signal, item, false);
}

void telemetry_send_all(struct telemetry *telemetry, enum otlp_signal signal,
                        const struct json *array)
{
    if (telemetry && array->first)
        send_items(telemetry, signal, array->first, true);
}

struct otlp_numbers telemetry_look(const struct telemetry *telemetry)
{
    struct otlp_numbers numbers = {0};

    if (!telemetry || !telemetry->page)
        return numbers;
    numbers.sent = __atomic_load_n(&telemetry->page->sent, __ATOMIC_RELAXED);
    numbers.dropped = __atomic_load_n(&telemetry->page->dropped, __ATOMIC_RELAXED);
    numbers.failed = __atomic_load_n(&telemetry->page->failed, __ATOMIC_RELAXED);
    numbers.dropped += telemetry->dropped;
    return numbers;
}
