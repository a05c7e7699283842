/* SPDX-License-Identifier: Apache-2.0 */

/* Plain copies of texts that do not want to be read: NFKC as far as it leads to ASCII, without what
 * a terminal swallows and without what nobody sees. The names and signs that are looked for are
 * ASCII, so what NFKC does among other letters is no matter (decision 0049). */

#include "lib/advisory/advisory-private.h"

#include "lib/base/attrs.h"

#include <string.h>

#define FOLDED_MAX 4

static const struct {
    uint32_t point;
    char text[FOLDED_MAX + 1];
} folds[] = {
#include "lib/advisory/unicode-folds.inc"
};

/* Default_Ignorable_Code_Point: drawn as nothing. And the marks of interlinear notes. */
static const struct {
    uint32_t first, last;
} invisible[] = {
    {0xAD,    0xAD   },
    {0x34F,   0x34F  },
    {0x61C,   0x61C  },
    {0x115F,  0x1160 },
    {0x17B4,  0x17B5 },
    {0x180B,  0x180F },
    {0x200B,  0x200F },
    {0x202A,  0x202E },
    {0x2060,  0x206F },
    {0x3164,  0x3164 },
    {0xFE00,  0xFE0F },
    {0xFEFF,  0xFEFF },
    {0xFFA0,  0xFFA0 },
    {0xFFF0,  0xFFFB },
    {0x1BCA0, 0x1BCA3},
    {0x1D173, 0x1D17A},
    {0xE0000, 0xE0FFF},
};

/* Letters of other scripts that are drawn like one of ASCII. NFKC keeps them apart, and so does a
 * shell; a person does not. */
/* clang-format off */
static const struct {
    uint32_t point;
    char letter;
} looks[] = {
    {0x131, 'i'}, {0x184, 'b'}, {0x251, 'a'}, {0x261, 'g'}, {0x269, 'i'}, {0x37F, 'J'}, {0x391, 'A'},
    {0x392, 'B'}, {0x395, 'E'}, {0x396, 'Z'}, {0x397, 'H'}, {0x399, 'I'}, {0x39A, 'K'}, {0x39C, 'M'},
    {0x39D, 'N'}, {0x39F, 'O'}, {0x3A1, 'P'}, {0x3A4, 'T'}, {0x3A5, 'Y'}, {0x3A7, 'X'}, {0x3B1, 'a'},
    {0x3B3, 'y'}, {0x3B9, 'i'}, {0x3BA, 'k'}, {0x3BD, 'v'}, {0x3BF, 'o'}, {0x3C1, 'p'}, {0x3C4, 't'},
    {0x3C5, 'u'}, {0x3DC, 'F'}, {0x3F2, 'c'}, {0x3F3, 'j'}, {0x3F9, 'C'}, {0x405, 'S'}, {0x406, 'I'},
    {0x408, 'J'}, {0x410, 'A'}, {0x412, 'B'}, {0x415, 'E'}, {0x41A, 'K'}, {0x41C, 'M'}, {0x41D, 'H'},
    {0x41E, 'O'}, {0x420, 'P'}, {0x421, 'C'}, {0x422, 'T'}, {0x425, 'X'}, {0x430, 'a'}, {0x433, 'r'},
    {0x435, 'e'}, {0x43A, 'k'}, {0x43C, 'm'}, {0x43E, 'o'}, {0x440, 'p'}, {0x441, 'c'}, {0x442, 't'},
    {0x443, 'y'}, {0x445, 'x'}, {0x455, 's'}, {0x456, 'i'}, {0x458, 'j'}, {0x461, 'w'}, {0x474, 'V'},
    {0x475, 'v'}, {0x4AE, 'Y'}, {0x4AF, 'y'}, {0x4B3, 'x'}, {0x4BB, 'h'}, {0x4BD, 'e'}, {0x4C0, 'l'},
    {0x4CF, 'l'}, {0x501, 'd'}, {0x50C, 'G'}, {0x51A, 'Q'}, {0x51B, 'q'}, {0x51C, 'W'}, {0x51D, 'w'},
    {0x54D, 'U'}, {0x54F, 'S'}, {0x555, 'O'}, {0x563, 'q'}, {0x570, 'h'}, {0x578, 'n'}, {0x57C, 'n'},
    {0x57D, 'u'}, {0x581, 'g'}, {0x585, 'o'}, {0x1D04, 'c'}, {0x1D0D, 'm'}, {0x1D0F, 'o'}, {0x1D1C, 'u'},
    {0x1D20, 'v'}, {0x1D21, 'w'}, {0x1D22, 'z'}, {0x1D26, 'r'}, {0xA731, 's'},
};
/* clang-format on */

static char look_of(uint32_t point)
{
    for (size_t i = 0; i < COUNT(looks) && looks[i].point <= point; i++)
        if (looks[i].point == point)
            return looks[i].letter;
    return '\0';
}

static const char *fold_of(uint32_t point)
{
    size_t low = 0, high = COUNT(folds);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (folds[middle].point == point)
            return folds[middle].text;
        if (folds[middle].point < point)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool is_invisible(uint32_t point)
{
    for (size_t i = 0; i < COUNT(invisible); i++)
        if (point >= invisible[i].first && point <= invisible[i].last)
            return true;
    return false;
}

/* Nothing a name is made of: what is not seen, what a terminal obeys, and other ends of a line. */
static bool is_unseen(uint32_t point)
{
    return point < ' ' || (point >= 0x7f && point <= 0x9f) || point == 0x2028 || point == 0x2029 ||
           is_invisible(point);
}

static const char *quote_of(uint32_t point)
{
    return point == 0x2018 || point == 0x2019   ? "'"
           : point == 0x201C || point == 0x201D ? "\""
                                                : NULL;
}

char small_letter(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c + ('a' - 'A'));
    return c;
}

/* Of a well-formed character of n bytes. */
static uint32_t decode(const char *p, size_t n)
{
    const unsigned char *b = (const unsigned char *)p;

    switch (n) {
    case 2:
        return (uint32_t)(b[0] & 0x1f) << 6 | (b[1] & 0x3f);
    case 3:
        return (uint32_t)(b[0] & 0x0f) << 12 | (uint32_t)(b[1] & 0x3f) << 6 | (b[2] & 0x3f);
    case 4:
        return (uint32_t)(b[0] & 0x07) << 18 | (uint32_t)(b[1] & 0x3f) << 12 |
               (uint32_t)(b[2] & 0x3f) << 6 | (b[3] & 0x3f);
    default:
        return b[0];
    }
}

bool find_unseen(struct str text, size_t *start, size_t *end)
{
    for (size_t i = 0, n; i < text.n; i += n) {
        struct str rest = {text.p + i, text.n - i};

        n = str_utf8_length(rest);
        if (n == 0)
            n = 1;
        else if (is_unseen(decode(rest.p, n))) {
            *start = i;
            *end = i + n;
            return true;
        }
    }
    return false;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Bytes of the control string at p, up to its end or to the end of the line. */
static size_t string_length(struct str s, size_t from)
{
    size_t i = from;

    while (i < s.n && s.p[i] != '\n' && s.p[i] != '\a' && s.p[i] != 0x1b)
        i++;
    if (i < s.n && s.p[i] == '\a')
        return i + 1;
    return i + 1 < s.n && s.p[i] == 0x1b && s.p[i + 1] == '\\' ? i + 2 : i;
}

/* Bytes of the sequence for a terminal at the start of s, or 0 (ECMA-48: CSI, strings, two bytes).
 * Linear over a text: what one call passes is not looked at again. */
static size_t ansi_length(struct str s)
{
    bool is_c1 = s.n >= 2 && (unsigned char)s.p[0] == 0xc2 && (unsigned char)s.p[1] == 0x9b;
    size_t i = 2;

    if (!is_c1 && (s.n == 0 || s.p[0] != 0x1b))
        return 0;
    if (s.n < 2)
        return 1;
    if (is_c1 || s.p[1] == '[') {
        while (i < s.n && s.p[i] >= 0x20 && s.p[i] <= 0x3f)
            i++;
        return i < s.n && s.p[i] >= 0x40 && s.p[i] <= 0x7e ? i + 1 : i;
    }
    if (strchr("]PX^_", s.p[1]))
        return string_length(s, 2);
    while (i - 1 < s.n && s.p[i - 1] >= 0x20 && s.p[i - 1] <= 0x2f)
        i++;
    return i < s.n ? i : s.n;
}

/* Of a well-formed character of n bytes: nothing is to be seen where it stands. U+1680 is drawn as
 * a line at most, U+2800 is a pattern without dots. */
static bool is_white(const char *p, size_t n)
{
    uint32_t point = decode(p, n);
    const char *folded = fold_of(point);

    return point == ' ' || is_unseen(point) || point == 0x1680 || point == 0x2800 ||
           (folded && strcmp(folded, " ") == 0);
}

bool is_blank_text(struct str text)
{
    for (size_t i = 0, n; i < text.n; i += n) {
        struct str rest = {text.p + i, text.n - i};

        n = ansi_length(rest);
        if (n)
            continue;
        n = str_utf8_length(rest);
        if (n == 0 || !is_white(rest.p, n))
            return false;
    }
    return true;
}

struct folding {
    struct str text;
    const uint32_t *at; /* of the text, or NULL */
    unsigned flags;
    struct copy *out;
    size_t word_end; /* of the word that was looked at last */
    bool is_mixed;   /* it has letters of ASCII and others */
};

static void put(struct folding *f, const char *bytes, size_t n, size_t from)
{
    for (size_t i = 0; i < n; i++) {
        f->out->p[f->out->n] = bytes[i];
        f->out->at[f->out->n++] = f->at ? f->at[from] : (uint32_t)from;
    }
}

static void put_one(struct folding *f, char c, size_t from)
{
    if (f->flags & FOLD_CASE)
        c = small_letter(c);
    put(f, &c, 1, from);
}

/* Whether the word at i has letters of ASCII, too. A word of another script alone is a word of that
 * script: Russian "ср" is not cp. Each byte is looked at once. */
static bool is_among_letters(struct folding *f, size_t i)
{
    size_t k = i, end = f->word_end;

    if (i < end)
        return f->is_mixed;
    while (k > end && (is_letter(f->text.p[k - 1]) || (unsigned char)f->text.p[k - 1] >= 0x80))
        k--;
    f->is_mixed = false;
    for (; k < f->text.n && (is_letter(f->text.p[k]) || (unsigned char)f->text.p[k] >= 0x80); k++)
        f->is_mixed |= is_letter(f->text.p[k]);
    f->word_end = k;
    return f->is_mixed;
}

/* One character, or what a terminal takes as one; returns its bytes. */
static size_t fold_one(struct folding *f, size_t i)
{
    struct str rest = {f->text.p + i, f->text.n - i};
    size_t n = f->flags & FOLD_ANSI ? ansi_length(rest) : 0;
    const char *folded;
    uint32_t point;
    char look;

    if (n) {
        f->out->is_confusable |= f->out->n && is_letter(f->out->p[f->out->n - 1]);
        return n;
    }
    n = str_utf8_length(rest);
    if (n <= 1) {
        put_one(f, rest.p[0], i);
        return 1;
    }
    point = decode(rest.p, n);
    folded = f->flags & FOLD_QUOTES && quote_of(point) ? quote_of(point) : fold_of(point);
    look = (char)(f->flags & FOLD_LOOKS ? look_of(point) : '\0');
    if (look && is_among_letters(f, i)) {
        f->out->is_confusable = true;
        put_one(f, look, i);
    } else if (folded) {
        f->out->is_confusable |= is_letter(folded[0]);
        for (; *folded; folded++) {
            put_one(f, *folded, i);
        }
    } else if (f->flags & FOLD_INVISIBLE && is_invisible(point)) {
        f->out->is_confusable |= f->out->n && is_letter(f->out->p[f->out->n - 1]);
    } else {
        for (size_t k = 0; k < n; k++)
            put(f, rest.p + k, 1, i + k);
    }
    return n;
}

static void fold(struct arena *mem, struct folding *f)
{
    size_t room = f->text.n + 1;

    /* Only what is not ASCII grows, and to no more than twice its bytes. */
    for (size_t i = 0; i < f->text.n; i++)
        room += (unsigned char)f->text.p[i] >= 0x80;
    f->out->p = arena_alloc(mem, room);
    f->out->at = arena_array(mem, uint32_t, room);
    f->out->n = 0;
    for (size_t i = 0; i < f->text.n;)
        i += fold_one(f, i);
    f->out->at[f->out->n] = f->at ? f->at[f->text.n] : (uint32_t)f->text.n;
}

void fold_copy(struct arena *mem, struct str text, unsigned flags, struct copy *out)
{
    struct folding f = {.text = text, .flags = flags, .out = out};

    out->is_confusable = false;
    fold(mem, &f);
}

void fold_again(struct arena *mem, const struct copy *text, unsigned flags, struct copy *out)
{
    struct folding f = {.text = copy_str(text), .at = text->at, .flags = flags, .out = out};

    out->is_confusable = text->is_confusable;
    fold(mem, &f);
}

struct str copy_str(const struct copy *copy)
{
    return (struct str){copy->p, copy->n};
}
