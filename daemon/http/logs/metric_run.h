/* SPDX-License-Identifier: Apache-2.0 */
/* The points that MLflow's clients have logged into the run of an attempt, read on the thread of the
 * tracking store, and ids that say how far a client has read. */
#ifndef HTTP_METRIC_RUN_H
#define HTTP_METRIC_RUN_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/http/api/job_lookup.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct server;

/* --- ids: "run-ATTEMPT-NUMBER", with "/" and the id of a piece where streams are read beside the run */

struct metric_place {
    int64_t attempt;
    int64_t number;  /* of the last point that is known; 0: none */
    const char *log; /* the id of the piece, borrowed; "" none */
};

/* false: the id is none of these. */
bool metric_place_read(const char *id, struct metric_place *ret_place);

/* To write one. */
#define METRIC_RUN_ID "run-%" PRId64 "-%" PRId64

/* --- reading */

/* *ret_run_id, which the caller frees: the run into which ranks of the attempt log here; NULL: they log into
 * none, or track elsewhere, or there is no such attempt yet. */
bool metric_run_of(struct server *server, const struct job_facts *job, int64_t attempt, char **ret_run_id,
                   struct err *err);

struct metric_question {
    const char *run_id;
    const char *name; /* of the metric; NULL: all */
    int64_t after;    /* the number of the last point that is known; 0: none */
    int64_t limit;    /* points */
};

struct metric_answer {
    bool ok;
    const char *why;     /* where it is not */
    struct text *points; /* of each its number, a space, and its line as the API shows it */
    int64_t after;       /* up to which number was looked */
    bool more;
};

struct metric_reading;

/* Copies the question and calls done, later and on this thread, unless the reading is left before. A run that
 * is not there has no points. */
struct metric_reading *metric_run_read(struct server *server, const struct metric_question *question,
                                       void (*done)(void *closure, const struct metric_answer *answer),
                                       void *closure);
/* Nobody wants the answer any more. Takes NULL. */
void metric_run_leave(struct metric_reading *reading);

#endif
