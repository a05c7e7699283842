/* SPDX-License-Identifier: Apache-2.0 */

/* A call of somebody else's tool, or something that is no request at all. */

#include "flow/admit/admit.h"

#include "lib/base/limits.h"
#include "lib/crypto/crypto.h"
#include "lib/json/json.h"

#include <string.h>

#define TOOL_NAME_MAX 256

static int check_name(const char *name, struct err *err)
{
    if (!*name || strlen(name) > TOOL_NAME_MAX || !str_is_utf8(str_of(name)))
        return err_set(err, ERR_INVALID, "the name of a tool has 1 to %d bytes", TOOL_NAME_MAX);
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f)
            return err_set(err, ERR_INVALID, "the name of a tool has no blanks");
    return 0;
}

static int hash_call(struct run *run, struct str arguments, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    AUTO_BUF struct buf text = BUF(JSON_TEXT_MAX);
    struct json *root = json_object(&mem);

    hash_text_of(arguments, run->action.args_hash);
    json_put_text(&mem, root, "action", action_name(ACTION_TOOL));
    json_put_text(&mem, root, "args_hash", run->action.args_hash);
    json_put_text(&mem, root, "tool", run->action.tool);
    if (json_canonical(root, &text, err) < 0)
        return -1;
    hash_text_of(buf_str(&text), run->action.request_hash);
    return 0;
}

int admit_tool(const struct request *request, struct run *run, struct err *err)
{
    AUTO_BUF struct buf arguments = BUF(ARGV_BYTES_MAX);
    const char **words = arena_array(&run->mem, const char *, 3);

    if (!request->tool || check_name(request->tool, err) < 0)
        return -1;
    if (!request->arguments || request->arguments->kind != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "the arguments of a tool are an object");
    if (json_canonical(request->arguments, &arguments, err) < 0)
        return err_in(err, "arguments");
    if (admit_change(request, run, err) < 0)
        return -1;
    run->action.tool = arena_text(&run->mem, str_of(request->tool));
    if (request->effect)
        run->action.effect = arena_text(&run->mem, str_of(request->effect));
    words[0] = arena_printf(&run->mem, "tool:%s", request->tool);
    words[1] = arena_text(&run->mem, buf_str(&arguments));
    run->action.argv = (struct words){words, 2};
    return hash_call(run, buf_str(&arguments), err);
}

int admit_malformed(const struct request *request, struct str bytes, struct run *run,
                    struct err *err)
{
    if (admit_change(request, run, err) < 0)
        return -1;
    hash_text_of(bytes, run->action.request_hash);
    return 0;
}
