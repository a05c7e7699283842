/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Trees on their way into a layer. What is in them was made in a sandbox: every entry is opened by
 * its one name in a folder that is open, never followed, and what is read is bounded. */

#include "cmd/image/worker.h"

#include <sys/stat.h>

struct archive;
struct archive_entry;

/* Lines for a person about what is not in the layer as it was in the tree. */
struct pack_report {
    struct json *list;
    size_t bytes;
    uint64_t not_listed;
    uint64_t specials;
    uint64_t dropped;
    uint64_t replaced;
};

struct packer {
    struct job *job;
    bool filter;
    struct archive *tar;     /* the layer */
    struct blob_writer blob; /* where it goes */
    struct err why;          /* of a failure inside a callback, which libarchive cannot carry */
    bool failed;
    char *chunk;
    uint64_t entries;
    uint64_t bytes;
    char path[2 * PATH_BYTES_MAX]; /* of the entry in hand, in the layer */
    size_t tree;                   /* which tree it is in */
    struct link_table *links;
    struct pack_report report;
};

#define PACK_CHUNK (256 * KIB)

/* ---- pack.c ---- */

void pack_note(struct packer *p, const char *rule, const char *action, uint64_t count);
/* The entry in hand, with its path, mode, times and attributes; the caller adds what its kind
 * needs, then pack_header() writes and frees it. fd is -1 when it has no attributes. */
int pack_entry(struct packer *p, int fd, const struct stat *st, struct archive_entry **out,
               struct err *err) MUST_CHECK;
int pack_header(struct packer *p, struct archive_entry *entry, struct err *err) MUST_CHECK;
int pack_data(struct packer *p, const void *bytes, size_t n, struct err *err) MUST_CHECK;

/* ---- pack-file.c ---- */

int pack_file(struct packer *p, int at, const char *name, const struct stat *st,
              struct err *err) MUST_CHECK;

/* ---- pack-links.c: which file of this tree is already in the layer, and under which path ---- */

struct link_table *links_new(void);
void links_free(struct link_table *links);
/* NULL when it was not there; "" when it was left out for its name. */
const char *links_find(const struct link_table *links, ino_t inode);
int links_add(struct link_table *links, ino_t inode, const char *path, struct err *err) MUST_CHECK;
