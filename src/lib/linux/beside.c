/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/beside.h"

#include "lib/base/limits.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int program_beside(const char *name, char *out, size_t size, struct err *err)
{
    /* Beside us; installed, bin/brig and libexec/brig/NAME; built, cmd/cli/brig and cmd/NAME/NAME.
     */
    static const struct {
        const char *folder;
        bool named; /* in a folder named like the program */
    } places[] = {
        {"",                 false},
        {"../libexec/brig/", false},
        {"../",              true },
    };
    char self[PATH_BYTES_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    if (n <= 0)
        return err_os(err, "finding our own program");
    self[n] = '\0';
    slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; i < COUNT(places); i++) {
        struct stat st;

        (void)snprintf(out, size, "%s/%s%s%s%s", self, places[i].folder,
                       places[i].named ? name : "", places[i].named ? "/" : "", name);
        if (stat(out, &st) < 0 || !S_ISREG(st.st_mode) || access(out, X_OK) < 0)
            continue;
        if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & S_IWOTH))
            return err_set(err, ERR_FORBIDDEN,
                           "%s can be changed by others; give it to root or to yourself", out);
        return 0;
    }
    return err_set(err, ERR_UNAVAILABLE, "the program \"%s\" is not beside %s; reinstall Brig",
                   name, self);
}
