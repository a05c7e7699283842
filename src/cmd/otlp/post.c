/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/otlp/post.h"

#include "lib/base/limits.h"
#include "lib/base/memory.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_MS 5000L

struct post {
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers;
    const struct post_config *config;
    bool plain;
    bool busy;
    uint64_t head_bytes;
    struct buf answer;
    char url[OTLP_URL_MAX + 32];
};

/* ---- callbacks ---- */

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 ==
               127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/* The address that is dialled is the one that is checked, whatever its name was. */
static curl_socket_t on_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    const struct post *post = context;

    (void)purpose;
    if (post->plain && !post->config->plain_anywhere && !is_loopback(&address->addr))
        return CURL_SOCKET_BAD;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t on_header(char *bytes, size_t size, size_t n, void *context)
{
    struct post *post = context;

    (void)bytes;
    post->head_bytes += size * n;
    return post->head_bytes <= OTLP_ANSWER_MAX ? size * n : 0;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *context)
{
    struct post *post = context;
    struct err ignored; /* an answer that does not end is ended here */

    return buf_add(&post->answer, bytes, size * n, &ignored) == 0 ? size * n : 0;
}

/* ---- its life ---- */

static int add_header(void *context, const char *line, struct err *err)
{
    struct post *post = context;
    struct curl_slist *more = curl_slist_append(post->headers, line);

    if (!more)
        return err_set(err, ERR_UNAVAILABLE, "no memory for headers");
    post->headers = more;
    return 0;
}

int post_open(const struct post_config *config, struct post **out, struct err *err)
{
    AUTO(post) struct post *post = xcalloc(1, sizeof *post);

    post->config = config;
    post->plain = otlp_url_is_plain(config->url);
    post->answer = BUF(OTLP_ANSWER_MAX);
    post->multi = curl_multi_init();
    post->easy = curl_easy_init();
    if (!post->multi || !post->easy)
        return err_set(err, ERR_UNAVAILABLE, "libcurl cannot be used");
    if (add_header(post, "Content-Type: application/json", err) < 0 ||
        add_header(post, "Expect:", err) < 0 ||
        otlp_headers_each(config->headers, add_header, post, err) < 0)
        return -1;
    *out = TAKE(post);
    return 0;
}

void post_free(struct post *post)
{
    if (!post)
        return;
    if (post->busy)
        (void)curl_multi_remove_handle(post->multi, post->easy);
    curl_easy_cleanup(post->easy);
    (void)curl_multi_cleanup(post->multi);
    curl_slist_free_all(post->headers);
    buf_done(&post->answer);
    free(post);
}

/* ---- one of them ---- */

static size_t trimmed(const char *url)
{
    size_t n = strlen(url);

    while (n && url[n - 1] == '/')
        n--;
    return n;
}

#define SET(option, value)                                                                         \
    (void)curl_easy_setopt(post->easy, option, value) /* fails only for what libcurl lacks */

static void prepare(struct post *post, struct str body, uint64_t wait_ms)
{
    const struct post_config *config = post->config;
    struct curl_blob ca = {(void *)(uintptr_t)config->ca.p, config->ca.n, CURL_BLOB_COPY};

    curl_easy_reset(post->easy);
    SET(CURLOPT_URL, post->url);
    SET(CURLOPT_PROTOCOLS_STR, post->plain ? "http" : "https");
    SET(CURLOPT_FOLLOWLOCATION, 0L); /* what we tell is for whom the operator has named */
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_HTTPHEADER, post->headers);
    SET(CURLOPT_USERAGENT, "brig");
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_HTTP09_ALLOWED, 0L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_CONNECTTIMEOUT_MS, wait_ms < CONNECT_MS ? (long)wait_ms : CONNECT_MS);
    SET(CURLOPT_TIMEOUT_MS, (long)wait_ms);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.n);
    SET(CURLOPT_POSTFIELDS, body.p);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, post);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, post);
    SET(CURLOPT_OPENSOCKETFUNCTION, on_socket);
    SET(CURLOPT_OPENSOCKETDATA, post);
    if (post->plain)
        SET(CURLOPT_NOPROXY, "*");
    if (config->ca.n)
        SET(CURLOPT_CAINFO_BLOB, &ca);
}

int post_begin(struct post *post, enum otlp_signal signal, struct str body, uint64_t wait_ms,
               struct err *err)
{
    const char *url = post->config->url;

    (void)snprintf(post->url, sizeof post->url, "%.*s%s", (int)trimmed(url), url,
                   otlp_path(signal));
    buf_clear(&post->answer);
    post->head_bytes = 0;
    prepare(post, body, wait_ms);
    if (curl_multi_add_handle(post->multi, post->easy) != CURLM_OK)
        return err_set(err, ERR_UNAVAILABLE, "libcurl cannot be used");
    post->busy = true;
    return 0;
}

bool post_is_busy(const struct post *post)
{
    return post->busy;
}

static void take_result(struct post *post, CURLcode code, struct post_result *out)
{
    curl_off_t retry_after_s = 0;

    *out = (struct post_result){.answer = buf_str(&post->answer)};
    (void)curl_easy_getinfo(post->easy, CURLINFO_RESPONSE_CODE, &out->status);
    /* Seconds or a date: libcurl reads both, and says 0 for what is neither. */
    if (curl_easy_getinfo(post->easy, CURLINFO_RETRY_AFTER, &retry_after_s) == CURLE_OK &&
        retry_after_s > 0)
        out->retry_after_s = (uint64_t)retry_after_s;
    if (code != CURLE_OK)
        out->why = curl_easy_strerror(code);
    /* A status is an acknowledgement, even if what follows it breaks off; anything else without an
     * end is no answer. */
    if (code != CURLE_OK && (out->status < 200 || out->status > 299))
        out->status = 0;
}

bool post_wait(struct post *post, int fd, uint64_t wait_ms, struct post_result *out)
{
    struct curl_waitfd also = {.fd = fd, .events = CURL_WAIT_POLLIN};
    int running = 0, left = 0;
    CURLMsg *message;

    (void)curl_multi_perform(post->multi, &running);
    message = curl_multi_info_read(post->multi, &left);
    if (!message) {
        (void)curl_multi_poll(post->multi, fd < 0 ? NULL : &also, fd < 0 ? 0 : 1, (int)wait_ms,
                              NULL);
        return false;
    }
    take_result(post, message->data.result, out);
    (void)curl_multi_remove_handle(post->multi, post->easy);
    post->busy = false;
    return true;
}
