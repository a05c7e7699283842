/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to surface/api: what routes answer, as the document says it. */

struct answer {
    const char *route;
    int status;
    const char *shape; /* in surface/view; "": JSON that is described elsewhere; NULL: no JSON */
    const char *type;  /* of the content; NULL: JSON, or nothing */
};

extern const struct answer answers[]; /* ends with a route of NULL */
/* Those of one route, one after the other; NULL: no more. */
const struct answer *answer_next(const char *route, const struct answer *before);
const char *answer_type(const struct answer *answer); /* NULL: it has no content */
