/* SPDX-License-Identifier: Apache-2.0 */
#include "surface/view/view.h"

#include <stdio.h>
#include <sys/stat.h>

#include "flow/execute/execute.h"
#include "lib/json/json.h"
#include "model/run.h"

const char *view_file_type(uint32_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return "file";
    case S_IFDIR:
        return "directory";
    case S_IFLNK:
        return "link";
    case S_IFIFO:
        return "fifo";
    case S_IFSOCK:
        return "socket";
    case S_IFCHR:
    case S_IFBLK:
        return "device";
    default:
        return "unknown";
    }
}

/* JSON has no larger whole numbers. */
static int64_t exact(uint64_t value)
{
    return value > (1ULL << 53) - 1 ? (int64_t)((1ULL << 53) - 1) : (int64_t)value;
}

struct json *view_file(struct arena *mem, const struct file_entry *entry)
{
    struct json *object = json_object(mem);
    char mode[16];

    json_put_bytes(mem, object, "name", entry->name);
    json_put_text(mem, object, "type", view_file_type(entry->mode));
    (void)snprintf(mode, sizeof mode, "%04o", entry->mode & 07777U);
    json_put_text(mem, object, "mode", mode);
    json_put_int(mem, object, "size", exact(entry->size));
    json_put_text(mem, object, "mtime", view_moment(mem, entry->mtime_s));
    json_put_int(mem, object, "uid", entry->uid);
    json_put_int(mem, object, "gid", entry->gid);
    if (S_ISLNK(entry->mode))
        json_put_bytes(mem, object, "target", entry->target);
    return object;
}

struct json *view_listing(struct arena *mem, const struct file_listing *listing)
{
    struct json *object = json_object(mem), *list = json_array(mem);

    for (size_t i = 0; i < listing->n; i++)
        json_push(list, view_file(mem, &listing->entries[i]));
    json_put(object, "entries", list);
    json_put_bool(mem, object, "truncated", listing->more);
    return object;
}

void view_put_moved(struct arena *mem, struct json *object, const struct run *run)
{
    const struct moved *moved = &run->outcome.moved;

    json_put_text(mem, object, "sandbox_id", run->sandbox_id);
    json_put_text(mem, object, "verb", run->action.verb);
    json_put_bytes(mem, object, "path", str_of(run->action.path));
    json_put_int(mem, object, "bytes", exact(moved->bytes));
    json_put_int(mem, object, "count", exact(moved->entries));
    json_put_int(mem, object, "skipped", exact(moved->skipped));
    if (moved->hash[0])
        json_put_text(mem, object, moved->is_tree ? "tree_hash" : "hash", moved->hash);
    json_put_text(mem, object, "receipt_id", run->closing.id);
    json_put_int(mem, object, "duration_us", exact(run->outcome.duration_us));
}
