/* SPDX-License-Identifier: Apache-2.0 */

/* Evidence: taken out as a bundle, and bundles that are brought, checked. */

#include "surface/helm/helm-private.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flow/record/record.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/http/http-gzip.h"
#include "lib/http/http-multipart.h"
#include "lib/json/json.h"

#define BUNDLE_BODY_MAX (64 * MIB)
#define BUNDLE_PLAIN_MAX (512 * MIB)
#define BOUNDARY_LINE_MAX 128

/* ---- files without a name, seen as bytes ---- */

struct view {
    struct str bytes;
};

static void view_done(struct view *view)
{
    if (view->bytes.n)
        (void)munmap((void *)(uintptr_t)view->bytes.p, view->bytes.n);
}
#define AUTO_VIEW __attribute__((cleanup(view_done)))

static int view_open(int fd, struct view *out, struct err *err)
{
    struct stat st;
    void *at;

    if (fstat(fd, &st) < 0)
        return err_os(err, "measuring the bundle");
    if (st.st_size == 0)
        return err_set(err, ERR_INVALID, "there is no bundle");
    at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED)
        return err_os(err, "looking at the bundle");
    out->bytes = (struct str){at, (size_t)st.st_size};
    return 0;
}

static int spool(struct call *call, int *out, struct err *err)
{
    const char *dir = NULL;

    if (tenant_spool(call->tenant, &call->mem, &dir, err) < 0)
        return -1;
    *out = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return *out < 0 ? err_os(err, "making room for the bundle") : 0;
}

/* ---- export ---- */

struct export_body {
    const char *session_id;
    const char *format;
};

/* clang-format off */
static const struct field export_fields[] = {
    {"session_id", FIELD_TEXT, offsetof(struct export_body, session_id), .max = ID_BYTES,
     .help = "Only this one; all there is by default."},
    {"format", FIELD_TEXT, offsetof(struct export_body, format), .choices = "tar.gz"},
    {0},
};
/* clang-format on */

static int export(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(record) struct record *record = NULL;
    const struct export_body *wanted = body;
    const struct stream_config config = {
        .frame = FRAME_RAW, .type = "application/octet-stream", .sources = 1};
    const char *dir = NULL;
    AUTO_FD int tar = -1;
    int fds[STREAM_SOURCES];
    int failed;

    (void)query;
    if (record_open(tenant_state_dir(call->tenant), &record, err) < 0 ||
        spool(call, &tar, err) < 0 || tenant_spool(call->tenant, &call->mem, &dir, err) < 0 ||
        record_bundle(record, wanted->session_id, dir, tar, err) < 0)
        return -1;
    if (lseek(tar, 0, SEEK_SET) < 0)
        return err_os(err, "rewinding the bundle");
    if (stream_open(call, &config, fds, err) < 0)
        return -1;
    failed = http_gzip_fd(tar, fds[0], err);
    (void)close(fds[0]);
    return failed;
}

/* ---- what is brought ---- */

/* Some clients send a multipart body and call it JSON: its first line is the boundary then. */
static int boundary_of(struct call *call, struct str body, const char **out, struct err *err)
{
    struct str rest = {body.p, body.n < BOUNDARY_LINE_MAX ? body.n : BOUNDARY_LINE_MAX};
    struct str line = str_cut(&rest, '\r');

    if (strstr(call->content_type, "multipart/form-data")) {
        *out = call->content_type;
        return 0;
    }
    if (!str_starts(line, "--") || rest.n == 0)
        return err_set(err, ERR_INVALID, "send the bundle as the multipart field \"bundle\"");
    *out = arena_printf(&call->mem, "multipart/form-data; boundary=\"%.*s\"", (int)(line.n - 2),
                        line.p + 2);
    return 0;
}

/* The content of the only part, which is called "bundle". */
static int read_parts(const char *type, struct str body, int to, struct err *err)
{
    struct http_multipart m;
    struct http_part part;
    struct str data;
    bool seen = false;

    if (http_multipart_init(&m, str_of(type)) < 0)
        return err_set(err, ERR_INVALID, "a multipart body without a boundary");
    for (;;) {
        switch (http_multipart_next(&m, &body, &part, &data)) {
        case HTTP_MULTIPART_PART:
            if (seen || !str_is(part.name, "bundle"))
                return err_set(err, ERR_INVALID, "there is one field, \"bundle\"");
            seen = true;
            break;
        case HTTP_MULTIPART_DATA:
            if (write_all(to, data.p, data.n, err) < 0)
                return -1;
            break;
        case HTTP_MULTIPART_PART_END:
            break;
        case HTTP_MULTIPART_END:
            return seen ? 0 : err_set(err, ERR_INVALID, "the field \"bundle\" is missing");
        case HTTP_MULTIPART_MORE:
        case HTTP_MULTIPART_REFUSED:
            return err_set(err, ERR_INVALID, "the multipart body is not well-formed");
        }
    }
}

/* {"bundle_b64":…}, as other clients of HELM send it. */
static int read_base64(struct call *call, struct str body, int to, struct err *err)
{
    const struct json *object = NULL;
    struct mark where;
    struct str text;
    char *bytes;
    size_t n = 0;

    if (json_parse(&call->mem, body, &object, &where, err) < 0)
        return -1;
    if (!json_is_text(json_get(object, "bundle_b64"), &text))
        return err_set(err, ERR_INVALID, "/bundle_b64 is missing");
    bytes = arena_alloc(&call->mem, text.n / 4 * 3 + 1);
    if (!base64_decode(text, bytes, &n))
        return err_set(err, ERR_INVALID, "/bundle_b64 must be base64 with padding");
    return write_all(to, bytes, n, err);
}

static int read_bundle(struct call *call, int to, struct err *err)
{
    AUTO_VIEW struct view body = {0};
    const char *type = NULL;

    if (view_open(call->file_fd, &body, err) < 0)
        return -1;
    if (str_starts(body.bytes, "{"))
        return read_base64(call, body.bytes, to, err);
    if (boundary_of(call, body.bytes, &type, err) < 0)
        return -1;
    return read_parts(type, body.bytes, to, err);
}

/* A bundle that is no gzip is a bundle that was tampered with, not a bad request. */
static bool unzip(int from, int to, struct err *err)
{
    AUTO(http_gunzip) struct http_gunzip *z = http_gunzip_new(BUNDLE_PLAIN_MAX);
    AUTO_VIEW struct view zipped = {0};
    enum http_fault fault = HTTP_NO_FAULT;
    struct str rest, piece;

    if (view_open(from, &zipped, err) < 0)
        return false;
    rest = zipped.bytes;
    for (;;)
        switch (http_gunzip_next(z, &rest, &piece, &fault)) {
        case HTTP_BODY_DATA:
            if (write_all(to, piece.p, piece.n, err) < 0)
                return false;
            break;
        case HTTP_BODY_END:
            return true;
        case HTTP_BODY_MORE:
        case HTTP_BODY_REFUSED:
            (void)err_set(err, ERR_INVALID, "structure: the bundle is no gzip file");
            return false;
        }
}

/* ---- the report ---- */

static const char *word(bool good)
{
    return good ? "PASS" : "FAIL";
}

static int answer(struct call *call, const struct record_bundle_report *report, struct err *err)
{
    struct arena *mem = &call->mem;
    struct json *object = json_object(mem), *checks = json_object(mem), *errors = json_array(mem);

    json_put_text(mem, checks, "signatures", word(report->signatures));
    json_put_text(mem, checks, "causal_chain", word(report->causal_chain));
    json_put_text(mem, checks, "policy_compliance", word(report->policy_compliance));
    for (size_t i = 0; i < report->error_n; i++)
        json_push(errors, json_text(mem, str_of(report->errors[i])));
    json_put_text(mem, object, "verdict",
                  word(report->signatures && report->causal_chain && report->policy_compliance));
    json_put(object, "checks", checks);
    json_put(object, "errors", errors);
    return call_answer(call, 200, object, err);
}

static int check_plain(struct call *call, int plain, bool replay,
                       struct record_bundle_report *report, struct err *err)
{
    AUTO(record) struct record *record = NULL;
    AUTO_VIEW struct view tar = {0};
    struct record_trust trust = {.why = "the key of this tenant"};
    struct record_bundle_check check = {.trust = &trust};

    if (record_open(tenant_state_dir(call->tenant), &record, err) < 0 ||
        record_own_key(tenant_state_dir(call->tenant), &trust.key, err) < 0 ||
        view_open(plain, &tar, err) < 0)
        return -1;
    if (replay)
        check.ledger = record;
    return record_bundle_verify(tar.bytes, &check, report, err);
}

static int check_bundle(struct call *call, bool replay, struct err *err)
{
    struct record_bundle_report *report = arena_new(&call->mem, struct record_bundle_report);
    AUTO_FD int zipped = -1, plain = -1;
    struct err why;
    int failed;

    report->mem = ARENA(64 * MIB);
    if (spool(call, &zipped, err) < 0 || spool(call, &plain, err) < 0 ||
        read_bundle(call, zipped, err) < 0)
        return -1;
    if (!unzip(zipped, plain, &why)) {
        if (why.code != ERR_INVALID) {
            *err = why;
            return -1;
        }
        (void)snprintf(report->errors[report->error_n++], BUNDLE_ERROR_BYTES, "%.190s", why.text);
        return answer(call, report, err);
    }
    failed = check_plain(call, plain, replay, report, err) < 0 || answer(call, report, err) < 0;
    arena_done(&report->mem);
    return failed ? -1 : 0;
}

static int verify(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)body;
    (void)query;
    return check_bundle(call, false, err);
}

static int replay(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)body;
    (void)query;
    return check_bundle(call, true, err);
}

/* clang-format off */
const struct route helm_routes_evidence[] = {
    {.method = HTTP_POST,
     .path = "/api/v1/evidence/export",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RECEIPTS,
     .body = BODY_JSON,
     .fields = export_fields,
     .body_size = sizeof(struct export_body),
     .name = "helmExportEvidence",
     .summary = "Receipts as a bundle.",
     .answer = "A tar.gz file; the same receipts are the same bytes.",
     .refusal = HELM_REFUSAL,
     .handle = export},
    {.method = HTTP_POST,
     .path = "/api/v1/evidence/verify",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RECEIPTS,
     .body = BODY_FILE,
     .body_max = BUNDLE_BODY_MAX,
     .name = "helmVerifyEvidence",
     .summary = "Check a bundle by itself: index, signatures, order, and that everything was "
                "allowed.",
     .answer = "The verdict, PASS or FAIL, each check, and what is wrong.",
     .refusal = HELM_REFUSAL,
     .handle = verify},
    {.method = HTTP_POST,
     .path = "/api/v1/replay/verify",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RECEIPTS,
     .body = BODY_FILE,
     .body_max = BUNDLE_BODY_MAX,
     .name = "helmVerifyReplay",
     .summary = "The same, and that the ledger says the same.",
     .answer = "The verdict, PASS or FAIL, each check, and what is wrong.",
     .refusal = HELM_REFUSAL,
     .handle = replay},
    {0},
};
/* clang-format on */
