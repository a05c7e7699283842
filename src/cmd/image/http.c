/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/image/http.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/image/wire.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define CONNECT_MS 15000L
#define CA_MAX (4 * MIB)
#define ERROR_BODY_MAX (64 * KIB)

/* One exchange, as the callbacks see it. */
struct exchange {
    struct http *http;
    const struct http_request *request;
    struct http_answer *answer;
    bool plain; /* not encrypted */
    uint64_t head_bytes;
    uint64_t body_bytes;
    uint64_t moved_us; /* when the last byte came */
    struct err why;
    bool failed;
};

int http_open(struct job *job, struct http *out, struct err *err)
{
    struct http http = {.job = job, .ca = BUF(CA_MAX)};

    http.handle = curl_easy_init();
    if (!http.handle)
        return err_set(err, ERR_UNAVAILABLE, "libcurl cannot be used");
    http.insecure_http = request_flag(job, "insecure_http");
    http.stall_us = request_number(job, "stall_ms") * 1000U;
    http.proxied = getenv("https_proxy") || getenv("HTTPS_PROXY");
    if (request_flag(job, "own_ca") && read_all(IMAGE_FD_EXTRA, &http.ca, err) < 0) {
        http_done(&http);
        return err_in(err, "certificates");
    }
    *out = http;
    return 0;
}

void http_done(struct http *http)
{
    if (http->handle)
        curl_easy_cleanup(http->handle);
    http->handle = NULL;
    buf_done(&http->ca);
}

int http_renew(struct http *http, struct err *err)
{
    /* The old one is not cleaned up: that would say good-bye over a connection we share. */
    http->handle = curl_easy_init();
    return http->handle ? 0 : err_set(err, ERR_UNAVAILABLE, "libcurl cannot be used");
}

/* ---- addresses ---- */

enum place {
    PLACE_ELSEWHERE,
    PLACE_LOOPBACK,
    PLACE_NOWHERE, /* unspecified, link-local, multicast: never a registry */
};

static enum place place_of_v4(uint32_t address)
{
    if (address >> 24 == 127)
        return PLACE_LOOPBACK;
    if (address >> 24 == 0 || address >> 16 == 0xa9fe || address >> 28 >= 14)
        return PLACE_NOWHERE;
    return PLACE_ELSEWHERE;
}

static enum place place_of(const struct sockaddr *address)
{
    const struct in6_addr *six;

    if (address->sa_family == AF_INET)
        return place_of_v4(
            ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr));
    if (address->sa_family != AF_INET6)
        return PLACE_NOWHERE;
    six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(six) || IN6_IS_ADDR_V4COMPAT(six)) {
        uint32_t four;

        if (IN6_IS_ADDR_LOOPBACK(six))
            return PLACE_LOOPBACK;
        memcpy(&four, six->s6_addr + 12, 4);
        return place_of_v4(ntohl(four));
    }
    if (IN6_IS_ADDR_LOOPBACK(six))
        return PLACE_LOOPBACK;
    return IN6_IS_ADDR_UNSPECIFIED(six) || IN6_IS_ADDR_LINKLOCAL(six) || IN6_IS_ADDR_MULTICAST(six)
               ? PLACE_NOWHERE
               : PLACE_ELSEWHERE;
}

/* The address that is dialled is the one that is checked: a name may mean something else a
 * moment later. */
static curl_socket_t on_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct exchange *x = context;
    enum place place = place_of(&address->addr);
    const char *refusal = NULL;

    (void)purpose;
    if (!x->http->proxied && place == PLACE_NOWHERE)
        refusal = "an address no registry can have";
    else if (!x->http->proxied && place == PLACE_LOOPBACK && !x->http->local)
        refusal = "this machine, by a name that is not its own";
    else if (x->plain && !x->http->insecure_http && place != PLACE_LOOPBACK)
        refusal = "plain HTTP beyond this machine";
    if (refusal) {
        x->failed = true;
        (void)err_set(&x->why, ERR_FORBIDDEN, "refused to connect: %s", refusal);
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* ---- URLs ---- */

static int url_part(CURLU *url, CURLUPart part, struct arena *mem, const char **out)
{
    char *text = NULL;

    if (curl_url_get(url, part, &text, 0) != CURLUE_OK)
        return -1;
    *out = arena_text(mem, str_of(text));
    curl_free(text);
    return 0;
}

static bool is_local_host(const char *host)
{
    struct image_ref ref = {.registry = host};

    return image_ref_is_local(&ref);
}

static int check_scheme(const struct http *http, const char *scheme, const char *host,
                        const char *from, struct err *err)
{
    if (strcmp(scheme, "https") == 0)
        return 0;
    if (strcmp(scheme, "http") != 0)
        return err_set(err, ERR_FORBIDDEN, "an address that begins with \"%.30s:\"", scheme);
    if (from && strncmp(from, "https:", 6) == 0)
        return err_set(err, ERR_FORBIDDEN, "leads from HTTPS to plain HTTP");
    if (!http->insecure_http && !(http->local && is_local_host(host)))
        return err_set(err, ERR_FORBIDDEN, "plain HTTP to \"%.200s\", which is not this machine",
                       host);
    return 0;
}

int http_url_check(const struct http *http, struct arena *mem, const char *url, const char *from,
                   const char **host, struct err *err)
{
    CURLU *parsed = curl_url();
    const char *scheme = NULL, *name = NULL, *port = "", *user = NULL;
    int failed = 0;

    if (!parsed || curl_url_set(parsed, CURLUPART_URL, url, 0) != CURLUE_OK ||
        url_part(parsed, CURLUPART_SCHEME, mem, &scheme) < 0 ||
        url_part(parsed, CURLUPART_HOST, mem, &name) < 0)
        failed = err_set(err, ERR_INVALID, "\"%.200s\" is not an address", url);
    else if (url_part(parsed, CURLUPART_USER, mem, &user) == 0)
        failed = err_set(err, ERR_FORBIDDEN, "an address with a user name in it");
    else
        failed = check_scheme(http, scheme, name, from, err);
    if (!failed && url_part(parsed, CURLUPART_PORT, mem, &port) < 0)
        port = "";
    curl_url_cleanup(parsed);
    if (!failed)
        *host = arena_printf(mem, "%s://%s:%s", scheme, name, port);
    return failed;
}

int http_url_resolve(struct arena *mem, const char *base, const char *location, const char **out,
                     struct err *err)
{
    CURLU *url = curl_url();
    int failed = !url || curl_url_set(url, CURLUPART_URL, base, 0) != CURLUE_OK ||
                 curl_url_set(url, CURLUPART_URL, location, 0) != CURLUE_OK ||
                 url_part(url, CURLUPART_URL, mem, out) < 0;

    curl_url_cleanup(url);
    return failed ? err_set(err, ERR_INVALID, "redirected to \"%.200s\", which is no address",
                            location)
                  : 0;
}

/* ---- callbacks ---- */

static void keep_header(struct exchange *x, struct str line)
{
    struct arena *mem = &x->http->job->mem;
    const struct {
        const char *name;
        const char **to;
    } wanted[] = {
        {"location",              &x->answer->location    },
        {"www-authenticate",      &x->answer->authenticate},
        {"content-type",          &x->answer->content_type},
        {"docker-content-digest", &x->answer->digest      },
    };
    struct str value = line;
    struct str name = str_cut(&value, ':');

    for (size_t i = 0; i < COUNT(wanted); i++)
        if (name.n == strlen(wanted[i].name) && strncasecmp(name.p, wanted[i].name, name.n) == 0)
            *wanted[i].to = arena_text(mem, str_trim(value));
}

static size_t on_header(char *bytes, size_t size, size_t n, void *context)
{
    struct exchange *x = context;
    struct str line = {bytes, size * n};

    x->head_bytes += line.n;
    x->moved_us = clock_us();
    if (x->head_bytes > IMAGE_HEADER_MAX) {
        x->failed = true;
        (void)err_set(&x->why, ERR_LIMIT, "the answer has headers of more than %lu bytes",
                      IMAGE_HEADER_MAX);
        return 0;
    }
    while (line.n && (line.p[line.n - 1] == '\n' || line.p[line.n - 1] == '\r'))
        line.n--;
    if (!memchr(line.p, '\0', line.n))
        keep_header(x, line);
    return size * n;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *context)
{
    struct exchange *x = context;
    long status = 0;

    (void)curl_easy_getinfo(x->http->handle, CURLINFO_RESPONSE_CODE, &status);
    x->body_bytes += size * n;
    x->moved_us = clock_us();
    if (status != 200) {
        if (x->body_bytes <= ERROR_BODY_MAX)
            return size * n; /* its prose is not shown: it is the server's, not ours */
        x->failed = true;
        (void)err_set(&x->why, ERR_LIMIT, "the server's error does not end");
        return 0;
    }
    if (x->request->take(x->request->context, bytes, size * n, &x->why) == 0)
        return size * n;
    x->failed = true;
    return 0;
}

static int on_progress(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total,
                       curl_off_t up_now)
{
    struct exchange *x = context;
    uint64_t at = clock_us();

    (void)total, (void)now, (void)up_total, (void)up_now;
    if (job_in_time(x->http->job, &x->why) < 0) {
        x->failed = true;
        return 1;
    }
    if (at - x->moved_us > x->http->stall_us) {
        x->failed = true;
        (void)err_set(&x->why, ERR_TIMEOUT, "the server has sent nothing for %llu ms",
                      (unsigned long long)(x->http->stall_us / 1000U));
        return 1;
    }
    return 0;
}

/* ---- the exchange ---- */

static int explain(CURLcode code, const char *detail, struct err *err)
{
    static const struct {
        CURLcode code;
        enum err_code as;
        const char *text;
    } known[] = {
        {CURLE_OPERATION_TIMEDOUT,       ERR_TIMEOUT,     "no answer in time"                     },
        {CURLE_COULDNT_RESOLVE_HOST,     ERR_UNAVAILABLE, "the registry's name is not known"      },
        {CURLE_COULDNT_CONNECT,          ERR_UNAVAILABLE, "the registry cannot be reached"        },
        {CURLE_PARTIAL_FILE,             ERR_INTEGRITY,   "the answer ended before its length"    },
        {CURLE_GOT_NOTHING,              ERR_UNAVAILABLE, "the registry hung up without a word"   },
        {CURLE_RECV_ERROR,               ERR_UNAVAILABLE, "the connection broke"                  },
        {CURLE_PEER_FAILED_VERIFICATION, ERR_FORBIDDEN,   "the registry's certificate is not good"},
        {CURLE_SSL_CONNECT_ERROR,        ERR_FORBIDDEN,   "no encrypted connection"               },
        {CURLE_WEIRD_SERVER_REPLY,       ERR_INVALID,     "the answer is not HTTP"                },
        {CURLE_UNSUPPORTED_PROTOCOL,     ERR_INVALID,     "the answer is not HTTP"                },
    };

    for (size_t i = 0; i < COUNT(known); i++)
        if (known[i].code == code)
            return err_set(err, known[i].as, "%s%s%.200s", known[i].text, *detail ? ": " : "",
                           detail);
    return err_set(err, ERR_UNAVAILABLE, "%s%s%.200s", curl_easy_strerror(code),
                   *detail ? ": " : "", detail);
}

/* Not a stall: that has taken its time already. */
static bool is_passing(CURLcode code)
{
    return code == CURLE_COULDNT_CONNECT || code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR ||
           code == CURLE_SEND_ERROR || code == CURLE_PARTIAL_FILE;
}

#define SET(option, value)                                                                         \
    (void)curl_easy_setopt(curl, option, value) /* fails only for what libcurl lacks */

static void prepare(struct http *http, struct exchange *x, struct curl_slist *headers)
{
    CURL *curl = http->handle;
    long left_ms =
        (long)clock_ms_until(http->job->deadline_us) + 1; /* 0 is curl's own five minutes */
    struct curl_blob ca = {http->ca.p, http->ca.n, CURL_BLOB_NOCOPY};

    curl_easy_reset(curl);
    SET(CURLOPT_URL, x->request->url);
    SET(CURLOPT_PROTOCOLS_STR, x->plain ? "http" : "https");
    SET(CURLOPT_FOLLOWLOCATION, 0L); /* redirects are judged one by one */
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_USERAGENT, "brig");
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_HTTP09_ALLOWED, 0L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_BUFFERSIZE, 262144L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, left_ms < CONNECT_MS ? left_ms : CONNECT_MS);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, x);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, x);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, x);
    SET(CURLOPT_OPENSOCKETFUNCTION, on_socket);
    SET(CURLOPT_OPENSOCKETDATA, x);
    if (x->plain)
        SET(CURLOPT_NOPROXY, "*");
    if (http->ca.n)
        SET(CURLOPT_CAINFO_BLOB, &ca);
}

int http_get(struct http *http, const struct http_request *request, struct http_answer *out,
             struct err *err)
{
    struct http_answer answer = {0, "", "", "", "", 0};
    curl_off_t retry_after_s = 0;
    struct exchange x = {.http = http, .request = request, .answer = &answer};
    struct curl_slist *headers = NULL;
    char detail[CURL_ERROR_SIZE] = "";
    CURL *curl = http->handle;
    CURLcode code;

    x.plain = strncmp(request->url, "https:", 6) != 0;
    x.moved_us = clock_us();
    headers =
        curl_slist_append(headers, arena_printf(&http->job->mem, "Accept: %s", request->accept));
    if (request->authorization)
        headers = curl_slist_append(
            headers, arena_printf(&http->job->mem, "Authorization: %s", request->authorization));
    prepare(http, &x, headers);
    SET(CURLOPT_ERRORBUFFER, detail);
    code = curl_easy_perform(curl);
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
    /* A number of seconds or a date: libcurl reads both, and answers 0 for what is neither. */
    if (curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &retry_after_s) == CURLE_OK &&
        retry_after_s > 0)
        answer.retry_after_s = (uint64_t)retry_after_s;
    curl_slist_free_all(headers);
    SET(CURLOPT_ERRORBUFFER, NULL);
    http->broke = !x.failed && is_passing(code);
    if (x.failed)
        *err = x.why;
    if (code != CURLE_OK)
        return x.failed ? -1 : explain(code, detail, err);
    *out = answer;
    return 0;
}
