/* SPDX-License-Identifier: Apache-2.0 */
/* The durations of a start as the node reports them: by its own clock, in microseconds, since it received the
 * order; 0 where it does not know. Agents of earlier versions send none. */
#ifndef PROTO_TIMING_H
#define PROTO_TIMING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

/* A moment that a rank has reported under a name. */
struct timing_mark {
    const char *name; /* timing_is_name */
    int64_t rank, after_us;
};

struct node_timing {
    int64_t prepared_us; /* since PREPARE arrived: all resources of the ranks are held */
    /* Since RUN or START arrived: */
    int64_t begun_us;          /* the supervisor of the ranks was told to start them */
    int64_t running_us;        /* the last rank was started */
    int64_t output_us;         /* the first byte of any rank */
    int64_t ended_us;          /* the last process had ended */
    struct timing_mark *marks; /* ordered by time; owned after a read */
    size_t mark_count;
};

/* Whether the text may be the name of a mark: 1 to LIMIT_MARK_NAME ASCII characters that JSON writes
 * unchanged. */
bool timing_is_name(const char *text, size_t length);

/* Adds the member "timing" to an object, unless nothing is known. */
void timing_put(json_t *object, const struct node_timing *timing);
/* Reads the member; absent durations stay 0. Names are borrowed from the object. */
bool timing_read(const json_t *object, struct node_timing *ret_timing, struct err *err);
void timing_finish(struct node_timing *timing);

#endif
