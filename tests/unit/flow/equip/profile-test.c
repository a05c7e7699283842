/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/equip/parts.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

static int parse(struct arena *mem, const char *text, struct profile *out, struct err *err)
{
    struct mark where = {0, 0};

    return profile_parse(mem, str_of(text), out, &where, err);
}

TEST(whole_profile_is_read)
{
    static const char text[] = "version: 1\n"
                               "provider: local\n"
                               "provider_version: \"local/1\"\n"
                               "image_digest: sha256:abc\n"
                               "evidence: observed\n"
                               "limits:\n"
                               "  cpu: 0.5\n"
                               "  memory: 512M\n"
                               "  pids: {value: 64, means: cgroup}\n"
                               "  disk: 1G\n"
                               "  inodes: 1000\n"
                               "  timeout: 90s\n"
                               "  output: {means: relay}\n";
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct profile profile = {0};
    struct err err;

    CHECK_INT(parse(&mem, text, &profile, &err), 0);
    CHECK_TEXT(profile.provider, "local");
    CHECK_TEXT(profile.provider_version, "local/1");
    CHECK_TEXT(profile.image_digest, "sha256:abc");
    CHECK(profile.demand_observed);
    CHECK_INT(profile.limits.of[LIMIT_CPU].value, 500);
    CHECK_INT(profile.limits.of[LIMIT_MEMORY].value, 512 << 20);
    CHECK_INT(profile.limits.of[LIMIT_PIDS].value, 64);
    CHECK_INT(profile.limits.of[LIMIT_PIDS].origin, ORIGIN_PROFILE);
    CHECK_INT(profile.least[LIMIT_PIDS], MEANS_CGROUP);
    CHECK_INT(profile.least[LIMIT_MEMORY], MEANS_NONE);
    CHECK_INT(profile.limits.of[LIMIT_DISK].value, 1 << 30);
    CHECK_INT(profile.limits.of[LIMIT_INODES].value, 1000);
    CHECK_INT(profile.limits.of[LIMIT_WALL].value, 90000);
    CHECK_INT(profile.limits.of[LIMIT_OUTPUT].value, 0);
    CHECK_INT(profile.least[LIMIT_OUTPUT], MEANS_RELAY);
}

TEST(smallest_profile_says_nothing)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct profile profile = {0};
    struct err err;

    CHECK_INT(parse(&mem, "version: 1", &profile, &err), 0);
    CHECK(profile.provider == NULL && profile.provider_version == NULL);
    CHECK(!profile.demand_observed);
    for (enum limit_kind kind = 0; kind < LIMIT_COUNT; kind++)
        CHECK_INT(profile.limits.of[kind].value, 0);
}

TEST(wrong_profiles_are_refused_with_the_place)
{
    static const struct {
        const char *text;
        const char *said;
    } cases[] = {
        {"provider: local",                                     "line 1, column 1: version is missing; write \"version: 1\""},
        {"version: 2",                                          "line 1, column 10: should be 1"                            },
        {"version: \"1\"",                                      "line 1, column 10: should be 1"                            },
        {"- version: 1",                                        "line 1, column 1: a profile is a mapping"                  },
        {"version: 1\nprovider: 3",                             "line 2, column 11: should be a text"                       },
        {"version: 1\nprovider: \"\"",                          "line 2, column 11: should be a text"                       },
        {"version: 1\nprovider: [local]",                       "line 2, column 11: should be a text"                       },
        {"version: 1\nevidence: yes please",                    "line 2, column 11: should be observed or claimed"          },
        {"version: 1\nlimits: 3",                               "line 2, column 9: should be a mapping"                     },
        {"version: 1\nlimits: {memory: 0}",
         "line 2, column 18: should be a quantity above 0, like 2, 512M or 30s"                                             },
        {"version: 1\nlimits: {memory: -1}",
         "line 2, column 18: should be a quantity above 0, like 2, 512M or 30s"                                             },
        {"version: 1\nlimits: {memory: lots}",
         "line 2, column 18: should be a quantity above 0, like 2, 512M or 30s"                                             },
        {"version: 1\nlimits: {pids: 1.5}",
         "line 2, column 16: should be a quantity above 0, like 2, 512M or 30s"                                             },
        {"version: 1\nlimits: {cpu: 0}",
         "line 2, column 15: should be a quantity above 0, like 2, 512M or 30s"                                             },
        {"version: 1\nlimits: {timeout: soon}",
         "line 2, column 19: should be a quantity above 0, like 2, 512M or 30s"                                             },
        {"version: 1\nlimits: {memory: true}",
         "line 2, column 18: should be a quantity above 0, like 2, 512M or 30s"                                             },
        {"version: 1\nlimits: {pids: {value: 1, means: hope}}",
         "line 2, column 34: should be one of watch, affinity, rlimit, cgroup"                                              },
        {"version: 1\nlimits: {pids: {value: 1, means: none}}",
         "line 2, column 34: should be one of watch, affinity, rlimit, cgroup"                                              },
        {"version: 1\nlimits: {pids: {val: 1}}",
         "line 2, column 17: unknown key \"val\"; known here: value, means"                                                 },
        {"version: 1\nlimits: {gpu: 1}",
         "line 2, column 10: unknown key \"gpu\"; known here: cpu, memory, pids, disk, inodes, timeout, "
         "output"                                                                                                           },
        {"version: 1\nsockets: some",                           "line 2, column 10: should be none or any"                  },
        {"version: 1\nsockets: true",                           "line 2, column 10: should be none or any"                  },
        {"version: 1\nallow_protected: 1",                      "line 2, column 18: should be true or false"                },
        {"version: 1\nname: x",
         "line 2, column 1: unknown key \"name\"; known here: version, provider, provider_version, "
         "image_digest, evidence, allow_protected, sockets, limits"                                                         },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(1 << 20);
        struct profile profile = {.provider = "untouched"};
        struct err err = {0};

        CHECK_INT(parse(&mem, cases[i].text, &profile, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
        CHECK_TEXT(err.text, cases[i].said);
        CHECK_TEXT(profile.provider, "untouched");
    }
}

TEST(what_is_no_yaml_is_refused_with_the_place)
{
    static const char *const cases[] = {
        "version: 1\nlimits: {",     "version: 1\nversion: 1",      "version: 1\n\tlimits: 1",
        "&a version: 1\nx: *a",      "version: 1\n---\nversion: 1", "version: 1\nprovider: \xff",
        "version: 1\nlimits: !!x 1",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(1 << 20);
        struct profile profile = {0};
        struct mark where = {0, 0};
        struct err err = {0};

        CHECK_INT(profile_parse(&mem, str_of(cases[i]), &profile, &where, &err), -1);
        CHECK(where.line > 0);
        CHECK(strncmp(err.text, "line ", 5) == 0);
    }
}

TEST(file_is_named_and_its_line_shown)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct profile profile = {0};
    struct err err = {0};
    char path[] = "/tmp/brig-profile-XXXXXX";
    char wanted[512];
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");

    CHECK(file != NULL);
    (void)fputs("version: 1\nlimits:\n  memroy: 1G\n", file);
    CHECK_INT(fclose(file), 0);
    CHECK_INT(profile_open(&mem, path, &profile, &err), -1);
    (void)snprintf(wanted, sizeof wanted,
                   "%s: line 3, column 3: unknown key \"memroy\"; known here: cpu, memory, pids, "
                   "disk, inodes, timeout, output\n    3 |   memroy: 1G\n      |   ^",
                   path);
    CHECK_TEXT(err.text, wanted);
    (void)remove(path);
    CHECK_INT(profile_open(&mem, path, &profile, &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
}
