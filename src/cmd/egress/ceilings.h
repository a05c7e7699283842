/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/limits.h"

/* Every ceiling of the egress program, on one screen. */

/* Its controllers, and their sandboxes. */
#define CONTROLLERS_MAX 256
#define SANDBOXES_MAX 1024
#define WINDOWS_MAX 64    /* runs counted at once in one sandbox */
#define LINGER_MS 1500    /* without sandbox and controller, before it ends */
#define HANDOVER_BATCH 64 /* messages of one box before others get their turn */

/* Connections. A sandbox has its share whatever the others do. */
#define CONNECTIONS_MAX 8192 /* fewer where descriptors are */
#define SANDBOX_CONNECTIONS_MAX 1024
#define GUESTS_MAX 512     /* connections of other sandboxes into one */
#define ACCEPTS_AT_ONCE 32 /* at one listener before others get their turn */
#define FDS_RESERVED 64    /* left for controllers, handovers and what is dialled */
#define SHED_PAUSE_MS 250  /* without descriptors, before a listener is asked again */

/* What a connection holds: one block each way at most, and the head of its request. */
#define BLOCK_BYTES (32 * KIB)
#define BLOCKS_KEPT 128
#define HEAD_OUT_MAX (48 * KIB) /* a head with what we put into it */
#define BODY_HELD_MAX (1 * MIB) /* of a request that is judged by its body */
#define BODY_MAX (1ULL << 60)
#define PIPE_BYTES (256 * KIB)
#define PIPES_KEPT 64
#define PIPE_AFTER_BYTES (128 * KIB) /* a direction that carried so much gets one */
#define SPLICES_AT_ONCE 16           /* pipes full before others get their turn */

/* Deadlines. */
#define TICK_MS 250
#define FIRST_MS 10000 /* from accept to the end of the first head, hello, greeting */
#define HEAD_MS 10000  /* from the first byte of a head to its end */
#define IDLE_MS 60000  /* between requests of one connection */
#define LOOKUP_MS 5000
#define DIAL_MS 10000    /* all addresses of a host together, */
#define DIAL_ONE_MS 3000 /* and each */
#define SHAKE_MS 10000
#define ANSWER_MS 300000 /* from the request to the head of its answer */
#define BODY_MS 60000    /* between two pieces of a body */
#define TUNNEL_IDLE_MS 600000
#define TUNNEL_HALF_MS 60000   /* idle, with one direction ended */
#define CONNECTION_MS 86400000 /* altogether */
#define LAST_MS 2000           /* to take our last words */

/* Connections to servers that wait for the next request of the same sandbox and rule. */
#define POOL_MAX 256
#define POOL_SANDBOX_MAX 32
#define POOL_MS 15000

/* WebSockets that are looked into: one message, and all that are held at once. */
#define WS_TEXT_MAX (4 * MIB)
#define WS_BINARY_MAX (16 * MIB)
#define WS_FRAGMENTS_MAX 4096
#define WS_HELD_ONE_MAX (WS_BINARY_MAX + 64 * KIB) /* with its head and a secret */
#define WS_HELD_SANDBOX_MAX (64 * MIB)
#define WS_HELD_MAX (256 * MIB)
#define WS_IDLE_MS TUNNEL_IDLE_MS
#define WS_MESSAGE_IDLE_MS 30000 /* between two pieces of a message, */
#define WS_MESSAGE_MS 120000     /* and from the first to the last */
#define WS_CLOSE_MS 5000         /* for the other side's close */

/* Secrets: questions to the keeper of the vault. */
#define SECRET_MS 5000   /* for all of one request */
#define ASKS_MAX 1024    /* at once */
#define ASKS_SENT_MAX 16 /* of them on their way; a socket has room for more */

/* Names. */
#define NAMES_MAX 16384      /* of one sandbox, each with an address of its own */
#define NAMES_FIRST 256      /* 198.18.1.0: what is before is the machinery's */
#define NAMES_LAST 131071    /* 198.19.255.255 */
#define DNS_MESSAGE_MAX 1232 /* of a question we read, over UDP or TCP */
#define DNS_AT_ONCE 64       /* questions before others get their turn */
#define DNS_TTL_S 60
#define LOOKUPS_MAX 256 /* at once */
#define LOOKUPS_SANDBOX_MAX 64
#define LOOKUP_THREADS 8
#define LOOKUP_KEPT 512
#define LOOKUP_KEPT_MS 1000
#define ADDRESSES_MAX 16       /* of one name */
#define OWN_ADDRESSES_MAX 1024 /* of this machine */

/* Who called: records of box that no connection has claimed yet. */
#define CALLERS_MAX 4096
#define CALLERS_MS 30000
#define PROGRAMS_SEEN_MAX 4096 /* paths of one sandbox whose content is remembered */

/* What is counted. */
#define ACCOUNT_RULES_MAX 1024
#define ACCOUNT_REFUSALS_MAX 256
#define SAID_HOST_MAX 253 /* of what the sandbox said, in counts and events */
#define SAID_METHOD_MAX 32
#define SAID_PATH_MAX 256
#define SAID_BINARY_MAX 256

/* Events: in memory for those who ask, and in a journal of two files. */
#define EVENTS_KEPT 1024
#define EVENT_MAX (4 * KIB)
#define EVENTS_ANSWER_MAX (1 * MIB)
#define EVENTS_PER_SECOND 200 /* of one sandbox; what is beyond is counted */
#define JOURNAL_MAX (4 * MIB) /* of each file */
#define COUNTERS_ANSWER_MAX (2 * MIB)

/* Proposals: what sandboxes ask people for, at policy.local. */
#define PROPOSALS_PENDING_MAX 16 /* of one sandbox */
#define PROPOSALS_SANDBOX_MAX 64 /* of one sandbox, answered ones among them */
#define PROPOSALS_MAX 1024
#define PROPOSALS_PER_SECOND 4 /* bodies of one sandbox that are read */
#define PROPOSALS_FILE_MAX (32 * MIB)
#define PROPOSALS_ANSWER_MAX (4 * MIB) /* to a controller */
#define PROPOSAL_SECONDS 86400         /* to its end, unless a person answers */

/* policy.local itself. */
#define LOCAL_CALLS_MAX 32           /* of one sandbox at once */
#define LOCAL_BODY_MS 15000          /* for all of a body */
#define LOCAL_ANSWER_MAX (512 * KIB) /* an answer; rules that are longer are not told */
#define LOCAL_WAIT_S 60              /* for a person, unless said */
#define LOCAL_WAIT_MAX_S 300
#define LOCAL_DENIALS_MAX 100
