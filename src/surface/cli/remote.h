/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/cli: the same commands, done by a daemon.
 *
 * What a command prints, and with which status it ends, does not depend on who did the work. The
 * daemon answers with the documents that --json prints; text is made of them here. */

#include "lib/http/http-client.h"
#include "lib/json/json.h"
#include "model/reason.h"
#include "surface/cli/cli.h"

struct request;
struct run;
struct sandbox_call;

struct remote {
    struct http_client *client;
    const char *token; /* $BRIG_TOKEN, or NULL */
    bool chosen;     /* by $BRIG_SOCKET: its state is not ours, nothing can be done here instead */
    bool other_home; /* it does not know which folders are ours: it shows none */
    bool has_done;   /* something already: what is left is its business as well */
    bool not_done;   /* it did nothing and another way is open: the work can be done here */

    /* of the last error */
    int status;
    enum reason reason;
    const struct json *details;
};

/* What a handler answers when the work is to be done here after all. */
#define REMOTE_NOT_DONE (-1)

/* Finds the daemon to use: 1, 0 when there is none, -1 when the one that was chosen is not there.
 *
 * Of our own state directory it is the one that has written its socket into the lock, if we or root
 * started it. Of $BRIG_SOCKET it is whoever listens there, if that is us, root, or the owner of the
 * folder, in which others cannot put a socket. */
int remote_find(struct invocation *inv, struct remote *out, struct err *err) MUST_CHECK;
void remote_done(struct remote *remote);
#define AUTO_REMOTE __attribute__((cleanup(remote_done)))

/* One request, body may be NULL; *doc is the answer. -1: *err and the members of *remote say why.
 */
int remote_ask(struct invocation *inv, struct remote *remote, enum http_method method,
               const char *target, const struct json *body, const struct json **doc,
               struct err *err) MUST_CHECK;
/* Prints the failure and returns the status, or REMOTE_NOT_DONE. */
int remote_failed(struct invocation *inv, const struct remote *remote, const struct err *err);
/* Denied, or it could not be built; the details say which. */
int remote_refused(struct invocation *inv, const struct remote *remote, const struct err *err);
/* The body of an answer as it is, to a descriptor. *lines, unless NULL: how many there were. */
int remote_fetch(struct invocation *inv, struct remote *remote, const char *target, int fd,
                 uint64_t *lines, struct err *err) MUST_CHECK;
/* Why it was turned away, from the answer that is about to come. */
int remote_refusal(struct invocation *inv, struct remote *remote, int status,
                   struct err *err) MUST_CHECK;
/* The same from an answer that is here: {"error":…}. Returns -1. */
int remote_read_error(struct remote *remote, const struct json *answer, struct err *err);
/* Headers of every request: at most REMOTE_HEADERS of them. */
#define REMOTE_HEADERS 3
size_t remote_headers(struct invocation *inv, const struct remote *remote, const char *type,
                      struct http_header out[REMOTE_HEADERS]);

/* "/v1/sandboxes/ID" and what stands behind it; NULL when no path can name it. */
const char *remote_sandbox_path(struct invocation *inv, const char *id, const char *rest);
/* Percent escapes. */
const char *remote_escape(struct invocation *inv, const char *text);
/* A failure that means the sandbox is not there gets the sentence it has here. */
void remote_look_unknown(struct invocation *inv, struct remote *remote, const char *id,
                         struct err *err);

/* ---- bodies ---- */

void remote_put_bytes(struct arena *mem, struct json *object, const char *key, const char *text);
void remote_put_words(struct arena *mem, struct json *object, const char *key, struct words words);
/* "K=V" words, in their order. */
void remote_put_pairs(struct arena *mem, struct json *object, const char *key, struct words words);
/* What a sandbox is made from. */
void remote_put_sandbox(struct invocation *inv, const struct sandbox_call *call,
                        struct json *object);

/* ---- documents ---- */

const char *doc_text(struct arena *mem, const struct json *doc, const char *key); /* "": absent */
uint64_t doc_number(const struct json *doc, const char *key);
bool doc_bool(const struct json *doc, const char *key);
/* Text or base64 under KEY_b64. */
struct str doc_bytes(struct arena *mem, const struct json *doc, const char *key);
/* All members but these. */
struct json *doc_without(struct arena *mem, const struct json *doc, const char *const *keys);
/* What is printed of a run, from its document. */
void doc_run(const struct json *doc, struct run *run);
