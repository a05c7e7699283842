/* SPDX-License-Identifier: Apache-2.0 */

/* Placeholders, and the encodings they are found in. */

#include <string.h>
#include <strings.h>

#include "lib/base/text.h"
#include "lib/vault/use-parts.h"

#define OURS "${vault:"
#define OPENSHELL "openshell:resolve:env:"
#define ALIAS "-OPENSHELL-RESOLVE-ENV-"

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t word_length(struct str text)
{
    size_t n = 0;

    while (n < text.n && is_word(text.p[n]))
        n++;
    return n;
}

static struct str behind(struct str text, size_t n)
{
    return (struct str){text.p + n, text.n - n};
}

/* What stands behind "v12_" or "s<64 hex>_", which name revisions: it is the newest we give. */
static struct str without_revision(struct str name)
{
    size_t cut = 0;

    while (cut < name.n && name.p[cut] != '_')
        cut++;
    if (cut + 1 >= name.n || vault_is_name(name))
        return name;
    return behind(name, cut + 1);
}

static bool put_name(struct str name, char out[VAULT_NAME_BYTES])
{
    if (!vault_is_name(name))
        return false;
    memcpy(out, name.p, name.n);
    out[name.n] = '\0';
    return true;
}

static size_t read_ours(struct str text, char name[VAULT_NAME_BYTES])
{
    struct str rest = behind(text, sizeof OURS - 1);
    const char *end = memchr(rest.p, '}', rest.n);

    if (!end || !put_name((struct str){rest.p, (size_t)(end - rest.p)}, name))
        return 0;
    return (size_t)(end - text.p) + 1;
}

static size_t read_openshell(struct str text, size_t head, char name[VAULT_NAME_BYTES])
{
    struct str rest = behind(text, head);
    size_t n = word_length(rest);

    return put_name(without_revision((struct str){rest.p, n}), name) ? head + n : 0;
}

/* Bytes before "-OPENSHELL-…" that belong to the prefix, or SIZE_MAX. */
static size_t alias_prefix(struct str text)
{
    size_t n = 0;

    while (n < text.n && (is_word(text.p[n]) || text.p[n] == '-')) {
        if (str_starts(behind(text, n), ALIAS))
            return n;
        n++;
    }
    return SIZE_MAX;
}

static size_t read_any(struct str text, char name[VAULT_NAME_BYTES])
{
    size_t prefix;

    if (str_starts(text, OURS))
        return read_ours(text, name);
    if (str_starts(text, OPENSHELL))
        return read_openshell(text, sizeof OPENSHELL - 1, name);
    prefix = alias_prefix(text);
    return prefix == SIZE_MAX ? 0 : read_openshell(text, prefix + sizeof ALIAS - 1, name);
}

bool placeholder_read(struct str text, char name[VAULT_NAME_BYTES])
{
    return text.n && read_any(text, name) == text.n;
}

size_t placeholder_length(struct str text)
{
    char name[VAULT_NAME_BYTES];

    return read_any(text, name);
}

enum vault_fault placeholder_fault(struct str text)
{
    bool begins = str_starts(text, OURS) || str_starts(text, OPENSHELL);

    return begins && placeholder_length(text) == 0 ? VAULT_FAULT_MALFORMED : VAULT_FAULT_MISPLACED;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int percent_decode(struct str raw, char out[DECODED_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < raw.n; i++) {
        char c = (char)(raw.p[i] == '+' ? ' ' : raw.p[i]);

        if (c == '%') {
            int high = i + 2 < raw.n ? hex_digit(raw.p[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(raw.p[i + 2]) : -1;

            if (low < 0)
                return -1;
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (n == DECODED_MAX)
            return -1;
        out[n++] = c;
    }
    return (int)n;
}

bool is_basic(struct str value)
{
    return value.n > 6 && strncasecmp(value.p, "basic ", 6) == 0;
}

/* The colon that divides them: the first that is not a placeholder's. */
static bool split_pair(struct str pair, struct basic *out)
{
    size_t user = placeholder_length(pair);

    if (user == 0 || user == pair.n || pair.p[user] != ':') {
        const char *colon = memchr(pair.p, ':', pair.n);

        if (!colon)
            return false;
        user = (size_t)(colon - pair.p);
    }
    out->user = (struct str){pair.p, user};
    out->password = behind(pair, user + 1);
    return true;
}

bool basic_read(struct str value, struct basic *out)
{
    struct str text;
    size_t n;

    if (!is_basic(value))
        return false;
    out->at = 6;
    while (out->at < value.n && value.p[out->at] == ' ')
        out->at++;
    text = behind(value, out->at);
    if (text.n / 4 * 3 > sizeof out->bytes || !base64_decode(text, out->bytes, &n))
        return false;
    return split_pair((struct str){out->bytes, n}, out);
}
