/* SPDX-License-Identifier: Apache-2.0 */

/* brig sandbox ps, files; receipts list, show, head, export; token: by a daemon. */

#include "surface/cli/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "model/run.h"
#include "surface/cli/sandbox.h"

#define RECEIPTS_MAX 1000 /* what a daemon answers at once */

/* ---- ps ---- */

static void print_execs(struct invocation *inv, const struct json *list)
{
    struct arena *mem = &inv->mem;

    if (list && list->n)
        (void)fprintf(inv->out, "%-20s %-8s %-8s %s\n", "EXEC", "STATE", "HOW", "SINCE");
    for (const struct json *exec = list ? list->first : NULL; exec; exec = exec->next)
        (void)fprintf(inv->out, "%-20s %-8s %-8s %s\n", doc_text(mem, exec, "exec_id"),
                      doc_text(mem, exec, "state"),
                      doc_bool(exec, "detached") ? "detached" : "attached",
                      doc_text(mem, exec, "began_at"));
}

static void print_processes(struct invocation *inv, const struct json *list)
{
    struct arena *mem = &inv->mem;

    if (list && list->n)
        (void)fprintf(inv->out, "%7s %-15s %-5s %9s %10s %s\n", "PID", "EXEC", "STATE", "CPU",
                      "MEMORY", "COMMAND");
    for (const struct json *process = list ? list->first : NULL; process; process = process->next) {
        (void)fprintf(inv->out, "%7llu %-15s %-5s %7llums %9lluK ",
                      (unsigned long long)doc_number(process, "pid"),
                      doc_text(mem, process, "exec"), doc_text(mem, process, "state"),
                      (unsigned long long)(doc_number(process, "cpu_us") / 1000U),
                      (unsigned long long)(doc_number(process, "memory_bytes") / 1024U));
        print_escaped(inv->out, doc_bytes(mem, process, "command"));
        (void)fputc('\n', inv->out);
    }
}

int remote_sandbox_ps(struct invocation *inv, struct remote *remote)
{
    const char *id = inv->operands.v[0];
    const char *target = remote_sandbox_path(inv, id, "/execs");
    const struct json *doc = NULL;
    struct err err;

    if (!target)
        return REMOTE_NOT_DONE;
    if (remote_ask(inv, remote, HTTP_GET, target, NULL, &doc, &err) < 0) {
        remote_look_unknown(inv, remote, id, &err);
        return remote_failed(inv, remote, &err);
    }
    if (inv->json)
        return cli_json(inv, doc);
    print_execs(inv, json_get(doc, "execs"));
    print_processes(inv, json_get(doc, "processes"));
    return 0;
}

/* ---- files ---- */

struct file_verb {
    const char *name;
    enum http_method method;
    const char *rest;
    const char *recursive; /* what --recursive is called there, or NULL */
    bool shows;            /* its result is what is printed */
};

static const struct file_verb file_verbs[] = {
    {"ls",    HTTP_GET,    "/files/list",  NULL,        true },
    {"stat",  HTTP_GET,    "/files/stat",  NULL,        true },
    {"rm",    HTTP_DELETE, "/files",       "recursive", false},
    {"mkdir", HTTP_POST,   "/files/mkdir", "parents",   false},
    {"mv",    HTTP_POST,   "/files/move",  NULL,        false},
};

static void print_entry(struct invocation *inv, const struct json *entry)
{
    struct arena *mem = &inv->mem;
    const char *when = doc_text(mem, entry, "mtime");

    (void)fprintf(inv->out, "%-9s %s %12llu %s ", doc_text(mem, entry, "type"),
                  doc_text(mem, entry, "mode"), (unsigned long long)doc_number(entry, "size"),
                  *when ? when : "1970-01-01T00:00:00Z");
    print_escaped(inv->out, doc_bytes(mem, entry, "name"));
    if (strcmp(doc_text(mem, entry, "type"), "link") == 0) {
        (void)fputs(" -> ", inv->out);
        print_escaped(inv->out, doc_bytes(mem, entry, "target"));
    }
    (void)fputc('\n', inv->out);
}

static int print_files(struct invocation *inv, const struct file_verb *verb, const struct json *doc)
{
    const struct json *entries = json_get(doc, "entries");
    unsigned long long skipped = doc_number(doc, "skipped");

    for (const struct json *entry = entries ? entries->first : NULL; entry && !inv->json;
         entry = entry->next)
        print_entry(inv, entry);
    if (!inv->json && doc_bool(doc, "truncated"))
        (void)fprintf(inv->err, "%s: there are more entries than are shown\n", inv->program);
    if (skipped && !inv->json)
        (void)fprintf(inv->err,
                      "%s: %llu left out: special files, and links that lead out of the copy\n",
                      inv->program, skipped);
    if (inv->json)
        return cli_json(inv, doc);
    if (!verb->shows)
        (void)fprintf(inv->err, "%s: %s %llu bytes, %llu entries; receipt %s\n", inv->program,
                      verb->name, (unsigned long long)doc_number(doc, "bytes"),
                      (unsigned long long)doc_number(doc, "count"),
                      doc_text(&inv->mem, doc, "receipt_id"));
    else if (!entries)
        print_entry(inv, doc);
    return 0;
}

/* A denial of its own, or a failure in the words of the sandbox. */
static int files_failed(struct invocation *inv, struct remote *remote, struct err *err)
{
    const char *verdict = doc_text(&inv->mem, remote->details, "verdict");

    if (*verdict && strcmp(verdict, verdict_name(VERDICT_ALLOW)) != 0)
        return remote_refused(inv, remote, err);
    remote_look_unknown(inv, remote, inv->operands.v[1], err);
    return remote_failed(inv, remote, err);
}

static const char *files_target(struct invocation *inv, const struct file_verb *verb)
{
    const char *target = remote_sandbox_path(inv, inv->operands.v[1], verb->rest);

    if (!target || strcmp(verb->name, "mv") == 0)
        return target;
    return arena_printf(&inv->mem, "%s?path=%s%s%s%s", target,
                        remote_escape(inv, inv->operands.v[2]),
                        verb->recursive && option_flag(inv, "--recursive") ? "&" : "",
                        verb->recursive && option_flag(inv, "--recursive") ? verb->recursive : "",
                        verb->recursive && option_flag(inv, "--recursive") ? "=true" : "");
}

/* Contents are passed on here all the same, where a signal ends a transfer with its receipt; the
 * rest is asked for. */
static int run_file_verb(struct invocation *inv, struct remote *remote,
                         const struct file_verb *verb)
{
    const char *target = files_target(inv, verb);
    const struct json *doc = NULL;
    struct json *body = NULL;
    struct err err;

    if (!target)
        return REMOTE_NOT_DONE;
    if (strcmp(verb->name, "mv") == 0) {
        if (!str_is_utf8(str_of(inv->operands.v[2])) || !str_is_utf8(str_of(inv->operands.v[3])))
            return REMOTE_NOT_DONE;
        body = json_object(&inv->mem);
        json_put_text(&inv->mem, body, "from", inv->operands.v[2]);
        json_put_text(&inv->mem, body, "to", inv->operands.v[3]);
    }
    if (remote_ask(inv, remote, verb->method, target, body, &doc, &err) < 0) {
        /* Not well-formed, or more than one answer holds: asked for here. */
        remote->not_done |= remote->status == 400 || err.code == ERR_LIMIT;
        return files_failed(inv, remote, &err);
    }
    return print_files(inv, verb, doc);
}

static int cat_it(struct invocation *inv, struct remote *remote)
{
    const struct file_verb verb = {"cat", HTTP_GET, "/files", NULL, true};
    const char *target = files_target(inv, &verb);
    struct err err;

    if (!target || inv->json)
        return REMOTE_NOT_DONE;
    if (remote_fetch(inv, remote, target, STDOUT_FILENO, NULL, &err) < 0)
        return files_failed(inv, remote, &err);
    return 0;
}

int remote_sandbox_files(struct invocation *inv, struct remote *remote)
{
    const char *name = inv->operands.v[0];
    size_t paths = strcmp(name, "mv") == 0 ? 2 : 1;

    if (inv->operands.n != 2 + paths)
        return inv->command->run(inv); /* which says what is wrong */
    for (size_t i = 0; i < COUNT(file_verbs); i++)
        if (strcmp(file_verbs[i].name, name) == 0)
            return run_file_verb(inv, remote, &file_verbs[i]);
    return strcmp(name, "cat") == 0 && remote->chosen ? cat_it(inv, remote) : REMOTE_NOT_DONE;
}

/* ---- receipts ---- */

int remote_receipts_list(struct invocation *inv, struct remote *remote)
{
    uint64_t limit = option_number(inv, "--limit");
    const struct json *doc = NULL;
    struct err err;

    limit = limit ? limit : RECEIPTS_LIST_DEFAULT;
    if (limit > RECEIPTS_MAX)
        return REMOTE_NOT_DONE;
    if (remote_ask(inv, remote, HTTP_GET,
                   arena_printf(&inv->mem, "/v1/receipts?limit=%llu", (unsigned long long)limit),
                   NULL, &doc, &err) < 0) {
        remote->not_done |= err.code == ERR_LIMIT;
        return remote_failed(inv, remote, &err);
    }
    return receipts_print(inv, json_get(doc, "receipts"), &err) < 0 ? cli_error(inv, &err) : 0;
}

int remote_receipts_show(struct invocation *inv, struct remote *remote)
{
    const char *id = inv->operands.v[0];
    const struct json *doc = NULL;
    struct err err;

    if (!*id || strchr(id, '/') || *id == '.')
        return REMOTE_NOT_DONE;
    if (remote_ask(inv, remote, HTTP_GET,
                   arena_printf(&inv->mem, "/v1/receipts/%s", remote_escape(inv, id)), NULL, &doc,
                   &err) < 0) {
        doc = json_get(remote->details, "receipt");
        return doc ? receipt_doubted(inv, doc, &err) : remote_failed(inv, remote, &err);
    }
    return cli_json(inv, doc);
}

int remote_receipts_head(struct invocation *inv, struct remote *remote)
{
    struct err err;

    (void)fflush(inv->out);
    if (remote_fetch(inv, remote, "/v1/receipts/head", fileno(inv->out), NULL, &err) < 0)
        return remote_failed(inv, remote, &err);
    return 0;
}

static int export_to(struct invocation *inv, struct remote *remote, int fd, struct err *err)
{
    uint64_t count = 0;

    if (remote_fetch(inv, remote, "/v1/receipts/export", fd, &count, err) < 0)
        return err_in(err, "exporting");
    (void)fprintf(inv->err, "%s: %llu receipts\n", inv->program, (unsigned long long)count);
    return 0;
}

int remote_receipts_export(struct invocation *inv, struct remote *remote)
{
    const char *path = option_text(inv, "--output");
    AUTO_FD int fd = -1;
    struct err err;

    if (!remote->chosen)
        return REMOTE_NOT_DONE; /* read here, by whoever is to keep it */
    (void)fflush(inv->out);
    if (!path)
        return export_to(inv, remote, fileno(inv->out), &err) < 0 ? remote_failed(inv, remote, &err)
                                                                  : 0;
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600);
    if (fd < 0) {
        (void)err_os(&err, "creating %s", path);
        return cli_error(inv, &err);
    }
    if (export_to(inv, remote, fd, &err) < 0)
        return remote_failed(inv, remote, &err);
    if (fsync(fd) < 0 && errno != EINVAL && errno != EROFS) {
        (void)err_os(&err, "syncing %s", path);
        return cli_error(inv, &err);
    }
    return 0;
}
