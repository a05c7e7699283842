/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/view/view.h"

#include "lib/image/image.h"
#include "lib/json/json.h"

uint64_t view_image_bytes(const struct image *image)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < image->layer_n; i++)
        sum += image->layers[i].bytes;
    return sum;
}

static struct json *layer_json(struct arena *mem, const struct image_layer *layer)
{
    struct json *item = json_object(mem);

    json_put_text(mem, item, "diff_id", layer->diff_id);
    json_put_text(mem, item, "blob", layer->blob);
    json_put_text(mem, item, "media_type", layer->media_type);
    json_put_int(mem, item, "blob_bytes", (int64_t)layer->blob_bytes);
    json_put_text(mem, item, "seal", layer->seal);
    json_put_int(mem, item, "bytes", (int64_t)layer->bytes);
    json_put_int(mem, item, "entries", (int64_t)layer->entries);
    json_put_int(mem, item, "left_out", (int64_t)layer->left_out);
    return item;
}

struct json *view_image(struct arena *mem, const struct image *image)
{
    struct json *root = json_object(mem), *layers = json_array(mem);

    json_put(root, "names", view_words(mem, image->names));
    json_put_text(mem, root, "image_digest", image->digest);
    json_put_text(mem, root, "config_digest", image->config);
    if (*image->index)
        json_put_text(mem, root, "index_digest", image->index);
    json_put_text(mem, root, "media_type", image->media_type);
    json_put_text(mem, root, "os", "linux");
    json_put_text(mem, root, "architecture", image->architecture);
    json_put_text(mem, root, "added", image->added);
    json_put_int(mem, root, "bytes", (int64_t)view_image_bytes(image));
    json_put(root, "env", view_words(mem, image->env));
    json_put(root, "entrypoint", view_words(mem, image->entrypoint));
    json_put(root, "command", view_words(mem, image->command));
    json_put_text(mem, root, "workdir", image->workdir);
    json_put_text(mem, root, "user", image->user);
    for (size_t i = 0; i < image->layer_n; i++)
        json_push(layers, layer_json(mem, &image->layers[i]));
    json_put(root, "layers", layers);
    return root;
}
