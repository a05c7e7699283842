/* SPDX-License-Identifier: Apache-2.0 */

/* An OCI image as the root: its layers below a writable one, with the private /proc, /dev and
 * /run every sandbox has on top. Inside everything belongs to the sandbox's user, who is whom the
 * image names (plan-user.c). */

#include "flow/equip/parts.h"

#include <string.h>

static const struct {
    const char *target;
    const char *text;
} etc_files[] = {
    {"/etc/hostname",    "sandbox\n"                                                 },
    {"/etc/hosts",       "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost\n"},
    {"/etc/resolv.conf", RESOLV_CONF                                                 },
};

static void add_root(struct run *run, struct mount_list *list, const struct image *image)
{
    struct plan_lower *lowers = arena_array(&run->mem, struct plan_lower, image->layer_n);
    struct plan_mount *mount = mount_add(&run->mem, list, MOUNT_LAYER, "/");

    /* The image counts from below, an overlay from above. */
    for (size_t i = 0; i < image->layer_n; i++) {
        const struct image_layer *layer = &image->layers[image->layer_n - 1 - i];

        lowers[i] = (struct plan_lower){layer->path, layer->device, layer->inode};
    }
    mount->source = "root";
    mount->access = MOUNT_RW;
    mount->lowers = lowers;
    mount->lower_n = image->layer_n;
}

static void add_dev(struct run *run, struct mount_list *list)
{
    struct plan_mount *mount = mount_add(&run->mem, list, MOUNT_TMPFS, "/dev");

    mount->access = MOUNT_RO; /* once it is filled */
    mount->noexec = true;
    mount->size_bytes = 64U << 10;
}

int image_root_mounts(struct run *run, const struct image *image, struct mount_list *list,
                      struct err *err)
{
    if (image->layer_n == 0)
        return refuse(run, REASON_PLAN_INVALID, "the image %.100s has no layers", run->plan.image);
    add_root(run, list, image);
    for (size_t i = 0; i < COUNT(etc_files); i++)
        mount_add(&run->mem, list, MOUNT_FILE, etc_files[i].target)->source = etc_files[i].text;
    /* Every runtime makes the folder an image wants to start in. */
    if (is_plain_target(image->workdir))
        mount_add(&run->mem, list, MOUNT_FOLDER, image->workdir)->access = MOUNT_RW;
    add_dev(run, list);
    return common_mounts(run, list, err);
}

/* Finds the image and makes sure that it stays and is what it was. */
int image_open(const char *state_dir, struct run *run, struct image *out, struct err *err)
{
    const struct image_owner owner = {run->offer.host_uid, run->offer.host_gid};
    AUTO(image_store) struct image_store *store = NULL;

    if (image_store_open(state_dir, &owner, &store, err) < 0 ||
        image_find(store, &run->mem, run->plan.image, out, err) < 0)
        return -1;
    if (run->plan.hold_fd < 0 && image_hold(store, out, &run->plan.hold_fd, err) < 0)
        return -1;
    return image_check(store, out, err);
}

/* Variables of the image lie below those that were asked for, and above our own; but it cannot
 * know the way out of a sandbox. */
void image_environment(struct run *run, const struct image *image)
{
    const struct words ours = run->plan.env;
    const char **env = arena_array(&run->mem, const char *, ours.n + image->env.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < image->env.n; i++)
        if (!env_has(&run->action.env, image->env.v[i]) &&
            !env_has(&run->plan.egress.env, image->env.v[i]))
            env[n++] = image->env.v[i];
    for (size_t i = 0; i < ours.n; i++)
        if (!env_has(&(struct words){env, n}, ours.v[i]))
            env[n++] = ours.v[i];
    run->plan.env = (struct words){env, n};
}
