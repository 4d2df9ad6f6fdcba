/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the spans of jobs that have ended to a collector, on a thread of its own. Best effort: nothing waits
 * for it, and what it cannot send is dropped and counted. */
#ifndef TRACES_EXPORTER_H
#define TRACES_EXPORTER_H

#include <stdint.h>

#include "proto/base/err.h"

struct exporter;

/* The endpoint and the headers are as collector.h checks them; store_path is of the database, of which it
 * opens a reader. */
struct exporter *exporter_open(const char *endpoint, const char *headers, const char *store_path,
                               struct err *err);
/* Sends what it has for TRACE_END_MS, and ends the thread. Takes NULL. */
void exporter_close(struct exporter *exporter);

/* The end of an attempt, or of a job, is on disk. Returns at once; any thread. */
void exporter_attempt_ended(struct exporter *exporter, uint64_t attempt_id);
void exporter_job_ended(struct exporter *exporter, int64_t job_key);

/* Since it was opened. */
struct exporter_figures {
    int64_t sent, rejected, dropped; /* spans */
    int64_t ends_missed;             /* of jobs and attempts, whose spans were never made */
    int64_t waiting;                 /* ends whose spans are not made yet */
};
struct exporter_figures exporter_figures(struct exporter *exporter);

#endif
