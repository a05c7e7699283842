/* SPDX-License-Identifier: Apache-2.0 */
/* What a pipeline of plain printers and decoders writes: old clients of remote sandboxes, and
 * people who hide things, send commands as `echo ... | base64 -d | sh`. */
#include "lib/shell/reader-private.h"

#include <string.h>

#define PIPE_MAX 8

/* Bytes that are collected; the budget of the whole look is its ceiling. */
struct printed {
    struct look *look;
    char *p;
    size_t n;
    size_t cap;
};

static bool print(struct printed *out, const char *bytes, size_t n)
{
    if (out->cap - out->n < n) {
        size_t cap = (out->cap + n) * 2;
        char *grown;

        if (!spend(out->look, cap))
            return false;
        grown = arena_alloc(out->look->mem, cap);
        if (out->n)
            memcpy(grown, out->p, out->n);
        out->p = grown;
        out->cap = cap;
    }
    if (n)
        memcpy(out->p + out->n, bytes, n);
    out->n += n;
    return true;
}

static bool print_byte(struct printed *out, char byte)
{
    if (out->cap == out->n)
        return print(out, &byte, 1);
    out->p[out->n++] = byte;
    return true;
}

/* Without backslashes and options, all of them agree. */
static bool print_echo(const struct shell_command *c, struct printed *out)
{
    bool newline = true;
    size_t at = 1;

    if (at < c->word_n && str_is(c->words[at].text, "-n")) {
        newline = false;
        at++;
    }
    if (at < c->word_n && str_starts(c->words[at].text, "-"))
        return false;
    for (size_t i = at; i < c->word_n; i++) {
        struct str word = c->words[i].text;

        if ((word.n && memchr(word.p, '\\', word.n)) || (i > at && !print(out, " ", 1)) ||
            !print(out, word.p, word.n))
            return false;
    }
    return !newline || print(out, "\n", 1);
}

/* One escape of a format, at its backslash; returns the bytes it has, 0: not followed. */
static size_t print_escape(struct str format, size_t at, struct printed *out)
{
    static const char from[] = "ntr\\";
    static const char to[] = "\n\t\r\\";
    size_t n = at + 1;
    unsigned value = 0;
    const char *known;
    char byte;

    if (n >= format.n)
        return 0;
    known = strchr(from, format.p[n]);
    if (known)
        return print(out, to + (known - from), 1) ? 2 : 0;
    while (n < format.n && n < at + 4 && format.p[n] >= '0' && format.p[n] <= '7')
        value = value * 8 + (unsigned)(format.p[n++] - '0');
    byte = (char)(value & 0xff);
    return n > at + 1 && byte && print(out, &byte, 1) ? n - at : 0;
}

/* The format once; *used counts the words it takes. */
static bool print_format(const struct shell_command *c, size_t first, size_t *used,
                         struct printed *out)
{
    struct str format = c->words[1].text;

    *used = 0;
    for (size_t i = 0; i < format.n;) {
        size_t n = 1;

        if (format.p[i] == '\\') {
            n = print_escape(format, i, out);
        } else if (format.p[i] != '%') {
            n = print_byte(out, format.p[i]) ? 1 : 0;
        } else if (i + 1 < format.n && format.p[i + 1] == '%') {
            n = print(out, "%", 1) ? 2 : 0;
        } else if (i + 1 < format.n && format.p[i + 1] == 's') {
            size_t word = first + (*used)++;
            struct str text = word < c->word_n ? c->words[word].text : (struct str){"", 0};

            n = print(out, text.p, text.n) ? 2 : 0;
        } else {
            return false;
        }
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

static bool print_printf(const struct shell_command *c, struct printed *out)
{
    size_t used;

    if (c->word_n < 2 || str_starts(c->words[1].text, "-"))
        return false;
    for (size_t at = 2;; at += used) {
        if (!print_format(c, at, &used, out))
            return false;
        if (used == 0 || at + used >= c->word_n)
            return true;
    }
}

/* ---- decoders ---- */

static int digit64(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static int digit32(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    return c >= '2' && c <= '7' ? c - '2' + 26 : -1;
}

/* Digits of some bits each, in groups that are filled up. */
struct code {
    int (*digit)(char c);
    unsigned bits;
    size_t group;
};

/* With padding, and line ends anywhere; nothing else. */
static bool print_decoded(struct str text, const struct code *code, struct printed *out)
{
    uint32_t held = 0;
    unsigned held_bits = 0;
    size_t seen = 0, padding = 0;

    for (size_t i = 0; i < text.n; i++) {
        int digit = code->digit(text.p[i]);

        if (text.p[i] == '\n')
            continue;
        seen++;
        if (text.p[i] == '=') {
            padding++;
            continue;
        }
        if (digit < 0 || padding)
            return false;
        held = held << code->bits | (uint32_t)digit;
        held_bits += code->bits;
        if (held_bits >= 8) {
            char byte = (char)(held >> (held_bits - 8) & 0xff);

            held_bits -= 8;
            held &= (1U << held_bits) - 1;
            if (!print_byte(out, byte))
                return false;
        }
    }
    return seen % code->group == 0 && padding < code->group - 1 && held == 0;
}

static int hex_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool print_hex(struct str text, struct printed *out)
{
    int high = -1;

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        int digit = hex_of(c);

        if (c == '\n' || c == ' ')
            continue;
        if (digit < 0)
            return false;
        if (high < 0) {
            high = digit;
            continue;
        }
        c = (char)(high << 4 | digit);
        high = -1;
        if (!print_byte(out, c))
            return false;
    }
    return high < 0;
}

static bool words_are(const struct shell_command *c, const char *one, const char *two,
                      const char *three)
{
    if (c->word_n != 2)
        return false;
    return str_is(c->words[1].text, one) || str_is(c->words[1].text, two) ||
           str_is(c->words[1].text, three);
}

static bool is_hex_decoder(const struct shell_command *c)
{
    if (c->word_n != 3)
        return false;
    return (str_is(c->words[1].text, "-r") && str_is(c->words[2].text, "-p")) ||
           (str_is(c->words[1].text, "-p") && str_is(c->words[2].text, "-r"));
}

static bool passes_on(const struct shell_command *c)
{
    return c->word_n == 1 || (c->word_n == 2 && str_is(c->words[1].text, "-"));
}

static bool print_filtered(const char *name, const struct shell_command *c, struct str input,
                           struct printed *out)
{
    static const struct code base64 = {digit64, 6, 4}, base32 = {digit32, 5, 8};

    if (strcmp(name, "cat") == 0)
        return passes_on(c) && print(out, input.p, input.n);
    if (strcmp(name, "base64") == 0)
        return words_are(c, "-d", "--decode", "-D") && print_decoded(input, &base64, out);
    if (strcmp(name, "base32") == 0)
        return words_are(c, "-d", "--decode", "-D") && print_decoded(input, &base32, out);
    return strcmp(name, "xxd") == 0 && is_hex_decoder(c) && print_hex(input, out);
}

/* ---- pipelines ---- */

static bool has_only_input(const struct shell_command *c)
{
    for (size_t i = 0; i < c->redirect_n; i++)
        if (c->redirects[i].kind != SHELL_TEXT || c->redirects[i].fd != 0)
            return false;
    return true;
}

/* Its name, where the one everybody means is meant. */
static const char *plain_name(const struct shell_command *c)
{
    const char *name = c->words[0].text.p;

    if (strncmp(name, "/usr/bin/", 9) == 0)
        return name + 9;
    return strncmp(name, "/bin/", 5) == 0 ? name + 5 : name;
}

/* Without an input that is known it is echo or printf. Most are neither. */
static bool may_print(const struct shell_command *c)
{
    char first = c->words[0].text.p[0];

    return c->input_kind == SHELL_INPUT_TEXT || c->input_kind == SHELL_INPUT_PIPE || first == 'e' ||
           first == 'p' || first == '/';
}

static bool print_command(struct look *look, size_t entry, unsigned depth, struct printed *out);

static bool input_of(struct look *look, const struct shell_command *c, unsigned depth,
                     struct str *out)
{
    struct printed input = {.look = look};

    switch (c->input_kind) {
    case SHELL_INPUT_TEXT:
        *out = c->input.text;
        return c->input.known == SHELL_LITERAL;
    case SHELL_INPUT_PIPE:
        if (c->input_from == SHELL_NONE || depth == PIPE_MAX ||
            !print_command(look, c->input_from, depth + 1, &input))
            return false;
        *out = (struct str){input.p, input.n};
        return true;
    case SHELL_INPUT_OUTER:
    case SHELL_INPUT_FILE:
        break;
    }
    return false;
}

static bool print_known(struct look *look, const struct shell_command *c, unsigned depth,
                        struct printed *out)
{
    const char *name = plain_name(c);
    struct str input;

    if (strcmp(name, "echo") == 0)
        return print_echo(c, out);
    if (strcmp(name, "printf") == 0)
        return print_printf(c, out);
    return input_of(look, c, depth, &input) && print_filtered(name, c, input, out);
}

static bool print_command(struct look *look, size_t entry, unsigned depth, struct printed *out)
{
    const struct shell_command *c = &look->v[entry];

    if (look->functions || c->known != SHELL_LITERAL || c->word_n == 0 || c->assignment_n ||
        !may_print(c) || !has_only_input(c))
        return false;
    return print_known(look, c, depth, out);
}

bool output_of(struct look *look, size_t entry, struct str *out)
{
    struct printed printed = {.look = look};

    if (look->careful || !print_command(look, entry, 0, &printed))
        return false;
    look->followed = true;
    *out = printed.n ? (struct str){printed.p, printed.n} : (struct str){"", 0};
    return true;
}

bool text_fits_word(struct str text)
{
    return memchr(text.p, '\0', text.n) == NULL;
}
