/* SPDX-License-Identifier: Apache-2.0 */

/* daemon-crowd: many who come at once.
 *
 *     daemon-crowd [-n SANDBOXES] SOCKET
 *
 * SOCKET is the unix socket of a running "brig serve". As many clients as sandboxes, each in a
 * thread with a connection of its own, wait for each other; then each makes a sandbox, runs a
 * command in it, notes when its first byte came, and destroys it. Meanwhile somebody else asks for
 * /healthz every 20 ms. The clients do next to nothing, so what is measured is the daemon. */

#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common.h"
#include "lib/base/limits.h"
#include "lib/http/http-client.h"
#include "lib/json/json.h"

#define CLIENTS_MAX 1000
#define PROBES_MAX 10000
#define PROBE_NS 20000000L
#define STACK_BYTES (256 * KIB)

struct client {
    pthread_t thread;
    struct http_client *http;
    uint64_t made_ns; /* since the beginning, as the others */
    uint64_t spoke_ns;
    uint64_t gone_ns;
};

static struct {
    const char *socket;
    size_t n;
    struct client clients[CLIENTS_MAX];
    pthread_barrier_t ready;
    uint64_t began_ns;
    uint64_t probes[PROBES_MAX];
    size_t probe_n;
    bool is_over;
} bench = {.n = 100};

/* ---- one request ---- */

static struct http_client *connect_to(const char *socket)
{
    struct http_client *http = NULL;
    struct err err;

    if (http_client_open(socket, &http, &err) < 0)
        give_up(socket, err.text);
    return http;
}

/* The head of the answer; its body is still to be read. */
static void ask(struct http_client *http, enum http_method method, const char *path,
                const char *accept, const char *body, int wanted)
{
    static const char *const names[] = {
        [HTTP_GET] = "GET", [HTTP_POST] = "POST", [HTTP_DELETE] = "DELETE"};
    const struct http_header headers[] = {
        {str_of("Accept"),       str_of(accept)            },
        {str_of("Content-Type"), str_of("application/json")},
    };
    struct http_ask question = {
        .method = str_of(names[method]),
        .target = str_of(path),
        .host = str_of("localhost"),
        .headers = headers,
        .header_count = *body ? 2 : 1,
        .framing = *body ? HTTP_LENGTH : HTTP_NO_BODY,
        .length = strlen(body),
    };
    struct http_head head;
    struct err err;

    if (http_client_ask(http, &question, str_of(body), &err) < 0 ||
        http_client_answer(http, method, &head, &err) < 0)
        give_up(path, err.text);
    if (head.status != wanted)
        give_up(path, http_status_text(head.status));
}

static void read_all_of(struct http_client *http, struct buf *out)
{
    struct err err;

    if (http_client_body_all(http, out, &err) < 0)
        give_up("reading an answer", err.text);
}

/* ---- one client ---- */

static void make(struct http_client *http, char path[64])
{
    AUTO_BUF struct buf answer = BUF(1 * MIB);
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    const struct json *json = NULL;
    struct str id = {0};
    struct mark where;
    struct err err;

    ask(http, HTTP_POST, "/v1/sandboxes", "application/json", "{}", 201);
    read_all_of(http, &answer);
    if (json_parse(&mem, buf_str(&answer), &json, &where, &err) < 0 ||
        !json_is_text(json_get(json, "sandbox_id"), &id))
        give_up("/v1/sandboxes", "answers something else");
    (void)snprintf(path, 64, "/v1/sandboxes/" STR_FMT, STR_ARG(id));
}

static void *come(void *of_client)
{
    AUTO_BUF struct buf answer = BUF(1 * MIB);
    struct client *client = of_client;
    char path[64], exec[80];

    (void)pthread_barrier_wait(&bench.ready);
    make(client->http, path);
    client->made_ns = now_ns() - bench.began_ns;
    (void)snprintf(exec, sizeof exec, "%s/exec", path);
    /* Of plain output the head comes with the first byte. */
    ask(client->http, HTTP_POST, exec, "application/octet-stream",
        "{\"command\":[\"echo\",\"hi\"]}", 200);
    client->spoke_ns = now_ns() - bench.began_ns;
    read_all_of(client->http, &answer);
    if (strcmp(buf_text(&answer), "hi\n") != 0)
        give_up(exec, "another output");
    ask(client->http, HTTP_DELETE, path, "application/json", "", 200);
    buf_clear(&answer);
    read_all_of(client->http, &answer);
    client->gone_ns = now_ns() - bench.began_ns;
    return NULL;
}

static void *probe(void *unused)
{
    AUTO_BUF struct buf answer = BUF(1 * MIB);
    struct http_client *http = connect_to(bench.socket);
    const struct timespec pause = {.tv_nsec = PROBE_NS};

    (void)unused;
    (void)pthread_barrier_wait(&bench.ready);
    while (!__atomic_load_n(&bench.is_over, __ATOMIC_RELAXED) && bench.probe_n < PROBES_MAX) {
        uint64_t began = now_ns();

        ask(http, HTTP_GET, "/healthz", "text/plain", "", 200);
        buf_clear(&answer);
        read_all_of(http, &answer);
        bench.probes[bench.probe_n++] = now_ns() - began;
        (void)nanosleep(&pause, NULL);
    }
    http_client_free(http);
    return NULL;
}

/* ---- all of them ---- */

static void start(pthread_t *out, void *(*run)(void *), void *context)
{
    pthread_attr_t small;

    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, STACK_BYTES);
    if (pthread_create(out, &small, run, context) != 0)
        give_up("starting", "no thread");
    (void)pthread_attr_destroy(&small);
}

static void print(const char *what, uint64_t *ns, size_t n)
{
    sort_ns(ns, n);
    (void)printf("| %-26s | %5zu | %8.1f | %8.1f | %8.1f |\n", what, n, ms_at(ns, n, 500),
                 ms_at(ns, n, 990), ms_at(ns, n, 1000));
}

static void print_all(void)
{
    static uint64_t ns[CLIENTS_MAX];

    (void)printf("| %-26s | %5s | %8s | %8s | %8s |\n|---|---|---|---|---|\n", "", "n", "p50 ms",
                 "p99 ms", "most ms");
    for (size_t i = 0; i < bench.n; i++)
        ns[i] = bench.clients[i].made_ns;
    print("asked to made", ns, bench.n);
    for (size_t i = 0; i < bench.n; i++)
        ns[i] = bench.clients[i].spoke_ns;
    print("asked to first output", ns, bench.n);
    for (size_t i = 0; i < bench.n; i++)
        ns[i] = bench.clients[i].gone_ns;
    print("asked to destroyed", ns, bench.n);
    print("/healthz meanwhile", bench.probes, bench.probe_n);
}

int main(int argc, char **argv)
{
    pthread_t prober;
    int option;

    while ((option = getopt(argc, argv, "n:")) != -1) {
        if (option != 'n')
            give_up("usage", "daemon-crowd [-n SANDBOXES] SOCKET");
        bench.n = strtoul(optarg, NULL, 10);
    }
    if (argc - optind != 1 || bench.n == 0 || bench.n > CLIENTS_MAX)
        give_up("usage", "daemon-crowd [-n SANDBOXES] SOCKET");
    bench.socket = argv[optind];
    (void)pthread_barrier_init(&bench.ready, NULL, (unsigned)bench.n + 2);
    for (size_t i = 0; i < bench.n; i++) {
        bench.clients[i].http = connect_to(bench.socket);
        start(&bench.clients[i].thread, come, &bench.clients[i]);
    }
    start(&prober, probe, NULL);
    bench.began_ns = now_ns();
    (void)pthread_barrier_wait(&bench.ready);
    for (size_t i = 0; i < bench.n; i++) {
        (void)pthread_join(bench.clients[i].thread, NULL);
        http_client_free(bench.clients[i].http);
    }
    __atomic_store_n(&bench.is_over, true, __ATOMIC_RELAXED);
    (void)pthread_join(prober, NULL);
    print_all();
    return 0;
}
