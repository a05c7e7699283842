/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/helm/helm-private.h"

int helm_open(struct helm **out, struct err *err)
{
    struct helm *helm = xcalloc(1, sizeof *helm);

    (void)err;
    helm->pending = pending_new();
    *out = helm;
    return 0;
}

void helm_free(struct helm *helm)
{
    if (!helm)
        return;
    pending_free(helm->pending);
    free(helm);
}

void helm_plug(struct helm *helm)
{
    static const struct route *const tables[] = {
        helm_routes_chat,        helm_routes_sandbox,  helm_routes_tools,
        helm_routes_conformance, helm_routes_evidence, helm_routes_proof,
    };

    for (size_t i = 0; i < COUNT(tables); i++)
        routes_plug(tables[i], helm);
}
