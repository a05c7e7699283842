/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "lib/image/manifest.h"

#include <stdio.h>
#include <string.h>

#define D1 "sha256:1111111111111111111111111111111111111111111111111111111111111111"
#define D2 "sha256:2222222222222222222222222222222222222222222222222222222222222222"
#define CONFIG "\"config\":{\"mediaType\":\"x\",\"digest\":\"" D1 "\",\"size\":10}"
#define LAYER                                                                                      \
    "{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar+gzip\",\"digest\":\"" D2              \
    "\",\"size\":20}"

TEST(a_manifest_gives_its_configuration_and_layers)
{
    const char *text =
        "{\"schemaVersion\":2," CONFIG ",\"layers\":[" LAYER "," LAYER "],\"more\":1}";
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct image_manifest manifest;
    enum image_document kind;
    struct err err;

    CHECK_INT(image_document_kind(str_of(text), NULL, &kind, &err), 0);
    CHECK_INT(kind, IMAGE_DOCUMENT_MANIFEST);
    CHECK_INT(image_manifest_parse(&mem, str_of(text), &manifest, &err), 0);
    CHECK_TEXT(manifest.config.digest, D1);
    CHECK_INT(manifest.config.size, 10);
    CHECK_INT(manifest.layer_n, 2);
    CHECK_TEXT(manifest.layers[1].digest, D2);
    CHECK_TEXT(manifest.media_type, "application/vnd.oci.image.manifest.v1+json");
}

TEST(bad_manifests_are_refused)
{
    static const struct {
        const char *text;
        enum err_code code;
        const char *says;
    } cases[] = {
        {"",                                                                       ERR_INVALID, "line 1"               },
        {"[]",                                                                     ERR_INVALID, "no JSON object"       },
        {"{}",                                                                     ERR_INVALID, "schema 2"             },
        {"{\"schemaVersion\":1}",                                                  ERR_INVALID, "schema 1"             },
        {"{\"schemaVersion\":2}",                                                  ERR_INVALID, "neither"              },
        {"{\"schemaVersion\":2,\"manifests\":[]}",                                 ERR_INVALID, "index where"          },
        {"{\"schemaVersion\":2," CONFIG ",\"layers\":[],\"manifests\":[]}",        ERR_INVALID, "at once"              },
        {"{\"schemaVersion\":2," CONFIG "}",                                       ERR_INVALID, "no list of layers"    },
        {"{\"schemaVersion\":2,\"config\":{},\"layers\":[]}",                      ERR_INVALID, "64 lower-case"        },
        {"{\"schemaVersion\":2,\"config\":7,\"layers\":[]}",                       ERR_INVALID, "is missing"           },
        {"{\"schemaVersion\":2," CONFIG ",\"layers\":[{\"digest\":\"../../x\"}]}", ERR_INVALID,
         "64 lower-case"                                                                                               },
        {"{\"schemaVersion\":2," CONFIG ",\"layers\":[{\"digest\":\"" D1
         "\",\"size\":1,\"mediaType\":\"application/json\"}]}",           ERR_INVALID, "not a file system lay"},
        {"{\"schemaVersion\":2," CONFIG ",\"layers\":[{\"digest\":\"" D1
         "\",\"size\":-1,\"mediaType\":\"x\"}]}",                         ERR_INVALID, "no size"              },
        {"{\"schemaVersion\":2," CONFIG ",\"layers\":[{\"digest\":\"" D1
         "\",\"size\":1e3,\"mediaType\":\"x\"}]}",                        ERR_INVALID, "no size"              },
        {"{\"schemaVersion\":2," CONFIG ",\"layers\":[{\"digest\":\"" D1
         "\",\"size\":99999999999999,\"mediaType\":\"x\"}]}",             ERR_LIMIT,   "ceiling"              },
        {"{\"schemaVersion\":2,\"schemaVersion\":2}",                              ERR_INVALID, "line 1"               },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(1 << 20);
        struct image_manifest manifest = {.layer_n = 77};
        struct err err;

        CHECK_INT(image_manifest_parse(&mem, str_of(cases[i].text), &manifest, &err), -1);
        CHECK_INT(err.code, cases[i].code);
        if (!strstr(err.text, cases[i].says))
            test_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", err.text, cases[i].says);
        CHECK_INT(manifest.layer_n, 77);
    }
}

TEST(layers_are_counted)
{
    AUTO_ARENA struct arena mem = ARENA(8 << 20);
    AUTO_BUF struct buf text = BUF(1 << 20);
    struct image_manifest manifest;
    struct err err;

    CHECK_INT(buf_add_text(&text, "{\"schemaVersion\":2," CONFIG ",\"layers\":[" LAYER, &err), 0);
    for (int i = 0; i < 128; i++)
        CHECK_INT(buf_add_text(&text, "," LAYER, &err), 0);
    CHECK_INT(buf_add_text(&text, "]}", &err), 0);
    CHECK_INT(image_manifest_parse(&mem, buf_str(&text), &manifest, &err), -1);
    CHECK_INT(err.code, ERR_LIMIT);
    CHECK_TEXT(err.text, "image manifest: more than 128 layers");
}

TEST(an_index_gives_the_manifest_of_the_platform)
{
    static const struct {
        const char *entries;
        const char *digest; /* NULL: none */
    } cases[] = {
        {"{\"digest\":\"" D1 "\",\"size\":1}",                                                 D1  },
        {"{\"digest\":\"" D1 "\",\"size\":1},{\"digest\":\"" D2 "\",\"size\":1}",              NULL},
        {"{\"digest\":\"" D1
         "\",\"size\":1,\"platform\":{\"os\":\"windows\",\"architecture\":\"amd64\"}},"
         "{\"digest\":\"" D2
         "\",\"size\":1,\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"}}", D2  },
        {"{\"digest\":\"" D2
         "\",\"size\":1,\"platform\":{\"os\":\"linux\",\"architecture\":\"arm64\"}}", NULL},
        {"",                                                                                   NULL},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(1 << 20);
        const char *text =
            arena_printf(&mem, "{\"schemaVersion\":2,\"manifests\":[%s]}", cases[i].entries);
        struct image_descriptor chosen = {.digest = ""};
        struct err err = {.code = ERR_NOT_FOUND};

        CHECK_INT(image_index_choose(&mem, str_of(text), "amd64", &chosen, &err),
                  cases[i].digest ? 0 : -1);
        CHECK_TEXT(chosen.digest, cases[i].digest ? cases[i].digest : "");
        CHECK_INT(err.code, ERR_NOT_FOUND);
    }
}

TEST(a_configuration_gives_what_a_run_needs)
{
    const char *text =
        "{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":[\"" D1
        "\"]},\"config\":{\"Env\":[\"A=b\",\"C=\"],\"Cmd\":[\"x\",\"\"],"
        "\"Entrypoint\":null,\"WorkingDir\":\"/w\",\"User\":\"me\"}}";
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct image_config config;
    struct err err;

    CHECK_INT(image_config_parse(&mem, str_of(text), &config, &err), 0);
    CHECK_INT(config.diff_id_n, 1);
    CHECK_TEXT(config.diff_ids[0], D1);
    CHECK_INT(config.env.n, 2);
    CHECK_TEXT(config.env.v[0], "A=b");
    CHECK_INT(config.command.n, 2);
    CHECK_INT(config.entrypoint.n, 0);
    CHECK_TEXT(config.workdir, "/w");
    CHECK_TEXT(config.user, "me");
}

TEST(bad_configurations_are_refused)
{
#define ROOT "\"rootfs\":{\"diff_ids\":[]}"
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"{" ROOT "}",                                                            "not for linux"    },
        {"{\"os\":\"windows\"," ROOT "}",                                         "\"windows\""      },
        {"{\"os\":\"linux\"}",                                                    "diff ids"         },
        {"{\"os\":\"linux\",\"rootfs\":{\"diff_ids\":[\"x\"]}}",                  "diff id"          },
        {"{\"os\":\"linux\"," ROOT ",\"config\":{\"Env\":[\"A\"]}}",              "NAME=VALUE"       },
        {"{\"os\":\"linux\"," ROOT ",\"config\":{\"Env\":[\"=A\"]}}",             "NAME=VALUE"       },
        {"{\"os\":\"linux\"," ROOT ",\"config\":{\"Env\":[\"A=\\u0000\"]}}",      "no plain text"    },
        {"{\"os\":\"linux\"," ROOT ",\"config\":{\"Cmd\":\"sh\"}}",               "Cmd is not a list"},
        {"{\"os\":\"linux\"," ROOT ",\"config\":{\"User\":7}}",                   "User is not"      },
        {"{\"os\":\"linux\"," ROOT ",\"config\":{\"WorkingDir\":\"a\\u0000b\"}}", "NUL"              },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(1 << 20);
        struct image_config config;
        struct err err;

        CHECK_INT(image_config_parse(&mem, str_of(cases[i].text), &config, &err), -1);
        CHECK_INT(err.code, ERR_INVALID);
        if (!strstr(err.text, cases[i].says))
            test_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", err.text, cases[i].says);
    }
}

TEST(a_docker_archive_has_one_image)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct image_docker_archive archive;
    struct err err;

    CHECK_INT(image_docker_archive_parse(
                  &mem, STR_LIT("[{\"Config\":\"c\",\"RepoTags\":null,\"Layers\":[\"a\",\"b\"]}]"),
                  &archive, &err),
              0);
    CHECK_TEXT(archive.layers.v[1], "b");
    CHECK(archive.repo_tag == NULL);
    CHECK_INT(image_docker_archive_parse(&mem, STR_LIT("[{},{}]"), &archive, &err), -1);
    CHECK_TEXT(err.text, "the archive holds 2 images; save the one you want by itself");
    CHECK_INT(image_docker_archive_parse(&mem, STR_LIT("[{}]"), &archive, &err), -1);
    CHECK_INT(image_docker_archive_parse(&mem, STR_LIT("{}"), &archive, &err), -1);
}
