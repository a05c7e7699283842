/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What box tells egress about one sandbox, over a socket pair that keeps message borders and was
 * made for this sandbox alone. Box only speaks, egress only listens:
 *
 *     LISTENERS   once, first; the descriptors of enum handover_fd come along, in that order
 *     CALLER      before a process inside goes on with connect() on an internet stream socket
 *
 * The end of the pair is the end of the sandbox; egress' end closed is the end of its network.
 *
 * A message is a head of 8 bytes (magic, version, kind) and, for CALLER, a body of 24 bytes and
 * the programs: the executable, the script if there is one, the ancestors, nearest first. A
 * program is its hash (32 bytes), its flags and the length of its path (2 bytes each), and that
 * path without a NUL. Nothing stands between them or behind the last one. Both sides are of one
 * build, so numbers are in the machine's own order. */

#include "lib/crypto/crypto.h"

#define HANDOVER_MAGIC 0x65677273U
#define HANDOVER_VERSION 2
#define HANDOVER_PATH_MAX 1024
#define HANDOVER_ANCESTORS_MAX 16
#define HANDOVER_HEAD_BYTES 8
#define HANDOVER_PROGRAM_BYTES (HASH_BYTES + 4)
#define HANDOVER_MESSAGE_MAX                                                                       \
    (HANDOVER_HEAD_BYTES + 24 +                                                                    \
     (HANDOVER_ANCESTORS_MAX + 2) * (HANDOVER_PROGRAM_BYTES + HANDOVER_PATH_MAX))

/* Where the listeners are inside, and how many connections wait at each at most. */
#define EGRESS_PROXY_PORT 3128           /* 127.0.0.1: HTTP, CONNECT, SOCKS5 */
#define EGRESS_CATCH_ALL_PORT 15001      /* 127.0.0.1 and ::1; SO_ORIGINAL_DST says where to */
#define EGRESS_NAMES_ADDRESS 0xc6120001U /* 198.18.0.1, port 53 */
#define EGRESS_MINT_ADDRESS 0x7f000002U  /* 127.0.0.2: where other sandboxes come from */
#define EGRESS_MINT_PORT 15002           /* at that address; nothing is said there */
#define EGRESS_BACKLOG 1024

/* Listening, not blocking, close-on-exec; all of the sandbox's network namespace. */
enum handover_fd {
    HANDOVER_PROXY,
    HANDOVER_CATCH_ALL_4,
    HANDOVER_CATCH_ALL_6,
    HANDOVER_NAMES_UDP,
    HANDOVER_NAMES_TCP,
    HANDOVER_DIAG, /* NETLINK_SOCK_DIAG */
    HANDOVER_MINT, /* what is accepted here is a socket of this namespace, to be used for others */
    HANDOVER_SEED, /* not listening: a stream socket that connects to MINT, again and again */
    HANDOVER_FD_COUNT,
};

enum handover_kind {
    HANDOVER_NOTHING,
    HANDOVER_LISTENERS,
    HANDOVER_CALLER,
};

/* Of one program. Without HANDOVER_HASHED nothing is known of its content: it is unknown. */
#define HANDOVER_HASHED 1U
#define HANDOVER_UNNAMED 2U /* its path leads to it no more: deleted, replaced, or a memfd */
#define HANDOVER_NO_PATH 4U /* the path could not be told, or is longer than fits */
#define HANDOVER_PROGRAM_FLAGS 7U

struct handover_program {
    struct hash hash; /* of the content that runs; zero unless HANDOVER_HASHED */
    uint16_t flags;
    struct str path; /* as the sandbox sees it; empty exactly with HANDOVER_NO_PATH */
};

/* Of a caller. A caller with one of the LOST ones has ancestors that nobody can vouch for (I14). */
#define CALLER_HAS_SCRIPT 1U     /* an interpreter; script is what its arguments claim it runs */
#define CALLER_SCRIPT_UNKNOWN 2U /* an interpreter, and no such file: -c, a pipe, gone */
#define CALLER_ANCESTORS_CUT 4U  /* there are more than fit */
#define CALLER_ANCESTOR_LOST 8U  /* one ended, or became another program while we looked */
#define CALLER_FLAGS 15U

struct handover_caller {
    uint64_t cookie; /* of the socket: SO_COOKIE, and idiag_cookie on the diag socket */
    uint32_t flags;
    uint32_t pid;    /* as the host sees it; for people, it may be another's by now */
    uint32_t family; /* AF_INET or AF_INET6 */
    struct handover_program exe;
    struct handover_program script; /* all zero without CALLER_HAS_SCRIPT */
    struct handover_program ancestors[HANDOVER_ANCESTORS_MAX]; /* without PID 1 of the sandbox */
    uint32_t ancestor_n;
};

struct handover {
    enum handover_kind kind;
    struct handover_caller caller; /* its paths lie in the message */
};

/* How many bytes the message has. What was promised above of a caller must hold. */
size_t handover_listeners(char out[HANDOVER_MESSAGE_MAX]);
size_t handover_caller(const struct handover_caller *caller, char out[HANDOVER_MESSAGE_MAX]);

/* The message and how many descriptors came along; anything but the above is refused, *out stays
 * as it was, and the descriptors are the caller's to close. */
int handover_read(struct str message, size_t fd_n, struct handover *out,
                  struct err *err) MUST_CHECK;
