/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/store/store.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "lib/store/connection.h"

/* How SQLite's failures look to a person: kind, and what to do. */
static const struct failure {
    int primary;
    enum err_code code;
    const char *text;
} failures[] = {
    {SQLITE_NOTADB,     ERR_INTEGRITY,
     "is not a database: it is damaged or something else; restore it from a backup"                      },
    {SQLITE_CORRUPT,    ERR_INTEGRITY,
     "is damaged; keep it for examination and restore it from a backup"                                  },
    {SQLITE_FULL,       ERR_STORAGE,
     "cannot grow: the disk (or the quota) is full; make room and try again"                             },
    {SQLITE_READONLY,   ERR_UNAVAILABLE,
     "cannot be written: check the owner and the mode of the file and of its folder"                     },
    {SQLITE_CANTOPEN,   ERR_UNAVAILABLE,
     "cannot be opened: check that its folder exists and that you may write there"                       },
    {SQLITE_PERM,       ERR_UNAVAILABLE,
     "cannot be accessed: check the owner and the mode of the file and its folder"                       },
    {SQLITE_AUTH,       ERR_UNAVAILABLE,
     "cannot be accessed: check the owner and the mode of the file and its folder"                       },
    {SQLITE_BUSY,       ERR_TIMEOUT,     "stays locked by another process; try again when that has ended"},
    {SQLITE_LOCKED,     ERR_TIMEOUT,     "stays locked by another process; try again when that has ended"},
    {SQLITE_CONSTRAINT, ERR_CONFLICT,    "has such an entry already"                                     },
    {SQLITE_IOERR,      ERR_OS,          "cannot be read or written"                                     },
};

/* Failures of which the system says more than SQLite. Of others its last error may be an older one.
 */
static bool is_systems(int primary)
{
    return primary == SQLITE_CANTOPEN || primary == SQLITE_READONLY || primary == SQLITE_IOERR;
}

/* Of a file that cannot be made SQLite tells what it tried last, which is to read what is not
 * there. The file system tells why. */
static int os_error(const struct store *store, int primary)
{
    int os = store->db ? sqlite3_system_errno(store->db) : 0;
    struct statvfs fs;

    if (!is_systems(primary) || os == ENOSPC || os == EDQUOT || statvfs(store->path, &fs) < 0)
        return os;
    if (fs.f_flag & ST_RDONLY)
        return EROFS;
    return primary == SQLITE_CANTOPEN && fs.f_files && fs.f_favail == 0 ? ENOSPC : os;
}

static const struct failure *failure_of(int primary, int os)
{
    static const struct failure full = {0, ERR_STORAGE,
                                        "cannot grow: the disk (or the quota) is full, or has no "
                                        "place for another file; make room and try again"};
    static const struct failure read_only = {0, ERR_UNAVAILABLE,
                                             "cannot be written: its file system is mounted "
                                             "read-only"};

    if (is_systems(primary) && (os == ENOSPC || os == EDQUOT))
        return &full;
    if (is_systems(primary) && os == EROFS)
        return &read_only;
    for (size_t i = 0; i < COUNT(failures); i++)
        if (failures[i].primary == primary)
            return &failures[i];
    return NULL;
}

int store_failed(struct store *store, int code, struct err *err)
{
    int primary = code & 0xff, os = os_error(store, primary);
    const char *detail = store->db ? sqlite3_errmsg(store->db) : sqlite3_errstr(code);
    const struct failure *failure = failure_of(primary, os);

    if (!failure)
        return err_set(err, ERR_INTERNAL, "the %s %s: %s", store->what, store->path, detail);
    (void)err_set(err, failure->code, "the %s %s %s (%s%s%s)", store->what, store->path,
                  failure->text, detail, os ? ": " : "", os ? strerrordesc_np(os) : "");
    err->os = os;
    return -1;
}

int statement_prepare(struct store *store, const char *sql, struct statement *out, struct err *err)
{
    sqlite3_stmt *handle = NULL;
    int code = sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &handle, NULL);

    if (code != SQLITE_OK)
        return store_failed(store, code, err);
    *out = (struct statement){handle, store};
    return 0;
}

void statement_done(struct statement *st)
{
    (void)sqlite3_finalize(st->handle); /* repeats the failure of the last step, told already */
    *st = (struct statement){0};
}

/* The places are ours and the bytes below SQLite's limits: anything else is a mistake here. */
static void bound(int code)
{
    assert(code == SQLITE_OK);
    (void)code;
}

void statement_bind_int(struct statement *st, int place, int64_t value)
{
    bound(sqlite3_bind_int64(st->handle, place, value));
}

void statement_bind_text(struct statement *st, int place, struct str text)
{
    bound(sqlite3_bind_text(st->handle, place, text.p ? text.p : "", (int)text.n, SQLITE_STATIC));
}

void statement_bind_blob(struct statement *st, int place, struct str bytes)
{
    bound(
        sqlite3_bind_blob(st->handle, place, bytes.p ? bytes.p : "", (int)bytes.n, SQLITE_STATIC));
}

int statement_step(struct statement *st, struct err *err)
{
    int code;

    st->store->wait_until_us = 0;
    code = sqlite3_step(st->handle);
    if (code == SQLITE_ROW)
        return 1;
    if (code != SQLITE_DONE)
        (void)store_failed(st->store, code, err);
    (void)sqlite3_reset(st->handle); /* repeats the failure just told */
    return code == SQLITE_DONE ? 0 : -1;
}

void statement_reset(struct statement *st)
{
    (void)sqlite3_reset(st->handle);
}

int64_t statement_int(const struct statement *st, int column)
{
    return sqlite3_column_int64(st->handle, column);
}

struct str statement_bytes(const struct statement *st, int column)
{
    const char *p = sqlite3_column_blob(st->handle, column);

    return (struct str){p ? p : "", (size_t)sqlite3_column_bytes(st->handle, column)};
}
