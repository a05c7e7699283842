/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Entries of a layer, placed beneath one folder.
 *
 * Every name is taken apart first: relative, without "..", components of at most 255 bytes. The
 * folder an entry goes to is opened with openat2 beneath the root and through no symbolic link,
 * and the entry itself is made by its last component in that folder and never followed; so there
 * is no name that leads out, whatever the layer made before.
 *
 * All files belong to one user, the sandbox's. Set-id bits go; the owner can always read files
 * and enter folders, so that a tree can be listed and removed again. */

#include "cmd/image/worker.h"

struct archive;
struct archive_entry;

/* Who takes the entries of a layer. */
struct placer {
    int (*place)(void *context, struct archive *archive, struct archive_entry *entry,
                 struct err *err);
    void *context;
};

/* Reads a layer, compressed or not, to its end; *diff_id is that of everything read. */
int unpack_to(struct job *job, int blob_fd, uint64_t blob_bytes, const struct placer *placer,
              struct hash *diff_id, struct err *err) MUST_CHECK;

struct extractor {
    struct job *job;
    int root_fd;
    bool skip_devices;
    bool exact_modes;   /* also those that close a file to its owner */
    bool root_may_hide; /* what lies below the root: it is not the root of all */
    uint64_t entries;
    uint64_t bytes;
    uint64_t left_out;
    /* The folder of the entry before: archives come folder by folder. */
    int parent_fd;
    char *parent;
    /* Times of folders change while they are filled: set at the end. */
    struct arena times_mem;
    struct folder_time *times;
    struct folder_time *last_time;
};

void extractor_done(struct extractor *x);

/* Places one entry; archive is read for its contents. */
int extract_entry(struct extractor *x, struct archive *archive, struct archive_entry *entry,
                  struct err *err) MUST_CHECK;
int extract_times(struct extractor *x, struct err *err) MUST_CHECK;

/* "./usr//bin/" → "usr/bin"; "" is the root. Refuses what could lead elsewhere. */
int layer_path(struct str given, char out[4096], struct err *err) MUST_CHECK;
