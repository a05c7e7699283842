/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/view/view.h"

#include "lib/access/freeze.h"
#include "lib/json/json.h"

struct json *view_frozen(struct arena *mem, const struct frozen *entry)
{
    struct json *object = json_object(mem);

    if (entry->tenant[0])
        json_put_text(mem, object, "tenant", entry->tenant);
    if (entry->principal[0])
        json_put_text(mem, object, "principal", entry->principal);
    json_put_bool(mem, object, "everything", !entry->tenant[0] && !entry->principal[0]);
    if (entry->since)
        json_put_text(mem, object, "since", view_moment(mem, entry->since));
    if (entry->by[0])
        json_put_text(mem, object, "by", entry->by);
    if (entry->reason[0])
        json_put_text(mem, object, "reason", entry->reason);
    return object;
}
