/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/base/buf.h"
#include "lib/http/http-limits.h"

/* HTTP/1.1 as bytes: heads, framing, paths, answers. No input or output, no allocation, nothing
 * kept but what the structs show; http-server.h puts it on sockets.
 *
 * Strict on purpose. Whatever two readers could understand differently is a fault, and a fault
 * in the framing ends the connection: bare LF, folded lines, blanks before a colon, more than one
 * length, a length and a coding, any coding but "chunked", a second Host. The verdict never
 * depends on how the bytes were cut into reads. */

/* Why a message was refused, and the answer it gets:
 *    id                   name in reason codes      status  sentence */
#define HTTP_FAULTS(X)                                                                             \
    X(HEAD_TOO_LARGE, "head_too_large", 431, "the request head is too large")                      \
    X(TOO_MANY_HEADERS, "too_many_headers", 431, "too many headers")                               \
    X(START_LINE_TOO_LONG, "start_line_too_long", 414, "the request line is too long")             \
    X(START_LINE, "start_line", 400, "malformed first line")                                       \
    X(METHOD, "method", 400, "malformed method")                                                   \
    X(TARGET, "target", 400, "malformed request target")                                           \
    X(TARGET_FORM, "target_form", 400, "this form of target does not go with this method")         \
    X(VERSION, "version", 505, "only HTTP/1.1 and HTTP/1.0 are spoken here")                       \
    X(BARE_LF, "bare_lf", 400, "a line ends without a carriage return")                            \
    X(FOLDED_HEADER, "folded_header", 400, "a header continues on the next line")                  \
    X(HEADER_NAME, "header_name", 400, "malformed header name")                                    \
    X(HEADER_VALUE, "header_value", 400, "control byte in a header value")                         \
    X(DUPLICATE_HEADER, "duplicate_header", 400, "a header that may come once came twice")         \
    X(HOST, "host", 400, "missing, empty or malformed Host")                                       \
    X(HOST_MISMATCH, "host_mismatch", 400, "Host differs from the host in the target")             \
    X(LENGTH, "length", 400, "malformed Content-Length")                                           \
    X(LENGTH_AND_CODING, "length_and_coding", 400, "both Content-Length and Transfer-Encoding")    \
    X(CODING, "coding", 400, "a transfer coding other than chunked alone")                         \
    X(EXPECTATION, "expectation", 417, "only 100-continue can be expected")                        \
    X(CHUNK_SIZE, "chunk_size", 400, "malformed chunk size")                                       \
    X(CHUNK_LINE_TOO_LONG, "chunk_line_too_long", 400, "a chunk's first line is too long")         \
    X(CHUNK_END, "chunk_end", 400, "a chunk does not end where its size says")                     \
    X(TRAILER, "trailer", 400, "malformed or forbidden trailer")                                   \
    X(TRAILERS_TOO_LARGE, "trailers_too_large", 400, "too many trailers")                          \
    X(BODY_TOO_LARGE, "body_too_large", 413, "the request body is larger than this route takes")   \
    X(BODY_TIMEOUT, "body_timeout", 408, "the request body stopped arriving")                      \
    X(HEAD_TIMEOUT, "head_timeout", 408, "the request head did not arrive in time")                \
    X(PATH_ESCAPE, "path_escape", 400, "malformed or forbidden percent escape in the path")        \
    X(PATH_DOTS, "path_dots", 400, "the path contains . or .. segments")                           \
    X(PATH_EMPTY, "path_empty", 400, "the path contains an empty segment")                         \
    X(PATH_TOO_DEEP, "path_too_deep", 414, "the path has too many segments")                       \
    X(ENCODING, "encoding", 415, "only gzip is understood as content encoding")                    \
    X(GZIP, "gzip", 400, "the body is not well-formed gzip")                                       \
    X(GZIP_TOO_LARGE, "gzip_too_large", 413, "the body becomes too large when decompressed")       \
    X(MULTIPART, "multipart", 400, "malformed multipart body")                                     \
    X(MULTIPART_TOO_LARGE, "multipart_too_large", 413, "too many or too large parts or names")     \
    X(BODY_ENDED_EARLY, "body_ended_early", 400, "the body ended before its framing said so")      \
    X(TOO_MANY_CONNECTIONS, "too_many_connections", 503, "too many connections; try again later")  \
    X(STOPPING, "stopping", 503, "the server is stopping")                                         \
    X(UPGRADE, "upgrade", 400, "malformed WebSocket handshake")                                    \
    X(UPGRADE_VERSION, "upgrade_version", 426, "only WebSocket version 13 is spoken here")

enum http_fault {
    HTTP_NO_FAULT = 0,
#define X(id, name, status, text) HTTP_FAULT_##id,
    HTTP_FAULTS(X)
#undef X
};

const char *http_fault_name(enum http_fault fault); /* "bare_lf" */
const char *http_fault_text(enum http_fault fault);
int http_fault_status(enum http_fault fault);

/* ---- heads ---- */

struct http_header {
    struct str name;
    struct str value;
};

enum http_method {
    HTTP_OTHER_METHOD = 0, /* a token; the struct has its text */
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_PATCH,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_CONNECT,
    HTTP_TRACE,
};

enum http_target_form {
    HTTP_ORIGIN,    /* /path?query */
    HTTP_ABSOLUTE,  /* http://host/path?query; a proxy's, accepted when Host says the same */
    HTTP_AUTHORITY, /* host:port, with CONNECT only */
    HTTP_ASTERISK,  /* *, with OPTIONS only */
};

enum http_framing {
    HTTP_NO_BODY = 0,
    HTTP_LENGTH,
    HTTP_CHUNKED,
    HTTP_UNTIL_CLOSE, /* answers only */
};

/* One head, as slices of the bytes it was read from. */
struct http_head {
    struct http_header headers[HTTP_HEADERS_MAX];
    size_t header_count;
    unsigned minor; /* of HTTP/1.x */
    enum http_framing framing;
    uint64_t length;  /* with HTTP_LENGTH */
    bool keep_alive;  /* the sender goes on after this message */
    bool has_upgrade; /* "upgrade" in Connection, and an Upgrade header */

    /* of a request */
    enum http_method method;
    struct str method_text;
    enum http_target_form form;
    struct str target;    /* byte for byte as sent */
    struct str scheme;    /* absolute form */
    struct str authority; /* absolute and authority form */
    struct str path;      /* as sent, not decoded; begins with '/' except in "*" and CONNECT */
    struct str query;     /* behind the '?', as sent */
    struct str host;      /* Host as sent: name or address, maybe ":port"; empty only in 1.0 */
    bool expects_continue;

    /* of an answer */
    int status;
    struct str reason;
};

/* How far a head has been looked through; all zero before the first byte. */
struct http_scan {
    size_t at;
    size_t line;
    unsigned lines;
    enum http_fault fault;
};

/* Reads a head from the start of `in`, which holds everything received so far. Returns the bytes
 * the head takes (then *out is filled, slices of in), 0 when it is not complete, -1 when it is
 * refused (scan->fault says why). Call again with the same scan and more bytes. */
int http_request_read(struct http_scan *scan, struct str in, struct http_head *out) MUST_CHECK;

/* The same for an answer; its framing depends on the method of the request. */
int http_answer_read(struct http_scan *scan, struct str in, enum http_method asked,
                     struct http_head *out) MUST_CHECK;

/* The first header of that name (lower case), or one with a NULL pointer. Of the headers that
 * decide something (Host, Authorization, Content-Type, ...) there is never a second. */
struct str http_find(const struct http_head *head, const char *name);
/* Walks all headers of that name; *at starts at 0. False when there are no more. */
bool http_find_next(const struct http_head *head, const char *name, size_t *at, struct str *out);
/* Whether a comma separated list contains the token, in any case: Connection, Accept-Encoding. */
bool http_list_has(struct str list, const char *token);
bool http_name_is(struct str name, const char *lower);
bool http_is_token(struct str s);
bool http_is_trailer(struct str name); /* whether it may stand behind a body */
bool http_is_value(struct str s);      /* no control bytes but tab: nothing that ends a line */

/* ---- targets ---- */

/* Cuts a path ("/v1/files/a%20b") into decoded segments, written behind each other into
 * `memory`, which needs path.n bytes. A trailing slash gives a last empty segment. Returns how
 * many, or -1 and *fault: escapes that are malformed or hide a NUL or a slash, empty segments,
 * "." and "..", escaped or not: whoever judges a path and whoever opens it must not differ. */
int http_path_split(struct str path, char *memory, struct str out[HTTP_PATH_SEGMENTS_MAX],
                    enum http_fault *fault) MUST_CHECK;

/* The next name and value of a query, decoded ('+' is a blank) into memory, which needs rest->n
 * bytes and stays the owner. 1 when there was one, 0 at the end, -1 for a malformed escape. */
int http_query_next(struct str *rest, char *memory, struct http_header *out) MUST_CHECK;

/* ---- bodies ---- */

/* Undoes the framing of one body. The payload comes out as slices of what goes in. */
struct http_body {
    enum http_framing framing;
    unsigned char state;
    unsigned char digits;
    unsigned char name_length;
    unsigned char trailer_count;
    unsigned line; /* bytes of the chunk line or of all trailers */
    uint64_t left; /* of the length or the chunk */
    uint64_t total;
    uint64_t max;
    enum http_fault fault;
    char name[32];
};

enum http_body_event {
    HTTP_BODY_MORE = 0, /* everything taken, the body goes on */
    HTTP_BODY_DATA,     /* *out has a piece; call again */
    HTTP_BODY_END,      /* over; what is left in *in belongs to the next message */
    HTTP_BODY_REFUSED,  /* body->fault says why; the connection cannot be used any more */
};

/* A length above max is refused at the first call of http_body_next. */
void http_body_init(struct http_body *body, const struct http_head *head, uint64_t max);
enum http_body_event http_body_next(struct http_body *body, struct str *in, struct str *out);
/* The other side closed: 0 when the body may end so, -1 and body->fault when it is cut off. */
int http_body_close(struct http_body *body) MUST_CHECK;

/* ---- answers ---- */

struct http_reply {
    int status;
    const struct http_header *headers; /* not those of the framing: they come from below */
    size_t header_count;
    enum http_framing framing;
    uint64_t length;
    bool close;   /* "Connection: close" */
    bool upgrade; /* "Connection: Upgrade"; the Upgrade header is the caller's */
};

/* Appends status line and headers. Refuses names that are no tokens, values with control bytes,
 * and headers that belong to the framing: Content-Length, Transfer-Encoding, Connection, Date. */
int http_reply_write(const struct http_reply *reply, struct buf *out, struct err *err) MUST_CHECK;

/* The line before a chunk of n > 0 bytes; "\r\n" follows them. The end is HTTP_LAST_CHUNK. */
#define HTTP_CHUNK_HEAD_BYTES 20
size_t http_chunk_head(uint64_t n, char out[HTTP_CHUNK_HEAD_BYTES]);
#define HTTP_LAST_CHUNK "0\r\n\r\n"
/* The end with fields behind it; refuses what http_reply_write() refuses. */
int http_trailers_write(const struct http_header *trailers, size_t n, struct buf *out,
                        struct err *err) MUST_CHECK;
#define HTTP_CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"

const char *http_status_text(int status); /* "Not Found" */

/* "Sun, 06 Nov 1994 08:49:37 GMT", 29 bytes; of now from a cache that turns each second. */
#define HTTP_DATE_BYTES 30
void http_date(int64_t unix_s, char out[HTTP_DATE_BYTES]);
struct str http_date_now(void);

/* A request's head, for our own clients: method and target are checked like headers are. Host
 * comes first; the framing is the caller's word. */
struct http_ask {
    struct str method;
    struct str target;
    struct str host;
    const struct http_header *headers;
    size_t header_count;
    enum http_framing framing;
    uint64_t length;
    bool close;
    bool upgrade; /* "Connection: Upgrade"; the Upgrade header is the caller's */
};
int http_ask_write(const struct http_ask *ask, struct buf *out, struct err *err) MUST_CHECK;

/* ---- ranges ---- */

enum http_range_kind {
    HTTP_RANGE_WHOLE = 0,   /* none asked, or one we need not understand: 200 */
    HTTP_RANGE_PART,        /* 206 */
    HTTP_RANGE_UNSATISFIED, /* 416 */
};

struct http_range {
    enum http_range_kind kind;
    uint64_t first;
    uint64_t length;
};

/* One range of bytes of something size bytes long; value is the Range header, maybe empty. */
struct http_range http_range_of(struct str value, uint64_t size);
/* The Content-Range that goes with 206 and 416. */
#define HTTP_CONTENT_RANGE_BYTES 80
struct str http_content_range(const struct http_range *range, uint64_t size,
                              char out[HTTP_CONTENT_RANGE_BYTES]);

/* ---- server-sent events ---- */

/* Appends one event. Empty name or id are left out; data may have several lines. Names and ids
 * with line ends or NUL are refused, since they would become fields of their own. */
int http_sse_write(struct str event, struct str id, struct str data, struct buf *out,
                   struct err *err) MUST_CHECK;
#define HTTP_SSE_TYPE "text/event-stream; charset=utf-8"
#define HTTP_SSE_BEAT ":\n\n" /* a comment: keeps the way open */
