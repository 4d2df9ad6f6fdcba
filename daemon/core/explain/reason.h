/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons: one reason why a job waits, with numbers. */
#ifndef CORE_EXPLAIN_REASON_H
#define CORE_EXPLAIN_REASON_H

#include <stdbool.h>

#include "proto/base/text/text.h"
#include "proto/states.h"

struct ahead;
struct core;
struct job;
struct outlook;

/* text gets one sentence without a full stop. outlook belongs to the job; NULL for a job that is HELD or
 * BLOCKED. */
enum wait_reason reason_of(struct core *core, const struct job *job, const struct outlook *outlook,
                           const struct ahead *ahead, struct text *text);

/* Appends "8 A10", "1 GPU". */
void reason_say_gpus(const struct job *job, struct text *out);

#endif
