/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What each byte may stand in. */
#define HTTP_C_TOKEN 1U /* RFC 9110 tchar */
#define HTTP_C_VALUE 2U /* a header's value: tab, blank, visible, obs-text */
#define HTTP_C_PATH 4U  /* RFC 3986 pchar and '/', and what browsers send unescaped: [ ] | ^ */
#define HTTP_C_QUERY 8U /* the same, '?' and { } ` \ */
#define HTTP_C_HOST 16U /* name, address, port: letters, digits, . - _ : [ ] */
#define HTTP_C_DIGIT 32U
#define HTTP_C_HEX 64U

extern const uint8_t http_chars[256];

/* Bytes at the start of the text that are all of the kind. */
size_t http_span(const char *p, size_t n, uint8_t kind);
int http_hex_digit(char c); /* -1 when it is none */
