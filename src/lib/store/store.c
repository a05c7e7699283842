/* SPDX-License-Identifier: Apache-2.0 */

/* Opening, schema, transactions, and the price of both.
 *
 * A one-shot program opens the file, commits twice and leaves. What that costs is decided by
 * the write-ahead log:
 *
 *  - The first process to open the file alone reads the whole log again (2 µs a page), because
 *    the shared index did not outlive its users. So the log must stay short.
 *  - SQLite empties it when the last connection closes, two or three syncs nobody waits for
 *    gladly; we forbid that (NO_CKPT_ON_CLOSE).
 *  - Its automatic checkpoint after a commit is forgotten with the shared index when the process
 *    ends, and the next one appends behind the old pages: the log would never shrink. We switch
 *    that off too and copy the pages home *before* a write: then the same connection's write
 *    begins the log anew. It goes over blocks that are already allocated, which makes each later
 *    sync half as dear (170 instead of 330 µs on the machine this was measured on).
 *  - A process that writes only once never gets there; when the log has become long it is emptied
 *    at the end after all. */

#include "lib/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/memory.h"
#include "lib/store/connection.h"

/* The log is copied home before our next write when it has so many pages. Whoever stays longer
 * than a one-shot program makes many commits before anybody reads the log again; but a log that has
 * begun anew is written over allocated blocks, and copying a thousand pages home every two hundred
 * commits costs less than a growing file does at each of them. */
#define LOG_PAGES_ONE_SHOT 64
#define LOG_PAGES_RESIDENT 1000
#define ONE_SHOT_COMMITS 8
/* Emptied before we leave. */
#define LOG_PAGES_EMPTY 256

/* Only called when the lock is held by somebody else: waits a moment, then says "again", until
 * the wait has had its time. SQLite's own handler sleeps up to 100 ms; a commit takes one. */
static int on_busy(void *of_store, int times)
{
    struct store *store = of_store;
    struct timespec moment = {.tv_nsec = 200000L + 100000L * (times % 8)};
    uint64_t now_us = clock_us();

    if (!store->wait_until_us)
        store->wait_until_us = now_us + STORE_WAIT_MS * 1000ULL;
    if (now_us >= store->wait_until_us)
        return 0;
    (void)nanosleep(&moment, NULL);
    return 1;
}

static int on_committed(void *of_store, sqlite3 *db, const char *name, int pages)
{
    struct store *store = of_store;

    (void)db;
    (void)name;
    store->log_pages = pages;
    store->commits++;
    return SQLITE_OK;
}

static int run_sql(struct store *store, const char *sql, struct err *err)
{
    int code;

    store->wait_until_us = 0;
    code = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : store_failed(store, code, err);
}

static int read_pragma(struct store *store, const char *sql, uint32_t *out, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};

    if (statement_prepare(store, sql, &st, err) < 0 || statement_step(&st, err) < 0)
        return -1;
    *out = (uint32_t)statement_int(&st, 0);
    return 0;
}

/* Others must not be able to put their own ledger in the place of ours. A path is looked at, not
 * opened: closing a second descriptor of a database would drop this process's locks on it. */
static int check_file(const char *path, const char *what, struct err *err)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        return err_os(err, "looking at the %s %s", what, path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INTEGRITY, "the %s %s is not a regular file", what, path);
    if (st.st_uid != geteuid())
        return err_set(err, ERR_UNAVAILABLE,
                       "the %s %s belongs to user %u, not to user %u who runs this", what, path,
                       st.st_uid, geteuid());
    if (st.st_mode & 022)
        return err_set(err, ERR_INTEGRITY,
                       "the %s %s can be written by others (mode %04o); if nobody has: chmod 600 "
                       "%s, then verify it",
                       what, path, (unsigned)st.st_mode & 07777U, path);
    return 0;
}

static int make_file(const char *path, const char *what, struct err *err)
{
    AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0 && errno != EEXIST) {
        (void)err_os(err, "creating the %s %s", what, path);
        if (err->code == ERR_FORBIDDEN || err->code == ERR_NOT_FOUND)
            err->code = ERR_UNAVAILABLE;
        return -1;
    }
    return check_file(path, what, err);
}

static int open_connection(struct store *store, const char *name, int way, struct err *err)
{
    const int flags = way | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW;
    int code = sqlite3_open_v2(name, &store->db, flags, NULL);

    if (code != SQLITE_OK)
        return store_failed(store, code, err);
    (void)sqlite3_busy_handler(store->db, on_busy, store);
    (void)sqlite3_wal_autocheckpoint(store->db, 0);
    (void)sqlite3_wal_hook(store->db, on_committed, store);
    (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
    /* The file may have been prepared by someone else: its schema gets no power over us. */
    (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    return 0;
}

/* The version of the schema in the file; 0 when it is new. The id is read last: a file that
 * another process fills between these reads then shows at least that it is ours. */
static int read_version(struct store *store, const struct store_schema *schema, uint32_t *out,
                        struct err *err)
{
    uint32_t version = 0;
    uint32_t objects = 0;
    uint32_t id = 0;

    if (read_pragma(store, "PRAGMA user_version", &version, err) < 0)
        return -1;
    if (version == 0 && read_pragma(store, "SELECT count(*) FROM sqlite_schema", &objects, err) < 0)
        return -1;
    if (read_pragma(store, "PRAGMA application_id", &id, err) < 0)
        return -1;
    if (id != schema->application_id && (id != 0 || version != 0 || objects != 0))
        return err_set(err, ERR_INTEGRITY,
                       "%s is a database, but not a %s of Brig (application id %u); nothing in it "
                       "was touched",
                       store->path, schema->what, id);
    if (version > schema->version)
        return err_set(err, ERR_UNAVAILABLE,
                       "the %s %s has schema version %u, written by a newer Brig; this one knows "
                       "versions up to %u: use the newer program",
                       schema->what, store->path, version, schema->version);
    *out = version;
    return 0;
}

static int apply_migration(struct store *store, const struct store_schema *schema, uint32_t number,
                           struct err *err)
{
    char header[96];

    (void)snprintf(header, sizeof header, "PRAGMA application_id = %u; PRAGMA user_version = %u",
                   schema->application_id, number + 1);
    if (run_sql(store, schema->migrations[number], err) < 0 || run_sql(store, header, err) < 0)
        return err_in(err, "migration %u", number + 1);
    return 0;
}

/* Several processes may come here together: the version counts that is read under the lock. */
static int migrate_once(struct store *store, const struct store_schema *schema, struct err *err)
{
    AUTO_TRANSACTION struct transaction t = {0};
    uint32_t version = 0;

    if (transaction_begin(store, &t, err) < 0 || read_version(store, schema, &version, err) < 0)
        return -1;
    if (version < schema->version && apply_migration(store, schema, version, err) < 0)
        return -1;
    return transaction_commit(&t, err);
}

/* Switching to the log needs the file for itself, and SQLite does not wait for that. */
static int switch_to_log(struct store *store, struct err *err)
{
    const uint64_t until_us = clock_us() + STORE_WAIT_MS * 1000ULL;
    const struct timespec moment = {.tv_nsec = 1000000};

    while (run_sql(store, "PRAGMA journal_mode = WAL", err) < 0) {
        if (err->code != ERR_TIMEOUT || clock_us() > until_us)
            return -1;
        (void)nanosleep(&moment, NULL);
    }
    return 0;
}

static int bring_up_to_date(struct store *store, const struct store_schema *schema, bool was_made,
                            bool *is_lost, struct err *err)
{
    uint32_t version = 0;

    if (read_version(store, schema, &version, err) < 0)
        return -1;
    *is_lost = version == 0 && was_made;
    if (*is_lost)
        return 0;
    if (version == 0 && switch_to_log(store, err) < 0)
        return -1;
    for (; version < schema->version; version++)
        if (migrate_once(store, schema, err) < 0)
            return -1;
    return 0;
}

static bool is_missing(const char *path)
{
    struct stat st;

    return lstat(path, &st) < 0 && errno == ENOENT;
}

static struct store *store_new(const char *path, const struct store_schema *schema)
{
    struct store *store = xcalloc(1, sizeof *store);

    store->path = xstrdup(path);
    store->what = schema->what;
    return store;
}

/* *is_lost: 0 comes back, and nothing is open. */
static int open_unless_lost(const char *path, const struct store_schema *schema, bool *is_lost,
                            struct store **out, struct err *err)
{
    AUTO(store) struct store *store = store_new(path, schema);
    bool was_made = schema->if_lost && store_was_made(path);

    *is_lost = was_made && is_missing(path);
    if (*is_lost)
        return 0;
    if (make_file(path, schema->what, err) < 0 ||
        open_connection(store, path, SQLITE_OPEN_READWRITE, err) < 0 ||
        run_sql(store, "PRAGMA synchronous = FULL", err) < 0 ||
        bring_up_to_date(store, schema, was_made, is_lost, err) < 0)
        return -1;
    if (*is_lost)
        return 0;
    if (schema->if_lost && !was_made)
        made_mark(path, schema);
    *out = TAKE(store);
    return 0;
}

static int lost(const char *path, const struct store_schema *schema, struct err *err)
{
    return err_set(err, ERR_INTEGRITY,
                   "the %s %.250s was there and is gone or empty, and with it what it held; put "
                   "it back, or begin without it: \"%s\"",
                   schema->what, path, schema->if_lost);
}

int store_open(const char *path, const struct store_schema *schema, struct store **out,
               struct err *err)
{
    bool is_lost = false;

    if (open_unless_lost(path, schema, &is_lost, out, err) < 0)
        return -1;
    return is_lost ? lost(path, schema, err) : 0;
}

static int copy_all(struct store *from, struct store *to, struct err *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(to->db, "main", from->db, "main");
    int code = backup ? sqlite3_backup_step(backup, -1) : sqlite3_extended_errcode(to->db);

    if (backup)
        (void)sqlite3_backup_finish(backup); /* what it says is what the step has said */
    return code == SQLITE_DONE ? 0 : store_failed(from, code, err);
}

int store_open_copy(const char *path, const struct store_schema *schema, struct store **out,
                    struct err *err)
{
    AUTO(store) struct store *from = store_new(path, schema), *copy = store_new(path, schema);
    bool was_made = schema->if_lost && store_was_made(path);
    bool is_lost = was_made && is_missing(path);

    if (is_lost)
        return lost(path, schema, err);
    if (check_file(path, schema->what, err) < 0 ||
        open_connection(from, path, SQLITE_OPEN_READONLY, err) < 0 ||
        open_connection(copy, ":memory:", SQLITE_OPEN_READWRITE, err) < 0 ||
        copy_all(from, copy, err) < 0 ||
        bring_up_to_date(copy, schema, was_made, &is_lost, err) < 0)
        return -1;
    if (is_lost)
        return lost(path, schema, err);
    *out = TAKE(copy);
    return 0;
}

int store_renew(const char *path, const struct store_schema *schema, struct store **out,
                struct err *err)
{
    AUTO(store) struct store *there = NULL;
    bool is_lost = false;

    if (open_unless_lost(path, schema, &is_lost, &there, err) < 0)
        return -1;
    if (!is_lost)
        return err_set(err, ERR_CONFLICT, "the %s %.250s is there; nothing is lost", schema->what,
                       path);
    /* From here on it counts as never made, whatever happens. */
    if (made_unmark(path, err) < 0)
        return -1;
    return store_open(path, schema, out, err);
}

void store_free(struct store *store)
{
    if (!store)
        return;
    statement_done(&store->begin);
    statement_done(&store->commit);
    statement_done(&store->rollback);
    if (store->log_pages >= LOG_PAGES_EMPTY) {
        /* Waits for nobody: a log that stays long costs the next process time, nothing else. */
        (void)sqlite3_busy_handler(store->db, NULL, NULL);
        (void)sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    }
    (void)sqlite3_close_v2(store->db);
    free(store->path);
    free(store);
}

static int step_kept(struct store *store, struct statement *kept, const char *sql, struct err *err)
{
    if (!kept->handle && statement_prepare(store, sql, kept, err) < 0)
        return -1;
    return statement_step(kept, err);
}

static void shorten_log(struct store *store)
{
    int enough = store->commits > ONE_SHOT_COMMITS ? LOG_PAGES_RESIDENT : LOG_PAGES_ONE_SHOT;

    if (store->log_pages < enough)
        return;
    /* Does what it can without waiting; if a reader is in the way the next one tries. */
    (void)sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    store->log_pages = 0;
}

int transaction_begin(struct store *store, struct transaction *out, struct err *err)
{
    shorten_log(store);
    if (step_kept(store, &store->begin, "BEGIN IMMEDIATE", err) < 0)
        return -1;
    out->store = store;
    return 0;
}

int transaction_commit(struct transaction *t, struct err *err)
{
    if (step_kept(t->store, &t->store->commit, "COMMIT", err) < 0)
        return -1;
    t->store = NULL;
    return 0;
}

void transaction_done(struct transaction *t)
{
    struct err err;

    if (!t->store)
        return;
    /* After some failures SQLite has rolled back by itself and answers that there is nothing. */
    (void)!step_kept(t->store, &t->store->rollback, "ROLLBACK", &err);
    t->store = NULL;
}
