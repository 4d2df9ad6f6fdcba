/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the requests that are under way. It waits for none: api_turn moves them on. No request is repeated,
 * and each fails after CLIENT_TOP_REPLY_MS. */
#include "client/cli/top/data/top_requests.h"

#include <assert.h>
#include <string.h>

bool top_requests_room(const struct top_requests *requests)
{
    for (size_t i = 0; i < CLIENT_TOP_REQUESTS; i++) {
        if (requests->items[i].transfer == NULL) {
            return true;
        }
    }
    return false;
}

bool top_requests_idle(const struct top_requests *requests)
{
    for (size_t i = 0; i < CLIENT_TOP_REQUESTS; i++) {
        if (requests->items[i].transfer != NULL) {
            return false;
        }
    }
    return true;
}

static void start(struct top_requests *requests, const struct request *request, struct top_taker taker)
{
    size_t i = 0;
    while (requests->items[i].transfer != NULL) {
        i++;
        assert(i < CLIENT_TOP_REQUESTS);
    }
    requests->items[i] =
        (struct top_request){.transfer = transfer_start(requests->api, request, NULL, NULL), .taker = taker};
}

void top_requests_get(struct top_requests *requests, const char *path, struct top_taker taker)
{
    start(requests, &(struct request){.method = "GET", .path = path, .timeout_ms = CLIENT_TOP_REPLY_MS},
          taker);
}

void top_requests_post(struct top_requests *requests, const char *path, struct top_taker taker)
{
    static const char body[] = "{}"; /* outlives the transfer */
    char key[ID_LENGTH + 1];
    random_id(key);
    start(requests,
          &(struct request){.method = "POST",
                            .path = path,
                            .body = body,
                            .length = strlen(body),
                            .content_type = "application/json",
                            .key = key,
                            .timeout_ms = CLIENT_TOP_REPLY_MS},
          taker);
}

/* The place is free before the function is called, which may need it. */
static void end(struct top_request *request)
{
    struct transfer *transfer = request->transfer;
    struct top_taker taker = request->taker;
    struct err err = {0};
    struct text empty = {.bytes = (char[]){""}};
    *request = (struct top_request){0};
    if (transfer_result(transfer, &err)) {
        const struct text *body = transfer_body(transfer);
        taker.take(taker.closure, body->bytes != NULL ? body : &empty, &err);
    } else {
        taker.take(taker.closure, NULL, &err);
    }
    transfer_destroy(transfer);
}

bool top_requests_step(struct top_requests *requests)
{
    bool any = false;
    for (size_t i = 0; i < CLIENT_TOP_REQUESTS; i++) {
        struct top_request *request = &requests->items[i];
        if (request->transfer != NULL && transfer_done(request->transfer)) {
            end(request);
            any = true;
        }
    }
    return any;
}

void top_requests_drop(struct top_requests *requests)
{
    for (size_t i = 0; i < CLIENT_TOP_REQUESTS; i++) {
        transfer_destroy(requests->items[i].transfer);
        requests->items[i] = (struct top_request){0};
    }
}
