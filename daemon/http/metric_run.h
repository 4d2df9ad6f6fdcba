/* SPDX-License-Identifier: Apache-2.0 */
/* The last part of a page of a job's metrics: what MLflow's clients have logged into the run of the attempt.
 */
#ifndef HTTP_METRIC_RUN_H
#define HTTP_METRIC_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/http/job_lookup.h"
#include "daemon/mlflow/tracking.h"
#include "proto/base/text.h"

struct request;

struct metric_rest {
    struct job_facts job;
    int64_t attempt;
    const char *name;            /* borrowed; NULL: all */
    int64_t limit;               /* points */
    bool comma;                  /* points stand before these */
    bool resumed;                /* it goes on from place; else from the first */
    struct tracking_place place; /* as a cursor has it */
};

/* Reads the cursor of such a page into attempt and place. false: it is none of these, or of another attempt
 * than the one that is asked for (-1: any). */
bool metric_run_cursor(const char *cursor, int64_t attempt, struct metric_rest *rest);

/* Appends points and the end of the page to json, which is taken over, and replies. A job that tracks
 * elsewhere has none. */
void metric_run_page(struct request *request, const struct metric_rest *rest, struct text *json);

#endif
