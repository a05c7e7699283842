/* SPDX-License-Identifier: Apache-2.0 */

/* Which files have been made, told by a mark beside them: STATE/made/NAME for STATE/NAME.
 *
 * A mark is written once a file is there with its schema, and whoever opens one that has none
 * writes it. So a crash between the two leaves a file without a mark, which the next opening mends;
 * a mark without its file only comes from somebody who took the file away. */

#include "lib/store/connection.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/base/limits.h"

#define MADE_DIR "made"

/* Empty: there is no such path, and nothing was made there. */
static void mark_path(const char *path, char out[PATH_BYTES_MAX])
{
    const char *name = strrchr(path, '/');
    int n =
        name ? snprintf(out, PATH_BYTES_MAX, "%.*s/" MADE_DIR "%s", (int)(name - path), path, name)
             : snprintf(out, PATH_BYTES_MAX, MADE_DIR "/%s", path);

    if (n < 0 || n >= PATH_BYTES_MAX)
        out[0] = '\0';
}

bool store_was_made(const char *path)
{
    char mark[PATH_BYTES_MAX];

    mark_path(path, mark);
    /* What cannot be looked at may be there. */
    return mark[0] && (access(mark, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR));
}

void made_mark(const char *path, const struct store_schema *schema)
{
    char mark[PATH_BYTES_MAX], text[256];
    char *slash;
    struct err ignored; /* whoever opens it next tries again */
    int n = snprintf(text, sizeof text, "The %s was made. Where it is gone: %s\n", schema->what,
                     schema->if_lost);

    mark_path(path, mark);
    slash = strrchr(mark, '/');
    if (!slash || n < 0)
        return;
    *slash = '\0';
    if (mkdir(mark, 0700) < 0 && errno != EEXIST)
        return;
    *slash = '/';
    if (file_replace(mark, text, strlen(text), 0600, &ignored) < 0)
        return;
}

int made_unmark(const char *path, struct err *err)
{
    char mark[PATH_BYTES_MAX];

    mark_path(path, mark);
    return mark[0] && unlink(mark) < 0 && errno != ENOENT ? err_os(err, "removing %s", mark) : 0;
}
