/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* The mount table of this process, which the kernel writes anew for every reader: here it is read
 * again only after something was mounted, unmounted or changed. */
struct mount_table {
    int fd;
    struct buf text;
    uint64_t version; /* another one after each change; 0 is none */
    bool known;       /* text is that of the version */
};

void mount_table_init(struct mount_table *table);
void mount_table_done(struct mount_table *table);
/* Afterwards text and version are those of now. */
int mount_table_read(struct mount_table *table, struct err *err) MUST_CHECK;
