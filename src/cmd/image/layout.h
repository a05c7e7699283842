/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A tar of an OCI layout, being written: the same bytes for the same contents. */

#include "cmd/image/worker.h"

struct archive;

struct layout_writer {
    struct job *job;
    struct archive *tar;
};

int layout_open(struct job *job, int fd, struct layout_writer *out, struct err *err) MUST_CHECK;
int layout_close(struct layout_writer *w, struct err *err) MUST_CHECK;
void layout_done(struct layout_writer *w);
#define AUTO_LAYOUT __attribute__((cleanup(layout_done)))

/* What index.json says of the one image; name may be NULL or "". */
struct layout_image {
    const char *media_type;
    const char *digest;
    int64_t manifest_bytes;
    const char *architecture;
    const char *name;
};

/* oci-layout, index.json and the folders of the blobs; before the blobs. */
int layout_begin(struct layout_writer *w, const struct layout_image *image,
                 struct err *err) MUST_CHECK;
/* A blob, from where fd stands to its end; it is hashed once more on the way out. */
int layout_blob(struct layout_writer *w, const char *digest, int fd, struct err *err) MUST_CHECK;
/* A document of ours; fills its digest. */
int layout_document(struct layout_writer *w, struct str text, struct err *err) MUST_CHECK;
