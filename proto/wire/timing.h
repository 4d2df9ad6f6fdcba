/* SPDX-License-Identifier: Apache-2.0 */
/* What a node says of the time that a start takes: durations by its own clock, in microseconds, since it was
 * given the order; 0 where it does not know. Agents of earlier versions say nothing. */
#ifndef PROTO_TIMING_H
#define PROTO_TIMING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

/* A moment that a rank has named. */
struct timing_mark {
    const char *name; /* timing_is_name */
    int64_t rank, after_us;
};

struct node_timing {
    int64_t prepared_us; /* since PREPARE came: what the ranks need is held */
    /* Since RUN or START came: */
    int64_t begun_us;          /* the supervisor of the ranks was told to start them */
    int64_t running_us;        /* the last rank was started */
    int64_t output_us;         /* the first byte of any rank */
    int64_t ended_us;          /* the last process was gone */
    struct timing_mark *marks; /* in order of time; owned after a read */
    size_t mark_count;
};

/* What a mark may be called: 1 to LIMIT_MARK_NAME characters of ASCII that JSON writes as they are. */
bool timing_is_name(const char *text, size_t length);

/* Adds the member "timing" to an object, unless nothing is known. */
void timing_put(json_t *object, const struct node_timing *timing);
/* Reads it; what is absent stays 0. Names are borrowed from the object. */
bool timing_read(const json_t *object, struct node_timing *ret_timing, struct err *err);
void timing_finish(struct node_timing *timing);

#endif
