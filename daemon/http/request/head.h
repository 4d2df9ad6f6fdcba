/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the first line and the headers of a request are spelled as RFC 9112 has them; and what a Range
 * header asks for. */
#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

/* How far the head was followed. */
struct head {
    const char *begin;
    const char *next; /* where the next text must begin */
    bool straight;
};

/* All texts are the HTTP library's own, in the buffer where it received them. uri_length is that of the raw
 * URI, before the library cut it at its '?'. */
void head_begin(struct head *head, const char *method, const char *uri, size_t uri_length,
                const char *version);
/* The headers in the order in which they came. */
void head_header(struct head *head, const char *name, const char *value);
/* After the last header. length is that of the whole head with the empty line at its end. */
bool head_end(const struct head *head, size_t length, struct err *err);

/* Reads a Range header of one range, for a body of so many bytes: "bytes=2-4", "bytes=7-", "bytes=-3". The
 * last byte is one of the body; the first may lie behind it. false: any other unit or form, which is ignored,
 * as RFC 9110 has it. */
bool head_range(const char *range, int64_t size, int64_t *ret_first, int64_t *ret_last);

#endif
