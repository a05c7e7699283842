/* SPDX-License-Identifier: Apache-2.0 */

/* Calls what lib/image/image.h offers for trees, so that tests can from a shell:
 *
 *     trees pack|filter STATE FILE PREFIX=FOLDER…     with the notes a=1 and b=2
 *     trees unpack STATE FILE [PREFIX=FOLDER…]
 *     trees hash STATE FOLDER
 *
 * The program `image` has to be beside it. Prints JSON; a failure is "CODE: text", status 1. */

#include "lib/base/limits.h"
#include "lib/image/image.h"
#include "lib/json/json.h"
#include "lib/linux/sandbox-ids.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS 120000U

struct call {
    struct arena mem;
    struct image_store *store;
    const char *file;
    struct image_tree trees[IMAGE_TREES_MAX + 1];
    size_t n;
};

static int open_trees(struct call *call, char **words, int n, struct err *err)
{
    for (int i = 0; i < n && i <= IMAGE_TREES_MAX; i++) {
        char *equals = strchr(words[i], '=');

        if (!equals)
            return err_set(err, ERR_INVALID, "%s", words[i]);
        *equals = '\0';
        call->trees[call->n].prefix = words[i];
        call->trees[call->n].fd = open(equals + 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (call->trees[call->n].fd < 0)
            call->trees[call->n].fd = open(equals + 1, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (call->trees[call->n++].fd < 0)
            return err_os(err, "%s", equals + 1);
    }
    return 0;
}

static int run_pack(struct call *call, bool filter, struct json **out, struct err *err)
{
    static const struct image_note notes[] = {
        {"b", "2"},
        {"a", "1"}
    };
    struct image_packed packed;

    if (image_pack(call->store, &call->mem,
                   &(struct image_pack){.trees = call->trees,
                                        .tree_n = call->n,
                                        .notes = notes,
                                        .note_n = 2,
                                        .output = call->file,
                                        .filter = filter,
                                        .timeout_ms = TIMEOUT_MS},
                   NULL, &packed, err) < 0)
        return -1;
    *out = image_packed_json(&call->mem, &packed);
    return 0;
}

static int run_unpack(struct call *call, struct json **out, struct err *err)
{
    struct image_unpack unpack = {call->file, call->trees, call->n, TIMEOUT_MS};
    struct json *root = json_object(&call->mem), *notes = json_object(&call->mem);
    struct image_unpacked unpacked;

    if ((call->n ? image_unpack(call->store, &call->mem, &unpack, NULL, &unpacked, err)
                 : image_unpack_look(call->store, &call->mem, call->file, TIMEOUT_MS, &unpacked,
                                     err)) < 0)
        return -1;
    for (size_t i = 0; i < unpacked.note_n; i++)
        json_put_text(&call->mem, notes, unpacked.notes[i].key, unpacked.notes[i].value);
    json_put_text(&call->mem, root, "image_digest", unpacked.digest);
    json_put_text(&call->mem, root, "diff_id", unpacked.diff_id);
    json_put_int(&call->mem, root, "entries", (int64_t)unpacked.entries);
    json_put(root, "notes", notes);
    *out = root;
    return 0;
}

static int run_hash(struct call *call, struct json **out, struct err *err)
{
    struct json *root = json_object(&call->mem);
    AUTO_FD int fd = open(call->file, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct image_tree_hash hash;

    if (fd < 0)
        return err_os(err, "%s", call->file);
    if (image_tree_hash(call->store, fd, TIMEOUT_MS, &hash, err) < 0)
        return -1;
    json_put_text(&call->mem, root, "digest", hash.digest);
    json_put_int(&call->mem, root, "entries", (int64_t)hash.entries);
    json_put_int(&call->mem, root, "bytes", (int64_t)hash.bytes);
    *out = root;
    return 0;
}

static int run(struct call *call, int argc, char **argv, struct json **out, struct err *err)
{
    struct sandbox_ids ids;

    if (argc < 4)
        return err_set(err, ERR_INVALID, "usage: trees VERB STATE FILE [PREFIX=FOLDER...]");
    call->file = argv[3];
    if (sandbox_ids(&ids, err) < 0 ||
        image_store_open(argv[2], &(struct image_owner){ids.uid, ids.gid}, &call->store, err) < 0 ||
        open_trees(call, argv + 4, argc - 4, err) < 0)
        return -1;
    if (strcmp(argv[1], "hash") == 0)
        return run_hash(call, out, err);
    if (strcmp(argv[1], "unpack") == 0)
        return run_unpack(call, out, err);
    return run_pack(call, strcmp(argv[1], "filter") == 0, out, err);
}

int main(int argc, char **argv)
{
    struct call call = {.mem = ARENA(IMAGE_MEMORY_MAX)};
    struct json *answer = NULL;
    struct err err;
    int failed = run(&call, argc, argv, &answer, &err) < 0;

    if (!failed)
        failed = json_print(answer, stdout, &err) < 0;
    if (failed)
        (void)printf("%s: %s\n", err_name(err.code), err.text);
    image_store_free(call.store);
    arena_done(&call.mem);
    return failed;
}
