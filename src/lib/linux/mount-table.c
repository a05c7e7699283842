/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/linux/mount-table.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

void mount_table_init(struct mount_table *table)
{
    *table = (struct mount_table){.fd = -1, .text = BUF(PROC_TEXT_MAX)};
}

void mount_table_done(struct mount_table *table)
{
    buf_done(&table->text);
    if (table->fd >= 0)
        (void)close(TAKE_FD(table->fd));
}

/* proc(5): an open mountinfo is exceptional once for every change since it was asked last. */
static bool has_changed(const struct mount_table *table)
{
    struct pollfd polled = {.fd = table->fd, .events = POLLPRI};

    return poll(&polled, 1, 0) != 0;
}

static int read_again(struct mount_table *table, struct err *err)
{
    buf_clear(&table->text);
    table->version++;
    if (lseek(table->fd, 0, SEEK_SET) < 0)
        return err_os(err, "going back to its beginning");
    return read_all(table->fd, &table->text, err);
}

int mount_table_read(struct mount_table *table, struct err *err)
{
    if (table->fd < 0)
        table->fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (table->fd < 0)
        return err_os(err, "opening /proc/self/mountinfo");
    /* Asked before it is read: a change while reading is found by the next one. */
    if (!has_changed(table) && table->known)
        return 0;
    table->known = read_again(table, err) == 0;
    return table->known ? 0 : err_in(err, "/proc/self/mountinfo");
}
