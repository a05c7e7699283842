/* SPDX-License-Identifier: Apache-2.0 */

/* brig image pull|import|list|show|remove|export|verify: what sandboxes can stand on. */

#include "surface/cli/commands.h"
#include "surface/cli/sandbox.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/image/image.h"
#include "lib/json/json.h"
#include "lib/linux/sandbox-ids.h"
#include "surface/view/view.h"

#define PULL_TIMEOUT_MS (30ULL * 60 * 1000)
#define IMPORT_TIMEOUT_MS (60ULL * 60 * 1000)
#define STALL_MS (30ULL * 1000)
#define PASSWORD_MAX 4096
#define PROGRESS_AFTER_US 1000000U
#define SHORT_DIGEST 19 /* "sha256:" and 12 digits */

/* What one command does to the store. */
struct image_call {
    struct invocation *inv;
    struct image_store *store;
    struct image_pull pull;
    struct image_import import;
    const char *output;
    struct image image; /* what came, went or was written */
    bool freed;
    struct err failure;
};

static int open_store(struct invocation *inv, struct image_store **out, struct err *err)
{
    struct sandbox_ids ids;
    const char *dir = NULL;

    if (sandbox_ids(&ids, err) < 0 || cli_state(inv, &dir, err) < 0)
        return -1;
    return image_store_open(dir, &(struct image_owner){ids.uid, ids.gid}, out, err);
}

/* ---- progress ---- */

struct progress_line {
    struct invocation *inv;
    uint64_t began_us;
    bool wanted; /* somebody is watching */
    bool shown;
};

static void show_progress(void *context, const char *what, uint64_t done, uint64_t total)
{
    struct progress_line *line = context;

    if (!line->wanted || clock_us() - line->began_us < PROGRESS_AFTER_US)
        return;
    line->shown = true;
    (void)fprintf(line->inv->err, "\r\033[K%.60s  %.1f MiB", what, (double)done / (double)MIB);
    if (total)
        (void)fprintf(line->inv->err, " of %.1f MiB, %u%%", (double)total / (double)MIB,
                      (unsigned)((double)done * 100.0 / (double)total));
    (void)fflush(line->inv->err);
}

static struct image_progress progress_begin(struct invocation *inv, struct progress_line *line)
{
    *line = (struct progress_line){inv, clock_us(), !inv->json && isatty(fileno(inv->err)), false};
    return (struct image_progress){show_progress, line};
}

static void progress_end(const struct progress_line *line)
{
    if (line->shown)
        (void)fprintf(line->inv->err, "\r\033[K");
}

/* ---- showing ---- */

/* Texts of an image are a stranger's: a terminal must not be steered by them. */
static void put_field(struct invocation *inv, const char *title, const char *text)
{
    AUTO_BUF struct buf shown = BUF(8 * IMAGE_RECORD_MAX);
    struct err ignored;

    if (*text && text_escape(str_of(text), &shown, &ignored) == 0)
        (void)fprintf(inv->out, "%-13s %s\n", title, buf_text(&shown));
}

static void put_words(struct invocation *inv, const char *title, const struct words *words)
{
    for (size_t i = 0; i < words->n; i++)
        put_field(inv, i ? "" : title, words->v[i]);
}

static int print_image(struct invocation *inv, const struct image *image)
{
    if (inv->json)
        return cli_json(inv, view_image(&inv->mem, image));
    put_words(inv, "name", &image->names);
    put_field(inv, "digest", image->digest);
    put_field(inv, "configuration", image->config);
    put_field(inv, "architecture", image->architecture);
    put_field(inv, "added", image->added);
    put_words(inv, "environment", &image->env);
    put_words(inv, "entrypoint", &image->entrypoint);
    put_words(inv, "command", &image->command);
    put_field(inv, "directory", image->workdir);
    put_field(inv, "user", image->user);
    for (size_t i = 0; i < image->layer_n; i++)
        (void)fprintf(inv->out, "%-13s %s  %.1f MiB, %llu entries\n", i ? "" : "layers",
                      image->layers[i].diff_id, (double)image->layers[i].bytes / (double)MIB,
                      (unsigned long long)image->layers[i].entries);
    return 0;
}

/* One line a name: what a person wants to see of it at once. */
static void print_line(struct invocation *inv, const struct image *image, const char *name)
{
    (void)fprintf(inv->out, "%-50s  %.*s  %9.1f MiB  %s\n", name, SHORT_DIGEST, image->digest,
                  (double)view_image_bytes(image) / (double)MIB, image->added);
}

static int print_added(struct invocation *inv, const struct image *image, const char *receipt)
{
    struct json *answer = view_image(&inv->mem, image);
    uint64_t left_out = 0;

    json_put_text(&inv->mem, answer, "receipt_id", receipt);
    if (inv->json)
        return cli_json(inv, answer);
    for (size_t i = 0; i < image->layer_n; i++)
        left_out += image->layers[i].left_out;
    (void)fprintf(inv->out, "%s\n", image->digest);
    if (left_out)
        (void)fprintf(inv->err, "%s: left out %llu device nodes, pipes or sockets\n", inv->program,
                      (unsigned long long)left_out);
    return 0;
}

/* ---- pull ---- */

/* The first line of standard input, without its end. */
static int read_password(struct invocation *inv, const char **out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(PASSWORD_MAX);
    struct str line;

    if (read_all(STDIN_FILENO, &text, err) < 0)
        return err_in(err, "password on standard input");
    line = buf_str(&text);
    line = str_cut(&line, '\n');
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    if (!line.n)
        return err_set(err, ERR_INVALID, "--password-stdin: standard input is empty");
    *out = arena_text(&inv->mem, line);
    return 0;
}

static int pull_request(struct invocation *inv, struct image_pull *pull, struct err *err)
{
    uint64_t timeout = option_number(inv, "--timeout"), stall = option_number(inv, "--stall");

    pull->username = option_text(inv, "--username");
    pull->password = getenv("BRIG_REGISTRY_PASSWORD");
    pull->ca_file = getenv("BRIG_REGISTRY_CA");
    pull->insecure_http = option_flag(inv, "--insecure-http");
    pull->skip_devices = option_flag(inv, "--skip-devices");
    pull->timeout_ms = timeout ? timeout : PULL_TIMEOUT_MS;
    pull->stall_ms = stall ? stall : STALL_MS;
    if (!pull->username)
        pull->username = getenv("BRIG_REGISTRY_USER");
    if (option_flag(inv, "--password-stdin") && read_password(inv, &pull->password, err) < 0)
        return -1;
    if (pull->username && !pull->password)
        return err_set(err, ERR_INVALID,
                       "a user name without a password: set BRIG_REGISTRY_PASSWORD or use "
                       "--password-stdin");
    if (pull->ca_file && !*pull->ca_file)
        pull->ca_file = NULL;
    return image_ref_parse(&inv->mem, str_of(inv->operands.v[0]), &pull->ref, err);
}

/* ---- what changes something, or leaves ---- */

static void tell_image(struct run *run, const struct image *image)
{
    run->outcome.image.digest = arena_text(&run->mem, str_of(image->digest));
    if (image->names.n)
        run->outcome.image.reference = arena_text(&run->mem, str_of(image->names.v[0]));
}

static int do_pull(struct image_call *call, const struct image_progress *progress, struct err *err)
{
    return image_pull(call->store, &call->inv->mem, &call->pull, progress, &call->image, err);
}

static int do_import(struct image_call *call, const struct image_progress *progress,
                     struct err *err)
{
    return image_import(call->store, &call->inv->mem, &call->import, progress, &call->image, err);
}

static int do_export(struct image_call *call, const struct image_progress *progress,
                     struct err *err)
{
    return image_export(call->store, &call->image, call->output, progress, err);
}

static int do_remove(struct image_call *call, const struct image_progress *progress,
                     struct err *err)
{
    (void)progress;
    return image_remove(call->store, call->inv->operands.v[0], &call->freed, err);
}

static const struct image_verb {
    enum action_kind kind;
    int (*run)(struct image_call *call, const struct image_progress *progress, struct err *err);
} verbs[] = {
    {ACTION_IMAGE_PULL,   do_pull  },
    {ACTION_IMAGE_IMPORT, do_import},
    {ACTION_IMAGE_EXPORT, do_export},
    {ACTION_IMAGE_REMOVE, do_remove},
};

static int work(void *context, struct run *run, struct err *err)
{
    struct image_call *call = context;
    struct progress_line line;
    struct image_progress progress = progress_begin(call->inv, &line);
    int failed = 0;

    for (size_t i = 0; i < COUNT(verbs); i++)
        if (verbs[i].kind == run->action.kind)
            failed = verbs[i].run(call, &progress, err);
    progress_end(&line);
    if (failed)
        call->failure = *err;
    else if (call->image.digest[0])
        tell_image(run, &call->image);
    return failed;
}

/* Under receipts, like everything that has an effect. 0: it was done, print() has told it. */
static int govern_call(struct image_call *call, enum action_kind kind, const char *image,
                       const char *path,
                       int (*print)(struct image_call *call, const struct run *run))
{
    AUTO_SANDBOX_CALL struct sandbox_call open = {0};
    const struct image_work what = {work, call};
    struct run run;
    struct err err;
    int status = 0;

    if (sandbox_call_open(call->inv, &open, &status) < 0)
        return status;
    open.request.kind = kind;
    open.request.image = image;
    open.request.path = path;
    open.request.other = call->output;
    run_init(&run);
    if (govern_image(open.govern, &open.request, &what, &run, &err) < 0)
        status = cli_error(call->inv, &err);
    else if (run.outcome.failure)
        status = cli_error(call->inv, &call->failure);
    else
        status = print(call, &run);
    run_done(&run);
    return status;
}

static void call_done(struct image_call *call)
{
    image_store_free(call->store);
}

#define AUTO_IMAGE_CALL __attribute__((cleanup(call_done)))

static int answer_added(struct image_call *call, const struct run *run)
{
    return print_added(call->inv, &call->image, run->closing.id);
}

int run_image_pull(struct invocation *inv)
{
    AUTO_IMAGE_CALL struct image_call call = {.inv = inv};
    struct err err;

    if (pull_request(inv, &call.pull, &err) < 0 || open_store(inv, &call.store, &err) < 0)
        return cli_error(inv, &err);
    return govern_call(&call, ACTION_IMAGE_PULL, image_ref_name(&inv->mem, &call.pull.ref), NULL,
                       answer_added);
}

/* ---- import, export, verify ---- */

int run_image_import(struct invocation *inv)
{
    AUTO_IMAGE_CALL struct image_call call = {.inv = inv};
    uint64_t timeout = option_number(inv, "--timeout");
    struct err err;

    call.import = (struct image_import){
        .path = inv->operands.v[0],
        .name = option_text(inv, "--name"),
        .skip_devices = option_flag(inv, "--skip-devices"),
        .timeout_ms = timeout ? timeout : IMPORT_TIMEOUT_MS,
    };
    if (open_store(inv, &call.store, &err) < 0)
        return cli_error(inv, &err);
    return govern_call(&call, ACTION_IMAGE_IMPORT, call.import.name ? call.import.name : "",
                       call.import.path, answer_added);
}

static int open_image(struct image_call *call, struct err *err)
{
    return open_store(call->inv, &call->store, err) < 0 ||
                   image_find(call->store, &call->inv->mem, call->inv->operands.v[0], &call->image,
                              err) < 0
               ? -1
               : 0;
}

static int answer_exported(struct image_call *call, const struct run *run)
{
    struct invocation *inv = call->inv;
    struct json *answer = json_object(&inv->mem);

    json_put_text(&inv->mem, answer, "image_digest", call->image.digest);
    json_put_bytes(&inv->mem, answer, "output", str_of(call->output));
    json_put_text(&inv->mem, answer, "receipt_id", run->closing.id);
    if (inv->json)
        return cli_json(inv, answer);
    (void)fprintf(inv->out, "%s\n", call->image.digest);
    return 0;
}

int run_image_export(struct invocation *inv)
{
    AUTO_IMAGE_CALL struct image_call call = {.inv = inv, .output = option_text(inv, "--output")};
    struct err err;

    if (!call.output)
        (void)err_set(&err, ERR_INVALID, "where to? --output FILE");
    if (!call.output || open_image(&call, &err) < 0)
        return cli_error(inv, &err);
    return govern_call(&call, ACTION_IMAGE_EXPORT, inv->operands.v[0], NULL, answer_exported);
}

int run_image_verify(struct invocation *inv)
{
    AUTO_IMAGE_CALL struct image_call call = {.inv = inv};
    struct json *answer = json_object(&inv->mem);
    struct progress_line line;
    struct image_progress progress = progress_begin(inv, &line);
    struct err err;
    int failed;

    if (open_image(&call, &err) < 0)
        return cli_error(inv, &err);
    failed = image_verify(call.store, &call.image, &progress, &err);
    progress_end(&line);
    if (failed)
        return cli_error(inv, &err);
    json_put_text(&inv->mem, answer, "image_digest", call.image.digest);
    json_put_bool(&inv->mem, answer, "intact", true);
    if (inv->json)
        return cli_json(inv, answer);
    (void)fprintf(inv->out, "%s is intact: every blob and every layer is what it was\n",
                  call.image.digest);
    return 0;
}

/* ---- list, show, remove ---- */

int run_image_list(struct invocation *inv)
{
    AUTO(image_store) struct image_store *store = NULL;
    struct json *answer = json_object(&inv->mem), *list = json_array(&inv->mem);
    struct image *images = NULL;
    size_t n = 0;
    struct err err;

    if (open_store(inv, &store, &err) < 0 || image_list(store, &inv->mem, &images, &n, &err) < 0)
        return cli_error(inv, &err);
    for (size_t i = 0; i < n; i++) {
        if (inv->json)
            json_push(list, view_image(&inv->mem, &images[i]));
        else if (!images[i].names.n)
            print_line(inv, &images[i], "-");
        for (size_t j = 0; !inv->json && j < images[i].names.n; j++)
            print_line(inv, &images[i], images[i].names.v[j]);
    }
    if (n == 0)
        cli_none(inv, "no images");
    if (!inv->json)
        return 0;
    json_put(answer, "images", list);
    return cli_json(inv, answer);
}

int run_image_show(struct invocation *inv)
{
    AUTO(image_store) struct image_store *store = NULL;
    struct image image;
    struct err err;

    if (open_store(inv, &store, &err) < 0 ||
        image_find(store, &inv->mem, inv->operands.v[0], &image, &err) < 0)
        return cli_error(inv, &err);
    return print_image(inv, &image);
}

static int answer_removed(struct image_call *call, const struct run *run)
{
    struct invocation *inv = call->inv;
    struct json *answer = json_object(&inv->mem);

    if (inv->json) {
        json_put_bytes(&inv->mem, answer, "removed", str_of(inv->operands.v[0]));
        json_put_bool(&inv->mem, answer, "freed", call->freed);
        json_put_text(&inv->mem, answer, "receipt_id", run->closing.id);
        return cli_json(inv, answer);
    }
    if (!call->freed)
        (void)fprintf(inv->err,
                      "%s: the store is in use; the space is freed by the next pull, "
                      "import or remove\n",
                      inv->program);
    return 0;
}

int run_image_remove(struct invocation *inv)
{
    AUTO_IMAGE_CALL struct image_call call = {.inv = inv};
    struct err err;

    if (open_image(&call, &err) < 0)
        return cli_error(inv, &err);
    return govern_call(&call, ACTION_IMAGE_REMOVE, inv->operands.v[0], NULL, answer_removed);
}
