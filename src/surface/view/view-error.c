/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/view/view.h"

#include "lib/json/json.h"

/* The words HELM's clients know. */
static const char *error_type(enum err_code code)
{
    switch (code) {
    case ERR_INVALID:
        return "invalid_request";
    case ERR_FORBIDDEN:
    case ERR_FROZEN:
        return "permission_denied";
    case ERR_NOT_FOUND:
        return "not_found";
    case ERR_CONFLICT:
    case ERR_LIMIT:
    case ERR_STORAGE:
    case ERR_TIMEOUT:
    case ERR_UNAVAILABLE:
    case ERR_KEEPER:
    case ERR_INTEGRITY:
    case ERR_INTERNAL:
    case ERR_OS:
        break;
    }
    return "internal_error";
}

enum reason view_reason(enum err_code code)
{
    if (code == ERR_FROZEN)
        return REASON_SYSTEM_FROZEN;
    if (code == ERR_KEEPER)
        return REASON_KEEPER_UNAVAILABLE;
    if (code == ERR_STORAGE)
        return REASON_NO_SPACE;
    return code == ERR_INVALID ? REASON_REQUEST_INVALID : REASON_NONE;
}

struct json *view_error(struct arena *mem, const struct err *err, enum reason reason,
                        struct json *details)
{
    struct json *error = json_object(mem);
    struct json *answer = json_object(mem);

    json_put_bytes(mem, error, "message", str_of(err->text));
    json_put_text(mem, error, "type", error_type(err->code));
    json_put_text(mem, error, "code", err_name(err->code));
    if (reason != REASON_NONE)
        json_put_text(mem, error, "reason_code", reason_code(reason));
    if (details)
        json_put(error, "details", details);
    json_put(answer, "error", error);
    return answer;
}
