/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <fcntl.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/store/store.h"

static const char *const migrations[] = {
    "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT",
    "ALTER TABLE note ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'",
};

static const struct store_schema first = {"notebook", 0x6e6f7465, migrations, 1, NULL};
static const struct store_schema second = {"notebook", 0x6e6f7465, migrations, 2, NULL};
static const struct store_schema missed = {"notebook", 0x6e6f7465, migrations, 2, "write anew"};

static char dir[] = "/tmp/brig-store-XXXXXX";
static char path[64];

static void begin(void)
{
    CHECK(mkdtemp(dir) != NULL);
    (void)snprintf(path, sizeof path, "%s/notes.db", dir);
}

static void clean(void)
{
    struct err err;

    CHECK_INT(dir_remove(AT_FDCWD, dir, &err), 0);
}

static int add_note(struct store *store, const char *text, struct err *err)
{
    AUTO_STATEMENT struct statement st = {0};
    AUTO_TRANSACTION struct transaction t = {0};

    if (transaction_begin(store, &t, err) < 0 ||
        statement_prepare(store, "INSERT INTO note (text) VALUES (?)", &st, err) < 0)
        return -1;
    statement_bind_text(&st, 1, str_of(text));
    if (statement_step(&st, err) < 0)
        return -1;
    return transaction_commit(&t, err);
}

static int open_and_add(const struct store_schema *schema, const char *text, struct err *err)
{
    AUTO(store) struct store *store = NULL;

    if (store_open(path, schema, &store, err) < 0)
        return -1;
    return add_note(store, text, err);
}

static int64_t ask(const char *sql)
{
    AUTO(store) struct store *store = NULL;
    AUTO_STATEMENT struct statement st = {0};
    struct err err;

    if (store_open(path, &second, &store, &err) < 0 ||
        statement_prepare(store, sql, &st, &err) < 0 || statement_step(&st, &err) != 1) {
        test_fail(__FILE__, __LINE__, "%s", err.text);
        return -1;
    }
    return statement_int(&st, 0);
}

static void check_open_fails(const struct store_schema *schema, enum err_code code,
                             const char *text)
{
    AUTO(store) struct store *store = NULL;
    struct err err = {0};

    CHECK_INT(store_open(path, schema, &store, &err), -1);
    CHECK_INT(err.code, code);
    if (!strstr(err.text, text))
        test_fail(__FILE__, __LINE__, "\"%s\" is not in \"%s\"", text, err.text);
    CHECK(store == NULL);
}

static void raw_sql(const char *sql)
{
    sqlite3 *db = NULL;

    CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_INT(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    CHECK_INT(sqlite3_close(db), SQLITE_OK);
}

TEST(what_was_committed_is_there_afterwards)
{
    struct stat st;
    struct err err;

    begin();
    (void)umask(0);
    CHECK_INT(open_and_add(&second, "one", &err), 0);
    CHECK_INT(open_and_add(&second, "two", &err), 0);
    CHECK_INT(ask("SELECT count(*) FROM note"), 2);
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0600);
    clean();
}

TEST(every_commit_is_synced)
{
    begin();
    CHECK_INT(ask("PRAGMA synchronous"), 2);
    CHECK_INT(ask("SELECT journal_mode = 'wal' FROM pragma_journal_mode"), 1);
    CHECK_INT(ask("PRAGMA foreign_keys"), 1);
    clean();
}

TEST(what_was_not_committed_is_undone)
{
    AUTO(store) struct store *store = NULL;
    struct err err;

    begin();
    CHECK_INT(store_open(path, &first, &store, &err), 0);
    {
        AUTO_STATEMENT struct statement st = {0};
        AUTO_TRANSACTION struct transaction t = {0};

        CHECK_INT(transaction_begin(store, &t, &err), 0);
        CHECK_INT(statement_prepare(store, "INSERT INTO note (text) VALUES ('x')", &st, &err), 0);
        CHECK_INT(statement_step(&st, &err), 0);
    }
    CHECK_INT(add_note(store, "kept", &err), 0);
    CHECK_INT(ask("SELECT count(*) FROM note"), 1);
    clean();
}

TEST(an_older_file_is_brought_up_to_date)
{
    struct err err;

    begin();
    CHECK_INT(open_and_add(&first, "old", &err), 0);
    CHECK_INT(ask("SELECT count(*) FROM note WHERE colour = 'red'"), 1);
    CHECK_INT(ask("PRAGMA user_version"), 2);
    clean();
}

TEST(a_newer_file_is_refused)
{
    struct err err;

    begin();
    CHECK_INT(open_and_add(&second, "new", &err), 0);
    check_open_fails(&first, ERR_UNAVAILABLE,
                     "has schema version 2, written by a newer Brig; this one knows versions up to "
                     "1: use the newer program");
    CHECK_INT(ask("SELECT count(*) FROM note"), 1);
    clean();
}

TEST(a_database_of_another_program_is_left_alone)
{
    begin();
    raw_sql("CREATE TABLE theirs (x)");
    CHECK_INT(chmod(path, 0600), 0);
    check_open_fails(&first, ERR_INTEGRITY,
                     "is a database, but not a notebook of Brig "
                     "(application id 0)");
    raw_sql("PRAGMA application_id = 42; PRAGMA user_version = 1");
    check_open_fails(&first, ERR_INTEGRITY, "(application id 42)");
    raw_sql("SELECT * FROM theirs");
    clean();
}

TEST(a_damaged_file_is_reported_not_served)
{
    static const char garbage[8192] = "this is not a database at all, whatever its name says";
    struct err err;

    begin();
    CHECK_INT(file_replace(path, garbage, sizeof garbage, 0600, &err), 0);
    check_open_fails(&first, ERR_INTEGRITY, "is not a database");
    clean();
}

TEST(a_damaged_page_is_reported_not_served)
{
    char page[4096];
    struct err err = {0};
    int fd;

    begin();
    CHECK_INT(open_and_add(&first, "one", &err), 0);
    raw_sql("PRAGMA wal_checkpoint(TRUNCATE)");
    memset(page, 0x5a, sizeof page);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK_INT(pwrite(fd, page, sizeof page, 4096), sizeof page);
    CHECK_INT(close(fd), 0);
    CHECK_INT(open_and_add(&first, "two", &err), -1);
    CHECK_INT(err.code, ERR_INTEGRITY);
    CHECK(strstr(err.text, "is damaged; keep it for examination") != NULL);
    clean();
}

/* ---- one that was there and is gone ---- */

static void remove_file(void)
{
    char beside[80];

    CHECK_INT(unlink(path), 0);
    (void)snprintf(beside, sizeof beside, "%s-wal", path);
    (void)unlink(beside);
    (void)snprintf(beside, sizeof beside, "%s-shm", path);
    (void)unlink(beside);
}

static int renew(struct err *err)
{
    AUTO(store) struct store *store = NULL;

    return store_renew(path, &missed, &store, err);
}

TEST(one_that_was_there_and_is_gone_is_refused_until_it_is_renewed)
{
    struct err err;

    begin();
    CHECK(!store_was_made(path));
    CHECK_INT(open_and_add(&missed, "one", &err), 0);
    CHECK(store_was_made(path));
    CHECK_INT(open_and_add(&missed, "two", &err), 0);
    CHECK_INT(renew(&err), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
    CHECK_INT(ask("SELECT count(*) FROM note"), 2);
    remove_file();
    check_open_fails(&missed, ERR_INTEGRITY, "was there and is gone or empty");
    CHECK_INT(access(path, F_OK), -1); /* and is not made by looking */
    check_open_fails(&missed, ERR_INTEGRITY, "\"write anew\"");
    CHECK_INT(file_replace(path, "", 0, 0600, &err), 0);
    check_open_fails(&missed, ERR_INTEGRITY, "was there and is gone or empty");
    raw_sql("PRAGMA journal_mode = WAL"); /* a header, and nothing in it */
    check_open_fails(&missed, ERR_INTEGRITY, "was there and is gone or empty");
    CHECK_INT(renew(&err), 0);
    CHECK(store_was_made(path));
    CHECK_INT(open_and_add(&missed, "three", &err), 0);
    CHECK_INT(ask("SELECT count(*) FROM note"), 1);
    clean();
}

TEST(a_copy_has_all_there_is_and_changes_nothing)
{
    AUTO(store) struct store *copy = NULL, *other = NULL;
    struct stat before, after;
    struct err err;

    begin();
    CHECK_INT(store_open_copy(path, &second, &copy, &err), -1);
    CHECK_INT(err.code, ERR_NOT_FOUND);
    CHECK_INT(stat(path, &before), -1); /* it is not made either */
    CHECK_INT(open_and_add(&first, "one", &err), 0);
    CHECK_INT(stat(path, &before), 0);
    /* Also what stands in the log only; and it is brought up to date, which the file is not. */
    CHECK_INT(store_open_copy(path, &second, &copy, &err), 0);
    CHECK_INT(add_note(copy, "two", &err), 0);
    CHECK_INT(store_open_copy(path, &first, &other, &err), 0);
    CHECK_INT(add_note(other, "three", &err), 0);
    CHECK_INT(stat(path, &after), 0);
    CHECK_INT(after.st_size, before.st_size);
    CHECK_INT(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
    store_free(TAKE(copy));
    store_free(TAKE(other));
    CHECK_INT(ask("SELECT count(*) FROM note"), 1);
    /* What is missed is missed. */
    CHECK_INT(open_and_add(&missed, "four", &err), 0);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(store_open_copy(path, &missed, &copy, &err), -1);
    CHECK_INT(err.code, ERR_INTEGRITY);
    clean();
}

TEST(whoever_dies_before_the_mark_locks_nobody_out)
{
    char mark[80];
    struct err err;

    begin();
    CHECK_INT(open_and_add(&missed, "one", &err), 0);
    (void)snprintf(mark, sizeof mark, "%s/made/notes.db", dir);
    CHECK_INT(unlink(mark), 0);
    CHECK_INT(open_and_add(&missed, "two", &err), 0);
    CHECK_INT(access(mark, F_OK), 0);
    CHECK_INT(ask("SELECT count(*) FROM note"), 2);
    /* Nor does one who dies while he renews it. */
    CHECK_INT(unlink(mark), 0);
    remove_file();
    CHECK_INT(open_and_add(&missed, "three", &err), 0);
    CHECK_INT(access(mark, F_OK), 0);
    clean();
}

TEST(one_that_is_not_missed_is_made_again)
{
    struct err err;

    begin();
    CHECK_INT(open_and_add(&first, "one", &err), 0);
    CHECK(!store_was_made(path));
    remove_file();
    CHECK_INT(open_and_add(&first, "two", &err), 0);
    clean();
}

TEST(processes_that_make_it_together_find_it_made)
{
    pid_t children[8];

    begin();
    for (size_t i = 0; i < COUNT(children); i++) {
        children[i] = fork();
        if (children[i] == 0) {
            struct err err;

            _exit(open_and_add(&missed, "one", &err) == 0 ? 0 : 1);
        }
    }
    for (size_t i = 0; i < COUNT(children); i++) {
        int status = -1;

        CHECK_INT(waitpid(children[i], &status, 0), children[i]);
        CHECK_INT(status, 0);
    }
    CHECK(store_was_made(path));
    CHECK_INT(ask("SELECT count(*) FROM note"), 8);
    clean();
}

TEST(a_file_that_others_may_write_is_refused)
{
    struct err err;

    begin();
    CHECK_INT(open_and_add(&first, "one", &err), 0);
    CHECK_INT(chmod(path, 0620), 0);
    check_open_fails(&first, ERR_INTEGRITY, "can be written by others (mode 0620)");
    clean();
}

TEST(a_link_or_a_folder_in_its_place_is_refused)
{
    begin();
    CHECK_INT(symlink("/dev/null", path), 0);
    check_open_fails(&first, ERR_INTEGRITY, "is not a regular file");
    CHECK_INT(unlink(path), 0);
    CHECK_INT(mkdir(path, 0700), 0);
    check_open_fails(&first, ERR_INTEGRITY, "is not a regular file");
    clean();
}

TEST(a_folder_without_write_permission_is_named)
{
    int status = 1;
    pid_t pid;

    begin();
    CHECK_INT(chmod(dir, 0555), 0);
    pid = fork(); /* so that somebody is left who may clean up */
    if (pid == 0) {
        AUTO(store) struct store *store = NULL;
        struct err err = {0};

        if (geteuid() == 0)
            CHECK_INT(setresuid(54321, 54321, 54321), 0);
        CHECK_INT(store_open(path, &first, &store, &err), -1);
        _exit(err.code == ERR_UNAVAILABLE &&
                      strstr(err.text, "creating the notebook /tmp/brig-store-") &&
                      strstr(err.text, "Permission denied")
                  ? 0
                  : 1);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(status, 0);
    clean();
}

#define WRITERS 8
#define EACH 50

TEST(processes_that_come_together_lose_nothing)
{
    pid_t pids[WRITERS];

    begin();
    for (size_t i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        if (pids[i] != 0)
            continue;
        for (unsigned k = 0; k < EACH; k++) {
            struct err err;

            if (open_and_add(&second, "note", &err) < 0) {
                (void)printf("# %s\n", err.text);
                _exit(1);
            }
        }
        _exit(0);
    }
    for (size_t i = 0; i < WRITERS; i++) {
        int status = 1;

        CHECK_INT(waitpid(pids[i], &status, 0), pids[i]);
        CHECK_INT(status, 0);
    }
    CHECK_INT(ask("SELECT count(*) FROM note"), WRITERS * EACH);
    clean();
}

static off_t log_bytes(void)
{
    char name[80];
    struct stat st = {0};

    (void)snprintf(name, sizeof name, "%s-wal", path);
    (void)stat(name, &st); /* none is no bytes */
    return st.st_size;
}

TEST(the_log_stays_short_over_many_short_processes)
{
    struct err err;
    off_t longest = 0;

    begin();
    for (unsigned i = 0; i < 300; i++) {
        AUTO(store) struct store *store = NULL;

        CHECK_INT(store_open(path, &second, &store, &err), 0);
        CHECK_INT(add_note(store, "one", &err), 0);
        if (i % 2)
            CHECK_INT(add_note(store, "two", &err), 0);
        if (log_bytes() > longest)
            longest = log_bytes();
    }
    CHECK(longest < 100 * 4120);
    clean();
}

TEST(the_log_stays_short_when_each_process_writes_once)
{
    struct err err;

    begin();
    for (unsigned i = 0; i < 600; i++) {
        CHECK_INT(open_and_add(&second, "once", &err), 0);
        CHECK(log_bytes() < 260 * 4120);
    }
    clean();
}

TEST(leaving_waits_for_nobody)
{
    AUTO(store) struct store *reader = NULL;
    AUTO_STATEMENT struct statement st = {0};
    struct store *writer = NULL;
    struct err err;
    uint64_t start;

    begin();
    CHECK_INT(store_open(path, &first, &writer, &err), 0);
    CHECK_INT(store_open(path, &first, &reader, &err), 0);
    CHECK_INT(add_note(writer, "read", &err), 0);
    CHECK_INT(statement_prepare(reader, "SELECT text FROM note", &st, &err), 0);
    CHECK_INT(statement_step(&st, &err), 1); /* and holds on to what it sees */
    for (unsigned i = 0; i < 400; i++)
        CHECK_INT(add_note(writer, "a log too long to leave behind", &err), 0);
    start = clock_us();
    store_free(writer);
    CHECK(clock_us() - start < 2000000);
    clean();
}

TEST(a_lock_that_is_never_released_ends_in_an_error)
{
    AUTO(store) struct store *store = NULL;
    AUTO(store) struct store *other = NULL;
    AUTO_TRANSACTION struct transaction t = {0};
    struct err err = {0};
    uint64_t start;

    begin();
    CHECK_INT(store_open(path, &first, &store, &err), 0);
    CHECK_INT(store_open(path, &first, &other, &err), 0);
    CHECK_INT(transaction_begin(store, &t, &err), 0);
    start = clock_us();
    CHECK_INT(add_note(other, "never", &err), -1);
    CHECK(clock_us() - start < 5000000);
    CHECK_INT(err.code, ERR_TIMEOUT);
    CHECK(strstr(err.text, "stays locked by another process") != NULL);
    transaction_done(&t);
    CHECK_INT(add_note(other, "now", &err), 0);
    clean();
}

static void become_root_inside(void)
{
    char uids[32];
    char gids[32];
    struct err err;

    (void)snprintf(uids, sizeof uids, "0 %u 1", geteuid());
    (void)snprintf(gids, sizeof gids, "0 %u 1", getegid());
    if (unshare(CLONE_NEWUSER) < 0 ||
        file_write(AT_FDCWD, "/proc/self/setgroups", "deny", &err) < 0 ||
        file_write(AT_FDCWD, "/proc/self/uid_map", uids, &err) < 0 ||
        file_write(AT_FDCWD, "/proc/self/gid_map", gids, &err) < 0)
        test_skip("no user namespaces for an ordinary user");
}

static void mount_small_disk(void)
{
    if (geteuid() != 0)
        become_root_inside();
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", dir, "tmpfs", 0, "size=512k") < 0)
        test_skip("no private mounts here");
}

TEST(a_full_disk_is_named_and_ends_when_there_is_room)
{
    AUTO(store) struct store *store = NULL;
    char filler[80];
    char bytes[4096] = "x";
    struct err err = {0};
    int fd;

    begin();
    mount_small_disk();
    CHECK_INT(store_open(path, &first, &store, &err), 0);
    CHECK_INT(add_note(store, "one", &err), 0);
    (void)snprintf(filler, sizeof filler, "%s/filler", dir);
    fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (write(fd, bytes, sizeof bytes) > 0)
        continue;
    CHECK_INT(add_note(store, "two", &err), -1);
    CHECK_INT(err.code, ERR_STORAGE);
    CHECK(strstr(err.text, "the disk (or the quota) is full; make room and try again") != NULL);
    CHECK_INT(ftruncate(fd, 0), 0);
    CHECK_INT(close(fd), 0);
    CHECK_INT(add_note(store, "three", &err), 0);
    CHECK_INT(ask("SELECT count(*) FROM note"), 2);
    store_free(TAKE(store));
    CHECK_INT(umount2(dir, MNT_DETACH), 0);
    clean();
}
