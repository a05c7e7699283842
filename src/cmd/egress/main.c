/* SPDX-License-Identifier: Apache-2.0 */

/* egress: carries bytes between the sandboxes of one state directory and the network, and does
 * nothing else.
 *
 * It is born with the socket its controllers come to, the folder of its journal, and the lock that
 * is held while somebody connects. Everything it will ever need is open before the walls close;
 * then it takes orders. It ends by itself when nobody needs it. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "cmd/egress/confine.h"
#include "cmd/egress/conn.h"
#include "lib/crypto/key.h"
#include "lib/tls/tls.h"

#define FDS_WANTED 65536

static struct hub hub;

/* Whoever started us waits for the first process only, and gets a number from it. */
static int detach(struct err *err)
{
    pid_t pid = fork();

    if (pid < 0)
        return err_os(err, "leaving the process that started us");
    if (pid > 0)
        _exit(0);
    if (setsid() < 0)
        return err_os(err, "leaving the session that started us");
    return 0;
}

static void ignore_signals(void)
{
    static const int ignored[] = {SIGPIPE, SIGHUP, SIGINT, SIGTERM};

    for (size_t i = 0; i < COUNT(ignored); i++)
        (void)signal(ignored[i], SIG_IGN); /* none of them can be refused */
}

/* As many descriptors as we may have, and connections for which they are enough: each has one to
 * the client, one to the server, and may have two pipes. */
static int count_fds(struct err *err)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return err_os(err, "asking how many descriptors we may have");
    files.rlim_cur = files.rlim_max < FDS_WANTED ? files.rlim_max : FDS_WANTED;
    files.rlim_max = files.rlim_cur;
    if (setrlimit(RLIMIT_NOFILE, &files) < 0)
        return err_os(err, "asking for descriptors");
    hub.conn_max = files.rlim_cur > 4 * FDS_RESERVED ? (files.rlim_cur - FDS_RESERVED) / 2 : 64;
    if (hub.conn_max > CONNECTIONS_MAX)
        hub.conn_max = CONNECTIONS_MAX;
    return 0;
}

static void on_shed_over(struct timer *timer)
{
    (void)timer;
    entrances_resume(&hub);
}

/* Without roots nothing secure can be looked into; everything else goes on. */
static int open_tls(struct err *err)
{
    AUTO_BUF struct buf roots = BUF(TLS_BUNDLE_MAX);

    if (tls_authority_open(EGRESS_FOLDER_FD, EGRESS_FOLDER, &hub.authority, err) < 0)
        return -1;
    if (tls_roots_read(&roots, err) < 0 || tls_trust_new(buf_str(&roots), &hub.trust, err) < 0)
        (void)dprintf(STDERR_FILENO, "brig egress: %s\n", err->text);
    return 0;
}

/* Secrets are in locked memory, as far as we are allowed; beyond that they are not in dumps. */
static void prepare_secrets(void)
{
    struct rlimit locked;

    crypto_ready(); /* looks for randomness, which the walls would hide */
    secrets_init(&hub.secrets, openat(EGRESS_FOLDER_FD, "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0) {
        locked.rlim_cur = locked.rlim_max;
        (void)setrlimit(RLIMIT_MEMLOCK, &locked);
    }
}

static int open_everything(struct err *err)
{
    int resolver_fd;

    prepare_secrets();
    hub.lock_fd = EGRESS_LOCK_FD;
    hub.shed.on = on_shed_over;
    if (fcntl(EGRESS_LISTEN_FD, F_SETFL, O_NONBLOCK) < 0)
        return err_os(err, "using the socket we were born with");
    hub.reserve_fd = dup(EGRESS_LOCK_FD);
    if (resolver_start(&resolver_fd, err) < 0 || count_fds(err) < 0 ||
        loop_init(&hub.loop, err) < 0 || own_open(&hub.own, err) < 0 ||
        own_look(&hub.own, err) < 0 || events_open(&hub.events, EGRESS_FOLDER_FD, err) < 0 ||
        proposals_open(&hub.proposals, EGRESS_FOLDER_FD, err) < 0 || open_tls(err) < 0)
        return -1;
    (void)close(EGRESS_FOLDER_FD);
    return resolver_init(&hub.resolver, &hub.loop, resolver_fd, err);
}

int main(void)
{
    struct err err;

    ignore_signals();
    if (detach(&err) < 0 || open_everything(&err) < 0 || confine(&err) < 0 ||
        control_open(&hub, &err) < 0 || loop_run(&hub.loop, &err) < 0) {
        (void)dprintf(STDERR_FILENO, "brig egress: %s\n", err.text);
        _exit(err_exit(err.code));
    }
    _exit(0); /* without what libraries do at the end: the kernel closes everything */
}
