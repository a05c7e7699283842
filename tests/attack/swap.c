/* SPDX-License-Identifier: Apache-2.0 */

/* swap A B: exchanges two names as fast as the kernel can, until it is ended. Runs outside. */

#include "attack.h"

#include <fcntl.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        usage("swap A B");
    while (renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE) == 0)
        continue;
    answer("exchange", errno);
    return 1;
}
