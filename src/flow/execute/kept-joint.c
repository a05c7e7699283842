/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/execute/kept.h"

#include "lib/base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Who serves more sandboxes than this at a time begins anew with the one used longest ago. */
#define JOINTS_MAX 32

struct joints {
    struct joint *of[JOINTS_MAX];
    uint64_t used;
};

void joint_free(struct joint *joint)
{
    if (!joint)
        return;
    if (joint->inside_fd >= 0)
        (void)close(joint->inside_fd);
    if (joint->box_lock_fd >= 0)
        (void)close(joint->box_lock_fd);
    if (joint->status_fd >= 0)
        (void)close(joint->status_fd);
    cgroup_set_done(&joint->groups);
    buf_done(&joint->report);
    free(joint);
}

void joints_free(struct joints *joints)
{
    if (!joints)
        return;
    for (size_t i = 0; i < JOINTS_MAX; i++)
        joint_free(joints->of[i]);
    free(joints);
}

/* It is silent as long as nobody asks it, and at its end when PID 1 is gone. */
static bool is_alive(const struct joint *joint)
{
    char byte;

    return recv(joint->inside_fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           errno == EAGAIN;
}

struct joint *joint_take(struct execute *execute, const char *sandbox)
{
    struct joints *joints = execute->joints;

    for (size_t i = 0; joints && i < JOINTS_MAX; i++) {
        AUTO(joint) struct joint *joint = NULL;

        if (!joints->of[i] || strcmp(joints->of[i]->sandbox, sandbox) != 0)
            continue;
        joint = TAKE(joints->of[i]);
        return is_alive(joint) ? TAKE(joint) : NULL;
    }
    return NULL;
}

void joints_forget(struct execute *execute)
{
    struct joints *joints = execute->joints;

    for (size_t i = 0; joints && i < JOINTS_MAX; i++)
        if (joints->of[i] && !is_alive(joints->of[i]))
            joint_free(TAKE(joints->of[i]));
}

void joint_put(struct execute *execute, struct joint *joint)
{
    struct joints *joints = execute->joints;
    size_t at = 0;

    if (!joints)
        joints = execute->joints = xcalloc(1, sizeof *joints);
    for (size_t i = 0; i < JOINTS_MAX && joints->of[at]; i++)
        if (!joints->of[i] || joints->of[i]->used < joints->of[at]->used)
            at = i;
    joint_free(joints->of[at]);
    joint->used = ++joints->used;
    joints->of[at] = joint;
}
