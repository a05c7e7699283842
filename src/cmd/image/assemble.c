/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/image/worker.h"

#include "lib/base/limits.h"

#include <string.h>

static struct json *words_json(struct arena *mem, const struct words *words)
{
    struct json *list = json_array(mem);

    for (size_t i = 0; i < words->n; i++)
        json_push(list, json_text(mem, str_of(words->v[i])));
    return list;
}

static struct json *layer_json(struct arena *mem, const struct image_layer *layer)
{
    struct json *item = json_object(mem);

    json_put_text(mem, item, "diff_id", layer->diff_id);
    json_put_text(mem, item, "blob", layer->blob);
    json_put_text(mem, item, "seal", layer->seal);
    json_put_text(mem, item, "media_type", layer->media_type);
    json_put_int(mem, item, "blob_bytes", (int64_t)layer->blob_bytes);
    json_put_int(mem, item, "bytes", (int64_t)layer->bytes);
    json_put_int(mem, item, "entries", (int64_t)layer->entries);
    json_put_int(mem, item, "left_out", (int64_t)layer->left_out);
    return item;
}

static struct json *image_json(struct arena *mem, const struct source *source, const char *digest,
                               size_t manifest_bytes, const struct image_manifest *manifest,
                               const struct image_config *config)
{
    struct json *root = json_object(mem);

    json_put_int(mem, root, "v", 1);
    json_put_text(mem, root, "digest", digest);
    json_put_text(mem, root, "config", manifest->config.digest);
    if (*source->index)
        json_put_text(mem, root, "index", source->index);
    json_put_text(mem, root, "media_type", manifest->media_type);
    json_put_text(mem, root, "architecture", config->architecture);
    json_put_int(mem, root, "manifest_bytes", (int64_t)manifest_bytes);
    json_put_int(mem, root, "config_bytes", (int64_t)manifest->config.size);
    json_put(root, "env", words_json(mem, &config->env));
    json_put(root, "entrypoint", words_json(mem, &config->entrypoint));
    json_put(root, "command", words_json(mem, &config->command));
    json_put_text(mem, root, "workdir", config->workdir);
    json_put_text(mem, root, "user", config->user);
    return root;
}

static int check_fit(const struct job *job, const struct image_manifest *manifest,
                     const struct image_config *config, struct err *err)
{
    struct str wanted = STR_LIT("");

    if (config->diff_id_n != manifest->layer_n)
        return err_set(err, ERR_INVALID, "the manifest has %zu layers, the configuration names %zu",
                       manifest->layer_n, config->diff_id_n);
    if (!manifest->layer_n)
        return err_set(err, ERR_INVALID, "the image has no layer");
    (void)json_is_text(json_get(job->request, "architecture"), &wanted);
    if (!str_is(wanted, config->architecture))
        return err_set(err, ERR_INVALID,
                       "the image is for \"%.60s\", this machine is \"" STR_FMT "\"",
                       config->architecture, STR_ARG(wanted));
    return 0;
}

static int provide_layers(struct job *job, struct source *source,
                          const struct image_manifest *manifest, const struct image_config *config,
                          struct json *root, struct err *err)
{
    AUTO(ahead) struct ahead *ahead = NULL;
    struct json *list = json_array(&job->mem);

    if (source->alone &&
        ahead_new(job, source, manifest->layers, manifest->layer_n, &ahead, err) < 0)
        return -1;
    for (size_t i = 0; i < manifest->layer_n; i++) {
        const char *what = arena_printf(&job->mem, "layer %zu of %zu", i + 1, manifest->layer_n);
        struct image_layer layer;

        if ((ahead ? ahead_wait(ahead, i, err)
                   : source->fetch(source, &manifest->layers[i], what, err)) < 0)
            return -1;
        event_progress(job, what, 0, manifest->layers[i].size);
        if (layer_provide(job, &manifest->layers[i], config->diff_ids[i], &layer, err) < 0)
            return -1;
        json_push(list, layer_json(&job->mem, &layer));
    }
    json_put(root, "layers", list);
    return 0;
}

int assemble(struct job *job, struct source *source, const char *digest, struct err *err)
{
    AUTO_BUF struct buf text = BUF(IMAGE_DOCUMENT_MAX);
    AUTO_BUF struct buf config_text = BUF(IMAGE_DOCUMENT_MAX);
    AUTO_BUF struct buf record = BUF(IMAGE_RECORD_MAX);
    struct image_manifest manifest;
    struct image_config config;
    struct json *root, *result = json_object(&job->mem);

    if (blob_read(job, digest, &text, err) < 0 ||
        image_manifest_parse(&job->mem, buf_str(&text), &manifest, err) < 0 ||
        source->fetch(source, &manifest.config, "configuration", err) < 0 ||
        blob_read(job, manifest.config.digest, &config_text, err) < 0 ||
        image_config_parse(&job->mem, buf_str(&config_text), &config, err) < 0 ||
        check_fit(job, &manifest, &config, err) < 0)
        return -1;
    root = image_json(&job->mem, source, digest, text.n, &manifest, &config);
    if (provide_layers(job, source, &manifest, &config, root, err) < 0)
        return -1;
    if (json_compact(root, &record, err) < 0)
        return err_in(err, "the image's configuration is too large");
    json_put(result, "image", root);
    if (source->name)
        json_put_text(&job->mem, result, "name", source->name);
    return event_done(job, result, err);
}
