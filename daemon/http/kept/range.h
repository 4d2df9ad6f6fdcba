/* SPDX-License-Identifier: Apache-2.0 */
/* Replies to requests for a range of bytes. */
#ifndef HTTP_RANGE_H
#define HTTP_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct request;

/* Replies with the range that the request asks for of size bytes of a file, from offset on; the file is
 * taken over. false: it asks for none, and nothing was done. */
bool range_reply(struct request *request, const char *content_type, int fd, int64_t offset, int64_t size);

#endif
