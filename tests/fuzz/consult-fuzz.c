/* SPDX-License-Identifier: Apache-2.0 */

/* Whatever a decider outside says is a word or refused with a sentence, and only "true" in the
 * right place is a yes. The first byte says which protocol. */

#include "fuzz.h"

#include "flow/consult/consult.h"
#include "model/external.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct external external = {.url = "http://127.0.0.1/"};
    struct str text;
    char reason[CONSULT_REASON_BYTES];
    enum consult_word word = CONSULT_NO;
    struct err err = {0};

    if (n == 0)
        return 0;
    text = (struct str){(const char *)data + 1, n - 1};
    external.protocol = data[0] & 1 ? EXTERNAL_AUTHZEN : EXTERNAL_OPA;
    if (consult_read(&external, text, &word, reason, &err) < 0) {
        if (!err.text[0] || word != CONSULT_NO)
            abort();
        return 0;
    }
    if (!memchr(reason, '\0', sizeof reason))
        abort();
    if (word != CONSULT_NO && !memmem(text.p, text.n, "true", 4))
        abort();
    return 0;
}
