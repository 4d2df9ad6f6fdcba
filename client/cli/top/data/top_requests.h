/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are under way while keys are read: each calls a function when its reply has come. */
#ifndef CLI_TOP_REQUESTS_H
#define CLI_TOP_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"
#include "proto/limits_client.h"

/* Who gets a reply. body: borrowed; NULL where the request failed as err says. take may send more requests.
 */
struct top_taker {
    void (*take)(void *closure, const struct text *body, const struct err *err);
    void *closure;
};

struct top_request {
    struct transfer *transfer; /* NULL: the place is free */
    struct top_taker taker;
};

/* Those of one asker. Begin with the api alone set. */
struct top_requests {
    struct api *api; /* borrowed */
    struct top_request items[CLIENT_TOP_REQUESTS];
};

/* Is there room for one more? */
bool top_requests_room(const struct top_requests *requests);
/* Is none under way? */
bool top_requests_idle(const struct top_requests *requests);

/* Sends a GET; there is room. */
void top_requests_get(struct top_requests *requests, const char *path, struct top_taker taker);
/* Sends a POST without members, under a key of its own; there is room. */
void top_requests_post(struct top_requests *requests, const char *path, struct top_taker taker);

/* Calls the functions of those whose replies have come; false: none has. */
bool top_requests_step(struct top_requests *requests);
/* Gives up those that are under way; their functions are not called. */
void top_requests_drop(struct top_requests *requests);

#endif
