/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between us and the program `image`. It is born with these descriptors: */
enum image_fd {
    IMAGE_FD_REQUEST = 3, /* a sealed memory file: one JSON object */
    IMAGE_FD_EVENTS,      /* a socket that keeps message borders */
    IMAGE_FD_CONTENT,     /* STATE/images/content */
    IMAGE_FD_LOCK,        /* never used: held open, so the store stays locked until it is gone */
    IMAGE_FD_EXTRA,       /* an archive, a file to write, certificates; or /dev/null */
    IMAGE_FD_TREES,       /* as many folders as the request has "trees" */
};

/* Each message it sends is one JSON object with "event":
 *
 *     progress   what, done, total
 *     open       path: a file of the layout directory. The answer is one byte with a descriptor,
 *                or one byte without when there is no such regular file.
 *     done       result: an object. The last one.
 *     failed     code (a name of ERR_CODES), os, message. The last one.
 */
