/* SPDX-License-Identifier: Apache-2.0 */

/* What --mount may name: judged by what a source is, not by how it is spelled. */

#include "flow/equip/parts.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct place {
    char dir[64];
    char state[80];
    char project[80];
};

static void enter_place(struct place *place)
{
    (void)strcpy(place->dir, "/tmp/brig-mounts-XXXXXX");
    CHECK(mkdtemp(place->dir) != NULL);
    CHECK_INT(chdir(place->dir), 0);
    (void)snprintf(place->state, sizeof place->state, "%s/state", place->dir);
    (void)snprintf(place->project, sizeof place->project, "%s/project", place->dir);
    CHECK_INT(mkdir("state", 0700) | mkdir("project", 0700) | mkdir("project/sub", 0700), 0);
    CHECK_INT(setenv("HOME", place->dir, 1), 0);
}

static void leave_place(const struct place *place)
{
    char command[128];

    (void)snprintf(command, sizeof command, "rm -rf '%s'", place->dir);
    CHECK_INT(system(command), 0); /* NOLINT: our own fixed name */
}

static struct plan_memory *memory;

static void set_up(struct run *run)
{
    if (!memory)
        memory = plan_memory_new();
    run_init(run);
    run->verdict.kind = VERDICT_ALLOW;
    run->plan.image = "host";
    run->plan.inside_uid = run->plan.inside_gid = 1000;
    run->plan.limits.of[LIMIT_MEMORY].value = 1 << 30;
}

static void tear_down(struct run *run)
{
    for (size_t i = 0; i < run->plan.mount_n; i++)
        if (run->plan.mounts[i].fd >= 0)
            (void)close(run->plan.mounts[i].fd);
    run_done(run);
}

/* The verdict text for one mount, "" when it is allowed. */
static void check_mount(const struct place *place, const char *source, const char *target,
                        const char *said)
{
    struct mount_ask ask = {source, target, MOUNT_RO};
    struct run run;
    struct err err;

    set_up(&run);
    run.action.mounts = &ask;
    run.action.mount_n = 1;
    CHECK_INT(plan_mounts(memory, place->state, NULL, &run, &err), 0);
    if (*said == '\0') {
        CHECK_INT(run.verdict.kind, VERDICT_ALLOW);
    } else {
        CHECK_INT(run.verdict.kind, VERDICT_DENY);
        CHECK_TEXT(reason_code(run.verdict.reason), "MOUNT_FORBIDDEN");
        if (!strstr(run.verdict.text, said))
            CHECK_TEXT(run.verdict.text, said);
    }
    tear_down(&run);
}

TEST(targets)
{
    static const struct {
        const char *target;
        const char *said;
    } cases[] = {
        {"/workspace",         ""                          },
        {"/workspace/a",       ""                          },
        {"/mnt/x",             ""                          },
        {"/opt/x",             ""                          },
        {"/sandbox/input",     ""                          },
        {"/...",               ""                          },
        {"/mnt/..x",           ""                          },
        {"",                   "write an absolute path"    },
        {"mnt",                "write an absolute path"    },
        {"./mnt",              "write an absolute path"    },
        {"/",                  "write an absolute path"    },
        {"//",                 "write an absolute path"    },
        {"/mnt/",              "write an absolute path"    },
        {"/mnt//x",            "write an absolute path"    },
        {"/mnt/.",             "write an absolute path"    },
        {"/mnt/./x",           "write an absolute path"    },
        {"/mnt/..",            "write an absolute path"    },
        {"/mnt/../etc",        "write an absolute path"    },
        {"/etc",               "/etc is Brig's own"        },
        {"/etc/ld.so.preload", "/etc is Brig's own"        },
        {"/usr/bin/env",       "/usr is Brig's own"        },
        {"/proc/self",         "/proc is Brig's own"       },
        {"/dev/null",          "/dev is Brig's own"        },
        {"/sys",               "/sys is Brig's own"        },
        {"/run/x",             "/run is Brig's own"        },
        {"/tmp",               "/tmp is Brig's own"        },
        {"/sandbox",           "/sandbox/tmp is Brig's own"},
        {"/sandbox/tmp/x",     "/sandbox/tmp is Brig's own"},
    };
    struct place place;

    enter_place(&place);
    for (size_t i = 0; i < COUNT(cases); i++)
        check_mount(&place, "project", cases[i].target, cases[i].said);
    leave_place(&place);
}

TEST(sources)
{
    static const struct {
        const char *source;
        const char *said;
    } cases[] = {
        {"project",                  ""                                },
        {"project/sub",              ""                                },
        {"./project/../project",     ""                                },
        {"link-to-project",          ""                                },
        {"file",                     ""                                },
        {"/",                        "is, contains or lies in"         },
        {"/etc",                     "/etc, which is never handed out" },
        {"/etc/passwd",              "/etc, which is never handed out" },
        {"/proc/self",               "/proc, which is never handed out"},
        {"/proc/self/cwd/../../etc", "/etc, which is never handed out" },
        {"link-to-etc",              "/etc, which is never handed out" },
        {"/sys",                     "/sys, which is never handed out" },
        {"/dev/shm",                 "/dev, which is never handed out" },
        {"/run",                     "/run, which is never handed out" },
        {"/var",                     "which is never handed out"       },
        {"/dev/null",                "only folders and files"          },
        {"fifo",                     "only folders and files"          },
        {"nothing",                  "No such file or directory"       },
        {"dangling",                 "No such file or directory"       },
        {"state",                    "Brig's own state"                },
        {".",                        "Brig's own state"                },
        {".ssh",                     "which is never handed out"       },
        {".netrc",                   "which is never handed out"       },
        {"link-to-key",              "which is never handed out"       },
    };
    struct place place;

    enter_place(&place);
    CHECK_INT(mkdir(".ssh", 0700), 0);
    CHECK_INT(close(creat("file", 0600)) | close(creat(".netrc", 0600)) |
                  close(creat(".ssh/id", 0600)),
              0);
    CHECK_INT(symlink("project", "link-to-project") | symlink("/etc", "link-to-etc") |
                  symlink("gone", "dangling") | symlink(".ssh/id", "link-to-key") |
                  mkfifo("fifo", 0600),
              0);
    for (size_t i = 0; i < COUNT(cases); i++)
        check_mount(&place, cases[i].source, "/mnt/x", cases[i].said);
    leave_place(&place);
}

TEST(what_was_validated_is_what_is_kept)
{
    struct mount_ask ask = {"link-to-project", "/workspace", MOUNT_RW};
    struct place place;
    struct stat st;
    struct run run;
    struct err err;
    bool found = false;

    enter_place(&place);
    CHECK_INT(symlink("project", "link-to-project"), 0);
    CHECK_INT(stat("project", &st), 0);
    set_up(&run);
    run.action.mounts = &ask;
    run.action.mount_n = 1;
    CHECK_INT(plan_mounts(memory, place.state, NULL, &run, &err), 0);
    CHECK_TEXT(run.plan.workdir, "/workspace");
    for (size_t i = 0; i < run.plan.mount_n; i++) {
        const struct plan_mount *mount = &run.plan.mounts[i];

        if (!mount->from_user)
            continue;
        found = true;
        CHECK_TEXT(mount->source, place.project);
        CHECK_TEXT(mount->target, "/workspace");
        CHECK_INT(mount->device, st.st_dev);
        CHECK_INT(mount->inode, st.st_ino);
        CHECK_INT(mount->access, MOUNT_RW);
        CHECK(mount->fd >= 0);
    }
    CHECK(found);
    tear_down(&run);
    leave_place(&place);
}

TEST(working_directories)
{
    static const struct {
        const char *workdir;
        const char *planned; /* NULL: refused */
    } cases[] = {
        {NULL,          "/home/sandbox"},
        {"/",           "/"            },
        {"/tmp",        "/tmp"         },
        {"relative",    NULL           },
        {"/tmp/../etc", NULL           },
        {"/tmp/",       NULL           },
        {"",            NULL           },
    };
    struct place place;

    enter_place(&place);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct run run;
        struct err err;

        set_up(&run);
        run.action.workdir = cases[i].workdir;
        CHECK_INT(plan_mounts(memory, place.state, NULL, &run, &err), 0);
        CHECK_INT(run.verdict.kind, cases[i].planned ? VERDICT_ALLOW : VERDICT_DENY);
        if (cases[i].planned)
            CHECK_TEXT(run.plan.workdir, cases[i].planned);
        else
            CHECK_TEXT(reason_code(run.verdict.reason), "REQUEST_INVALID");
        tear_down(&run);
    }
    leave_place(&place);
}
