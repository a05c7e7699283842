/* SPDX-License-Identifier: Apache-2.0 */

/* Pulling: the distribution protocol, version 2.
 *
 * Nothing a registry says is believed: documents and layers count only when their digest is the
 * one that was asked for, sizes end where the manifest says, and credentials go to the registry
 * or to the token service it names over an encrypted connection, never along a redirect to
 * another host. */

#include "cmd/image/challenge.h"
#include "cmd/image/http.h"

#include "lib/base/limits.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

#define ACCEPT_MANIFEST                                                                            \
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "        \
    "application/vnd.docker.distribution.manifest.list.v2+json, "                                  \
    "application/vnd.docker.distribution.manifest.v2+json"
#define TOKEN_ANSWER_MAX (256 * KIB)
#define TOKEN_MAX (64 * KIB)
#define INDEX_DEPTH_MAX 4
#define RETRIES_MAX 3U
#define RETRY_FIRST_US 250000ULL
#define RETRY_MOST_US 5000000ULL
#define RETRY_AFTER_MOST_S 60U /* a registry that wants us to wait longer is told to people */

struct registry {
    struct job *job;
    struct http http;
    struct image_ref ref;
    const char *base;          /* "https://registry-1.docker.io" */
    const char *authorization; /* what worked, or NULL */
    const char *basic;         /* of the user's credentials, or NULL */
};

/* ---- credentials ---- */

static int read_credentials(struct registry *r, struct err *err)
{
    AUTO_BUF struct buf text = BUF(TOKEN_MAX);
    const char *user = request_text(r->job, "username");
    const char *password = request_text(r->job, "password");
    struct str pair;

    if (!user || !password)
        return 0;
    pair = str_of(arena_printf(&r->job->mem, "%s:%s", user, password));
    if (buf_add_text(&text, "Basic ", err) < 0 || base64_encode(pair, &text, err) < 0)
        return err_in(err, "user name and password");
    r->basic = arena_text(&r->job->mem, buf_str(&text));
    return 0;
}

static int take_text(void *context, const void *bytes, size_t n, struct err *err)
{
    return buf_add(context, bytes, n, err);
}

/* It becomes a header: nothing but what a token consists of may stand in it. */
static int token_of(struct registry *r, struct str answer, const char **out, struct err *err)
{
    const struct json *root = NULL;
    struct str token = STR_LIT("");
    struct mark where;

    if (json_parse(&r->job->mem, answer, &root, &where, err) < 0)
        return err_in(err, "answer of the token service");
    if (!json_is_text(json_get(root, "token"), &token))
        (void)json_is_text(json_get(root, "access_token"), &token);
    if (!token.n || token.n > TOKEN_MAX)
        return err_set(err, ERR_INVALID, "the token service gives no token");
    for (size_t i = 0; i < token.n; i++)
        if (token.p[i] <= ' ' || token.p[i] > '~')
            return err_set(err, ERR_INVALID, "the token service gives no proper token");
    *out = arena_printf(&r->job->mem, "Bearer " STR_FMT, STR_ARG(token));
    return 0;
}

static int get_token(struct registry *r, const struct challenge *challenge, const char *from,
                     struct err *err)
{
    AUTO_BUF struct buf text = BUF(TOKEN_ANSWER_MAX);
    struct arena *mem = &r->job->mem;
    struct http_request request = {.accept = "application/json",
                                   .authorization = r->basic,
                                   .take = take_text,
                                   .context = &text};
    struct http_answer answer;
    const char *host;

    /* We ask for what we need, whatever scope is suggested. */
    request.url = arena_printf(mem, "%s%cservice=%s&scope=repository:%s:pull", challenge->realm,
                               strchr(challenge->realm, '?') ? '&' : '?',
                               url_escape(mem, challenge->service), r->ref.repository);
    if (http_url_check(&r->http, mem, challenge->realm, from, &host, err) < 0 ||
        http_get(&r->http, &request, &answer, err) < 0)
        return err_in(err, "token service");
    if (answer.status == 401 || answer.status == 403)
        return err_set(err, ERR_FORBIDDEN, "the token service refuses %s",
                       r->basic ? "user name and password" : "without user name and password");
    if (answer.status != 200)
        return err_set(err, ERR_UNAVAILABLE, "the token service answers %ld", answer.status);
    return token_of(r, buf_str(&text), &r->authorization, err);
}

/* After a 401: gets what the registry wants to see. */
static int authenticate(struct registry *r, const char *header, const char *from, struct err *err)
{
    struct challenge challenge;

    if (challenge_parse(&r->job->mem, str_of(header), &challenge, err) < 0)
        return -1;
    if (challenge.bearer)
        return get_token(r, &challenge, from, err);
    if (!r->basic)
        return err_set(err, ERR_FORBIDDEN,
                       "the registry wants a user name and a password: set BRIG_REGISTRY_USER and "
                       "BRIG_REGISTRY_PASSWORD, or use --username and --password-stdin");
    r->authorization = r->basic;
    return 0;
}

/* ---- getting ---- */

static bool is_passing_status(long status)
{
    return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

static int refuse_status(const struct registry *r, const struct http_answer *answer,
                         const char *what, struct err *err)
{
    long status = answer->status;

    if (answer->retry_after_s > RETRY_AFTER_MOST_S && is_passing_status(status))
        return err_set(err, ERR_LIMIT, "the registry answers %ld for %s: try again in %llu s",
                       status, what, (unsigned long long)answer->retry_after_s);
    switch (status) {
    case 401:
    case 403:
        return err_set(err, ERR_FORBIDDEN, "the registry refuses %s%s (%ld)", what,
                       r->basic ? " to this user" : " without user name and password", status);
    case 404:
        return err_set(err, ERR_NOT_FOUND, "the registry has no %s", what);
    case 429:
        return err_set(err, ERR_LIMIT, "the registry wants fewer requests; try again later");
    default:
        return status >= 500
                   ? err_set(err, ERR_UNAVAILABLE, "the registry answers %ld for %s", status, what)
                   : err_set(err, ERR_INVALID, "the registry answers %ld for %s", status, what);
    }
}

static bool is_redirect(long status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Follows redirects; credentials stay with the host they were meant for. */
static int get_following(struct registry *r, struct http_request *request,
                         struct http_answer *answer, struct err *err)
{
    struct arena *mem = &r->job->mem;
    const char *first = NULL, *host = NULL, *next = NULL;

    if (http_url_check(&r->http, mem, request->url, NULL, &first, err) < 0)
        return -1;
    for (int hops = 0;; hops++) {
        if (http_get(&r->http, request, answer, err) < 0)
            return -1;
        if (!is_redirect(answer->status))
            return 0;
        if (hops == IMAGE_REDIRECTS_MAX)
            return err_set(err, ERR_LIMIT, "redirected more than %d times", IMAGE_REDIRECTS_MAX);
        if (http_url_resolve(mem, request->url, answer->location, &next, err) < 0)
            return -1;
        if (http_url_check(&r->http, mem, next, request->url, &host, err) < 0)
            return err_in(err, "redirect to \"%.150s\"", next);
        request->url = next;
        if (strcmp(host, first) != 0)
            request->authorization = NULL;
    }
}

/* Twice as long each time, and between half and all of it: those who were cut off together do not
 * come back together. Not before the registry says, and not at all when it says too long. False
 * when the job's time would be over by then, or enough was tried. */
static bool pause_before_retry(const struct registry *r, unsigned retries, uint64_t asked_s)
{
    uint64_t wait_us = RETRY_FIRST_US << (retries < 16 ? retries : 16);
    struct timespec pause;
    uint32_t dice = 0;

    if (retries >= RETRIES_MAX || asked_s > RETRY_AFTER_MOST_S)
        return false;
    if (wait_us > RETRY_MOST_US)
        wait_us = RETRY_MOST_US;
    if (getrandom(&dice, sizeof dice, 0) != (ssize_t)sizeof dice)
        dice = 0;
    wait_us = asked_s * 1000000U + wait_us / 2 + dice % (wait_us / 2);
    if (clock_us() + wait_us >= r->job->deadline_us)
        return false;
    pause = (struct timespec){(time_t)(wait_us / 1000000U), (long)(wait_us % 1000000U) * 1000};
    (void)nanosleep(&pause, NULL); /* woken early is just as well */
    return true;
}

/* begin makes the taker ready for a fresh body. Only reads are made, so any may be made again. */
static int get(struct registry *r, const char *url, const char *what, struct http_request request,
               int (*begin)(void *context, struct err *err), struct http_answer *answer,
               struct err *err)
{
    unsigned challenges = 0, retries = 0;

    for (;;) {
        request.url = url;
        request.authorization = r->authorization;
        r->http.broke = false;
        if (begin(request.context, err) < 0 || get_following(r, &request, answer, err) < 0) {
            if (r->http.broke && pause_before_retry(r, retries++, 0))
                continue;
            return err_in(err, "%s", what);
        }
        if (answer->status == 200)
            return 0;
        if (is_passing_status(answer->status) &&
            pause_before_retry(r, retries++, answer->retry_after_s))
            continue;
        if (answer->status != 401 || challenges++ == 2)
            return refuse_status(r, answer, what, err);
        if (authenticate(r, answer->authenticate, request.url, err) < 0)
            return -1;
    }
}

/* ---- documents ---- */

static int begin_text(void *context, struct err *err)
{
    (void)err;
    buf_clear(context);
    return 0;
}

/* wanted: the digest it must have, or NULL for a tag. */
static int get_manifest(struct registry *r, const char *reference, const char *wanted,
                        struct buf *text, const char **type, char digest[HASH_TEXT_BYTES],
                        struct err *err)
{
    struct http_request request = {.accept = ACCEPT_MANIFEST, .take = take_text, .context = text};
    const char *url =
        arena_printf(&r->job->mem, "%s/v2/%s/manifests/%s", r->base, r->ref.repository, reference);
    struct http_answer answer;

    if (get(r, url, "manifest", request, begin_text, &answer, err) < 0)
        return -1;
    hash_text_of(buf_str(text), digest);
    if (wanted && strcmp(digest, wanted) != 0)
        return err_set(err, ERR_INTEGRITY, "manifest: its digest is %s, it should be %s", digest,
                       wanted);
    if (*answer.digest && strcmp(answer.digest, digest) != 0)
        return err_set(err, ERR_INTEGRITY, "manifest: its digest is %s, the registry says %.80s",
                       digest, answer.digest);
    *type = answer.content_type;
    return 0;
}

/* From whatever the name stands for to the manifest of this machine's platform. */
static int find_manifest(struct registry *r, struct source *source, char digest[HASH_TEXT_BYTES],
                         struct err *err)
{
    AUTO_BUF struct buf text = BUF(IMAGE_DOCUMENT_MAX);
    const char *reference = r->ref.digest ? r->ref.digest : r->ref.tag;
    const char *wanted = r->ref.digest, *type = NULL;
    struct image_descriptor chosen;
    enum image_document kind;

    for (int depth = 0; depth < INDEX_DEPTH_MAX; depth++) {
        if (get_manifest(r, reference, wanted, &text, &type, digest, err) < 0 ||
            image_document_kind(buf_str(&text), type, &kind, err) < 0)
            return -1;
        if (kind == IMAGE_DOCUMENT_MANIFEST)
            return blob_put(r->job, buf_str(&text), digest, err);
        if (!*source->index)
            (void)strcpy(source->index, digest);
        if (image_index_choose(&r->job->mem, buf_str(&text), request_text(r->job, "architecture"),
                               &chosen, err) < 0)
            return -1;
        reference = wanted = arena_text(&r->job->mem, str_of(chosen.digest));
    }
    return err_set(err, ERR_LIMIT, "indexes in indexes, more than %d deep", INDEX_DEPTH_MAX);
}

/* ---- blobs ---- */

struct download {
    struct registry *registry;
    struct blob_writer writer;
    const struct image_descriptor *blob;
    const char *what;
};

static int begin_blob(void *context, struct err *err)
{
    struct download *d = context;

    blob_done(&d->writer);
    return blob_begin(d->registry->job, d->blob->size, &d->writer, err);
}

static int take_blob(void *context, const void *bytes, size_t n, struct err *err)
{
    struct download *d = context;

    if (blob_add(&d->writer, bytes, n, err) < 0)
        return -1;
    event_progress(d->registry->job, d->what, d->writer.n, d->blob->size);
    return 0;
}

static int fetch_blob(struct source *source, const struct image_descriptor *blob, const char *what,
                      struct err *err)
{
    struct registry *r = source->context;
    struct download d = {.registry = r, .blob = blob, .what = what};
    struct http_request request = {
        .accept = "application/octet-stream, */*", .take = take_blob, .context = &d};
    struct http_answer answer;
    char digest[HASH_TEXT_BYTES];
    const char *url;
    int failed;

    if (blob_exists(r->job, blob))
        return 0;
    url = arena_printf(&r->job->mem, "%s/v2/%s/blobs/%s", r->base, r->ref.repository, blob->digest);
    failed = get(r, url, what, request, begin_blob, &answer, err);
    if (!failed && blob_end(&d.writer, blob->digest, &blob->size, digest, err) < 0)
        failed = err_in(err, "%s", what);
    blob_done(&d.writer);
    return failed;
}

static int fetch_alone(struct source *source, struct err *err)
{
    struct registry *r = source->context;

    return http_renew(&r->http, err);
}

/* ---- all of it ---- */

static int open_registry(struct job *job, struct registry *r, struct err *err)
{
    const char *name = request_text(job, "ref"), *host;

    r->job = job;
    if (!name || image_ref_parse(&job->mem, str_of(name), &r->ref, err) < 0)
        return name ? -1 : err_set(err, ERR_INTERNAL, "a pull of nothing");
    r->http.local = image_ref_is_local(&r->ref);
    host = strcmp(r->ref.registry, "docker.io") == 0 ? "registry-1.docker.io" : r->ref.registry;
    /* Certificates of one's own are given for a registry that has one. */
    r->base = arena_printf(
        &job->mem, "%s://%s",
        !r->http.ca.n && (r->http.local || r->http.insecure_http) ? "http" : "https", host);
    return read_credentials(r, err);
}

int run_pull(struct job *job, struct err *err)
{
    struct registry r = {.job = job};
    struct source source = {.fetch = fetch_blob, .alone = fetch_alone, .context = &r};
    char manifest[HASH_TEXT_BYTES];
    int failed;

    if (http_open(job, &r.http, err) < 0)
        return -1;
    failed = open_registry(job, &r, err) < 0 || find_manifest(&r, &source, manifest, err) < 0 ||
             assemble(job, &source, manifest, err) < 0;
    http_done(&r.http);
    return failed ? -1 : 0;
}
