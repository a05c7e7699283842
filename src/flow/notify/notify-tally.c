/* SPDX-License-Identifier: Apache-2.0 */

/* How it went: STATE/notify/tally.json, changed by whoever sends while he holds its lock. A count
 * that cannot be kept is lost; nobody waits long for it. */

#include "flow/notify/notify-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/json/json.h"

#define TALLY_TEXT_MAX (16 * KIB)
#define REPORT_WAIT_MS 10000 /* whoever sends has nothing else to do, and nobody waits for it */
#define DROPPED_WAIT_MS 100  /* somebody's command goes on behind that */

static const char *path_of(struct arena *mem, const char *root_dir, const char *name)
{
    return arena_printf(mem, "%s/" NOTIFY_FOLDER "/%s", root_dir, name);
}

static int64_t number_at(const struct json *json, const char *key)
{
    int64_t number = 0;

    return json_is_int(json_get(json, key), &number) && number > 0 ? number : 0;
}

static void text_at(const struct json *json, const char *key, char *out, size_t size)
{
    struct str text = {0};

    (void)json_is_text(json_get(json, key), &text);
    (void)snprintf(out, size, STR_FMT, STR_ARG(text));
}

int notify_tally_read(const char *root_dir, struct notify_tally *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO_BUF struct buf text = BUF(TALLY_TEXT_MAX);
    const char *path = path_of(&mem, root_dir, "tally.json");
    const struct json *json = NULL;
    struct mark where;

    *out = (struct notify_tally){0};
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    if (file_read(AT_FDCWD, path, &text, err) < 0)
        return -1;
    if (json_parse(&mem, buf_str(&text), &json, &where, err) < 0)
        return err_in(err, "%s", path);
    out->webhook_ok = number_at(json, "webhook_ok");
    out->webhook_failed = number_at(json, "webhook_failed");
    out->command_ok = number_at(json, "command_ok");
    out->command_failed = number_at(json, "command_failed");
    out->dropped = number_at(json, "dropped");
    text_at(json, "last_error", out->last_error, sizeof out->last_error);
    text_at(json, "last_error_at", out->last_error_at, sizeof out->last_error_at);
    return 0;
}

static void write_tally(struct arena *mem, const char *root_dir, const struct notify_tally *tally)
{
    AUTO_BUF struct buf text = BUF(TALLY_TEXT_MAX);
    struct json *json = json_object(mem);
    struct err ignored;

    json_put_int(mem, json, "webhook_ok", tally->webhook_ok);
    json_put_int(mem, json, "webhook_failed", tally->webhook_failed);
    json_put_int(mem, json, "command_ok", tally->command_ok);
    json_put_int(mem, json, "command_failed", tally->command_failed);
    json_put_int(mem, json, "dropped", tally->dropped);
    json_put_text(mem, json, "last_error", tally->last_error);
    json_put_text(mem, json, "last_error_at", tally->last_error_at);
    if (json_compact(json, &text, &ignored) == 0)
        (void)!file_exchange(path_of(mem, root_dir, "tally.json"), text.p, text.n, 0600, &ignored);
}

static int lock(const char *path, unsigned wait_ms)
{
    AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    return fd >= 0 && lock_wait(fd, LOCK_EX, wait_ms) ? TAKE_FD(fd) : -1;
}

static void note_error(struct notify_tally *tally, const char *who, const char *text)
{
    struct str said = str_of(text);

    said.n = str_utf8_prefix(said);
    (void)snprintf(tally->last_error, sizeof tally->last_error, "%s: %.*s", who,
                   said.n < 200 ? (int)said.n : 200, said.p);
    said = str_of(tally->last_error);
    tally->last_error[str_utf8_prefix(said)] = '\0';
    clock_timestamp(tally->last_error_at);
}

static void add_report(struct notify_tally *tally, const struct notify_report *report)
{
    tally->webhook_ok += report->has_webhook && report->webhook_ok;
    tally->webhook_failed += report->has_webhook && !report->webhook_ok;
    tally->command_ok += report->has_command && report->command_ok;
    tally->command_failed += report->has_command && !report->command_ok;
    if (report->has_webhook && !report->webhook_ok)
        note_error(tally, "webhook", report->webhook_error);
    if (report->has_command && !report->command_ok)
        note_error(tally, "command", report->command_error);
}

/* With a report, or (NULL) one that was dropped. */
static void change(const char *root_dir, const struct notify_report *report, const char *why)
{
    AUTO_ARENA struct arena mem = ARENA(1 * MIB);
    AUTO_FD int locked =
        lock(path_of(&mem, root_dir, "tally.lock"), report ? REPORT_WAIT_MS : DROPPED_WAIT_MS);
    struct notify_tally tally;
    struct err ignored;

    if (locked < 0)
        return;
    if (notify_tally_read(root_dir, &tally, &ignored) < 0)
        tally = (struct notify_tally){0}; /* it says nothing any more */
    if (report) {
        add_report(&tally, report);
    } else {
        tally.dropped++;
        note_error(&tally, "dropped", why);
    }
    write_tally(&mem, root_dir, &tally);
}

void notify_tally_dropped(const char *root_dir, const char *why)
{
    change(root_dir, NULL, why);
}

void notify_tally_report(const char *root_dir, const struct notify_report *report)
{
    change(root_dir, report, NULL);
}
