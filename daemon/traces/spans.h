/* SPDX-License-Identifier: Apache-2.0 */
/* The spans of a job, made of its rows when it or an attempt has ended. The same rows give the same spans. */
#ifndef TRACES_SPANS_H
#define TRACES_SPANS_H

#include "daemon/store/store.h"
#include "proto/base/text/text.h"

/* Each appends spans as JSON (otlp.h). Nothing is appended where there is no such row any more, or the trace
 * is not recorded. false: the rows could not be read. */

/* An attempt with its waiting, and the parts of its nodes. */
bool spans_of_attempt(struct reader *reader, uint64_t attempt_id, struct text_list *out, struct err *err);
/* The job, which the others are children of. */
bool spans_of_job(struct reader *reader, int64_t job_key, struct text_list *out, struct err *err);

#endif
