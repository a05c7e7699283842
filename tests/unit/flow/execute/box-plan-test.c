/* SPDX-License-Identifier: Apache-2.0 */

/* The plan that box is born with: taken only sealed, whole and within its own bounds. */

#include "cmd/box/box.h"
#include "test.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* A small plan that holds: the header, one of each array, then the texts. */
struct block {
    struct box_plan plan;
    _Alignas(8) uint32_t argv[2];
    _Alignas(8) uint32_t env[2];
    _Alignas(8) struct box_mount mount;
    _Alignas(8) struct box_path path;
    _Alignas(8) struct box_rlimit rlimit;
    _Alignas(8) uint16_t ports[4];
    char root[8];
    char word[8];
};

#define AT(member) ((uint32_t)offsetof(struct block, member))

static struct block sound(void)
{
    return (struct block){
        .plan = {.magic = BOX_PLAN_MAGIC,
                 .version = BOX_PLAN_VERSION,
                 .size = sizeof(struct block),
                 .inside_uid = 1000,
                 .inside_gid = 1000,
                 .host_uid = 1000,
                 .host_gid = 1000,
                 .hostname = AT(word),
                 .workdir = AT(root),
                 .run_dir = AT(root),
                 .argv = AT(argv),
                 .argv_n = 2,
                 .env = AT(env),
                 .env_n = 1,
                 .mounts = AT(mount),
                 .mount_n = 1,
                 .paths = AT(path),
                 .path_n = 1,
                 .rlimits = AT(rlimit),
                 .rlimit_n = 1,
                 .execs_fd = -1,
                 .control_fd = -1,
                 .egress_fd = BOX_FD_FIRST_MOUNT,
                 .egress_ports = AT(ports),
                 .egress_port_n = 2},
        .argv = {AT(word),      AT(word)         },
        .env = {AT(word),        0       },
        .mount = {.source = AT(word),     .target = AT(root),            .fd = -1},
        .path = {.path = AT(root)         },
        .ports = {80,            443                 },
        .root = "/",
        .word = "word",
    };
}

static int plan_fd(const void *bytes, size_t n, unsigned seals)
{
    int fd = memfd_create("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    CHECK(fd >= 0);
    CHECK_INT(write(fd, bytes, n), n);
    CHECK_INT(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void check_refused(int fd, const char *text)
{
    const struct box_plan *plan = NULL;
    struct err err = {0};

    CHECK_INT(plan_open(fd, &plan, &err), -1);
    CHECK_INT(err.code, ERR_INTEGRITY);
    CHECK_TEXT(err.text, text);
    CHECK(plan == NULL);
    CHECK_INT(close(fd), 0);
}

TEST(sound_plan_is_taken)
{
    struct block block = sound();
    const struct box_plan *plan = NULL;
    struct err err;
    int fd = plan_fd(&block, sizeof block, SEALS);

    CHECK_INT(plan_open(fd, &plan, &err), 0);
    CHECK(plan != NULL);
    CHECK_TEXT(plan_text(plan, plan->hostname), "word");
}

TEST(plan_that_could_still_change_is_refused)
{
    static const unsigned cases[] = {
        F_SEAL_SHRINK,
        F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW,
        SEALS & ~(unsigned)F_SEAL_SHRINK,
        SEALS & ~(unsigned)F_SEAL_GROW,
        SEALS & ~(unsigned)F_SEAL_SEAL,
    };
    struct block block = sound();

    for (size_t i = 0; i < COUNT(cases); i++)
        check_refused(plan_fd(&block, sizeof block, cases[i]), "the plan is not sealed");
}

TEST(file_that_knows_no_seals_is_refused)
{
    struct block block = sound();
    char path[] = "/var/tmp/brig-plan-XXXXXX";
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(write(fd, &block, sizeof block), sizeof block);
    check_refused(fd, "the plan is not sealed");
}

TEST(plan_of_another_size_is_refused)
{
    static const char zeros[64];
    struct block block = sound();
    char wanted[64];

    check_refused(plan_fd(zeros, 0, SEALS), "the plan has 0 bytes");
    (void)snprintf(wanted, sizeof wanted, "the plan has %zu bytes", sizeof(struct box_plan) - 1);
    check_refused(plan_fd(&block, sizeof(struct box_plan) - 1, SEALS), wanted);
    check_refused(plan_fd(&block, sizeof block - 1, SEALS), "the plan does not hold together");
}

/* Every number of the plan, set to what would lead outside, is refused. */
TEST(plan_that_leads_outside_is_refused)
{
    static const struct {
        size_t at;
        uint32_t value;
    } cases[] = {
        {offsetof(struct block, plan.magic),         0                       },
        {offsetof(struct block, plan.version),       BOX_PLAN_VERSION + 1    },
        {offsetof(struct block, plan.size),          0                       },
        {offsetof(struct block, plan.size),          UINT32_MAX              },
        {offsetof(struct block, plan.host_uid),      0                       },
        {offsetof(struct block, plan.host_gid),      0                       },
        {offsetof(struct block, plan.inside_uid),    0                       },
        {offsetof(struct block, plan.hostname),      sizeof(struct block)    },
        {offsetof(struct block, plan.hostname),      UINT32_MAX              },
        {offsetof(struct block, plan.workdir),       sizeof(struct block)    },
        {offsetof(struct block, plan.run_dir),       UINT32_MAX              },
        {offsetof(struct block, plan.argv_n),        0                       },
        {offsetof(struct block, plan.argv_n),        UINT32_MAX              },
        {offsetof(struct block, plan.argv_n),        1000                    },
        {offsetof(struct block, plan.argv),          UINT32_MAX - 7          },
        {offsetof(struct block, plan.argv),          AT(argv) + 1            },
        {offsetof(struct block, plan.env),           sizeof(struct block)    },
        {offsetof(struct block, plan.env_n),         UINT32_MAX              },
        {offsetof(struct block, plan.mounts),        AT(mount) + 4           },
        {offsetof(struct block, plan.mounts),        sizeof(struct block)    },
        {offsetof(struct block, plan.mount_n),       BOX_MOUNTS_MAX + 1      },
        {offsetof(struct block, plan.mount_n),       UINT32_MAX              },
        {offsetof(struct block, plan.paths),         UINT32_MAX - 7          },
        {offsetof(struct block, plan.path_n),        1000                    },
        {offsetof(struct block, plan.rlimits),       sizeof(struct block)    },
        {offsetof(struct block, plan.rlimit_n),      UINT32_MAX              },
        {offsetof(struct block, plan.cgroup_name),   UINT32_MAX              },
        {offsetof(struct block, plan.egress_fd),     0                       },
        {offsetof(struct block, plan.egress_fd),     (uint32_t)-1            },
        {offsetof(struct block, plan.egress_ports),  UINT32_MAX - 7          },
        {offsetof(struct block, plan.egress_port_n), BOX_EGRESS_PORTS_MAX + 1},
        {offsetof(struct block, plan.egress_port_n), 1000                    },
        {offsetof(struct block, ports),              80                      },
        {offsetof(struct block, argv),               UINT32_MAX              },
        {offsetof(struct block, env),                sizeof(struct block)    },
        {offsetof(struct block, mount.source),       UINT32_MAX              },
        {offsetof(struct block, mount.target),       UINT32_MAX              },
        {offsetof(struct block, mount.target),       AT(word)                },
        {offsetof(struct block, path.path),          UINT32_MAX              },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct block block = sound();

        memcpy((char *)&block + cases[i].at, &cases[i].value, sizeof cases[i].value);
        check_refused(plan_fd(&block, sizeof block, SEALS), "the plan does not hold together");
    }
}

TEST(a_way_out_without_sockets_is_refused)
{
    struct block block = sound();
    const struct box_plan *plan = NULL;
    struct err err;

    block.plan.sockets_none = 1;
    check_refused(plan_fd(&block, sizeof block, SEALS), "the plan does not hold together");
    block.plan.egress_fd = -1;
    check_refused(plan_fd(&block, sizeof block, SEALS), "the plan does not hold together");
    block.plan.egress_port_n = 0;
    CHECK_INT(plan_open(plan_fd(&block, sizeof block, SEALS), &plan, &err), 0);
}

TEST(text_without_an_end_is_refused)
{
    struct block block = sound();

    memset(block.word, 'x', sizeof block.word);
    check_refused(plan_fd(&block, sizeof block, SEALS), "the plan does not hold together");
}

/* Any four bytes of the plan may be anything: it is taken or refused, and what is taken stays
 * within the block. */
TEST(no_number_makes_it_read_outside)
{
    static const uint32_t values[] = {0, 1, 7, 8, 0x7fffffff, 0x80000000, 0xfffffff8, UINT32_MAX};

    for (size_t at = 0; at + 4 <= sizeof(struct block); at += 4)
        for (size_t i = 0; i < COUNT(values); i++) {
            struct block block = sound();
            const struct box_plan *plan = NULL;
            struct err err;
            int fd;

            memcpy((char *)&block + at, &values[i], 4);
            fd = plan_fd(&block, sizeof block, SEALS);
            if (plan_open(fd, &plan, &err) == 0) {
                CHECK(plan->hostname < plan->size && plan->workdir < plan->size);
                CHECK(plan->argv + plan->argv_n * 4ULL <= plan->size);
                CHECK(plan->mounts + plan->mount_n * sizeof(struct box_mount) <= plan->size);
                CHECK_INT(munmap((void *)(uintptr_t)plan, sizeof block), 0);
            }
            CHECK_INT(close(fd), 0);
        }
}
