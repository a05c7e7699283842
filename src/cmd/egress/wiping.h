/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* From now on whatever is given back is overwritten first: buffers of ours, of OpenSSL and of
 * nghttp2, all of which a secret passes on its way. Begun when there is a vault: nobody else pays.
 */
void wiping_begin(void);
