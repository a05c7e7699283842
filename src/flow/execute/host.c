/* SPDX-License-Identifier: Apache-2.0 */

/* The machine itself: no walls. Only for ACTION_ELEVATE, which govern alone makes.
 *
 * The program is opened and hashed when it is planned, and once more before it runs, from the
 * descriptor it then runs from. Nobody but root and whoever it runs as can write it, so what was
 * hashed is what runs. It has an environment of our own, "/" to begin in, no new privileges, no
 * input, and a session of its own, and it is never root. A keeper between it and us is where all it
 * leaves behind ends up (PR_SET_CHILD_SUBREAPER) and is ended, also when we die. A command can kill
 * its keeper, because both are one user: then what it left behind lives on. */

#include "flow/execute/backend.h"

#include "flow/execute/host.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/crypto/crypto.h"
#include "lib/json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOST_VERSION "host/1"
#define PROGRAM_BYTES_MAX (1024ULL * 1024 * 1024)
#define PASSWD_BYTES_MAX (4UL * 1024 * 1024)

/* ---- as whom ---- */

/* One line of /etc/passwd: name, password, uid, gid, comment, home, shell. */
static bool read_line(struct str line, const char *name, uint64_t own_uid, struct run *run)
{
    struct str fields[6];
    uint64_t uid, gid;

    for (size_t i = 0; i < COUNT(fields); i++)
        fields[i] = str_cut(&line, ':');
    if (!str_u64(fields[2], &uid) || !str_u64(fields[3], &gid) || uid > UINT32_MAX - 1 ||
        gid > UINT32_MAX - 1 || (name ? !str_is(fields[0], name) : uid != own_uid))
        return false;
    run->plan.inside_uid = (uint32_t)uid;
    run->plan.inside_gid = (uint32_t)gid;
    run->plan.user_name = arena_text(&run->mem, fields[0]);
    run->plan.home = arena_text(&run->mem, fields[5]);
    return true;
}

static int find_user(struct run *run, const char *name, struct err *err)
{
    AUTO_BUF struct buf text = BUF(PASSWD_BYTES_MAX);
    struct str rest;

    if (file_read(AT_FDCWD, "/etc/passwd", &text, err) < 0)
        return -1;
    rest = buf_str(&text);
    while (rest.n)
        if (read_line(str_cut(&rest, '\n'), name, getuid(), run))
            return 0;
    return err_set(err, ERR_FORBIDDEN, "this machine has no user %s%s", name ? name : "",
                   name ? "" : "for whoever asks");
}

/* Whoever asks; root only as the user that the rule names. */
static int choose_user(struct run *run, struct err *err)
{
    const char *name = run->action.user;

    if (getuid() == 0 && !name)
        return err_set(err, ERR_FORBIDDEN,
                       "nothing of a caller's runs as root: give the rule a \"user\"");
    if (find_user(run, name, err) < 0)
        return -1;
    if (run->plan.inside_uid == 0)
        return err_set(err, ERR_FORBIDDEN, "nothing of a caller's runs as root");
    if (getuid() != 0 && run->plan.inside_uid != getuid())
        return err_set(err, ERR_FORBIDDEN, "the rule is for the user %s", name);
    return 0;
}

/* ---- the program ---- */

static int check_program(int fd, const struct run *run, const char *path, struct err *err)
{
    struct stat st;
    char head[4] = "";

    if (fstat(fd, &st) < 0)
        return err_os(err, "looking at %s", path);
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > PROGRAM_BYTES_MAX)
        return err_set(err, ERR_FORBIDDEN, "%s is no program", path);
    if ((st.st_uid != 0 && st.st_uid != run->plan.inside_uid) || (st.st_mode & 022))
        return err_set(err, ERR_FORBIDDEN, "%s can be changed by others", path);
    /* A script is whatever its interpreter makes of it. */
    if (pread(fd, head, sizeof head, 0) != (ssize_t)sizeof head || memcmp(head, "\177ELF", 4) != 0)
        return err_set(err, ERR_FORBIDDEN, "%s is a script, or no program of this machine", path);
    return 0;
}

static int hash_program(int fd, char out[MODEL_HASH_BYTES], struct err *err)
{
    char bytes[32 * 1024];
    struct hasher hasher;
    struct hash hash;
    off_t at = 0;
    ssize_t got;

    hasher_init(&hasher);
    while ((got = pread(fd, bytes, sizeof bytes, at)) > 0) {
        hasher_add(&hasher, bytes, (size_t)got);
        at += got;
    }
    if (got < 0)
        return err_os(err, "reading the program");
    hasher_end(&hasher, &hash);
    hash_text(&hash, out);
    return 0;
}

static int open_program(const struct run *run, int *out, char hash[MODEL_HASH_BYTES],
                        struct err *err)
{
    const char *path = run->action.argv.v[0];
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0)
        return err_os(err, "opening %s", path);
    if (check_program(fd, run, path, err) < 0 || hash_program(fd, hash, err) < 0)
        return -1;
    *out = TAKE_FD(fd);
    return 0;
}

/* ---- posture ---- */

static int hash_json(const struct json *json, char out[MODEL_HASH_BYTES], struct err *err)
{
    AUTO_BUF struct buf text = BUF(JSON_TEXT_MAX);

    if (json_canonical(json, &text, err) < 0)
        return -1;
    hash_text_of(buf_str(&text), out);
    return 0;
}

static struct json *spec_of(struct run *run, const char *program_hash)
{
    struct json *spec = json_object(&run->mem), *env = json_array(&run->mem);

    for (size_t i = 0; i < run->plan.env.n; i++)
        json_push(env, json_text(&run->mem, str_of(run->plan.env.v[i])));
    json_put_text(&run->mem, spec, "cwd", run->plan.workdir);
    json_put(spec, "env", env);
    json_put_int(&run->mem, spec, "gid", run->plan.inside_gid);
    json_put_text(&run->mem, spec, "isolation", "none");
    json_put_text(&run->mem, spec, "program_hash", program_hash);
    json_put_int(&run->mem, spec, "uid", run->plan.inside_uid);
    return spec;
}

/* docs/formats/posture.md: what there is no wall for is said to be none. */
static int posture_of_host(struct run *run, const char *program_hash, struct posture *out,
                           struct err *err)
{
    struct json *limits = json_object(&run->mem);
    char preimage[sizeof out->provider_version + 5 * MODEL_HASH_BYTES];

    json_put_int(&run->mem, limits, "output_bytes",
                 (int64_t)run->plan.limits.of[LIMIT_OUTPUT].value);
    json_put_int(&run->mem, limits, "wall_ms", (int64_t)run->plan.limits.of[LIMIT_WALL].value);
    *out = (struct posture){.provider_version = HOST_VERSION};
    hash_text_of(STR_LIT("none"), out->mounts_hash);
    hash_text_of(STR_LIT("none"), out->egress_policy_hash);
    (void)snprintf(out->image_digest, sizeof out->image_digest, "%s", program_hash);
    if (hash_json(spec_of(run, program_hash), out->sandbox_spec_hash, err) < 0 ||
        hash_json(limits, out->resource_limits_hash, err) < 0)
        return -1;
    (void)snprintf(preimage, sizeof preimage, "%s|%s|%s|%s|%s|%s", out->provider_version,
                   out->sandbox_spec_hash, out->image_digest, out->mounts_hash,
                   out->egress_policy_hash, out->resource_limits_hash);
    hash_text_of(str_of(preimage), out->preimage_hash);
    return 0;
}

/* ---- the provider ---- */

static void plan_limit(struct run *run, enum limit_kind kind)
{
    struct limit *limit = &run->plan.limits.of[kind];

    *limit = run_limit_elevated(run, kind);
    limit->means = MEANS_RELAY;
}

static void plan_env(struct run *run)
{
    const char **env = arena_array(&run->mem, const char *, 5);

    env[0] = arena_printf(&run->mem, "HOME=%s", run->plan.home);
    env[1] = "LANG=C.UTF-8";
    env[2] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
    env[3] = arena_printf(&run->mem, "USER=%s", run->plan.user_name);
    run->plan.env = (struct words){env, 4};
    run->plan.workdir = "/";
}

static int offer(struct execute *execute, struct run *run, struct err *err)
{
    AUTO_FD int fd = -1;
    char hash[MODEL_HASH_BYTES];

    (void)execute;
    run->offer.provider = PROVIDER_HOST;
    run->offer.version = HOST_VERSION;
    run->offer.isolation = "none";
    if (choose_user(run, err) < 0 || open_program(run, &fd, hash, err) < 0)
        return -1;
    plan_limit(run, LIMIT_WALL);
    plan_limit(run, LIMIT_OUTPUT);
    plan_env(run);
    return posture_of_host(run, hash, &run->planned, err);
}

static int begin(struct execute *execute, struct run *run, struct err *err)
{
    return execute_claim(execute, run, err);
}

static int park(struct execute *execute, struct run *run, struct err *err)
{
    char hash[MODEL_HASH_BYTES];

    if (open_program(run, &execute->program_fd, hash, err) < 0 ||
        posture_of_host(run, hash, &run->observed, err) < 0)
        return -1;
    run->observed.evidence = EVIDENCE_OBSERVED;
    return 0;
}

static int release(struct execute *execute, struct run *run, const struct streams *streams,
                   struct err *err)
{
    AUTO_FD int fd = TAKE_FD(execute->program_fd);

    return host_run(execute, run, fd, streams, err);
}

static void drop(struct execute *execute, struct run *run)
{
    (void)run;
    if (execute->program_fd >= 0)
        (void)close(TAKE_FD(execute->program_fd));
}

const struct backend backend_host = {
    .name = PROVIDER_HOST,
    .offer = offer,
    .begin = begin,
    .park = park,
    .release = release,
    .drop = drop,
};
