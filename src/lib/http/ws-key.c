/* SPDX-License-Identifier: Apache-2.0 */

/* The low-level functions: EVP would bring half of OpenSSL into a command line that is linked
 * statically (decision 0002). */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "lib/http/http-ws-frame.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"

void http_ws_accept_key(struct str key, char out[HTTP_WS_ACCEPT_BYTES])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    AUTO_BUF struct buf text = BUF(HTTP_WS_ACCEPT_BYTES);
    unsigned char hash[SHA_DIGEST_LENGTH];
    struct err err;
    SHA_CTX context;

    if (!SHA1_Init(&context) || !SHA1_Update(&context, key.p, key.n) ||
        !SHA1_Update(&context, guid, sizeof guid - 1) || !SHA1_Final(hash, &context) ||
        base64_encode((struct str){(const char *)hash, sizeof hash}, &text, &err) < 0)
        abort(); /* none of these can fail: the sizes are fixed */
    memcpy(out, text.p, text.n + 1);
}
