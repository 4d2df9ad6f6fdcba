/* SPDX-License-Identifier: Apache-2.0 */
/* Spans as OTLP/HTTP has them in its JSON encoding (opentelemetry-proto 1). Pure. */
#ifndef TRACES_OTLP_H
#define TRACES_OTLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/text/text.h"
#include "proto/trace_context.h"

/* Times are microseconds since 1970. */
struct otlp_span {
    uint8_t trace[TRACE_ID_BYTES];
    uint8_t id[SPAN_ID_BYTES];
    uint8_t parent[SPAN_ID_BYTES]; /* all zero: the span is the first of its trace */
    const char *state;             /* tracestate, or NULL */
    const char *name;
    int64_t start_us, end_us;
    struct text attributes, events; /* owned, written by the functions below */
    bool failed;
    const char *message; /* of a span that failed; or NULL */
};

/* Appends an attribute; a NULL text appends nothing. */
void otlp_put_text(struct text *attributes, const char *key, const char *value);
void otlp_put_int(struct text *attributes, const char *key, int64_t value);
/* Appends an event; attributes as above. */
void otlp_put_event(struct text *events, const char *name, int64_t at_us, const struct text *attributes);

/* The JSON of a span, which the caller frees. Its attributes and events are finished. */
char *otlp_take_span(struct otlp_span *span);

/* The body of a request with these spans. */
void otlp_request(char *const *spans, size_t count, struct text *out);

#endif
