/* SPDX-License-Identifier: Apache-2.0 */

/* daemon: what "brig serve" starts. One loop, one API, one state directory.
 *
 *     daemon --state DIR [--listen ADDR:PORT]... [--socket PATH] [--host NAME]... [--policy FILE]
 *            [--profile FILE] [--tls-cert FILE --tls-key FILE] [--runs N] [--grace MS]
 *            [--upstream URL [--upstream-key-file FILE]]
 *            [--otlp URL] [--otlp-plain]
 *
 * Sockets it was born with (socket activation) are listened on, too. It says on standard output
 * where it listens, tells systemd that it is ready, and ends when it is told to: no new requests,
 * those under way may end within the grace, then they are cancelled. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "flow/record/record.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/memory.h"
#include "lib/http/http-server.h"
#include "lib/keeper/keeper.h"
#include "lib/linux/cgroup.h"
#include "surface/api/api.h"
#include "surface/cli/build.h"
#include "surface/helm/helm.h"

#define LISTENERS_MAX 8
#define HOSTS_MAX 16
#define FIRST_ACTIVATED_FD 3
#define GRACE_MS 10000
#define UPSTREAM_KEY_MAX 4096
#define SOCKET_MODE 0600
#define DESCRIPTORS_LEAST 1024

struct options {
    const char *state_dir;
    const char *listen[LISTENERS_MAX];
    size_t listen_n;
    const char *socket;
    const char *hosts[HOSTS_MAX + 1];
    size_t host_n;
    const char *policy;
    const char *profile;
    const char *cert;
    const char *key;
    const char *upstream;
    const char *upstream_key_file;
    const char *otlp;
    bool otlp_plain;
    unsigned runs;
    unsigned grace_ms;
};

struct daemon {
    uv_loop_t loop;
    uv_signal_t signals[2];
    struct api *api;
    struct helm *helm;
    struct ssl_ctx_st *tls;
    struct keeper *keeper;
    struct record_signing signing;
    unsigned grace_ms;
    bool is_stopping;
    bool has_ended; /* the loop: what is left is taking apart */
    int lock_fd;
};

static int fail(const struct err *err)
{
    (void)fprintf(stderr, "brig serve: %s\n", err->text);
    return err_exit(err->code);
}

/* ---- options ---- */

static int add(const char **list, size_t *n, size_t max, const char *text, struct err *err)
{
    if (*n == max)
        return err_set(err, ERR_INVALID, "more than %zu of them: %s", max, text);
    list[(*n)++] = text;
    return 0;
}

static int read_number(const char *text, unsigned *out, struct err *err)
{
    uint64_t value = 0;

    if (!str_u64(str_of(text), &value) || value > 10000000U)
        return err_set(err, ERR_INVALID, "%s is not a number of that kind", text);
    *out = (unsigned)value;
    return 0;
}

static int read_options(int argc, char **argv, struct options *out, struct err *err)
{
    static const struct option known[] = {
        {"state",             required_argument, NULL, 's'},
        {"listen",            required_argument, NULL, 'l'},
        {"socket",            required_argument, NULL, 'u'},
        {"host",              required_argument, NULL, 'h'},
        {"policy",            required_argument, NULL, 'p'},
        {"profile",           required_argument, NULL, 'f'},
        {"tls-cert",          required_argument, NULL, 'c'},
        {"tls-key",           required_argument, NULL, 'k'},
        {"runs",              required_argument, NULL, 'r'},
        {"grace",             required_argument, NULL, 'g'},
        {"upstream",          required_argument, NULL, 'U'},
        {"upstream-key-file", required_argument, NULL, 'K'},
        {"otlp",              required_argument, NULL, 'o'},
        {"otlp-plain",        no_argument,       NULL, 'a'},
        {NULL,                0,                 NULL, 0  },
    };
    int option, failed = 0;

    *out = (struct options){.grace_ms = GRACE_MS};
    while (!failed && (option = getopt_long(argc, argv, "", known, NULL)) != -1)
        switch (option) {
        case 's':
            out->state_dir = optarg;
            break;
        case 'l':
            failed = add(out->listen, &out->listen_n, LISTENERS_MAX, optarg, err);
            break;
        case 'u':
            out->socket = optarg;
            break;
        case 'h':
            failed = add(out->hosts, &out->host_n, HOSTS_MAX, optarg, err);
            break;
        case 'p':
            out->policy = optarg;
            break;
        case 'f':
            out->profile = optarg;
            break;
        case 'c':
            out->cert = optarg;
            break;
        case 'k':
            out->key = optarg;
            break;
        case 'r':
            failed = read_number(optarg, &out->runs, err);
            break;
        case 'g':
            failed = read_number(optarg, &out->grace_ms, err);
            break;
        case 'U':
            out->upstream = optarg;
            break;
        case 'K':
            out->upstream_key_file = optarg;
            break;
        case 'o':
            out->otlp = optarg;
            break;
        case 'a':
            out->otlp_plain = true;
            break;
        default:
            failed = err_set(err, ERR_INVALID, "start it as \"brig serve\"");
        }
    if (!failed && (!out->state_dir || optind != argc))
        return err_set(err, ERR_INVALID, "start it as \"brig serve\"");
    if (!failed && !out->cert != !out->key)
        return err_set(err, ERR_INVALID, "--tls-cert and --tls-key belong together");
    return failed;
}

static int read_text(struct arena *mem, const char *path, size_t max, const char **out,
                     struct err *err)
{
    AUTO_BUF struct buf text = BUF(max);

    *out = NULL;
    if (!path)
        return 0;
    if (file_read(AT_FDCWD, path, &text, err) < 0)
        return -1;
    *out = arena_text(mem, buf_str(&text));
    return 0;
}

/* A file with one line, which only its owner may read. */
static int read_key(struct arena *mem, const char *path, const char **out, struct err *err)
{
    struct stat st;
    const char *text = NULL;
    struct str key;

    *out = NULL;
    if (!path)
        return 0;
    if (stat(path, &st) < 0)
        return err_os(err, "%s", path);
    if (st.st_mode & 077)
        return err_set(err, ERR_INVALID, "%s holds a key: let only its owner read it (chmod 600)",
                       path);
    if (read_text(mem, path, UPSTREAM_KEY_MAX, &text, err) < 0)
        return -1;
    key = str_of(text);
    while (key.n && (key.p[key.n - 1] == '\n' || key.p[key.n - 1] == '\r'))
        key.n--;
    if (key.n == 0 || !http_is_value(key))
        return err_set(err, ERR_INVALID, "%s does not hold a key", path);
    *out = arena_text(mem, key);
    return 0;
}

/* ---- one per state directory ---- */

/* The lock goes with the process, however that ends. What is in it, a line each: our process id,
 * the socket where the command line finds us, and what of our environment decides how sandboxes are
 * made: whose home is nobody else's, and which ids they have. */
static int write_lock(int fd, const char *socket, struct err *err)
{
    const char *home = getenv("HOME"), *ids = getenv("BRIG_UID_BASE");
    char text[2 * PATH_BYTES_MAX + 64];
    int n = snprintf(text, sizeof text, "%d\n%s\n%.*s\n%.20s\n", (int)getpid(), socket,
                     PATH_BYTES_MAX - 1, home ? home : "", ids ? ids : "");

    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
        return err_os(err, "writing the lock of the state directory");
    return 0;
}

static int take_state(const char *state_dir, int *out, struct err *err)
{
    char path[PATH_BYTES_MAX];
    AUTO_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%.4000s/daemon.lock", state_dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_os(err, "opening %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? err_set(err, ERR_CONFLICT, "another daemon serves %s already", state_dir)
                   : err_os(err, "locking %s", path);
    if (write_lock(fd, "", err) < 0)
        return -1;
    *out = TAKE_FD(fd);
    return 0;
}

/* ---- listening ---- */

/* The path of a unix socket we were born with; the first one there is. */
static void note_socket(int fd, char out[PATH_BYTES_MAX])
{
    struct sockaddr_un address = {0};
    socklen_t size = sizeof address;

    if (!*out && getsockname(fd, (struct sockaddr *)&address, &size) == 0 &&
        address.sun_path[0] == '/')
        (void)snprintf(out, PATH_BYTES_MAX, "%.*s", (int)sizeof address.sun_path, address.sun_path);
}

static int listen_activated(struct http_server *server, struct ssl_ctx_st *tls, size_t *n,
                            char socket[PATH_BYTES_MAX], struct err *err)
{
    const char *pid = getenv("LISTEN_PID");
    const char *count = getenv("LISTEN_FDS");
    uint64_t ours = 0, fds = 0;

    if (!pid || !count || !str_u64(str_of(pid), &ours) || ours != (uint64_t)getpid() ||
        !str_u64(str_of(count), &fds) || fds > LISTENERS_MAX)
        return 0;
    for (int fd = FIRST_ACTIVATED_FD; fd < FIRST_ACTIVATED_FD + (int)fds; fd++) {
        int domain = 0;
        socklen_t size = sizeof domain;

        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        (void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
        if (domain == AF_UNIX)
            note_socket(fd, socket);
        if (http_server_listen_fd(server, fd, domain == AF_UNIX ? NULL : tls, err) < 0)
            return -1;
        ++*n;
    }
    (void)printf("brig serve: listening on %llu sockets it was given\n", (unsigned long long)fds);
    return 0;
}

static int listen_all(struct daemon *daemon, const struct options *options, struct err *err)
{
    struct http_server *server = api_server(daemon->api);
    char socket[PATH_BYTES_MAX] = "";
    size_t n = 0;

    if (options->cert && http_tls_new(options->cert, options->key, &daemon->tls, err) < 0)
        return -1;
    if (listen_activated(server, daemon->tls, &n, socket, err) < 0)
        return -1;
    for (size_t i = 0; i < options->listen_n; i++) {
        const char *address = options->listen[i];
        const char *port = strrchr(address, ':');
        unsigned got = 0;

        if (http_server_listen(server, address, daemon->tls, &got, err) < 0)
            return err_in(err, "--listen %s", address);
        (void)printf("brig serve: listening on %s://%.*s:%u\n", daemon->tls ? "https" : "http",
                     port ? (int)(port - address) : 0, address, got);
        n++;
    }
    if (options->socket) {
        if (http_server_listen_unix(server, options->socket, SOCKET_MODE, err) < 0)
            return err_in(err, "--socket %s", options->socket);
        if (!realpath(options->socket, socket))
            return err_os(err, "--socket %s", options->socket);
        (void)printf("brig serve: listening on unix:%s\n", options->socket);
        n++;
    }
    if (!n)
        return err_set(err, ERR_INVALID, "nowhere to listen: name --listen or --socket");
    if (write_lock(daemon->lock_fd, socket, err) < 0)
        return -1;
    return fflush(stdout) < 0 ? err_os(err, "saying where it listens") : 0;
}

/* sd_notify(3), which is one datagram. */
static void notify(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    socklen_t size;
    int fd;

    if (!path || strlen(path) >= sizeof to.sun_path)
        return;
    memcpy(to.sun_path, path, strlen(path));
    size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    if (to.sun_path[0] == '@')
        to.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&to, size);
    (void)close(fd);
}

/* ---- its life ---- */

static void on_stopped(void *context)
{
    struct daemon *daemon = context;

    uv_stop(&daemon->loop);
}

static void on_signal(uv_signal_t *signal, int number)
{
    struct daemon *daemon = signal->data;

    (void)number;
    if (daemon->has_ended)
        return; /* it is being taken apart */
    notify("STOPPING=1");
    /* Told a second time, it waits for nobody. */
    api_stop(daemon->api, daemon->is_stopping ? 0 : daemon->grace_ms, on_stopped, daemon);
    daemon->is_stopping = true;
}

/* From here on nobody has to be told: what came just now finds nothing to stop, and what comes when
 * nobody watches any more waits until we are gone. */
static void heed_no_signals(struct daemon *daemon)
{
    sigset_t stops;

    daemon->has_ended = true;
    (void)sigemptyset(&stops);
    (void)sigaddset(&stops, SIGTERM);
    (void)sigaddset(&stops, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &stops, NULL);
}

static void watch_signals(struct daemon *daemon)
{
    static const int numbers[] = {SIGTERM, SIGINT};

    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of whoever writes it */
    for (size_t i = 0; i < COUNT(numbers); i++) {
        (void)uv_signal_init(&daemon->loop, &daemon->signals[i]);
        daemon->signals[i].data = daemon;
        (void)uv_signal_start(&daemon->signals[i], on_signal, numbers[i]);
        uv_unref((uv_handle_t *)&daemon->signals[i]);
    }
}

/* As many as it may have. With fewer than a sandbox and its streams take, every run would fail in a
 * place of its own; better said at once. */
static int claim_descriptors(struct err *err)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return err_os(err, "looking at the limit of open files");
    if (files.rlim_max < DESCRIPTORS_LEAST)
        return err_set(err, ERR_UNAVAILABLE,
                       "at most %llu files may be open, and a daemon needs %d: raise \"ulimit -n\" "
                       "or LimitNOFILE=",
                       (unsigned long long)files.rlim_max, DESCRIPTORS_LEAST);
    files.rlim_cur = files.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &files) < 0 ? err_os(err, "raising the limit of open files")
                                                : 0;
}

/* Before the first helper: a delegated group with several processes in it cannot limit others. */
static void leave_room(void)
{
    struct err ignored; /* a limit that cannot be held is told to whoever asks for one */

    (void)!cgroup_settle(&ignored);
}

static void on_keeper_replaced(uint64_t number)
{
    (void)fprintf(stderr,
                  "{\"level\":\"warn\",\"event\":\"keeper\",\"message\":\"the keeper of the "
                  "signing keys was replaced\",\"number\":%llu}\n",
                  (unsigned long long)number);
}

/* Before there is anything that could want a signature, or a thread: whoever talks to clients has
 * no key to lose. */
static int give_keys_away(struct daemon *daemon, const char *state_dir, struct err *err)
{
    leave_room();
    if (keeper_open(state_dir, on_keeper_replaced, &daemon->keeper, err) < 0)
        return -1;
    daemon->signing = (struct record_signing){keeper_signer, daemon->keeper};
    record_sign_elsewhere(&daemon->signing);
    return 0;
}

/* What the OpenTelemetry specification calls these, for those who have them set already; a flag is
 * stronger, and an empty one is none. */
static const char *setting(const char *flag, const char *name)
{
    const char *value = flag ? flag : getenv(name);

    return value && *value ? value : NULL;
}

static struct telemetry_config telemetry_of(const struct options *options)
{
    return (struct telemetry_config){
        .url = setting(options->otlp, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        .headers = setting(NULL, "OTEL_EXPORTER_OTLP_HEADERS"),
        .certificate = setting(NULL, "OTEL_EXPORTER_OTLP_CERTIFICATE"),
        .plain_anywhere = options->otlp_plain,
    };
}

static int serve(struct daemon *daemon, const struct options *options, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    struct api_config config = {.state_dir = options->state_dir,
                                .hosts = options->hosts,
                                .runs_max = options->runs,
                                .telemetry = telemetry_of(options),
                                .version = BUILD_VERSION,
                                .build = BUILD_VERSION " " BUILD_ID};
    struct helm_config helm = {.upstream = options->upstream};

    if (read_text(&mem, options->policy, POLICY_TEXT_MAX, &config.policy_text, err) < 0 ||
        read_text(&mem, options->profile, PROFILE_TEXT_MAX, &config.profile_text, err) < 0 ||
        read_key(&mem, options->upstream_key_file, &helm.upstream_key, err) < 0 ||
        helm_open(&helm, &daemon->helm, err) < 0)
        return -1;
    helm_plug(daemon->helm);
    if (api_open(&daemon->loop, &config, &daemon->api, err) < 0 ||
        listen_all(daemon, options, err) < 0)
        return -1;
    watch_signals(daemon);
    notify("READY=1");
    (void)uv_run(&daemon->loop, UV_RUN_DEFAULT);
    return 0;
}

/* What is held belongs to threads that go with us; sandboxes end when we do. */
static void leave_behind(size_t n)
{
    (void)fprintf(stderr,
                  "{\"level\":\"warn\",\"event\":\"stop\",\"message\":\"ended without waiting "
                  "for requests under way\",\"requests\":%zu}\n",
                  n);
    _exit(0);
}

static void close_handle(uv_handle_t *handle, void *context)
{
    (void)context;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

int main(int argc, char **argv)
{
    struct daemon daemon = {.grace_ms = GRACE_MS};
    AUTO_FD int lock_fd = -1;
    struct options options;
    struct err err;
    int status = 0;

    /* What connections held goes back to the machine with them, wherever in the heap it lay. */
    (void)mallopt(M_MMAP_THRESHOLD, HTTP_INPUT_BYTES);
    if (read_options(argc, argv, &options, &err) < 0 ||
        take_state(options.state_dir, &lock_fd, &err) < 0 || claim_descriptors(&err) < 0 ||
        give_keys_away(&daemon, options.state_dir, &err) < 0)
        return fail(&err);
    daemon.grace_ms = options.grace_ms;
    daemon.lock_fd = lock_fd;
    (void)uv_loop_init(&daemon.loop);
    if (serve(&daemon, &options, &err) < 0)
        status = fail(&err);
    heed_no_signals(&daemon);
    if (daemon.api && api_left_behind(daemon.api) > 0)
        leave_behind(api_left_behind(daemon.api));
    api_free(daemon.api);
    helm_free(daemon.helm);
    http_tls_free(daemon.tls);
    uv_walk(&daemon.loop, close_handle, NULL);
    (void)uv_run(&daemon.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&daemon.loop);
    keeper_free(daemon.keeper);
    return status;
}
