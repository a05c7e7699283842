/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "lib/base/memory.h"
#include "lib/vault/vault-use.h"

/* The key, the time and the scope of AWS' published examples. */
#define SECRET "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define KEY "AKIDEXAMPLE:" SECRET
#define DATE "20150830T123600Z"
#define SCOPE(service) "/20150830/us-east-1/" service "/aws4_request"
#define AUTHORIZATION(key, service, names)                                                         \
    "AWS4-HMAC-SHA256 Credential=" key SCOPE(service) ", SignedHeaders=" names ", Signature=00"
#define HEADERS_MAX 6

struct asked {
    const char *method; /* NULL: GET */
    const char *target;
    const char *headers[HEADERS_MAX][2];
    const char *body;
    bool has_more;
    const char *value; /* NULL: KEY */
};

struct signed_anew {
    struct arena mem;
    struct vault_uses uses;
    struct http_header headers[HEADERS_MAX];
    struct vault_request request;
    enum vault_fault fault;
    struct vault_filled f;
};

static void sign(const struct asked *asked, struct signed_anew *out)
{
    struct str values[VAULT_USES_MAX] = {str_of(asked->value ? asked->value : KEY)};
    size_t size;

    *out = (struct signed_anew){.mem = ARENA(1 << 20)};
    out->request = (struct vault_request){.method = str_of(asked->method ? asked->method : "GET"),
                                          .target = str_of(asked->target),
                                          .headers = out->headers,
                                          .body = str_of(asked->body ? asked->body : ""),
                                          .has_more = asked->has_more,
                                          .host = STR_LIT("example.amazonaws.com")};
    for (size_t i = 0; i < HEADERS_MAX && asked->headers[i][0]; i++)
        out->headers[out->request.header_count++] =
            (struct http_header){str_of(asked->headers[i][0]), str_of(asked->headers[i][1])};
    out->fault = vault_find(&out->request, &out->uses);
    if (out->fault)
        return;
    size = vault_fill_bytes(&out->request, &out->uses, values);
    out->fault =
        vault_fill(&out->request, &out->uses, values, arena_alloc(&out->mem, size), size, &out->f);
    if (!out->fault)
        CHECK(out->f.used <= size);
}

static const char *header(struct signed_anew *in, const char *lower)
{
    for (size_t i = 0; i < in->f.header_count; i++)
        if (http_name_is(in->f.headers[i].name, lower))
            return arena_text(&in->mem, in->f.headers[i].value);
    return "missing";
}

/* ---- the examples ---- */

TEST(signatures_are_those_of_the_published_examples)
{
    static const struct {
        struct asked asked;
        const char *names;
        const char *signature;
    } cases[] = {
        {{.target = "/",
          .headers = {{"Authorization",
                       AUTHORIZATION("${vault:AWS}", "service", "host;x-amz-date")},
                      {"X-Amz-Date", DATE}}},
         "host;x-amz-date",              "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
        {{.method = "POST",
          .target = "/",
          .headers = {{"Authorization",
                       AUTHORIZATION("openshell:resolve:env:AWS", "service", "host;x-amz-date")},
                      {"X-Amz-Date", DATE}}},
         "host;x-amz-date",              "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
        {{.target = "/?Param2=value2&Param1=value1",
          .headers = {{"Authorization",
                       AUTHORIZATION("${vault:AWS}", "service", "host;x-amz-date")},
                      {"X-Amz-Date", DATE}}},
         "host;x-amz-date",              "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
        {{.method = "POST",
          .target = "/",
          .body = "Param1=value1",
          .headers = {{"Authorization",
                       AUTHORIZATION("${vault:AWS}", "service", "content-type;host;x-amz-date")},
                      {"Content-Type", "application/x-www-form-urlencoded"},
                      {"X-Amz-Date", DATE}}},
         "content-type;host;x-amz-date", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(1 << 16);
        struct signed_anew out;

        sign(&cases[i].asked, &out);
        CHECK_TEXT(vault_fault_code(out.fault), "");
        if (!out.fault)
            CHECK_TEXT(header(&out, "authorization"),
                       arena_printf(&mem,
                                    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE" SCOPE(
                                        "service") ", SignedHeaders=%s, Signature=%s",
                                    cases[i].names, cases[i].signature));
        arena_done(&out.mem);
    }
}

/* ---- the slot ---- */

TEST(the_slot_is_of_the_service_and_the_region)
{
    const struct asked asked = {
        .target = "/",
        .headers = {{"Authorization", AUTHORIZATION("${vault:AWS}", "s3", "host;x-amz-date")},
                    {"X-Amz-Date", DATE}}
    };
    char slot[VAULT_SLOT_TEXT_BYTES];
    struct signed_anew out;

    sign(&asked, &out);
    CHECK_INT(out.uses.n, 1);
    vault_slot_text(&out.uses.v[0].slot, slot);
    CHECK_TEXT(slot, "sigv4:s3/us-east-1");
    CHECK_TEXT(out.uses.v[0].name, "AWS");
    arena_done(&out.mem);
}

TEST(a_signature_of_the_sandbox_s_own_is_no_use_and_is_seen_in_the_slot)
{
    static const struct asked cases[] = {
        {.target = "/",
         .headers = {{"Authorization", AUTHORIZATION("AKIAMINE", "s3", "host;x-amz-date")},
                     {"X-Amz-Date", DATE}}},
        {.target = "/?X-Amz-Signature=00"            },
    };
    struct vault_slot bound;
    struct err err;

    CHECK_INT(vault_slot_parse(STR_LIT("sigv4:s3/us-east-1"), &bound, &err), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct signed_anew out;

        sign(&cases[i], &out);
        CHECK_INT(out.fault, VAULT_NO_FAULT);
        CHECK_INT(out.uses.n, 0);
        CHECK_TEXT(vault_fault_code(vault_find_own(&out.request, &out.uses, &bound, 1)),
                   "VAULT_SECOND_CREDENTIAL");
        arena_done(&out.mem);
    }
}

/* ---- what is sent is what is signed ---- */

TEST(what_egress_takes_off_is_not_signed)
{
    const struct asked asked = {
        .target = "/b/o",
        .headers = {{"Authorization",
                     AUTHORIZATION("${vault:AWS}", "s3",
                                   "accept-encoding;content-length;host;range;x-amz-date")},
                    {"Range", "bytes=0-9"},
                    {"Accept-Encoding", "gzip"},
                    {"X-Amz-Date", DATE}}
    };
    struct signed_anew out;

    sign(&asked, &out);
    CHECK_INT(out.fault, VAULT_NO_FAULT);
    CHECK(strstr(header(&out, "authorization"), ", SignedHeaders=host;x-amz-date, ") != NULL);
    arena_done(&out.mem);
}

TEST(the_token_of_a_session_is_sent_and_signed)
{
    struct asked asked = {
        .target = "/",
        .value = KEY ":session-token-1234",
        .headers = {{"Authorization",
                     AUTHORIZATION("${vault:AWS}", "service", "host;x-amz-date;x-amz-target")},
                    {"X-Amz-Date", DATE},
                    {"X-Amz-Target", "Service.Operation"}}
    };
    struct str parts[VAULT_SECRET_PARTS];
    struct signed_anew out;

    sign(&asked, &out);
    CHECK_INT(out.fault, VAULT_NO_FAULT);
    CHECK_TEXT(header(&out, "x-amz-security-token"), "session-token-1234");
    CHECK(strstr(header(&out, "authorization"),
                 ", SignedHeaders=host;x-amz-date;x-amz-security-token;x-amz-target, ") != NULL);
    CHECK_INT(vault_use_secrets(&out.uses.v[0], str_of(asked.value), parts), 2);
    CHECK(str_eq(parts[0], STR_LIT(SECRET)));
    CHECK(str_eq(parts[1], STR_LIT("session-token-1234")));
    arena_done(&out.mem);
}

TEST(the_secret_is_nowhere_in_what_is_sent)
{
    const struct asked asked = {
        .target = "/x?y=z",
        .headers = {{"Authorization", AUTHORIZATION("${vault:AWS}", "service", "host;x-amz-date")},
                    {"X-Amz-Date", DATE}}
    };
    struct signed_anew out;

    sign(&asked, &out);
    for (size_t i = 0; i < out.f.header_count; i++)
        CHECK(
            !memmem(out.f.headers[i].value.p, out.f.headers[i].value.n, SECRET, sizeof SECRET - 1));
    arena_done(&out.mem);
}

/* ---- no ---- */

TEST(what_cannot_be_signed_anew_is_refused)
{
#define DATED                                                                                      \
    {                                                                                              \
        "X-Amz-Date", DATE                                                                         \
    }
#define PLAIN                                                                                      \
    {                                                                                              \
        "Authorization", AUTHORIZATION("${vault:AWS}", "s3", "host;x-amz-date")                    \
    }
    static const struct {
        struct asked asked;
        const char *code;
    } cases[] = {
        {{.target = "/", .headers = {PLAIN}},                                                                 "VAULT_SIGNATURE_UNREADABLE"},
        {{.target = "/", .headers = {PLAIN, {"X-Amz-Date", "20150831T123600Z"}}},
         "VAULT_SIGNATURE_UNREADABLE"                                                                                                     },
        {{.target = "/", .headers = {PLAIN, DATED, DATED}},                                                   "VAULT_SIGNATURE_UNREADABLE"},
        {{.target = "/",
          .headers = {PLAIN,
                      DATED,
                      {"X-Amz-Content-Sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"}}},
         "VAULT_SIGNATURE_UNREADABLE"                                                                                                     },
        {{.target = "/",
          .headers = {{"Authorization", AUTHORIZATION("${vault:AWS}", "s3", "x-amz-date")}, DATED}},
         "VAULT_SIGNATURE_UNREADABLE"                                                                                                     },
        {{.target = "/",
          .headers = {{"Authorization", AUTHORIZATION("${vault:AWS}", "s3", "x-amz-date;host")},
                      DATED}},
         "VAULT_SIGNATURE_UNREADABLE"                                                                                                     },
        {{.target = "/",
          .headers = {{"Authorization",
                       AUTHORIZATION("${vault:AWS}", "s3", "authorization;host;x-amz-date")},
                      DATED}},
         "VAULT_SIGNATURE_UNREADABLE"                                                                                                     },
        {{.target = "/",
          .headers = {{"Authorization", AUTHORIZATION("${vault:AWS}", "S3", "host;x-amz-date")},
                      DATED}},
         "VAULT_SIGNATURE_UNREADABLE"                                                                                                     },
        {{.target = "/",
          .headers = {{"Authorization", "AWS4-HMAC-SHA256 Credential=${vault:AWS}"}, DATED}},
         "VAULT_SIGNATURE_UNREADABLE"                                                                                                     },
        {{.target = "/",
          .headers = {{"Authorization", AUTHORIZATION("x${vault:AWS}", "s3", "host;x-amz-date")},
                      DATED}},
         "VAULT_PLACEHOLDER_MISPLACED"                                                                                                    },
        {{.target = "/?X-Amz-Credential=${vault:AWS}%2F20150830%2Fus-east-1%2Fs3%2Faws4_request"},
         "VAULT_PLACEHOLDER_MISPLACED"                                                                                                    },
        {{.target = "/", .has_more = true, .headers = {PLAIN, DATED}},                                        "VAULT_BODY_UNREADABLE"     },
        {{.target = "/", .headers = {PLAIN, DATED, {"X-Amz-Security-Token", "mine"}}},
         "VAULT_SECOND_CREDENTIAL"                                                                                                        },
        {{.target = "/", .headers = {PLAIN, DATED}, .value = "only-a-secret"},                                "VAULT_VALUE_UNFIT"         },
        {{.target = "/", .headers = {PLAIN, DATED}, .value = "a/b:secret-of-12"},
         "VAULT_VALUE_UNFIT"                                                                                                              },
        {{.target = "/", .headers = {PLAIN, DATED}, .value = "AKID:secret of 12"},
         "VAULT_VALUE_UNFIT"                                                                                                              },
        {{.target = "/", .headers = {PLAIN, DATED}, .value = "AKID:secret-of-12:"},
         "VAULT_VALUE_UNFIT"                                                                                                              },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct signed_anew out;

        sign(&cases[i].asked, &out);
        CHECK_TEXT(vault_fault_code(out.fault), cases[i].code);
        arena_done(&out.mem);
    }
}

TEST(a_payload_that_is_said_needs_no_body)
{
    static const struct {
        const char *said;
        enum vault_payload payload;
    } cases[] = {
        {"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", VAULT_PAYLOAD_HASHED  },
        {"UNSIGNED-PAYLOAD",                                                 VAULT_PAYLOAD_UNSIGNED},
        {"STREAMING-UNSIGNED-PAYLOAD-TRAILER",                               VAULT_PAYLOAD_UNSIGNED},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct asked asked = {
            .target = "/",
            .has_more = true,
            .headers = {PLAIN, DATED, {"X-Amz-Content-Sha256", cases[i].said}}
        };
        struct signed_anew out;

        sign(&asked, &out);
        CHECK_TEXT(vault_fault_code(out.fault), "");
        CHECK_INT(vault_payload(&out.request), cases[i].payload);
        arena_done(&out.mem);
    }
}
