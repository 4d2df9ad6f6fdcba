/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for one and the same answer. */
#ifndef HTTP_AUDIENCE_H
#define HTTP_AUDIENCE_H

#include <stdbool.h>

struct request;
struct listener;

/* Starts as {0}. Outlives the requests that wait. */
struct audience {
    struct listener *first;
};

/* Lets the request wait until it is taken, or ends. It has no other state then. true. */
bool audience_wait(struct audience *audience, struct request *request);
/* Takes the one that has waited the longest, which the caller answers; NULL: none waits. */
struct request *audience_take(struct audience *audience);
/* The same, one whose client has left. */
struct request *audience_take_left(struct audience *audience);

#endif
