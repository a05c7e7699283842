/* SPDX-License-Identifier: Apache-2.0 */

/* Health, version, counters, and the description of the API. */

#include "surface/api/api-private.h"
#include "surface/api/plug.h"
#include "surface/api/tables.h"

#include <string.h>

#include "lib/base/limits.h"

static int health(struct call *call, const void *body, const void *query, struct err *err)
{
    struct json *object = json_object(&call->mem);

    (void)body;
    (void)query;
    if (!strstr(call->content_type, "application/json"))
        return call_answer_bytes(call, 200, "text/plain", STR_LIT("ok\n"), err);
    /* HELM's clients call everything JSON and want it back; no version without a token. */
    json_put_text(&call->mem, object, "status", "ok");
    json_put_text(&call->mem, object, "version", "");
    return call_answer(call, 200, object, err);
}

static int version(struct call *call, const void *body, const void *query, struct err *err)
{
    struct json *object = json_object(&call->mem);

    (void)body;
    (void)query;
    /* Exactly these: HELM's clients take no others. */
    json_put_text(&call->mem, object, "version", call->api->version);
    json_put_text(&call->mem, object, "commit", "");
    json_put_text(&call->mem, object, "build_time", "");
    json_put_text(&call->mem, object, "go_version", "");
    return call_answer(call, 200, object, err);
}

const char *call_version(const struct call *call)
{
    return call->api->version;
}

static int whoami(struct call *call, const void *body, const void *query, struct err *err)
{
    struct json *object = json_object(&call->mem);

    (void)body;
    (void)query;
    json_put_text(&call->mem, object, "tenant", call->caller.tenant);
    json_put_text(&call->mem, object, "principal", call->caller.principal);
    json_put_text(&call->mem, object, "scopes", scopes_text(&call->mem, call->caller.scopes));
    return call_answer(call, 200, object, err);
}

static int metrics(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)body;
    (void)query;
    buf_clear(&call->answer);
    call->status = 200;
    call->type = "text/plain; version=0.0.4";
    return counts_write(call->api, &call->answer, err);
}

static int openapi(struct call *call, const void *body, const void *query, struct err *err)
{
    (void)body;
    (void)query;
    return call_answer(call, 200, api_openapi(&call->mem), err);
}

/* clang-format off */
const struct route routes_system[] = {
    {.method = HTTP_GET,
     .path = "/healthz",
     .open = true,
     .name = "health",
     .summary = "Whether the daemon answers.",
     .answer = "The word ok; as an object for those who call JSON what they send.",
     .handle = health},
    {.method = HTTP_GET,
     .path = "/version",
     .name = "getVersion",
     .summary = "Which Brig this is.",
     .answer = "Its version, and members HELM's clients want.",
     .handle = version},
    {.method = HTTP_GET,
     .path = "/v1/whoami",
     .name = "whoAmI",
     .summary = "Whom the daemon takes the caller for.",
     .answer = "Tenant, principal and scopes.",
     .handle = whoami},
    {.method = HTTP_GET,
     .path = "/metrics",
     .scope = SCOPE_METRICS,
     .name = "getMetrics",
     .summary = "Counters in the text format of Prometheus.",
     .answer = "Counters, gauges and histograms.",
     .handle = metrics},
    {.method = HTTP_GET,
     .path = "/v1/openapi.json",
     .name = "getOpenApi",
     .summary = "This description.",
     .answer = "An OpenAPI 3.1 document.",
     .handle = openapi},
    {0                    },
};
/* clang-format on */
