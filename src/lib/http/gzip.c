/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/http/http-gzip.h"

#include <errno.h>
#include <unistd.h>
#include <zlib.h>

#include "lib/base/io.h"
#include "lib/base/memory.h"

#define PIECE_BYTES (16 * KIB)
#define GZIP_WINDOW (15 + 16) /* the largest window, gzip's header and nothing else */

struct http_gunzip {
    z_stream z;
    uint64_t taken;
    uint64_t given;
    uint64_t max;
    bool ended;
    enum http_fault fault;
    unsigned char piece[PIECE_BYTES];
};

struct http_gunzip *http_gunzip_new(uint64_t max)
{
    struct http_gunzip *z = xmalloc(sizeof(*z));

    z->z = (z_stream){0};
    z->taken = z->given = 0;
    z->max = max;
    z->ended = false;
    /* Only fails without memory, or with another zlib than we were built with. */
    z->fault = inflateInit2(&z->z, GZIP_WINDOW) == Z_OK ? HTTP_NO_FAULT : HTTP_FAULT_GZIP;
    return z;
}

void http_gunzip_free(struct http_gunzip *z)
{
    if (z == NULL)
        return;
    (void)inflateEnd(&z->z); /* says only that the stream was not finished */
    free(z);
}

static enum http_body_event refuse(struct http_gunzip *z, enum http_fault why,
                                   enum http_fault *fault)
{
    z->fault = *fault = why;
    return HTTP_BODY_REFUSED;
}

static bool is_too_large(const struct http_gunzip *z)
{
    return z->given > z->max ||
           (z->given > HTTP_GZIP_RATIO_FREE && z->given / HTTP_GZIP_RATIO_MAX > z->taken);
}

/* One step of the decompressor: input it took is cut off *in. */
static int inflate_some(struct http_gunzip *z, struct str *in, size_t *made)
{
    uInt offered = in->n > UINT32_MAX ? UINT32_MAX : (uInt)in->n;
    int answer;

    z->z.next_in = (Bytef *)(uintptr_t)in->p; /* zlib does not write there */
    z->z.avail_in = offered;
    z->z.next_out = z->piece;
    z->z.avail_out = PIECE_BYTES;
    answer = inflate(&z->z, Z_NO_FLUSH);
    z->taken += offered - z->z.avail_in;
    in->p += offered - z->z.avail_in;
    in->n -= offered - z->z.avail_in;
    *made = PIECE_BYTES - z->z.avail_out;
    z->given += *made;
    return answer;
}

enum http_body_event http_gunzip_next(struct http_gunzip *z, struct str *in, struct str *out,
                                      enum http_fault *fault)
{
    size_t made = 0;
    int answer;

    if (z->fault != HTTP_NO_FAULT)
        return refuse(z, z->fault, fault);
    if (z->ended)
        return in->n > 0 ? refuse(z, HTTP_FAULT_GZIP, fault) : HTTP_BODY_END;
    answer = inflate_some(z, in, &made);
    if (is_too_large(z))
        return refuse(z, HTTP_FAULT_GZIP_TOO_LARGE, fault);
    if (answer != Z_OK && answer != Z_STREAM_END && answer != Z_BUF_ERROR)
        return refuse(z, HTTP_FAULT_GZIP, fault);
    z->ended = answer == Z_STREAM_END;
    *out = (struct str){(const char *)z->piece, made};
    if (made > 0)
        return HTTP_BODY_DATA;
    if (z->ended)
        return in->n > 0 ? refuse(z, HTTP_FAULT_GZIP, fault) : HTTP_BODY_END;
    return HTTP_BODY_MORE;
}

int http_gunzip_end(const struct http_gunzip *z, enum http_fault *fault)
{
    if (z->fault == HTTP_NO_FAULT && z->ended)
        return 0;
    *fault = z->fault != HTTP_NO_FAULT ? z->fault : HTTP_FAULT_GZIP;
    return -1;
}

/* ---- the other way ---- */

/* What the compressor has, after this input. */
static int deflate_all(z_stream *z, int flush, int to, struct err *err)
{
    unsigned char piece[PIECE_BYTES];

    do {
        z->next_out = piece;
        z->avail_out = sizeof piece;
        if (deflate(z, flush) == Z_STREAM_ERROR)
            return err_set(err, ERR_INTERNAL, "compressing");
        if (write_all(to, piece, sizeof piece - z->avail_out, err) < 0)
            return -1;
    } while (z->avail_out == 0);
    return 0;
}

static int deflate_fd(z_stream *z, int from, int to, struct err *err)
{
    unsigned char piece[PIECE_BYTES];
    ssize_t n;

    do {
        n = read(from, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_os(err, "reading what is to be compressed");
        z->next_in = piece;
        z->avail_in = (uInt)n;
        if (deflate_all(z, n ? Z_NO_FLUSH : Z_FINISH, to, err) < 0)
            return -1;
    } while (n != 0);
    return 0;
}

int http_gzip_fd(int from, int to, struct err *err)
{
    z_stream z = {0};
    int failed;

    /* Without a head of our own zlib writes one that has no time and no name. */
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return err_set(err, ERR_INTERNAL, "no compressor");
    failed = deflate_fd(&z, from, to, err);
    (void)deflateEnd(&z);
    return failed;
}
