/* SPDX-License-Identifier: Apache-2.0 */
/* Sends clients that say that they follow (redirect=1) to the object store, for bytes that it has. */
#ifndef HTTP_REDIRECT_H
#define HTTP_REDIRECT_H

#include <stdbool.h>

struct request;

/* Whether the client follows redirects, and there is an object store. */
bool redirect_is_wanted(const struct request *request);
/* Answers with the presigned URL, which it takes over; false, without an answer, if that is NULL. */
bool redirect_reply(struct request *request, char *link);

#endif
