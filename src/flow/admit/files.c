/* SPDX-License-Identifier: Apache-2.0 */

/* A file or a port of a kept sandbox, or an image: which, and what is to happen to it. */

#include "flow/admit/admit.h"

#include "lib/base/limits.h"
#include "lib/crypto/crypto.h"
#include "lib/json/json.h"

#include <string.h>

static int check_path(const char *path, struct err *err)
{
    if (!*path)
        return err_set(err, ERR_INVALID, "a path is empty");
    if (strlen(path) >= PATH_BYTES_MAX)
        return err_set(err, ERR_LIMIT, "a path of more than %d bytes", PATH_BYTES_MAX - 1);
    return 0;
}

static int hash_files(struct run *run, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    AUTO_BUF struct buf text = BUF(JSON_TEXT_MAX);
    const struct action *action = &run->action;
    struct json *root = json_object(&mem);

    json_put_text(&mem, root, "action", action_name(action->kind));
    if (action->other)
        json_put_bytes(&mem, root, "other", str_of(action->other));
    if (action->path)
        json_put_bytes(&mem, root, "path", str_of(action->path));
    if (action->port)
        json_put_int(&mem, root, "port", action->port);
    json_put_text(&mem, root, "sandbox", run->sandbox_id);
    if (action->verb)
        json_put_text(&mem, root, "verb", action->verb);
    if (json_canonical(root, &text, err) < 0)
        return -1;
    hash_text_of(buf_str(&text), run->action.request_hash);
    return 0;
}

int admit_files(const struct request *request, struct run *run, struct err *err)
{
    struct action *action = &run->action;

    if ((request->path && check_path(request->path, err) < 0) ||
        (request->other && check_path(request->other, err) < 0) ||
        admit_change(request, run, err) < 0)
        return -1;
    action->verb = request->verb ? arena_text(&run->mem, str_of(request->verb)) : NULL;
    action->path = request->path ? arena_text(&run->mem, str_of(request->path)) : NULL;
    action->other = request->other ? arena_text(&run->mem, str_of(request->other)) : NULL;
    action->port = request->port;
    return hash_files(run, err);
}

static int hash_image(struct run *run, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(RUN_MEMORY_MAX);
    AUTO_BUF struct buf text = BUF(JSON_TEXT_MAX);
    const struct action *action = &run->action;
    struct json *root = json_object(&mem);

    json_put_text(&mem, root, "action", action_name(action->kind));
    json_put_bytes(&mem, root, "image", str_of(action->image));
    if (action->other)
        json_put_bytes(&mem, root, "other", str_of(action->other));
    if (action->path)
        json_put_bytes(&mem, root, "path", str_of(action->path));
    if (json_canonical(root, &text, err) < 0)
        return -1;
    hash_text_of(buf_str(&text), run->action.request_hash);
    return 0;
}

int admit_image(const struct request *request, struct run *run, struct err *err)
{
    struct action *action = &run->action;

    if (strlen(request->image) >= PATH_BYTES_MAX)
        return err_set(err, ERR_LIMIT, "the name of an image of more than %d bytes",
                       PATH_BYTES_MAX - 1);
    if ((request->path && check_path(request->path, err) < 0) ||
        (request->other && check_path(request->other, err) < 0) ||
        admit_change(request, run, err) < 0)
        return -1;
    action->image = arena_text(&run->mem, str_of(request->image));
    action->path = request->path ? arena_text(&run->mem, str_of(request->path)) : NULL;
    action->other = request->other ? arena_text(&run->mem, str_of(request->other)) : NULL;
    return hash_image(run, err);
}
