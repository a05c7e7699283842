/* SPDX-License-Identifier: Apache-2.0 */

/* What the `host` root is made of, as one digest: the release, the package database, the folders
 * that are bound, the links, and the files of the synthetic /etc.
 *
 * The package database has megabytes. Its hash is kept in the state folder under the identity,
 * size and times of the file; each run compares those, and reads the file again when any of
 * them differs. The change time cannot be set back by anybody but root with the clock. */

#include "flow/equip/memory.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/crypto/crypto.h"
#include "lib/json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FINGERPRINT_BYTES 256
#define OS_RELEASE "/usr/lib/os-release"

static const char *const package_databases[] = {"/var/lib/dpkg/status", "/lib/apk/db/installed",
                                                "/var/lib/rpm/rpmdb.sqlite"};

static int hash_file(int fd, char out[MODEL_HASH_BYTES], struct err *err)
{
    char chunk[65536];
    struct hasher hasher;
    struct hash hash;
    ssize_t got;

    hasher_init(&hasher);
    while ((got = read(fd, chunk, sizeof chunk)) > 0)
        hasher_add(&hasher, chunk, (size_t)got);
    if (got < 0)
        return err_os(err, "reading");
    hasher_end(&hasher, &hash);
    hash_text(&hash, out);
    return 0;
}

static void fingerprint_of(const char *path, const struct stat *st, char out[FINGERPRINT_BYTES])
{
    (void)snprintf(out, FINGERPRINT_BYTES, "%s %llu %llu %lld %lld.%09ld %lld.%09ld", path,
                   (unsigned long long)st->st_dev, (unsigned long long)st->st_ino,
                   (long long)st->st_size, (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
                   (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
}

/* The kept line is "fingerprint hash\n". */
static bool recall(const char *cache, const char *fingerprint, char out[MODEL_HASH_BYTES])
{
    AUTO_BUF struct buf line = BUF(FINGERPRINT_BYTES + MODEL_HASH_BYTES + 8);
    struct err ignored;
    struct str hash;
    struct hash parsed;
    size_t n = strlen(fingerprint);

    if (file_read(AT_FDCWD, cache, &line, &ignored) < 0 || line.n != n + MODEL_HASH_BYTES + 1 ||
        strncmp(line.p, fingerprint, n) != 0)
        return false;
    hash = (struct str){line.p + n + 1, MODEL_HASH_BYTES - 1};
    if (!hash_from_text(hash, &parsed))
        return false;
    memcpy(out, hash.p, hash.n);
    out[hash.n] = '\0';
    return true;
}

static void keep(const char *cache, const char *fingerprint, const char *hash)
{
    char line[FINGERPRINT_BYTES + MODEL_HASH_BYTES + 2];
    struct err ignored; /* the next run simply hashes again */
    int n = snprintf(line, sizeof line, "%s %s\n", fingerprint, hash);

    if (n > 0 && file_replace(cache, line, (size_t)n, 0600, &ignored) < 0)
        return;
}

static int hash_packages(const char *state_dir, struct run *run, char out[MODEL_HASH_BYTES],
                         struct err *err)
{
    const char *cache = arena_printf(&run->mem, "%s/host-packages", state_dir);

    for (size_t i = 0; i < COUNT(package_databases); i++) {
        AUTO_FD int fd = open(package_databases[i], O_RDONLY | O_CLOEXEC | O_NOCTTY);
        char fingerprint[FINGERPRINT_BYTES];
        struct stat st;

        if (fd < 0)
            continue;
        if (fstat(fd, &st) < 0)
            return err_os(err, "looking at %s", package_databases[i]);
        fingerprint_of(package_databases[i], &st, fingerprint);
        if (recall(cache, fingerprint, out))
            return 0;
        if (hash_file(fd, out, err) < 0)
            return err_in(err, "%s", package_databases[i]);
        keep(cache, fingerprint, out);
        return 0;
    }
    (void)strcpy(out, "none");
    return 0;
}

static int hash_release(char out[MODEL_HASH_BYTES], struct err *err)
{
    AUTO_FD int fd = open(OS_RELEASE, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        (void)strcpy(out, "none");
        return 0;
    }
    return hash_file(fd, out, err);
}

bool counts_for_digest(const struct plan_mount *mount)
{
    return !mount->from_user && !mount->is_trust &&
           (mount->kind == MOUNT_BIND || mount->kind == MOUNT_SYMLINK || mount->kind == MOUNT_FILE);
}

static struct json *root_array(struct run *run)
{
    struct arena *mem = &run->mem;
    struct json *list = json_array(mem);

    for (size_t i = 0; i < run->plan.mount_n; i++) {
        const struct plan_mount *mount = &run->plan.mounts[i];
        struct json *entry;

        if (!counts_for_digest(mount))
            continue;
        entry = json_object(mem);
        json_put_text(mem, entry, "kind",
                      mount->kind == MOUNT_BIND      ? "bind"
                      : mount->kind == MOUNT_SYMLINK ? "link"
                                                     : "file");
        json_put_bytes(mem, entry, "content", str_of(mount->source));
        json_put_text(mem, entry, "path", mount->target);
        json_push(list, entry);
    }
    return list;
}

static int host_digest(const char *state_dir, struct run *run, char out[MODEL_HASH_BYTES],
                       struct err *err)
{
    AUTO_BUF struct buf text = BUF(JSON_TEXT_MAX);
    struct arena *mem = &run->mem;
    struct json *root = json_object(mem);
    char hash[MODEL_HASH_BYTES];

    json_put_text(mem, root, "image", run->plan.image);
    if (run->offer.runs_nothing) {
        json_put_text(mem, root, "provider", run->offer.provider);
    } else {
        if (hash_packages(state_dir, run, hash, err) < 0)
            return -1;
        json_put_text(mem, root, "packages", hash);
        if (hash_release(hash, err) < 0)
            return -1;
        json_put_text(mem, root, "os_release", hash);
        json_put(root, "root", root_array(run));
    }
    if (json_canonical(root, &text, err) < 0)
        return -1;
    hash_text_of(buf_str(&text), out);
    return 0;
}

static void look_at_files(struct looks *looks)
{
    looks_begin(looks);
    for (size_t i = 0; i < COUNT(package_databases); i++)
        looks_add(looks, package_databases[i], LOOK_CONTENT);
    looks_add(looks, OS_RELEASE, LOOK_CONTENT);
}

int image_digest(struct plan_memory *memory, const char *state_dir, struct run *run,
                 char out[MODEL_HASH_BYTES], struct err *err)
{
    struct image image;
    struct looks looks;

    if (run->offer.runs_nothing)
        return host_digest(state_dir, run, out, err);
    if (!is_host_image(run)) {
        if (image_open(state_dir, run, &image, err) < 0)
            return -1;
        memcpy(out, image.digest, MODEL_HASH_BYTES);
        return 0;
    }
    if (memory_digest(memory, run, out))
        return 0;
    look_at_files(&looks);
    if (host_digest(state_dir, run, out, err) < 0)
        return -1;
    memory_keep_digest(memory, run, &looks, out);
    return 0;
}
