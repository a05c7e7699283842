/* SPDX-License-Identifier: Apache-2.0 */

/* Requests for a person's eyes. Everything in them is the requester's: no byte of it reaches the
 * terminal as it is, and what is left out is counted. */

#include "surface/cli/approvals.h"

#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "surface/cli/remote.h"

#define LINE_WORDS_MAX 200    /* bytes of a command in a list */
#define WORD_SHOWN_MAX 4096   /* bytes of one word */
#define WORDS_SHOWN_MAX 1024  /* words of a command */
#define ESCAPED_GROWTH_MAX 16 /* bytes that one can become */
#define UNREADABLE "cannot be read any more: the list of approvals is damaged"

/* At most max bytes of it, cut between characters; answers how many there are besides. */
static size_t escape_some(struct str text, size_t max, struct buf *shown)
{
    struct str some = {text.p, text.n < max ? text.n : max};
    struct err ignored;

    while (some.n < text.n && some.n && (text.p[some.n] & 0xc0) == 0x80)
        some.n--;
    if (text_escape(some, shown, &ignored) < 0) {
        buf_clear(shown);
        some.n = 0;
    }
    return text.n - some.n;
}

static void print_cut(FILE *to, size_t bytes)
{
    if (bytes)
        (void)fprintf(to, "… (%zu more bytes)", bytes);
}

static void print_some(FILE *to, struct str text, size_t max)
{
    AUTO_BUF struct buf shown = BUF(ESCAPED_GROWTH_MAX * WORD_SHOWN_MAX);
    size_t rest = escape_some(text, max, &shown);

    if (shown.n)
        (void)fputs(buf_text(&shown), to);
    print_cut(to, rest);
}

/* A word, or {"bytes": …} when it is none that can be written. */
static struct str word_of(struct arena *mem, const struct json *word)
{
    struct str text = {0};

    return json_is_text(word, &text) ? text : doc_bytes(mem, word, "bytes");
}

/* ---- one line ---- */

static bool needs_no_quotes(struct str word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "%+,-./:=@_";

    for (size_t i = 0; i < word.n; i++) {
        if (!word.p[i] || !strchr(plain, word.p[i]))
            return false;
    }
    return word.n > 0;
}

/* As somebody would write it in a shell: where a word ends is part of what is asked. */
static void print_word(FILE *to, struct str word, size_t max)
{
    AUTO_BUF struct buf shown = BUF(ESCAPED_GROWTH_MAX * WORD_SHOWN_MAX);
    size_t rest;

    if (needs_no_quotes(word)) {
        print_some(to, word, max);
        return;
    }
    rest = escape_some(word, max, &shown);
    (void)fputc('\'', to);
    for (size_t i = 0; i < shown.n; i++) {
        if (shown.p[i] == '\'')
            (void)fputs("'\\''", to);
        else
            (void)fputc(shown.p[i], to);
    }
    print_cut(to, rest);
    (void)fputc('\'', to);
}

static void print_command_line(struct invocation *inv, const struct json *command)
{
    size_t left = LINE_WORDS_MAX, hidden = 0;

    if (!command || command->kind != JSON_ARRAY) {
        (void)fputs(" (" UNREADABLE ")", inv->out);
        return;
    }
    json_each(word, command)
    {
        struct str text = word_of(&inv->mem, word);
        size_t taken;

        if (left == 0) {
            hidden++;
            continue;
        }
        (void)fputc(' ', inv->out);
        print_word(inv->out, text, left);
        taken = text.n ? text.n : 1; /* empty ones take room, too */
        left = taken < left ? left - taken : 0;
    }
    if (hidden)
        (void)fprintf(inv->out, " … (%zu more words)", hidden);
}

void print_approval_line(struct invocation *inv, const struct json *doc)
{
    struct arena *mem = &inv->mem;
    uint64_t quorum = doc_number(doc, "quorum");

    (void)fprintf(inv->out, "%s  %-9s  ", doc_text(mem, doc, "approval_id"),
                  doc_text(mem, doc, "state"));
    if (quorum > 1)
        (void)fprintf(inv->out, "%llu of %llu  ",
                      (unsigned long long)doc_number(doc, "confirmations"),
                      (unsigned long long)quorum);
    (void)fprintf(inv->out, "%s  ", doc_text(mem, doc, "asked_at"));
    print_some(inv->out, str_of(doc_text(mem, doc, "requester")), LINE_WORDS_MAX);
    (void)fputc(' ', inv->out);
    print_command_line(inv, json_get(json_get(doc, "subject"), "command"));
    (void)fputc('\n', inv->out);
}

/* ---- all of it ---- */

static void print_row(struct invocation *inv, const char *name, struct str text)
{
    (void)fprintf(inv->out, "%-13s ", name);
    print_some(inv->out, text, WORD_SHOWN_MAX);
    (void)fputc('\n', inv->out);
}

static void print_words(struct invocation *inv, const char *name, const struct json *list)
{
    size_t at = 0;

    if (!list || list->kind != JSON_ARRAY)
        return;
    json_each(word, list)
    {
        if (at == WORDS_SHOWN_MAX)
            break;
        (void)fprintf(inv->out, "%-13s [%zu] ", at ? "" : name, at);
        print_some(inv->out, word_of(&inv->mem, word), WORD_SHOWN_MAX);
        (void)fputc('\n', inv->out);
        at++;
    }
    if (list->n > at)
        (void)fprintf(inv->out, "%-13s … (%zu more)\n", "", list->n - at);
}

static void print_operands(struct invocation *inv, const struct json *list)
{
    struct arena *mem = &inv->mem;

    if (!list || list->kind != JSON_ARRAY)
        return;
    json_each(operand, list)
    {
        const char *why = doc_text(mem, operand, "not_bound");

        (void)fprintf(inv->out, "%-13s ", operand == list->first ? "works on" : "");
        print_some(inv->out, doc_bytes(mem, operand, "path"), WORD_SHOWN_MAX);
        if (*why)
            (void)fprintf(inv->out, "  %s  NOT BOUND: it %s\n", doc_text(mem, operand, "kind"),
                          why);
        else
            (void)fprintf(inv->out, "  %s, %llu bytes, %s\n", doc_text(mem, operand, "kind"),
                          (unsigned long long)doc_number(operand, "bytes"),
                          doc_text(mem, operand, "sha256"));
    }
}

static void print_mounts(struct invocation *inv, const struct json *list)
{
    if (!list || list->kind != JSON_ARRAY)
        return;
    json_each(mount, list)
    {
        (void)fprintf(inv->out, "%-13s ", mount == list->first ? "mounts" : "");
        print_some(inv->out, doc_bytes(&inv->mem, mount, "source"), WORD_SHOWN_MAX);
        (void)fputs(" at ", inv->out);
        print_some(inv->out, doc_bytes(&inv->mem, mount, "target"), WORD_SHOWN_MAX);
        (void)fputs(doc_bool(mount, "writable") ? ", writable\n" : ", read-only\n", inv->out);
    }
}

static void print_limits(struct invocation *inv, const struct json *limits)
{
    if (!limits || limits->kind != JSON_OBJECT)
        return;
    json_each(limit, limits)
    {
        (void)fprintf(inv->out, "%-13s ", limit == limits->first ? "limits" : "");
        print_some(inv->out, limit->key, LINE_WORDS_MAX);
        (void)fprintf(inv->out, " %llu\n",
                      (unsigned long long)doc_number(limits, arena_text(&inv->mem, limit->key)));
    }
}

/* What a table of rows does not name is shown all the same, by its own name. */
static void print_rest(struct invocation *inv, const struct json *subject)
{
    static const char *const shown[] = {"command", "env", "operands", "mounts", "limits"};

    if (!subject || subject->kind != JSON_OBJECT)
        return;
    json_each(member, subject)
    {
        const char *name = arena_text(&inv->mem, member->key);
        bool is_shown = false;

        for (size_t i = 0; i < COUNT(shown); i++)
            is_shown |= strcmp(shown[i], name) == 0;
        if (is_shown || member->kind == JSON_ARRAY || member->kind == JSON_OBJECT)
            continue;
        if (member->kind == JSON_BOOL)
            print_row(inv, name, str_of(member->boolean ? "yes" : "no"));
        else
            print_row(inv, name, member->text);
    }
}

static void print_terms(struct invocation *inv, const struct json *doc)
{
    const struct json *also = json_get(doc, "may_confirm_also");
    uint64_t quorum = doc_number(doc, "quorum");

    print_words(inv, "may confirm", json_get(doc, "may_confirm"));
    if (also && also->kind == JSON_ARRAY)
        json_each(list, also) print_words(inv, "if also in", list);
    (void)fprintf(inv->out, "%-13s %llu of %llu%s\n", "confirmed by",
                  (unsigned long long)doc_number(doc, "confirmations"), (unsigned long long)quorum,
                  doc_bool(doc, "reason_required") ? "; a reason is wanted (--comment)" : "");
}

static void print_voices(struct invocation *inv, const struct json *list)
{
    struct arena *mem = &inv->mem;

    if (!list || list->kind != JSON_ARRAY)
        return;
    json_each(word, list)
    {
        (void)fprintf(inv->out, "%-13s %s, %s, ", doc_bool(word, "confirms") ? "yes" : "no",
                      doc_text(mem, word, "by"), doc_text(mem, word, "at"));
        print_some(inv->out, doc_bytes(mem, word, "comment"), WORD_SHOWN_MAX);
        (void)fputc('\n', inv->out);
    }
}

int print_approval(struct invocation *inv, const struct json *doc)
{
    static const char *const rows[] = {"approval_id", "state",  "requester",  "asked_at",
                                       "expires_at",  "digest", "decided_at", "decided_by"};
    const struct json *subject = json_get(doc, "subject");

    if (inv->json)
        return cli_json(inv, doc);
    for (size_t i = 0; i < COUNT(rows); i++)
        if (*doc_text(&inv->mem, doc, rows[i]))
            print_row(inv, rows[i], str_of(doc_text(&inv->mem, doc, rows[i])));
    print_terms(inv, doc);
    print_voices(inv, json_get(doc, "words"));
    if (!json_get(subject, "command"))
        print_row(inv, "command", str_of(UNREADABLE));
    print_words(inv, "command", json_get(subject, "command"));
    print_words(inv, "env", json_get(subject, "env"));
    print_operands(inv, json_get(subject, "operands"));
    print_mounts(inv, json_get(subject, "mounts"));
    print_limits(inv, json_get(subject, "limits"));
    print_rest(inv, subject);
    return 0;
}
