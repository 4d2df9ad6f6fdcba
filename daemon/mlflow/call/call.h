/* SPDX-License-Identifier: Apache-2.0 */
/* One call of the tracking store: the request, the answer and the error.
 *
 * A call fails once. The first call_fail sets its error; from then on the readers of call/field.h return what
 * stands for an absent member, statements of database/database.h find no rows and change nothing, and later
 * errors are ignored. So a function reads all that it needs and writes all that it has to, in order, and
 * asks call->failed only before it does something else that an earlier failure forbids. */
#ifndef MLFLOW_CALL_H
#define MLFLOW_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/text/text.h"

/* What a sender may do with an experiment, run or model. */
enum tracking_right {
    TRACKING_FINDS,   /* meets it by its name, which others may use for theirs */
    TRACKING_SEES,    /* knows of it, and reads it */
    TRACKING_ADDS,    /* makes runs or versions in it */
    TRACKING_CHANGES, /* changes or deletes it */
    TRACKING_USES,    /* puts things of its own into the project; the owner does not matter */
};

/* What the sender of a request may. Embed it in what the answer needs. */
struct tracking_rights {
    /* Any thread. owner "": what is everybody's. */
    bool (*have)(const struct tracking_rights *rights, enum tracking_right right, const char *owner,
                 const char *project);
};

/* A request of a client. */
struct tracking_request {
    /* The decoded JSON body; for a GET, an object of its query parameters: each a string, a repeated one an
     * array of strings. NULL is {}. Only read, and only during the call. Unknown members are ignored; numbers
     * may come as text. */
    const json_t *body;
    const struct tracking_rights *rights; /* NULL: the sender may all */
    const char *owner;   /* the sender: whose its new things are, and the user_id of runs without one */
    const char *project; /* that they belong to; NULL: "default" */
    /* For a rank: the run of its attempt, whether it exists or not. A rank finds by name what is its owner's
     * or in its project. Else NULL. */
    const char *own_run;
    int64_t now_ms; /* wall clock */
};

/* The error codes of MLflow that calls return, and their HTTP status. */
#define TRACKING_CODES(X)                                                                                    \
    X(RESOURCE_DOES_NOT_EXIST, 404)                                                                          \
    X(RESOURCE_ALREADY_EXISTS, 400)                                                                          \
    X(INVALID_PARAMETER_VALUE, 400)                                                                          \
    X(INVALID_STATE, 400)                                                                                    \
    X(ENDPOINT_NOT_FOUND, 404)                                                                               \
    X(PERMISSION_DENIED, 403)                                                                                \
    X(TEMPORARILY_UNAVAILABLE, 503)                                                                          \
    X(INTERNAL_ERROR, 500)

enum tracking_code {
#define TRACKING_CODE_AS_ENUM(name, http) TRACKING_##name,
    TRACKING_CODES(TRACKING_CODE_AS_ENUM)
#undef TRACKING_CODE_AS_ENUM
};

struct tracking_error {
    enum tracking_code code;
    char message[1024]; /* for people */
};

/* The id of a run has 32 hex digits and a NUL. */
#define TRACKING_RUN_ID_BYTES 33
/* Draws the id of a new run. Touches no file: any thread may call it. */
void tracking_draw_run_id(char out[TRACKING_RUN_ID_BYTES]);

const char *tracking_code_name(enum tracking_code code);
int tracking_code_http(enum tracking_code code);

/* Fills *error and returns false, so that a caller can return it at once. */
bool tracking_fail(struct tracking_error *error, enum tracking_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends {"error_code": ..., "message": ...}. */
void tracking_error_render(const struct tracking_error *error, struct text *out);

struct tracking;

struct call {
    struct tracking *tracking;
    struct tracking_request request; /* without a body for functions that are no endpoints */
    struct text *out;                /* the body of the answer; NULL: it has none */
    struct tracking_error *error;    /* set once failed */
    bool failed;
};

/* Fails the call unless it has failed already. */
void call_fail(struct call *call, enum tracking_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for a request that is wrong. */
#define call_refuse(call, ...) call_fail(call, TRACKING_INVALID_PARAMETER_VALUE, __VA_ARGS__)

#endif
