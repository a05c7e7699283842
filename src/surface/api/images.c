/* SPDX-License-Identifier: Apache-2.0 */

/* Images of the caller's tenant: what its sandboxes can stand on. */

#include "surface/api/call.h"
#include "surface/api/tables.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/limits.h"
#include "lib/image/image.h"
#include "lib/linux/sandbox-ids.h"
#include "model/run.h"
#include "surface/api/events.h"
#include "surface/view/view.h"

#define PULL_TIMEOUT_MS (30ULL * 60 * 1000)
#define IMPORT_TIMEOUT_MS (60ULL * 60 * 1000)
#define STALL_MS (30ULL * 1000)
#define DAY_MS (24ULL * 3600 * 1000)
#define NAME_MAX_BYTES 1024
#define SHOWN_BYTES 200

/* What one call does to the store. */
struct image_call {
    struct call *call;
    struct image_store *store;
    struct events events;
    struct image_pull pull;
    struct image_import import;
    const char *wanted; /* as the client names it */
    const char *output;
    struct image image; /* what came, went or was written */
    bool freed;
    int (*work)(struct image_call *image_call, struct err *err);
};

struct image_query {
    const char *image;
};

/* clang-format off */
static const struct field image_query[] = {
    {"image", FIELD_TEXT, offsetof(struct image_query, image), .required = true,
     .max = NAME_MAX_BYTES, .help = "A name, a digest, or the beginning of one."},
    {0},
};
/* clang-format on */

static int open_store(struct call *call, struct image_store **out, struct err *err)
{
    struct sandbox_ids ids;

    if (sandbox_ids(&ids, err) < 0)
        return -1;
    return image_store_open(tenant_state_dir(call->tenant), &(struct image_owner){ids.uid, ids.gid},
                            out, err);
}

/* ---- looking ---- */

static int list(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(image_store) struct image_store *store = NULL;
    struct json *answer = json_object(&call->mem), *all = json_array(&call->mem);
    struct image *images = NULL;
    size_t n = 0;

    (void)body;
    (void)query;
    if (open_store(call, &store, err) < 0 || image_list(store, &call->mem, &images, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        json_push(all, view_image(&call->mem, &images[i]));
    json_put(answer, "images", all);
    return call_answer(call, 200, answer, err);
}

static int show(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(image_store) struct image_store *store = NULL;
    const struct image_query *wanted = query;
    struct image image;

    (void)body;
    if (open_store(call, &store, err) < 0 ||
        image_find(store, &call->mem, wanted->image, &image, err) < 0)
        return -1;
    return call_answer(call, 200, view_image(&call->mem, &image), err);
}

static int verify(struct call *call, const void *body, const void *query, struct err *err)
{
    AUTO(image_store) struct image_store *store = NULL;
    const struct image_query *wanted = query;
    struct json *answer = json_object(&call->mem);
    struct image image;

    (void)body;
    if (open_store(call, &store, err) < 0 ||
        image_find(store, &call->mem, wanted->image, &image, err) < 0 ||
        image_verify(store, &image, NULL, err) < 0)
        return -1;
    json_put_text(&call->mem, answer, "image_digest", image.digest);
    json_put_bool(&call->mem, answer, "intact", true);
    return call_answer(call, 200, answer, err);
}

/* ---- under receipts ---- */

static void tell_progress(void *context, const char *what, uint64_t done, uint64_t total)
{
    AUTO_ARENA struct arena mem = ARENA(16 * KIB);
    struct image_call *image_call = context;
    struct json *members = json_object(&mem);
    char shown[SHOWN_BYTES];

    if (image_call->events.fd < 0)
        return;
    (void)snprintf(shown, sizeof shown, "%s", what);
    json_put_bytes(&mem, members, "what", str_of(shown));
    json_put_int(&mem, members, "done_bytes", (int64_t)done);
    json_put_int(&mem, members, "total_bytes", (int64_t)total);
    events_tell(&image_call->events, "progress", members);
}

static struct image_progress progress_of(struct image_call *image_call)
{
    return (struct image_progress){tell_progress, image_call};
}

static int do_pull(struct image_call *c, struct err *err)
{
    struct image_progress progress = progress_of(c);

    return image_pull(c->store, &c->call->mem, &c->pull, &progress, &c->image, err);
}

static int do_import(struct image_call *c, struct err *err)
{
    struct image_progress progress = progress_of(c);

    return image_import(c->store, &c->call->mem, &c->import, &progress, &c->image, err);
}

static int do_remove(struct image_call *c, struct err *err)
{
    return image_remove(c->store, c->wanted, &c->freed, err);
}

static int do_export(struct image_call *c, struct err *err)
{
    return image_export(c->store, &c->image, c->output, NULL, err);
}

static int work(void *context, struct run *run, struct err *err)
{
    struct image_call *image_call = context;
    const struct image *image = &image_call->image;

    if (image_call->work(image_call, err) < 0)
        return -1;
    if (image->digest[0])
        run->outcome.image.digest = arena_text(&run->mem, str_of(image->digest));
    if (image->names.n)
        run->outcome.image.reference = arena_text(&run->mem, str_of(image->names.v[0]));
    return 0;
}

/* The work, with intent and outcome; the closing receipt's id is in *receipt. */
static int govern_call(struct image_call *image_call, enum action_kind kind, const char *image,
                       const char *path, const char **receipt, struct err *err)
{
    const struct image_work what = {work, image_call};
    struct call *call = image_call->call;
    struct request request = call_request(call, kind);
    struct lent lent;
    struct run run;
    int failed;

    request.image = image;
    request.path = path;
    request.other = kind == ACTION_IMAGE_EXPORT ? "-" : NULL;
    if (call_govern(call, &lent, err) < 0)
        return -1;
    run_init(&run);
    failed = govern_image(lent.govern, &request, &what, &run, err) < 0 ||
             call_check_run(call, &run, err) < 0;
    if (!failed)
        *receipt = arena_text(&call->mem, str_of(run.closing.id));
    run_done(&run);
    call_release(call, &lent);
    return failed ? -1 : 0;
}

/* What came is the answer, or the last event. */
static int add(struct image_call *image_call, enum action_kind kind, const char *image,
               const char *path, struct err *err)
{
    struct call *call = image_call->call;
    const char *receipt = NULL;
    struct json *answer;
    int failed;

    if (events_open(call, &image_call->events, err) < 0)
        return -1;
    failed = open_store(call, &image_call->store, err) < 0 ||
                     govern_call(image_call, kind, image, path, &receipt, err) < 0
                 ? -1
                 : 0;
    if (!failed) {
        answer = view_image(&call->mem, &image_call->image);
        json_put_text(&call->mem, answer, "receipt_id", receipt);
        failed = call_answer(call, 201, answer, err);
    }
    if (failed && kind == ACTION_IMAGE_IMPORT)
        (void)call_file_failed(call, err);
    events_close(&image_call->events, failed ? err : NULL);
    image_store_free(image_call->store);
    return failed;
}

/* ---- pull ---- */

struct pull_body {
    const char *image;
    const char *username;
    const char *password;
    bool insecure_http;
    bool skip_devices;
    uint64_t timeout_ms;
    uint64_t stall_ms;
};

/* clang-format off */
static const struct field pull_fields[] = {
    {"image", FIELD_TEXT, offsetof(struct pull_body, image), .required = true,
     .max = NAME_MAX_BYTES,
     .help = "A name as docker knows it, or with the digest it must have: NAME@sha256:HEX."},
    {"username", FIELD_TEXT, offsetof(struct pull_body, username), .max = 256,
     .help = "Whom the registry knows you as."},
    {"password", FIELD_TEXT, offsetof(struct pull_body, password), .max = 4096,
     .help = "Used once, kept nowhere."},
    {"insecure_http", FIELD_BOOL, offsetof(struct pull_body, insecure_http),
     .help = "Plain HTTP, which anybody on the way can change: needs the scope host."},
    {"skip_devices", FIELD_BOOL, offsetof(struct pull_body, skip_devices),
     .help = "Leave out device nodes, pipes and sockets instead of refusing the image."},
    {"timeout_ms", FIELD_COUNT, offsetof(struct pull_body, timeout_ms), .min = 1, .max = DAY_MS},
    {"stall_ms", FIELD_COUNT, offsetof(struct pull_body, stall_ms), .min = 1, .max = DAY_MS},
    {0},
};
/* clang-format on */

/* What listens on this machine's loopback is the machine's business, as its folders are. */
static int check_host_scope(const struct call *call, const struct image_pull *pull, struct err *err)
{
    if ((pull->insecure_http || image_ref_is_local(&pull->ref)) &&
        !(call->caller.scopes & SCOPE_HOST))
        return err_set(err, ERR_FORBIDDEN,
                       "plain HTTP, or a registry on this machine, needs a token with the scope "
                       "\"host\"");
    return 0;
}

/* Credentials of the daemon's own environment are not the tenant's; its certificates are for all.
 */
static int pull_request(struct call *call, const struct pull_body *wanted, struct image_pull *out,
                        struct err *err)
{
    const char *ca_file = getenv("BRIG_REGISTRY_CA");

    *out = (struct image_pull){
        .username = wanted->username,
        .password = wanted->password,
        .ca_file = ca_file && *ca_file ? ca_file : NULL,
        .insecure_http = wanted->insecure_http,
        .skip_devices = wanted->skip_devices,
        .timeout_ms = wanted->timeout_ms ? wanted->timeout_ms : PULL_TIMEOUT_MS,
        .stall_ms = wanted->stall_ms ? wanted->stall_ms : STALL_MS,
    };
    if (!wanted->username != !wanted->password)
        return err_set(err, ERR_INVALID, "/username and /password come together");
    if (image_ref_parse(&call->mem, str_of(wanted->image), &out->ref, err) < 0)
        return -1;
    return check_host_scope(call, out, err);
}

static int pull(struct call *call, const void *body, const void *query, struct err *err)
{
    struct image_call image_call = {.call = call, .work = do_pull};

    (void)query;
    if (pull_request(call, body, &image_call.pull, err) < 0)
        return -1;
    return add(&image_call, ACTION_IMAGE_PULL, image_ref_name(&call->mem, &image_call.pull.ref),
               NULL, err);
}

/* ---- import ---- */

struct import_query {
    const char *name;
    bool skip_devices;
};

/* clang-format off */
static const struct field import_query[] = {
    {"name", FIELD_TEXT, offsetof(struct import_query, name), .max = NAME_MAX_BYTES,
     .help = "By default the one it carries."},
    {"skip_devices", FIELD_BOOL, offsetof(struct import_query, skip_devices),
     .help = "Leave out device nodes, pipes and sockets instead of refusing the image."},
    {0},
};
/* clang-format on */

static int import(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct import_query *wanted = query;
    struct image_call image_call = {
        .call = call,
        .work = do_import,
        .import = {.path = call_file_path(call),
                   .name = wanted->name,
                   .skip_devices = wanted->skip_devices,
                   .timeout_ms = IMPORT_TIMEOUT_MS},
    };

    (void)body;
    return add(&image_call, ACTION_IMAGE_IMPORT, wanted->name ? wanted->name : "", "-", err);
}

/* ---- remove, export ---- */

static int open_image(struct image_call *image_call, const struct image_query *wanted,
                      struct err *err)
{
    struct call *call = image_call->call;

    image_call->events.fd = -1;
    image_call->wanted = wanted->image;
    if (open_store(call, &image_call->store, err) < 0)
        return -1;
    return image_find(image_call->store, &call->mem, wanted->image, &image_call->image, err);
}

static int remove_it(struct call *call, const void *body, const void *query, struct err *err)
{
    struct image_call image_call = {.call = call, .work = do_remove};
    const struct image_query *wanted = query;
    struct json *answer = json_object(&call->mem);
    const char *receipt = NULL;
    int failed;

    (void)body;
    failed = open_image(&image_call, wanted, err) < 0 ||
             govern_call(&image_call, ACTION_IMAGE_REMOVE, wanted->image, NULL, &receipt, err) < 0;
    image_store_free(image_call.store);
    if (failed)
        return -1;
    json_put_text(&call->mem, answer, "removed", wanted->image);
    json_put_bool(&call->mem, answer, "freed", image_call.freed);
    json_put_text(&call->mem, answer, "receipt_id", receipt);
    return call_answer(call, 200, answer, err);
}

static int export(struct call *call, const void *body, const void *query, struct err *err)
{
    struct image_call image_call = {.call = call, .work = do_export};
    const struct image_query *wanted = query;
    const char *receipt = NULL, *dir = NULL;
    char id[ID_BYTES];
    int failed;

    (void)body;
    if (tenant_spool(call->tenant, &call->mem, &dir, err) < 0)
        return -1;
    id_new(id);
    image_call.output = arena_printf(&call->mem, "%s/%s.tar", dir, id);
    failed = open_image(&image_call, wanted, err) < 0 ||
             govern_call(&image_call, ACTION_IMAGE_EXPORT, wanted->image, NULL, &receipt, err) < 0;
    image_store_free(image_call.store);
    if (failed) {
        (void)unlink(image_call.output);
        return -1;
    }
    call_header(call, "x-receipt-id", receipt);
    call_header(call, "x-image-digest", image_call.image.digest);
    return call_send_file(call, image_call.output, "application/x-tar", err);
}

/* clang-format off */
const struct route routes_images[] = {
    {.method = HTTP_GET,
     .path = "/v1/images",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .name = "listImages",
     .summary = "The images there are.",
     .answer = "All of them, in order of their names.",
     .handle = list},
    {.method = HTTP_DELETE,
     .path = "/v1/images",
     .kind = ROUTE_RUN,
     .scope = SCOPE_IMAGES,
     .query = image_query,
     .query_size = sizeof(struct image_query),
     .name = "removeImage",
     .summary = "Take one name away, or, for a digest, the image with all its names.",
     .answer = "Whether its space is free already, and the receipt.",
     .handle = remove_it},
    {.method = HTTP_GET,
     .path = "/v1/images/show",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .query = image_query,
     .query_size = sizeof(struct image_query),
     .name = "getImage",
     .summary = "One image.",
     .answer = "What it is made of.",
     .handle = show},
    {.method = HTTP_POST,
     .path = "/v1/images/pull",
     .kind = ROUTE_RUN,
     .scope = SCOPE_IMAGES,
     .creates = true,
     .body = BODY_JSON,
     .fields = pull_fields,
     .body_size = sizeof(struct pull_body),
     .name = "pullImage",
     .summary = "Get an image from a registry; it goes on when the client leaves.",
     .answer = "The image and the receipt; or progress events and, as the last one, done or error, "
               "when the client accepts text/event-stream or application/x-ndjson.",
     .handle = pull},
    {.method = HTTP_POST,
     .path = "/v1/images/import",
     .kind = ROUTE_RUN,
     .scope = SCOPE_IMAGES,
     .creates = true,
     .body = BODY_FILE,
     .query = import_query,
     .query_size = sizeof(struct import_query),
     .name = "importImage",
     .summary = "Take an image from a tar of an OCI layout or of docker save.",
     .answer = "The image and the receipt; or events, as with a pull.",
     .handle = import},
    {.method = HTTP_GET,
     .path = "/v1/images/export",
     .kind = ROUTE_RUN,
     .scope = SCOPE_IMAGES,
     .query = image_query,
     .query_size = sizeof(struct image_query),
     .name = "exportImage",
     .summary = "An image as an archive; its digest stays.",
     .answer = "A tar of an OCI layout; X-Receipt-Id and X-Image-Digest say what was recorded.",
     .handle = export},
    {.method = HTTP_POST,
     .path = "/v1/images/verify",
     .kind = ROUTE_RUN,
     .scope = SCOPE_READ,
     .query = image_query,
     .query_size = sizeof(struct image_query),
     .name = "verifyImage",
     .summary = "Read everything of an image again.",
     .answer = "That it is what it was; otherwise the error \"integrity\".",
     .handle = verify},
    {0},
};
/* clang-format on */
