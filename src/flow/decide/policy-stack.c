/* SPDX-License-Identifier: Apache-2.0 */
/* A policy and its overlays as one text, so that they are kept, sent and compared as one:
 *
 *     {"layers":1,"overlays":["…","…"],"policy":"…"}
 *
 * in canonical JSON; without "policy" it is the built-in one. Nobody writes it by hand: it is made
 * of --overlay, and of "overlays" of the API. */
#include "flow/decide/layers.h"

#include <string.h>

#include "lib/base/limits.h"
#include "lib/json/json.h"

#define STACK_HEAD "{\"layers\":"

bool is_stack_text(struct str text)
{
    return str_starts(text, STACK_HEAD);
}

bool policy_is_plain(struct str text)
{
    return !is_stack_text(text) && !is_bundle_text(text);
}

int policy_stack_text(struct str policy, const struct str *overlays, size_t n, struct buf *out,
                      struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(POLICY_MEMORY_MAX);
    struct json *object = json_object(&mem), *list = json_array(&mem);

    if (n > POLICY_OVERLAYS_MAX)
        return err_set(err, ERR_LIMIT, "there are more than %d overlays", POLICY_OVERLAYS_MAX);
    if (is_stack_text(policy))
        return err_set(err, ERR_CONFLICT, "the policy has overlays of its own already");
    json_put_int(&mem, object, "layers", 1);
    for (size_t i = 0; i < n; i++)
        json_push(list, json_text(&mem, overlays[i]));
    json_put(object, "overlays", list);
    if (policy.n)
        json_put_text(&mem, object, "policy", arena_text(&mem, policy));
    if (json_canonical(object, out, err) < 0)
        return err_in(err, "a policy and its overlays have at most %lu bytes together",
                      POLICY_TEXT_MAX);
    return 0;
}

int policy_restack(struct arena *mem, struct str before, struct str policy, const char **out,
                   struct err *err)
{
    AUTO_BUF struct buf stack = BUF(POLICY_TEXT_MAX);
    struct stack_parts parts;

    *out = arena_text(mem, policy);
    if (!is_stack_text(before))
        return 0;
    if (stack_read(mem, before, &parts, err) < 0 ||
        policy_stack_text(policy, parts.overlays, parts.overlay_n, &stack, err) < 0)
        return -1;
    *out = arena_text(mem, buf_str(&stack));
    return 0;
}

static int bad_stack(struct err *err)
{
    return err_set(err, ERR_INVALID, "this is no policy with overlays as Brig writes one");
}

int stack_read(struct arena *mem, struct str text, struct stack_parts *out, struct err *err)
{
    AUTO_BUF struct buf again = BUF(POLICY_TEXT_MAX + 1);
    const struct json *root = NULL, *policy, *overlays;
    int64_t version = 0;
    struct mark where;

    *out = (struct stack_parts){0};
    if (json_parse(mem, text, &root, &where, err) < 0)
        return -1;
    policy = json_get(root, "policy");
    overlays = json_get(root, "overlays");
    if (!json_is_int(json_get(root, "layers"), &version) || version != 1 || !overlays ||
        overlays->kind != JSON_ARRAY || overlays->n > POLICY_OVERLAYS_MAX ||
        root->n != (policy ? 3U : 2U) || (policy && policy->kind != JSON_STRING) ||
        json_canonical(root, &again, err) < 0 || again.n != text.n ||
        memcmp(again.p, text.p, text.n) != 0)
        return bad_stack(err);
    if (policy)
        out->policy = policy->text;
    json_each(overlay, overlays)
    {
        if (overlay->kind != JSON_STRING)
            return bad_stack(err);
        out->overlays[out->overlay_n++] = overlay->text;
    }
    return 0;
}
