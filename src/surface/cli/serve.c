/* SPDX-License-Identifier: Apache-2.0 */

/* brig serve: becomes the daemon of this state directory. */

#include "surface/cli/commands.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/limits.h"
#include "lib/linux/beside.h"

#define LISTEN_DEFAULT "127.0.0.1:8080"
#define WORDS_MAX 64

struct vector {
    const char *words[WORDS_MAX + 1];
    size_t n;
};

/* Options are few and bounded by the daemon itself; too many of them fail there by name. */
static void add(struct vector *vector, const char *option, const char *value)
{
    if (!value || vector->n + 2 > WORDS_MAX)
        return;
    vector->words[vector->n++] = option;
    vector->words[vector->n++] = value;
}

static void add_each(struct invocation *inv, struct vector *vector, const char *option)
{
    struct words values = option_words(inv, option);

    for (size_t i = 0; i < values.n; i++)
        add(vector, option, values.v[i]);
}

static void add_number(struct invocation *inv, struct vector *vector, const char *option)
{
    uint64_t value = option_number(inv, option);

    if (value)
        add(vector, option, arena_printf(&inv->mem, "%llu", (unsigned long long)value));
}

static void add_flag(struct invocation *inv, struct vector *vector, const char *option)
{
    if (option_flag(inv, option) && vector->n < WORDS_MAX)
        vector->words[vector->n++] = option;
}

/* Somebody who gives it sockets decides where it listens. */
static bool is_activated(void)
{
    return getenv("LISTEN_FDS") != NULL;
}

static void add_places(struct invocation *inv, struct vector *vector, const char *state_dir)
{
    const char *socket = option_text(inv, "--socket");

    add_each(inv, vector, "--listen");
    if (option_words(inv, "--listen").n == 0 && !socket && !is_activated())
        add(vector, "--listen", LISTEN_DEFAULT);
    if (socket)
        add(vector, "--socket", socket);
    else if (!is_activated())
        add(vector, "--socket", arena_printf(&inv->mem, "%s/daemon.sock", state_dir));
}

/* It goes on under our process id: whoever started us signals and waits for the daemon. */
static int become(char *const *argv, struct err *err)
{
    char path[PATH_BYTES_MAX];

    if (program_beside("daemon", path, sizeof path, err) < 0)
        return -1;
    (void)execv(path, argv);
    return err_os(err, "starting %s", path);
}

int run_serve(struct invocation *inv)
{
    struct vector vector = {.words = {"daemon"}, .n = 1};
    const char *state_dir = NULL;
    struct err err;

    if (cli_state(inv, &state_dir, &err) < 0)
        return cli_error(inv, &err);
    add(&vector, "--state", state_dir);
    add_places(inv, &vector, state_dir);
    add_each(inv, &vector, "--host");
    add(&vector, "--policy", option_text(inv, "--policy"));
    add(&vector, "--profile", option_text(inv, "--profile"));
    add(&vector, "--tls-cert", option_text(inv, "--tls-cert"));
    add(&vector, "--tls-key", option_text(inv, "--tls-key"));
    add(&vector, "--upstream", option_text(inv, "--upstream"));
    add(&vector, "--upstream-key-file", option_text(inv, "--upstream-key-file"));
    add(&vector, "--otlp", option_text(inv, "--otlp"));
    add_flag(inv, &vector, "--otlp-plain");
    add_number(inv, &vector, "--runs");
    add_number(inv, &vector, "--grace");
    (void)become((char *const *)(uintptr_t)vector.words, &err);
    return cli_error(inv, &err);
}
