/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What passes between us and the program `layers`: its arguments, descriptors it is born with, and
 * one answer on standard output. Both come from the same build.
 *
 *     layers copy NAME...   fd 3: the set to make; fd 4...: the folder of each name
 *     layers merge          fd 3: the set to make; fd 4...: the sets to merge, uppermost first
 *     layers hash           fd 3: unused;          fd 4...: the sets, uppermost first */

#include "lib/base/err.h"
#include "lib/snapshot/tree.h"

enum { LAYERS_FD_OUT = 3, LAYERS_FD_FIRST = 4 };

struct layers_answer {
    struct tree_result result;
    struct err err; /* when failed is set */
    int failed;
};
