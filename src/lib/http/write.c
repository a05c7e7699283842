/* SPDX-License-Identifier: Apache-2.0 */

/* Heads that we write. Nothing of a caller's can end a line or change the framing. */

#include "lib/http/http.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct {
    int status;
    const char *text;
} statuses[] = {
    {100, "Continue"                       },
    {101, "Switching Protocols"            },
    {200, "OK"                             },
    {201, "Created"                        },
    {202, "Accepted"                       },
    {204, "No Content"                     },
    {206, "Partial Content"                },
    {301, "Moved Permanently"              },
    {302, "Found"                          },
    {303, "See Other"                      },
    {304, "Not Modified"                   },
    {307, "Temporary Redirect"             },
    {308, "Permanent Redirect"             },
    {400, "Bad Request"                    },
    {401, "Unauthorized"                   },
    {402, "Payment Required"               },
    {403, "Forbidden"                      },
    {404, "Not Found"                      },
    {405, "Method Not Allowed"             },
    {406, "Not Acceptable"                 },
    {408, "Request Timeout"                },
    {409, "Conflict"                       },
    {410, "Gone"                           },
    {411, "Length Required"                },
    {412, "Precondition Failed"            },
    {413, "Content Too Large"              },
    {414, "URI Too Long"                   },
    {415, "Unsupported Media Type"         },
    {416, "Range Not Satisfiable"          },
    {417, "Expectation Failed"             },
    {421, "Misdirected Request"            },
    {422, "Unprocessable Content"          },
    {423, "Locked"                         },
    {424, "Failed Dependency"              },
    {425, "Too Early"                      },
    {426, "Upgrade Required"               },
    {428, "Precondition Required"          },
    {429, "Too Many Requests"              },
    {431, "Request Header Fields Too Large"},
    {451, "Unavailable For Legal Reasons"  },
    {500, "Internal Server Error"          },
    {501, "Not Implemented"                },
    {502, "Bad Gateway"                    },
    {503, "Service Unavailable"            },
    {504, "Gateway Timeout"                },
    {505, "HTTP Version Not Supported"     },
    {507, "Insufficient Storage"           },
};

const char *http_status_text(int status)
{
    for (size_t i = 0; i < COUNT(statuses); i++)
        if (statuses[i].status == status)
            return statuses[i].text;
    return "Unknown";
}

/* ---- dates ---- */

/* Not strftime: day and month names must not follow a locale. */
void http_date(int64_t unix_s, char out[HTTP_DATE_BYTES])
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t when = (time_t)unix_s;
    struct tm tm = {0};

    (void)gmtime_r(&when, &tm); /* fails only beyond the year 2^31 */
    (void)snprintf(out, HTTP_DATE_BYTES, "%s, %02u %s %04u %02u:%02u:%02u GMT", days[tm.tm_wday],
                   (unsigned)tm.tm_mday % 100U, months[tm.tm_mon],
                   (unsigned)(tm.tm_year + 1900) % 10000U, (unsigned)tm.tm_hour % 100U,
                   (unsigned)tm.tm_min % 100U, (unsigned)tm.tm_sec % 100U);
}

struct str http_date_now(void)
{
    static _Thread_local char text[HTTP_DATE_BYTES];
    static _Thread_local time_t last;
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now); /* cannot fail with this clock */
    if (now.tv_sec != last) {
        last = now.tv_sec;
        http_date(last, text);
    }
    return (struct str){text, HTTP_DATE_BYTES - 1};
}

/* ---- headers ---- */

static bool is_framing(struct str name)
{
    static const char *const ours[] = {"content-length", "transfer-encoding", "connection", "date",
                                       "keep-alive"};

    for (size_t i = 0; i < COUNT(ours); i++)
        if (http_name_is(name, ours[i]))
            return true;
    return false;
}

static int write_header(const struct http_header *h, struct buf *out, struct err *err)
{
    if (!http_is_token(h->name))
        return err_set(err, ERR_INVALID, "header name \"" STR_FMT "\" is not a token",
                       STR_ARG(h->name));
    if (!http_is_value(h->value))
        return err_set(err, ERR_INVALID, "the value of header " STR_FMT " contains a control byte",
                       STR_ARG(h->name));
    if (is_framing(h->name))
        return err_set(err, ERR_INVALID, "header " STR_FMT " is written by the server itself",
                       STR_ARG(h->name));
    if (buf_add_str(out, h->name, err) < 0 || buf_add(out, ": ", 2, err) < 0 ||
        buf_add_str(out, h->value, err) < 0)
        return -1;
    return buf_add(out, "\r\n", 2, err);
}

static int write_headers(const struct http_header *headers, size_t n, struct buf *out,
                         struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (write_header(&headers[i], out, err) < 0)
            return -1;
    return 0;
}

static size_t write_number(uint64_t n, char out[20])
{
    char digits[20];
    size_t i = 0;

    do {
        digits[i++] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    for (size_t j = 0; j < i; j++)
        out[j] = digits[i - 1 - j];
    return i;
}

static int write_length(uint64_t length, struct buf *out, struct err *err)
{
    char line[16 + 20 + 2] = "Content-Length: ";
    size_t n = 16 + write_number(length, line + 16);

    line[n++] = '\r';
    line[n++] = '\n';
    return buf_add(out, line, n, err);
}

static int write_framing(enum http_framing framing, uint64_t length, struct buf *out,
                         struct err *err)
{
    switch (framing) {
    case HTTP_LENGTH:
        return write_length(length, out, err);
    case HTTP_CHUNKED:
        return buf_add_str(out, STR_LIT("Transfer-Encoding: chunked\r\n"), err);
    case HTTP_NO_BODY:
    case HTTP_UNTIL_CLOSE:
        break;
    }
    return 0;
}

static int write_connection(bool close, bool upgrade, struct buf *out, struct err *err)
{
    if (upgrade)
        return buf_add_str(out, STR_LIT("Connection: Upgrade\r\n"), err);
    if (close)
        return buf_add_str(out, STR_LIT("Connection: close\r\n"), err);
    return 0;
}

static int write_status(int status, struct buf *out, struct err *err)
{
    if (status == 200)
        return buf_add_str(out, STR_LIT("HTTP/1.1 200 OK\r\nDate: "), err);
    if (status < 100 || status > 599)
        return err_set(err, ERR_INVALID, "status %d is not between 100 and 599", status);
    return buf_addf(out, err, "HTTP/1.1 %d %s\r\nDate: ", status, http_status_text(status));
}

/* Half a head must not stay in the buffer: the next answer would begin inside it. */
static int take_back(struct buf *out, size_t n)
{
    out->n = n;
    if (out->p != NULL)
        out->p[n] = '\0';
    return -1;
}

int http_reply_write(const struct http_reply *reply, struct buf *out, struct err *err)
{
    size_t before = out->n;

    if (write_status(reply->status, out, err) < 0 || buf_add_str(out, http_date_now(), err) < 0 ||
        buf_add(out, "\r\n", 2, err) < 0 ||
        write_framing(reply->framing, reply->length, out, err) < 0 ||
        write_connection(reply->close, reply->upgrade, out, err) < 0 ||
        write_headers(reply->headers, reply->header_count, out, err) < 0 ||
        buf_add(out, "\r\n", 2, err) < 0)
        return take_back(out, before);
    return 0;
}

static int write_request_line(const struct http_ask *ask, struct buf *out, struct err *err)
{
    if (!http_is_token(ask->method))
        return err_set(err, ERR_INVALID, "the method is not a token");
    if (ask->target.n == 0 || !http_is_value(ask->target) ||
        memchr(ask->target.p, ' ', ask->target.n) != NULL ||
        memchr(ask->target.p, '\t', ask->target.n) != NULL)
        return err_set(err, ERR_INVALID, "the target is empty or contains blanks or control bytes");
    if (!http_is_value(ask->host))
        return err_set(err, ERR_INVALID, "the host contains control bytes");
    return buf_addf(out, err, STR_FMT " " STR_FMT " HTTP/1.1\r\nHost: " STR_FMT "\r\n",
                    STR_ARG(ask->method), STR_ARG(ask->target), STR_ARG(ask->host));
}

int http_ask_write(const struct http_ask *ask, struct buf *out, struct err *err)
{
    size_t before = out->n;

    if (write_request_line(ask, out, err) < 0 ||
        write_framing(ask->framing, ask->length, out, err) < 0 ||
        write_connection(ask->close, ask->upgrade, out, err) < 0 ||
        write_headers(ask->headers, ask->header_count, out, err) < 0 ||
        buf_add(out, "\r\n", 2, err) < 0)
        return take_back(out, before);
    return 0;
}

int http_trailers_write(const struct http_header *trailers, size_t n, struct buf *out,
                        struct err *err)
{
    size_t before = out->n;

    if (buf_add(out, "0\r\n", 3, err) < 0 || write_headers(trailers, n, out, err) < 0 ||
        buf_add(out, "\r\n", 2, err) < 0)
        return take_back(out, before);
    return 0;
}

size_t http_chunk_head(uint64_t n, char out[HTTP_CHUNK_HEAD_BYTES])
{
    return (size_t)snprintf(out, HTTP_CHUNK_HEAD_BYTES, "%llx\r\n", (unsigned long long)n);
}
