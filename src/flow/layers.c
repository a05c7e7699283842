/* SPDX-License-Identifier: Apache-2.0 */

/* The ceiling of a machine: a layer above every policy, also above those that requests bring and
 * those that sandboxes were made with.
 *
 * It is one file of the state directory (of a daemon: for all of its tenants). Each verdict looks
 * whether it is still the file that was read; one that cannot be read refuses everything but its
 * repair, which no rule is about. */

#include "flow/govern-parts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flow/decide/decide.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#define CEILING_FILE "ceiling.yaml"

void ceiling_done(struct ceiling *ceiling)
{
    policy_free(ceiling->policy);
    *ceiling = (struct ceiling){0};
}

static const char *ceiling_path(struct arena *mem, const char *root_dir)
{
    return arena_printf(mem, "%s/" CEILING_FILE, root_dir);
}

int govern_ceiling_text(const char *root_dir, struct arena *mem, const char **out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(POLICY_TEXT_MAX);
    const char *path = ceiling_path(mem, root_dir);

    *out = NULL;
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    if (file_read(AT_FDCWD, path, &text, err) < 0)
        return err_in(err, "the ceiling");
    *out = arena_text(mem, buf_str(&text));
    return 0;
}

/* ---- the one that holds now ---- */

static struct file_mark mark_of(const struct stat *st)
{
    return (struct file_mark){.device = st->st_dev,
                              .inode = st->st_ino,
                              .size = (uint64_t)st->st_size,
                              .changed_s = st->st_ctim.tv_sec,
                              .changed_ns = st->st_ctim.tv_nsec};
}

static bool is_same_file(const struct file_mark *a, const struct file_mark *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed_s == b->changed_s && a->changed_ns == b->changed_ns;
}

static int read_ceiling(struct ceiling *ceiling, struct arena *mem, const char *root_dir,
                        struct err *err)
{
    const char *text = NULL;
    struct mark where;

    if (govern_ceiling_text(root_dir, mem, &text, err) < 0)
        return -1;
    return text ? ceiling_parse(str_of(text), &ceiling->policy, &where, err) : 0;
}

/* The file is looked at before it is read: one that changes in between is read once more. */
static int look_at_ceiling(struct govern *govern, struct arena *mem, struct err *err)
{
    struct ceiling *ceiling = &govern->ceiling;
    const char *root_dir = govern->shared->root_dir;
    const char *path = ceiling_path(mem, root_dir);
    struct file_mark mark;
    struct stat st;

    if (stat(path, &st) < 0) {
        int failed = errno == ENOENT ? 0 : err_os(err, "looking at %s", path);

        ceiling_done(ceiling);
        return failed;
    }
    mark = mark_of(&st);
    if (ceiling->policy && is_same_file(&ceiling->mark, &mark))
        return 0;
    ceiling_done(ceiling);
    if (read_ceiling(ceiling, mem, root_dir, err) < 0)
        return -1;
    ceiling->mark = mark;
    return 0;
}

static int check_signed(struct govern *govern, const struct policy *policy, bool stands,
                        enum reason *why, struct err *err)
{
    const struct policy_bundle *bundle = policy_bundle(policy);
    const struct bundle_place place = {govern->shared->root_dir, govern->state_dir, stands,
                                       !govern->only_looks};

    if (bundle)
        return govern_bundle_check(&place, bundle, why, err);
    if (!govern->ceiling.policy || !ceiling_wants_bundles(govern->ceiling.policy))
        return 0;
    *why = REASON_POLICY_UNSIGNED;
    return err_set(
        err, ERR_FORBIDDEN,
        "the ceiling says \"bundles: required\", and this policy is not a signed bundle; "
        "apply or bring one");
}

int govern_policy_counts(struct govern *govern, const struct policy *policy, bool stands,
                         struct arena *mem, enum reason *why, struct err *err)
{
    *why = REASON_POLICY_INVALID;
    if (look_at_ceiling(govern, mem, err) < 0)
        return err_in(err, "the ceiling (\"brig policy ceiling set\" replaces it)");
    return check_signed(govern, policy, stands, why, err);
}

void govern_refuse_uncounted(struct run *run, enum reason why, const struct err *err)
{
    govern_refuse_by(run, why, err);
    run->verdict.layer =
        why == REASON_POLICY_INVALID || why == REASON_POLICY_UNSIGNED ? "ceiling" : "policy";
}

void govern_decide(struct govern *govern, struct run *run)
{
    bool stands = run->action.kind == ACTION_EXEC;
    struct cost_ask cost = {.govern = govern};
    enum reason why;
    struct err err, wrong;
    bool counts = govern_policy_counts(govern, govern->policy, stands, &run->mem, &why, &err) == 0;
    bool failed;

    run->cost_source = (struct cost_source){govern_cost, &cost};
    failed = decide_under(govern->ceiling.policy, govern->policy, run, &wrong) < 0;
    run->cost_source = (struct cost_source){0};
    if (failed) {
        govern_refuse_by(run, REASON_DECISION_ERROR, &wrong);
    } else if (!counts) {
        govern_refuse_uncounted(run, why, &err);
    }
}

/* Whether the file of now says what the ceiling says that was read. The run has parts of that one,
 * so it is not exchanged here. */
static int is_same_ceiling(const struct govern *govern, struct run *run, struct err *err)
{
    const struct policy *before = govern->ceiling.policy;
    AUTO(policy) struct policy *now = NULL;
    const char *text = NULL;
    struct mark where;

    if (govern_ceiling_text(govern->shared->root_dir, &run->mem, &text, err) < 0 ||
        (text && ceiling_parse(str_of(text), &now, &where, err) < 0))
        return -1;
    if (!before || !now)
        return before == now;
    return strcmp(policy_hash(before), policy_hash(now)) == 0;
}

void govern_check_layers(struct govern *govern, struct run *run)
{
    enum reason why = REASON_POLICY_INVALID;
    struct err err;
    int same = is_same_ceiling(govern, run, &err);

    if (same < 0 ||
        check_signed(govern, govern->policy, run->action.kind == ACTION_EXEC, &why, &err) < 0)
        govern_refuse_uncounted(run, why, &err);
    else if (!same)
        run->verdict = (struct verdict){
            .kind = VERDICT_DENY,
            .reason = REASON_APPROVAL_TARGET_CHANGED,
            .layer = "ceiling",
            .text = "the ceiling changed after it was asked for; ask again, below the one of now",
        };
}

/* ---- another one ---- */

static int replace(const char *root_dir, struct arena *mem, const char *text, struct err *err)
{
    const char *path = ceiling_path(mem, root_dir);

    if (text)
        return file_replace(path, text, strlen(text), 0600, err);
    return unlink(path) < 0 && errno != ENOENT ? err_os(err, "removing %s", path) : 0;
}

int govern_ceiling_set(struct govern *govern, const struct request *request, const char *text,
                       struct run *run, struct err *err)
{
    AUTO(policy) struct policy *policy = NULL;
    struct mark where;
    struct deed deed;
    bool failed;

    if ((text && ceiling_parse(str_of(text), &policy, &where, err) < 0) ||
        deed_begin(&deed, govern, request, ACTION_POLICY, run, err) < 0)
        return -1;
    failed = replace(govern->shared->root_dir, &run->mem, text, err) < 0;
    if (!failed) {
        run->outcome.policy.layer = "ceiling";
        run->outcome.policy.hash = policy ? arena_text(&run->mem, str_of(policy_hash(policy))) : "";
        run->outcome.policy.is_standing = text != NULL;
    }
    return deed_end(&deed, failed ? REASON_POLICY_FAILED : REASON_NONE, err);
}
