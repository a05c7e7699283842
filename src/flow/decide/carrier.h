/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/memory.h"
#include "lib/base/str.h"

/* Programs whose words are, or name, another command: env, timeout, sh -c, xargs, find -exec.
 *
 * What is inside is found only where it can be read off the words with certainty. Whatever is
 * not certain (an option we do not know, text for a shell, arguments that arrive on standard
 * input) makes the command opaque. */

#define INSIDE_MAX 16

/* A part of an argument vector: no NULL behind it. */
struct slice {
    const char *const *v;
    size_t n;
};

struct inside {
    const char *carrier; /* its name; NULL: the command carries no other */
    struct slice commands[INSIDE_MAX];
    size_t n;
    bool opaque; /* also, or only, runs something that cannot be seen */
    bool scan;   /* a command may begin at any later word */
    bool script; /* the command inside is a file given to an interpreter */
    bool shell;  /* and that interpreter is a shell */
};

void carrier_look(struct arena *mem, struct slice command, struct inside *out);

/* Variables through which a program can be made to run something else: PATH, LD_PRELOAD,
 * BASH_ENV, GIT_SSH_COMMAND and their like. */
bool is_steering_variable(const char *assignment);

const char *program_base(const char *program); /* behind the last slash */
