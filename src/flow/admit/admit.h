/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/buf.h"
#include "model/run.h"

/* How long a kept sandbox lives when nobody says. */
#define SANDBOX_TTL_MS (3600ULL * 1000)
#define SANDBOX_LIFETIME_MS (24ULL * 3600 * 1000)
#define LABEL_BYTES_MAX 256 /* of a name, or a label */
#define TOOL_COMMANDS_MAX 3 /* in the arguments of a tool */

struct json;

/* A request as some surface received it; everything borrowed. */
struct request {
    enum action_kind kind;
    const char *sandbox; /* EXEC and changes: which one */
    const char *made_by; /* who made the token it came with; NULL, "": none */
    const char *base;    /* snapshot it stands on, or that it is about; NULL: none */
    const char *name;    /* CREATE: for people, or NULL */
    struct words labels; /* CREATE: "K=V" */
    const char *scope;   /* CREATE: session, agent or shared; NULL: session */
    struct lifetime lifetime;
    uint64_t extend_ms;
    bool keep_background;
    uint64_t wall_ms;   /* EXEC: its own time; 0: the sandbox's */
    uint64_t within_ms; /* EXEC: less than that, of whoever runs what was confirmed before; no part
                         * of what is asked for; 0: not less */
    bool detach;
    struct run_watch watch;    /* of whoever asks */
    uint64_t approval_wait_ms; /* how long to wait for a person, if one must confirm it */
    bool no_pool;              /* RUN, CREATE: build it, even if a prepared one is there */
    const char *verb;          /* FILES: what to do with path, and with other if there are two */
    const char *path;
    const char *other;
    const char *at;           /* where the file called path really lies; NULL: there */
    uint16_t port;            /* PORT: inside */
    const char *policy_text;  /* CREATE: the policy it lives under; NULL: the built-in one */
    const char *profile_text; /* CREATE: the profile it was planned with, or NULL */
    const char *principal;
    const char *tenant;
    const char *provider;
    const char *image;
    struct words argv;
    struct words env;      /* "K=V", or "K" to take the value from the caller's own environment */
    struct words mounts;   /* "SRC:DST", "SRC:DST:ro", "SRC:DST:rw" */
    const char *workspace; /* "DIR", "DIR:ro", "DIR:rw", "DIR:none", "DIR:mirror", or NULL */
    bool allow_protected;
    struct words held; /* protected places of one that stands; v NULL: they are to be found */
    const char *user;  /* "USER[:GROUP]", names or numbers; NULL: the policy's or the image's */
    const char *workdir;
    enum network_ask network;
    bool sockets_none;
    bool advisory;   /* RUN: what runs may only advise (docs/advisory.md) */
    bool is_refusal; /* it lets nothing happen, and is possible where everything is frozen */
    bool stdin_stream;
    bool tty;
    uint16_t tty_rows, tty_columns; /* at first; 0: as those of our own terminal, if we have one */
    const char *tool; /* TOOL: which, with what, and the commands its arguments hold, if they do */
    const struct json *arguments;
    const char *effect; /* TOOL: what its caller says it has, or NULL */
    struct words inner[TOOL_COMMANDS_MAX];
    size_t inner_n;
    uint64_t limits[LIMIT_COUNT]; /* 0: not asked for */
};

/* Fills run->action with copies of all of it, checked, and its request_hash
 * (docs/formats/posture.md says over what). ERR_INVALID and ERR_LIMIT: it is not a request. */
int admit_run(const struct request *request, struct run *run, struct err *err) MUST_CHECK;

/* "K" becomes "K=V" with the value our own environment has: for one who asks somebody else. */
int admit_forward(struct arena *mem, struct words env, struct words *out,
                  struct err *err) MUST_CHECK;

/* The order of a change to a kept sandbox: there is no command, so nothing else to check. */
int admit_change(const struct request *request, struct run *run, struct err *err) MUST_CHECK;

/* The same for a file or a port of one; paths are bounded here and resolved inside only. */
int admit_files(const struct request *request, struct run *run, struct err *err) MUST_CHECK;

/* An image that is to come, go or be written: request->image names it, or is "" when only the
 * archive in request->path does; request->other is the file that is written. */
int admit_image(const struct request *request, struct run *run, struct err *err) MUST_CHECK;

/* A call of somebody else's tool: request->tool with request->arguments, an object. Rules see it as
 * the words "tool:NAME" and the arguments as canonical JSON. */
int admit_tool(const struct request *request, struct run *run, struct err *err) MUST_CHECK;

/* Something that is no request we could judge, as the bytes it came in: only who asked is known. */
int admit_malformed(const struct request *request, struct str bytes, struct run *run,
                    struct err *err) MUST_CHECK;

/* What a kept sandbox was made from, as the text that is kept with it. Of the run its id, its
 * policy's hash and its planned posture are taken. */
int config_write(const struct request *request, const struct run *run, struct buf *out,
                 struct err *err) MUST_CHECK;

/* The same text with another snapshot below the sandbox. */
int config_rebase(struct str text, const char *base, struct buf *out, struct err *err) MUST_CHECK;

/* The same text with another policy, as the run is planned under it. */
int config_repolicy(struct str text, const char *policy, const struct run *run, struct buf *out,
                    struct err *err) MUST_CHECK;

struct config {
    struct request request; /* as it was, without a command */
    const char *base;       /* the snapshot that lies below it now, or NULL */
    const char *id;
    const char *created_at;
    const char *config_hash;
    const char *policy_hash;
    const char *image_digest;
    const char *inside_user;   /* "UID:GID"; NULL: made by a Brig that did not write it down */
    const char *preimage_hash; /* of the posture it was planned with */
    const char *network_hash;  /* of its network rules; NULL: it has none */
};
int config_read(struct arena *mem, struct str text, struct config *out, struct err *err) MUST_CHECK;
