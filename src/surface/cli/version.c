/* SPDX-License-Identifier: Apache-2.0 */

/* What exactly is running: version, build, compiler, libraries. */

#include "surface/cli/commands.h"

#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include "lib/json/json.h"
#include "surface/cli/build.h"

#if defined __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* Whether BRIG_CRASH_AT ends the program at named points: builds for tests only. */
#ifdef BRIG_CRASH_POINTS
#define HAS_CRASH_POINTS true
#else
#define HAS_CRASH_POINTS false
#endif

static const struct {
    const char *name;
    const char *version;
} libraries[] = {BUILD_LIBRARIES};

int run_version(struct invocation *inv)
{
    struct json *answer;
    struct json *libs;

    if (!inv->json) {
        (void)fprintf(inv->out, "%s %s (%s)\n", inv->program, BUILD_VERSION, BUILD_ID);
        (void)fprintf(inv->out, "built with %s, %s", COMPILER, BUILD_LINKAGE);
        for (size_t i = 0; i < COUNT(libraries); i++)
            (void)fprintf(inv->out, ", %s %s", libraries[i].name, libraries[i].version);
        if (HAS_CRASH_POINTS)
            (void)fprintf(inv->out, ", with crash points");
        (void)fputc('\n', inv->out);
        return 0;
    }
    answer = json_object(&inv->mem);
    libs = json_object(&inv->mem);
    json_put_text(&inv->mem, answer, "version", BUILD_VERSION);
    json_put_text(&inv->mem, answer, "build", BUILD_ID);
    json_put_text(&inv->mem, answer, "compiler", COMPILER);
    json_put_text(&inv->mem, answer, "linkage", BUILD_LINKAGE);
    json_put_bool(&inv->mem, answer, "crash_points", HAS_CRASH_POINTS);
    for (size_t i = 0; i < COUNT(libraries); i++)
        json_put_text(&inv->mem, libs, libraries[i].name, libraries[i].version);
    json_put(answer, "libraries", libs);
    return cli_json(inv, answer);
}
