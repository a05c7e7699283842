/* SPDX-License-Identifier: Apache-2.0 */

/* Any text read as each of the documents of an image: refused with a sentence, or within bounds,
 * with digests that can be file names and texts without a NUL. */

#include "fuzz.h"

#include "lib/base/limits.h"
#include "lib/image/manifest.h"

#include <stdlib.h>
#include <string.h>

static void check_descriptor(const struct image_descriptor *d)
{
    struct hash hash;

    if (!hash_from_text(str_of(d->digest), &hash) || d->size > IMAGE_BLOB_MAX || !d->media_type)
        abort();
}

static void check_words(const struct words *words)
{
    for (size_t i = 0; i < words->n; i++)
        if (!words->v[i])
            abort();
    if (!words->v || words->v[words->n])
        abort();
}

static void check_manifest(struct arena *mem, struct str text)
{
    struct image_manifest manifest;
    struct err err = {0};

    if (image_manifest_parse(mem, text, &manifest, &err) < 0) {
        if (!err.text[0])
            abort();
        return;
    }
    check_descriptor(&manifest.config);
    if (manifest.layer_n > IMAGE_LAYERS_MAX)
        abort();
    for (size_t i = 0; i < manifest.layer_n; i++)
        check_descriptor(&manifest.layers[i]);
}

static void check_config(struct arena *mem, struct str text)
{
    struct image_config config;
    struct err err = {0};

    if (image_config_parse(mem, text, &config, &err) < 0) {
        if (!err.text[0])
            abort();
        return;
    }
    check_words(&config.env);
    check_words(&config.entrypoint);
    check_words(&config.command);
    if (config.diff_id_n > IMAGE_LAYERS_MAX || !config.workdir || !config.user)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO_ARENA struct arena mem = ARENA(IMAGE_MEMORY_MAX);
    struct str text = {(const char *)bytes, n};
    struct image_docker_archive archive;
    struct image_descriptor chosen;
    const char *name = NULL;
    enum image_document kind;
    struct err err;

    if (image_document_kind(text, NULL, &kind, &err) == 0 && kind > IMAGE_DOCUMENT_INDEX)
        abort();
    check_manifest(&mem, text);
    check_config(&mem, text);
    if (image_layout_choose(&mem, text, "amd64", &chosen, &name, &err) == 0)
        check_descriptor(&chosen);
    if (image_docker_archive_parse(&mem, text, &archive, &err) == 0)
        check_words(&archive.layers);
    return 0;
}
