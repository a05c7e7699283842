/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an entry means this caller.
 *
 * A binary is named by its path inside the sandbox; what is believed is that the file with that
 * path runs, because somebody looked at its content while it asked (NET_CALLER_KNOWN). What it
 * starts is meant only where the entry says so, and programs that run what they are told only where
 * the entry says that, since naming one names everything. */
#include "lib/egress/rules-private.h"

#include <string.h>

/* Base names; one that ends in "*" also with a version behind it. */
static const char *const interpreters[] = {
    "ash",        "awk",    "bash",     "bun",     "bundle",  "busybox", "chroot", "csh",
    "dash",       "deno",   "doas",     "emacs*",  "env",     "erl*",    "expect", "find",
    "fish",       "gawk",   "gdb",      "guile*",  "ionice",  "irb*",    "java",   "jshell",
    "jrunscript", "julia",  "ksh*",     "ld-*",    "ld.so*",  "lua*",    "make",   "mawk",
    "mksh",       "nawk",   "nc*",      "netcat*", "ncat",    "nice",    "node*",  "nohup",
    "nsenter",    "nvim",   "parallel", "perl*",   "php*",    "pwsh",    "pypy*",  "python*",
    "qemu-*",     "R",      "Rscript",  "ruby*",   "runuser", "screen",  "script", "setpriv",
    "setsid",     "sh",     "socat*",   "ssh",     "stdbuf",  "strace",  "su",     "sudo",
    "taskset",    "tclsh*", "tcsh",     "time",    "timeout", "tmux",    "toybox", "tsx",
    "unshare",    "uv",     "vi",       "vim*",    "watch",   "wish*",   "xargs",  "zsh*",
};

static bool is_version(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || strchr(".-_+abcdefghijklmnopqrstuvwxyz", s.p[i])))
            return false;
    return true;
}

bool is_interpreter(struct str path)
{
    const char *slash = memrchr(path.p, '/', path.n);
    struct str base = path;

    if (slash)
        base = (struct str){slash + 1, path.n - (size_t)(slash + 1 - path.p)};
    for (size_t i = 0; i < COUNT(interpreters); i++) {
        size_t n = strlen(interpreters[i]);

        if (interpreters[i][n - 1] != '*') {
            if (str_is(base, interpreters[i]))
                return true;
        } else if (base.n >= n - 1 && memcmp(base.p, interpreters[i], n - 1) == 0 &&
                   is_version((struct str){base.p + n - 1, base.n - (n - 1)})) {
            return true;
        }
    }
    return false;
}

static bool is_program(const struct binary *binary, const struct net_program *program)
{
    if (binary->has_hash && !hash_is_same(&binary->hash, &program->hash))
        return false;
    return glob_match(binary->path, program->path);
}

static enum binary_match match_itself(const struct binary *binary, const struct net_caller *caller)
{
    if (!is_program(binary, &caller->exe))
        return BINARY_OTHER;
    if (is_interpreter(caller->exe.path) && !binary->interpreter)
        return BINARY_INTERPRETER;
    if (binary->script &&
        (caller->script.path.n == 0 || !glob_match(binary->script, caller->script.path)))
        return BINARY_OTHER;
    if (caller->flags & NET_CALLER_WRITABLE && !binary->writable && !binary->has_hash)
        return BINARY_WRITABLE;
    return BINARY_MATCHES;
}

static enum binary_match match_parents(const struct binary *binary, const struct net_caller *caller)
{
    for (size_t i = 0; i < caller->ancestor_n && i < NET_ANCESTORS_MAX; i++)
        if (is_program(binary, &caller->ancestors[i]))
            return caller->flags & NET_CALLER_COMPLETE ? BINARY_MATCHES : BINARY_LOST;
    return BINARY_OTHER;
}

enum binary_match entry_match(const struct entry *entry, const struct net_caller *caller)
{
    enum binary_match best = BINARY_OTHER;

    for (size_t i = 0; i < entry->binary_n; i++) {
        enum binary_match match = match_itself(&entry->binaries[i], caller);

        if (match != BINARY_MATCHES && entry->binaries[i].children) {
            enum binary_match parents = match_parents(&entry->binaries[i], caller);

            match = parents > match ? parents : match;
        }
        best = match > best ? match : best;
    }
    return best;
}
