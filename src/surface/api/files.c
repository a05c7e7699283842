/* SPDX-License-Identifier: Apache-2.0 */

/* Files of a sandbox: every path is resolved inside it, every transfer has its receipt. */

#include "surface/api/call.h"
#include "surface/api/tables.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "model/run.h"
#include "surface/api/plug.h"
#include "surface/api/stream.h"
#include "surface/view/view.h"

/* clang-format off */
#define OF_PATH                                                                                    \
    {"path", FIELD_TEXT, offsetof(struct path_query, path), .required = true,                      \
     .max = PATH_BYTES_MAX - 1, .help = "Inside the sandbox."}

const struct field path_query[] = {OF_PATH, {0}};

static const struct field remove_query[] = {
    OF_PATH,
    {"recursive", FIELD_BOOL, offsetof(struct path_query, recursive), .help = "With all in it."},
    {0},
};

static const struct field mkdir_query[] = {
    OF_PATH,
    {"parents", FIELD_BOOL, offsetof(struct path_query, parents), .help = "Those above it, too."},
    {0},
};

static const struct field watch_query[] = {
    OF_PATH,
    {"wait_ms", FIELD_COUNT, offsetof(struct path_query, wait_ms), .min = 1, .max = 86400000,
     .help = "It ends after this long; by default when the client leaves."},
    {0},
};
/* clang-format on */

/* One transfer: what the verbs need while the connection to the sandbox stands. */
struct transfer {
    struct call *call;
    const struct path_query *query;
    const char *other;
    const char *type; /* of a stream */
    int (*stream)(struct files *files, const char *path, int fd, struct err *err);
    struct json *result; /* NULL: what was moved is all there is to say */
    bool is_known;       /* the client has it already */
    int fds[STREAM_SOURCES];
};

/* ---- verbs ---- */

static int do_list(void *context, struct files *files, struct err *err)
{
    struct transfer *transfer = context;
    struct file_listing listing;

    if (files_list(files, &transfer->call->mem, transfer->query->path, &listing, err) < 0)
        return -1;
    transfer->result = view_listing(&transfer->call->mem, &listing);
    return 0;
}

static int do_stat(void *context, struct files *files, struct err *err)
{
    struct transfer *transfer = context;
    struct file_entry entry;

    if (files_stat(files, &transfer->call->mem, transfer->query->path, false, &entry, err) < 0)
        return -1;
    transfer->result = view_file(&transfer->call->mem, &entry);
    return 0;
}

static int do_remove(void *context, struct files *files, struct err *err)
{
    struct transfer *transfer = context;

    return files_remove(files, transfer->query->path, transfer->query->recursive, err);
}

static int do_mkdir(void *context, struct files *files, struct err *err)
{
    struct transfer *transfer = context;

    return files_make_dir(files, transfer->query->path, transfer->query->parents, err);
}

static int do_move(void *context, struct files *files, struct err *err)
{
    struct transfer *transfer = context;

    return files_move(files, transfer->query->path, transfer->other, err);
}

/* A path that is not there is an error of its own, so it is looked at before the answer begins. */
static int do_stream_out(void *context, struct files *files, struct err *err)
{
    struct transfer *transfer = context;
    const struct stream_config config = {.frame = FRAME_RAW, .type = transfer->type, .sources = 1};
    struct file_entry entry;
    int failed;

    if (files_stat(files, &transfer->call->mem, transfer->query->path, true, &entry, err) < 0 ||
        stream_open(transfer->call, &config, transfer->fds, err) < 0)
        return -1;
    failed = transfer->stream(files, transfer->query->path, transfer->fds[0], err);
    (void)close(transfer->fds[0]);
    return failed;
}

/* ---- a file, or a part of it ---- */

/* Two looks at the same bytes give the same words, any change gives others. */
static const char *etag_of(struct arena *mem, const struct file_entry *entry)
{
    return arena_printf(mem, "\"%llx-%llx-%llx\"", (unsigned long long)entry->changed_ns,
                        (unsigned long long)entry->mtime_s * 1000000000U + entry->mtime_ns,
                        (unsigned long long)entry->size);
}

static bool names_etag(const char *list, const char *etag)
{
    return strcmp(list, "*") == 0 || strstr(list, etag) != NULL;
}

static int refuse_range(struct call *call, uint64_t size, const char *why, struct err *err)
{
    const struct http_range none = {HTTP_RANGE_UNSATISFIED, 0, 0};
    char text[HTTP_CONTENT_RANGE_BYTES];

    (void)http_content_range(&none, size, text);
    call_header(call, "content-range", text);
    call->refusal = 416;
    return err_set(err, ERR_INVALID, "%s", why);
}

/* Which part, of a file that is still what the client has seen: of another one, all. */
static int choose_range(struct call *call, const struct file_entry *entry, const char *etag,
                        struct http_range *out, struct err *err)
{
    bool is_meant = !*call->if_range || strcmp(call->if_range, etag) == 0;

    *out = http_range_of(is_meant ? str_of(call->range) : STR_LIT(""), entry->size);
    if (is_meant && strncasecmp(call->range, "bytes=", 6) == 0 && strchr(call->range, ','))
        return refuse_range(call, entry->size, "one range at a time", err);
    if (out->kind == HTTP_RANGE_UNSATISFIED)
        return refuse_range(call, entry->size, "the file has no such bytes", err);
    return 0;
}

static int begin_file(void *context, const struct file_entry *entry, struct files_part *part,
                      struct err *err)
{
    struct transfer *transfer = context;
    struct call *call = transfer->call;
    const char *etag = etag_of(&call->mem, entry);
    struct stream_config config = {.frame = FRAME_RAW, .type = transfer->type, .sources = 1};
    char text[HTTP_CONTENT_RANGE_BYTES], date[HTTP_DATE_BYTES];
    struct http_range range;

    if (choose_range(call, entry, etag, &range, err) < 0)
        return -1;
    http_date(entry->mtime_s, date);
    call_header(call, "etag", etag);
    call_header(call, "last-modified", date);
    call_header(call, "accept-ranges", "bytes");
    if (*call->if_none_match && names_etag(call->if_none_match, etag)) {
        transfer->is_known = true;
        return 0;
    }
    part->from = range.kind == HTTP_RANGE_PART ? range.first : 0;
    part->length = config.length = range.kind == HTTP_RANGE_PART ? range.length : entry->size;
    if (range.kind == HTTP_RANGE_PART) {
        (void)http_content_range(&range, entry->size, text);
        call_header(call, "content-range", text);
        config.status = 206;
    }
    if (stream_open(call, &config, transfer->fds, err) < 0)
        return -1;
    part->out_fd = transfer->fds[0];
    return 0;
}

static int do_read(void *context, struct files *files, struct err *err)
{
    struct transfer *transfer = context;
    struct files_part part = {.on_open = begin_file, .context = transfer, .out_fd = -1};
    int failed = files_cat_part(files, transfer->query->path, &part, err);

    if (part.out_fd >= 0)
        (void)close(part.out_fd);
    return failed;
}

static int do_stream_in(void *context, struct files *files, struct err *err)
{
    struct transfer *transfer = context;

    return transfer->stream(files, transfer->query->path, transfer->call->body_fd, err);
}

static int on_change(void *context, const struct file_change *change, struct err *err)
{
    struct transfer *transfer = context;
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO_BUF struct buf line = BUF(64 * KIB);
    struct json *event = json_object(&mem);

    json_put_text(&mem, event, "event", change->name);
    if (change->entry.n)
        json_put_bytes(&mem, event, "name", change->entry);
    if (json_compact(event, &line, err) < 0 || buf_add_byte(&line, '\n', err) < 0)
        return -1;
    return write_all(transfer->fds[0], line.p, line.n, err);
}

static int do_watch(void *context, struct files *files, struct err *err)
{
    struct transfer *transfer = context;
    const struct stream_config config = {
        .frame = FRAME_RAW, .type = "application/x-ndjson", .sources = 1};
    struct file_entry entry;
    int failed;

    if (files_stat(files, &transfer->call->mem, transfer->query->path, true, &entry, err) < 0 ||
        stream_open(transfer->call, &config, transfer->fds, err) < 0)
        return -1;
    failed = files_watch(files, transfer->query->path, transfer->query->wait_ms, on_change,
                         transfer, err);
    (void)close(transfer->fds[0]);
    return failed;
}

/* ---- one call ---- */

static int answer(struct transfer *transfer, const struct run *run, struct err *err)
{
    struct call *call = transfer->call;
    struct json *object = transfer->result ? transfer->result : json_object(&call->mem);

    if (call_check_run(call, run, err) < 0)
        return -1;
    if (transfer->is_known)
        return call_answer_bytes(call, 304, transfer->type, STR_LIT(""), err);
    view_put_moved(&call->mem, object, run);
    return call_answer(call, 200, object, err);
}

static int carry_out(struct transfer *transfer, const char *verb,
                     int (*work)(void *context, struct files *files, struct err *err),
                     struct err *err)
{
    struct call *call = transfer->call;
    struct request request = call_request(call, ACTION_FILES);
    const struct files_work what = {.run = work, .context = transfer};
    const char *made = NULL;
    struct lent lent;
    struct run run;
    int failed;

    request.verb = verb;
    request.path = transfer->query->path;
    request.other = transfer->other;
    if (call_sandbox(call, &lent, &request.sandbox, &made, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_files(lent.govern, &request, &what, &run, err);
    if (!failed)
        failed = answer(transfer, &run, err);
    run_done(&run);
    call_release(call, &lent);
    return failed;
}

static int simple(struct call *call, const void *query, const char *verb,
                  int (*work)(void *context, struct files *files, struct err *err), struct err *err)
{
    struct transfer transfer = {.call = call, .query = query};

    return carry_out(&transfer, verb, work, err);
}

/* ---- handlers ---- */

static int list(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)body;
    return simple(call, query, "ls", do_list, err);
}

static int stat_it(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)body;
    return simple(call, query, "stat", do_stat, err);
}

static int remove_it(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)body;
    return simple(call, query, "rm", do_remove, err);
}

static int make_dir(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)body;
    return simple(call, query, "mkdir", do_mkdir, err);
}

static int watch(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)body;
    return simple(call, query, "watch", do_watch, err);
}

int handle_file_read(struct call *call, const void *body, const void *query, struct err *err)
{
    struct transfer transfer = {.call = call, .query = query, .type = "application/octet-stream"};

    (void)body;
    return carry_out(&transfer, "cat", do_read, err);
}

int handle_file_write(struct call *call, const void *body, const void *query, struct err *err)
{
    struct transfer transfer = {.call = call, .query = query, .stream = files_write};

    (void)body;
    return carry_out(&transfer, "write", do_stream_in, err);
}

static int pack(struct call *call, const void *body, const void *query, struct err *err)
{
    struct transfer transfer = {.call = call,
                                .query = query,
                                .other = "-",
                                .type = "application/x-tar",
                                .stream = files_tar_out};

    (void)body;
    return carry_out(&transfer, "cp-out", do_stream_out, err);
}

static int unpack(struct call *call, const void *body, const void *query, struct err *err)
{
    struct transfer transfer = {.call = call, .query = query, .other = "-", .stream = files_tar_in};

    (void)body;
    return carry_out(&transfer, "cp-in", do_stream_in, err);
}

struct move_body {
    const char *from;
    const char *to;
};

/* clang-format off */
static const struct field move_fields[] = {
    {"from", FIELD_TEXT, offsetof(struct move_body, from), .required = true,
     .max = PATH_BYTES_MAX - 1},
    {"to", FIELD_TEXT, offsetof(struct move_body, to), .required = true,
     .max = PATH_BYTES_MAX - 1},
    {0},
};
/* clang-format on */

static int move_it(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct move_body *wanted = body;
    const struct path_query from = {.path = wanted->from};
    struct transfer transfer = {.call = call, .query = &from, .other = wanted->to};

    (void)query;
    return carry_out(&transfer, "mv", do_move, err);
}

/* clang-format off */
const struct route routes_files[] = {
    {.method = HTTP_GET,
     .path = "/v1/sandboxes/{id}/files",
     .kind = ROUTE_RUN,
     .scope = SCOPE_READ,
     .query = path_query,
     .query_size = sizeof(struct path_query),
     .ranges = true,
     .name = "readFile",
     .summary = "The content of a file, or the part of it that Range asks for.",
     .answer = "Its bytes; an answer that breaks off is not complete.",
     .handle = handle_file_read},
    {.method = HTTP_PUT,
     .path = "/v1/sandboxes/{id}/files",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .body = BODY_STREAM,
     .query = path_query,
     .query_size = sizeof(struct path_query),
     .name = "writeFile",
     .summary = "Write a file; it takes its place when it is complete.",
     .answer = "Bytes, hash and receipt.",
     .handle = handle_file_write},
    {.method = HTTP_DELETE,
     .path = "/v1/sandboxes/{id}/files",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .query = remove_query,
     .query_size = sizeof(struct path_query),
     .name = "removeFile",
     .summary = "Remove a file or a folder.",
     .answer = "The receipt.",
     .handle = remove_it},
    {.method = HTTP_GET,
     .path = "/v1/sandboxes/{id}/files/list",
     .kind = ROUTE_RUN,
     .scope = SCOPE_READ,
     .query = path_query,
     .query_size = sizeof(struct path_query),
     .name = "listFiles",
     .summary = "What is in a folder.",
     .answer = "Entries with type, mode, size and time.",
     .handle = list},
    {.method = HTTP_GET,
     .path = "/v1/sandboxes/{id}/files/stat",
     .kind = ROUTE_RUN,
     .scope = SCOPE_READ,
     .query = path_query,
     .query_size = sizeof(struct path_query),
     .name = "statFile",
     .summary = "What is at a path; links are not followed.",
     .answer = "The entry.",
     .handle = stat_it},
    {.method = HTTP_POST,
     .path = "/v1/sandboxes/{id}/files/mkdir",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .query = mkdir_query,
     .query_size = sizeof(struct path_query),
     .name = "makeFolder",
     .summary = "Make a folder.",
     .answer = "The receipt.",
     .handle = make_dir},
    {.method = HTTP_POST,
     .path = "/v1/sandboxes/{id}/files/move",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .body = BODY_JSON,
     .fields = move_fields,
     .body_size = sizeof(struct move_body),
     .name = "moveFile",
     .summary = "Move a file or a folder.",
     .answer = "The receipt.",
     .handle = move_it},
    {.method = HTTP_GET,
     .path = "/v1/sandboxes/{id}/files/watch",
     .kind = ROUTE_RUN,
     .scope = SCOPE_READ,
     .query = watch_query,
     .query_size = sizeof(struct path_query),
     .name = "watchFiles",
     .summary = "What changes at a path, as it happens.",
     .answer = "Lines of JSON.",
     .handle = watch},
    {.method = HTTP_GET,
     .path = "/v1/sandboxes/{id}/tar",
     .kind = ROUTE_RUN,
     .scope = SCOPE_READ,
     .query = path_query,
     .query_size = sizeof(struct path_query),
     .name = "packFolder",
     .summary = "A folder with all that is in it.",
     .answer = "A tar archive.",
     .handle = pack},
    {.method = HTTP_PUT,
     .path = "/v1/sandboxes/{id}/tar",
     .kind = ROUTE_RUN,
     .scope = SCOPE_RUN,
     .body = BODY_STREAM,
     .query = path_query,
     .query_size = sizeof(struct path_query),
     .name = "unpackFolder",
     .summary = "Put what is in a tar archive into a folder.",
     .answer = "Entries, hash and receipt.",
     .handle = unpack},
    {0},
};
/* clang-format on */
