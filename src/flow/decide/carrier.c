/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/decide/carrier.h"

#include "lib/base/attrs.h"

#include <string.h>

enum carrier_kind {
    CARRIER_PREFIX, /* options, operands, then a command */
    CARRIER_SHELL,  /* -c TEXT, or a script, or standard input */
    CARRIER_CODE,   /* an interpreter: -c TEXT, or a script, or standard input */
    CARRIER_APPLET, /* busybox: the next word is the program */
    CARRIER_FIND,   /* -exec ... ; */
    CARRIER_OPAQUE, /* runs something; how is beyond these tables */
};

/* Options are strings of letters (short) or words between blanks (long). `stops` ends the look:
 * the rest belongs to the program and nothing hidden runs (--version, python -m). An option that
 * is in none of the lists makes the command opaque. */
struct carrier {
    const char *name;
    enum carrier_kind kind;
    const char *flags;  /* without a value */
    const char *values; /* with a value */
    const char *stops;
    const char *long_flags;
    const char *long_values;
    const char *long_stops;
    unsigned operands; /* of its own, before the command */
    bool assignments;  /* K=V before the command */
    bool more;         /* adds words of its own to the command */
};

#define INFO " --help --version "

/* clang-format off */
static const struct carrier carriers[] = {
    {.name = "env",     .kind = CARRIER_PREFIX, .flags = "i0v", .values = "uC", .long_flags = " --ignore-environment --null --debug ",
                .long_values = " --unset --chdir ", .long_stops = INFO, .assignments = true},
    {.name = "timeout", .kind = CARRIER_PREFIX, .flags = "fpv", .values = "ks", .operands = 1, .long_stops = INFO,
                .long_flags = " --foreground --preserve-status --verbose ", .long_values = " --kill-after --signal "},
    {.name = "nice",    .kind = CARRIER_PREFIX, .flags = "0123456789", .values = "n", .long_values = " --adjustment ", .long_stops = INFO},
    {.name = "nohup",   .kind = CARRIER_PREFIX, .long_stops = INFO},
    {.name = "setsid",  .kind = CARRIER_PREFIX, .flags = "cfw", .stops = "Vh", .long_flags = " --ctty --fork --wait ", .long_stops = INFO},
    {.name = "stdbuf",  .kind = CARRIER_PREFIX, .values = "ioe", .long_values = " --input --output --error ", .long_stops = INFO},
    {.name = "time",    .kind = CARRIER_PREFIX, .flags = "pvaq", .values = "fo", .stops = "V", .long_stops = INFO,
                .long_flags = " --portability --verbose --append --quiet ", .long_values = " --format --output "},
    {.name = "ionice",  .kind = CARRIER_PREFIX, .flags = "t", .values = "cn", .stops = "Vh", .long_stops = INFO,
                .long_values = " --class --classdata ", .long_flags = " --ignore "},
    {.name = "taskset", .kind = CARRIER_PREFIX, .flags = "ac", .stops = "Vh", .operands = 1, .long_stops = INFO,
                .long_flags = " --all-tasks --cpu-list "},
    {.name = "chrt",    .kind = CARRIER_PREFIX, .flags = "bdfiorRv", .values = "TPD", .stops = "Vhm", .operands = 1, .long_stops = INFO},
    {.name = "sudo",    .kind = CARRIER_PREFIX, .flags = "nEHSAbPBk", .values = "ugpChrTtD", .stops = "VlvK", .long_stops = INFO,
                .long_flags = " --non-interactive --preserve-env --set-home --stdin --background ",
                .long_values = " --user --group --prompt ", .assignments = true},
    {.name = "doas",    .kind = CARRIER_PREFIX, .flags = "n", .values = "u"},
    {.name = "command", .kind = CARRIER_PREFIX, .flags = "p", .stops = "vV"},
    {.name = "exec",    .kind = CARRIER_PREFIX, .flags = "cl", .values = "a"},
    {.name = "xargs",   .kind = CARRIER_PREFIX, .flags = "0prtox", .values = "adEILnPs", .long_stops = INFO, .more = true,
                .long_flags = " --null --no-run-if-empty --verbose --interactive --open-tty --exit ",
                .long_values = " --arg-file --delimiter --max-args --max-chars --max-lines --max-procs --replace "},
    {.name = "busybox", .kind = CARRIER_APPLET},
    {.name = "toybox",  .kind = CARRIER_APPLET},
    {.name = "find",    .kind = CARRIER_FIND},

    {.name = "python",  .kind = CARRIER_CODE, .flags = "bBdEIOPqRsSuvx", .values = "WX", .stops = "mVh", .long_stops = INFO},
    {.name = "pypy",    .kind = CARRIER_CODE, .flags = "bBdEIOPqRsSuvx", .values = "WX", .stops = "mVh", .long_stops = INFO},
    {.name = "perl",    .kind = CARRIER_CODE, .flags = "wWtTuUXc", .values = "I", .stops = "vVh", .long_stops = INFO},
    {.name = "ruby",    .kind = CARRIER_CODE, .flags = "wc", .values = "I", .stops = "vh", .long_stops = INFO},
    {.name = "php",     .kind = CARRIER_CODE, .flags = "nqCH", .stops = "vhmil", .long_stops = INFO},
    {.name = "lua",     .kind = CARRIER_CODE, .flags = "EW", .stops = "v"},
    {.name = "luajit",  .kind = CARRIER_CODE, .stops = "v"},
    {.name = "node",    .kind = CARRIER_CODE, .flags = "c", .stops = "vh", .long_stops = INFO,
                .long_flags = " --check --enable-source-maps --no-warnings --no-deprecation --trace-warnings "
                              "--unhandled-rejections --max-old-space-size --preserve-symlinks ", .long_values = " --test-reporter "},
    {.name = "nodejs",  .kind = CARRIER_CODE, .flags = "c", .stops = "vh", .long_stops = INFO},
    {.name = "tclsh",   .kind = CARRIER_CODE},
};
/* clang-format on */

/* -c TEXT, a script, or standard input: the same options in all of them that matter here. */
static const char *const shells[] = {"sh",   "bash", "rbash", "dash", "ash", "zsh",  "ksh",
                                     "mksh", "posh", "yash",  "fish", "csh", "tcsh", "osh"};

/* Programs that run others in ways these tables do not follow. */
static const char *const opaques[] = {"awk",         "gawk",
                                      "mawk",        "nawk",
                                      "bun",         "deno",
                                      "expect",      "eval",
                                      "source",      ".",
                                      "builtin",     "parallel",
                                      "watch",       "script",
                                      "flock",       "entr",
                                      "strace",      "ltrace",
                                      "gdb",         "valgrind",
                                      "perf",        "setpriv",
                                      "setarch",     "linux32",
                                      "linux64",     "prlimit",
                                      "unshare",     "nsenter",
                                      "chroot",      "capsh",
                                      "su",          "runuser",
                                      "sg",          "pkexec",
                                      "bwrap",       "firejail",
                                      "proot",       "fakeroot",
                                      "faketime",    "start-stop-daemon",
                                      "systemd-run", "dbus-run-session",
                                      "xvfb-run",    "run-parts",
                                      "tmux",        "screen",
                                      "at",          "batch",
                                      "ld.so"};

static const struct carrier shell = {
    .kind = CARRIER_SHELL,
    .flags = "abefhiklmnprtuvxBCDEHPT",
    .values = "oO",
    .long_flags = " --login --noediting --noprofile --norc --posix --restricted --verbose ",
    .long_stops = INFO,
};

const char *program_base(const char *program)
{
    const char *slash = strrchr(program, '/');

    return slash ? slash + 1 : program;
}

static const struct carrier opaque = {.kind = CARRIER_OPAQUE};

/* python3.11 is python. */
static size_t unversioned(const char *name)
{
    size_t n = strlen(name);

    while (n && ((name[n - 1] >= '0' && name[n - 1] <= '9') || name[n - 1] == '.'))
        n--;
    return n;
}

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static const struct carrier *find_carrier(const char *name)
{
    size_t short_n = unversioned(name);

    if (strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld-musl", 7) == 0)
        return &opaque;
    for (size_t i = 0; i < COUNT(carriers); i++) {
        if (strcmp(name, carriers[i].name) == 0)
            return &carriers[i];
        if (carriers[i].kind == CARRIER_CODE && strlen(carriers[i].name) == short_n &&
            memcmp(name, carriers[i].name, short_n) == 0)
            return &carriers[i];
    }
    if (is_one_of(name, shells, COUNT(shells)))
        return &shell;
    return is_one_of(name, opaques, COUNT(opaques)) ? &opaque : NULL;
}

/* ---- options ---- */

enum options_end {
    OPTIONS_DONE,    /* *at is the first word that is no option */
    OPTIONS_STOP,    /* one of them makes the rest harmless */
    OPTIONS_UNKNOWN, /* one of them is not in the table */
};

static bool listed(const char *list, const char *name, size_t n)
{
    for (const char *at = list ? strchr(list, ' ') : NULL; at; at = strchr(at, ' ')) {
        at++;
        if (strncmp(at, name, n) == 0 && at[n] == ' ')
            return true;
    }
    return false;
}

static bool has_letter(const char *letters, char c)
{
    return letters && c && strchr(letters, c);
}

static enum options_end long_option(const struct carrier *c, const char *word, size_t *at)
{
    size_t n = strcspn(word, "=");

    if (listed(c->long_stops, word, n))
        return OPTIONS_STOP;
    if (listed(c->long_values, word, n)) {
        *at += word[n] == '=' ? 1 : 2;
        return OPTIONS_DONE;
    }
    if (!listed(c->long_flags, word, n))
        return OPTIONS_UNKNOWN;
    (*at)++;
    return OPTIONS_DONE;
}

static enum options_end short_options(const struct carrier *c, const char *word, size_t *at)
{
    (*at)++;
    for (const char *letter = word + 1; *letter; letter++) {
        if (has_letter(c->stops, *letter))
            return OPTIONS_STOP;
        if (has_letter(c->values, *letter)) {
            if (letter[1] == '\0')
                (*at)++; /* the value is the next word */
            return OPTIONS_DONE;
        }
        if (!has_letter(c->flags, *letter))
            return OPTIONS_UNKNOWN;
    }
    return OPTIONS_DONE;
}

static enum options_end skip_options(const struct carrier *c, struct slice command, size_t *at)
{
    while (*at < command.n && command.v[*at][0] == '-' && command.v[*at][1]) {
        const char *word = command.v[*at];
        enum options_end end;

        if (strcmp(word, "--") == 0) {
            (*at)++;
            return OPTIONS_DONE;
        }
        end = word[1] == '-' ? long_option(c, word, at) : short_options(c, word, at);
        if (end != OPTIONS_DONE)
            return end;
    }
    return OPTIONS_DONE;
}

/* ---- kinds ---- */

bool is_steering_variable(const char *assignment)
{
    static const char *const exact[] = {
        "PATH",
        "IFS",
        "ENV",
        "BASH_ENV",
        "SHELL",
        "SHELLOPTS",
        "BASHOPTS",
        "PS4",
        "PROMPT_COMMAND",
        "CDPATH",
        "PERL5OPT",
        "PERL5LIB",
        "PERLLIB",
        "PERL5DB",
        "RUBYOPT",
        "RUBYLIB",
        "NODE_OPTIONS",
        "NODE_PATH",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "CLASSPATH",
        "PAGER",
        "MANPAGER",
        "LESSOPEN",
        "LESSCLOSE",
        "EDITOR",
        "VISUAL",
        "BROWSER",
        "MAKEFLAGS",
        "GNUMAKEFLAGS",
        "MAKEFILES",
        "CC",
        "CXX",
        "RUSTC_WRAPPER",
        "GCONV_PATH",
        "LOCPATH",
        "NLSPATH",
        "TERMINFO",
        "HOME",
        "XDG_CONFIG_HOME",
        "SSH_ASKPASS",
        "LUA_INIT",
        "LUA_PATH",
        "LUA_CPATH",
        "PHPRC",
        "PHP_INI_SCAN_DIR",
        "TAR_OPTIONS",
        "RSYNC_RSH",
        "OPENSSL_CONF",
    };
    static const char *const prefixes[] = {
        "LD_",         "GLIBC_",      "MALLOC_", "DYLD_", "PYTHON", "GIT_",    "BASH_FUNC_",
        "npm_config_", "NPM_CONFIG_", "CARGO_",  "RUSTC", "PIP_",   "LUA_INIT"};
    size_t n = strcspn(assignment, "=");

    for (size_t i = 0; i < COUNT(exact); i++)
        if (strlen(exact[i]) == n && memcmp(assignment, exact[i], n) == 0)
            return true;
    for (size_t i = 0; i < COUNT(prefixes); i++)
        if (strncmp(assignment, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static void add_inside(struct inside *out, struct slice command)
{
    if (command.n == 0)
        return;
    if (out->n == INSIDE_MAX)
        out->opaque = true;
    else
        out->commands[out->n++] = command;
}

static struct slice from(struct slice command, size_t at)
{
    if (at > command.n)
        at = command.n;
    return (struct slice){command.v + at, command.n - at};
}

static void look_prefix(const struct carrier *c, struct slice command, struct inside *out)
{
    size_t at = 1;
    enum options_end end = skip_options(c, command, &at);

    if (end == OPTIONS_STOP)
        return;
    if (end == OPTIONS_UNKNOWN) {
        out->opaque = out->scan = true;
        return;
    }
    if (c->assignments && at < command.n && strcmp(command.v[at], "-") == 0)
        at++;
    for (; c->assignments && at < command.n && strchr(command.v[at], '='); at++)
        if (is_steering_variable(command.v[at]))
            out->opaque = true;
    out->opaque = out->opaque || c->more;
    add_inside(out, from(command, at + c->operands));
}

/* A script is a file beside the working directory, not a name that is looked up. */
static struct slice script(struct arena *mem, struct slice command, size_t at)
{
    const char **v;

    if (strchr(command.v[at], '/'))
        return from(command, at);
    v = arena_array(mem, const char *, command.n - at + 1);
    for (size_t i = at; i < command.n; i++)
        v[i - at] = command.v[i];
    v[0] = arena_printf(mem, "./%s", command.v[at]);
    return (struct slice){v, command.n - at};
}

static void look_script(struct arena *mem, const struct carrier *options, struct slice command,
                        struct inside *out)
{
    size_t at = 1;
    enum options_end end = skip_options(options, command, &at);

    if (end == OPTIONS_STOP)
        return;
    if (end == OPTIONS_UNKNOWN || at >= command.n || strcmp(command.v[at], "-") == 0)
        out->opaque = true; /* text in an argument, or on standard input */
    else
        add_inside(out, script(mem, command, at));
    out->script = true;
    out->shell = options->kind == CARRIER_SHELL;
}

static bool is_exec_option(const char *word)
{
    return strcmp(word, "-exec") == 0 || strcmp(word, "-execdir") == 0 ||
           strcmp(word, "-ok") == 0 || strcmp(word, "-okdir") == 0;
}

static void look_find(struct slice command, struct inside *out)
{
    for (size_t i = 1; i < command.n; i++) {
        size_t end = i + 1;

        if (!is_exec_option(command.v[i]))
            continue;
        while (end < command.n && strcmp(command.v[end], ";") != 0 &&
               strcmp(command.v[end], "+") != 0)
            end++;
        add_inside(out, (struct slice){command.v + i + 1, end - i - 1});
        out->opaque = true; /* {} becomes names that nobody has seen */
        i = end;
    }
}

void carrier_look(struct arena *mem, struct slice command, struct inside *out)
{
    const char *name = command.n ? program_base(command.v[0]) : "";
    const struct carrier *c = find_carrier(name);

    *out = (struct inside){0};
    if (!c)
        return;
    out->carrier = name;
    switch (c->kind) {
    case CARRIER_PREFIX:
        look_prefix(c, command, out);
        break;
    case CARRIER_SHELL:
    case CARRIER_CODE:
        look_script(mem, c, command, out);
        break;
    case CARRIER_APPLET:
        if (command.n > 1 && command.v[1][0] == '-')
            out->opaque = true;
        else
            add_inside(out, from(command, 1));
        break;
    case CARRIER_FIND:
        look_find(command, out);
        break;
    case CARRIER_OPAQUE:
        out->opaque = out->scan = true;
        break;
    }
}
