/* SPDX-License-Identifier: Apache-2.0 */

/* Sessions judged anew, as everybody is told. */

#include "surface/view/view.h"

#include "flow/advise/advise.h"
#include "lib/json/json.h"

static struct json *judged_json(struct arena *mem, const struct advise_judged *judged)
{
    struct json *json = json_object(mem);
    struct json *list = json_array(mem);

    for (size_t i = 0; i < judged->hit_n; i++) {
        struct json *one = json_object(mem);

        json_put_text(mem, one, "category", judged->hits[i].category);
        json_put_int(mem, one, "n", judged->hits[i].n);
        json_put_text(mem, one, "rule", judged->hits[i].rule);
        json_push(list, one);
    }
    json_put_int(mem, json, "compliance", judged->compliance);
    json_put_text(mem, json, "drift", judged->drift);
    json_put(json, "findings", list);
    json_put_int(mem, json, "unlisted", (int64_t)judged->unlisted);
    json_put_bool(mem, json, "valid", judged->is_valid);
    json_put_text(mem, json, "verdict", judged->verdict);
    return json;
}

struct json *view_difference(struct arena *mem, const char *run_id,
                             const struct advise_difference *it)
{
    struct json *json = json_object(mem);

    json_put(json, "after", it->is_judged ? judged_json(mem, &it->after) : json_null(mem));
    json_put(json, "before", judged_json(mem, &it->before));
    json_put_text(mem, json, "run_id", run_id);
    json_put_int(mem, json, "seq", (int64_t)it->seq);
    json_put_bool(mem, json, "stored", it->is_judged);
    json_put_int(mem, json, "turn", (int64_t)it->turn);
    return json;
}

static struct json *counts_json(struct arena *mem, const uint64_t counts[ADVISORY_CATEGORY_COUNT])
{
    struct json *json = json_object(mem);

    for (int i = 0; i < ADVISORY_CATEGORY_COUNT; i++)
        json_put_int(mem, json, advisory_category_name((enum advisory_category)i),
                     (int64_t)counts[i]);
    return json;
}

struct json *view_replay(struct arena *mem, const struct advise_replay *replay, size_t sessions,
                         size_t left_out, struct json *differences)
{
    struct json *json = json_object(mem);

    json_put(json, "after", counts_json(mem, replay->after));
    json_put(json, "before", counts_json(mem, replay->before));
    json_put_int(mem, json, "differ", (int64_t)replay->differ);
    json_put(json, "differences", differences);
    json_put_int(mem, json, "left_out", (int64_t)left_out);
    json_put_int(mem, json, "not_stored", (int64_t)replay->not_stored);
    json_put_int(mem, json, "not_whole", (int64_t)replay->not_whole);
    json_put_text(mem, json, "profile", replay->strict_seed ? "strict-seed" : "default");
    json_put_int(mem, json, "sessions", (int64_t)sessions);
    json_put_int(mem, json, "turns", (int64_t)replay->turns);
    return json;
}
