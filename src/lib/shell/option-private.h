/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/shell/carrier-private.h"

/* Ordinary programs that run what one of their options says: tar --to-command=TEXT,
 * git -c alias.x=!TEXT, sed with the command e.
 *
 * Only such an option makes the command a carrier; without one it is what it was. What is not
 * certain about options errs towards finding one: an abbreviation counts, and `--` ends them only
 * where it cannot be the value of the word before it. Options that appear once something is
 * expanded are not looked for, but for the first word: such words are not literal, and no rule
 * allows them. */

enum runs_as {
    RUNS_UNSEEN,  /* it cannot be read off the words */
    RUNS_TEXT,    /* a text for a shell */
    RUNS_START,   /* the beginning of one, or of words: the program adds some */
    RUNS_PROGRAM, /* the name of a program, which gets words */
    RUNS_REMOTE,  /* the beginning of a text that runs on another machine */
    RUNS_BANG,    /* "!TEXT" or a path; or what is to be put behind `before`, if there is that */
    RUNS_FILE,    /* a file: unseen if it is a stream */
    RUNS_EDITOR,  /* a command of vim */
    RUNS_META,    /* a command of psql or mysql, or of the database */
    RUNS_KEYS,    /* KEY=VALUE: the option's keys say which of them run */
    RUNS_REST,    /* with all words up to ";" a command, which gets names that nobody has seen */
};

struct run_key {
    const char *key; /* in lower case; a star stands for anything; NULL: behind the last one */
    enum runs_as as;
    const char *except; /* values that run nothing, in a list like " true false " */
    const char *before;
    const char *has; /* only values with this in them */
};

struct run_option {
    const char *letters; /* how it is written short: "I", "TT"; or NULL */
    const char *name;    /* long, with its dashes; or NULL. Without both: behind the last one */
    enum runs_as as;
    size_t at_least;  /* bytes of an abbreviation; 0: three */
    bool glued;       /* its value, if it has one, is never the next word */
    const char *only; /* only a value that begins so runs, which is what is behind that */
    const char *except;
    const struct run_key *keys;
    const char *ends; /* bytes behind a key; NULL: "=" */
};

struct run_options {
    const char *values; /* letters of other options that surely have a value */
    const char *glued;  /* that have one at most in the same word */
    const struct run_option *v;
    void (*look)(const struct carried *c); /* NULL: all words are looked at */
    bool is_led; /* its first word says what it does, so that is no file */
};

extern const struct run_options runs_apt, runs_cargo, runs_cmake, runs_compose, runs_cpio,
    runs_crontab, runs_docker, runs_dpkg, runs_fd, runs_git, runs_go, runs_install, runs_ip,
    runs_kubectl, runs_less, runs_make, runs_man, runs_mysql, runs_npm, runs_npx, runs_pnpm,
    runs_prove, runs_psql, runs_rg, runs_rsync, runs_run, runs_scp, runs_sed, runs_sftp, runs_sort,
    runs_split, runs_sqlite, runs_ssh, runs_tar, runs_tcpdump, runs_vim, runs_wget, runs_zip;

/* From the word there on. */
void look_options(const struct carried *c, const struct run_options *options, size_t from);
/* What stands in one word behind `from`. */
struct shell_word tail_of(const struct shell_word *word, const char *from);
/* Whether it is certainly one of the words of a list like " true false ". */
bool is_one_of_list(const char *list, struct shell_word value);
void run_value(const struct carried *c, enum runs_as as, struct shell_word value,
               const char *before);
void run_words(const struct carried *c, size_t at, unsigned flags); /* from the word there on */
void run_keys(const struct carried *c, const struct run_option *option, struct shell_word value,
              bool unseen);
/* The option whose letters begin there, or NULL. */
const struct run_option *find_letters(const struct run_options *options, const char *at);

/* What is not known at the first place of its words, where options stand. */
void look_first(const struct carried *c);

/* ---- programs with a grammar of their own (option-programs.c, option-git.c, option-sed.c,
 * option-container.c, option-database.c) ---- */

void run_meta(const struct carried *c, struct shell_word value);

void look_cmake(const struct carried *c);
void look_crontab(const struct carried *c);
void look_git(const struct carried *c);
void look_ip(const struct carried *c);
void look_less(const struct carried *c);
void look_make(const struct carried *c);
void look_npm(const struct carried *c);
void look_run(const struct carried *c);
void look_sed(const struct carried *c);
void look_tar(const struct carried *c);
void look_vim(const struct carried *c);
