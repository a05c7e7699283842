/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the sandbox commands. */

#include "flow/govern.h"
#include "lib/base/text.h"
#include "surface/cli/commands.h"

#include <termios.h>

struct policy;

/* A governor for the policy and profile the options name, and the request they make. */
struct sandbox_call {
    struct policy *policy;
    const char *policy_text;  /* of --policy, else the standing one; NULL: built in */
    struct words overlays;    /* texts of --overlay */
    bool by_no_rules;         /* the standing policy may be what has to be mended */
    const char *profile_text; /* of --profile, or NULL */
    const char *sandbox;      /* id of the kept one that inv->subject names, or NULL */
    const char *made;         /* config of one whose policy and profile to open, or NULL */
    struct govern *govern;
    struct request request;
};

/* Unless JSON is printed: the line that is wrong, with a caret (policy.c). */
void cli_show_place(struct invocation *inv, struct mark where, struct str text);
/* policy_open() that shows the place of what is wrong. */
int cli_policy_open(struct invocation *inv, const char *path, struct policy **out,
                    struct err *err) MUST_CHECK;

/* For somebody at a terminal, which may be raw: whether there is one who wants to hear it, and that
 * a person is waited for. */
bool sandbox_says_waiting(const struct invocation *inv);
void sandbox_say_waiting(const struct invocation *inv, const char *approval_id);

/* Prints the failure itself; -1 leaves the exit status in *status. */
int sandbox_call_open(struct invocation *inv, struct sandbox_call *call, int *status) MUST_CHECK;
/* The same under another profile than the options name; NULL: none. */
int sandbox_call_open_with(struct invocation *inv, const char *profile_path,
                           struct sandbox_call *call, int *status) MUST_CHECK;
/* Policy, profile and request only, for one who asks somebody else: there is no governor then. */
int sandbox_call_read(struct invocation *inv, struct sandbox_call *call, int *status) MUST_CHECK;
void sandbox_call_done(struct sandbox_call *call);
#define AUTO_SANDBOX_CALL __attribute__((cleanup(sandbox_call_done)))

/* Those of --mount, from the folder we are in. */
struct words sandbox_mounts(struct invocation *inv);

/* The id of the kept sandbox that has this id or name; it lives in inv->mem. */
int sandbox_find(struct invocation *inv, struct govern *govern, const char *wanted,
                 const char **out, struct err *err) MUST_CHECK;
int sandbox_find_in(struct invocation *inv, struct execute *execute, const char *wanted,
                    const char **out, struct err *err) MUST_CHECK;

/* The sentence for one that is not there. */
int sandbox_unknown(const struct invocation *inv, const char *wanted, struct err *err);

/* Whether it has all the labels of the options. */
bool sandbox_has_labels(const struct words *wanted, const struct words *labels);

/* Flags that do not go together. */
int sandbox_check_exec(const struct invocation *inv, struct err *err) MUST_CHECK;
/* What is left to say when it has ended, but for JSON. */
void sandbox_closing_words(const struct invocation *inv, const struct run *run);

/* What a kept sandbox was made from and how it is; and all of that, as a line or as JSON. */
int sandbox_look(struct invocation *inv, struct govern *govern, const char *id,
                 struct config *config, struct kept_state *state, struct err *err) MUST_CHECK;
int sandbox_print(struct invocation *inv, struct govern *govern, const char *id,
                  struct err *err) MUST_CHECK;
int sandbox_add_json(struct invocation *inv, struct govern *govern, const char *id,
                     struct json *list, struct err *err) MUST_CHECK;
/* Name, labels and lifetimes of one that is to be made, from the options. */
int sandbox_fill_create(struct invocation *inv, struct request *request,
                        struct err *err) MUST_CHECK;
/* The same with scope, policy and profile: "sandbox create". */
int sandbox_fill_new(struct invocation *inv, struct sandbox_call *call, struct err *err) MUST_CHECK;
int sandbox_check_name(const char *name, struct err *err) MUST_CHECK; /* NULL: there is none */

/* Keys go to the command's terminal as they are pressed; ours is as it was when we leave. */
struct raw_terminal {
    struct termios before;
    bool changed;
};
void terminal_raw(struct raw_terminal *terminal);
void terminal_restore(const struct raw_terminal *terminal);

/* When a pool has become short: a process of its own fills it up. */
void pool_refill_behind(const struct sandbox_call *call);

/* Text that a sandbox chose, made safe to show on one line: its first 4096 bytes, and how many
 * there are besides. */
void print_escaped(FILE *to, struct str text);
/* The same, all of it, however long; the ends of its lines and its tabs stay what they are. */
void print_prose(FILE *to, struct str text);

/* "brig: pause ID; receipt R" on standard error, and why it failed; NULL: it did not. */
void sandbox_change_line(const struct invocation *inv, const char *action, const char *id,
                         const char *failure, const char *receipt_id);

/* Says why nothing stands, as text or JSON; returns the exit status. */
int sandbox_refused(struct invocation *inv, const struct run *run);

/* "77 denied" or whatever the outcome of the run says. */
int sandbox_status(const struct invocation *inv, const struct run *run);

/* Files that tools of this machine run by themselves and that changed; mostly nothing. */
void sandbox_warn_protected(const struct invocation *inv, const struct run *run);

/* What of a workspace was not copied in; mostly nothing. */
void sandbox_warn_mirror(const struct invocation *inv, const struct run *run);

/* workspace-patch.c: how the second text comes from the first, as diff -u says it. NULL: absent. */
int patch_write(struct buf *out, const char *path, const struct buf *from, const struct buf *to,
                struct err *err) MUST_CHECK;

/* One line on standard error: verdict, receipt, duration; for a denial also why. */
void sandbox_closing_line(const struct invocation *inv, const struct run *run);
