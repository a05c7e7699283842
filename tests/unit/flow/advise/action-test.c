/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

/* What an agent asks for, and the time a person has. */

static int64_t off_s; /* so far the calendar is off */

time_t time(time_t *out)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec + off_s;
    return now.tv_sec + off_s;
}

/* ---- a disk that fails, and what happens while something is written to it ---- */

enum fault { FAULT_NONE, FAULT_WRITE, FAULT_SYNC, FAULT_COUNT };
static enum fault fault;                       /* of what lies in a sandbox */
static void (*meanwhile)(const char *sandbox); /* once, before it is synced */

static bool find_sandbox(int fd, char out[256])
{
    char link[64], *end;
    ssize_t n;

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, out, 255);
    out[n > 0 ? n : 0] = '\0';
    end = strstr(out, "/sandbox/");
    if (end)
        end[strlen("/sandbox")] = '\0';
    return end != NULL;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    char sandbox[256];

    if (fault == FAULT_WRITE && find_sandbox(fd, sandbox)) {
        if (n < 2) {
            errno = ENOSPC;
            return -1;
        }
        n /= 2;
    }
    return syscall(SYS_write, fd, bytes, n);
}

int fsync(int fd)
{
    char sandbox[256];
    struct stat st;

    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && find_sandbox(fd, sandbox)) {
        void (*happens)(const char *) = meanwhile;

        meanwhile = NULL;
        if (happens)
            happens(sandbox);
        if (fault == FAULT_SYNC) {
            errno = EIO;
            return -1;
        }
    }
    return (int)syscall(SYS_fsync, fd);
}

static const char *asked(struct advise *advise, struct arena *mem)
{
    struct advise_answer answer;
    struct advise_action action;
    struct err err;

    if (advise_ask(advise, mem,
                   STR_LIT("{\"type\":\"filesystem\",\"operation\":\"create\",\"target\":"
                           "\"/sandbox/output/a\",\"risk\":\"reversible\",\"content\":\"x\"}"),
                   &answer, &action, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK_INT(action.state, ADVISE_PENDING);
    return action.id;
}

static int decided(struct advise *advise, struct arena *mem, const char *id, struct err *err)
{
    const struct advise_word word = {.words = STR_LIT(ADVISE_CONFIRM_WORDS), .by = "custodian:a"};
    struct advise_action action;

    return advise_action_decide(advise, mem, id, &word, &action, err);
}

/* The target, new and with this in it. */
static int put_target(const struct advise *advise, const char *text)
{
    int fd =
        openat(advise->dir_fd, "sandbox/output/a", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    struct err err;
    int failed = fd < 0 ? -1 : write_all(fd, text, strlen(text), &err);

    (void)close(fd);
    return failed;
}

TEST(a_clock_that_jumps_is_no_more_time_to_think)
{
    static const struct {
        int64_t off_s;
        enum advise_state state;
        const char *why;
    } cases[] = {
        {0,     ADVISE_PENDING, ""                           },
        {-5,    ADVISE_PENDING, ""                           }, /* it was set right */
        {-60,   ADVISE_EXPIRED, "the clock went back"        },
        {-7200, ADVISE_EXPIRED, "the clock went back"        },
        {200,   ADVISE_PENDING, ""                           },
        {400,   ADVISE_EXPIRED, "nobody confirmed it in time"},
    };
    AUTO(advise) struct advise *advise = begin(false);

    advise->terms.idle_s = advise->terms.deadline_s = 1000000; /* its own time is another matter */
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
        const char *id = asked(advise, &mem);
        struct advise_action action;
        struct err err;

        off_s = cases[i].off_s;
        CHECK_INT(advise_action_show(advise, &mem, id, &action, &err), 0);
        CHECK_INT(action.state, cases[i].state);
        CHECK_TEXT(action.why, cases[i].why);
        /* What was called too late stays so, whatever the clock says afterwards. */
        off_s = 0;
        if (cases[i].state == ADVISE_PENDING) {
            CHECK_INT(decided(advise, &mem, id, &err), 0);
        } else {
            CHECK_INT(decided(advise, &mem, id, &err), -1);
            CHECK_INT(err.code, ERR_CONFLICT);
        }
    }
}

/* Also when nobody looked in between. */
TEST(a_word_by_a_clock_that_went_back_does_not_count)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    const char *id = asked(advise, &mem);
    struct err err;

    off_s = -3600;
    CHECK_INT(decided(advise, &mem, id, &err), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
    CHECK(strstr(err.text, "is expired") != NULL);
}

/* Two that change one file, both confirmed, and the first of them was done: what the second was
 * confirmed for is not there any more. */
TEST(what_was_changed_between_word_and_deed_is_left_alone)
{
    static const char *const operations[] = {
        "\"modify\",\"content\":\"theirs\"",
        "\"delete\"",
        "\"move\",\"destination\":\"/sandbox/output/b\"",
    };
    AUTO(advise) struct advise *advise = begin(false);

    for (size_t i = 0; i < COUNT(operations); i++) {
        AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
        struct advise_answer answer;
        struct advise_action action;
        struct str request = str_of(arena_printf(
            &mem,
            "{\"type\":\"filesystem\",\"operation\":%s,\"target\":\"/sandbox/output/a\","
            "\"risk\":\"irreversible\"}",
            operations[i]));
        struct err err;

        for (int changed = 0; changed < 2; changed++) {
            AUTO_FREE char *now = NULL;

            CHECK_INT(put_target(advise, "first"), 0);
            CHECK_INT(advise_ask(advise, &mem, request, &answer, &action, &err), 0);
            CHECK_INT(action.state, ADVISE_PENDING);
            CHECK_INT(decided(advise, &mem, action.id, &err), 0);
            if (changed)
                write_whole(advise, "sandbox/output/a", "other");
            CHECK_INT(advise_action_do(advise, &mem, action.id, &action, &err), 0);
            CHECK_INT(action.is_done, !changed);
            CHECK_INT(action.state, changed ? ADVISE_ABORTED : ADVISE_CONFIRMED);
            CHECK_TEXT(action.why,
                       changed ? "its target is not what it was when it was asked" : "done");
            if (!changed)
                continue;
            now = read_whole(advise, "sandbox/output/a");
            CHECK_TEXT(now, "other");
        }
    }
}

/* One that is made: a name that is taken meanwhile, and one that is free again. */
TEST(what_is_made_is_new_as_it_was_confirmed)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    const char *id = asked(advise, &mem);
    struct advise_action action;
    struct err err;

    CHECK_INT(decided(advise, &mem, id, &err), 0);
    CHECK_INT(put_target(advise, "other"), 0);
    CHECK_INT(advise_action_do(advise, &mem, id, &action, &err), 0);
    CHECK(!action.is_done);
    CHECK_INT(action.state, ADVISE_ABORTED);
    CHECK_TEXT(action.why, "a exists");

    id = asked(advise, &mem);
    CHECK_INT(decided(advise, &mem, id, &err), 0);
    CHECK_INT(unlinkat(advise->dir_fd, "sandbox/output/a", 0), 0);
    CHECK_INT(advise_action_do(advise, &mem, id, &action, &err), 0);
    CHECK(!action.is_done);
    CHECK_INT(action.state, ADVISE_ABORTED);
    CHECK_INT(faccessat(advise->dir_fd, "sandbox/output/a", F_OK, 0), -1);

    id = asked(advise, &mem);
    CHECK_INT(decided(advise, &mem, id, &err), 0);
    CHECK_INT(advise_action_do(advise, &mem, id, &action, &err), 0);
    CHECK(action.is_done);
}

TEST(word_and_deed_are_one)
{
    const struct advise_word yes = {.words = STR_LIT(ADVISE_CONFIRM_WORDS), .by = "custodian:a"};
    const struct advise_word no = {.words = STR_LIT("yes"), .by = "custodian:a"};
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    const char *id = asked(advise, &mem);
    struct advise_action action;
    struct err err;

    CHECK_INT(advise_action_settle(advise, &mem, id, &no, &action, &err), 0);
    CHECK_INT(action.state, ADVISE_ABORTED);
    CHECK_INT(faccessat(advise->dir_fd, "sandbox/output/a", F_OK, 0), -1);
    id = asked(advise, &mem);
    CHECK_INT(advise_action_settle(advise, &mem, id, &yes, &action, &err), 0);
    CHECK(action.is_done);
    CHECK_INT(action.state, ADVISE_CONFIRMED);
    CHECK_INT(faccessat(advise->dir_fd, "sandbox/output/a", F_OK, 0), 0);
    /* Who talks with the agent looks now and then, and tells it what he sees. */
    CHECK_INT(advise_action_show(advise, &mem, id, &action, &err), 0);
    CHECK(action.is_done);
    CHECK_TEXT(action.why, "done");
    CHECK_INT(advise_action_settle(advise, &mem, id, &yes, &action, &err), -1);
    CHECK_INT(err.code, ERR_CONFLICT);
}

/* ---- whole, or not at all ---- */

static struct str file_request(struct arena *mem, const char *operation)
{
    return str_of(arena_printf(mem,
                               "{\"type\":\"filesystem\",\"operation\":\"%s\",\"target\":"
                               "\"/sandbox/output/a\",\"risk\":\"irreversible\"%s}",
                               operation,
                               strcmp(operation, "delete") == 0 ? "" : ",\"content\":\"theirs\""));
}

/* Asked, confirmed and done as far as it goes. */
static struct advise_action done(struct advise *advise, struct arena *mem, const char *operation)
{
    struct advise_answer answer;
    struct advise_action action;
    struct err err;

    CHECK_INT(advise_ask(advise, mem, file_request(mem, operation), &answer, &action, &err), 0);
    CHECK_INT(decided(advise, mem, action.id, &err), 0);
    CHECK_INT(advise_action_do(advise, mem, action.id, &action, &err), 0);
    return action;
}

/* How many names there are in one of its folders. */
static int count_names(const struct advise *advise, const char *folder)
{
    int fd = openat(advise->dir_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fdopendir(fd);
    int n = -2; /* "." and ".." */

    CHECK(dir != NULL);
    while (dir && readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

TEST(what_cannot_be_written_whole_is_not_written)
{
    AUTO(advise) struct advise *advise = begin(false);

    for (fault = FAULT_WRITE; fault < FAULT_COUNT; fault++) {
        AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
        AUTO_FREE char *now = NULL;
        struct advise_action action = done(advise, &mem, "create");
        enum fault was = fault;

        CHECK(!action.is_done);
        CHECK_INT(action.state, ADVISE_CONFIRMED);
        CHECK(*action.why && strcmp(action.why, "done") != 0);
        CHECK_INT(count_names(advise, "sandbox/output"), 0);
        CHECK_INT(count_names(advise, "sandbox"), 1);

        fault = FAULT_NONE;
        CHECK_INT(put_target(advise, "first"), 0);
        fault = was;
        action = done(advise, &mem, "modify");
        CHECK(!action.is_done);
        CHECK_INT(action.state, ADVISE_CONFIRMED);
        now = read_whole(advise, "sandbox/output/a");
        CHECK_TEXT(now, "first");
        CHECK_INT(count_names(advise, "sandbox/output"), 1);
        CHECK_INT(count_names(advise, "sandbox"), 1);
        CHECK_INT(unlinkat(advise->dir_fd, "sandbox/output/a", 0), 0);
    }
    fault = FAULT_NONE;
}

TEST(what_is_changed_keeps_its_mode)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    AUTO_FREE char *now = NULL;
    struct stat st;

    CHECK_INT(put_target(advise, "first"), 0);
    CHECK_INT(fchmodat(advise->dir_fd, "sandbox/output/a", 0640, 0), 0);
    CHECK(done(advise, &mem, "modify").is_done);
    now = read_whole(advise, "sandbox/output/a");
    CHECK_TEXT(now, "theirs");
    CHECK_INT(fstatat(advise->dir_fd, "sandbox/output/a", &st, AT_SYMLINK_NOFOLLOW), 0);
    CHECK_INT(st.st_mode & 07777, 0640);
    CHECK_INT(st.st_nlink, 1);
    CHECK_INT(count_names(advise, "sandbox/output"), 1);
    CHECK_INT(count_names(advise, "sandbox"), 1);
}

static void at_name(const char *sandbox, const char *name, char out[512])
{
    (void)snprintf(out, 512, "%s/output/%s", sandbox, name);
}

static void write_other(const char *path)
{
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0 && syscall(SYS_write, fd, "other", 5UL) == 5);
}

static void overwrite(const char *sandbox)
{
    char path[512];

    at_name(sandbox, "a", path);
    write_other(path);
}

static void exchange(const char *sandbox)
{
    char path[512], other[512];

    at_name(sandbox, "a", path);
    at_name(sandbox, "other", other);
    write_other(other);
    CHECK_INT(rename(other, path), 0);
}

static void add_name(const char *sandbox)
{
    char path[512], other[512];

    at_name(sandbox, "a", path);
    at_name(sandbox, "second", other);
    CHECK_INT(link(path, other), 0);
}

static void take_away(const char *sandbox)
{
    char path[512];

    at_name(sandbox, "a", path);
    CHECK_INT(unlink(path), 0);
}

/* After the digest of what is open was compared, and before anything takes its place. */
TEST(what_comes_while_it_is_written_is_not_replaced)
{
    static const struct {
        const char *operation;
        void (*happens)(const char *sandbox);
        const char *left; /* NULL: nothing */
    } cases[] = {
        {"modify", overwrite, "other"},
        {"modify", exchange,  "other"},
        {"modify", add_name,  "first"},
        {"modify", take_away, NULL   },
        {"create", overwrite, "other"},
    };
    AUTO(advise) struct advise *advise = begin(false);

    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
        bool is_new = strcmp(cases[i].operation, "create") == 0;
        struct advise_action action;
        AUTO_FREE char *now = NULL;

        (void)unlinkat(advise->dir_fd, "sandbox/output/a", 0);
        (void)unlinkat(advise->dir_fd, "sandbox/output/second", 0);
        if (!is_new)
            CHECK_INT(put_target(advise, "first"), 0);
        meanwhile = cases[i].happens;
        action = done(advise, &mem, cases[i].operation);
        CHECK(!meanwhile); /* it was met */
        CHECK(!action.is_done);
        CHECK(*action.why && strcmp(action.why, "done") != 0);
        CHECK_INT(count_names(advise, "sandbox"), 1);
        if (cases[i].left) {
            now = read_whole(advise, "sandbox/output/a");
            CHECK_TEXT(now, cases[i].left);
        } else {
            CHECK_INT(count_names(advise, "sandbox/output"), 0);
        }
    }
}

/* Beside what the agent is shown, where no request can name it. */
TEST(what_a_killed_one_left_is_cleared_by_the_next)
{
    static const char left[] = "sandbox/.new-aaaaaaaaaaaaaaaaaaaa";
    static const char *const operations[] = {"create", "modify", "delete"};
    AUTO(advise) struct advise *advise = begin(false);

    for (size_t i = 0; i < COUNT(operations); i++) {
        AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);

        (void)close(openat(advise->dir_fd, left, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        CHECK_INT(count_names(advise, "sandbox"), 2);
        CHECK(done(advise, &mem, operations[i]).is_done);
        CHECK_INT(count_names(advise, "sandbox"), 1);
    }
    CHECK_INT(count_names(advise, "sandbox/output"), 0);
    {
        struct err err;

        (void)close(openat(advise->dir_fd, left, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        CHECK_INT(advise_end(advise, ADVISE_ENDED, &err), 0);
        CHECK_INT(count_names(advise, "sandbox"), 1);
    }
}

static int count_visit(void *context, const struct advise_action *action, struct err *err)
{
    (void)action, (void)err;
    ++*(unsigned *)context;
    return 0;
}

TEST(half_a_record_that_a_killed_one_left_is_no_action)
{
    AUTO(advise) struct advise *advise = begin(false);
    AUTO_ARENA struct arena mem = ARENA(ADVISORY_MEMORY_MAX);
    const char *id = asked(advise, &mem);
    unsigned n = 0;
    struct err err;

    (void)close(openat(advise->dir_fd, arena_printf(&mem, "actions/%s.json.4711.tmp", id),
                       O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    CHECK_INT(advise_action_each(advise, count_visit, &n, &err), 0);
    CHECK_INT(n, 1);
}
