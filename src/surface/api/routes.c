/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/api/route.h"

#include "surface/api/tables.h"

#include <assert.h>
#include <string.h>

/* clang-format off */
const struct route *route_tables[ROUTE_TABLES_MAX + 1] = {
    routes_system,
    routes_sandboxes,
    routes_exec,
    routes_execs,
    routes_files,
    routes_snapshots,
    routes_explain,
    routes_images,
    routes_machine,
    routes_policies,
    routes_ports,
    routes_tail, /* before /v1/receipts/{id} */
    routes_receipts,
    routes_tokens,
    routes_freeze,
    routes_vault,
    routes_usage,
    routes_budgets,
    routes_advisory,
    routes_sessions,
    routes_session_actions,
    routes_session_replay,
    routes_gate,
    routes_approvals,
    NULL,
};
/* clang-format on */

static void *owners[ROUTE_TABLES_MAX]; /* of the table in the same place */

void routes_plug(const struct route *rows, void *owner)
{
    size_t n = 0;

    while (route_tables[n] && route_tables[n] != rows)
        n++;
    assert(n < ROUTE_TABLES_MAX);
    route_tables[n] = rows;
    owners[n] = owner;
}

void *route_owner(const struct route *route)
{
    for (size_t i = 0; route_tables[i]; i++)
        for (const struct route *row = route_tables[i]; row->handle; row++)
            if (row == route)
                return owners[i];
    return NULL;
}

const char *http_method_name(enum http_method method)
{
    static const char *const names[] = {
        [HTTP_OTHER_METHOD] = "", [HTTP_GET] = "GET",         [HTTP_HEAD] = "HEAD",
        [HTTP_POST] = "POST",     [HTTP_PUT] = "PUT",         [HTTP_PATCH] = "PATCH",
        [HTTP_DELETE] = "DELETE", [HTTP_OPTIONS] = "OPTIONS", [HTTP_CONNECT] = "CONNECT",
        [HTTP_TRACE] = "TRACE",
    };

    return names[method];
}

static bool is_param(struct str segment)
{
    return segment.n > 2 && segment.p[0] == '{';
}

static bool takes_rest(struct str segment)
{
    return is_param(segment) && str_ends(segment, "...}");
}

/* Whether the segments are what the path says; parameters are filled on the way. */
static bool matches(const char *path, const struct str *segments, size_t n,
                    struct str params[ROUTE_PARAMS_MAX])
{
    struct str rest = str_of(path + 1);
    size_t i = 0, param = 0;

    while (rest.n) {
        struct str wanted = str_cut(&rest, '/');

        if (takes_rest(wanted))
            return i < n;
        if (i >= n)
            return false;
        if (is_param(wanted)) {
            if (segments[i].n == 0)
                return false;
            params[param++] = segments[i];
        } else if (!str_eq(wanted, segments[i])) {
            return false;
        }
        i++;
    }
    return i == n;
}

const struct route *route_find(enum http_method method, const struct str *segments, size_t n,
                               struct str params[ROUTE_PARAMS_MAX], bool *other)
{
    *other = false;
    route_each(route)
    {
        if (!matches(route->path, segments, n, params))
            continue;
        /* HEAD is GET whose body is left out. */
        if (route->passes || route->method == method ||
            (method == HTTP_HEAD && route->method == HTTP_GET))
            return route;
        *other = true;
    }
    return NULL;
}
