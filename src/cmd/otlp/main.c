/* SPDX-License-Identifier: Apache-2.0 */

/* otlp: hands a daemon's telemetry to a collector.
 *
 *     otlp VERSION INSTANCE URL [plain]
 *
 * It is born with a socket to its daemon and a page for its numbers (lib/otlp/otlp.h). What a
 * collector answers is a stranger's, so it is read here, where there is nothing to take but what
 * that collector is told anyway: no key, no file of anybody's, no right to run a program.
 *
 * When the daemon is gone, the socket is; what waits is sent within a bound, and it ends. Signals
 * of a terminal or a service manager are for the daemon. */

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cmd/otlp/export.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"
#include "lib/linux/landlock.h"
#include "lib/linux/process.h"

#include <curl/curl.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define NOBODY 65534
#define CA_MAX (4 * MIB)

/* ---- walls ---- */

static int drop_rights(struct err *err)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    const struct rlimit no_core = {0, 0};

    if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
                           setresuid(NOBODY, NOBODY, NOBODY) < 0))
        return err_os(err, "becoming nobody");
    if (syscall(SYS_capset, &header, none) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
        setrlimit(RLIMIT_CORE, &no_core) < 0)
        return err_os(err, "giving up rights");
    return no_new_privs(err);
}

static int set_limits(struct err *err)
{
    const struct rlimit files = {64, 64}, memory = {1 * GIB, 1 * GIB}; /* of addresses */

    if (setrlimit(RLIMIT_NOFILE, &files) < 0 || (!SANITIZED && setrlimit(RLIMIT_AS, &memory) < 0))
        return err_os(err, "limiting ourselves");
    return 0;
}

/* What names and certificates need, and the modules that look names up; nothing may be run. */
static int wall_files(struct err *err)
{
    static const char *const readable[] = {
        "/etc/ssl",         "/etc/ca-certificates",
        "/etc/pki",         "/usr/share/ca-certificates",
        "/etc/resolv.conf", "/etc/hosts",
        "/etc/host.conf",   "/etc/nsswitch.conf",
        "/etc/gai.conf",    "/etc/services",
        "/etc/ld.so.cache", "/usr/local/share/ca-certificates",
        "/usr/lib",         "/lib",
        "/lib64",           "/run/systemd/resolve",
    };
    unsigned abi = landlock_abi();
    AUTO_FD int ruleset = -1;

    if (abi < LANDLOCK_ABI_LEAST)
        return err_set(err, ERR_UNAVAILABLE,
                       "this kernel has no Landlock to confine the sending of telemetry with; "
                       "boot with lsm=landlock,… or serve without --otlp");
    if (landlock_open(abi, &ruleset, err) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(readable); i++) {
        AUTO_FD int fd = open(readable[i], O_PATH | O_CLOEXEC);

        if (fd >= 0 && landlock_allow(ruleset, abi, fd, LANDLOCK_READ, err) < 0)
            return -1;
    }
    return landlock_enforce(ruleset, err);
}

/* ---- what it is born with ---- */

static int map_numbers(struct otlp_numbers **out, struct err *err)
{
    void *page = mmap(NULL, sizeof **out, PROT_READ | PROT_WRITE, MAP_SHARED, OTLP_PAGE_FD, 0);

    if (page == MAP_FAILED)
        return err_os(err, "mapping the page for numbers");
    (void)close(OTLP_PAGE_FD);
    *out = page;
    return 0;
}

/* Read before the walls stand: it is wherever the operator has put it. */
static int read_ca(struct buf *out, struct err *err)
{
    const char *path = getenv("OTEL_EXPORTER_OTLP_CERTIFICATE");

    if (!path || !*path)
        return 0;
    return file_read(AT_FDCWD, path, out, err);
}

static const char *or_nothing(const char *text)
{
    return text ? text : "";
}

static int work(char **argv, bool plain_anywhere, struct err *err)
{
    AUTO_BUF struct buf ca = BUF(CA_MAX);
    char host[256] = "";
    struct export_config config = {
        .socket_fd = OTLP_SOCKET_FD,
        .resource = {argv[1],        argv[2],                                     host},
        .post = {.url = argv[3],
                     .headers = or_nothing(getenv("OTEL_EXPORTER_OTLP_HEADERS")),
                     .plain_anywhere = plain_anywhere                                 },
    };

    (void)gethostname(host, sizeof host - 1);
    if (!str_is_utf8(str_of(host)))
        host[0] = '\0';
    if (map_numbers(&config.numbers, err) < 0 || read_ca(&ca, err) < 0)
        return -1;
    config.post.ca = buf_str(&ca);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(err, ERR_UNAVAILABLE, "libcurl cannot be used");
    if (drop_rights(err) < 0 || set_limits(err) < 0 || wall_files(err) < 0)
        return -1;
    return export_run(&config, err);
}

int main(int argc, char **argv)
{
    struct err err;

    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    if (argc < 4 || argc > 5)
        return 64;
    /* Without what libraries do at the end: a name may still be looked up in a thread, and a leak
     * checker cannot look into a process that nobody may look into. */
    if (work(argv, argc == 5 && strcmp(argv[4], "plain") == 0, &err) == 0)
        _exit(0);
    (void)dprintf(STDERR_FILENO, "brig otlp: %s\n", err.text);
    _exit(err_exit(err.code));
}
