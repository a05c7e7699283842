/* SPDX-License-Identifier: Apache-2.0 */

/* Trust in the interception authority, for sandboxes whose rules look into TLS, and only there: a
 * folder at TRUST_TARGET, read-only, with
 *
 *     ca.pem      the authority's certificate alone
 *     bundle.pem  the roots of this machine, and it
 *     trust.p12   the same for Java
 *
 * and the variables by which the usual stacks find them. The folder lies in the state directory
 * under the hash of what is in it, so the mount table of the posture says which it was; one that is
 * there is complete and never changed. Whoever makes another one, because the machine's roots have
 * changed, removes those that nobody has used for long: a sandbox that stands may have one of them.
 */

#include "flow/equip/parts.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/crypto/crypto.h"
#include "lib/tls/tls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TRUST_TARGET "/etc/brig/trust"
#define BUNDLE TRUST_TARGET "/bundle.pem"
#define NAME_DIGITS 24
#define PREFIX "trust-"
#define UNUSED_S (90L * 24 * 3600) /* then it is nobody's */
#define AUTHORITY "%s/egress/" TLS_AUTHORITY_CERTIFICATE

static const char *const trust_variables[] = {
    "AWS_CA_BUNDLE=" BUNDLE,
    "CARGO_HTTP_CAINFO=" BUNDLE,
    "CURL_CA_BUNDLE=" BUNDLE,
    "DENO_CERT=" TRUST_TARGET "/ca.pem",
    "GIT_SSL_CAINFO=" BUNDLE,
    "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=" TRUST_TARGET
    "/trust.p12 -Djavax.net.ssl.trustStoreType=PKCS12 "
    "-Djavax.net.ssl.trustStorePassword=" TLS_TRUST_STORE_PASSWORD,
    "NIX_SSL_CERT_FILE=" BUNDLE,
    "NODE_EXTRA_CA_CERTS=" TRUST_TARGET "/ca.pem",
    "PERL_LWP_SSL_CA_FILE=" BUNDLE,
    "PIP_CERT=" BUNDLE,
    "REQUESTS_CA_BUNDLE=" BUNDLE,
    "SSL_CERT_DIR=" TRUST_TARGET,
    "SSL_CERT_FILE=" BUNDLE,
};

struct trust {
    struct buf authority;
    struct buf bundle;
    char folder[PATH_BYTES_MAX];
};

static int read_authority(const char *state_dir, struct trust *trust, struct err *err)
{
    char path[PATH_BYTES_MAX];

    if (snprintf(path, sizeof path, AUTHORITY, state_dir) >= (int)sizeof path)
        return err_set(err, ERR_LIMIT, "the path of the state directory is too long");
    return file_read(AT_FDCWD, path, &trust->authority, err);
}

/* A machine without roots has none to add to. */
static int make_bundle(const char *state_dir, struct trust *trust, struct err *err)
{
    AUTO_BUF struct buf roots = BUF(TLS_BUNDLE_MAX);
    char hash[HASH_TEXT_BYTES];

    if (tls_roots_read(&roots, err) < 0 && err->code != ERR_NOT_FOUND)
        return -1;
    if (tls_bundle_write(buf_str(&roots), buf_str(&trust->authority), &trust->bundle, err) < 0)
        return -1;
    hash_text_of(buf_str(&trust->bundle), hash);
    if (snprintf(trust->folder, sizeof trust->folder, "%s/egress/" PREFIX "%.*s", state_dir,
                 NAME_DIGITS, strchr(hash, ':') + 1) >= (int)sizeof trust->folder)
        return err_set(err, ERR_LIMIT, "the path of the state directory is too long");
    return 0;
}

static int write_one(const char *folder, const char *name, struct str bytes, struct err *err)
{
    char path[PATH_BYTES_MAX + 64];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return file_replace(path, bytes.p, bytes.n, 0644, err);
}

static int fill_folder(const char *folder, const struct trust *trust, struct err *err)
{
    AUTO_BUF struct buf store = BUF(TLS_BUNDLE_MAX);

    if (tls_trust_store_write(buf_str(&trust->bundle), &store, err) < 0)
        return -1;
    if (write_one(folder, "ca.pem", buf_str(&trust->authority), err) < 0 ||
        write_one(folder, "bundle.pem", buf_str(&trust->bundle), err) < 0)
        return -1;
    return write_one(folder, "trust.p12", buf_str(&store), err);
}

/* Also what a killed one left beside. What cannot be removed now is there the next time. */
static void remove_unused(const char *state_dir)
{
    char path[PATH_BYTES_MAX];
    struct dirent *entry;
    struct err ignored;
    struct stat st;
    DIR *dir;

    (void)snprintf(path, sizeof path, "%s/egress", state_dir);
    dir = opendir(path);
    while (dir && (entry = readdir(dir)) != NULL)
        if (str_starts(str_of(entry->d_name), PREFIX) &&
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            st.st_mtime < time(NULL) - UNUSED_S)
            (void)!dir_remove(dirfd(dir), entry->d_name, &ignored);
    if (dir)
        (void)closedir(dir);
}

/* Written beside and moved into place: whoever is second finds the first one's. */
static int make_folder(const char *state_dir, const struct trust *trust, struct err *err)
{
    char beside[PATH_BYTES_MAX + 32];
    struct err ignored;
    int failed = 0;

    if (utimensat(AT_FDCWD, trust->folder, NULL, 0) == 0)
        return 0; /* used today */
    remove_unused(state_dir);
    (void)snprintf(beside, sizeof beside, "%s.XXXXXX", trust->folder);
    if (!mkdtemp(beside))
        return err_os(err, "making %s", beside);
    if (chmod(beside, 0755) < 0)
        failed = err_os(err, "making %s", beside);
    else if (fill_folder(beside, trust, err) < 0)
        failed = -1;
    else if (rename(beside, trust->folder) == 0)
        return 0;
    else if (errno != EEXIST && errno != ENOTEMPTY)
        failed = err_os(err, "making %s", trust->folder);
    return dir_remove(AT_FDCWD, beside, failed ? &ignored : err) < 0 ? -1 : failed;
}

static int add_folder(const struct trust *trust, struct run *run, struct mount_list *list,
                      struct err *err)
{
    AUTO_FD int fd = open(trust->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct plan_mount *mount;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(err, "looking at %s", trust->folder);
    mount = mount_add(&run->mem, list, MOUNT_BIND, TRUST_TARGET);
    mount->source = arena_text(&run->mem, str_of(trust->folder));
    mount->device = st.st_dev;
    mount->inode = st.st_ino;
    mount->noexec = true;
    mount->is_trust = true;
    /* Root's box cannot walk to it any more when it opens its sources: nobody else may enter the
     * state directory. The run's end closes it. */
    mount->fd = TAKE_FD(fd);
    return 0;
}

bool has_authority(const char *state_dir)
{
    char path[PATH_BYTES_MAX];

    return snprintf(path, sizeof path, AUTHORITY, state_dir) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

void plan_trust_variables(struct run *run)
{
    struct plan_egress *egress = &run->plan.egress;
    const char **env =
        arena_array(&run->mem, const char *, egress->env.n + COUNT(trust_variables) + 1);

    memcpy(env, egress->env.v, egress->env.n * sizeof *env);
    memcpy(env + egress->env.n, trust_variables, sizeof trust_variables);
    egress->env = (struct words){env, egress->env.n + COUNT(trust_variables)};
}

int plan_trust(const char *state_dir, struct run *run, struct mount_list *list, struct err *err)
{
    struct trust trust = {.authority = BUF(TLS_BUNDLE_MAX), .bundle = BUF(TLS_BUNDLE_MAX)};
    int failed;

    if (!run->plan.egress.opens_tls)
        return 0;
    failed = read_authority(state_dir, &trust, err) < 0 ||
             make_bundle(state_dir, &trust, err) < 0 || make_folder(state_dir, &trust, err) < 0 ||
             add_folder(&trust, run, list, err) < 0;
    buf_done(&trust.authority);
    buf_done(&trust.bundle);
    return failed ? refuse(run, REASON_PREFLIGHT_EGRESS_POLICY,
                           "trust in the authority of egress: %.400s", err->text)
                  : 0;
}
