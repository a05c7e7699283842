/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What HELM's SDK and its adapters speak, over the server of surface/api. docs/helm-api.md is its
 * reference. */

#include "lib/base/err.h"

struct helm;

struct helm_config {
    const char *upstream;     /* where other models are: "https://host/v1"; NULL: nowhere */
    const char *upstream_key; /* what it wants to see, or NULL */
};

int helm_open(const struct helm_config *config, struct helm **out, struct err *err) MUST_CHECK;
/* After the last call has ended. */
void helm_free(struct helm *helm);
AUTO_TYPE(helm)

/* Adds its routes; before the API is opened. */
void helm_plug(struct helm *helm);
