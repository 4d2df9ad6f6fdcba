/* SPDX-License-Identifier: Apache-2.0 */
/* All kinds of error that our programs report. Each has the HTTP status, the problem type of RFC 9457, the
 * exit code of gpuctl, and whether the same request may succeed later. */
#ifndef PROTO_ERRORS_H
#define PROTO_ERRORS_H

/* X(code, slug, http status, exit code, retryable, title) */
#define ERROR_TABLE(X)                                                                                       \
    X(ERR_NONE, "none", 200, 0, false, "No error")                                                           \
    X(ERR_MALFORMED, "malformed_request", 400, 2, false, "The request cannot be parsed")                     \
    X(ERR_FIELD, "invalid_field", 422, 2, false, "A field has a value that is not allowed")                  \
    X(ERR_UNKNOWN_FIELD, "unknown_field", 422, 2, false, "A field is not known")                             \
    X(ERR_GPU_TYPE, "unknown_gpu_type", 422, 6, false, "No registered node has this GPU type")               \
    X(ERR_CAPACITY, "not_enough_gpus", 422, 6, false, "The job needs more GPUs than are registered")         \
    X(ERR_LIMIT, "over_limit", 422, 6, false, "A limit of the project or of the user does not allow this")   \
    X(ERR_NO_LOCAL_NODE, "no_local_node", 422, 6, false, "No node runs on the submitter's host")             \
    X(ERR_UNAUTHENTICATED, "unauthenticated", 401, 4, false, "The request carries no valid token")           \
    X(ERR_FORBIDDEN, "forbidden", 403, 4, false, "This token does not allow it")                             \
    X(ERR_NOT_FOUND, "not_found", 404, 3, false, "There is no such thing")                                   \
    X(ERR_METHOD, "method_not_allowed", 405, 1, false, "The path does not take this method")                 \
    X(ERR_AMBIGUOUS, "ambiguous_id", 409, 3, false, "The prefix fits more than one id")                      \
    X(ERR_CONFLICT, "conflict", 409, 5, false, "The state does not allow this")                              \
    X(ERR_FENCED, "fenced", 409, 5, false, "The attempt is no longer the current one")                       \
    X(ERR_IDEMPOTENCY, "idempotency_mismatch", 409, 5, false,                                                \
      "The Idempotency-Key was used with another body")                                                      \
    X(ERR_GONE, "gone", 410, 3, false, "It was removed")                                                     \
    X(ERR_LENGTH_REQUIRED, "length_required", 411, 1, false, "The request must name its length")             \
    X(ERR_PRECONDITION, "precondition_failed", 412, 5, false, "It has changed since it was read")            \
    X(ERR_TOO_LARGE, "too_large", 413, 2, false, "The body is over its limit")                               \
    X(ERR_URI_TOO_LONG, "uri_too_long", 414, 2, false, "The path and query are over their limit")            \
    X(ERR_HEADERS, "headers_too_large", 431, 2, false, "The headers are over their limit")                   \
    X(ERR_MEDIA_TYPE, "unsupported_media_type", 415, 1, false, "The content type is not accepted here")      \
    X(ERR_RANGE, "range_not_satisfiable", 416, 2, false, "The range lies outside the content")               \
    X(ERR_EXPECTATION, "expectation_failed", 417, 1, false, "The Expect header is not understood")           \
    X(ERR_MISDIRECTED, "misdirected_request", 421, 1, false, "The Host header names another server")         \
    X(ERR_TOO_MANY, "too_many_requests", 429, 7, true, "Too many requests at once")                          \
    X(ERR_INTERNAL, "internal", 500, 1, false, "A defect of this program")                                   \
    X(ERR_UNAVAILABLE, "unavailable", 503, 7, true, "The controller cannot answer now")                      \
    X(ERR_UNKNOWN_OUTCOME, "unknown_outcome", 503, 7, true, "The outcome of the request is not known")       \
    X(ERR_DAMAGED, "damaged", 503, 1, false, "The database is damaged")                                      \
    X(ERR_DISK_FULL, "disk_full", 507, 7, true, "The disk is full")                                          \
    X(ERR_USAGE, "usage", 0, 2, false, "The command line is not understood")                                 \
    X(ERR_UNREACHABLE, "unreachable", 0, 7, true, "The controller cannot be reached")                        \
    X(ERR_WAIT_TIMEOUT, "wait_timeout", 0, 8, true, "The wait ended before the job did")                     \
    X(ERR_IO, "io", 0, 1, false, "A file or device could not be used")

enum err_code {
#define X(code, slug, http, exit_code, retryable, title) code,
    ERROR_TABLE(X)
#undef X
        ERR_COUNT
};

/* In the sentence with which a node reports OUT_OF_MEMORY; behind it are the limit and what was used. */
#define SAID_OUT_OF_MEMORY ", out of memory"

#endif
