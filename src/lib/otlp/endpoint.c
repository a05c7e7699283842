/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/otlp/otlp.h"

#include "lib/base/limits.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* ---- addresses ---- */

bool otlp_url_is_plain(const char *url)
{
    return strncmp(url, "http://", 7) == 0;
}

/* As it is written; whether that is so is seen when it is dialled. */
static bool is_local(struct str host)
{
    if (str_starts(host, "["))
        return str_is(host, "[::1]") || str_starts(host, "[::1]:");
    host = str_cut(&host, ':');
    return str_is(host, "localhost") || str_starts(host, "127.");
}

int otlp_url_check(const char *url, bool plain_anywhere, struct err *err)
{
    bool plain = otlp_url_is_plain(url);
    struct str rest = str_of(url), host;

    if (!plain && !str_starts(rest, "https://"))
        return err_set(err, ERR_INVALID,
                       "the address of a collector begins with https:// or http://");
    if (rest.n > OTLP_URL_MAX)
        return err_set(err, ERR_LIMIT, "the address of a collector has more than %d bytes",
                       OTLP_URL_MAX);
    for (size_t i = 0; i < rest.n; i++)
        if (rest.p[i] <= ' ' || rest.p[i] >= 0x7f || strchr("@?#\\\"<>", rest.p[i]))
            return err_set(err, ERR_INVALID,
                           "the address of a collector has no user, query or fragment: what it "
                           "needs to know goes into OTEL_EXPORTER_OTLP_HEADERS");
    rest.p += plain ? 7 : 8;
    rest.n -= plain ? 7 : 8;
    host = str_cut(&rest, '/');
    if (host.n == 0 || host.p[0] == ':')
        return err_set(err, ERR_INVALID, "the address of a collector names no machine");
    if (plain && !plain_anywhere && !is_local(host))
        return err_set(err, ERR_FORBIDDEN,
                       "plain HTTP to \"" STR_FMT "\" would show everyone on the way what is run: "
                       "write https://, or allow it with --otlp-plain",
                       STR_ARG(host));
    return 0;
}

/* ---- headers ---- */

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_name(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!isalnum((unsigned char)name.p[i]) && !strchr("!#$%&'*+-.^_`|~", name.p[i]))
            return false;
    return name.n > 0;
}

/* What a request is framed by, or what it is, is ours to say. */
static bool is_ours(struct str name)
{
    static const char *const ours[] = {
        "content-length", "transfer-encoding", "content-type", "content-encoding",
        "host",           "connection",        "expect"};

    for (size_t i = 0; i < COUNT(ours); i++)
        if (name.n == strlen(ours[i]) && strncasecmp(name.p, ours[i], name.n) == 0)
            return true;
    return false;
}

static int decode(struct str value, struct buf *out, struct err *err)
{
    for (size_t i = 0; i < value.n; i++) {
        int byte = (unsigned char)value.p[i];

        if (byte == '%') {
            int high = value.n - i > 2 ? digit(value.p[i + 1]) : -1;
            int low = value.n - i > 2 ? digit(value.p[i + 2]) : -1;

            if (high < 0 || low < 0)
                return err_set(err, ERR_INVALID, "a header with a malformed escape");
            byte = high << 4 | low;
            i += 2;
        }
        if (byte < ' ' || byte == 0x7f)
            return err_set(err, ERR_INVALID, "a header with a control character");
        if (buf_add_byte(out, (char)byte, err) < 0)
            return -1;
    }
    return 0;
}

int otlp_headers_each(const char *text, otlp_header_visitor *visit, void *context, struct err *err)
{
    struct str rest = str_of(text);

    if (rest.n > OTLP_HEADERS_MAX)
        return err_set(err, ERR_LIMIT, "headers of more than %d bytes", OTLP_HEADERS_MAX);
    while (rest.n) {
        AUTO_BUF struct buf line = BUF(OTLP_HEADERS_MAX);
        struct str value = str_trim(str_cut(&rest, ','));
        struct str name;

        if (value.n == 0)
            continue;
        name = str_trim(str_cut(&value, '='));
        if (!is_name(name) || is_ours(name))
            return err_set(err, ERR_INVALID,
                           "a header without a name of its own: write NAME=VALUE,NAME=VALUE");
        if (buf_addf(&line, err, STR_FMT ": ", STR_ARG(name)) < 0 ||
            decode(str_trim(value), &line, err) < 0 || visit(context, buf_text(&line), err) < 0)
            return -1;
    }
    return 0;
}
