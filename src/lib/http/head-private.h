/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/http/http.h"

/* Fills form, target, scheme, authority, path and query; the method is already known. */
enum http_fault http_target_read(struct str target, struct http_head *head);

/* A name, an IPv4 address or an IPv6 address in brackets, and maybe a port. */
bool http_is_host(struct str s);
