/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as an export, as a signed head and as a public key: judged without harm, and never
 * called good beyond what the key of the vectors has signed. */

#include "fuzz.h"

#include "flow/record/record.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of tests/vectors/receipt: it has signed five receipts and one head, and will sign no more. */
static const char vector_key[] = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";
#define VECTOR_RECEIPTS 5

static void check(bool promise)
{
    if (!promise)
        abort();
}

static void check_report(const struct record_report *r, bool part)
{
    check(r->entries <= VECTOR_RECEIPTS);
    check((r->integrity == INTEGRITY_INTACT) ==
          (r->fault == FAULT_NONE || r->fault == FAULT_TRUNCATED));
    check((r->integrity == INTEGRITY_TORN) == (r->fault == FAULT_TORN));
    check((r->fault == FAULT_NONE) == (r->fault_text[0] == '\0'));
    check(r->completeness == COMPLETENESS_NOT_PROVEN); /* no head was given */
    check(part || r->entries == r->last_seq);
    check(memchr(r->fault_text, '\0', sizeof r->fault_text) != NULL);
}

static void verify(const struct record_trust *trust, const uint8_t *bytes, size_t n, bool part)
{
    AUTO_FD int fd = memfd_create("export", MFD_CLOEXEC);
    struct record_check how = {.trust = trust, .part = part};
    struct record_report report;
    struct err err;

    check(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && lseek(fd, 0, SEEK_SET) == 0);
    check(record_verify_fd(fd, &how, &report, &err) == 0);
    check_report(&report, part);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const struct str text = {(const char *)bytes, n};
    struct record_trust trust = {.why = "the vectors"};
    struct record_head head = {.seq = UINT64_MAX};
    struct public_key key;
    struct err err;

    check(public_key_read(str_of(vector_key), &trust.key, &err) == 0);
    verify(&trust, bytes, n, false);
    verify(&trust, bytes, n, true);
    if (record_head_read(text, &trust, &head, &err) == 0)
        check(head.seq == VECTOR_RECEIPTS);
    else
        check(head.seq == UINT64_MAX && err.text[0]);
    if (public_key_read(text, &key, &err) < 0)
        check(err.code == ERR_INVALID);
    return 0;
}
