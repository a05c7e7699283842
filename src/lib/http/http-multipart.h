/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/http/http.h"

/* multipart/form-data (RFC 7578), as it arrives. Contents of parts come out as slices of what
 * goes in; only part heads are collected, up to HTTP_PART_HEAD_MAX. */
struct http_multipart {
    char delimiter[4 + HTTP_BOUNDARY_MAX + 1]; /* CR LF - - boundary */
    size_t delimiter_length;
    unsigned char state;
    size_t matched; /* of the delimiter, seen at the end of the last input */
    unsigned parts;
    enum http_fault fault;
    size_t head_length;
    char head[HTTP_PART_HEAD_MAX];
};

struct http_part {
    struct str name;
    struct str filename; /* NULL pointer when there was none */
    struct str type;     /* NULL pointer likewise */
};

enum http_multipart_event {
    HTTP_MULTIPART_MORE = 0,
    HTTP_MULTIPART_PART, /* *part is filled, valid until the next call */
    HTTP_MULTIPART_DATA, /* *data has a piece of its content */
    HTTP_MULTIPART_PART_END,
    HTTP_MULTIPART_END, /* the last delimiter; the rest is thrown away */
    HTTP_MULTIPART_REFUSED,
};

/* From the Content-Type header. -1 when it is another type or has no usable boundary. */
int http_multipart_init(struct http_multipart *m, struct str content_type) MUST_CHECK;
enum http_multipart_event http_multipart_next(struct http_multipart *m, struct str *in,
                                              struct http_part *part, struct str *data);
/* The body is over: -1 and m->fault when the last delimiter has not come. */
int http_multipart_close(struct http_multipart *m) MUST_CHECK;
