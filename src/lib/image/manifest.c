/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/image/manifest.h"

#include "lib/base/limits.h"
#include "lib/json/json.h"

#include <string.h>

#define OCI_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define OCI_INDEX "application/vnd.oci.image.index.v1+json"
#define DOCKER_MANIFEST "application/vnd.docker.distribution.manifest.v2+json"
#define DOCKER_LIST "application/vnd.docker.distribution.manifest.list.v2+json"
#define REF_NAME "org.opencontainers.image.ref.name"
/* What containerd and docker put into the layouts they write: the full name. */
#define CONTAINERD_NAME "io.containerd.image.name"

/* How a layer is compressed is seen from its first bytes; these say that it is a layer at all. */
static const char *const layer_types[] = {
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
};

const char *image_architecture(void)
{
#if defined(__x86_64__)
    return "amd64";
#elif defined(__aarch64__)
    return "arm64";
#elif defined(__riscv) && __riscv_xlen == 64
    return "riscv64";
#else
#error "name this architecture as image indexes do"
#endif
}

static int read_document(struct arena *mem, struct str text, const char *what,
                         const struct json **out, struct err *err)
{
    struct mark where = {0, 0};

    if (text.n > IMAGE_DOCUMENT_MAX)
        return err_set(err, ERR_LIMIT, "%s has more than %lu bytes", what, IMAGE_DOCUMENT_MAX);
    if (json_parse(mem, text, out, &where, err) < 0)
        return err_in(err, "%s: line %u, column %u", what, where.line, where.column);
    if ((*out)->kind != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "%s is no JSON object", what);
    return 0;
}

/* Texts become C strings, environment variables and paths: a NUL would cut them short. */
static int take_text(struct arena *mem, const struct json *value, const char *what,
                     const char **out, struct err *err)
{
    struct str text = STR_LIT("");

    if (value && value->kind != JSON_NULL && !json_is_text(value, &text))
        return err_set(err, ERR_INVALID, "%s is not a text", what);
    if (text.n && memchr(text.p, '\0', text.n))
        return err_set(err, ERR_INVALID, "%s has a NUL in it", what);
    *out = arena_text(mem, text);
    return 0;
}

static int take_digest(const struct json *value, const char *what, char out[HASH_TEXT_BYTES],
                       struct err *err)
{
    struct str text = STR_LIT("");
    struct hash hash;

    if (!json_is_text(value, &text) || !hash_from_text(text, &hash))
        return err_set(err, ERR_INVALID, "%s is not \"sha256:\" and 64 lower-case hex digits",
                       what);
    hash_text(&hash, out);
    return 0;
}

static int take_words(struct arena *mem, const struct json *value, const char *what, size_t max,
                      struct words *out, struct err *err)
{
    const char **words;
    size_t n = 0;

    if (!value || value->kind == JSON_NULL) {
        *out = (struct words){arena_array(mem, const char *, 1), 0};
        return 0;
    }
    if (value->kind != JSON_ARRAY)
        return err_set(err, ERR_INVALID, "%s is not a list", what);
    if (value->n > max)
        return err_set(err, ERR_LIMIT, "%s has more than %zu entries", what, max);
    words = arena_array(mem, const char *, value->n + 1);
    json_each(item, value)
    {
        if (item->kind != JSON_STRING || take_text(mem, item, what, &words[n], err) < 0)
            return err_set(err, ERR_INVALID, "%s has an entry that is no plain text", what);
        n++;
    }
    *out = (struct words){words, n};
    return 0;
}

static int take_descriptor(struct arena *mem, const struct json *value, const char *what,
                           struct image_descriptor *out, struct err *err)
{
    int64_t size = -1;

    if (!value || value->kind != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "%s is missing", what);
    if (take_digest(json_get(value, "digest"), what, out->digest, err) < 0 ||
        take_text(mem, json_get(value, "mediaType"), what, &out->media_type, err) < 0)
        return -1;
    if (!json_is_int(json_get(value, "size"), &size) || size < 0)
        return err_set(err, ERR_INVALID, "%s has no size", what);
    if ((uint64_t)size > IMAGE_BLOB_MAX)
        return err_set(err, ERR_LIMIT, "%s has %lld bytes, more than the ceiling of %lu", what,
                       (long long)size, IMAGE_BLOB_MAX);
    out->size = (uint64_t)size;
    return 0;
}

/* ---- which document ---- */

static bool is_one_of(struct str text, const char *a, const char *b)
{
    return str_is(text, a) || str_is(text, b);
}

static int kind_of(const struct json *root, const char *hint, enum image_document *out,
                   struct err *err)
{
    struct str type = STR_LIT("");
    int64_t version = 0;

    if (!json_is_int(json_get(root, "schemaVersion"), &version) || version != 2)
        return err_set(err, ERR_INVALID,
                       version == 1 ? "a manifest of schema 1, which nothing makes any more; "
                                      "push the image again with a current tool"
                                    : "not an image manifest of schema 2");
    if (!json_is_text(json_get(root, "mediaType"), &type) && hint)
        type = str_of(hint);
    if (is_one_of(type, OCI_MANIFEST, DOCKER_MANIFEST) || json_get(root, "config"))
        *out = IMAGE_DOCUMENT_MANIFEST;
    else if (is_one_of(type, OCI_INDEX, DOCKER_LIST) || json_get(root, "manifests"))
        *out = IMAGE_DOCUMENT_INDEX;
    else
        return err_set(err, ERR_INVALID, "neither an image manifest nor an image index");
    /* A document that is both would be read differently by different tools. */
    if ((json_get(root, "config") || json_get(root, "layers")) && json_get(root, "manifests"))
        return err_set(err, ERR_INVALID, "an image manifest and an image index at once");
    return 0;
}

int image_document_kind(struct str text, const char *hint, enum image_document *out,
                        struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(IMAGE_MEMORY_MAX);
    const struct json *root = NULL;

    if (read_document(&mem, text, "image manifest", &root, err) < 0)
        return -1;
    return kind_of(root, hint, out, err);
}

/* ---- manifest ---- */

static bool is_layer_type(const char *type)
{
    for (size_t i = 0; i < COUNT(layer_types); i++)
        if (strcmp(type, layer_types[i]) == 0)
            return true;
    return false;
}

static int take_layers(struct arena *mem, const struct json *list, struct image_manifest *out,
                       struct err *err)
{
    if (!list || list->kind != JSON_ARRAY)
        return err_set(err, ERR_INVALID, "image manifest: no list of layers");
    if (list->n > IMAGE_LAYERS_MAX)
        return err_set(err, ERR_LIMIT, "image manifest: more than %d layers", IMAGE_LAYERS_MAX);
    out->layers = arena_array(mem, struct image_descriptor, list->n + 1);
    json_each(item, list)
    {
        struct image_descriptor *layer = &out->layers[out->layer_n];

        if (take_descriptor(mem, item, "layer", layer, err) < 0)
            return err_in(err, "image manifest");
        if (!is_layer_type(layer->media_type))
            return err_set(err, ERR_INVALID,
                           "image manifest: \"%.100s\" is not a file system layer",
                           layer->media_type);
        out->layer_n++;
    }
    return 0;
}

int image_manifest_parse(struct arena *mem, struct str text, struct image_manifest *out,
                         struct err *err)
{
    struct image_manifest manifest = {0};
    const struct json *root = NULL;
    enum image_document kind;

    if (read_document(mem, text, "image manifest", &root, err) < 0 ||
        kind_of(root, NULL, &kind, err) < 0)
        return -1;
    if (kind != IMAGE_DOCUMENT_MANIFEST)
        return err_set(err, ERR_INVALID, "an image index where a manifest should be");
    if (take_text(mem, json_get(root, "mediaType"), "mediaType", &manifest.media_type, err) < 0 ||
        take_descriptor(mem, json_get(root, "config"), "configuration", &manifest.config, err) < 0)
        return err_in(err, "image manifest");
    if (!*manifest.media_type)
        manifest.media_type = OCI_MANIFEST;
    if (manifest.config.size > IMAGE_DOCUMENT_MAX)
        return err_set(err, ERR_LIMIT, "image manifest: a configuration of %llu bytes",
                       (unsigned long long)manifest.config.size);
    if (take_layers(mem, json_get(root, "layers"), &manifest, err) < 0)
        return -1;
    *out = manifest;
    return 0;
}

/* ---- index ---- */

static bool fits(const struct json *entry, const char *architecture, bool *says)
{
    const struct json *platform = json_get(entry, "platform");
    struct str os = STR_LIT(""), arch = STR_LIT("");

    *says = platform && platform->kind == JSON_OBJECT;
    if (!*says)
        return false;
    (void)json_is_text(json_get(platform, "os"), &os);
    (void)json_is_text(json_get(platform, "architecture"), &arch);
    return str_is(os, "linux") && str_is(arch, architecture);
}

static int choose(const struct json *root, const char *architecture, const struct json **out,
                  struct err *err)
{
    const struct json *list = json_get(root, "manifests");
    bool says = false;

    if (!list || list->kind != JSON_ARRAY)
        return err_set(err, ERR_INVALID, "image index: no list of manifests");
    if (list->n > IMAGE_INDEX_MAX)
        return err_set(err, ERR_LIMIT, "image index: more than %d manifests", IMAGE_INDEX_MAX);
    json_each(entry, list)
    {
        if (!fits(entry, architecture, &says))
            continue;
        *out = entry;
        return 0;
    }
    if (list->n == 1 && !says) {
        *out = list->first;
        return 0;
    }
    return err_set(err, ERR_NOT_FOUND, "the image does not exist for linux/%s", architecture);
}

int image_layout_choose(struct arena *mem, struct str text, const char *architecture,
                        struct image_descriptor *out, const char **name, struct err *err)
{
    const struct json *root = NULL, *entry = NULL, *notes;
    struct image_descriptor found = {0};
    const char *full = NULL, *given = NULL;

    if (read_document(mem, text, "image index", &root, err) < 0 ||
        choose(root, architecture, &entry, err) < 0 ||
        take_descriptor(mem, entry, "manifest", &found, err) < 0)
        return -1;
    notes = json_get(entry, "annotations");
    if (take_text(mem, json_get(notes, CONTAINERD_NAME), CONTAINERD_NAME, &full, err) < 0 ||
        take_text(mem, json_get(notes, REF_NAME), REF_NAME, &given, err) < 0)
        return err_in(err, "image index");
    *out = found;
    *name = *full ? full : *given ? given : NULL;
    return 0;
}

int image_index_choose(struct arena *mem, struct str text, const char *architecture,
                       struct image_descriptor *out, struct err *err)
{
    const char *name = NULL;

    if (image_layout_choose(mem, text, architecture, out, &name, err) < 0)
        return -1;
    if (out->size > IMAGE_DOCUMENT_MAX)
        return err_set(err, ERR_LIMIT, "image index: a manifest of %llu bytes",
                       (unsigned long long)out->size);
    return 0;
}

/* ---- configuration ---- */

static int take_diff_ids(struct arena *mem, const struct json *list, struct image_config *out,
                         struct err *err)
{
    char(*ids)[HASH_TEXT_BYTES];

    if (!list || list->kind != JSON_ARRAY)
        return err_set(err, ERR_INVALID, "no list of diff ids");
    if (list->n > IMAGE_LAYERS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d diff ids", IMAGE_LAYERS_MAX);
    ids = arena_alloc(mem, (list->n + 1) * sizeof *ids);
    json_each(item, list)
    {
        if (take_digest(item, "diff id", ids[out->diff_id_n], err) < 0)
            return -1;
        out->diff_id_n++;
    }
    out->diff_ids = (const char(*)[HASH_TEXT_BYTES])ids;
    return 0;
}

static int take_config(struct arena *mem, const struct json *root, struct image_config *out,
                       struct err *err)
{
    const struct json *run = json_get(root, "config");
    const char *os = NULL;

    if (take_text(mem, json_get(root, "os"), "os", &os, err) < 0 ||
        take_text(mem, json_get(root, "architecture"), "architecture", &out->architecture, err) < 0)
        return -1;
    if (strcmp(os, "linux") != 0)
        return err_set(err, ERR_INVALID, "made for \"%.60s\", not for linux", os);
    if (take_diff_ids(mem, json_at(root, "/rootfs/diff_ids"), out, err) < 0)
        return -1;
    if (take_words(mem, json_get(run, "Env"), "Env", ENV_WORDS_MAX, &out->env, err) < 0 ||
        take_words(mem, json_get(run, "Entrypoint"), "Entrypoint", ARGV_WORDS_MAX, &out->entrypoint,
                   err) < 0 ||
        take_words(mem, json_get(run, "Cmd"), "Cmd", ARGV_WORDS_MAX, &out->command, err) < 0 ||
        take_text(mem, json_get(run, "WorkingDir"), "WorkingDir", &out->workdir, err) < 0 ||
        take_text(mem, json_get(run, "User"), "User", &out->user, err) < 0)
        return -1;
    for (size_t i = 0; i < out->env.n; i++)
        if (!strchr(out->env.v[i], '=') || out->env.v[i][0] == '=')
            return err_set(err, ERR_INVALID, "Env has an entry that is not NAME=VALUE");
    return 0;
}

int image_config_parse(struct arena *mem, struct str text, struct image_config *out,
                       struct err *err)
{
    struct image_config config = {0};
    const struct json *root = NULL;

    if (read_document(mem, text, "image configuration", &root, err) < 0)
        return -1;
    if (take_config(mem, root, &config, err) < 0)
        return err_in(err, "image configuration");
    *out = config;
    return 0;
}

/* ---- docker save ---- */

int image_docker_archive_parse(struct arena *mem, struct str text, struct image_docker_archive *out,
                               struct err *err)
{
    struct image_docker_archive archive = {0};
    const struct json *root = NULL, *first, *tags;
    struct mark where = {0, 0};

    if (json_parse(mem, text, &root, &where, err) < 0)
        return err_in(err, "manifest.json: line %u, column %u", where.line, where.column);
    if (root->kind != JSON_ARRAY || !root->n)
        return err_set(err, ERR_INVALID, "manifest.json is not a list of images");
    if (root->n > 1)
        return err_set(err, ERR_INVALID,
                       "the archive holds %zu images; save the one you want by itself", root->n);
    first = root->first;
    tags = json_get(first, "RepoTags");
    if (take_text(mem, json_get(first, "Config"), "Config", &archive.config, err) < 0 ||
        take_words(mem, json_get(first, "Layers"), "Layers", IMAGE_LAYERS_MAX, &archive.layers,
                   err) < 0)
        return err_in(err, "manifest.json");
    if (!*archive.config)
        return err_set(err, ERR_INVALID, "manifest.json names no configuration");
    if (tags && tags->kind == JSON_ARRAY && tags->n &&
        take_text(mem, tags->first, "RepoTags", &archive.repo_tag, err) < 0)
        return err_in(err, "manifest.json");
    *out = archive;
    return 0;
}

/* ---- annotations ---- */

int image_notes_read(struct arena *mem, const struct json *object, struct image_notes *out,
                     struct err *err)
{
    struct image_notes notes = {0};
    size_t bytes = 0;

    if (!object || object->kind == JSON_NULL) {
        *out = notes;
        return 0;
    }
    if (object->kind != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "annotations are no JSON object");
    if (object->n > IMAGE_NOTES_MAX)
        return err_set(err, ERR_LIMIT, "more than %d annotations", IMAGE_NOTES_MAX);
    notes.v = arena_array(mem, struct image_note, object->n + 1);
    json_each(item, object)
    {
        struct image_note *note = &notes.v[notes.n++];

        bytes += item->key.n + item->text.n;
        if (bytes > IMAGE_NOTES_BYTES_MAX)
            return err_set(err, ERR_LIMIT, "annotations of more than %lu bytes",
                           IMAGE_NOTES_BYTES_MAX);
        if (item->kind != JSON_STRING || !item->key.n || memchr(item->key.p, '\0', item->key.n))
            return err_set(err, ERR_INVALID, "an annotation that is no plain text");
        note->key = arena_text(mem, item->key);
        if (take_text(mem, item, "annotation", &note->value, err) < 0)
            return -1;
    }
    *out = notes;
    return 0;
}

int image_notes_parse(struct arena *mem, struct str text, struct image_notes *out, struct err *err)
{
    const struct json *root = NULL;

    if (read_document(mem, text, "manifest", &root, err) < 0)
        return -1;
    return image_notes_read(mem, json_get(root, "annotations"), out, err);
}
