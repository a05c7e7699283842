/* SPDX-License-Identifier: Apache-2.0 */

/* Where to: one file that is replaced whole, and beside it the secret under a name of its own, so
 * that an address never meets the secret of another one. */

#include "flow/notify/notify-private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/crypto/secret.h"
#include "lib/http/http-upstream.h"
#include "lib/json/json.h"

#define CONFIG_TEXT_MAX (256 * KIB)

/* ---- the secret ---- */

int notify_key_parse(struct str text, struct notify_key *out, struct err *err)
{
    static const char prefix[] = "whsec_";
    size_t skip = sizeof prefix - 1;
    unsigned char bytes[NOTIFY_SECRET_TEXT_MAX];
    bool is_coded = str_starts(text, prefix);
    size_t n = 0;

    *out = (struct notify_key){.n = 0};
    if (text.n > NOTIFY_SECRET_TEXT_MAX)
        return err_set(err, ERR_INVALID, "the webhook's secret is longer than %d bytes",
                       NOTIFY_KEY_MAX);
    if (is_coded && !base64_decode((struct str){text.p + skip, text.n - skip}, bytes, &n))
        return err_set(err, ERR_INVALID, "what follows whsec_ is not base64");
    if (!is_coded) {
        memcpy(bytes, text.p, text.n);
        n = text.n;
    }
    if (n >= NOTIFY_KEY_MIN && n <= NOTIFY_KEY_MAX) {
        memcpy(out->b, bytes, n);
        out->n = n;
    }
    secret_wipe(bytes, sizeof bytes);
    return out->n ? 0
                  : err_set(err, ERR_INVALID, "the webhook's secret has %zu bytes; %d to %d count",
                            n, NOTIFY_KEY_MIN, NOTIFY_KEY_MAX);
}

/* Into room of a fixed size: a buffer that grows would leave copies behind. */
int notify_secret_read(int fd, char room[NOTIFY_SECRET_TEXT_MAX], struct str *out, struct err *err)
{
    size_t n = 0;
    ssize_t got;

    do {
        got = read(fd, room + n, NOTIFY_SECRET_TEXT_MAX - n);
        n += got > 0 ? (size_t)got : 0;
    } while ((got > 0 && n < NOTIFY_SECRET_TEXT_MAX) || (got < 0 && errno == EINTR));
    if (got < 0)
        return err_os(err, "reading the webhook's secret");
    if (n == NOTIFY_SECRET_TEXT_MAX)
        return err_set(err, ERR_INVALID, "the webhook's secret is longer than %d bytes",
                       NOTIFY_KEY_MAX);
    while (n && (room[n - 1] == '\n' || room[n - 1] == '\r'))
        n--;
    *out = (struct str){room, n};
    return 0;
}

int notify_key_read(const char *root_dir, const char *name, struct notify_key *out, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);
    const char *path = arena_printf(&mem, "%s/" NOTIFY_FOLDER "/%s", root_dir, name);
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    char room[NOTIFY_SECRET_TEXT_MAX];
    struct str text = {0};
    int failed;

    if (fd < 0)
        return err_os(err, "opening the webhook's secret");
    failed = notify_secret_read(fd, room, &text, err) < 0 || notify_key_parse(text, out, err) < 0;
    secret_wipe(room, sizeof room);
    return failed ? -1 : 0;
}

/* ---- reading ---- */

static const char *text_at(struct arena *mem, const struct json *object, const char *key)
{
    const struct json *value = object ? json_get(object, key) : NULL;
    struct str text;

    return value && json_is_text(value, &text) ? arena_text(mem, text) : NULL;
}

static struct words args_of(struct arena *mem, const struct json *list)
{
    const char **v;
    size_t n = 0;

    if (!list || list->kind != JSON_ARRAY)
        return (struct words){0};
    v = arena_array(mem, const char *, list->n + 1);
    json_each(one, list)
    {
        struct str text;

        if (json_is_text(one, &text))
            v[n++] = arena_text(mem, text);
    }
    return (struct words){v, n};
}

int notify_read(const char *root_dir, struct arena *mem, struct notify_config *out, struct err *err)
{
    AUTO_BUF struct buf text = BUF(CONFIG_TEXT_MAX);
    const char *path = arena_printf(mem, "%s/" NOTIFY_FILE, root_dir);
    const struct json *json = NULL;
    struct mark where;

    *out = (struct notify_config){0};
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    if (file_read(AT_FDCWD, path, &text, err) < 0)
        return -1;
    if (json_parse(mem, arena_str(mem, buf_str(&text)), &json, &where, err) < 0)
        return err_in(err, "%s", path);
    out->webhook = text_at(mem, json, "webhook");
    out->secret = text_at(mem, json, "secret");
    out->command = text_at(mem, json, "command");
    out->args = args_of(mem, json_get(json, "args"));
    if (out->webhook && (!out->secret || strchr(out->secret, '/')))
        return err_set(err, ERR_INVALID, "%s names no secret for its webhook", path);
    return 0;
}

/* ---- writing ---- */

static int check_webhook(const char *url, struct err *err)
{
    struct http_origin origin;
    struct err why;

    if (http_origin_parse(url, &origin, &why) == 0)
        return 0;
    return err_set(err, ERR_INVALID,
                   "--webhook takes https://HOST[:PORT]/PATH, or http:// and a loopback address of "
                   "this machine, with no user, password, ? or # in it: %s",
                   why.text);
}

static int check(const struct notify_config *config, struct err *err)
{
    char found[PATH_BYTES_MAX];

    if (!config->webhook && !config->command)
        return err_set(err, ERR_INVALID, "who is to be told? --webhook URL or --command PROGRAM");
    if (config->webhook && check_webhook(config->webhook, err) < 0)
        return -1;
    if (config->args.n > NOTIFY_ARGS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d arguments", NOTIFY_ARGS_MAX);
    for (size_t i = 0; i < config->args.n; i++)
        if (!str_is_utf8(str_of(config->args.v[i])))
            return err_set(err, ERR_INVALID, "an argument of the command is not UTF-8");
    return config->command ? notify_check_program(config->command, found, err) : 0;
}

static void remove_secret(const char *root_dir, const char *name)
{
    AUTO_ARENA struct arena mem = ARENA(64 * KIB);

    if (name)
        (void)unlink(arena_printf(&mem, "%s/" NOTIFY_FOLDER "/%s", root_dir, name));
}

static int write_secret(const char *root_dir, struct arena *mem, struct str secret,
                        const char **name, struct err *err)
{
    struct notify_key key;
    char id[ID_BYTES];
    int failed = notify_key_parse(secret, &key, err);

    secret_wipe(&key, sizeof key);
    if (failed < 0)
        return -1;
    id_new(id);
    *name = arena_printf(mem, "secret-%s", id);
    return file_replace(arena_printf(mem, "%s/" NOTIFY_FOLDER "/%s", root_dir, *name), secret.p,
                        secret.n, 0600, err);
}

static int config_text(struct arena *mem, const struct notify_config *config, const char *secret,
                       struct buf *out, struct err *err)
{
    struct json *json = json_object(mem), *args = json_array(mem);

    if (config->webhook) {
        json_put_text(mem, json, "webhook", config->webhook);
        json_put_text(mem, json, "secret", secret);
    }
    if (config->command) {
        json_put_text(mem, json, "command", config->command);
        for (size_t i = 0; i < config->args.n; i++)
            json_push(args, json_text(mem, str_of(config->args.v[i])));
        json_put(json, "args", args);
    }
    return json_canonical(json, out, err);
}

int notify_write(const char *root_dir, const struct notify_config *config, struct str secret,
                 char out[HASH_TEXT_BYTES], struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    AUTO_BUF struct buf text = BUF(CONFIG_TEXT_MAX);
    struct notify_config before = {0};
    const char *name = NULL;
    struct err ignored; /* what cannot be read is replaced */

    (void)!notify_read(root_dir, &mem, &before, &ignored);
    if (check(config, err) < 0 ||
        dir_make(arena_printf(&mem, "%s/" NOTIFY_FOLDER, root_dir), 0700, err) < 0 ||
        (config->webhook && write_secret(root_dir, &mem, secret, &name, err) < 0))
        return -1;
    if (config_text(&mem, config, name, &text, err) < 0 ||
        file_replace(arena_printf(&mem, "%s/" NOTIFY_FILE, root_dir), text.p, text.n, 0600, err) <
            0) {
        remove_secret(root_dir, name);
        return -1;
    }
    remove_secret(root_dir, before.secret);
    hash_text_of(buf_str(&text), out);
    return 0;
}

int notify_remove(const char *root_dir, struct err *err)
{
    AUTO_ARENA struct arena mem = ARENA(4 * MIB);
    struct notify_config before = {0};
    struct err ignored;

    (void)!notify_read(root_dir, &mem, &before, &ignored);
    if (unlink(arena_printf(&mem, "%s/" NOTIFY_FILE, root_dir)) < 0 && errno != ENOENT)
        return err_os(err, "removing " NOTIFY_FILE);
    remove_secret(root_dir, before.secret);
    return 0;
}
