/* SPDX-License-Identifier: Apache-2.0 */

/* Snapshots that leave this machine as an OCI layer, and that come from one; and snapshots of one
 * principal that another one wants to stand on, which take the same way.
 *
 * What a sandbox wrote may hold credentials of whoever worked in it. On its way to somebody else
 * everything passes the filter of lib/image; what was left out is told, never what was in it. */

#include "flow/govern-parts.h"

#include "lib/base/clock.h"
#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/image/image.h"
#include "lib/linux/sandbox-ids.h"
#include "lib/snapshot/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define TRANSFER_TIMEOUT_MS (3600ULL * 1000)
#define NOTE_PREFIX "dev.brig.snapshot."

/* Where each layer is seen inside, and thus in the archive. */
static const struct {
    const char *layer;
    const char *prefix;
    unsigned mode;
} places[] = {
    {"home",      "home/sandbox",   0700 },
    {"output",    "sandbox/output", 0700 },
    {"root",      "",               0755 },
    {"tmp",       "tmp",            01777},
    {"workspace", "workspace",      0700 },
};

struct transfer {
    struct govern *govern;
    struct run *run;
    struct snapshot_store *store;
    struct image_store *images;
    struct sandbox_ids ids;
    struct snapshot snapshot;
    struct image_tree trees[COUNT(places)];
    size_t tree_n;
    char dir[PATH_BYTES_MAX]; /* of our own, gone with the run; "": none was made */
};

/* Whoever took an archive in for somebody else calls it as that one does. */
static const char *archive_of(const struct request *request)
{
    return request->at ? request->at : request->path;
}

static int open_transfer(struct transfer *transfer, struct err *err)
{
    struct image_owner owner;

    if (sandbox_ids(&transfer->ids, err) < 0)
        return -1;
    owner = (struct image_owner){transfer->ids.uid, transfer->ids.gid};
    if (snapshot_store_open(transfer->govern->state_dir, &transfer->store, err) < 0)
        return -1;
    return image_store_open(transfer->govern->state_dir, &owner, &transfer->images, err);
}

static void close_transfer(struct transfer *transfer)
{
    struct err ignored; /* what stays is swept with the run's lock */

    for (size_t i = 0; i < transfer->tree_n; i++)
        (void)close(transfer->trees[i].fd);
    if (transfer->dir[0])
        (void)!dir_remove(AT_FDCWD, transfer->dir, &ignored);
    image_store_free(transfer->images);
    snapshot_store_free(transfer->store);
}

static int intend(struct transfer *transfer, const struct request *request, struct err *err)
{
    if (admit_files(request, transfer->run, err) < 0)
        return -1;
    return govern_intend(transfer->govern, transfer->run, err);
}

static int conclude(struct transfer *transfer, const struct err *failure, uint64_t began_us,
                    struct err *err)
{
    struct outcome *outcome = &transfer->run->outcome;

    outcome->started = outcome->ended = true;
    outcome->duration_us = clock_us() - began_us;
    if (failure) {
        outcome->reason = REASON_SNAPSHOT_FAILED;
        outcome->failure = arena_text(&transfer->run->mem, str_of(failure->text));
        outcome->failure_code = failure->code;
    } else {
        outcome->snapshot.id = transfer->snapshot.id;
    }
    if (govern_conclude(transfer->govern, transfer->run, err) < 0)
        return -1;
    execute_unclaim(transfer->govern->execute);
    return 0;
}

/* ---- out ---- */

static int add_tree(struct transfer *transfer, int set_fd, size_t place, struct err *err)
{
    struct image_tree *tree = &transfer->trees[transfer->tree_n];

    *tree = (struct image_tree){.prefix = places[place].prefix};
    tree->fd = openat(set_fd, places[place].layer, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (tree->fd < 0)
        return errno == ENOENT ? 0 : err_os(err, "opening the layer %s", places[place].layer);
    transfer->tree_n++;
    return 0;
}

/* All that it shows, as one set in a folder that goes with the run. */
static int merge(struct transfer *transfer, struct err *err)
{
    AUTO_FD int set_fd = -1;

    (void)snprintf(transfer->dir, sizeof transfer->dir, "%.2000s/runs/%s",
                   transfer->govern->state_dir, transfer->run->id);
    if (mkdir(transfer->dir, 0700) < 0)
        return err_os(err, "creating %s", transfer->dir);
    set_fd = open(transfer->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (set_fd < 0)
        return err_os(err, "opening %s", transfer->dir);
    if (snapshot_merge(transfer->store, &transfer->snapshot, set_fd, err) < 0)
        return -1;
    CRASH_POINT("snapshot merged for export");
    for (size_t i = 0; i < COUNT(places); i++)
        if (add_tree(transfer, set_fd, i, err) < 0)
            return -1;
    return 0;
}

static const char *layers_note(struct arena *mem, struct words names)
{
    const char *list = "";

    for (size_t i = 0; i < names.n; i++)
        list = arena_printf(mem, "%s%s%s", list, i ? "," : "", names.v[i]);
    return list;
}

/* Variables and mounts of the sandbox stay here: they may name secrets and places. */
static int pack(struct transfer *transfer, const struct request *request, struct image_packed *out,
                struct err *err)
{
    struct run *run = transfer->run;
    const struct snapshot *snapshot = &transfer->snapshot;
    const struct image_note notes[] = {
        {NOTE_PREFIX "created",      snapshot->created_at  },
        {NOTE_PREFIX "image",        snapshot->image       },
        {NOTE_PREFIX "image-digest", snapshot->image_digest},
        {NOTE_PREFIX "layers",       layers_note(&run->mem,  snapshot->names)},
        {NOTE_PREFIX "name",                          snapshot->name                              },
    };
    const struct image_pack ask = {
        .trees = transfer->trees,
        .tree_n = transfer->tree_n,
        .notes = notes,
        .note_n = COUNT(notes),
        .output = archive_of(request),
        .filter = !request->verb || strcmp(request->verb, "everything") != 0,
        .timeout_ms = TRANSFER_TIMEOUT_MS,
    };

    if (image_pack(transfer->images, &run->mem, &ask, NULL, out, err) < 0)
        return -1;
    run->outcome.snapshot.digest = arena_text(&run->mem, str_of(out->digest));
    run->outcome.snapshot.dropped = out->dropped;
    run->outcome.snapshot.replaced = out->replaced;
    run->outcome.moved.bytes = out->bytes;
    run->outcome.moved.entries = out->entries;
    return 0;
}

int govern_snapshot_export(struct govern *govern, const struct request *request, struct run *run,
                           struct image_packed *out, struct err *err)
{
    struct transfer transfer = {.govern = govern, .run = run};
    uint64_t began_us = clock_us();
    struct err failure;
    int failed = open_transfer(&transfer, err);

    if (!failed)
        failed = snapshot_find(transfer.store, &run->mem, request->base, &transfer.snapshot, err);
    if (!failed)
        failed = intend(&transfer, request, err);
    if (!failed) {
        bool packed =
            merge(&transfer, &failure) == 0 && pack(&transfer, request, out, &failure) == 0;

        failed = conclude(&transfer, packed ? NULL : &failure, began_us, err);
    }
    close_transfer(&transfer);
    return failed;
}

/* ---- in ---- */

static const char *note(const struct image_unpacked *unpacked, const char *key)
{
    for (size_t i = 0; i < unpacked->note_n; i++)
        if (strcmp(unpacked->notes[i].key, key) == 0)
            return unpacked->notes[i].value;
    return "";
}

static int find_place(struct str layer, size_t *out)
{
    for (size_t i = 0; i < COUNT(places); i++)
        if (str_is(layer, places[i].layer)) {
            *out = i;
            return 0;
        }
    return -1;
}

/* The layers it says it has, of those there can be. */
static int take_names(struct transfer *transfer, const char *list, struct err *err)
{
    const char **names = arena_array(&transfer->run->mem, const char *, COUNT(places));
    struct str rest = str_of(list);
    size_t n = 0;

    while (rest.n) {
        struct str name = str_cut(&rest, ',');
        size_t place = 0;

        if (find_place(name, &place) < 0 || n == COUNT(places))
            return err_set(err, ERR_INVALID, "it has a layer \"%.*s\", which no sandbox has",
                           (int)(name.n < 40 ? name.n : 40), name.p);
        for (size_t i = 0; i < n; i++)
            if (strcmp(names[i], places[place].layer) == 0)
                return err_set(err, ERR_INVALID, "it has the layer \"%s\" twice", names[i]);
        names[n++] = places[place].layer;
    }
    if (n == 0)
        return err_set(err, ERR_INVALID, "this is no snapshot; \"brig image import\" takes images");
    transfer->snapshot.names = (struct words){names, n};
    return 0;
}

/* What a fork of it is made from: the image it was taken over, and otherwise nothing special. */
static int rehearse(struct transfer *transfer, const struct request *request, const char *image,
                    const char *image_digest, struct err *err)
{
    struct request plain = {
        .name = "",
        .principal = request->principal,
        .tenant = request->tenant,
        .provider = "local",
        .image = *image ? image : "host",
    };
    struct config config;
    struct run run;
    int failed;

    run_init(&run);
    failed = govern_rehearse(transfer->govern, &plain, &run, &config, err);
    if (!failed && !is_allowed(&run))
        failed = err_set(err, ERR_CONFLICT, "%.400s",
                         run.verdict.text ? run.verdict.text : reason_text(run.verdict.reason));
    /* System folders differ from machine to machine, and nothing of them is in a snapshot. */
    if (!failed && strcmp(plain.image, "host") != 0 &&
        strcmp(config.image_digest, image_digest) != 0)
        failed = err_set(err, ERR_CONFLICT,
                         "it was taken over image %.100s %.80s; here that name is %.80s", image,
                         image_digest, config.image_digest);
    if (!failed) {
        transfer->snapshot.config = arena_text(&transfer->run->mem, str_of(run.action.config));
        transfer->snapshot.image_digest =
            arena_text(&transfer->run->mem, str_of(config.image_digest));
        transfer->snapshot.image = arena_text(&transfer->run->mem, str_of(plain.image));
    }
    execute_forget(&run);
    run_done(&run);
    return failed;
}

static int describe(struct transfer *transfer, const struct request *request, struct err *err)
{
    struct arena *mem = &transfer->run->mem;
    struct image_unpacked seen;
    char now[TIMESTAMP_BYTES];

    if (image_unpack_look(transfer->images, mem, archive_of(request), TRANSFER_TIMEOUT_MS, &seen,
                          err) < 0)
        return -1;
    clock_timestamp(now);
    transfer->snapshot = (struct snapshot){
        .id = transfer->run->id,
        .name = request->name ? request->name
                : str_is_utf8(str_of(note(&seen, NOTE_PREFIX "name")))
                    ? note(&seen, NOTE_PREFIX "name")
                    : "",
        .sandbox_id = "",
        .created_at = arena_text(mem, str_of(now)),
        .principal = request->principal,
        .tenant = request->tenant,
        .live = true, /* copied, not moved */
        .digest = "",
        .lock_fd = -1,
    };
    if (take_names(transfer, note(&seen, NOTE_PREFIX "layers"), err) < 0)
        return -1;
    return rehearse(transfer, request, note(&seen, NOTE_PREFIX "image"),
                    note(&seen, NOTE_PREFIX "image-digest"), err);
}

static int make_trees(struct transfer *transfer, struct err *err)
{
    for (size_t i = 0; i < transfer->snapshot.names.n; i++) {
        struct image_tree *tree = &transfer->trees[transfer->tree_n];
        size_t place = 0;

        (void)!find_place(str_of(transfer->snapshot.names.v[i]), &place); /* they were checked */
        *tree = (struct image_tree){.prefix = places[place].prefix};
        if (snapshot_make_layer(transfer->store, &transfer->snapshot, places[place].layer,
                                places[place].mode, transfer->ids.uid, transfer->ids.gid, &tree->fd,
                                err) < 0)
            return -1;
        transfer->tree_n++;
    }
    return 0;
}

static int unpack(struct transfer *transfer, const struct request *request, struct err *err)
{
    struct image_unpack ask = {
        .path = archive_of(request),
        .trees = transfer->trees,
        .timeout_ms = TRANSFER_TIMEOUT_MS,
    };
    struct image_unpacked unpacked;
    struct run *run = transfer->run;

    if (make_trees(transfer, err) < 0)
        return -1;
    ask.tree_n = transfer->tree_n;
    if (image_unpack(transfer->images, &run->mem, &ask, NULL, &unpacked, err) < 0)
        return -1;
    transfer->snapshot.bytes = run->outcome.moved.bytes = unpacked.bytes;
    transfer->snapshot.entries = run->outcome.moved.entries = unpacked.entries;
    run->outcome.snapshot.digest = arena_text(&run->mem, str_of(unpacked.digest));
    CRASH_POINT("snapshot unpacked");
    return snapshot_commit(transfer->store, &transfer->snapshot, err);
}

static int take_in(struct transfer *transfer, const struct request *request, struct err *err)
{
    if (describe(transfer, request, err) < 0 ||
        snapshot_begin(transfer->store, &transfer->run->mem, &transfer->snapshot, err) < 0)
        return err_in(err, "%.200s", request->path);
    if (unpack(transfer, request, err) == 0)
        return 0;
    snapshot_drop(transfer->store, &transfer->snapshot);
    return err_in(err, "%.200s", request->path);
}

int govern_snapshot_import(struct govern *govern, const struct request *request, struct run *run,
                           struct err *err)
{
    struct transfer transfer = {.govern = govern, .run = run};
    uint64_t began_us = clock_us();
    struct err failure;
    int failed = open_transfer(&transfer, err);

    if (!failed)
        failed = intend(&transfer, request, err);
    if (!failed) {
        bool taken = take_in(&transfer, request, &failure) == 0;

        failed = conclude(&transfer, taken ? NULL : &failure, began_us, err);
        if (!failed && taken)
            snapshot_tend_later(transfer.store);
    }
    close_transfer(&transfer);
    return failed;
}

/* ---- from one principal to another ---- */

/* What an action of our own came to. */
static int check_done(int failed, const struct run *run, struct err *err)
{
    if (!failed && run->outcome.reason != REASON_NONE)
        failed = err_set(err, run->outcome.failure_code, "%.400s", run->outcome.failure);
    return failed;
}

static int pass_through(struct govern *govern, const struct request *request, const char *archive,
                        struct arena *mem, const char **base, struct err *err)
{
    struct request step = *request;
    struct image_packed packed;
    struct run out, in;
    int failed;

    run_init(&out);
    run_init(&in);
    step.sandbox = NULL;
    step.path = archive;
    step.at = NULL;
    step.kind = ACTION_SNAPSHOT_EXPORT;
    step.verb = "filter";
    failed = check_done(govern_snapshot_export(govern, &step, &out, &packed, err), &out, err);
    if (!failed) {
        step.kind = ACTION_SNAPSHOT_IMPORT;
        step.base = NULL;
        step.name = "";
        failed = check_done(govern_snapshot_import(govern, &step, &in, err), &in, err);
    }
    if (!failed)
        *base = arena_text(mem, str_of(in.outcome.snapshot.id));
    run_done(&out);
    run_done(&in);
    return failed;
}

int govern_own_base(struct govern *govern, const struct request *request, struct arena *mem,
                    const char **base, bool *filtered, struct err *err)
{
    AUTO(snapshot_store) struct snapshot_store *store = NULL;
    struct snapshot snapshot;
    char archive[PATH_BYTES_MAX];
    char id[ID_BYTES];
    int failed;

    *filtered = false;
    *base = request->base;
    if (!request->base)
        return 0;
    if (snapshot_store_open(govern->state_dir, &store, err) < 0 ||
        snapshot_find(store, mem, request->base, &snapshot, err) < 0)
        return -1;
    *base = snapshot.id;
    if (strcmp(snapshot.principal, request->principal) == 0 &&
        strcmp(snapshot.tenant, request->tenant) == 0)
        return 0;
    id_new(id);
    (void)snprintf(archive, sizeof archive, "%.2000s/snapshots/%s.tar", govern->state_dir, id);
    failed = pass_through(govern, request, archive, mem, base, err);
    (void)unlink(archive);
    *filtered = !failed;
    return failed ? err_in(err, "leaving out what is not for %.60s", request->principal) : 0;
}

int govern_forget_base(struct govern *govern, const struct request *request, struct err *err)
{
    struct request remove = *request;
    bool freed = false;
    struct run run;
    int failed;

    remove.kind = ACTION_SNAPSHOT_REMOVE;
    remove.sandbox = NULL;
    run_init(&run);
    failed = check_done(govern_snapshot_remove(govern, &remove, &run, &freed, err), &run, err);
    run_done(&run);
    return failed;
}
