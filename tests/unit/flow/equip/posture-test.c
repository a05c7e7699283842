/* SPDX-License-Identifier: Apache-2.0 */

/* The six values a receipt binds: known bytes, known hashes. Changing one of these is changing
 * docs/formats/posture.md. */

#include "flow/equip/memory.h"
#include "test.h"

#include <sys/resource.h>

static const struct mount_fact mounts[] = {
    {.target = "/",      .kind = "tmpfs", .source = "",     .nosuid = true,   .nodev = true },
    {.target = "/w\xff", .kind = "bind",  .source = "/srv", .writable = true, .nosuid = true},
};
static const char *const interfaces[] = {"lo"};
static const struct plan_path paths[] = {
    {.path = "/",    .list_only = true},
    {.path = "/usr", .exec = true     },
};

static void set_up(struct run *run, struct facts *facts)
{
    run_init(run);
    run->plan.image = "host";
    run->plan.hostname = "sandbox";
    run->plan.paths = paths;
    run->plan.path_n = COUNT(paths);
    run->plan.inside_uid = run->plan.inside_gid = 1000;
    run->offer.provider = "local";
    run->offer.seccomp_hash = "sha256:5ecc";
    *facts = (struct facts){
        .provider_version = "local/1",
        .image_digest = "sha256:1111",
        .mounts = mounts,
        .mount_n = COUNT(mounts),
        .interfaces = interfaces,
        .interface_n = 1,
        .rlimits = {{"core", RLIMIT_CORE, 0}, {"nofile", RLIMIT_NOFILE, 4096}},
        .rlimit_n = 2,
        .namespaces = NAMESPACES_ALL,
        .no_new_privs = true,
        .capabilities_empty = true,
        .seccomp_filters = 2,
        .seccomp_refuses = true,
        .landlock_refuses = true,
        .landlock_abi = 7,
    };
    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++)
        facts->limits.of[kind] = (struct limit){.value = 10 + kind, .means = MEANS_CGROUP};
}

TEST(known_facts_have_known_hashes)
{
    struct posture posture = {0};
    struct facts facts;
    struct run run;
    struct err err;

    set_up(&run, &facts);
    CHECK_INT(posture_of(&run, &facts, &posture, &err), 0);
    CHECK_TEXT(posture.provider_version, "local/1");
    CHECK_TEXT(posture.image_digest, "sha256:1111");
    CHECK_TEXT(posture.mounts_hash,
               "sha256:a63c59013dd539275fae475df2944a29d7f814ee05ff142920a736329ebb0d6b");
    CHECK_TEXT(posture.egress_policy_hash,
               "sha256:74e409bc60082661ed18ba8b9fc133834ac3c1e30dbd6cef0033695c70abe084");
    CHECK_TEXT(posture.resource_limits_hash,
               "sha256:2b678a142ce14802d803065c1880a3912156c416eab5ded0f45b737a88e0c381");
    CHECK_TEXT(posture.sandbox_spec_hash,
               "sha256:b3f2732d8d10695ecedec5e452791e11b4faaa0d8f525a55ba1b79e6265c8428");
    CHECK_TEXT(posture.preimage_hash,
               "sha256:86aa990d856bbe97950f1bded59f8b30911613ac4957677c2c48944e6b2ec81a");
    CHECK_INT(posture.evidence, EVIDENCE_OBSERVED);
    run_done(&run);
}

enum part { SPEC, IMAGE, MOUNTS, EGRESS, LIMITS, VERSION, PARTS };

static const char *part_of(const struct posture *posture, enum part part)
{
    const char *const parts[PARTS] = {
        [SPEC] = posture->sandbox_spec_hash,      [IMAGE] = posture->image_digest,
        [MOUNTS] = posture->mounts_hash,          [EGRESS] = posture->egress_policy_hash,
        [LIMITS] = posture->resource_limits_hash, [VERSION] = posture->provider_version,
    };

    return parts[part];
}

static void lose_network(struct facts *facts)
{
    facts->namespaces &= ~(unsigned)NAMESPACE_NETWORK;
}
static void gain_interface(struct facts *facts)
{
    static const char *const two[] = {"eth0", "lo"};

    facts->interfaces = two;
    facts->interface_n = 2;
}
static void become_writable(struct facts *facts)
{
    static const struct mount_fact other[] = {
        {.target = "/",
         .kind = "tmpfs",
         .source = "",
         .writable = true,
         .nosuid = true,
         .nodev = true},
    };

    facts->mounts = other;
    facts->mount_n = 1;
}
static void change_means(struct facts *facts)
{
    facts->limits.of[LIMIT_MEMORY].means = MEANS_WATCH;
}
static void change_rlimit(struct facts *facts)
{
    facts->rlimits[1].value = 4097;
}
static void keep_capabilities(struct facts *facts)
{
    facts->capabilities_empty = false;
}
static void drop_filter(struct facts *facts)
{
    facts->seccomp_filters = 1;
}
static void open_landlock(struct facts *facts)
{
    facts->landlock_refuses = false;
}
static void be_root(struct facts *facts)
{
    facts->host_user_is_root = true;
}
static void change_image(struct facts *facts)
{
    facts->image_digest = "sha256:2222";
}
static void change_version(struct facts *facts)
{
    facts->provider_version = "local/2";
}

/* Each difference shows in its own value and in the preimage, and (but for the network, which is
 * a namespace, too) nowhere else. */
/* A posture that was made with the help of another one is the same as one made without. */
static void check_known(struct run *run, const struct facts *changed, const struct posture *before,
                        const struct posture *after)
{
    struct plan_memory *memory = plan_memory_new();
    struct posture seen = {0};
    struct err err;

    CHECK_INT(memory_posture(memory, run, &err), 0);
    CHECK_INT(memcmp(&run->planned, before, sizeof *before), 0);
    run->seen = run->intended;
    CHECK_INT(posture_seen(run, &seen, &err), 0);
    CHECK_INT(memcmp(&seen, before, sizeof *before), 0);
    run->seen = *changed;
    CHECK_INT(posture_seen(run, &seen, &err), 0);
    CHECK_INT(memcmp(&seen, after, sizeof *after), 0);
    run->intended = *changed;
    CHECK_INT(memory_posture(memory, run, &err), 0);
    CHECK_INT(memcmp(&run->planned, after, sizeof *after), 0);
    plan_memory_free(memory);
}

TEST(every_difference_shows_in_its_value)
{
    static const struct {
        void (*change)(struct facts *facts);
        enum part part;
        bool spec_too;
    } cases[] = {
        {lose_network,      EGRESS,  true },
        {gain_interface,    EGRESS,  false},
        {become_writable,   MOUNTS,  false},
        {change_means,      LIMITS,  false},
        {change_rlimit,     LIMITS,  false},
        {keep_capabilities, SPEC,    false},
        {drop_filter,       SPEC,    false},
        {open_landlock,     SPEC,    false},
        {be_root,           SPEC,    false},
        {change_image,      IMAGE,   false},
        {change_version,    VERSION, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct posture before, after;
        struct facts facts;
        struct run run;
        struct err err;

        set_up(&run, &facts);
        run.intended = facts;
        CHECK_INT(posture_of(&run, &facts, &before, &err), 0);
        cases[i].change(&facts);
        CHECK_INT(posture_of(&run, &facts, &after, &err), 0);
        CHECK(strcmp(before.preimage_hash, after.preimage_hash) != 0);
        check_known(&run, &facts, &before, &after);
        for (enum part part = 0; part < PARTS; part++) {
            bool differs = strcmp(part_of(&before, part), part_of(&after, part)) != 0;

            CHECK_INT(differs, part == cases[i].part || (cases[i].spec_too && part == SPEC));
        }
        run_done(&run);
    }
}

TEST(a_provider_that_says_nothing_has_no_posture)
{
    struct posture posture = {0};
    struct facts facts;
    struct run run;
    struct err err;

    set_up(&run, &facts);
    facts.provider_version = NULL;
    CHECK_INT(posture_of(&run, &facts, &posture, &err), -1);
    CHECK_TEXT(err.text, "the provider does not say its version");
    set_up(&run, &facts);
    facts.image_digest = NULL;
    CHECK_INT(posture_of(&run, &facts, &posture, &err), -1);
    CHECK_TEXT(err.text, "the provider does not say the image's digest");
    run_done(&run);
}
