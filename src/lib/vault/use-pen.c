/* SPDX-License-Identifier: Apache-2.0 */

/* How a value is written in its slot. */

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "lib/vault/use-parts.h"

void pen_put(struct pen *pen, struct str text)
{
    assert((size_t)(pen->end - pen->at) >= text.n);
    if (text.n)
        memcpy(pen->at, text.p, text.n);
    pen->at += text.n;
}

void pen_byte(struct pen *pen, char c)
{
    pen_put(pen, (struct str){&c, 1});
}

struct str pen_since(const struct pen *pen, const char *from)
{
    return (struct str){from, (size_t)(pen->at - from)};
}

static bool is_unreserved(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

void pen_percent(struct pen *pen, struct str value)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < value.n; i++) {
        unsigned char c = (unsigned char)value.p[i];

        if (is_unreserved(value.p[i])) {
            pen_byte(pen, value.p[i]);
        } else {
            pen_byte(pen, '%');
            pen_byte(pen, digits[c >> 4]);
            pen_byte(pen, digits[c & 15]);
        }
    }
}

void pen_json(struct pen *pen, struct str value)
{
    char escape[8];

    pen_byte(pen, '"');
    for (size_t i = 0; i < value.n; i++) {
        unsigned char c = (unsigned char)value.p[i];

        if (c == '"' || c == '\\')
            pen_byte(pen, '\\');
        if (c >= 0x20) {
            pen_byte(pen, value.p[i]);
        } else {
            (void)snprintf(escape, sizeof escape, "\\u%04x", c);
            pen_put(pen, str_of(escape));
        }
    }
    pen_byte(pen, '"');
}

/* Not base64_encode(): its buffer would leave copies behind as it grows. */
void pen_base64(struct pen *pen, struct str bytes)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < bytes.n; i += 3) {
        unsigned group = (unsigned)(unsigned char)bytes.p[i] << 16;

        if (i + 1 < bytes.n)
            group |= (unsigned)(unsigned char)bytes.p[i + 1] << 8;
        if (i + 2 < bytes.n)
            group |= (unsigned char)bytes.p[i + 2];
        pen_byte(pen, letters[group >> 18]);
        pen_byte(pen, letters[group >> 12 & 63]);
        pen_byte(pen, (char)(i + 1 < bytes.n ? letters[group >> 6 & 63] : '='));
        pen_byte(pen, (char)(i + 2 < bytes.n ? letters[group & 63] : '='));
    }
}
