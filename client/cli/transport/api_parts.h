/* SPDX-License-Identifier: Apache-2.0 */
/* The connection pool and the loop, shared by api.c and transfer.c. */
#ifndef CLI_API_PARTS_H
#define CLI_API_PARTS_H

#include <curl/curl.h>
#include <stdbool.h>

#include "client/cli/transport/api.h"
#include "client/cli/transport/context.h"

struct api {
    struct context context;
    CURLM *multi;
    int signal_fd;
    int watched[API_WATCHED];
    size_t watched_count;
    int interrupts;
    bool active; /* in this turn something came in */
    bool lost;
    bool warned; /* of the end of the token */
};

/* How all connections to the controller are made. */
void api_set_connection(const struct api *api, CURL *easy);

/* libcurl is done with this one. */
void transfer_end(CURL *easy, CURLcode result);

#endif
