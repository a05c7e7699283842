/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/helm/helm-private.h"

#include <stdio.h>

#include "lib/http/http-upstream.h"

static int open_upstream(struct helm *helm, const struct helm_config *config, struct err *err)
{
    if (!config->upstream)
        return config->upstream_key
                   ? err_set(err, ERR_INVALID, "--upstream-key-file belongs to --upstream")
                   : 0;
    helm->upstream = xcalloc(1, sizeof *helm->upstream);
    if (http_origin_parse(config->upstream, helm->upstream, err) < 0)
        return err_in(err, "--upstream %.200s", config->upstream);
    if (config->upstream_key &&
        asprintf(&helm->upstream_key, "Bearer %s", config->upstream_key) < 0)
        return err_os(err, "keeping the key of the upstream");
    return helm->upstream->is_tls ? http_upstream_tls(&helm->tls, err) : 0;
}

int helm_open(const struct helm_config *config, struct helm **out, struct err *err)
{
    AUTO(helm) struct helm *helm = xcalloc(1, sizeof *helm);

    helm->pending = pending_new();
    if (open_upstream(helm, config, err) < 0)
        return -1;
    *out = TAKE(helm);
    return 0;
}

void helm_free(struct helm *helm)
{
    if (!helm)
        return;
    pending_free(helm->pending);
    free(helm->upstream);
    free(helm->upstream_key);
    http_tls_free(helm->tls);
    free(helm);
}

void helm_plug(struct helm *helm)
{
    static const struct route *const tables[] = {
        helm_routes_chat,     helm_routes_sandbox, helm_routes_tools,   helm_routes_conformance,
        helm_routes_evidence, helm_routes_proof,   helm_routes_approve,
    };

    for (size_t i = 0; i < COUNT(tables); i++)
        routes_plug(tables[i], helm);
}
