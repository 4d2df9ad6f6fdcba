/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the controller over kept connections, on the agent's loop. */
#ifndef AGENT_CONTROLLER_CLIENT_H
#define AGENT_CONTROLLER_CLIENT_H

#include <curl/curl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/loop.h"
#include "proto/base/err.h"

struct controller_client_config {
    const char *url;        /* of the controller, borrowed */
    const char *token_file; /* read at the start, and again when the controller refuses the token */
    const char *cacert;     /* or NULL */
};

struct controller_answer {
    int status;                /* HTTP status; 0: no answer from the controller */
    json_t *json;              /* the body, borrowed; NULL if there is none */
    struct err problem;        /* set for any status except 2xx */
    int64_t sent_ms;           /* CLOCK_BOOTTIME when the request was sent */
    const char *local_address; /* of the connection; "" if not known */
    const char *location;      /* URL of a redirect, which the client does not follow; NULL: none */
};

/* One request. Exactly one of body, bytes, supply and arrive is set. */
struct controller_call {
    const char *path;               /* with its query, copied */
    json_t *(*body)(void *closure); /* POST of JSON, made anew for each try; new reference */
    const void *bytes;              /* POST of these bytes, which must live until the answer */
    size_t length;                  /* of bytes, or of the data that supply gives */
    /* PUT; fills the buffer with length bytes from offset. A retry may go back to an earlier offset. False
     * gives up. */
    bool (*supply)(void *closure, int64_t offset, void *buffer, size_t length);
    /* GET; `first` marks the first bytes of each try. False gives up. */
    bool (*arrive)(void *closure, const void *bytes, size_t length, bool first);
    int64_t timeout_ms;
    bool persistent; /* retried, after a wait, until the controller has accepted or refused it */
    void (*done)(void *closure, const struct controller_answer *answer);
    void *closure;
};

struct controller_client;
struct controller_request;

/* NULL with an error when the token cannot be read. */
struct controller_client *controller_client_create(const struct controller_client_config *config,
                                                   struct loop *loop, struct err *err);
/* The token file has another token: requests that are sent from now on have it. */
bool controller_client_renew(struct controller_client *controller, struct err *err);
/* Whether the requests have an earlier token than the newest, which the controller does not know. */
bool controller_client_is_behind(const struct controller_client *controller);
/* For connections beside the requests: the options of a handle, and what it needs to ask. Borrowed. */
void controller_client_set(const struct controller_client *controller, CURL *easy);
const char *controller_client_url(const struct controller_client *controller);
const char *controller_client_token(const struct controller_client *controller);
/* Cancels all requests. */
void controller_client_destroy(struct controller_client *controller);

/* done is called later, once, after the request was freed. */
struct controller_request *controller_send(struct controller_client *controller,
                                           const struct controller_call *call);
/* The usual request: a persistent POST of JSON. */
struct controller_request *
controller_post(struct controller_client *controller, const char *path, json_t *(*body)(void *closure),
                void (*done)(void *closure, const struct controller_answer *answer), void *closure);
/* Ends a request without an answer; NULL is allowed. */
void controller_cancel(struct controller_request *request);
/* Like controller_cancel, but lets a request under way finish, so that its connection is kept. Not for
 * requests with bytes, supply or arrive. */
void controller_abandon(struct controller_request *request);

#endif
