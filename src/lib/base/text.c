/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/text.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/limits.h"

static struct str line_at(struct str text, unsigned wanted)
{
    struct str rest = text;
    struct str line = str_cut(&rest, '\n');

    for (unsigned at = 1; at < wanted && rest.n; at++)
        line = str_cut(&rest, '\n');
    return line;
}

int mark_show(struct mark mark, struct str text, struct buf *out, struct err *err)
{
    struct str line;
    size_t before;

    if (mark.line == 0)
        return 0;
    line = line_at(text, mark.line);
    if (line.n > 200)
        line.n = 200;
    before = mark.column ? mark.column - 1 : 0;
    if (before > line.n)
        before = line.n;
    if (buf_addf(out, err, "%5u | ", mark.line) < 0 || text_escape(line, out, err) < 0 ||
        buf_add_text(out, "\n      | ", err) < 0)
        return -1;
    for (size_t i = 0; i < before; i++)
        if (buf_add_byte(out, ' ', err) < 0)
            return -1;
    return buf_add_text(out, "^\n", err);
}

void hex_encode(const void *bytes, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[p[i] >> 4];
        out[2 * i + 1] = digits[p[i] & 15];
    }
    out[2 * n] = '\0';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

bool hex_decode(struct str hex, void *out, size_t n)
{
    unsigned char *p = out;

    if (hex.n != 2 * n)
        return false;
    for (size_t i = 0; i < hex.n; i++)
        if (hex_digit(hex.p[i]) < 0)
            return false;
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(hex_digit(hex.p[2 * i]) << 4 | hex_digit(hex.p[2 * i + 1]));
    return true;
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

/* One group of four; the bytes it stands for, or 0 when it is none. Bits that are thrown away must
 * be zero: there is one spelling of everything. */
static size_t base64_group(const char quad[4], bool last, unsigned char out[3])
{
    size_t padding =
        last ? (size_t)(quad[3] == '=') + (size_t)(quad[2] == '=' && quad[3] == '=') : 0;
    unsigned group = 0;

    for (size_t i = 0; i < 4; i++) {
        int value = i < 4 - padding ? base64_value(quad[i]) : 0;

        if (value < 0)
            return 0;
        group = group << 6 | (unsigned)value;
    }
    if ((padding == 1 && group & 0xff) || (padding == 2 && group & 0xffff))
        return 0;
    out[0] = (unsigned char)(group >> 16);
    out[1] = (unsigned char)(group >> 8);
    out[2] = (unsigned char)group;
    return 3 - padding;
}

bool base64_decode(struct str text, void *out, size_t *n)
{
    unsigned char *to = out;

    *n = 0;
    if (text.n % 4)
        return false;
    for (size_t i = 0; i < text.n; i += 4) {
        unsigned char bytes[3];
        size_t got = base64_group(text.p + i, i + 4 == text.n, bytes);

        if (got == 0)
            return false;
        memcpy(to + *n, bytes, got);
        *n += got;
    }
    return true;
}

static void encode_group(const unsigned char *p, size_t left, char quad[4])
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned group = (unsigned)p[0] << 16;

    if (left > 1)
        group |= (unsigned)p[1] << 8;
    if (left > 2)
        group |= p[2];
    quad[0] = alphabet[group >> 18];
    quad[1] = alphabet[group >> 12 & 63];
    quad[2] = '=';
    quad[3] = '=';
    if (left > 1)
        quad[2] = alphabet[group >> 6 & 63];
    if (left > 2)
        quad[3] = alphabet[group & 63];
}

int base64_encode(struct str bytes, struct buf *out, struct err *err)
{
    char block[4 * 256]; /* many groups at a time: output of commands is much */
    size_t n = 0;

    for (size_t i = 0; i < bytes.n; i += 3) {
        encode_group((const unsigned char *)bytes.p + i, bytes.n - i, block + n);
        n += 4;
        if (n < sizeof block)
            continue;
        if (buf_add(out, block, n, err) < 0)
            return -1;
        n = 0;
    }
    return buf_add(out, block, n, err);
}

/* What drives a terminal, turns round what stands around it, or is drawn as nothing or as a blank:
 * C1 controls, marks of direction, ends of lines, Default_Ignorable_Code_Point, the marks of
 * interlinear notes, and blanks other than the one of ASCII. */
static const struct {
    uint32_t first, last;
} misleads[] = {
    {0x80,    0xA0   },
    {0xAD,    0xAD   },
    {0x34F,   0x34F  },
    {0x61C,   0x61C  },
    {0x115F,  0x1160 },
    {0x1680,  0x1680 },
    {0x17B4,  0x17B5 },
    {0x180B,  0x180F },
    {0x2000,  0x200F },
    {0x2028,  0x202F },
    {0x205F,  0x206F },
    {0x2800,  0x2800 },
    {0x3000,  0x3000 },
    {0x3164,  0x3164 },
    {0xFE00,  0xFE0F },
    {0xFEFF,  0xFEFF },
    {0xFFA0,  0xFFA0 },
    {0xFFF0,  0xFFFB },
    {0x1BCA0, 0x1BCA3},
    {0x1D173, 0x1D17A},
    {0xE0000, 0xE0FFF},
};

size_t text_misleads(struct str s, size_t i, uint32_t *point)
{
    unsigned char lead = (unsigned char)s.p[i];
    size_t n = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;

    *point = lead & (0xFFU >> (n + 1));
    if (n == 1 || i + n > s.n)
        return 0; /* what follows a lead */
    for (size_t k = 1; k < n; k++)
        *point = *point << 6 | ((unsigned char)s.p[i + k] & 0x3F);
    for (size_t r = 0; r < COUNT(misleads); r++)
        if (*point >= misleads[r].first && *point <= misleads[r].last)
            return n;
    return 0;
}

static int escape_bytes(struct str s, struct buf *out, struct err *err)
{
    for (size_t i = 0; i < s.n; i++)
        if (buf_addf(out, err, "\\x%02x", (unsigned char)s.p[i]) < 0)
            return -1;
    return 0;
}

int text_escape(struct str s, struct buf *out, struct err *err)
{
    bool utf8 = str_is_utf8(s);

    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        uint32_t point;
        size_t hidden = utf8 && c >= 0x80 ? text_misleads(s, i, &point) : 0;
        int failed;

        if (hidden) {
            failed = escape_bytes((struct str){s.p + i, hidden}, out, err);
            i += hidden - 1;
        } else if (c == '\\') {
            failed = buf_add_text(out, "\\\\", err);
        } else if (c >= 0x20 && c != 0x7f && (c < 0x80 || utf8)) {
            failed = buf_add(out, &s.p[i], 1, err);
        } else {
            failed = escape_bytes((struct str){s.p + i, 1}, out, err);
        }
        if (failed < 0)
            return -1;
    }
    return 0;
}

struct unit {
    const char *name;
    uint64_t factor;
};

static size_t number_length(struct str s)
{
    size_t n = 0;

    while (n < s.n && ((s.p[n] >= '0' && s.p[n] <= '9') || s.p[n] == '.'))
        n++;
    return n;
}

/* whole[.fraction] × factor, exactly; fractions of up to six digits. */
static bool scale(struct str number, uint64_t factor, uint64_t *out)
{
    struct str fraction = number;
    struct str whole = str_cut(&fraction, '.');
    uint64_t value = 0, part = 0, divisor = 1;

    if (!str_u64(whole, &value) || __builtin_mul_overflow(value, factor, &value))
        return false;
    if (whole.n == number.n) {
        *out = value;
        return true;
    }
    if (fraction.n > 6 || !str_u64(fraction, &part))
        return false;
    for (size_t i = 0; i < fraction.n; i++)
        divisor *= 10;
    if (factor > UINT64_MAX / 1000000U)
        return false;
    return !__builtin_add_overflow(value, part * factor / divisor, out);
}

static bool parse_quantity(struct str s, const struct unit *units, size_t n, uint64_t *out)
{
    size_t digits = number_length(s);
    struct str number = {s.p, digits};
    struct str suffix = {s.p + digits, s.n - digits};

    for (size_t i = 0; i < n; i++)
        if (str_is(suffix, units[i].name))
            return scale(number, units[i].factor, out);
    return false;
}

int size_parse(struct str s, uint64_t *out_bytes, struct err *err)
{
    static const struct unit units[] = {
        {"",    1         },
        {"B",   1         },
        {"K",   1U << 10  },
        {"KB",  1U << 10  },
        {"KiB", 1U << 10  },
        {"k",   1U << 10  },
        {"M",   1U << 20  },
        {"MB",  1U << 20  },
        {"MiB", 1U << 20  },
        {"m",   1U << 20  },
        {"G",   1U << 30  },
        {"GB",  1U << 30  },
        {"GiB", 1U << 30  },
        {"g",   1U << 30  },
        {"T",   1ULL << 40},
        {"TB",  1ULL << 40},
        {"TiB", 1ULL << 40},
        {"t",   1ULL << 40},
    };

    if (!parse_quantity(s, units, COUNT(units), out_bytes))
        return err_set(err, ERR_INVALID, "size \"" STR_FMT "\": write it like 512M, 1.5G or 4096",
                       STR_ARG(s));
    return 0;
}

int duration_parse(struct str s, uint64_t *out_ms, struct err *err)
{
    static const struct unit units[] = {
        {"ms", 1      },
        {"s",  1000   },
        {"",   1000   },
        {"m",  60000  },
        {"h",  3600000},
    };

    if (!parse_quantity(s, units, COUNT(units), out_ms))
        return err_set(err, ERR_INVALID, "duration \"" STR_FMT "\": write it like 30s, 500ms or 2m",
                       STR_ARG(s));
    return 0;
}

bool is_agent_id(struct str id)
{
    static const char some[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:@+";

    if (id.n == 0 || id.n > POLICY_AGENT_MAX || str_is(id, ".") || str_is(id, ".."))
        return false;
    for (size_t i = 0; i < id.n; i++)
        if (!memchr(some, id.p[i], sizeof some - 1))
            return false;
    return true;
}
