/* SPDX-License-Identifier: Apache-2.0 */

/* Advisory mode over HTTP: what is made of a command, a path, an output, an action. */

#include "surface/api/call.h"
#include "surface/api/session.h"
#include "surface/api/tables.h"

#include "lib/advisory/advisory.h"
#include "lib/base/limits.h"
#include "surface/view/view.h"

struct check_body {
    const char *kind;
    struct str value;
    const char *cwd;
    const char *access;
    const char *profile;
};

/* clang-format off */
static const struct field check_fields[] = {
    {"kind", FIELD_TEXT, offsetof(struct check_body, kind), .required = true, .choices = "command path output action",
     .help = "What the value is."},
    {"value", FIELD_BYTES, offsetof(struct check_body, value), .required = true,
     .help = "What is to be classified; at most 1 MiB."},
    {"cwd", FIELD_TEXT, offsetof(struct check_body, cwd), .max = PATH_BYTES_MAX,
     .help = "Where relative paths begin; /sandbox by default."},
    {"access", FIELD_TEXT, offsetof(struct check_body, access), .choices = "read list create modify delete execute",
     .help = "What is meant to be done with a path; read by default."},
    {"profile", FIELD_TEXT, offsetof(struct check_body, profile), .choices = SESSION_PROFILES,
     .help = "strict-seed: the banned commands by name, without other programs for the same."},
    {0},
};
/* clang-format on */

static int check(struct call *call, const void *body, const void *query, struct err *err)
{
    const struct check_body *asked = body;
    struct advisory_options options = {
        .cwd = str_of(asked->cwd ? asked->cwd : ""),
        .strict_seed = session_is_strict(asked->profile),
    };
    struct advisory_result result;
    enum advisory_kind kind;

    (void)query;
    /* The rows above let no other words through. */
    if (!advisory_kind_read(str_of(asked->kind), &kind) ||
        !advisory_access_read(str_of(asked->access ? asked->access : "read"), &options.access))
        return err_set(err, ERR_INVALID, "kind or access is none there is");
    if (advisory_check(&call->mem, kind, asked->value, &options, &result, err) < 0)
        return -1;
    return call_answer(call, 200, view_advisory(&call->mem, &result), err);
}

/* clang-format off */
const struct route routes_advisory[] = {
    {.method = HTTP_POST,
     .path = "/v1/advisory/check",
     .kind = ROUTE_LOOK,
     .scope = SCOPE_READ,
     .body = BODY_JSON,
     .fields = check_fields,
     .body_size = sizeof(struct check_body),
     .name = "checkAdvisory",
     .summary = "Say what advisory mode makes of a command, a path, an output or an action.",
     .answer = "The verdict, the categories and the rule, where in the value, and what may be said instead. Nothing is run "
               "or recorded.",
     .handle = check},
    {0},
};
/* clang-format on */
