/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The command line.
 *
 * Commands are rows of one table (commands.c). The parser, the help of every level, the
 * completions, the COMMANDS section of the manual page and the tests walk that table; a handler
 * sees an invocation whose options have been checked against its row.
 *
 * To add a command: one row in commands.c, its handler declared in commands.h and written in
 * the file of its verb, a section in the manual, a test in tests/flow. */

#include <stdio.h>

#include "lib/base/err.h"
#include "lib/base/memory.h"
#include "lib/base/str.h"
#include "model/reason.h"

struct json;
struct invocation;
struct remote;

/* What an option's value must look like. The parser refuses everything else, so a handler never
 * sees a malformed number. Zero is a flag, which takes no value. */
enum value_kind {
    VALUE_NONE,
    VALUE_TEXT,
    VALUE_FILE,
    VALUE_DIRECTORY,
    VALUE_CHOICE,   /* one of the words in .values */
    VALUE_COUNT,    /* whole number above 0 */
    VALUE_CPUS,     /* "2", "0.5": read as thousandths */
    VALUE_SIZE,     /* "512M": read as bytes */
    VALUE_DURATION, /* "30s": read as milliseconds */
};

struct cli_option {
    const char *name;     /* "--provider" */
    const char *argument; /* how help names the value, "P"; NULL for a flag */
    enum value_kind kind;
    bool repeatable;
    bool may_be_empty;  /* and then says that */
    const char *values; /* blank-separated: all there are (CHOICE), or worth completing (TEXT) */
    const char *help;
    const char *letter; /* "-r", another spelling of the name; or NULL */
};

struct command {
    const char *path;     /* "sandbox exec" */
    const char *operands; /* what follows the options: "ID", "FILE...", "-- CMD [ARG...]" */
    size_t operand_min;
    size_t operand_max;
    bool takes_command; /* the operands are a command vector and stand behind "--" */
    bool takes_subject; /* and one word may stand in front of it: inv->subject */
    const char *values; /* operands worth completing, blank-separated; NULL: files */
    bool then_files;    /* behind the one of them that comes first stand files */
    const char *summary;
    const char *help;
    const struct cli_option *options; /* ends with a row without a name */
    const char *takes_time; /* what of it may take long, for somebody at a terminal; or NULL */
    int (*run)(struct invocation *inv);

    /* Where it is done. With a daemon: by it (remote), or here all the same, because it works
     * beside one. Through BRIG_SOCKET the state is somebody else's: what has neither is refused and
     * says why (apart). */
    int (*remote)(struct invocation *inv, struct remote *remote);
    bool local; /* it has nothing to do with any state directory */
    const char *apart;
};

struct cli_value {
    const struct cli_option *option;
    const char *text;
    uint64_t number;
};

/* One call of the program. What it points to lives in argv or in mem. */
struct invocation {
    const char *program; /* "brig" or "helm" */
    bool as_helm;        /* exit codes of HELM: 1 denied, 2 usage */
    bool json;           /* --json was given */
    const struct command *command;
    const char *subject;   /* the word in front of "--", or NULL */
    struct words operands; /* byte for byte as given; for takes_command the command vector */
    FILE *out;             /* results */
    FILE *err;             /* everything else */
    struct arena mem;

    struct cli_value *values; /* read through the option_*() functions */
    size_t value_n;
};

/* The whole program: parses, runs the handler, returns the exit status. */
int cli_main(int argc, char **argv);

/* The same for a caller that wants the output elsewhere: out and err of *inv are set. */
void invocation_init(struct invocation *inv, FILE *out, FILE *err);
void invocation_done(struct invocation *inv);
int cli_run(struct invocation *inv, int argc, const char *const *argv);

/* Options of the command's row; asking for one that the row does not have is an assertion. */
bool option_flag(const struct invocation *inv, const char *name);
const char *option_text(const struct invocation *inv, const char *name); /* NULL: not given */
uint64_t option_number(const struct invocation *inv, const char *name);  /* 0: not given */
struct words option_words(struct invocation *inv, const char *name);     /* all of them, in order */

/* Prints one JSON value and a newline on standard output; returns the exit status. */
int cli_json(struct invocation *inv, const struct json *value);

/* For people, where a list has nothing in it: "brig: no images" on standard error. */
void cli_none(const struct invocation *inv, const char *what);

/* Reports a failure and returns the exit status: "brig: text" on standard error, or with --json
 * {"error":{"message","type","code","reason_code","details"}} on standard output. The long form
 * names a reason other than the one the code implies; details may be NULL. */
int cli_error(struct invocation *inv, const struct err *err);
int cli_error_with(struct invocation *inv, const struct err *err, enum reason reason,
                   struct json *details);

/* The exit status of a code for this program name, and the one of a denied run. */
int cli_status(const struct invocation *inv, enum err_code code);
int cli_status_denied(const struct invocation *inv);

/* Where this user's keys and ledger are: $BRIG_HOME, else /var/lib/brig for root, else
 * $XDG_DATA_HOME/brig or ~/.local/share/brig. Made (0700) when missing; refused when it belongs
 * to somebody else or others may write to it. Absolute, without links; lives in inv->mem. */
int cli_state(struct invocation *inv, const char **out, struct err *err) MUST_CHECK;
/* The same without making it: for looking. */
int cli_state_find(struct invocation *inv, const char **out, bool *exists,
                   struct err *err) MUST_CHECK;
