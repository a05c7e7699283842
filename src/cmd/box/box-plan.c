/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/box/box.h"

#include "lib/linux/cgroup.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Nobody can change the bytes after these seals, not even whoever wrote them. */
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static bool array_fits(const struct box_plan *plan, uint32_t at, uint32_t n, size_t each)
{
    return n <= BOX_PLAN_MAX / each && at % 8 == 0 && at <= plan->size &&
           n * each <= plan->size - at;
}

static bool text_fits(const struct box_plan *plan, uint32_t at)
{
    const char *start = (const char *)plan;

    return at < plan->size && memchr(start + at, '\0', plan->size - at) != NULL;
}

static bool texts_fit(const struct box_plan *plan, uint32_t at, uint32_t n)
{
    const uint32_t *texts = plan_array(plan, at);

    if (!array_fits(plan, at, n, sizeof *texts))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!text_fits(plan, texts[i]))
            return false;
    return true;
}

static bool lowers_fit(const struct box_plan *plan, const struct box_mount *mount)
{
    const struct box_lower *lowers = plan_array(plan, mount->lowers);

    if (mount->lower_n == 0)
        return true;
    if (mount->lower_n > BOX_LOWERS_MAX ||
        !array_fits(plan, mount->lowers, mount->lower_n, sizeof *lowers))
        return false;
    for (uint32_t i = 0; i < mount->lower_n; i++)
        if (!text_fits(plan, lowers[i].path))
            return false;
    return true;
}

static bool mounts_fit(const struct box_plan *plan)
{
    const struct box_mount *mounts = plan_array(plan, plan->mounts);

    if (plan->mount_n > BOX_MOUNTS_MAX ||
        !array_fits(plan, plan->mounts, plan->mount_n, sizeof *mounts))
        return false;
    for (uint32_t i = 0; i < plan->mount_n; i++)
        if (!text_fits(plan, mounts[i].source) || !text_fits(plan, mounts[i].target) ||
            plan_text(plan, mounts[i].target)[0] != '/' || !lowers_fit(plan, &mounts[i]))
            return false;
    return true;
}

static bool paths_fit(const struct box_plan *plan)
{
    const struct box_path *paths = plan_array(plan, plan->paths);

    if (!array_fits(plan, plan->paths, plan->path_n, sizeof *paths))
        return false;
    for (uint32_t i = 0; i < plan->path_n; i++)
        if (!text_fits(plan, paths[i].path))
            return false;
    return true;
}

/* A sandbox without sockets has no use for a way out. */
static bool egress_fits(const struct box_plan *plan)
{
    const uint16_t *ports = plan_array(plan, plan->egress_ports);

    if (plan->egress_fd == -1)
        return plan->egress_port_n == 0;
    if (plan->egress_fd < BOX_FD_FIRST_MOUNT || plan->sockets_none ||
        plan->egress_port_n > BOX_EGRESS_PORTS_MAX ||
        !array_fits(plan, plan->egress_ports, plan->egress_port_n, sizeof *ports))
        return false;
    for (uint32_t i = 0; i < plan->egress_port_n; i++)
        if (ports[i] == 0)
            return false;
    return true;
}

static bool plan_holds(const struct box_plan *plan, size_t size)
{
    return plan->magic == BOX_PLAN_MAGIC && plan->version == BOX_PLAN_VERSION &&
           plan->size == size && plan->host_uid != 0 && plan->host_gid != 0 &&
           plan->inside_uid != 0 && plan->argv_n > 0 && text_fits(plan, plan->hostname) &&
           text_fits(plan, plan->workdir) && text_fits(plan, plan->run_id) &&
           text_fits(plan, plan->run_dir) && texts_fit(plan, plan->argv, plan->argv_n) &&
           texts_fit(plan, plan->env, plan->env_n) && mounts_fit(plan) && paths_fit(plan) &&
           array_fits(plan, plan->rlimits, plan->rlimit_n, sizeof(struct box_rlimit)) &&
           egress_fits(plan) &&
           (!plan->cgroup_name ||
            (text_fits(plan, plan->cgroup_name) &&
             array_fits(plan, plan->cgroup_host, 1, sizeof(struct cgroup_host))));
}

int plan_open(int fd, const struct box_plan **out, struct err *err)
{
    const struct box_plan *plan;
    struct stat st;
    int seals;

    if (fstat(fd, &st) < 0)
        return err_os(err, "looking at the plan");
    seals = fcntl(fd, F_GET_SEALS); /* -1: a file that knows no seals */
    if (seals < 0 || (seals & SEALS) != SEALS)
        return err_set(err, ERR_INTEGRITY, "the plan is not sealed");
    if (st.st_size < (off_t)sizeof *plan || st.st_size > (off_t)BOX_PLAN_MAX)
        return err_set(err, ERR_INTEGRITY, "the plan has %lld bytes", (long long)st.st_size);
    plan = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (plan == MAP_FAILED)
        return err_os(err, "mapping the plan");
    if (!plan_holds(plan, (size_t)st.st_size)) {
        (void)munmap((void *)(uintptr_t)plan, (size_t)st.st_size);
        return err_set(err, ERR_INTEGRITY, "the plan does not hold together");
    }
    *out = plan;
    return 0;
}

void plan_close(const struct box_plan *plan)
{
    (void)munmap((void *)(uintptr_t)plan, plan->size);
}

const char *plan_text(const struct box_plan *plan, uint32_t at)
{
    return (const char *)plan + at;
}

const void *plan_array(const struct box_plan *plan, uint32_t at)
{
    return (const char *)plan + at;
}
