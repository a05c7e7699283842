/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/shell/carrier-private.h"

#include "lib/base/attrs.h"
#include "lib/shell/option-private.h"

#include <string.h>

#define INFO " --help --version "

/* clang-format off */
/* In the order of bytes; see name-private.h. */
static const struct carrier carriers[] = {
    {NAMED("."),       .kind = CARRIER_SOURCE},
    {NAMED("Rscript"), .kind = CARRIER_CODE, .long_stops = INFO,
                .long_flags = " --default-packages --no-echo --no-environ --no-init-file --no-restore --no-save --no-site-file --vanilla --verbose "},
    {NAMED("aa-exec"), .kind = CARRIER_OPAQUE},
    {NAMED("alias"),   .kind = CARRIER_ALIAS},
    {NAMED("apt"),     .kind = CARRIER_OPTION, .runs = &runs_apt},
    {NAMED("apt-get"), .kind = CARRIER_OPTION, .runs = &runs_apt},
    {NAMED("ash"),     .kind = CARRIER_SHELL},
    {NAMED("at"),      .kind = CARRIER_OPAQUE},
    {NAMED("awk"),     .kind = CARRIER_AWK},
    {NAMED("bash"),    .kind = CARRIER_SHELL},
    {NAMED("batch"),   .kind = CARRIER_OPAQUE},
    {NAMED("builtin"), .kind = CARRIER_PREFIX},
    {NAMED("bun"),     .kind = CARRIER_OPAQUE},
    {NAMED("bundle"),  .kind = CARRIER_OPTION, .runs = &runs_run},
    {NAMED("busybox"), .kind = CARRIER_APPLET},
    {NAMED("bwrap"),   .kind = CARRIER_OPAQUE},
    {NAMED("capsh"),   .kind = CARRIER_OPAQUE},
    {NAMED("cargo"),   .kind = CARRIER_OPTION, .runs = &runs_cargo},
    {NAMED("choom"),   .kind = CARRIER_OPAQUE},
    {NAMED("chpst"),   .kind = CARRIER_OPAQUE},
    {NAMED("chronic"), .kind = CARRIER_OPAQUE},
    {NAMED("chroot"),  .kind = CARRIER_PREFIX, .operands = 1, .long_stops = INFO, .hides = true,
                .long_flags = " --userspec --groups --skip-chdir "},
    {NAMED("chrt"),    .kind = CARRIER_PREFIX, .flags = "bdfiorRv", .values = "TPD", .stops = "Vhm", .operands = 1, .long_stops = INFO},
    {NAMED("cmake"),   .kind = CARRIER_OPTION, .runs = &runs_cmake},
    {NAMED("command"), .kind = CARRIER_PREFIX, .flags = "p", .stops = "vV"},
    {NAMED("compgen"), .kind = CARRIER_OPAQUE},
    {NAMED("coproc"),  .kind = CARRIER_PREFIX},
    {NAMED("coreutils"), .kind = CARRIER_OPAQUE},
    {NAMED("cpio"),    .kind = CARRIER_OPTION, .runs = &runs_cpio},
    {NAMED("crontab"), .kind = CARRIER_OPTION, .runs = &runs_crontab},
    {NAMED("csh"),     .kind = CARRIER_SHELL},
    {NAMED("dash"),    .kind = CARRIER_SHELL},
    {NAMED("dbus-launch"), .kind = CARRIER_OPAQUE},
    {NAMED("dbus-run-session"), .kind = CARRIER_OPAQUE},
    {NAMED("deno"),    .kind = CARRIER_OPAQUE},
    {NAMED("doas"),    .kind = CARRIER_PREFIX, .flags = "n", .values = "u"},
    {NAMED("docker"),  .kind = CARRIER_OPTION, .runs = &runs_docker},
    {NAMED("docker-compose"), .kind = CARRIER_OPTION, .runs = &runs_compose},
    {NAMED("dpkg"),    .kind = CARRIER_OPTION, .runs = &runs_dpkg},
    {NAMED("dumb-init"), .kind = CARRIER_OPAQUE},
    {NAMED("eatmydata"), .kind = CARRIER_OPAQUE},
    {NAMED("ed"),      .kind = CARRIER_OPAQUE},
    {NAMED("emacs"),   .kind = CARRIER_OPAQUE},
    {NAMED("entr"),    .kind = CARRIER_OPAQUE},
    {NAMED("env"),     .kind = CARRIER_PREFIX, .flags = "i0v", .values = "uC", .long_flags = " --ignore-environment --null --debug ",
                .long_values = " --unset --chdir ", .long_stops = INFO, .assignments = true},
    {NAMED("eval"),    .kind = CARRIER_JOINS},
    {NAMED("ex"),      .kind = CARRIER_OPTION, .runs = &runs_vim},
    {NAMED("exec"),    .kind = CARRIER_PREFIX, .flags = "cl", .values = "a"},
    {NAMED("expect"),  .kind = CARRIER_OPAQUE},
    {NAMED("fakeroot"), .kind = CARRIER_OPAQUE},
    {NAMED("faketime"), .kind = CARRIER_OPAQUE},
    {NAMED("fc"),      .kind = CARRIER_OPAQUE},
    {NAMED("fd"),      .kind = CARRIER_OPTION, .runs = &runs_fd},
    {NAMED("fdfind"),  .kind = CARRIER_OPTION, .runs = &runs_fd},
    {NAMED("find"),    .kind = CARRIER_FIND},
    {NAMED("firejail"), .kind = CARRIER_OPAQUE},
    {NAMED("fish"),    .kind = CARRIER_SHELL},
    {NAMED("flock"),   .kind = CARRIER_PREFIX, .flags = "sxeuonFv", .values = "wE", .stops = "Vh", .operands = 1, .long_stops = INFO, .hides = true,
                .long_flags = " --shared --exclusive --unlock --nonblock --nb --close --no-fork --verbose ",
                .long_values = " --timeout --wait --conflict-exit-code ", .text = 'c'},
    {NAMED("gawk"),    .kind = CARRIER_AWK},
    {NAMED("gdb"),     .kind = CARRIER_OPAQUE},
    {NAMED("git"),     .kind = CARRIER_OPTION, .runs = &runs_git},
    {NAMED("gmake"),   .kind = CARRIER_OPTION, .runs = &runs_make},
    {NAMED("go"),      .kind = CARRIER_OPTION, .runs = &runs_go},
    {NAMED("gosu"),    .kind = CARRIER_OPAQUE},
    {NAMED("gpg-agent"), .kind = CARRIER_OPAQUE},
    {NAMED("gsed"),    .kind = CARRIER_OPTION, .runs = &runs_sed},
    {NAMED("gtar"),    .kind = CARRIER_OPTION, .runs = &runs_tar},
    {NAMED("gvim"),    .kind = CARRIER_OPTION, .runs = &runs_vim},
    {NAMED("i386"),    .kind = CARRIER_OPAQUE},
    {NAMED("install"), .kind = CARRIER_OPTION, .runs = &runs_install},
    {NAMED("ionice"),  .kind = CARRIER_PREFIX, .flags = "t", .values = "cn", .stops = "Vh", .long_stops = INFO,
                .long_values = " --class --classdata ", .long_flags = " --ignore "},
    {NAMED("ip"),      .kind = CARRIER_OPTION, .runs = &runs_ip},
    {NAMED("ksh"),     .kind = CARRIER_SHELL},
    {NAMED("kubectl"), .kind = CARRIER_OPTION, .runs = &runs_kubectl},
    {NAMED("ld.so"),   .kind = CARRIER_OPAQUE},
    {NAMED("less"),    .kind = CARRIER_OPTION, .runs = &runs_less},
    {NAMED("linux32"), .kind = CARRIER_OPAQUE},
    {NAMED("linux64"), .kind = CARRIER_OPAQUE},
    {NAMED("ltrace"),  .kind = CARRIER_PREFIX, .flags = "bcCfiLrStT", .values = "aAeFlnopsuwDx", .stops = "Vh", .long_stops = INFO, .hides = true},
    {NAMED("lua"),     .kind = CARRIER_CODE, .flags = "EWv"},
    {NAMED("luajit"),  .kind = CARRIER_CODE, .flags = "v"},
    {NAMED("machinectl"), .kind = CARRIER_OPAQUE},
    {NAMED("make"),    .kind = CARRIER_OPTION, .runs = &runs_make},
    {NAMED("man"),     .kind = CARRIER_OPTION, .runs = &runs_man},
    {NAMED("mariadb"), .kind = CARRIER_OPTION, .runs = &runs_mysql},
    {NAMED("mawk"),    .kind = CARRIER_AWK},
    {NAMED("mksh"),    .kind = CARRIER_SHELL},
    {NAMED("mysql"),   .kind = CARRIER_OPTION, .runs = &runs_mysql},
    {NAMED("nawk"),    .kind = CARRIER_AWK},
    {NAMED("nerdctl"), .kind = CARRIER_OPTION, .runs = &runs_docker},
    {NAMED("nice"),    .kind = CARRIER_PREFIX, .flags = "0123456789", .values = "n", .long_values = " --adjustment ", .long_stops = INFO},
    {NAMED("node"),    .kind = CARRIER_CODE, .flags = "c", .stops = "vh", .long_stops = INFO,
                .long_flags = " --check --enable-source-maps --no-warnings --no-deprecation --trace-warnings "
                              "--max-old-space-size --preserve-symlinks --test --test-only --test-force-exit --experimental-test-coverage ",
                .long_values = " --test-reporter --unhandled-rejections --test-name-pattern --test-skip-pattern --test-concurrency --test-timeout "
                               "--test-shard --test-isolation --test-reporter-destination "},
    {NAMED("nodejs"),  .kind = CARRIER_CODE, .flags = "c", .stops = "vh", .long_stops = INFO},
    {NAMED("nohup"),   .kind = CARRIER_PREFIX, .long_stops = INFO},
    {NAMED("npm"),     .kind = CARRIER_OPTION, .runs = &runs_npm},
    {NAMED("npx"),     .kind = CARRIER_PREFIX, .flags = "yq", .values = "pwc", .stops = "vh", .long_stops = INFO, .runs = &runs_npx,
                .long_flags = " --yes --no --no-install --quiet --silent --prefer-offline --offline --ignore-scripts --workspaces ",
                .long_values = " --package --workspace --call --registry --cache --prefix --loglevel --script-shell "},
    {NAMED("nsenter"), .kind = CARRIER_PREFIX, .flags = "amuinpCUTrwFeZ", .values = "tSGWN", .stops = "Vh", .long_stops = INFO, .hides = true,
                .long_flags = " --all --mount --uts --ipc --net --pid --cgroup --user --time --root --wd --preserve-credentials --no-fork --follow-context --env ",
                .long_values = " --target --setuid --setgid --wdns "},
    {NAMED("numactl"), .kind = CARRIER_OPAQUE},
    {NAMED("nvim"),    .kind = CARRIER_OPTION, .runs = &runs_vim},
    {NAMED("oc"),      .kind = CARRIER_OPTION, .runs = &runs_kubectl},
    {NAMED("osascript"), .kind = CARRIER_CODE, .values = "ls"},
    {NAMED("osh"),     .kind = CARRIER_SHELL},
    {NAMED("parallel"), .kind = CARRIER_PREFIX, .flags = "0kmXtuv", .values = "adjnNLPsSI", .long_stops = INFO, .more = true, .hides = true,
                .long_flags = " --null --keep-order --dry-run --bar --verbose --line-buffer --ungroup --halt --will-cite ",
                .long_values = " --jobs --arg-file --max-args --delay --timeout --delimiter "},
    {NAMED("pdm"),     .kind = CARRIER_OPTION, .runs = &runs_run},
    {NAMED("perf"),    .kind = CARRIER_OPAQUE},
    {NAMED("perl"),    .kind = CARRIER_CODE, .flags = "wWtTuUXc", .values = "I", .stops = "vVh", .long_stops = INFO},
    {NAMED("php"),     .kind = CARRIER_CODE, .flags = "nqCH", .stops = "vhmil", .long_stops = INFO},
    {NAMED("pipenv"),  .kind = CARRIER_OPTION, .runs = &runs_run},
    {NAMED("pipesz"),  .kind = CARRIER_OPAQUE},
    {NAMED("pkexec"),  .kind = CARRIER_PREFIX, .long_values = " --user ", .long_stops = INFO, .hides = true},
    {NAMED("pnpm"),    .kind = CARRIER_OPTION, .runs = &runs_pnpm},
    {NAMED("podman"),  .kind = CARRIER_OPTION, .runs = &runs_docker},
    {NAMED("poetry"),  .kind = CARRIER_OPTION, .runs = &runs_run},
    {NAMED("posh"),    .kind = CARRIER_SHELL},
    {NAMED("prlimit"), .kind = CARRIER_OPAQUE},
    {NAMED("proot"),   .kind = CARRIER_OPAQUE},
    {NAMED("prove"),   .kind = CARRIER_OPTION, .runs = &runs_prove},
    {NAMED("psql"),    .kind = CARRIER_OPTION, .runs = &runs_psql},
    {NAMED("py"),      .kind = CARRIER_CODE, .flags = "0123456789.bBdEIOPqRsSuvx", .values = "WX", .stops = "mVh", .long_stops = INFO},
    {NAMED("pypy"),    .kind = CARRIER_CODE, .flags = "bBdEIOPqRsSuvx", .values = "WX", .stops = "mVh", .long_stops = INFO},
    {NAMED("python"),  .kind = CARRIER_CODE, .flags = "bBdEIOPqRsSuvx", .values = "WX", .stops = "mVh", .long_stops = INFO},
    {NAMED("rbash"),   .kind = CARRIER_SHELL},
    {NAMED("rg"),      .kind = CARRIER_OPTION, .runs = &runs_rg},
    {NAMED("rsync"),   .kind = CARRIER_OPTION, .runs = &runs_rsync},
    {NAMED("ruby"),    .kind = CARRIER_CODE, .flags = "wcv", .values = "I", .stops = "h", .long_stops = INFO},
    {NAMED("run-parts"), .kind = CARRIER_OPAQUE},
    {NAMED("run0"),    .kind = CARRIER_OPAQUE},
    {NAMED("runcon"),  .kind = CARRIER_OPAQUE},
    {NAMED("runuser"), .kind = CARRIER_PREFIX, .flags = "lpmfP", .values = "ugGwTs", .stops = "Vh", .long_stops = INFO, .hides = true, .text = 'c'},
    {NAMED("rview"),   .kind = CARRIER_OPTION, .runs = &runs_vim},
    {NAMED("rvim"),    .kind = CARRIER_OPTION, .runs = &runs_vim},
    {NAMED("scp"),     .kind = CARRIER_OPTION, .runs = &runs_scp},
    {NAMED("screen"),  .kind = CARRIER_OPAQUE},
    {NAMED("script"),  .kind = CARRIER_OPAQUE, .text = 'c'},
    {NAMED("sed"),     .kind = CARRIER_OPTION, .runs = &runs_sed},
    {NAMED("setarch"), .kind = CARRIER_OPAQUE},
    {NAMED("setpriv"), .kind = CARRIER_PREFIX, .flags = "d", .stops = "Vh", .long_stops = INFO, .hides = true,
                .long_flags = " --dump --nnp --no-new-privs --clear-groups --keep-groups --init-groups --reset-env ",
                .long_values = " --reuid --regid --ruid --euid --rgid --egid --groups --inh-caps --ambient-caps --bounding-set --securebits "
                               "--selinux-label --apparmor-profile --pdeathsig --landlock-access --landlock-rule --seccomp-filter "},
    {NAMED("setsid"),  .kind = CARRIER_PREFIX, .flags = "cfw", .stops = "Vh", .long_flags = " --ctty --fork --wait ", .long_stops = INFO},
    {NAMED("sftp"),    .kind = CARRIER_OPTION, .runs = &runs_sftp},
    {NAMED("sg"),      .kind = CARRIER_OPAQUE, .text = 'c'},
    {NAMED("sh"),      .kind = CARRIER_SHELL},
    {NAMED("socat"),   .kind = CARRIER_OPAQUE},
    {NAMED("sort"),    .kind = CARRIER_OPTION, .runs = &runs_sort},
    {NAMED("source"),  .kind = CARRIER_SOURCE},
    {NAMED("split"),   .kind = CARRIER_OPTION, .runs = &runs_split},
    {NAMED("sqlite3"), .kind = CARRIER_OPTION, .runs = &runs_sqlite},
    {NAMED("ssh"),     .kind = CARRIER_JOINS, .flags = "46AaCfGgKkMNnqsTtvXxYy", .values = "BbcDEeFIiJLlmOoPpQRSWw", .stops = "V", .operands = 1, .runs = &runs_ssh},
    {NAMED("ssh-agent"), .kind = CARRIER_PREFIX, .flags = "cdDks", .values = "aEOPt"},
    {NAMED("sshpass"), .kind = CARRIER_OPAQUE},
    {NAMED("start-stop-daemon"), .kind = CARRIER_OPAQUE},
    {NAMED("stdbuf"),  .kind = CARRIER_PREFIX, .values = "ioe", .long_values = " --input --output --error ", .long_stops = INFO},
    {NAMED("strace"),  .kind = CARRIER_PREFIX, .flags = "CdfFikqrtTvwxyYzZ", .values = "abeEIoOpPsSuUX", .stops = "Vh", .long_stops = INFO, .hides = true},
    {NAMED("su"),      .kind = CARRIER_OPAQUE, .text = 'c'},
    {NAMED("su-exec"), .kind = CARRIER_OPAQUE},
    {NAMED("sudo"),    .kind = CARRIER_PREFIX, .flags = "nEHSAbPBk", .values = "ugpChrTtD", .stops = "VlvK", .long_stops = INFO,
                .long_flags = " --non-interactive --preserve-env --set-home --stdin --background ",
                .long_values = " --user --group --prompt ", .assignments = true},
    {NAMED("systemd-run"), .kind = CARRIER_OPAQUE},
    {NAMED("tar"),     .kind = CARRIER_OPTION, .runs = &runs_tar},
    {NAMED("taskset"), .kind = CARRIER_PREFIX, .flags = "ac", .stops = "Vh", .operands = 1, .long_stops = INFO,
                .long_flags = " --all-tasks --cpu-list "},
    {NAMED("tclsh"),   .kind = CARRIER_CODE},
    {NAMED("tcpdump"), .kind = CARRIER_OPTION, .runs = &runs_tcpdump},
    {NAMED("tcsh"),    .kind = CARRIER_SHELL},
    {NAMED("time"),    .kind = CARRIER_PREFIX, .flags = "pvaq", .values = "fo", .stops = "V", .long_stops = INFO, .assignments = true,
                .long_flags = " --portability --verbose --append --quiet ", .long_values = " --format --output "},
    {NAMED("timeout"), .kind = CARRIER_PREFIX, .flags = "fpv", .values = "ks", .operands = 1, .long_stops = INFO,
                .long_flags = " --foreground --preserve-status --verbose ", .long_values = " --kill-after --signal "},
    {NAMED("tini"),    .kind = CARRIER_OPAQUE},
    {NAMED("tmux"),    .kind = CARRIER_OPAQUE},
    {NAMED("torsocks"), .kind = CARRIER_OPAQUE},
    {NAMED("toybox"),  .kind = CARRIER_APPLET},
    {NAMED("trap"),    .kind = CARRIER_TRAP},
    {NAMED("uclampset"), .kind = CARRIER_OPAQUE},
    {NAMED("uname26"), .kind = CARRIER_OPAQUE},
    {NAMED("unbuffer"), .kind = CARRIER_OPAQUE},
    {NAMED("unshare"), .kind = CARRIER_PREFIX, .flags = "mnpuiUCTfrc", .values = "RwSG", .stops = "Vh", .long_stops = INFO, .hides = true,
                .long_flags = " --mount --uts --ipc --net --pid --user --cgroup --time --fork --map-root-user --map-current-user --mount-proc --kill-child "
                              "--keep-caps --map-auto --map-users --map-groups --propagation --setgroups --monotonic --boottime ",
                .long_values = " --root --wd --setuid --setgid --map-user --map-group "},
    {NAMED("uv"),      .kind = CARRIER_OPTION, .runs = &runs_run},
    {NAMED("valgrind"), .kind = CARRIER_OPAQUE},
    {NAMED("vi"),      .kind = CARRIER_OPTION, .runs = &runs_vim},
    {NAMED("view"),    .kind = CARRIER_OPTION, .runs = &runs_vim},
    {NAMED("vim"),     .kind = CARRIER_OPTION, .runs = &runs_vim},
    {NAMED("vim.basic"), .kind = CARRIER_OPTION, .runs = &runs_vim},
    {NAMED("vim.gtk3"), .kind = CARRIER_OPTION, .runs = &runs_vim},
    {NAMED("vim.nox"),  .kind = CARRIER_OPTION, .runs = &runs_vim},
    {NAMED("vim.tiny"), .kind = CARRIER_OPTION, .runs = &runs_vim},
    {NAMED("vimdiff"), .kind = CARRIER_OPTION, .runs = &runs_vim},
    {NAMED("watch"),   .kind = CARRIER_JOINS, .flags = "bcdegprtwxC", .values = "nqs", .stops = "hv", .long_stops = INFO, .hides = true,
                .long_flags = " --beep --color --no-color --differences --errexit --chgexit --precise --no-rerun --no-title --no-wrap --exec ",
                .long_values = " --interval --equexit --shotsdir "},
    {NAMED("wget"),    .kind = CARRIER_OPTION, .runs = &runs_wget},
    {NAMED("x86_64"),  .kind = CARRIER_OPAQUE},
    {NAMED("xargs"),   .kind = CARRIER_PREFIX, .flags = "0prtox", .values = "adEILnPs", .long_stops = INFO, .more = true,
                .long_flags = " --null --no-run-if-empty --verbose --interactive --open-tty --exit --max-lines --replace ",
                .long_values = " --arg-file --delimiter --max-args --max-chars --max-procs "},
    {NAMED("xvfb-run"), .kind = CARRIER_OPAQUE},
    {NAMED("yarn"),    .kind = CARRIER_OPTION, .runs = &runs_npm},
    {NAMED("yash"),    .kind = CARRIER_SHELL},
    {NAMED("zip"),     .kind = CARRIER_OPTION, .runs = &runs_zip},
    {NAMED("zsh"),     .kind = CARRIER_SHELL},
};

/* clang-format on */

static const struct carrier opaque = {NAMED("opaque"), .kind = CARRIER_OPAQUE};

/* python3.11 is python, and perl5.36-x86_64-linux-gnu perl. */
static size_t unversioned(const char *name, size_t n)
{
    static const char machine[] = "-linux-gnu";
    const char *dash = strchr(name, '-');

    if (dash && n > sizeof machine && strcmp(name + n - (sizeof machine - 1), machine) == 0)
        n = (size_t)(dash - name);
    while (n && ((name[n - 1] >= '0' && name[n - 1] <= '9') || name[n - 1] == '.'))
        n--;
    return n;
}

static const struct carrier *find_row(const char *name, uint64_t key)
{
    return name_find(carriers, COUNT(carriers), sizeof carriers[0], name, key);
}

static const struct carrier *find_versioned(const char *name)
{
    char plain[16];
    size_t whole = strlen(name), n = unversioned(name, whole);
    const struct carrier *found;

    if (n == whole || n >= sizeof plain)
        return NULL;
    memcpy(plain, name, n);
    plain[n] = '\0';
    found = find_row(plain, name_key(plain));
    return found && found->kind == CARRIER_CODE ? found : NULL;
}

/* By how they begin. */
static bool is_opaque(const char *name)
{
    static const char *const begins[] = {"ld-linux",        "ld-musl",
                                         "systemd-cat",     "systemd-nspawn",
                                         "systemd-inhibit", "systemd-socket-activate"};

    if (name[0] != 'l' && name[0] != 's')
        return false; /* most of them */
    for (size_t i = 0; i < COUNT(begins); i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

static const struct carrier *find_exact(const char *name, uint64_t key)
{
    const struct carrier *found = find_row(name, key);

    if (!found)
        found = find_versioned(name);
    if (found)
        return found;
    return is_opaque(name) ? &opaque : NULL;
}

/* BASH and bash.exe are bash where names have no case. */
static const struct carrier *find_folded(const char *name)
{
    char plain[24];
    size_t n = strcspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"), whole = strlen(name);

    if (whole >= sizeof plain || (n == whole && !(whole > 4 && name[whole - 4] == '.')))
        return NULL;
    for (n = 0; n < whole; n++)
        plain[n] = (char)(name[n] >= 'A' && name[n] <= 'Z' ? name[n] - 'A' + 'a' : name[n]);
    plain[n] = '\0';
    if (n > 4 && strcmp(plain + n - 4, ".exe") == 0)
        plain[n - 4] = '\0';
    return strcmp(plain, name) == 0 ? NULL : find_exact(plain, name_key(plain));
}

const struct carrier *carrier_find(const char *name, uint64_t key)
{
    const struct carrier *found = find_exact(name, key);

    return found ? found : find_folded(name);
}

bool shell_is_carrier(const char *name)
{
    const struct carrier *found = carrier_find(name, name_key(name));

    return found && found->kind != CARRIER_OPTION;
}

bool shell_may_carry(const char *name)
{
    return carrier_find(name, name_key(name)) != NULL;
}

bool is_bash(const char *name)
{
    return strcmp(name, "bash") == 0 || strcmp(name, "rbash") == 0;
}

bool is_posix_shell(const char *name)
{
    return is_bash(name) || strcmp(name, "sh") == 0 || strcmp(name, "dash") == 0 ||
           strcmp(name, "ash") == 0;
}

const char *shell_base(const char *program)
{
    const char *slash = strrchr(program, '/');

    return slash ? slash + 1 : program;
}
