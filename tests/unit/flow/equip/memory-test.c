/* SPDX-License-Identifier: Apache-2.0 */

/* What is remembered of this machine holds only while the machine is as it was. */

#include "flow/equip/memory.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

/* Long ago, as far as what was made a moment ago is concerned. */
#define LATER_S 1000

static char dir[] = "/tmp/brig-memory-XXXXXX";

static void enter_dir(void)
{
    CHECK(mkdtemp(dir) != NULL);
    CHECK_INT(chdir(dir), 0);
}

static void leave_dir(void)
{
    char command[64];

    (void)snprintf(command, sizeof command, "rm -rf '%s'", dir);
    CHECK_INT(system(command), 0); /* NOLINT: our own fixed name */
}

static void put_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    CHECK_INT(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    CHECK_INT(close(fd), 0);
}

/* Until the clock that files get their times from has gone on. */
static void let_time_pass(void)
{
    struct stat place, probe;

    if (stat("place", &place) < 0)
        return;
    do {
        put_file("probe", "");
        CHECK_INT(stat("probe", &probe), 0);
    } while (probe.st_ctim.tv_sec == place.st_ctim.tv_sec &&
             probe.st_ctim.tv_nsec == place.st_ctim.tv_nsec);
}

static void look(struct looks *looks, enum look_for what)
{
    looks_begin(looks);
    looks->now_s += LATER_S;
    looks_add(looks, "place", what);
    let_time_pass();
}

static void replace_file(void)
{
    put_file("other", "text");
    CHECK_INT(rename("other", "place"), 0);
}

static void remove_file(void)
{
    CHECK_INT(unlink("place"), 0);
}

static void write_file(void)
{
    put_file("place", "tex2");
}

static void set_times_back(void)
{
    struct stat st;

    CHECK_INT(stat("place", &st), 0);
    put_file("place", "tex3");
    CHECK_INT(utimensat(AT_FDCWD, "place", (struct timespec[]){st.st_atim, st.st_mtim}, 0), 0);
}

static void make_folder_of_it(void)
{
    CHECK_INT(unlink("place"), 0);
    CHECK_INT(mkdir("place", 0700), 0);
}

TEST(a_changed_place_does_not_hold)
{
    static const struct {
        void (*change)(void);
        bool which_changes;
    } cases[] = {
        {replace_file,      true },
        {remove_file,       true },
        {write_file,        false},
        {set_times_back,    false},
        {make_folder_of_it, true },
    };

    enter_dir();
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct looks which, content;

        (void)rmdir("place");
        put_file("place", "text");
        look(&which, LOOK_WHICH);
        look(&content, LOOK_CONTENT);
        CHECK(looks_hold(&which) && looks_hold(&content));
        cases[i].change();
        CHECK_INT(looks_hold(&which), !cases[i].which_changes);
        CHECK(!looks_hold(&content));
    }
    leave_dir();
}

TEST(a_place_that_appears_does_not_hold)
{
    struct looks looks;

    enter_dir();
    look(&looks, LOOK_WHICH);
    CHECK(looks_hold(&looks));
    put_file("place", "text");
    CHECK(!looks_hold(&looks));
    leave_dir();
}

TEST(a_folder_with_another_name_in_it_does_not_hold)
{
    struct looks looks;

    enter_dir();
    CHECK_INT(mkdir("place", 0700), 0);
    look(&looks, LOOK_CONTENT);
    CHECK(looks_hold(&looks));
    put_file("place/new", "");
    CHECK(!looks_hold(&looks));
    leave_dir();
}

/* A second change within the same step of the clock would leave the same times. */
TEST(what_changed_just_now_does_not_hold)
{
    struct looks looks;

    enter_dir();
    put_file("place", "text");
    looks_begin(&looks);
    looks_add(&looks, "place", LOOK_CONTENT);
    CHECK(looks.unsettled);
    CHECK(!looks_hold(&looks));
    leave_dir();
}

TEST(more_places_than_there_is_room_for_do_not_hold)
{
    struct looks looks;

    looks_begin(&looks);
    for (size_t i = 0; i < LOOKS_MAX; i++)
        looks_add(&looks, "/proc/self", LOOK_WHICH);
    CHECK(looks_hold(&looks));
    looks_add(&looks, "/proc/self", LOOK_WHICH);
    CHECK(!looks_hold(&looks));
}

static void set_up(struct run *run)
{
    run_init(run);
    run->verdict.kind = VERDICT_ALLOW;
    run->plan.image = "host";
    run->plan.hostname = "sandbox";
    run->plan.inside_uid = run->plan.inside_gid = 1000;
    run->plan.limits.of[LIMIT_MEMORY].value = 1 << 30;
}

TEST(a_root_is_remembered_for_what_it_was_made_for)
{
    struct plan_memory *memory = plan_memory_new();
    struct mount_list list = {0}, out = {0};
    struct looks looks;
    struct run run;

    enter_dir();
    put_file("place", "text");
    look(&looks, LOOK_CONTENT);
    set_up(&run);
    mount_add(&run.mem, &list, MOUNT_BIND, "/target")->source = "/source";
    CHECK(!memory_root(memory, &run, 7, &out));
    memory_keep_root(memory, &run, 7, &looks, &list);
    CHECK(memory_root(memory, &run, 7, &out));
    CHECK_INT(out.n, 1);
    CHECK_TEXT(out.of[0].target, "/target");
    CHECK_TEXT(out.of[0].source, "/source");

    CHECK(!memory_root(memory, &run, 8, &out)); /* something was mounted */
    run.plan.inside_uid++;
    CHECK(!memory_root(memory, &run, 7, &out));
    run.plan.inside_uid--;
    run.plan.limits.of[LIMIT_MEMORY].value++;
    CHECK(!memory_root(memory, &run, 7, &out));
    run.plan.limits.of[LIMIT_MEMORY].value--;
    CHECK(memory_root(memory, &run, 7, &out));
    write_file();
    CHECK(!memory_root(memory, &run, 7, &out));
    run_done(&run);
    plan_memory_free(memory);
    leave_dir();
}

TEST(a_digest_is_remembered_for_what_it_covers)
{
    static struct plan_mount mounts[] = {
        {.kind = MOUNT_BIND, .target = "/usr",   .source = "/usr"},
        {.kind = MOUNT_FILE, .target = "/etc/x", .source = "text"},
    };
    struct plan_mount changed[] = {mounts[0], mounts[1], mounts[0]};
    struct plan_memory *memory = plan_memory_new();
    char digest[MODEL_HASH_BYTES] = "sha256:1", out[MODEL_HASH_BYTES];
    struct looks looks;
    struct run run;

    enter_dir();
    put_file("place", "text");
    look(&looks, LOOK_CONTENT);
    set_up(&run);
    run.plan.mounts = mounts;
    run.plan.mount_n = COUNT(mounts);
    memory_keep_digest(memory, &run, &looks, digest);
    CHECK(memory_digest(memory, &run, out));
    CHECK_TEXT(out, "sha256:1");

    run.plan.mounts = changed;
    changed[1].source = "texT";
    CHECK(!memory_digest(memory, &run, out));
    changed[1].source = "text";
    CHECK(memory_digest(memory, &run, out));
    run.plan.mount_n = 3;
    CHECK(!memory_digest(memory, &run, out));
    run.plan.mount_n = 1;
    CHECK(!memory_digest(memory, &run, out));
    run.plan.mount_n = 2;
    write_file();
    CHECK(!memory_digest(memory, &run, out));
    run_done(&run);
    plan_memory_free(memory);
    leave_dir();
}

static uint64_t inode_planned(const struct run *run)
{
    for (size_t i = 0; i < run->plan.mount_n; i++)
        if (strcmp(run->plan.mounts[i].target, "/etc/ld.so.conf") == 0)
            return run->plan.mounts[i].inode;
    return 0;
}

static void plan_again(struct plan_memory *memory, struct run *run)
{
    struct err err;

    set_up(run);
    CHECK_INT(plan_mounts(memory, dir, NULL, run, &err), 0);
    CHECK_INT(run->verdict.kind, VERDICT_ALLOW);
}

/* The whole plan, before and after something of the machine is another thing. */
TEST(a_changed_machine_gives_another_plan)
{
    struct plan_memory *memory = plan_memory_new();
    struct run before, same, after;
    struct stat st;

    enter_dir();
    put_file("other", "none\n");
    if (access("/etc/ld.so.conf", F_OK) < 0)
        test_skip("this machine has no /etc/ld.so.conf");
    if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) < 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        test_skip("mount namespaces cannot be made here");
    plan_again(memory, &before);
    plan_again(memory, &same);
    CHECK_INT(inode_planned(&same), inode_planned(&before));
    CHECK_INT(mount("other", "/etc/ld.so.conf", NULL, MS_BIND, NULL), 0);
    plan_again(memory, &after);
    CHECK_INT(stat("other", &st), 0);
    CHECK_INT(inode_planned(&after), st.st_ino);
    CHECK(inode_planned(&before) != st.st_ino);
    run_done(&before);
    run_done(&same);
    run_done(&after);
    plan_memory_free(memory);
    leave_dir();
}

TEST(a_posture_is_remembered_with_every_fact)
{
    static const char *const interfaces[] = {"lo"};
    struct plan_memory *memory = plan_memory_new();
    struct posture fresh;
    struct run run;
    struct err err;

    set_up(&run);
    run.offer.provider = "local";
    for (unsigned round = 0; round < 20; round++) {
        struct mount_fact mount = {
            .target = "/", .kind = round % 4 < 2 ? "tmpfs" : "bind", .source = ""};
        struct plan_path path = {.path = "/usr", .exec = round % 5 == 0};

        run.plan.paths = &path;
        run.plan.path_n = 1;
        run.intended = (struct facts){.provider_version = "local/1",
                                      .image_digest = "sha256:1",
                                      .mounts = &mount,
                                      .mount_n = 1,
                                      .interfaces = interfaces,
                                      .interface_n = round % 2,
                                      .seccomp_filters = round % 3};
        CHECK_INT(memory_posture(memory, &run, &err), 0);
        CHECK_INT(posture_of(&run, &run.intended, &fresh, &err), 0);
        CHECK_TEXT(run.planned.preimage_hash, fresh.preimage_hash);
        /* and again, now that it is known */
        memset(&run.planned, 0, sizeof run.planned);
        CHECK_INT(memory_posture(memory, &run, &err), 0);
        CHECK_TEXT(run.planned.preimage_hash, fresh.preimage_hash);
        CHECK_TEXT(run.planned.sandbox_spec_hash, fresh.sandbox_spec_hash);
    }
    run_done(&run);
    plan_memory_free(memory);
}
