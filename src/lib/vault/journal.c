/* SPDX-License-Identifier: Apache-2.0 */

/* `uses` grows by one line a use, under `uses.lock`. To take them it is renamed to `uses.taken`,
 * under the same lock, so that nobody writes to it any more; it is removed once all have receipts.
 * A crash in between leaves `uses.taken`, which is taken again before anything else is. */

#include "lib/vault/vault-journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "lib/base/crash.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#define NAME "uses"
#define TAKEN "uses.taken"
#define LOCK "uses.lock"
#define TAKE_LOCK "uses.take"
#define LOCK_WAIT_US 2000000U
#define LOCK_PAUSE_US 500
#define JOURNAL_MAX (32 * MIB)
#define LINE_MAX_BYTES (16 * KIB)

struct vault_journal {
    int dir_fd;
    int lock_fd;
    bool is_empty;
};

static int lock_file(int dir_fd, const char *name, bool wait, struct err *err)
{
    AUTO_FD int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    uint64_t until = clock_us() + LOCK_WAIT_US;

    if (fd < 0)
        return err_os(err, "opening the lock of the vault's journal");
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_os(err, "locking the vault's journal");
        if (!wait)
            return err_set(err, ERR_CONFLICT, "somebody else reads the vault's journal");
        if (clock_us() > until)
            return err_set(err, ERR_TIMEOUT, "the vault's journal is locked");
        (void)usleep(LOCK_PAUSE_US);
    }
    return TAKE_FD(fd);
}

/* ---- writing ---- */

static int line_of(const char *sandbox, const struct vault_question *q,
                   const struct vault_answer *answer, struct buf *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(256 * KIB);
    struct json *json = json_object(&mem);
    char id[ID_BYTES], at[TIMESTAMP_BYTES], slot[VAULT_SLOT_TEXT_BYTES];

    id_new(id);
    clock_timestamp(at);
    vault_slot_text(&q->slot, slot);
    json_put_text(&mem, json, "at", at);
    json_put_text(&mem, json, "binding", answer->binding);
    json_put_text(&mem, json, "host", q->host);
    json_put_text(&mem, json, "id", id);
    json_put_text(&mem, json, "method", q->method);
    json_put_text(&mem, json, "name", q->name);
    json_put_text(&mem, json, "pack", q->pack);
    json_put_text(&mem, json, "path", q->path);
    json_put_int(&mem, json, "port", q->port);
    json_put_text(&mem, json, "sandbox", sandbox);
    json_put_text(&mem, json, "scheme", q->scheme);
    json_put_text(&mem, json, "slot", slot);
    json_put_text(&mem, json, "subject", q->subject);
    json_put_text(&mem, json, "tenant", q->tenant);
    json_put_int(&mem, json, "version", (int64_t)answer->version);
    if (json_canonical(json, out, err) < 0)
        return -1;
    return buf_add_byte(out, '\n', err);
}

/* What somebody began to write and did not end, nobody was given anything for: it goes, so that
 * the next line begins a line. */
static int mend(int fd, off_t size, struct err *err)
{
    char tail[LINE_MAX_BYTES];
    off_t from = size > (off_t)sizeof tail ? size - (off_t)sizeof tail : 0;
    ssize_t n = pread(fd, tail, sizeof tail, from);

    if (n < 0)
        return err_os(err, "reading the vault's journal");
    while (n && tail[n - 1] != '\n')
        n--;
    if (from + n != size && ftruncate(fd, from + n) < 0)
        return err_os(err, "mending the vault's journal");
    return 0;
}

int vault_journal_add(int dir_fd, const char *sandbox, const struct vault_question *question,
                      const struct vault_answer *answer, struct err *err)
{
    AUTO_BUF struct buf line = BUF(LINE_MAX_BYTES);
    AUTO_FD int lock = -1;
    AUTO_FD int fd = -1;
    struct stat st;

    if (line_of(sandbox, question, answer, &line, err) < 0)
        return -1;
    lock = lock_file(dir_fd, LOCK, true, err);
    if (lock < 0)
        return -1;
    fd = openat(dir_fd, NAME, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_os(err, "opening the vault's journal");
    if (st.st_size > (off_t)JOURNAL_MAX)
        return err_set(err, ERR_LIMIT, "too many uses of secrets wait for their receipts");
    if (mend(fd, st.st_size, err) < 0)
        return -1;
    if (write_all(fd, line.p, line.n, err) < 0)
        return err_in(err, "writing the vault's journal");
    CRASH_POINT("vault-use-written");
    if (fsync(fd) < 0)
        return err_os(err, "syncing the vault's journal");
    CRASH_POINT("vault-use-synced");
    return 0;
}

/* ---- reading ---- */

static bool text_of(struct arena *mem, const struct json *json, const char *key, const char **out)
{
    struct str text;

    if (!json_is_text(json_get(json, key), &text))
        return false;
    *out = arena_text(mem, text);
    return true;
}

static int read_use(struct arena *mem, struct str line, struct vault_used *out, struct err *err)
{
    struct vault_question *q = &out->question;
    const struct json *json = NULL;
    const char *slot = NULL;
    struct mark where;
    int64_t port = 0, version = 0;

    if (json_parse(mem, line, &json, &where, err) < 0 || !text_of(mem, json, "id", &out->id) ||
        !text_of(mem, json, "at", &out->at) || !text_of(mem, json, "sandbox", &out->sandbox) ||
        !text_of(mem, json, "binding", &out->binding) ||
        !text_of(mem, json, "tenant", &q->tenant) || !text_of(mem, json, "subject", &q->subject) ||
        !text_of(mem, json, "pack", &q->pack) || !text_of(mem, json, "host", &q->host) ||
        !text_of(mem, json, "scheme", &q->scheme) || !text_of(mem, json, "method", &q->method) ||
        !text_of(mem, json, "path", &q->path) || !text_of(mem, json, "name", &q->name) ||
        !text_of(mem, json, "slot", &slot) || !json_is_int(json_get(json, "port"), &port) ||
        !json_is_int(json_get(json, "version"), &version) ||
        vault_slot_parse(str_of(slot), &q->slot, err) < 0)
        return err_set(err, ERR_INTEGRITY, "the vault's journal has a line that is no use");
    q->port = (unsigned)port;
    out->version = (uint64_t)version;
    return 0;
}

/* A last line without its end was never synced, so nothing was handed out for it. */
static int read_uses(struct vault_journal *journal, struct arena *mem, struct vault_used **out,
                     size_t *n, struct err *err)
{
    AUTO_BUF struct buf text = BUF(JOURNAL_MAX + MIB);
    struct str rest;
    size_t lines = 0;

    if (file_read(journal->dir_fd, TAKEN, &text, err) < 0)
        return -1;
    for (size_t i = 0; i < text.n; i++)
        lines += text.p[i] == '\n';
    rest = buf_str(&text);
    *out = arena_array(mem, struct vault_used, lines + 1);
    *n = 0;
    while (*n < lines)
        if (read_use(mem, str_cut(&rest, '\n'), &(*out)[(*n)++], err) < 0)
            return -1;
    return 0;
}

static int exists(int dir_fd, const char *name)
{
    return faccessat(dir_fd, name, F_OK, 0) == 0;
}

/* True: there is something to be read. */
static int put_aside(struct vault_journal *journal, struct err *err)
{
    AUTO_FD int lock = -1;

    if (exists(journal->dir_fd, TAKEN))
        return 1;
    lock = lock_file(journal->dir_fd, LOCK, true, err);
    if (lock < 0)
        return -1;
    if (renameat(journal->dir_fd, NAME, journal->dir_fd, TAKEN) == 0)
        return 1;
    return errno == ENOENT ? 0 : err_os(err, "putting the vault's journal aside");
}

int vault_journal_take(const char *state_dir, struct arena *mem, struct vault_journal **out,
                       struct vault_used **uses, size_t *n, struct err *err)
{
    AUTO(vault_journal) struct vault_journal *journal = xcalloc(1, sizeof *journal);
    AUTO_FREE char *path = NULL;
    int got;

    *n = 0;
    journal->dir_fd = journal->lock_fd = -1;
    journal->is_empty = true;
    if (asprintf(&path, "%s/" VAULT_FOLDER, state_dir) < 0)
        return err_os(err, "naming the vault");
    journal->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (journal->dir_fd < 0 && errno != ENOENT)
        return err_os(err, "opening %s", path);
    if (journal->dir_fd >= 0 && (exists(journal->dir_fd, NAME) || exists(journal->dir_fd, TAKEN))) {
        journal->lock_fd = lock_file(journal->dir_fd, TAKE_LOCK, false, err);
        got = journal->lock_fd < 0 ? -1 : put_aside(journal, err);
        if (got < 0 || (got && read_uses(journal, mem, uses, n, err) < 0))
            return -1;
        journal->is_empty = !got;
    }
    *out = TAKE(journal);
    return 0;
}

int vault_journal_forget(struct vault_journal *journal, struct err *err)
{
    if (journal->is_empty)
        return 0;
    CRASH_POINT("vault-uses-recorded");
    if (unlinkat(journal->dir_fd, TAKEN, 0) < 0 && errno != ENOENT)
        return err_os(err, "removing what was read of the vault's journal");
    journal->is_empty = true;
    return fsync(journal->dir_fd) < 0 ? err_os(err, "syncing the vault's folder") : 0;
}

void vault_journal_free(struct vault_journal *journal)
{
    if (!journal)
        return;
    if (journal->lock_fd >= 0)
        (void)close(journal->lock_fd);
    if (journal->dir_fd >= 0)
        (void)close(journal->dir_fd);
    free(journal);
}
