/* SPDX-License-Identifier: Apache-2.0 */

/* Links, mounts and exchanged files: each refusal beside a control that is let through. */

#include "test.h"

#include "lib/advisory/advisory.h"
#include "lib/base/attrs.h"
#include "lib/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
    char path[64];
    int root;
    int outside;
};

static void put(int dir, const char *path, const char *text)
{
    int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    if (fd >= 0)
        (void)close(fd);
}

static struct place make(void)
{
    struct place place = {.path = "/tmp/advisory-XXXXXX"};
    int top;

    CHECK(mkdtemp(place.path) != NULL);
    top = open(place.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(mkdirat(top, "root", 0755) == 0 && mkdirat(top, "outside", 0755) == 0);
    place.root = openat(top, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    place.outside = openat(top, "outside", O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(mkdirat(place.root, "input", 0755) == 0 && mkdirat(place.root, "output", 0755) == 0 &&
          mkdirat(place.root, "tmp", 0755) == 0);
    put(place.root, "output/a", "inside");
    put(place.outside, "secret", "secret");
    (void)close(top);
    return place;
}

static void unmake(struct place *place)
{
    struct err err;

    (void)close(place->root);
    (void)close(place->outside);
    CHECK_INT(dir_remove(AT_FDCWD, place->path, &err), 0);
}

/* "ok", the rule of a refusal, or the name of another failure. */
static const char *try_open(struct place *place, const char *path, enum advisory_access access)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct advisory_opened opened = ADVISORY_OPENED;
    const char *rule = NULL;
    struct err err;

    if (advisory_path_open(&mem, place->root, str_of(path), access, &opened, &rule, &err) < 0)
        return rule ? rule : err_name(err.code);
    advisory_opened_done(&opened);
    return "ok";
}

TEST(what_is_inside_is_opened)
{
    struct place place = make();

    CHECK_TEXT(try_open(&place, "output/a", ACCESS_READ), "ok");
    CHECK_TEXT(try_open(&place, "/sandbox/output/a", ACCESS_MODIFY), "ok");
    CHECK_TEXT(try_open(&place, "output", ACCESS_LIST), "ok");
    CHECK_TEXT(try_open(&place, "output/new", ACCESS_CREATE), "ok");
    CHECK(faccessat(place.root, "output/new", F_OK, 0) < 0 && errno == ENOENT);
    CHECK_TEXT(try_open(&place, "output/a", ACCESS_CREATE), "conflict");
    CHECK_TEXT(try_open(&place, "output/none", ACCESS_READ), "not_found");
    CHECK_TEXT(try_open(&place, "output/a/b", ACCESS_READ), "not_found");
    unmake(&place);
}

TEST(words_are_asked_again)
{
    struct place place = make();

    CHECK_TEXT(try_open(&place, "output/../../outside/secret", ACCESS_READ), "R2.parent");
    CHECK_TEXT(try_open(&place, "/etc/passwd", ACCESS_READ), "R3.absolute");
    CHECK_TEXT(try_open(&place, "input/x", ACCESS_CREATE), "R7.input");
    CHECK_TEXT(try_open(&place, "output/a", ACCESS_EXECUTE), "R7.execute");
    unmake(&place);
}

TEST(no_symbolic_link_is_followed)
{
    struct place place = make();

    CHECK(symlinkat("/etc", place.root, "output/etc") == 0);
    CHECK(symlinkat("../output/a", place.root, "output/self") == 0);
    CHECK(symlinkat("../output", place.root, "output/again") == 0);
    CHECK(symlinkat("../../outside/secret", place.root, "output/secret") == 0);
    CHECK(symlinkat("/nowhere", place.root, "output/dangling") == 0);
    CHECK_TEXT(try_open(&place, "output/etc", ACCESS_LIST), "R6.symlink");
    CHECK_TEXT(try_open(&place, "output/etc/passwd", ACCESS_READ), "R6.symlink");
    CHECK_TEXT(try_open(&place, "output/self", ACCESS_READ), "R6.symlink");
    CHECK_TEXT(try_open(&place, "output/again/a", ACCESS_READ), "R6.symlink");
    CHECK_TEXT(try_open(&place, "output/secret", ACCESS_MODIFY), "R6.symlink");
    CHECK_TEXT(try_open(&place, "output/secret", ACCESS_DELETE), "R6.symlink");
    CHECK_TEXT(try_open(&place, "output/dangling", ACCESS_CREATE), "conflict");
    CHECK_TEXT(try_open(&place, "output/again/new", ACCESS_CREATE), "R6.symlink");
    unmake(&place);
}

TEST(a_second_name_keeps_a_file_from_being_changed)
{
    struct place place = make();

    CHECK(linkat(place.outside, "secret", place.root, "output/hard", 0) == 0);
    CHECK_TEXT(try_open(&place, "output/hard", ACCESS_READ), "ok");
    CHECK_TEXT(try_open(&place, "output/hard", ACCESS_MODIFY), "R6.hard_link");
    CHECK_TEXT(try_open(&place, "output/hard", ACCESS_DELETE), "R6.hard_link");
    unmake(&place);
}

TEST(pipes_and_folders_are_no_files)
{
    struct place place = make();

    CHECK(mkfifoat(place.root, "output/pipe", 0644) == 0);
    CHECK(mkdirat(place.root, "output/dir", 0755) == 0);
    CHECK_TEXT(try_open(&place, "output/pipe", ACCESS_READ), "R6.kind");
    CHECK_TEXT(try_open(&place, "output/dir", ACCESS_DELETE), "R6.kind");
    unmake(&place);
}

TEST(no_mount_is_crossed)
{
    struct place place = make();
    char path[128];

    CHECK(mkdirat(place.root, "output/mnt", 0755) == 0);
    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0) {
        unmake(&place);
        test_skip("no mount namespace can be made here");
    }
    (void)snprintf(path, sizeof path, "%s/root/output/mnt", place.path);
    CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    CHECK(mount("none", path, "tmpfs", 0, NULL) == 0);
    (void)close(place.root); /* the old one is of the namespace before */
    (void)snprintf(path, sizeof path, "%s/root", place.path);
    place.root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    put(place.root, "output/mnt/x", "x");
    CHECK_TEXT(try_open(&place, "output/mnt/x", ACCESS_READ), "R6.mount");
    CHECK_TEXT(try_open(&place, "output/a", ACCESS_READ), "ok");
    (void)snprintf(path, sizeof path, "%s/root/output/mnt", place.path);
    CHECK(umount2(path, MNT_DETACH) == 0);
    unmake(&place);
}

/* ---- while somebody exchanges files ---- */

struct swapper {
    struct place *place;
    atomic_bool stop;
};

/* output/dir is by turns a folder with a file, and a link to a folder outside. */
static void *swap(void *arg)
{
    struct swapper *swapper = arg;

    while (!atomic_load(&swapper->stop))
        (void)renameat2(swapper->place->root, "output/dir", swapper->place->root, "output/other",
                        RENAME_EXCHANGE);
    return NULL;
}

TEST(a_race_is_won_by_nobody)
{
    struct place place = make();
    struct swapper swapper = {.place = &place};
    unsigned opened_n = 0, refused_n = 0;
    pthread_t thread;

    CHECK(mkdirat(place.root, "output/dir", 0755) == 0);
    put(place.root, "output/dir/secret", "inside");
    CHECK(symlinkat("../../outside", place.root, "output/other") == 0);
    CHECK(pthread_create(&thread, NULL, swap, &swapper) == 0);
    /* Both must have been met; a machine on which they are not stops at the second number. */
    for (unsigned i = 0; i < 2000 || ((!opened_n || !refused_n) && i < 2000000); i++) {
        AUTO_ARENA struct arena mem = ARENA(1 << 20);
        struct advisory_opened opened = ADVISORY_OPENED;
        const char *rule = NULL;
        char text[8] = "";
        struct err err;

        if (advisory_path_open(&mem, place.root, STR_LIT("output/dir/secret"), ACCESS_READ, &opened,
                               &rule, &err) < 0) {
            CHECK(rule && strcmp(rule, "R6.symlink") == 0);
            refused_n++;
            continue;
        }
        CHECK(read(opened.fd, text, 6) == 6 && strcmp(text, "inside") == 0);
        advisory_opened_done(&opened);
        opened_n++;
    }
    atomic_store(&swapper.stop, true);
    (void)pthread_join(thread, NULL);
    CHECK(opened_n && refused_n);
    unmake(&place);
}

TEST(only_what_was_looked_at_is_removed)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct place place = make();
    struct advisory_opened opened = ADVISORY_OPENED;
    const char *rule;
    struct err err;

    CHECK_INT(advisory_path_open(&mem, place.root, STR_LIT("output/a"), ACCESS_DELETE, &opened,
                                 &rule, &err),
              0);
    put(place.root, "output/b", "another");
    CHECK(renameat(place.root, "output/b", place.root, "output/a") == 0);
    CHECK_INT(advisory_path_remove(place.root, &opened, &err), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
    CHECK(faccessat(place.root, "output/a", F_OK, 0) == 0);
    advisory_opened_done(&opened);

    CHECK_INT(advisory_path_open(&mem, place.root, STR_LIT("output/a"), ACCESS_DELETE, &opened,
                                 &rule, &err),
              0);
    CHECK_INT(advisory_path_remove(place.root, &opened, &err), 0);
    CHECK(faccessat(place.root, "output/a", F_OK, 0) < 0 && errno == ENOENT);
    advisory_opened_done(&opened);
    unmake(&place);
}

TEST(a_move_overwrites_nothing)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct place place = make();
    struct advisory_opened opened = ADVISORY_OPENED;
    const char *rule;
    struct err err;

    put(place.root, "output/taken", "taken");
    CHECK_INT(advisory_path_open(&mem, place.root, STR_LIT("output/a"), ACCESS_DELETE, &opened,
                                 &rule, &err),
              0);
    CHECK_INT(advisory_path_move(&mem, place.root, &opened, STR_LIT("output/taken"), &rule, &err),
              -1);
    CHECK_INT(err.code, ERR_CONFLICT);
    CHECK_INT(advisory_path_move(&mem, place.root, &opened, STR_LIT("input/x"), &rule, &err), -1);
    CHECK_TEXT(rule, "R7.input");
    CHECK_INT(advisory_path_move(&mem, place.root, &opened, STR_LIT("output/b"), &rule, &err), 0);
    CHECK(faccessat(place.root, "output/b", F_OK, 0) == 0);
    advisory_opened_done(&opened);
    unmake(&place);
}

static int is_the_same(void *context, const struct advisory_opened *opened, struct err *err)
{
    struct stat st;

    (void)err;
    ++*(unsigned *)context;
    CHECK(fstat(opened->fd, &st) == 0 && st.st_size == 6);
    return 0;
}

static int put_content(struct place *place, const char *path, struct str content, unsigned *asked,
                       struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct advisory_opened opened = ADVISORY_OPENED;
    bool is_new = faccessat(place->root, path, F_OK, 0) < 0;
    const char *rule;
    int failed;

    CHECK_INT(advisory_path_open(&mem, place->root, str_of(path),
                                 is_new ? ACCESS_CREATE : ACCESS_MODIFY, &opened, &rule, err),
              0);
    failed = advisory_path_put(place->root, &opened, content, is_the_same, asked, err);
    advisory_opened_done(&opened);
    return failed;
}

static int count_names(int root)
{
    int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fdopendir(fd);
    int n = -2; /* "." and ".." */

    CHECK(dir != NULL);
    while (dir && readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

static off_t size_of(const struct place *place, const char *path)
{
    struct stat st;

    return fstatat(place->root, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_size : -1;
}

/* A limit that the kernel holds, in the middle of the content. */
TEST(content_is_there_whole_or_not_at_all)
{
    static char content[64 * 1024];
    const struct rlimit few = {4096, 4096};
    struct place place = make();
    unsigned asked = 0;
    struct err err;

    memset(content, 'x', sizeof content);
    CHECK_INT(put_content(&place, "output/b", STR_LIT("six by"), &asked, &err), 0);
    CHECK_INT(asked, 0);
    CHECK_INT(put_content(&place, "output/b", STR_LIT("six of"), &asked, &err), 0);
    CHECK_INT(asked, 1);
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &few) == 0);
    CHECK_INT(put_content(&place, "output/a", (struct str){content, sizeof content}, &asked, &err),
              -1);
    CHECK(strstr(err.text, "File too large") != NULL);
    CHECK_INT(size_of(&place, "output/a"), 6);
    CHECK_INT(put_content(&place, "output/c", (struct str){content, sizeof content}, &asked, &err),
              -1);
    CHECK_INT(size_of(&place, "output/c"), -1);
    CHECK_INT(asked, 1);
    CHECK_INT(count_names(place.root), 3); /* nothing lies beside the three zones */
    unmake(&place);
}

/* A name that came after it was looked at. */
TEST(what_is_new_overwrites_nothing)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct place place = make();
    struct advisory_opened opened = ADVISORY_OPENED;
    const char *rule;
    struct err err;

    CHECK_INT(advisory_path_open(&mem, place.root, STR_LIT("output/b"), ACCESS_CREATE, &opened,
                                 &rule, &err),
              0);
    CHECK(symlinkat("../../outside/secret", place.root, "output/b") == 0);
    CHECK_INT(advisory_path_put(place.root, &opened, STR_LIT("new"), is_the_same, NULL, &err), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
    CHECK_INT(size_of(&place, "output/b"), (int)strlen("../../outside/secret"));
    advisory_opened_done(&opened);
    unmake(&place);
}

/* A link that took its place stays, and what it leads to, too. */
TEST(what_is_changed_is_what_was_looked_at)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct place place = make();
    struct advisory_opened opened = ADVISORY_OPENED;
    unsigned asked = 0;
    const char *rule;
    struct err err;

    CHECK_INT(advisory_path_open(&mem, place.root, STR_LIT("output/a"), ACCESS_MODIFY, &opened,
                                 &rule, &err),
              0);
    CHECK(unlinkat(place.root, "output/a", 0) == 0 &&
          symlinkat("../../outside/secret", place.root, "output/a") == 0);
    CHECK_INT(advisory_path_put(place.root, &opened, STR_LIT("new"), is_the_same, &asked, &err),
              -1);
    CHECK_INT(err.code, ERR_CONFLICT);
    CHECK_INT(asked, 0);
    CHECK_INT(size_of(&place, "output/a"), (int)strlen("../../outside/secret"));
    CHECK_TEXT(try_open(&place, "output/a", ACCESS_READ), "R6.symlink");
    advisory_opened_done(&opened);
    unmake(&place);
}

TEST(a_target_is_told_by_its_content)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct place place = make();
    struct advisory_target before, after;
    const char *rule;
    struct err err;

    CHECK_INT(advisory_target_look(&mem, place.root, STR_LIT("output/a"), &before, &rule, &err), 0);
    CHECK(before.exists);
    CHECK_INT(before.size_bytes, 6);
    put(place.root, "output/a", "inSide");
    CHECK_INT(advisory_target_look(&mem, place.root, STR_LIT("output/a"), &after, &rule, &err), 0);
    CHECK_INT(after.inode, before.inode);
    CHECK(strcmp(before.sha256, after.sha256) != 0);
    CHECK_INT(advisory_target_look(&mem, place.root, STR_LIT("output/none"), &after, &rule, &err),
              0);
    CHECK(!after.exists);
    unmake(&place);
}
