/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Every ceiling on what the outside can make larger, on one screen. */

#define KIB 1024UL
#define MIB (1024UL * KIB)
#define GIB (1024UL * MIB)

/* Texts people write. */
#define POLICY_TEXT_MAX (1 * MIB) /* OpenShell's own bound is a quarter of it */
#define POLICY_PATHS_MAX 256      /* as OpenShell's */
#define POLICY_OVERLAYS_MAX 8
#define POLICY_LAYERS_MAX (POLICY_OVERLAYS_MAX + 1) /* of one policy, without the ceiling */
#define POLICY_SAMPLES_MAX 20000                    /* commands that two policies are compared by */
#define POLICY_RULES_MAX 16384
#define POLICY_AGENT_MAX 128 /* name of an agent */
#define POLICY_PATTERN_WORDS_MAX 64
#define POLICY_ALTERNATIVES_MAX 64
#define POLICY_ENTRIES_MAX 1024 /* network policies, endpoints, rules, matchers: each list */
#define GLOB_TEXT_MAX 4096

/* Expressions in rules: their text, their tree, and what one evaluation may take. */
#define EXPR_TEXT_MAX (4 * KIB)
#define EXPR_NODES_MAX 1024
#define EXPR_DEPTH_MAX 128
#define EXPR_NESTING_MAX 64
#define EXPR_LOOPS_MAX 8
#define EXPR_NAMES_MAX 64
#define EXPR_STEPS_MAX 100000U
#define EXPR_SPACE_MAX (64 * KIB)
#define DECIDE_STEPS_MAX 1000000U /* of all expressions of one decision */
#define DECIDE_PATHS_MAX 4096     /* that an expression sees */
#define DECIDE_PATHS_BYTES_MAX (256 * KIB)

#define NET_RULES_TEXT_MAX (4 * MIB) /* a policy's network sections, as canonical JSON */
#define NET_RULES_ENDPOINTS_MAX 65536
#define NET_RULES_MEMORY_MAX (512 * MIB)
#define NET_BODY_MAX (4 * MIB) /* of a request, to be looked into */
#define JUDGE_MEMORY_MAX (256 * MIB)
#define PROFILE_TEXT_MAX (64 * KIB)
#define YAML_TEXT_MAX (1 * MIB)
#define YAML_DEPTH_MAX 32
#define YAML_NODES_MAX 131072

/* JSON that arrives: receipts, exported ledgers line by line, profiles. */
#define JSON_TEXT_MAX (4 * MIB)
#define JSON_DEPTH_MAX 64
#define JSON_NODES_MAX 262144

/* Advisory mode: one value that is classified, and what is told of it. */
#define ADVISORY_VALUE_MAX (1 * MIB)
#define ADVISORY_COMMAND_MAX 128000 /* bytes of a command; one past it is not read */
#define ADVISORY_WORD_MAX 4096      /* of them without a separator */
#define ADVISORY_SEGMENTS_MAX 25000
#define ADVISORY_FINDINGS_MAX 256
#define ADVISORY_SPANS_MAX 1024 /* pieces of code in one output; past them none is shown */
#define ADVISORY_EXCERPT_MAX 256
#define ADVISORY_CLAIMS_MAX 4096
#define ADVISORY_CLAIM_MAX (16 * KIB)
#define ADVISORY_DEPTH_MAX 16
#define ADVISORY_EDITS_MAX (32 * MIB) /* what is replaced in one text, */
#define ADVISORY_SAFE_MAX (4 * MIB)   /* and what comes of it */
#define ADVISORY_FILE_MAX (64 * MIB)  /* of /sandbox/output, to be hashed */
#define ADVISORY_MEMORY_MAX (256 * MIB)

/* One receipt, and what a verifier accepts as one line of an export. */
#define RECEIPT_TEXT_MAX (64 * KIB)
#define RECEIPT_BATCH_MAX 1024 /* receipts in one transaction */
/* What is known of advisory receipts, 48 bytes of each; past it the gate looks at all there is. */
#define LEDGER_CHECKED_MAX (16 * MIB)

/* Who may knock, and how often; a token can have its own numbers. */
#define TOKENS_MAX 10000
#define REQUESTS_PER_SECOND 20000
#define REQUESTS_AT_ONCE 12000
#define METER_BURST_US 2000000U /* of its share, at once after a rest */

/* The daemon. */
#define API_BODY_MAX (4 * MIB)          /* of a request in JSON */
#define API_STREAM_MAX (16 * GIB)       /* of one that is handed on as it comes */
#define API_CONNECTIONS_MAX 12000       /* less where descriptors are fewer */
#define API_RUNS_MAX 1024               /* handlers that run something, at once */
#define API_WAITING_MAX 12000           /* requests that wait for one of them */
#define API_LOOKS_MAX 16                /* handlers that only look */
#define API_CLERKS_MAX 16               /* tenants whose questions are answered at once */
#define API_STACK_BYTES (1 * MIB)       /* of each of their threads; only what is touched counts */
#define API_CALL_MEMORY_MAX (256 * MIB) /* one request: body, run, answer */
#define API_ANSWER_MAX (64 * MIB)
#define API_END_MS 10000  /* for handlers to end, once they are told to by a stop */
#define API_HURRY_MS 1000 /* the same when it is told a second time */

/* What egress says of a sandbox, as it is read. */
#define EGRESS_DOCUMENT_MEMORY (64 * MIB)

/* Telemetry on its way out: of each of the three signals. */
#define OTLP_ITEM_MAX (160 * KIB) /* one message, which a socket takes whole */
#define OTLP_ITEMS_MAX 2048
#define OTLP_QUEUE_MAX (4 * MIB)
#define OTLP_BATCH_MAX 512
#define OTLP_BATCH_BYTES (1 * MIB)
#define OTLP_ANSWER_MAX (64 * KIB) /* of a collector */
#define OTLP_URL_MAX 2000
#define OTLP_HEADERS_MAX 8000
#define OTLP_RUNS_MAX 8 /* of one request; more are not told apart */

/* A request. Linux allows one argument 128 KiB and all of them 2 MiB by default. */
#define ARGV_WORDS_MAX 65536
#define ARGV_BYTES_MAX (2 * MIB)
#define ENV_WORDS_MAX 1024
#define ENV_BYTES_MAX (1 * MIB)
#define USER_BYTES_MAX 128
#define PATH_BYTES_MAX 4096
#define MOUNTS_MAX 64

/* A text for a shell, and what is inside the texts inside it. */
#define SHELL_TEXT_MAX (1 * MIB)
#define SHELL_COMMANDS_MAX 65536
#define SHELL_NEST_MAX 64
#define SHELL_CARRIERS_MAX 8 /* env env env ... */
#define SHELL_MEMORY_MAX (256 * MIB)

/* A folder somebody else filled, looked through for files that host tools run by themselves. */
#define WORKSPACE_ENTRIES_MAX 1000000
#define WORKSPACE_DEPTH_MAX 64
#define PROTECTED_SEEN_MAX 1024              /* places */
#define PROTECTED_MOUNTS_MAX 256             /* places that are mounted over, in one sandbox */
#define PROTECTED_MOUNT_BYTES_MAX (32 * KIB) /* their paths: the mount table shows each twice */
#define PROTECTED_FILES_MAX 16384
#define PROTECTED_FILE_MAX (1 * MIB)   /* larger ones are told apart by size and times */
#define PROTECTED_BYTES_MAX (16 * MIB) /* paths of them all */
#define PROTECTED_MEMORY_MAX (256 * MIB)
#define PROTECTED_LISTED_MAX 64              /* changes named in one receipt, */
#define PROTECTED_LISTED_BYTES_MAX (8 * KIB) /* and their paths */
#define GIT_CONFIG_MAX (256 * KIB)

/* A workspace that is copied in and synced back. */
#define MIRROR_ENTRIES_MAX 300000
#define MIRROR_PATHS_MAX (64 * MIB)
#define MIRROR_BYTES_MAX (64 * GIB) /* as long as they read, holes included */
#define MIRROR_TEXT_MAX (256 * MIB) /* the base */
#define MIRROR_MEMORY_MAX (512 * MIB)
#define MIRROR_LISTED_MAX 10000         /* changes shown */
#define MIRROR_PATCH_MAX (16 * MIB)     /* all patches together, */
#define MIRROR_PATCH_FILE_MAX (1 * MIB) /* and each side of one */

/* Images. Layers are bounded before and after they are unpacked: by size, by how much larger
 * they become (past a free share, which small and empty layers need), and by entries. */
#define IMAGE_DOCUMENT_MAX (4 * MIB) /* manifest, index, configuration: as registries accept */
#define IMAGE_LAYERS_MAX 128
#define IMAGE_FETCHES_MAX 3 /* layers on their way at once */
#define IMAGE_INDEX_MAX 256
#define IMAGE_BLOB_MAX (16 * GIB)
#define IMAGE_UNPACKED_MAX (64 * GIB)
#define IMAGE_RATIO_MAX 200
#define IMAGE_RATIO_FREE (64 * MIB)
#define IMAGE_FILE_MAX (16 * GIB)
#define IMAGE_ENTRIES_MAX 1000000
#define IMAGE_DEPTH_MAX 256
#define IMAGE_XATTR_MAX (64 * KIB)   /* of one entry */
#define IMAGE_RECORD_MAX (128 * KIB) /* one message between our programs carries it */
#define IMAGE_EVENT_MAX (160 * KIB)
#define IMAGE_ACCOUNTS_MAX (1 * MIB) /* its /etc/passwd or /etc/group */
#define IMAGE_NAMES_MAX (1 * MIB)
#define IMAGE_STORE_MAX 4096 /* images, and names */
#define IMAGE_REQUEST_MAX (4 * MIB)
#define IMAGE_SOURCE_FILES_MAX 4096 /* in an archive that holds an image */
#define IMAGE_HEADER_MAX (256 * KIB)
#define IMAGE_REDIRECTS_MAX 5
#define IMAGE_MEMORY_MAX (256 * MIB)
#define IMAGE_TREES_MAX 32 /* folders packed into one layer */
#define IMAGE_NOTES_MAX 64
#define IMAGE_NOTES_BYTES_MAX (32 * KIB)
#define IMAGE_LEFT_OUT_MAX 1024 /* lines of a report, within one message */
#define IMAGE_LEFT_OUT_BYTES_MAX (96 * KIB)

/* The credential filter: what is read whole to be parsed and rewritten, and what is only looked
 * through for the shapes of secrets. Beyond, a file is left out. */
#define SCRUB_TEXT_MAX (8 * MIB)
#define SCRUB_SCAN_MAX (4 * GIB)

/* Snapshots: what a sandbox wrote, copied by us. The bytes are bounded by its disk limit. */
#define SNAPSHOT_ENTRIES_MAX 4000000
#define SNAPSHOT_DEPTH_MAX 256
#define SNAPSHOT_MEMORY_MAX (512 * MIB)
#define SNAPSHOT_RECORD_MAX (512 * KIB)
#define SNAPSHOT_STORE_MAX 4096
#define SNAPSHOT_STACK_MAX 64 /* sets over each other; flattened in the background long before */

/* Files of the kernel we read whole: mountinfo, status, limits. */
#define PROC_TEXT_MAX (1 * MIB)

/* The machine's cgroups, walked through when leftovers are looked for. */
#define CGROUP_WALK_MAX 20000
#define CGROUP_WALK_DEPTH_MAX 32
#define CGROUP_NAMES_MAX (256 * KIB)

/* Working memory: arenas stop the process at these, so they stand well above the sum of the
 * inputs that feed them. */
#define RUN_MEMORY_MAX (64 * MIB)
#define POOL_SIZE_MAX 1024U /* prepared sandboxes of one kind */
#define POLICY_MEMORY_MAX (256 * MIB)
#define RECEIPT_MEMORY_MAX (64 * MIB)
