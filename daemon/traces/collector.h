/* SPDX-License-Identifier: Apache-2.0 */
/* A collector of traces, by OTLP/HTTP. Used by one thread. */
#ifndef TRACES_COLLECTOR_H
#define TRACES_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

struct collector;

/* Whether the text is the address of a collector: http or https, with a host, and without a secret in it. */
bool collector_is_endpoint(const char *endpoint);
/* Whether each line is empty, a comment, or a header that may be added to a request. */
bool collector_check_headers(const char *headers, struct err *err);

/* Requests go to ENDPOINT/v1/traces. headers are lines NAME: VALUE; NULL: none. stop is asked while a request
 * is under way, and ends it. */
struct collector *collector_create(const char *endpoint, const char *headers, bool (*stop)(void *closure),
                                   void *closure);
void collector_destroy(struct collector *collector);

enum collector_answer {
    COLLECTOR_TOOK,    /* all but those that it has rejected */
    COLLECTOR_REFUSED, /* and will again */
    COLLECTOR_AGAIN,   /* it was away, or had too much to do */
};

/* Sends a request. *ret_rejected: spans that it did not take; *ret_again_ms: when it wants it again, 0 where
 * it does not say. *err says why it was not taken as a whole. */
enum collector_answer collector_send(struct collector *collector, const char *body, size_t length,
                                     int64_t *ret_rejected, int64_t *ret_again_ms, struct err *err);

#endif
