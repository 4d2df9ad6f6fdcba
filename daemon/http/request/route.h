/* SPDX-License-Identifier: Apache-2.0 */
/* One row of the API's table: which requests it takes, with which body, and its handler. */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/writer/histogram.h"
#include "daemon/http/auth/authorize.h"
#include "daemon/http/request/request.h"

enum method { METHOD_GET, METHOD_POST, METHOD_PUT, METHOD_DELETE, METHOD_PATCH, METHOD_COUNT };

enum body_kind {
    BODY_NONE,
    BODY_JSON,          /* one JSON value, decoded into request->json */
    BODY_JSON_OR_EMPTY, /* the same, or nothing: request->json is NULL */
    BODY_LIST,          /* gathered in request->body: a list in JSON, or NDJSON, one value a line */
    BODY_BYTES,         /* gathered in request->body, any content type */
    BODY_STREAM,        /* handed to the route's sink as it arrives */
};

/* Takes a body in pieces. */
struct body_sink {
    /* Called once, after the request was admitted and before its body is read; false: it is refused. NULL:
     * nothing to do. The limit in the table was held against Content-Length already. */
    bool (*begin)(struct request *request, struct err *err);
    /* Takes a piece; returns how much of it. Less than length only after request_suspend: the rest comes
     * again after request_resume. May refuse with request_fail and returns length then; the rest is
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

#define STATUS_CLASSES 6 /* by the first digit of the status */

/* The replies of a route. */
struct route_measures {
    uint64_t replies[STATUS_CLASSES];
    struct histogram took; /* from the end of the request to the beginning of its reply */
};

/* The method as it is written; that of a request that has a route. */
const char *method_text(enum method method);
const char *route_method(const struct request *request);

/* The part of the path that stands for {+...} at the end of the route, with its escapes; "" for another
 * route. */
const char *route_tail(const struct request *request);

/* The route of the table, which ends with a NULL path, for a method's name and a path. Copies into argument
 * what stands for {...}. NULL: none; *ret_allowed then holds a bit (1 << method) for each method that the
 * path takes, 0 when there is no such path. */
const struct route *route_match(const struct route *table, const char *method, const char *path,
                                char argument[REQUEST_ARGUMENT_BYTES], unsigned *ret_allowed);

/* Whether the body is NDJSON. */
bool headers_body_is_lines(const struct headers *headers);

/* Checks what the headers say about the body: 411, 413 and 415. */
bool route_allows_body(const struct route *route, const struct headers *headers, struct err *err);

#endif
