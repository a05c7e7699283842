/* SPDX-License-Identifier: Apache-2.0 */

/* Exporting an image of the store: what came, with the digest it came with. */

#include "cmd/image/layout.h"

#include "lib/image/wire.h"

#include <string.h>

struct exporter {
    struct layout_writer *layout;
    const char *written[2 * IMAGE_LAYERS_MAX + 2]; /* a layer may occur twice */
    size_t n;
};

static int add_blob(struct exporter *x, const char *digest, struct err *err)
{
    AUTO_FD int fd = -1;

    for (size_t i = 0; i < x->n; i++)
        if (strcmp(x->written[i], digest) == 0)
            return 0;
    x->written[x->n++] = digest;
    if (blob_open(x->layout->job, digest, &fd, err) < 0)
        return -1;
    return layout_blob(x->layout, digest, fd, err);
}

static const char *member(struct job *job, const struct json *object, const char *key)
{
    struct str text = STR_LIT("sha256:");

    (void)json_is_text(json_get(object, key), &text);
    return arena_text(&job->mem, text);
}

int run_export(struct job *job, struct err *err)
{
    const struct json *image = json_get(job->request, "image");
    AUTO_LAYOUT struct layout_writer layout = {0};
    struct exporter x = {.layout = &layout};
    struct layout_image said = {0};

    if (!image || !json_get(image, "layers"))
        return err_set(err, ERR_INTERNAL, "an export of nothing");
    (void)json_is_int(json_get(image, "manifest_bytes"), &said.manifest_bytes);
    said.media_type = member(job, image, "media_type");
    said.digest = member(job, image, "digest");
    said.architecture = member(job, image, "architecture");
    said.name = request_text(job, "name");
    if (layout_open(job, IMAGE_FD_EXTRA, &layout, err) < 0 ||
        layout_begin(&layout, &said, err) < 0 || add_blob(&x, said.digest, err) < 0 ||
        add_blob(&x, member(job, image, "config"), err) < 0)
        return -1;
    json_each(layer, json_get(image, "layers")) if (add_blob(&x, member(job, layer, "blob"), err) <
                                                    0) return -1;
    if (layout_close(&layout, err) < 0)
        return -1;
    return event_done(job, json_object(&job->mem), err);
}
