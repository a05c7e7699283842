/* SPDX-License-Identifier: Apache-2.0 */

/* Whose bundles count, and which version of each was seen last.
 *
 *   STATE/publishers.json       {"publishers":[{"added_at","key_id","name","public_key"}]}, of the
 *                               machine: for all tenants of a daemon
 *   STATE/bundle-versions.json  {"NAME": VERSION}, of a tenant: the highest that was applied
 *   STATE/bundle-clock          empty; its time is when a bundle was last looked at, to a minute,
 *                               so that none that was over begins again
 *
 * The lists are small, replaced whole, and read anew for each verdict about a bundle. One that
 * cannot be read trusts nobody. */

#include "flow/govern-parts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flow/decide/decide.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "lib/json/json.h"

#define PUBLISHERS_FILE "publishers.json"
#define VERSIONS_FILE "bundle-versions.json"
#define LOCK_FILE "publishers.lock"
#define CLOCK_FILE "bundle-clock"
#define CLOCK_STEP_S 60 /* it is not written oftener than that */
#define LIST_TEXT_MAX (256 * KIB)

static int64_t now_s(void)
{
    return (int64_t)(clock_wall_ns() / 1000000000U);
}

/* The latest anybody has seen. What cannot be written is missed only if the clock goes back. */
static int64_t latest_s(const struct bundle_place *place, struct arena *mem)
{
    const char *path = arena_printf(mem, "%s/" CLOCK_FILE, place->root_dir);
    int64_t now = now_s();
    AUTO_FD int fd = -1;
    struct stat st = {0};

    if (lstat(path, &st) == 0 && st.st_mtim.tv_sec + CLOCK_STEP_S > now)
        return st.st_mtim.tv_sec > now ? st.st_mtim.tv_sec : now;
    if (!place->keeps_time)
        return now;
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    if (fd >= 0)
        (void)futimens(fd, NULL);
    return now;
}

static int read_list(const char *dir, const char *file, struct arena *mem, const struct json **out,
                     struct err *err)
{
    AUTO_BUF struct buf text = BUF(LIST_TEXT_MAX);
    const char *path = arena_printf(mem, "%s/%s", dir, file);
    struct mark where;

    *out = json_object(mem);
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    if (file_read(AT_FDCWD, path, &text, err) < 0)
        return -1;
    if (json_parse(mem, arena_str(mem, buf_str(&text)), out, &where, err) < 0)
        return err_in(err, "%s", path);
    return (*out)->kind == JSON_OBJECT ? 0 : err_set(err, ERR_INTEGRITY, "%s is no list", path);
}

static int write_list(const char *dir, const char *file, struct arena *mem, const struct json *list,
                      struct err *err)
{
    AUTO_BUF struct buf text = BUF(LIST_TEXT_MAX);

    if (json_canonical(list, &text, err) < 0)
        return -1;
    return file_replace(arena_printf(mem, "%s/%s", dir, file), text.p, text.n, 0600, err);
}

/* Held until the descriptor is closed. */
static int lock_lists(const char *dir, struct arena *mem, int *out, struct err *err)
{
    const char *path = arena_printf(mem, "%s/" LOCK_FILE, dir);
    AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return err_os(err, "opening %s", path);
    if (file_lock(fd, path, err) < 0)
        return -1;
    *out = TAKE_FD(fd);
    return 0;
}

/* ---- whether a bundle counts ---- */

static bool is_trusted(const struct json *root, const struct policy_bundle *bundle)
{
    const struct json *list = json_get(root, "publishers");
    char hex[2 * PUBLIC_KEY_BYTES + 1];
    struct str key;

    hex_encode(bundle->key.b, sizeof bundle->key.b, hex);
    if (list)
        json_each(one, list)
        {
            /* By the key itself: an id is a piece of its hash. */
            if (json_is_text(json_get(one, "public_key"), &key) && str_is(key, hex))
                return true;
        }
    return false;
}

/* A version that cannot be read is above all others. */
static int64_t version_seen(const struct json *versions, const char *name)
{
    const struct json *value = json_get(versions, name);
    int64_t version = 0;

    return !value || json_is_int(value, &version) ? version : INT64_MAX;
}

int govern_bundle_check(const struct bundle_place *place, const struct policy_bundle *bundle,
                        enum reason *why, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(POLICY_MEMORY_MAX);
    const struct json *publishers = NULL, *versions = NULL;
    int64_t seen, latest;

    *why = REASON_BUNDLE_UNTRUSTED;
    if (read_list(place->root_dir, PUBLISHERS_FILE, &mem, &publishers, err) < 0)
        return -1;
    if (!is_trusted(publishers, bundle))
        return err_set(err, ERR_FORBIDDEN,
                       "bundle %s is signed by %s, whom nobody here trusts; \"brig policy trust "
                       "add\" does",
                       bundle->name, bundle->key_id);
    *why = REASON_BUNDLE_EXPIRED;
    latest = latest_s(place, &mem);
    if (bundle->expires_at <= latest && bundle->expires_at > now_s())
        return err_set(
            err, ERR_FORBIDDEN,
            "bundle %.200s, version %lld, was over before this machine's clock was put "
            "back; get a newer one, or, if the clock was wrong before, remove %.200s/" CLOCK_FILE,
            bundle->name, (long long)bundle->version, place->root_dir);
    if (bundle->expires_at <= latest)
        return err_set(err, ERR_FORBIDDEN,
                       "bundle %s, version %lld, is over; get a newer one from whoever publishes "
                       "it",
                       bundle->name, (long long)bundle->version);
    *why = REASON_BUNDLE_ROLLBACK;
    if (place->stands)
        return 0;
    if (read_list(place->state_dir, VERSIONS_FILE, &mem, &versions, err) < 0)
        return -1;
    seen = version_seen(versions, bundle->name);
    if (bundle->version < seen)
        return err_set(err, ERR_FORBIDDEN,
                       "bundle %s is version %lld, and version %lld was applied already; there is "
                       "no way back to an older one",
                       bundle->name, (long long)bundle->version, (long long)seen);
    return 0;
}

int bundle_version_raise(const char *state_dir, const struct policy_bundle *bundle, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(POLICY_MEMORY_MAX);
    AUTO_FD int lock_fd = -1;
    const struct json *versions = NULL;
    struct json *raised = json_object(&mem);

    if (lock_lists(state_dir, &mem, &lock_fd, err) < 0 ||
        read_list(state_dir, VERSIONS_FILE, &mem, &versions, err) < 0)
        return -1;
    if (version_seen(versions, bundle->name) >= bundle->version)
        return 0;
    json_each(member, versions)
    {
        if (!str_is(member->key, bundle->name))
            json_copy_member(&mem, raised, member);
    }
    json_put_int(&mem, raised, bundle->name, bundle->version);
    return write_list(state_dir, VERSIONS_FILE, &mem, raised, err);
}

/* ---- who is trusted ---- */

int govern_publishers(const char *root_dir, struct arena *mem, const struct json **out,
                      struct err *err)
{
    const struct json *root = NULL, *list;

    if (read_list(root_dir, PUBLISHERS_FILE, mem, &root, err) < 0)
        return -1;
    list = json_get(root, "publishers");
    *out = list && list->kind == JSON_ARRAY ? list : json_array(mem);
    return 0;
}

static struct json *publisher_json(struct arena *mem, const struct public_key *key,
                                   const char *name)
{
    struct json *one = json_object(mem);
    char hex[2 * PUBLIC_KEY_BYTES + 1], id[KEY_ID_BYTES];

    hex_encode(key->b, sizeof key->b, hex);
    key_id(key, id);
    json_put_int(mem, one, "added_at", now_s());
    json_put_text(mem, one, "key_id", id);
    json_put_bytes(mem, one, "name", str_of(name));
    json_put_text(mem, one, "public_key", hex);
    return one;
}

/* All but the one with this id, which was there or not. */
static struct json *others(struct arena *mem, const struct json *list, const char *id, bool *was)
{
    struct json *kept = json_array(mem);
    struct str text;

    *was = false;
    json_each(one, list)
    {
        struct json *copy = json_object(mem);

        if (json_is_text(json_get(one, "key_id"), &text) && str_is(text, id)) {
            *was = true;
            continue;
        }
        json_each(member, one) json_copy_member(mem, copy, member);
        json_push(kept, copy);
    }
    return kept;
}

static int change_list(const char *root_dir, struct arena *mem,
                       const struct publisher_change *change, struct err *err)
{
    AUTO_FD int lock_fd = -1;
    const struct json *list = NULL;
    struct json *root = json_object(mem), *kept;
    bool was;

    if (lock_lists(root_dir, mem, &lock_fd, err) < 0 ||
        govern_publishers(root_dir, mem, &list, err) < 0)
        return -1;
    kept = others(mem, list, change->key_id, &was);
    if (!change->key && !was)
        return err_set(err, ERR_NOT_FOUND, "nobody trusts a publisher %.40s", change->key_id);
    if (change->key && kept->n >= PUBLISHERS_MAX)
        return err_set(err, ERR_LIMIT, "there are %d publishers already", PUBLISHERS_MAX);
    if (change->key)
        json_push(kept, publisher_json(mem, change->key, change->name));
    json_put(root, "publishers", kept);
    return write_list(root_dir, PUBLISHERS_FILE, mem, root, err);
}

int govern_publisher_change(struct govern *govern, const struct request *request,
                            const struct publisher_change *change, struct run *run, struct err *err)
{
    struct request made = *request;
    struct deed deed;
    bool failed;

    /* What is signed with a key that nobody trusts is refused, never taken for unsigned. */
    made.is_refusal = !change->key;
    if (deed_begin(&deed, govern, &made, ACTION_POLICY, run, err) < 0)
        return -1;
    failed = change_list(govern->shared->root_dir, &run->mem, change, err) < 0;
    run->outcome.policy.layer = "publisher";
    run->outcome.policy.hash = "";
    run->outcome.policy.key_id = arena_text(&run->mem, str_of(change->key_id));
    run->outcome.policy.is_standing = !failed && change->key;
    return deed_end(&deed, failed ? REASON_POLICY_FAILED : REASON_NONE, err);
}
