/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/view/view.h"

#include "lib/json/json.h"
#include "lib/snapshot/snapshot.h"
#include "model/run.h"

struct json *view_snapshot(struct arena *mem, const struct snapshot *snapshot)
{
    struct json *object = json_object(mem);

    json_put_text(mem, object, "snapshot_id", snapshot->id);
    json_put_text(mem, object, "name", snapshot->name);
    json_put_text(mem, object, "digest", snapshot->digest);
    json_put_text(mem, object, "sandbox_id", snapshot->sandbox_id);
    json_put_text(mem, object, "created_at", snapshot->created_at);
    json_put_text(mem, object, "principal", snapshot->principal);
    json_put_text(mem, object, "image", snapshot->image);
    json_put_text(mem, object, "image_digest", snapshot->image_digest);
    json_put(object, "layers", view_words(mem, snapshot->names));
    json_put(object, "stack", view_words(mem, snapshot->stack));
    json_put_bool(mem, object, "live", snapshot->live);
    json_put_int(mem, object, "held_us", (int64_t)snapshot->held_us);
    json_put_int(mem, object, "bytes_copied", (int64_t)snapshot->bytes);
    json_put_int(mem, object, "entries_copied", (int64_t)snapshot->entries);
    return object;
}

struct json *view_snapshot_made(struct arena *mem, const struct run *run)
{
    const struct outcome *outcome = &run->outcome;
    struct json *object = json_object(mem);

    json_put_text(mem, object, "sandbox_id", run->sandbox_id);
    if (outcome->snapshot.id)
        json_put_text(mem, object, "snapshot_id", outcome->snapshot.id);
    json_put_bool(mem, object, "live", outcome->snapshot.live);
    json_put_int(mem, object, "held_us", (int64_t)outcome->snapshot.held_us);
    json_put_int(mem, object, "bytes_copied", (int64_t)outcome->moved.bytes);
    json_put_int(mem, object, "entries_copied", (int64_t)outcome->moved.entries);
    return object;
}
