/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Folders that lie over each other as overlayfs sees them: the upper one wins, folders of one name
 * are one unless the upper is opaque, a whiteout takes away what is below. Written by hand because
 * a merge through a mount would lose the whiteouts that hide what is in an image below all of it.
 *
 * What is read was made by a sandbox: every name is opened beneath its folder and through no link,
 * and everything is counted against a ceiling. */

#include "lib/crypto/crypto.h"

#include <stdint.h>

struct tree_result {
    uint64_t bytes; /* content of regular files */
    uint64_t entries;
    uint64_t skipped; /* device nodes, which a sandbox cannot make */
    char digest[HASH_TEXT_BYTES];
};

/* Copies what the folders show together, uppermost first, into the empty folder out_fd and hashes
 * it on the way; out_fd -1 only hashes. Kept are modes without set-id bits, times, holes, hard
 * links, user attributes, whiteouts, and, when asked, owners. The hash is that of the tree hash in
 * docs/formats/receipt.md, with the types p and s for pipes and sockets, w for a whiteout and o
 * for an opaque folder. */
int tree_merge(const int *dir_fds, size_t dir_n, int out_fd, bool owners, struct tree_result *out,
               struct err *err) MUST_CHECK;
