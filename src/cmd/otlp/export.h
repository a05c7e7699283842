/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to cmd/otlp. */

#include "cmd/otlp/post.h"
#include "lib/otlp/otlp.h"

struct export_config {
    int socket_fd;
    struct otlp_numbers *numbers; /* of the shared page */
    struct otlp_resource resource;
    struct post_config post;
};

/* Takes items from the socket and hands them to the collector; returns when the daemon is gone and
 * nothing waits any more, or it has waited long enough. */
int export_run(const struct export_config *config, struct err *err) MUST_CHECK;
