/* SPDX-License-Identifier: Apache-2.0 */

/* brig policy preset: policies whose hosts are this machine's own. */

#include "surface/cli/commands.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/net/addr.h"

#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS_MAX 64
#define CONFIG_MAX (1 * MIB)

/* Where package managers keep which hosts they ask. "~" is the home, "$X" a variable whose value is
 * the configuration itself. */
static const char *const apt_files[] = {"/etc/apt/sources.list", "/etc/apt/sources.list.d/*", NULL};
static const char *const npm_files[] = {"$NPM_CONFIG_REGISTRY", "$npm_config_registry", "~/.npmrc",
                                        "/etc/npmrc",           "/usr/etc/npmrc",       NULL};
static const char *const pip_files[] = {"$PIP_INDEX_URL",         "$PIP_EXTRA_INDEX_URL",
                                        "~/.config/pip/pip.conf", "~/.pip/pip.conf",
                                        "/etc/pip.conf",          NULL};
static const char *const go_files[] = {"$GOPROXY", "$GOSUMDB", "~/.config/go/env", NULL};
static const char *const cargo_files[] = {"$CARGO_REGISTRIES_DEFAULT_INDEX",
                                          "$CARGO_REGISTRY_INDEX",
                                          "~/.cargo/config.toml",
                                          "~/.cargo/config",
                                          "/etc/cargo/config.toml",
                                          NULL};

#define BINARIES_MAX 8

static const struct preset {
    const char *name;
    const char *const *files[6];
    const char *binaries[BINARIES_MAX];
    bool runs_scripts; /* its programs are interpreters */
} presets[] = {
    {"registries",
     {apt_files, npm_files, pip_files, go_files, cargo_files},
     {"/usr/lib/apt/methods/*", "/usr/bin/node", "/usr/bin/python3*", "/usr/bin/pip*",
      "/usr/lib/go*/bin/go", "/usr/local/go/bin/go", "/usr/bin/cargo"},
     true                                                                                                                           },
    {"go",         {go_files},                                 {"/usr/lib/go*/bin/go", "/usr/local/go/bin/go", "/usr/bin/go"}, false},
    {"crates",     {cargo_files},                              {"/usr/bin/cargo", "/usr/local/cargo/bin/cargo"},               false},
};

struct hosts {
    struct {
        char name[NET_NAME_BYTES_MAX + 1];
        uint16_t port;
    } v[HOSTS_MAX];
    size_t n;
};

static int add_host(struct hosts *hosts, struct str authority, uint16_t fallback, struct err *err)
{
    struct net_host host;
    struct str name;
    uint16_t port;

    if (!net_authority_cut(authority, fallback, &name, &port))
        return 0; /* not one: a variable, a pattern */
    net_host_read(name, &host);
    if (host.kind == NET_HOST_BAD || host.is_odd || memchr(host.text, '*', host.n))
        return 0;
    for (size_t i = 0; i < hosts->n; i++)
        if (strcmp(hosts->v[i].name, host.text) == 0 && hosts->v[i].port == port)
            return 0;
    if (hosts->n == HOSTS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d hosts; name those you need with --host",
                       HOSTS_MAX);
    memcpy(hosts->v[hosts->n].name, host.text, host.n + 1);
    hosts->v[hosts->n++].port = port;
    return 0;
}

/* Whatever in the text is a URL of HTTP, except behind a "#". */
static int add_urls(struct hosts *hosts, struct str text, struct err *err)
{
    while (text.n) {
        struct str line = str_cut(&text, '\n');
        const char *at;

        if (memchr(line.p, '#', line.n))
            line.n = (size_t)((const char *)memchr(line.p, '#', line.n) - line.p);
        while ((at = memmem(line.p, line.n, "://", 3))) {
            bool tls = at - line.p >= 5 && memcmp(at - 5, "https", 5) == 0;
            bool http = !tls && at - line.p >= 4 && memcmp(at - 4, "http", 4) == 0;
            struct str authority = {at + 3, 0};
            const char *user;

            line = (struct str){at + 3, (size_t)(line.p + line.n - at - 3)};
            while (authority.n < line.n && !strchr("/ \t\"',;|?)]}\r", line.p[authority.n]))
                authority.n++;
            user = memrchr(authority.p, '@', authority.n);
            if (user)
                authority = (struct str){user + 1, authority.n - (size_t)(user + 1 - authority.p)};
            if ((tls || http) && add_host(hosts, authority, tls ? 443 : 80, err) < 0)
                return -1;
        }
    }
    return 0;
}

static int add_file(struct hosts *hosts, const char *path, struct err *err)
{
    AUTO_BUF struct buf text = BUF(CONFIG_MAX);
    struct err unread; /* a file that is not there, or not ours to read, names no host */

    if (file_read(AT_FDCWD, path, &text, &unread) < 0)
        return 0;
    return add_urls(hosts, buf_str(&text), err);
}

static int add_matches(struct hosts *hosts, const char *pattern, struct err *err)
{
    glob_t found = {0};
    int status = 0;

    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && status == 0; i++)
            status = add_file(hosts, found.gl_pathv[i], err);
    globfree(&found);
    return status;
}

static int add_source(struct invocation *inv, struct hosts *hosts, const char *source,
                      struct err *err)
{
    const char *home = getenv("HOME"), *value;

    if (source[0] == '$') {
        value = getenv(source + 1);
        return value ? add_urls(hosts, str_of(value), err) : 0;
    }
    if (source[0] != '~')
        return add_matches(hosts, source, err);
    return home ? add_file(hosts, arena_printf(&inv->mem, "%s%s", home, source + 1), err) : 0;
}

static int find_hosts(struct invocation *inv, const struct preset *preset, struct hosts *hosts,
                      struct err *err)
{
    struct words given = option_words(inv, "--host");

    for (size_t i = 0; i < given.n; i++) {
        size_t before = hosts->n;

        if (add_host(hosts, str_of(given.v[i]), 443, err) < 0)
            return -1;
        if (hosts->n == before && i == 0)
            return err_set(err, ERR_INVALID, "--host %s is no host", given.v[i]);
    }
    for (size_t i = 0; given.n == 0 && i < COUNT(preset->files) && preset->files[i]; i++)
        for (const char *const *file = preset->files[i]; *file; file++)
            if (add_source(inv, hosts, *file, err) < 0)
                return -1;
    if (hosts->n == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "no configuration on this machine names a host for \"%s\"; name it with "
                       "--host",
                       preset->name);
    return 0;
}

static void print_policy(struct invocation *inv, const struct preset *preset,
                         const struct hosts *hosts)
{
    struct words given = option_words(inv, "--binary");
    size_t n = given.n;

    while (!given.n && n < BINARIES_MAX && preset->binaries[n])
        n++;
    (void)fprintf(inv->out,
                  "# %s: what this machine's package managers are configured for, to read from\n"
                  "version: 1\n"
                  "default: allow\n"
                  "network_policies:\n"
                  "  %s:\n"
                  "    binaries:\n",
                  preset->name, preset->name);
    for (size_t i = 0; i < n; i++)
        (void)fprintf(inv->out, "      - {path: \"%s\"%s}\n",
                      given.n ? given.v[i] : preset->binaries[i],
                      preset->runs_scripts ? ", interpreter: true" : "");
    (void)fprintf(inv->out, "    endpoints:\n");
    for (size_t i = 0; i < hosts->n; i++)
        (void)fprintf(inv->out,
                      "      - {host: \"%s\", port: %u, protocol: rest, access: read-only, "
                      "secret_shapes: deny}\n",
                      hosts->v[i].name, hosts->v[i].port);
}

int run_policy_preset(struct invocation *inv)
{
    struct hosts hosts = {0};
    struct err err;

    for (size_t i = 0; i < COUNT(presets); i++) {
        if (strcmp(inv->operands.v[0], presets[i].name) != 0)
            continue;
        if (find_hosts(inv, &presets[i], &hosts, &err) < 0)
            return cli_error(inv, &err);
        print_policy(inv, &presets[i], &hosts);
        return 0;
    }
    (void)err_set(&err, ERR_INVALID, "preset \"%s\" is not known; there are registries, go, crates",
                  inv->operands.v[0]);
    return cli_error(inv, &err);
}
