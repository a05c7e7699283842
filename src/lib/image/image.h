/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Images: what a sandbox can stand on besides the machine itself.
 *
 * STATE/images holds
 *
 *     names.json             name → digest of a manifest
 *     records/HEX.json       one image: what it is made of, and the seals of its layers
 *     content/blobs/sha256/  manifests, configurations and layers as they came, by digest
 *     content/layers/HEX/    one unpacked layer, by the digest of its uncompressed tar (diff id)
 *     content/layers/HEX.list  every entry of it with its hash; the hash of this file is the seal
 *     content/temp/          what is not finished
 *     lock, names.lock
 *
 * Everything under content/ is written by the program `image`, which parses what strangers made
 * and therefore can reach nothing else (docs/decisions/0010); started by root it belongs to the
 * user of the sandboxes. Names and records are written by us, so what a layer must look like is
 * not in the hands of whoever can write to content/.
 *
 * A kill at any point leaves a file, a layer and a name either absent or complete: each is made
 * under a temporary name, synced and renamed, layers before the record that names them, the
 * record before its name. What nothing names any more is swept by the next pull, import or
 * remove. */

#include "lib/base/memory.h"
#include "lib/crypto/crypto.h"

#include <sys/types.h>

/* ---- names ---- */

/* "busybox" means docker.io/library/busybox:latest, as everywhere. */
struct image_ref {
    const char *registry;   /* "docker.io", "127.0.0.1:5000" */
    const char *repository; /* "library/busybox" */
    const char *tag;        /* NULL when a digest is given without one */
    const char *digest;     /* "sha256:…" or NULL */
};

int image_ref_parse(struct arena *mem, struct str text, struct image_ref *out,
                    struct err *err) MUST_CHECK;
/* The full name, with tag or digest. */
const char *image_ref_name(struct arena *mem, const struct image_ref *ref);
/* Whether the registry is this machine, by its loopback address or as "localhost". */
bool image_ref_is_local(const struct image_ref *ref);

/* ---- what is there ---- */

struct image_layer {
    char diff_id[HASH_TEXT_BYTES]; /* of the uncompressed tar */
    char blob[HASH_TEXT_BYTES];    /* of what came */
    char seal[HASH_TEXT_BYTES];    /* of the list of its entries */
    const char *media_type;
    const char *path; /* absolute: the unpacked tree */
    uint64_t blob_bytes;
    uint64_t bytes;
    uint64_t entries;
    uint64_t left_out; /* device nodes, pipes and sockets, when asked to leave them out */
    /* The folder as it was when it was sealed. */
    uint64_t device, inode, changed_s, changed_ns;
};

struct image {
    char digest[HASH_TEXT_BYTES]; /* of the manifest: the image's identity */
    char config[HASH_TEXT_BYTES];
    char index[HASH_TEXT_BYTES]; /* of the list the manifest was chosen from, or "" */
    const char *media_type;
    const char *architecture;
    const char *added; /* timestamp */
    uint64_t manifest_bytes, config_bytes;
    struct words env; /* "K=V" */
    struct words entrypoint;
    struct words command;
    const char *workdir; /* "" when the image names none */
    const char *user;
    const struct image_layer *layers; /* lowest first: overlay wants them the other way round */
    size_t layer_n;
    struct words names;
};

struct image_store;

/* Who owns the unpacked files: the user of the sandboxes. */
struct image_owner {
    uid_t uid;
    gid_t gid;
};

/* state_dir as cli_state() gives it: absolute, ours. Makes what is missing below it. */
int image_store_open(const char *state_dir, const struct image_owner *owner,
                     struct image_store **out, struct err *err) MUST_CHECK;
void image_store_free(struct image_store *store);
AUTO_TYPE(image_store)

/* By name, by "sha256:HEX" of the manifest, or by the beginning of it (12 digits or more, with or
 * without "sha256:"). ERR_NOT_FOUND says how to get it. */
int image_find(const struct image_store *store, struct arena *mem, const char *name,
               struct image *out, struct err *err) MUST_CHECK;

/* All of them, in order of their names; images without a name last. */
int image_list(const struct image_store *store, struct arena *mem, struct image **out, size_t *n,
               struct err *err) MUST_CHECK;

/* ---- accounts: who an image says it runs as ---- */

struct account {
    struct str name; /* borrowed from the text, as is home */
    struct str home;
    uint32_t uid;
    uint32_t gid;
};

/* A whole decimal number below 2^32 - 1, without leading zeros. */
bool account_number(struct str text, uint32_t *out);
/* The first user of this name, or of this number, in the text of a passwd file. */
bool account_find(struct str passwd, struct str who, struct account *out);
bool account_find_group(struct str groups, struct str who, uint32_t *out);
/* "etc/passwd" or "etc/group" as the image's layers show it. ERR_NOT_FOUND: it has none. */
int image_accounts(const struct image *image, const char *path, struct buf *out,
                   struct err *err) MUST_CHECK;

/* Whether the store still holds what was put there; cheap, for every run. The digests of manifest
 * and configuration are recomputed; each layer's folder is the one that was sealed, unchanged.
 * ERR_INTEGRITY says what differs. Changes deep inside a layer need image_verify(). */
int image_check(const struct image_store *store, const struct image *image,
                struct err *err) MUST_CHECK;

/* Keeps the image in the store, whatever is removed meanwhile, as long as the descriptor (or a
 * copy of it in another process) is open. Call before image_check(). */
int image_hold(const struct image_store *store, const struct image *image, int *out_fd,
               struct err *err) MUST_CHECK;

/* ---- what changes it; each runs the program `image` ---- */

/* Told from time to time; total_bytes is 0 when it is not known. */
struct image_progress {
    void (*tell)(void *context, const char *what, uint64_t done_bytes, uint64_t total_bytes);
    void *context;
};

struct image_pull {
    struct image_ref ref;
    const char *username; /* or NULL */
    const char *password;
    const char *ca_file; /* certificates to trust instead of the system's, or NULL */
    bool insecure_http;  /* plain HTTP to any address; loopback needs no permission */
    bool skip_devices;
    uint64_t timeout_ms; /* for all of it */
    uint64_t stall_ms;   /* without a byte */
};

struct image_import {
    const char *path; /* OCI layout directory or tar, docker-archive tar */
    const char *name; /* NULL: the one it carries */
    bool skip_devices;
    uint64_t timeout_ms;
};

int image_pull(struct image_store *store, struct arena *mem, const struct image_pull *pull,
               const struct image_progress *progress, struct image *out,
               struct err *err) MUST_CHECK;
int image_import(struct image_store *store, struct arena *mem, const struct image_import *import,
                 const struct image_progress *progress, struct image *out,
                 struct err *err) MUST_CHECK;

/* As a tar of an OCI layout, to a new file; the manifest keeps its digest. */
int image_export(struct image_store *store, const struct image *image, const char *path,
                 const struct image_progress *progress, struct err *err) MUST_CHECK;

/* Reads everything again: each blob against its digest, each layer against its seal.
 * ERR_INTEGRITY names the first thing that differs. */
int image_verify(struct image_store *store, const struct image *image,
                 const struct image_progress *progress, struct err *err) MUST_CHECK;

/* Takes one name away, or, for a digest, the image with all its names. What is not needed any
 * more goes as well unless somebody is using the store; then *freed is false and the next
 * command that changes the store does it. */
int image_remove(struct image_store *store, const char *name, bool *freed,
                 struct err *err) MUST_CHECK;

/* ---- trees: folders of the user's that travel as one layer ---- */

/* A folder and its place in the layer. The program `image` gets nothing of it but this
 * descriptor; it reads it as the user of the sandboxes, also what that user has closed to itself
 * (mode 000). */
struct image_tree {
    int fd;             /* of the folder */
    const char *prefix; /* "tmp", "home/user"; "" for the root. Each once */
};

/* Annotations of a manifest, "org.example.key" and a text. */
struct image_note {
    const char *key;
    const char *value;
};

struct image_pack {
    const struct image_tree *trees; /* at most IMAGE_TREES_MAX */
    size_t tree_n;
    const struct image_note *notes; /* at most IMAGE_NOTES_MAX */
    size_t note_n;
    const char *name;   /* of the image in the layout, or NULL */
    const char *output; /* file to make or replace: a tar of an OCI layout */
    bool filter;        /* leave credentials out, docs/images.md */
    uint64_t timeout_ms;
};

/* One file that is not there as it was; never what was in it. */
struct image_left_out {
    const char *path;   /* in the layer, escaped for people */
    const char *rule;   /* "file-name", "field", "private-key", "special", … */
    const char *action; /* "dropped": the file is not in the layer; "replaced": parts of it */
    uint64_t count;     /* places in the file */
};

struct image_packed {
    char digest[HASH_TEXT_BYTES];  /* of the manifest */
    char diff_id[HASH_TEXT_BYTES]; /* of the layer, which is not compressed */
    uint64_t entries;
    uint64_t bytes;    /* of file contents */
    uint64_t specials; /* pipes, sockets, device nodes and names that mean something else */
    uint64_t dropped;  /* files, by the filter */
    uint64_t replaced; /* files with parts replaced, by the filter */
    const struct image_left_out *left_out; /* in order of the paths; at most IMAGE_LEFT_OUT_MAX */
    size_t left_out_n;
    uint64_t not_listed; /* how many more there are */
};

/* One layer of all trees in an OCI layout. The same trees and notes give the same bytes, on every
 * machine: entries sorted, owner 0:0, times as they are. Whiteouts and opaque folders of overlayfs
 * become those of OCI. A file that changes meanwhile is an ERR_CONFLICT. */
int image_pack(struct image_store *store, struct arena *mem, const struct image_pack *pack,
               const struct image_progress *progress, struct image_packed *out,
               struct err *err) MUST_CHECK;
/* The report as a document of its own, and as part of answers. */
struct json *image_packed_json(struct arena *mem, const struct image_packed *packed);

struct image_unpack {
    const char *path;               /* a tar as image_pack() writes it: one image of one layer */
    const struct image_tree *trees; /* empty folders of the store's owner */
    size_t tree_n;
    uint64_t timeout_ms;
};

struct image_unpacked {
    char digest[HASH_TEXT_BYTES]; /* of the manifest */
    char diff_id[HASH_TEXT_BYTES];
    uint64_t entries;
    uint64_t bytes;
    const struct image_note *notes;
    size_t note_n;
};

/* Each entry goes to the tree with the longest prefix that holds it; what no tree holds is
 * refused, and so is all that image layers are refused for. Digests are checked first. On failure
 * the folders hold a part: remove them. */
int image_unpack(struct image_store *store, struct arena *mem, const struct image_unpack *unpack,
                 const struct image_progress *progress, struct image_unpacked *out,
                 struct err *err) MUST_CHECK;
/* Only the notes and digests, for who needs them to make the folders: trees are not touched. */
int image_unpack_look(struct image_store *store, struct arena *mem, const char *path,
                      uint64_t timeout_ms, struct image_unpacked *out, struct err *err) MUST_CHECK;

struct image_tree_hash {
    char digest[HASH_TEXT_BYTES]; /* of the list of entries, docs/decisions/0011 */
    uint64_t entries;
    uint64_t bytes;
};

/* What is in a folder: names, modes, times, contents and user attributes. Pipes and sockets count
 * with their name and mode. */
int image_tree_hash(struct image_store *store, int folder_fd, uint64_t timeout_ms,
                    struct image_tree_hash *out, struct err *err) MUST_CHECK;
