/* SPDX-License-Identifier: Apache-2.0 */

/* The standing policy of a state directory: what holds where a request brings none of its own. */

#include "flow/govern-parts.h"

#include "flow/decide/decide.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define POLICY_FILE "policy.yaml"

/* Only a file that is not there is no policy: one that cannot be read may forbid something. */
int govern_policy_text(const char *state_dir, struct arena *mem, const char **out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);
    const char *path = arena_printf(mem, "%s/" POLICY_FILE, state_dir);

    *out = NULL;
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    if (file_read(AT_FDCWD, path, &text, err) < 0)
        return err_in(err, "the standing policy");
    *out = arena_text(mem, buf_str(&text));
    return 0;
}

static int replace(const char *state_dir, struct arena *mem, const char *text, struct err *err)
{
    const char *path = arena_printf(mem, "%s/" POLICY_FILE, state_dir);

    if (text)
        return file_replace(path, text, strlen(text), 0600, err);
    return unlink(path) < 0 && errno != ENOENT ? err_os(err, "removing %s", path) : 0;
}

int govern_policy_apply(struct govern *govern, const struct request *request, const char *text,
                        struct run *run, struct err *err)
{
    AUTO(policy) struct policy *policy = NULL;
    enum reason why;
    struct mark where;
    struct deed deed;
    bool failed;

    /* What is none is the sender's to mend, and nothing that happened. */
    if ((text ? policy_parse(str_of(text), &policy, &where, err) : policy_builtin(&policy, err)) <
            0 ||
        (text && govern_policy_counts(govern, policy, false, &run->mem, &why, err) < 0) ||
        deed_begin(&deed, govern, request, ACTION_POLICY, run, err) < 0)
        return -1;
    /* First the version: who dies in between has refused the old one, not opened a way back. */
    failed = (policy_bundle(policy) &&
              bundle_version_raise(govern->state_dir, policy_bundle(policy), err) < 0) ||
             replace(govern->state_dir, &run->mem, text, err) < 0;
    if (!failed) {
        run->outcome.policy.hash = arena_text(&run->mem, str_of(policy_hash(policy)));
        run->outcome.policy.is_standing = text != NULL;
    }
    return deed_end(&deed, failed ? REASON_POLICY_FAILED : REASON_NONE, err);
}
