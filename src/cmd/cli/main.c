/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/cli/cli.h"

#include <fcntl.h>
#include <unistd.h>

/* A standard stream the caller closed becomes /dev/null. Otherwise the first file we open would
 * get its number, and a command's input or output would be our ledger or a socket of ours. */
static int fill_standard_streams(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= 2);
    return fd < 0 ? -1 : close(fd);
}

int main(int argc, char **argv)
{
    if (fill_standard_streams() < 0)
        return 71; /* without streams there is nobody to tell why */
    return cli_main(argc, argv);
}
