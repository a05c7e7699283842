/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The documents of an OCI image, as strangers write them: image-spec 1.1 and Docker's schema 2.
 * Unknown members are ignored, as both say; what we read is checked strictly. */

#include "lib/base/memory.h"
#include "lib/crypto/crypto.h"
#include "lib/image/image.h"

struct json;

struct image_descriptor {
    char digest[HASH_TEXT_BYTES];
    uint64_t size;
    const char *media_type;
};

enum image_document {
    IMAGE_DOCUMENT_MANIFEST,
    IMAGE_DOCUMENT_INDEX,
};

struct image_manifest {
    const char *media_type;
    struct image_descriptor config;
    struct image_descriptor *layers; /* lowest first */
    size_t layer_n;
};

struct image_config {
    const char *architecture;
    const char (*diff_ids)[HASH_TEXT_BYTES];
    size_t diff_id_n;
    struct words env;
    struct words entrypoint;
    struct words command;
    const char *workdir;
    const char *user;
};

/* What a document says it is; hint is the media type it was announced with, or NULL. */
int image_document_kind(struct str text, const char *hint, enum image_document *out,
                        struct err *err) MUST_CHECK;
int image_manifest_parse(struct arena *mem, struct str text, struct image_manifest *out,
                         struct err *err) MUST_CHECK;
/* The entry for linux on this architecture ("amd64"); the only entry when it names no platform. */
int image_index_choose(struct arena *mem, struct str text, const char *architecture,
                       struct image_descriptor *out, struct err *err) MUST_CHECK;
/* For an OCI layout: as above, and the name its annotations give the entry, or NULL. */
int image_layout_choose(struct arena *mem, struct str text, const char *architecture,
                        struct image_descriptor *out, const char **name,
                        struct err *err) MUST_CHECK;
int image_config_parse(struct arena *mem, struct str text, struct image_config *out,
                       struct err *err) MUST_CHECK;

/* The annotations of a manifest; a NUL in them or anything but texts is refused. */
struct image_notes {
    struct image_note *v;
    size_t n;
};
int image_notes_parse(struct arena *mem, struct str text, struct image_notes *out,
                      struct err *err) MUST_CHECK;
/* The same for an object that was read already. */
int image_notes_read(struct arena *mem, const struct json *object, struct image_notes *out,
                     struct err *err) MUST_CHECK;

/* manifest.json of "docker save": the first image in it. */
struct image_docker_archive {
    const char *config;   /* path in the archive */
    struct words layers;  /* paths, lowest first */
    const char *repo_tag; /* or NULL */
};
int image_docker_archive_parse(struct arena *mem, struct str text, struct image_docker_archive *out,
                               struct err *err) MUST_CHECK;

/* This machine's, in the words of image indexes. */
const char *image_architecture(void);
