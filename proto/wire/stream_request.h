/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody wants of a running job: a command beside a rank, or a connection to a port. It travels as
 * JSON from the client to the controller, and from there to the node. */
#ifndef PROTO_STREAM_REQUEST_H
#define PROTO_STREAM_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

#define STREAM_UPGRADE "gpuctl-stream" /* the protocol that both sides upgrade to */

enum stream_kind { STREAM_KIND_EXEC, STREAM_KIND_FORWARD };

struct stream_request {
    enum stream_kind kind;
    int64_t rank;
    /* Of EXEC. */
    json_t *command; /* borrowed: an array of strings, one at least */
    bool input;      /* it reads what the client sends; else its stdin is empty */
    bool terminal;
    int64_t rows, columns; /* of the terminal */
    const char *term;      /* what $TERM becomes; borrowed, NULL: nothing */
    /* Of FORWARD. */
    int64_t port;
};

/* Borrows from json, which must live as long. */
bool stream_request_decode(json_t *json, struct stream_request *ret_request, struct err *err);

#endif
