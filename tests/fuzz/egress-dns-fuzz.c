/* SPDX-License-Identifier: Apache-2.0 */

/* Questions as a sandbox may send them: what is read is a name that a rule can be asked about, and
 * whatever was read can be answered within the room there is. */

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/egress/dns.h"

static void check_name(const struct dns_question *question)
{
    if (question->name_n >= DNS_NAME_BYTES || strlen(question->name) != question->name_n)
        abort();
    for (size_t i = 0; i < question->name_n; i++) {
        char c = question->name[i];

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.'))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const unsigned char address[4] = {198, 18, 1, 2};
    struct str message = {(const char *)bytes, n};
    char out[DNS_ANSWER_BYTES];
    struct dns_question question;
    enum dns_code code = DNS_OK;
    bool good = dns_question_read(message, &question, &code) == 0;
    size_t said;

    if (good)
        check_name(&question);
    if (!good && code == DNS_OK)
        return 0;
    said = dns_answer_write(&question, code, good ? address : NULL, 60, out);
    if (said < DNS_HEAD_BYTES || said > sizeof out)
        abort();
    /* Never a question itself: two of us cannot keep each other busy. */
    if (dns_question_read((struct str){out, said}, &question, &code) == 0 || code != DNS_OK)
        abort();
    return 0;
}
