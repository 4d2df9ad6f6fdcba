/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the first line and the headers of a request are spelled as RFC 9112 has them. */
#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
