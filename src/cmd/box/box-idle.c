/* SPDX-License-Identifier: Apache-2.0 */

/* A sandbox mostly has nobody in it, and there may be a thousand of them: what building it took on
 * stack and heap is given back to the machine once nothing has happened for a moment. */

#include "cmd/box/box.h"

#include <malloc.h>
#include <sys/mman.h>

/* Less than the gap the kernel keeps below a stack: nothing else lies there. */
#define STACK_BYTES (256U * 1024U)
#define PAGE_BYTES 4096U

void idle_give_back(void)
{
    char here;
    uintptr_t end = ((uintptr_t)&here & ~(uintptr_t)(PAGE_BYTES - 1)) - PAGE_BYTES;

    /* All of it is below us, dead, and read as zeros by whoever gets there again. Not all of it is
     * mapped, which madvise minds but does not stop at. */
    (void)madvise((void *)(end - STACK_BYTES), STACK_BYTES, MADV_DONTNEED);
    (void)malloc_trim(0);
}
