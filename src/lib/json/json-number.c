/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/json-private.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Numbers as RFC 8785 wants them: the double nearest to the text, printed with the fewest digits
 * that read back as the same double, laid out like ECMAScript's Number::toString.
 *
 * Formatting and reading rely on the C locale's decimal point: no program of ours calls
 * setlocale(). */

/* digits × 10^exponent; at most 17 digits. */
struct decimal {
    uint64_t digits;
    int exponent;
};

static bool read_double(struct str number, double *out)
{
    AUTO_FREE char *long_copy = NULL;
    char short_copy[64];
    char *copy = short_copy;
    char *end;

    if (number.n == 0)
        return false;
    if (number.n >= sizeof short_copy)
        copy = long_copy = xmalloc(number.n + 1);
    memcpy(copy, number.p, number.n);
    copy[number.n] = '\0';
    *out = strtod(copy, &end);
    return end == copy + number.n && isfinite(*out);
}

bool json_number_is_finite(struct str number)
{
    double value;

    return read_double(number, &value);
}

static bool reads_back(struct decimal d, double value)
{
    char text[JSON_NUMBER_BYTES];

    (void)snprintf(text, sizeof text, "%" PRIu64 "e%d", d.digits, d.exponent);
    return strtod(text, NULL) == value;
}

/* The decimal of this many digits nearest to the value. */
static struct decimal nearest(double value, int digits)
{
    char text[JSON_NUMBER_BYTES];
    char *exponent;
    struct decimal d;

    (void)snprintf(text, sizeof text, "%.*e", digits - 1, value);
    exponent = strchr(text, 'e');
    d.exponent = (int)strtol(exponent + 1, NULL, 10) - (digits - 1);
    *exponent = '\0';
    if (digits > 1)
        memmove(text + 1, text + 2, strlen(text + 2) + 1); /* the decimal point */
    d.digits = strtoull(text, NULL, 10);
    return d;
}

/* At a power of two the doubles below lie twice as close as those above. The nearest decimal can
 * then miss on the narrow side while its neighbour on the wide side hits, so both neighbours are
 * tried before a digit is added. */
static bool try_digits(double value, int digits, struct decimal *out)
{
    static const int steps[] = {0, 1, -1};
    struct decimal found = nearest(value, digits);

    for (size_t i = 0; i < COUNT(steps); i++) {
        struct decimal d = {found.digits + (uint64_t)(int64_t)steps[i], found.exponent};

        if (reads_back(d, value)) {
            *out = d;
            return true;
        }
    }
    return false;
}

/* A decimal of up to 15 digits survives the way into a double and back, so when any such decimal
 * reads back as this double, the nearest one of 15 digits is it with zeros behind. Only close to
 * the subnormal numbers, which have fewer digits, does the search start from one. */
static struct decimal shortest(double value)
{
    struct decimal d = {0, 0};
    int digits = value < DBL_MIN * 16 ? 1 : DBL_DIG;

    while (!try_digits(value, digits, &d) && digits < DBL_DECIMAL_DIG)
        digits++;
    while (d.digits && d.digits % 10 == 0) {
        d.digits /= 10;
        d.exponent++;
    }
    return d;
}

/* ECMA-262, Number::toString: n digits, the decimal point behind the first `point` of them. */
static void lay_out(struct decimal d, const char *sign, char *out)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, d.digits);
    int point = n + d.exponent;
    const size_t room = JSON_NUMBER_BYTES;

    if (n <= point && point <= 21)
        (void)snprintf(out, room, "%s%s%.*s", sign, digits, point - n, "000000000000000000000");
    else if (0 < point && point <= 21)
        (void)snprintf(out, room, "%s%.*s.%s", sign, point, digits, digits + point);
    else if (-6 < point && point <= 0)
        (void)snprintf(out, room, "%s0.%.*s%s", sign, -point, "000000", digits);
    else
        (void)snprintf(out, room, "%s%c%s%se%+d", sign, digits[0], n > 1 ? "." : "", digits + 1,
                       point - 1);
}

int json_number_canonical(struct str number, char out[JSON_NUMBER_BYTES], struct err *err)
{
    double value;

    if (!read_double(number, &value))
        return err_set(err, ERR_INVALID, "number %.*s%s is outside the range of a double",
                       (int)(number.n < 40 ? number.n : 40), number.p, number.n > 40 ? "..." : "");
    if (fpclassify(value) == FP_ZERO)
        (void)snprintf(out, JSON_NUMBER_BYTES, "0"); /* also for -0 */
    else
        lay_out(shortest(fabs(value)), value < 0 ? "-" : "", out);
    return 0;
}
