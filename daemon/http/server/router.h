/* SPDX-License-Identifier: Apache-2.0 */
/* The API as one table, and what is central to all of it: matching, roles, sizes, decoding. */
#ifndef HTTP_ROUTER_H
#define HTTP_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/http/auth/auth.h"
#include "daemon/http/request/request.h"

enum method { METHOD_GET, METHOD_POST, METHOD_PUT, METHOD_DELETE, METHOD_PATCH, METHOD_COUNT };

enum body_kind {
    BODY_NONE,
    BODY_JSON,          /* one JSON value, decoded into request->json */
    BODY_JSON_OR_EMPTY, /* the same, or nothing: request->json is NULL */
    BODY_BYTES,         /* gathered in request->body, any content type */
    BODY_STREAM,        /* handed to the route's sink as it arrives */
};

/* Takes a body in pieces. */
struct body_sink {
    /* Called once, after the request was admitted and before its body is read; false: it is refused. NULL:
     * nothing to do. The limit in the table was held against Content-Length already. */
    bool (*begin)(struct request *request, struct err *err);
    /* Takes a piece; returns how much of it. Less than length only after request_suspend: the rest comes
     * again after request_resume. May refuse with request_fail and returns length then; what follows is
     * dropped. After the last piece comes the route's handle. */
    size_t (*piece)(struct request *request, const char *bytes, size_t length);
};

struct route {
    enum method method; /* GET answers HEAD, too */
    const char *path; /* with at most one {...}, which stands for one part; a {+...} at its end for all parts
                         that follow, one at least */
    enum access access;
    enum body_kind body;
    int64_t body_limit;
    bool keyed;        /* honours Idempotency-Key */
    const char *query; /* the parameters that it knows, separated by spaces; "*": any; NULL: none */
    /* Replies, at once or later; false: it has not, and the reply is the error. */
    bool (*handle)(struct request *request, struct err *err);
    int what;                     /* for a handler of several routes: which of them it is */
    const struct body_sink *sink; /* of BODY_STREAM */
    const char *summary;
};

/* All routes, ended by one whose path is NULL. */
extern const struct route routes[];

/* The method of a request that has a route, as it is written. */
const char *router_method(const struct request *request);

/* What stands for the {+...} at the end of the request's route, with its escapes; "" for another route. */
const char *router_tail(const struct request *request);

/* The route of a method's name and a path; what stands for {...} is copied into argument. NULL: none;
 * *ret_allowed then holds a bit (1 << method) for each method that the path takes, 0 when there is no such
 * path. */
const struct route *router_match(const char *method, const char *path, char argument[REQUEST_ARGUMENT_BYTES],
                                 unsigned *ret_allowed);

/* What the headers say about the body, held against the route: 411, 413 and 415. */
bool router_body_allowed(const struct route *route, const struct headers *headers, struct err *err);

/* Judges the request by its first line and headers: refuses it, or leaves it ready for its body. */
void router_admit(struct request *request, const char *method, const char *version);

/* Decodes the body and calls the handler. */
void router_handle(struct request *request);

#endif
