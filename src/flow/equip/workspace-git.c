/* SPDX-License-Identifier: Apache-2.0 */

/* What of a git folder makes git run something. Git itself is never asked: it would do it. */

#include "flow/equip/workspace.h"

#include "lib/base/io.h"
#include "lib/base/limits.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define WHY_HOOKS "git runs the hooks in it"
#define WHY_CONFIG "git runs what it names (core.fsmonitor, core.pager, filters, aliases)"
#define WHY_HELD "held where it is: what git runs lies in it"

/* Read-only when they are there. A folder rather than the one file of interest in it, where git
 * seldom writes: then the file cannot be made either. */
static const struct {
    const char *name;
    const char *why;
} parts[] = {
    {"hooks",           WHY_HOOKS                                             },
    {"config",          WHY_CONFIG                                            },
    {"config.worktree", WHY_CONFIG                                            },
    {"info",            "git takes attributes, and so filters to run, from it"},
    {"commondir",       "git takes hooks and config from the folder it names" },
};

/* ---- git's config, as far as it is of interest ---- */

static bool is_word(struct str text, const char *word)
{
    return text.n == strlen(word) && strncasecmp(text.p, word, text.n) == 0;
}

static void skip_blanks(struct str *rest, bool lines)
{
    while (rest->n &&
           (*rest->p == ' ' || *rest->p == '\t' || *rest->p == '\r' || (lines && *rest->p == '\n')))
        *rest = (struct str){rest->p + 1, rest->n - 1};
}

static void skip_line(struct str *rest)
{
    (void)str_cut(rest, '\n');
}

/* "[core]", "[includeIf "gitdir:x"]": the first word. */
static struct str read_section(struct str *rest)
{
    struct str line = {rest->p + 1, 0};
    bool quoted = false;
    size_t i = 1;

    while (i < rest->n && rest->p[i] != '\n' && (quoted || rest->p[i] != ']')) {
        if (rest->p[i] == '\\' && i + 1 < rest->n)
            i++;
        else if (rest->p[i] == '"')
            quoted = !quoted;
        i++;
    }
    line.n = i - 1 < rest->n ? i - 1 : rest->n - 1;
    i = i < rest->n && rest->p[i] == ']' ? i + 1 : i;
    i = i < rest->n ? i : rest->n;
    *rest = (struct str){rest->p + i, rest->n - i};
    line = str_trim(line);
    for (size_t n = 0; n < line.n; n++)
        if (line.p[n] == ' ' || line.p[n] == '\t' || line.p[n] == '"')
            line.n = n;
    return line;
}

/* Up to the end of the line, without quotes, comments and blanks at the end; cut when it is longer
 * than any path. */
static void read_value(struct str *rest, char out[PATH_BYTES_MAX])
{
    size_t n = 0, kept = 0, i = 0;
    bool quoted = false;

    for (; i < rest->n && rest->p[i] != '\n'; i++) {
        char c = rest->p[i];
        bool escaped = c == '\\' && i + 1 < rest->n;

        if (escaped) {
            c = rest->p[++i];
            if (c == '\n')
                continue;
            if (c == 'n')
                c = '\n';
            else if (c == 't')
                c = '\t';
        } else if (c == '"') {
            quoted = !quoted;
            kept = n;
            continue;
        } else if (!quoted && (c == '#' || c == ';')) {
            while (i < rest->n && rest->p[i] != '\n')
                i++;
            break;
        }
        if (n + 1 < PATH_BYTES_MAX)
            out[n++] = c;
        if (quoted || escaped || !isspace((unsigned char)c))
            kept = n;
    }
    out[kept] = '\0';
    *rest = (struct str){rest->p + i, rest->n - i};
}

bool git_config_next(struct str *rest, struct str *section, bool *is_hooks,
                     char value[PATH_BYTES_MAX])
{
    for (;;) {
        struct str key = {NULL, 0};
        bool wanted;

        skip_blanks(rest, true);
        if (rest->n == 0)
            return false;
        if (*rest->p == '#' || *rest->p == ';') {
            skip_line(rest);
            continue;
        }
        if (*rest->p == '[') {
            *section = read_section(rest);
            continue;
        }
        key.p = rest->p;
        while (key.n < rest->n && (isalnum((unsigned char)key.p[key.n]) || key.p[key.n] == '-'))
            key.n++;
        *rest = (struct str){rest->p + key.n, rest->n - key.n};
        skip_blanks(rest, false);
        *is_hooks = is_word(*section, "core") && is_word(key, "hookspath");
        wanted = *is_hooks || ((is_word(*section, "include") || is_word(*section, "includeif")) &&
                               is_word(key, "path"));
        if (rest->n == 0 || *rest->p != '=') {
            skip_line(rest);
            continue;
        }
        *rest = (struct str){rest->p + 1, rest->n - 1};
        skip_blanks(rest, false);
        read_value(rest, value);
        if (wanted)
            return true;
    }
}

/* A path git would resolve against `base`, as one below the top of the scan; NULL: outside. */
static const char *within(struct scan *scan, const char *base, const char *path)
{
    char out[2 * PATH_BYTES_MAX] = "";
    size_t n = 0;

    if (*path == '/') {
        if (!path_is_within(path, scan->root))
            return NULL;
        path += strlen(scan->root);
        base = "";
    } else if (*path == '~') {
        return NULL;
    }
    if (strlen(base) + strlen(path) + 2 >= PATH_BYTES_MAX)
        return NULL;
    for (unsigned pass = 0; pass < 2; pass++) {
        const char *at = pass ? path : base;

        while (*at) {
            size_t part = strcspn(at, "/");

            if (part == 2 && at[0] == '.' && at[1] == '.') {
                if (n == 0)
                    return NULL;
                while (n && out[n - 1] != '/')
                    n--;
                n -= n > 0;
            } else if (part && !(part == 1 && at[0] == '.')) {
                if (n)
                    out[n++] = '/';
                memcpy(out + n, at, part);
                n += part;
            }
            at += part + strspn(at + part, "/");
        }
    }
    out[n] = '\0';
    return scan_join(scan, "", out);
}

static int read_small(struct scan *scan, const char *path, struct buf *out)
{
    AUTO_FD int fd = scan_open(scan, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct err ignored; /* too large, or gone: the file itself is protected all the same */
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)out->max)
        return -1;
    return read_all(fd, out, &ignored);
}

static int note_config(struct scan *scan, const char *folder, const char *name,
                       const char *worktree, struct err *err)
{
    AUTO_BUF struct buf text = BUF(GIT_CONFIG_MAX);
    struct str rest, section = {"", 0};
    char path[PATH_BYTES_MAX];
    bool is_hooks = false;
    unsigned named = 0;

    if (read_small(scan, scan_join(scan, folder, name), &text) < 0)
        return 0;
    rest = buf_str(&text);
    while (!scan->stopped && named++ < PROTECTED_MOUNTS_MAX &&
           git_config_next(&rest, &section, &is_hooks, path)) {
        const char *at = within(scan, is_hooks ? worktree : folder, path);

        if (at && scan_note(scan, at, is_hooks ? WHY_HOOKS : WHY_CONFIG, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- folders ---- */

int git_folder(struct scan *scan, const char *path, const char *worktree, unsigned depth,
               struct err *err)
{
    static const char *const further[] = {"modules", "worktrees"};

    scan_pin(scan, path, WHY_HELD);
    for (size_t i = 0; i < COUNT(parts); i++)
        if (scan_note(scan, scan_join(scan, path, parts[i].name), parts[i].why, err) < 0)
            return -1;
    if (note_config(scan, path, "config", worktree, err) < 0 ||
        note_config(scan, path, "config.worktree", worktree, err) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(further); i++) {
        const char *below = scan_join(scan, path, further[i]);

        scan_pin(scan, below, WHY_HELD);
        if (scan_folder(scan, below, depth + 1, err) < 0)
            return -1;
    }
    return 0;
}

int git_file(struct scan *scan, const char *path, const char *worktree, unsigned depth,
             struct err *err)
{
    AUTO_BUF struct buf text = BUF(PATH_BYTES_MAX);
    AUTO_FD int fd = -1;
    const char *at;
    struct str line;

    if (read_small(scan, path, &text) < 0 || !str_starts(buf_str(&text), "gitdir:"))
        return 0;
    line = buf_str(&text);
    line = str_trim((struct str){line.p + 7, line.n - 7});
    line = str_trim(str_cut(&line, '\n'));
    at = within(scan, worktree, arena_text(scan->mem, line));
    if (!at || !*at)
        return 0;
    fd = scan_open(scan, at, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? 0 : git_folder(scan, at, worktree, depth + 1, err);
}
