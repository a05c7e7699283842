/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "lib/base/memory.h"
#include "lib/vault/vault-use.h"

static struct str find(const struct vault_filled *filled, const char *lower)
{
    for (size_t i = 0; i < filled->header_count; i++)
        if (http_name_is(filled->headers[i].name, lower))
            return filled->headers[i].value;
    return STR_LIT("missing");
}

struct filled {
    struct arena mem;
    enum vault_fault fault;
    struct vault_filled f;
};

/* Fills every placeholder of the request with the values in turn. */
static void fill(const struct vault_request *request, const char *value, const char *value2,
                 struct filled *out)
{
    struct str values[VAULT_USES_MAX] = {str_of(value), str_of(value2)};
    struct vault_uses uses = {0};
    size_t size;

    *out = (struct filled){.mem = ARENA(1 << 20)};
    CHECK_INT(vault_find(request, &uses), VAULT_NO_FAULT);
    size = vault_fill_bytes(request, &uses, values);
    out->fault = vault_fill(request, &uses, values, arena_alloc(&out->mem, size), size, &out->f);
    if (out->fault == VAULT_NO_FAULT)
        CHECK(out->f.used <= size);
}

static void check_str(struct str got, const char *wanted)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 16);

    CHECK_TEXT(arena_text(&mem, got), wanted);
}

TEST(a_header_gets_the_value_behind_its_scheme)
{
    const struct http_header headers[] = {
        {STR_LIT("Host"),            STR_LIT("h")                  },
        {STR_LIT("Authorization"),   STR_LIT("Bearer ${vault:KEY}")},
        {STR_LIT("Accept-Encoding"), STR_LIT("gzip, br")           },
    };
    const struct vault_request request = {.method = STR_LIT("GET"),
                                          .target = STR_LIT("/a?b=c"),
                                          .headers = headers,
                                          .header_count = 3};
    struct filled out;

    fill(&request, "s3cret-value", "", &out);
    CHECK_INT(out.fault, VAULT_NO_FAULT);
    CHECK_INT(out.f.header_count, 3);
    check_str(find(&out.f, "authorization"), "Bearer s3cret-value");
    check_str(find(&out.f, "accept-encoding"), "identity");
    check_str(out.f.target, "/a?b=c");
    arena_done(&out.mem);
}

TEST(a_query_value_is_encoded)
{
    const struct vault_request request = {.method = STR_LIT("GET"),
                                          .target = STR_LIT("/a?x=1&key=${vault:K}&y=%24"),
                                          .headers = NULL,
                                          .header_count = 0};
    struct filled out;

    fill(&request, "a b&c=d/\x01+%", "", &out);
    CHECK_INT(out.fault, VAULT_NO_FAULT);
    check_str(out.f.target, "/a?x=1&key=a%20b%26c%3Dd%2F%01%2B%25&y=%24");
    check_str(find(&out.f, "accept-encoding"), "identity");
    arena_done(&out.mem);
}

TEST(basic_is_written_anew)
{
    const struct http_header both[] = {
        {STR_LIT("authorization"), STR_LIT("Basic JHt2YXVsdDpVfToke3ZhdWx0OlB9")}
    };
    const struct http_header one[] = {
        {STR_LIT("authorization"), STR_LIT("Basic dXNlcjoke3ZhdWx0OktFWX0=")}
    };
    struct vault_request request = {
        .method = STR_LIT("GET"), .target = STR_LIT("/"), .headers = both, .header_count = 1};
    struct filled out;

    fill(&request, "aladdin!", "open sesame", &out);
    check_str(find(&out.f, "authorization"), "Basic YWxhZGRpbiE6b3BlbiBzZXNhbWU=");
    arena_done(&out.mem);
    request.headers = one;
    fill(&request, "pass:word", "", &out);
    check_str(find(&out.f, "authorization"), "Basic dXNlcjpwYXNzOndvcmQ=");
    arena_done(&out.mem);
}

TEST(a_body_keeps_every_other_byte)
{
    const struct http_header headers[] = {
        {STR_LIT("Content-Type"),   STR_LIT("application/json")},
        {STR_LIT("Content-Length"), STR_LIT("61")              },
    };
    const struct vault_request request = {
        .method = STR_LIT("POST"),
        .target = STR_LIT("/"),
        .headers = headers,
        .header_count = 2,
        .body =
            STR_LIT("{ \"n\": 1.50,\n\t\"k\":\"\\u0024{vault:K}\", \"l\" : [\"${vault:L}\"] }")};
    struct filled out;

    fill(&request, "a\"b\\c\n", "12345678", &out);
    CHECK_INT(out.fault, VAULT_NO_FAULT);
    check_str(out.f.body,
              "{ \"n\": 1.50,\n\t\"k\":\"a\\\"b\\\\c\\u000a\", \"l\" : [\"12345678\"] }");
    check_str(find(&out.f, "content-length"), "55");
    CHECK_INT(out.f.body.n, 55);
    arena_done(&out.mem);
}

TEST(a_form_field_is_encoded)
{
    const struct http_header headers[] = {
        {STR_LIT("Content-Type"),   STR_LIT("application/x-www-form-urlencoded")},
        {STR_LIT("content-length"), STR_LIT("33")                               },
    };
    const struct vault_request request = {.method = STR_LIT("POST"),
                                          .target = STR_LIT("/"),
                                          .headers = headers,
                                          .header_count = 2,
                                          .body = STR_LIT("a=1&client_secret=${vault:K}&b=%20")};
    struct filled out;

    fill(&request, "x&y=z+12", "", &out);
    check_str(out.f.body, "a=1&client_secret=x%26y%3Dz%2B12&b=%20");
    check_str(find(&out.f, "content-length"), "38");
    arena_done(&out.mem);
}

TEST(values_that_would_break_out_are_refused)
{
    static const struct {
        const char *name, *value;
        const char *secret;
        enum vault_fault fault;
    } cases[] = {
        {"X-Key",         "${vault:K}",                         "a\r\nX: y", VAULT_FAULT_UNFIT},
        {"X-Key",         "${vault:K}",                         "tab\there", VAULT_FAULT_UNFIT},
        {"X-Key",         "${vault:K}",                         " lead",     VAULT_FAULT_UNFIT},
        {"X-Key",         "${vault:K}",                         "",          VAULT_FAULT_UNFIT},
        {"Authorization", "Basic JHt2YXVsdDpVfToke3ZhdWx0OlB9", "us:er",     VAULT_FAULT_UNFIT},
        {"X-Key",         "${vault:K}",                         "fine",      VAULT_NO_FAULT   },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct http_header header = {str_of(cases[i].name), str_of(cases[i].value)};
        const struct vault_request request = {.method = STR_LIT("GET"),
                                              .target = STR_LIT("/"),
                                              .headers = &header,
                                              .header_count = 1};
        struct filled out;

        fill(&request, cases[i].secret, "x", &out);
        CHECK_INT(out.fault, cases[i].fault);
        arena_done(&out.mem);
    }
}
