/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where a secret goes in a request, and what of it comes back.
 *
 * A sandbox writes a placeholder where a secret belongs:
 *
 *     ${vault:NAME}                        ours
 *     openshell:resolve:env:NAME           OpenShell's; also with a revision before the name
 *     prefix-OPENSHELL-RESOLVE-ENV-NAME    the same for clients that look at a token's shape
 *
 * vault_find() says which secrets a request asks for and in which slots; a placeholder anywhere
 * else, a second one in the same place, or one that is only partly there is a fault, and the
 * request is refused. vault_fill() writes values into exactly those slots. A scrub takes a value
 * out of what comes back. All of it works on memory and knows no socket and no file.
 *
 * Order for whoever forwards requests (H02, H03, H04, H07):
 *
 *     vault_find       before anything is sent; no uses: vault_find_own() with the bound slots
 *     …                the rule allows, the address is checked
 *     keeper vault     REVEAL for each use (keeper-wire.h); it checks the binding
 *     vault_fill       and send
 *     scrub            every head and body that comes back over that connection
 *
 * A body that is forwarded without being held is fed to a vault_scan instead: it has no slots, so
 * one hit is a fault. */

#include "lib/http/http.h"
#include "lib/vault/vault-slot.h"

#define VAULT_USES_MAX 4            /* in one request */
#define VAULT_SCRUB_MAX 8           /* looked for in one answer: what a connection has carried */
#define VAULT_BODY_MAX (256 * 1024) /* a body that is held to be filled in */
#define VAULT_MARKERS 9

/* Why a request with placeholders goes nowhere:
 *    id                 reason code */
#define VAULT_FAULTS(X)                                                                            \
    X(MISPLACED, "VAULT_PLACEHOLDER_MISPLACED",                                                    \
      "a placeholder stands where no secret can go; it belongs into a header, a field of the "     \
      "query or the body, or Basic's user or password, and is all of it; never into a path or "    \
      "a cookie")                                                                                  \
    X(MALFORMED, "VAULT_PLACEHOLDER_MALFORMED", "something begins like a placeholder and is none") \
    X(TOO_MANY, "VAULT_TOO_MANY", "more placeholders than one request may have")                   \
    X(SECOND, "VAULT_SECOND_CREDENTIAL",                                                           \
      "a credential of the sandbox's own (a header, a cookie) stands beside or instead of the "    \
      "vault's")                                                                                   \
    X(BODY, "VAULT_BODY_UNREADABLE",                                                               \
      "a placeholder in a body that is too large, encoded, or neither JSON nor a form")            \
    X(SIGNATURE, "VAULT_SIGNATURE_UNREADABLE",                                                     \
      "a signature that cannot be made anew: it needs x-amz-date, sorted signed headers with "     \
      "host among them, and no signed chunks")                                                     \
    X(UNFIT, "VAULT_VALUE_UNFIT", "the secret has bytes that cannot stand in its slot")            \
    X(ENCODED_ANSWER, "VAULT_ANSWER_ENCODED",                                                      \
      "the answer is compressed, so a secret in it would not be seen")

enum vault_fault {
    VAULT_NO_FAULT = 0,
#define X(id, code, text) VAULT_FAULT_##id,
    VAULT_FAULTS(X)
#undef X
};

const char *vault_fault_code(enum vault_fault fault);
const char *vault_fault_text(enum vault_fault fault);

/* ---- placeholders ---- */

/* A request as its sender means it: framing undone, headers one by one (of HTTP/2 without those
 * that begin with a colon). Nothing of it is changed. */
struct vault_request {
    struct str method;
    struct str target; /* "/path?query", byte for byte */
    const struct http_header *headers;
    size_t header_count;
    struct str body; /* whole, or empty: then the caller scans what it forwards */
    bool has_more;   /* it has a body, which is not here */
    struct str host; /* as it is sent; headers need not have it */
};

struct vault_use {
    struct vault_slot slot;
    char name[VAULT_NAME_BYTES];
    size_t header; /* of VAULT_HEADER and basic: which one */
    size_t at, n;  /* the bytes to be replaced: in the header's value, the target or the body */
};

struct vault_uses {
    size_t n;
    struct vault_use v[VAULT_USES_MAX];
};

/* VAULT_NO_FAULT and the uses, in order of appearance; no uses: nothing there looks like one. */
enum vault_fault vault_find(const struct vault_request *request, struct vault_uses *out) MUST_CHECK;

/* For a request to an endpoint where secrets are bound to these slots: VAULT_FAULT_SECOND when
 * the sandbox put something of its own into one of them (H07). */
enum vault_fault vault_find_own(const struct vault_request *request, const struct vault_uses *uses,
                                const struct vault_slot *bound, size_t bound_n) MUST_CHECK;

/* Looks for the beginning of a placeholder in bytes that come piece by piece: plain, percent
 * encoded (also twice), JSON escaped, base64. All zero before the first piece. */
struct vault_scan {
    struct vault_scan_way {
        unsigned char percent[2][3]; /* how many bytes of an escape are held, and which */
        unsigned char escape[6];
        unsigned char matched[VAULT_MARKERS];
        bool busy; /* something is held or begun */
        unsigned hits;
    } ways[2]; /* percent before JSON, and the other way round */
};
/* How many were found in all so far. */
unsigned vault_scan_feed(struct vault_scan *scan, struct str bytes);

/* ---- values ---- */

/* What a signed request says of its body. One that says nothing can be signed anew only with the
 * body at hand. */
enum vault_payload {
    VAULT_PAYLOAD_UNSAID = 0,
    VAULT_PAYLOAD_HASHED,
    VAULT_PAYLOAD_UNSIGNED,
};
enum vault_payload vault_payload(const struct vault_request *request);

/* What of a value nobody may see, in at most VAULT_SECRET_PARTS pieces. */
#define VAULT_SECRET_PARTS 2
size_t vault_use_secrets(const struct vault_use *use, struct str value,
                         struct str out[VAULT_SECRET_PARTS]);

/* What is sent instead: slices of the request and of the caller's memory. */
struct vault_filled {
    struct str target;
    const struct http_header *headers; /* Content-Length is right; Accept-Encoding is identity */
    size_t header_count;
    struct str body;
    size_t used; /* bytes of the memory, which the caller wipes once all is sent */
};

/* values[i] belongs to uses->v[i]. The memory needs vault_fill_bytes(); it should be locked. */
size_t vault_fill_bytes(const struct vault_request *request, const struct vault_uses *uses,
                        const struct str *values);
enum vault_fault vault_fill(const struct vault_request *request, const struct vault_uses *uses,
                            const struct str *values, void *memory, size_t size,
                            struct vault_filled *out) MUST_CHECK;

/* ---- what comes back ---- */

/* Overwrites values with as many '*', so that lengths stay what they were said to be: plain,
 * percent encoded, JSON escaped, hex, base64 in either alphabet at any alignment. */
struct vault_scrub;

/* Copies the values, at most VAULT_SCRUB_MAX, into locked memory. */
int vault_scrub_new(const struct str *values, size_t n, struct vault_scrub **out,
                    struct err *err) MUST_CHECK;
void vault_scrub_free(struct vault_scrub *scrub);
AUTO_TYPE(vault_scrub)

/* Takes a piece of a body and appends what can go on: a possible beginning of a value is held back
 * until it is decided, at most vault_scrub_held_max() bytes. After the last piece nothing is held,
 * and the next body may begin. */
int vault_scrub_feed(struct vault_scrub *scrub, struct str piece, bool is_last, struct buf *out,
                     struct err *err) MUST_CHECK;
size_t vault_scrub_held_max(const struct vault_scrub *scrub);
/* Goes on in the middle of a body where one that looked for fewer of the same values stopped. */
void vault_scrub_follow(struct vault_scrub *scrub, struct vault_scrub *before);
/* One whole text, in place: a header's value, a reason phrase. True: there was something. */
bool vault_scrub_text(struct vault_scrub *scrub, char *text, size_t n);
/* How many values were taken out: more than 0 is an event (H04). */
uint64_t vault_scrub_hits(const struct vault_scrub *scrub);

/* An answer to a filled request that is compressed all the same cannot be looked through. */
enum vault_fault vault_answer_check(const struct http_header *headers, size_t n) MUST_CHECK;
