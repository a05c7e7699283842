/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "lib/base/attrs.h"
#include "lib/vault/vault-use.h"

#define TYPE_JSON "application/json"
#define TYPE_FORM "application/x-www-form-urlencoded"

/* A request with at most two headers beside Host. */
struct ask {
    const char *target;
    const char *name, *value;
    const char *name2, *value2;
    const char *body;
};

static struct vault_request request_of(const struct ask *ask, struct http_header headers[3])
{
    struct vault_request request = {.method = STR_LIT("POST"),
                                    .target = str_of(ask->target ? ask->target : "/v1/x"),
                                    .headers = headers,
                                    .body = str_of(ask->body ? ask->body : "")};

    headers[request.header_count++] =
        (struct http_header){STR_LIT("host"), STR_LIT("api.example.org")};
    if (ask->name)
        headers[request.header_count++] =
            (struct http_header){str_of(ask->name), str_of(ask->value)};
    if (ask->name2)
        headers[request.header_count++] =
            (struct http_header){str_of(ask->name2), str_of(ask->value2)};
    return request;
}

TEST(placeholders_in_slots_are_uses)
{
    static const struct {
        struct ask ask;
        const char *slot;
        const char *name;
    } cases[] = {
  /* clang-format off */
        {{.name = "Authorization", .value = "Bearer ${vault:KEY}"}, "header:authorization", "KEY"},
        {{.name = "X-Api-Key", .value = "${vault:my.key-2}"}, "header:x-api-key", "my.key-2"},
        {{.name = "Authorization", .value = "Bearer openshell:resolve:env:TOKEN"}, "header:authorization", "TOKEN"},
        {{.name = "Authorization", .value = "token openshell:resolve:env:v12_TOKEN"}, "header:authorization", "TOKEN"},
        {{.name = "X-Key", .value = "openshell:resolve:env:s0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef_K"}, "header:x-key", "K"},
        {{.name = "Authorization", .value = "Bearer sk-OPENSHELL-RESOLVE-ENV-TOKEN"}, "header:authorization", "TOKEN"},
        {{.target = "/a?key=${vault:K}"}, "query:key", "K"},
        {{.target = "/a?x=1&key=%24%7Bvault%3AK%7D&y=2"}, "query:key", "K"},
        {{.target = "/a?k%65y=%24%7bvault:K}"}, "query:key", "K"},
        {{.name = "Authorization", .value = "Basic dXNlcjoke3ZhdWx0OktFWX0="}, "basic:password", "KEY"},
        {{.name = "authorization", .value = "basic JHt2YXVsdDpLRVl9Ong="}, "basic:user", "KEY"},
        {{.name = "content-type", .value = TYPE_JSON, .body = "{\"a\": [1, {\"t/k\": \"${vault:K}\"}]}"}, "body:/a/1/t~1k", "K"},
        {{.name = "content-type", .value = "application/vnd.x+json; charset=utf-8", .body = "{\n \"a\":\n  \"\\u0024{vault:K}\"}"}, "body:/a", "K"},
        {{.name = "content-type", .value = TYPE_FORM, .body = "grant=x&client_secret=%24%7Bvault%3AK%7D"}, "body:/client_secret", "K"},
  /* clang-format on */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_header headers[3];
        struct vault_request request = request_of(&cases[i].ask, headers);
        struct vault_uses uses = {0};
        char slot[VAULT_SLOT_TEXT_BYTES];

        CHECK_TEXT(vault_fault_code(vault_find(&request, &uses)), "");
        CHECK_INT(uses.n, 1);
        vault_slot_text(&uses.v[0].slot, slot);
        CHECK_TEXT(slot, cases[i].slot);
        CHECK_TEXT(uses.v[0].name, cases[i].name);
    }
}

TEST(requests_without_any_have_no_uses)
{
    static const struct ask cases[] = {
  /* clang-format off */
        {0},
        {.target = "/a?x=${HOME}&vault=1&y=$%7Bvau&z=lt:X}"},
        {.name = "Authorization", .value = "Bearer own-token"},
        {.name = "Authorization", .value = "Basic dXNlcjpwYXNz"},
        {.name = "X", .value = "openshell:resolve"},
        {.name = "content-type", .value = TYPE_JSON, .body = "{\"a\": not json"},
  /* clang-format on */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_header headers[3];
        struct vault_request request = request_of(&cases[i], headers);
        struct vault_uses uses = {.n = 9};

        CHECK_INT(vault_find(&request, &uses), VAULT_NO_FAULT);
        CHECK_INT(uses.n, 0);
    }
}

TEST(placeholders_elsewhere_are_refused)
{
    static const struct {
        struct ask ask;
        const char *code;
    } cases[] = {
  /* clang-format off */
        {{.target = "/bot${vault:K}/x"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.target = "/%24%7Bvault%3AK%7D"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.target = "/%2524%257Bvault:K}"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.target = "/JHt2YXVsdDpLfQ=="}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.target = "/a?${vault:K}=1"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.target = "/a?x=a${vault:K}"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.target = "/a?x=${vault:K}b"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.target = "/a?x=${vault:K}${vault:L}"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.target = "/a?x=%2524{vault:K}"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.target = "/a?x=${vault:K"}, "VAULT_PLACEHOLDER_MALFORMED"},
        {{.target = "/a?x=${vault:}"}, "VAULT_PLACEHOLDER_MALFORMED"},
        {{.target = "/a?x=${vault:a/b}"}, "VAULT_PLACEHOLDER_MALFORMED"},
        {{.target = "/a?x=${vault:K}&x=own"}, "VAULT_SECOND_CREDENTIAL"},
        {{.target = "/a?x=own&%78=${vault:K}"}, "VAULT_SECOND_CREDENTIAL"},
        {{.name = "${vault:K}", .value = "x"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.name = "X-Key", .value = "a ${vault:K} b"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.name = "X-Key", .value = "Bearer  ${vault:K}"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.name = "X-Key", .value = "own-token, ${vault:K}"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.name = "X-Key", .value = "%24{vault:K}"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.name = "X-Key", .value = "\\u0024{vault:K}"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.name = "X-Key", .value = "${vault:K"}, "VAULT_PLACEHOLDER_MALFORMED"},
        {{.name = "Cookie", .value = "${vault:K}"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.name = "Host", .value = "${vault:K}"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.name = "Content-Length", .value = "${vault:K}"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.name = "Proxy-Authorization", .value = "Bearer ${vault:K}"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.name = "X-Other", .value = "Basic dXNlcjoke3ZhdWx0OktFWX0="}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.name = "Authorization", .value = "Basic dXNlcjp4JHt2YXVsdDpLRVl9"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.name = "Authorization", .value = "Bearer ${vault:K}", .name2 = "authorization", .value2 = "Bearer own"}, "VAULT_SECOND_CREDENTIAL"},
        {{.name = "X-Key", .value = "${vault:K}", .name2 = "x-key", .value2 = "${vault:K}"}, "VAULT_SECOND_CREDENTIAL"},
        {{.target = "/a?k=${vault:K}", .name = "Authorization", .value = "Bearer own"}, "VAULT_SECOND_CREDENTIAL"},
        {{.target = "/a?k=${vault:K}", .name = "X-API-Key", .value = "own"}, "VAULT_SECOND_CREDENTIAL"},
        {{.target = "/a?k=${vault:K}", .name = "Cookie", .value = "session=own"}, "VAULT_SECOND_CREDENTIAL"},
        {{.name = "cookie", .value = "a=b", .name2 = "Authorization", .value2 = "Bearer ${vault:K}"}, "VAULT_SECOND_CREDENTIAL"},
        {{.name = "Cookie", .value = "${vault:K}"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.name = "Cookie", .value = "session=${vault:K}"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.name = "Cookie", .value = "session=openshell:resolve:env:K"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.target = "/?a=${vault:K}&b=${vault:K}&c=${vault:K}&d=${vault:K}&e=${vault:K}"}, "VAULT_TOO_MANY"},
        {{.body = "text ${vault:K}"}, "VAULT_BODY_UNREADABLE"},
        {{.name = "content-type", .value = "text/plain", .body = "%24%7bvault:K}"}, "VAULT_BODY_UNREADABLE"},
        {{.name = "content-type", .value = TYPE_JSON, .body = "{\"a\": \"${vault:K}\""}, "VAULT_BODY_UNREADABLE"},
        {{.name = "content-type", .value = TYPE_JSON, .body = "{\"a\": \"${vault:K}\", \"a\": 1}"}, "VAULT_BODY_UNREADABLE"},
        {{.name = "content-type", .value = TYPE_JSON, .name2 = "content-encoding", .value2 = "x", .body = "{\"a\": \"${vault:K}\"}"}, "VAULT_BODY_UNREADABLE"},
        {{.name = "content-type", .value = TYPE_JSON, .body = "{\"${vault:K}\": 1}"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.name = "content-type", .value = TYPE_JSON, .body = "{\"a\": \"x ${vault:K}\"}"}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.name = "content-type", .value = TYPE_JSON, .body = "\"${vault:K}\""}, "VAULT_PLACEHOLDER_MISPLACED"},
        {{.name = "content-type", .value = TYPE_FORM, .body = "a=${vault:K}&a=1"}, "VAULT_SECOND_CREDENTIAL"},
  /* clang-format on */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_header headers[3];
        struct vault_request request = request_of(&cases[i].ask, headers);
        struct vault_uses uses = {.n = 9};

        CHECK_TEXT(vault_fault_code(vault_find(&request, &uses)), cases[i].code);
        CHECK_INT(uses.n, 9); /* outputs are untouched on failure */
    }
}

TEST(both_halves_of_basic_can_be_the_vaults)
{
    const struct ask ask = {.name = "Authorization", .value = "Basic JHt2YXVsdDpVfToke3ZhdWx0OlB9"};
    struct http_header headers[3];
    struct vault_request request = request_of(&ask, headers);
    struct vault_uses uses = {0};

    CHECK_INT(vault_find(&request, &uses), VAULT_NO_FAULT);
    CHECK_INT(uses.n, 2);
    CHECK_INT(uses.v[0].slot.kind, VAULT_BASIC_USER);
    CHECK_TEXT(uses.v[0].name, "U");
    CHECK_INT(uses.v[1].slot.kind, VAULT_BASIC_PASSWORD);
    CHECK_TEXT(uses.v[1].name, "P");
}

TEST(own_values_in_bound_slots_are_refused)
{
    static const struct {
        struct ask ask;
        const char *slot;
        enum vault_fault fault;
    } cases[] = {
  /* clang-format off */
        {{.name = "Authorization", .value = "Bearer own"}, "header:authorization", VAULT_FAULT_SECOND},
        {{.name = "Authorization", .value = "Basic dXNlcjpwYXNz"}, "basic:password", VAULT_FAULT_SECOND},
        {{.name = "X-Key", .value = "own"}, "header:x-key", VAULT_FAULT_SECOND},
        {{.target = "/a?k%65y=own"}, "query:key", VAULT_FAULT_SECOND},
        {{.name = "content-type", .value = TYPE_JSON, .body = "{\"a\":{\"b\":1}}"}, "body:/a/b", VAULT_FAULT_SECOND},
        {{.name = "content-type", .value = TYPE_JSON, .body = "{\"c\":1,\"c\":2}"}, "body:/c", VAULT_FAULT_SECOND},
        {{.name = "content-type", .value = TYPE_FORM, .body = "b=2&a=1"}, "body:/a", VAULT_FAULT_SECOND},
        {{.name = "Authorization", .value = "Bearer ${vault:K}"}, "header:authorization", VAULT_NO_FAULT},
        {{.name = "X-Other", .value = "x"}, "header:authorization", VAULT_NO_FAULT},
        {{.target = "/a?keys=own"}, "query:key", VAULT_NO_FAULT},
        {{0}, "body:/a", VAULT_NO_FAULT},
  /* clang-format on */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_header headers[3];
        struct vault_request request = request_of(&cases[i].ask, headers);
        struct vault_uses uses = {0};
        struct vault_slot slot;
        struct err err;

        CHECK_INT(vault_slot_parse(str_of(cases[i].slot), &slot, &err), 0);
        CHECK_INT(vault_find(&request, &uses), VAULT_NO_FAULT);
        CHECK_INT(vault_find_own(&request, &uses, &slot, 1), cases[i].fault);
    }
}

TEST(a_scan_finds_them_however_the_bytes_are_cut)
{
    static const struct {
        const char *text;
        unsigned hits;
    } cases[] = {
        {"a ${vault:K} b",                               1},
        {"$${vault:",                                    1},
        {"%24%7Bvault%3a",                               1},
        {"%%24{vault:",                                  1},
        {"%2${vault:",                                   1},
        {"%252524%7Bvault:",                             0},
        {"%2524%257Bvault:",                             1},
        {"\\u0024{vault:",                               1},
        {"\\${vault\\:",                                 1},
        {"\\u00${vault:",                                1},
        {"\\u002524{vault:",                             1},
        {"%5cu0024{vault:",                              1},
        {"openshell:resopenshell:resolve:env:X",         1},
        {"x-OPENSHELL-RESOLVE-ENV-X ${vault:Y}",         2},
        {"eHh4JHt2YXVsdDpLfQ==",                         1},
        {"eCR7dmF1bHQ6S30=",                             1},
        {"eHgke3ZhdWx0Okt9",                             1},
        {"eG9wZW5zaGVsbDpyZXNvbHZlOmVudjpY",             1},
        {"nothing: $ { vault : } openshell resolve env", 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str text = str_of(cases[i].text);

        for (size_t cut = 0; cut <= text.n; cut++) {
            struct vault_scan scan = {0};

            (void)vault_scan_feed(&scan, (struct str){text.p, cut});
            CHECK_INT(vault_scan_feed(&scan, (struct str){text.p + cut, text.n - cut}),
                      cases[i].hits);
        }
    }
}

TEST(slots_are_read_strictly)
{
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
  /* clang-format off */
        {"", "a slot is header:NAME, query:KEY, body:/POINTER, basic:user, basic:password, sigv4:SERVICE/REGION or websocket:/POINTER"},
        {"path:/token", "no secret can go into a path: paths are judged, logged and kept by servers; a slot is header:NAME, query:KEY, body:/POINTER, basic:user, basic:password, sigv4:SERVICE/REGION or websocket:/POINTER"},
        {"header:cookie", "no secret can go into the header cookie"},
        {"other:x", "a slot is header:NAME, query:KEY, body:/POINTER, basic:user, basic:password, sigv4:SERVICE/REGION or websocket:/POINTER"},
        {"cookie:x", "no secret can go into a cookie: servers set them and clients keep them; a slot is header:NAME, query:KEY, body:/POINTER, basic:user, basic:password, sigv4:SERVICE/REGION or websocket:/POINTER"},
        {"basic:users", "a slot is header:NAME, query:KEY, body:/POINTER, basic:user, basic:password, sigv4:SERVICE/REGION or websocket:/POINTER"},
        {"header:", "the name of a slot has 1 to 255 printable characters"},
        {"header:a b", "\"a b\" is not the name of a header"},
        {"header:Host", "no secret can go into the header host"},
        {"query:a\nb", "the name of a slot has 1 to 255 printable characters"},
        {"body:field", "\"field\" is not a JSON pointer: write body:/field or body:/a/b"},
        {"sigv4:s3", "\"s3\" is not a service and its region: write sigv4:s3/eu-west-1"},
        {"sigv4:S3/eu-west-1", "\"S3/eu-west-1\" is not a service and its region: write sigv4:s3/eu-west-1"},
        {"sigv4:s3/eu/west", "\"s3/eu/west\" is not a service and its region: write sigv4:s3/eu-west-1"},
        {"body:/a~2", "\"/a~2\" is not a JSON pointer: write body:/field or body:/a/b"},
  /* clang-format on */
    };
    struct vault_slot slot = {0};
    char text[VAULT_SLOT_TEXT_BYTES];
    struct err err;

    for (size_t i = 0; i < COUNT(cases); i++) {
        CHECK_INT(vault_slot_parse(str_of(cases[i].text), &slot, &err), -1);
        CHECK_TEXT(err.text, cases[i].error);
        CHECK_INT(slot.kind, VAULT_NO_SLOT);
    }
    CHECK_INT(vault_slot_parse(STR_LIT("header:X-Api-Key"), &slot, &err), 0);
    vault_slot_text(&slot, text);
    CHECK_TEXT(text, "header:x-api-key");
}

TEST(names_leave_room_for_revisions)
{
    static const struct {
        const char *name;
        bool is_name;
    } cases[] = {
  /* clang-format off */
        {"KEY",      true }, {"a.b-c_9", true }, {"_x",   true }, {"v1",  true }, {"v_x", true },
        {"v1x_K",    true }, {"",        false}, {"-a",   false}, {".a",  false}, {"a b", false},
        {"v1_K",     false}, {"a/b",     false}, {"k}",   false},
        {"s0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef_K", false},
        {"s0123_K", true },
  /* clang-format on */
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        CHECK_INT(vault_is_name(str_of(cases[i].name)), cases[i].is_name);
}
