/* SPDX-License-Identifier: Apache-2.0 */
/* Refuses requests before they are routed: those that two readers could understand differently, and those
 * that are meant for another server. */
#ifndef HTTP_GATE_H
#define HTTP_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/http/base/state.h"
#include "proto/base/err.h"

/* The headers that we read, each looked up once. Texts are borrowed from the connection and live as long as
 * the request; NULL: absent. */
struct headers {
    const char *host;
    const char *authorization;
    const char *content_type;
    const char *transfer_encoding;
    const char *expect;
    const char *accept;
    const char *accept_encoding;
    const char *user_agent;
    const char *range;
    const char *last_event_id;
    const char *idempotency_key;
    const char *if_match;
    const char *if_none_match;
    const char *cookie;
    const char *session_proof;
    const char *traceparent, *tracestate;
    int64_t content_length; /* -1: absent */
    size_t bytes;           /* of all headers, known or not */
};

/* Takes one header in: a name that is no token, a second header of a kind that must be alone, and a
 * Content-Length that is no number are ERR_MALFORMED; too many bytes of headers are ERR_HEADERS. Starts as
 * {.content_length = -1}. */
bool headers_add(struct headers *headers, const char *name, const char *value, struct err *err);

/* The paths below which names of files follow: there, the path may have escapes, of UTF-8 without control
 * characters and separators. */
#define GATE_FILES "/api/2.0/mlflow-artifacts/artifacts/"

/* Replaces %XX in place; a '%' without two digits stays. */
void gate_unescape(char *text);

/* A path of a file, absolute or relative, without escapes: UTF-8 without control characters and backslashes,
 * no empty or dotted part. */
bool gate_file_path(const char *path, struct err *err);

/* The raw URI as it was sent: its length, the characters of the path, no empty or dotted part, sound escapes
 * in the query. */
bool gate_uri(const char *uri, struct err *err);

/* All headers together: exactly one Host that is ours, one way of telling the length, no unknown Expect.
 * version is "HTTP/1.1" or "HTTP/1.0". */
bool gate_headers(const struct headers *headers, const char *version, const struct host_names *names,
                  struct err *err);

/* true when a body follows the headers. */
bool headers_announce_body(const struct headers *headers);

#endif
