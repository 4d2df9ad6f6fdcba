/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs that a submission is to follow. */
#ifndef HTTP_DEPENDENCIES_H
#define HTTP_DEPENDENCIES_H

#include <stdbool.h>

#include "daemon/core/core.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct reader;
struct submitter;

/* The dependencies of the spec as they are now: one item each, borrowing from the spec. The caller frees the
 * array; NULL for none. ERR_FIELD about after[i] when there is no such job, or it belongs to someone else. */
bool dependencies_read(const struct submitter *submitter, const struct job_spec *spec,
                       struct core_dependency **ret_dependencies, struct err *err);

/* Why a job that is HELD or BLOCKED waits: "held by ann", "waits for job A to succeed (RUNNING)". */
bool after_say_why(struct reader *reader, int64_t job_key, enum job_state state, struct text *out,
                   struct err *err);

#endif
