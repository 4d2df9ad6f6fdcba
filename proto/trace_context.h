/* SPDX-License-Identifier: Apache-2.0 */
/* W3C Trace Context: the trace that a job belongs to, and the ids of a job's own spans. */
#ifndef PROTO_TRACE_CONTEXT_H
#define PROTO_TRACE_CONTEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_ID_BYTES     16
#define SPAN_ID_BYTES      8
#define TRACE_PARENT_BYTES 56 /* of a traceparent of version 00 with its NUL */

/* A span, as a traceparent names it. */
struct trace_parent {
    uint8_t trace[TRACE_ID_BYTES];
    uint8_t span[SPAN_ID_BYTES];
    bool sampled; /* false: whoever began the trace does not record it */
};

/* Reads a traceparent as the recommendation says: a later version counts as far as version 00 goes. */
bool trace_parent_read(const char *text, struct trace_parent *ret_parent);
/* Writes it in version 00. */
void trace_parent_write(const struct trace_parent *parent, char out[TRACE_PARENT_BYTES]);

/* Whether the text is a list of 1 to LIMIT_TRACE_STATE bytes that can be passed on as a tracestate. */
bool trace_state_is_sound(const char *text);

/* The member traceparent of a job spec; false: it has none. */
bool trace_parent_of_spec(const json_t *spec, struct trace_parent *ret_parent);

/* The trace of a job that came with none: the same for the same id. A task belongs to the trace of its
 * array. */
void trace_id_of_job(const char *job_id, uint8_t out[TRACE_ID_BYTES]);
/* The id of a span of a job: the same for the same kind and numbers. */
void trace_span_id(const char *job_id, const char *kind, int64_t number, int64_t part,
                   uint8_t out[SPAN_ID_BYTES]);
/* Kinds of spans that others are the children of. */
#define TRACE_KIND_JOB     "job"
#define TRACE_KIND_ATTEMPT "attempt"

#endif
