/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/io.h"
#include "lib/crypto/crypto.h"

static char dir[] = "/tmp/brig-key-XXXXXX";
static char path[64];

static void clean(void)
{
    struct err err;

    CHECK_INT(dir_remove(AT_FDCWD, dir, &err), 0);
}

static void begin(void)
{
    CHECK(mkdtemp(dir) != NULL);
    (void)snprintf(path, sizeof path, "%s/receipts.key", dir);
}

static int open_key_id(char id[KEY_ID_BYTES], struct err *err)
{
    AUTO(signing_key) struct signing_key *key = NULL;

    if (signing_key_open(path, &key, err) < 0)
        return -1;
    key_id(signing_key_public(key), id);
    return 0;
}

static unsigned files_in(const char *where)
{
    char command[128];
    char line[16] = "";
    FILE *list;

    (void)snprintf(command, sizeof command, "ls -A %s | wc -l", where);
    list = popen(command, "r");
    CHECK(list && fgets(line, sizeof line, list) != NULL);
    if (list)
        (void)pclose(list);
    return (unsigned)atoi(line);
}

TEST(a_key_is_made_at_first_use_and_kept)
{
    char first[KEY_ID_BYTES] = "";
    char second[KEY_ID_BYTES] = "";
    struct stat st;
    struct err err;

    begin();
    (void)umask(0);
    CHECK_INT(open_key_id(first, &err), 0);
    CHECK_INT(open_key_id(second, &err), 0);
    CHECK_TEXT(second, first);
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(st.st_mode & 07777, 0600);
    CHECK_INT(st.st_size, 81);
    CHECK_INT(st.st_nlink, 1);
    CHECK_INT(files_in(dir), 1);
    clean();
}

TEST(a_umask_that_takes_everything_does_not_spoil_the_key)
{
    char id[KEY_ID_BYTES];
    struct stat st;
    struct err err;

    begin();
    (void)umask(0777);
    CHECK_INT(open_key_id(id, &err), 0);
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(st.st_mode & 07777, 0600);
    clean();
}

#define FIRST_USERS 16

TEST(concurrent_first_users_get_one_key)
{
    pid_t pids[FIRST_USERS];
    int ids[2];
    char all[FIRST_USERS][KEY_ID_BYTES];

    begin();
    CHECK_INT(pipe(ids), 0);
    for (size_t i = 0; i < FIRST_USERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            char id[KEY_ID_BYTES] = "";
            struct err err;

            if (open_key_id(id, &err) < 0)
                _exit(1);
            _exit(write(ids[1], id, sizeof id) == (ssize_t)sizeof id ? 0 : 1);
        }
    }
    for (size_t i = 0; i < FIRST_USERS; i++) {
        int status = 1;

        CHECK_INT(waitpid(pids[i], &status, 0), pids[i]);
        CHECK_INT(status, 0);
        CHECK_INT(read(ids[0], all[i], sizeof all[i]), sizeof all[i]);
        CHECK_TEXT(all[i], all[0]);
    }
    CHECK_INT(files_in(dir), 1);
    clean();
}

static void put(const char *text, unsigned mode)
{
    struct err err;

    CHECK_INT(file_replace(path, text, strlen(text), mode, &err), 0);
    CHECK_INT(chmod(path, mode), 0);
}

#define SEED "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
#define GOOD "brig-ed25519-v1:" SEED "\n"

static void check_refused(const char *text)
{
    char id[KEY_ID_BYTES] = "untouched";
    char wanted[512];
    struct err err = {0};

    (void)snprintf(wanted, sizeof wanted, "the signing key %s %s", path, text);
    CHECK_INT(open_key_id(id, &err), -1);
    CHECK_INT(err.code, ERR_INTEGRITY);
    CHECK(strncmp(err.text, wanted, strlen(wanted)) == 0);
    if (strncmp(err.text, wanted, strlen(wanted)) != 0)
        CHECK_TEXT(err.text, wanted);
    CHECK_TEXT(id, "untouched");
    CHECK(strstr(err.text, SEED) == NULL);
}

TEST(a_key_file_of_another_form_is_refused)
{
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"",                                                                                   "is 0 bytes long instead of 81: restore it from a backup"},
        {SEED "\n",                                                                            "is 65 bytes long instead of 81"                         },
        {GOOD "\n",                                                                            "is 82 bytes long instead of 81"                         },
        {"brig-ed25519-v2:" SEED "\n",                                                         "is not of the form brig-ed25519-v1:<64 hex digits>"     },
        {"brig-ed25519-v1:" SEED " ",                                                          "is not of the form brig-ed25519-v1:<64 hex digits>"     },
        {"brig-ed25519-v1:9D61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60\n",
         "is not of the form brig-ed25519-v1:<64 hex digits>"                                                                                           },
    };

    begin();
    put(GOOD, 0600);
    {
        char id[KEY_ID_BYTES];
        struct err err;

        CHECK_INT(open_key_id(id, &err), 0);
        CHECK_TEXT(id, "ed25519:21fe31dfa154a261");
    }
    for (size_t i = 0; i < COUNT(cases); i++) {
        put(cases[i].text, 0600);
        check_refused(cases[i].error);
    }
    clean();
}

TEST(a_key_that_others_may_reach_is_refused)
{
    static const unsigned modes[] = {0640, 0604, 0620, 0602, 0610, 0644, 0666, 0777};
    char wanted[256];

    begin();
    for (size_t i = 0; i < COUNT(modes); i++) {
        put(GOOD, modes[i]);
        (void)snprintf(wanted, sizeof wanted,
                       "can be reached by others (mode %04o); if nobody has read it: chmod 600 %s",
                       modes[i], path);
        check_refused(wanted);
    }
    put(GOOD, 0400);
    {
        char id[KEY_ID_BYTES];
        struct err err;

        CHECK_INT(open_key_id(id, &err), 0);
    }
    clean();
}

TEST(a_link_a_fifo_or_a_folder_in_its_place_is_refused)
{
    char target[96];

    begin();
    put(GOOD, 0600);
    (void)snprintf(target, sizeof target, "%s.real", path);
    CHECK_INT(rename(path, target), 0);
    CHECK_INT(symlink(target, path), 0);
    check_refused("is a symbolic link");
    CHECK_INT(unlink(path), 0);
    CHECK_INT(mkfifo(path, 0600), 0);
    check_refused("is not a regular file");
    CHECK_INT(unlink(path), 0);
    CHECK_INT(mkdir(path, 0700), 0);
    check_refused("is not a regular file");
    clean();
}

TEST(a_key_of_another_user_is_refused)
{
    if (geteuid() != 0)
        test_skip("only root can give a file away");
    begin();
    put(GOOD, 0600);
    CHECK_INT(chown(path, 12345, 12345), 0);
    check_refused("belongs to user 12345, not to user 0 who runs this");
    clean();
}

TEST(a_folder_that_cannot_be_written_is_named)
{
    char wanted[160];
    int status = 1;
    pid_t pid;

    begin();
    CHECK_INT(chmod(dir, 0555), 0);
    (void)snprintf(wanted, sizeof wanted, "creating the signing key %s: Permission denied", path);
    pid = fork(); /* so that somebody is left who may clean up */
    if (pid == 0) {
        char id[KEY_ID_BYTES];
        struct err err = {0};

        if (geteuid() == 0)
            CHECK_INT(setresuid(54321, 54321, 54321), 0);
        CHECK_INT(open_key_id(id, &err), -1);
        CHECK_TEXT(err.text, wanted);
        _exit(err.code == ERR_FORBIDDEN && strcmp(err.text, wanted) == 0 ? 0 : 1);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(status, 0);
    clean();
}
