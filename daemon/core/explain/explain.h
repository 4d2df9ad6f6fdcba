/* SPDX-License-Identifier: Apache-2.0 */
/* Answers questions about a waiting job, or about a job that would wait. */
#ifndef CORE_EXPLAIN_EXPLAIN_H
#define CORE_EXPLAIN_EXPLAIN_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;

/* The input ASK. The answer is a schema of proto/openapi.yaml: Explanation, Plan or Rehearsal. */
bool explain_take(struct core *core, const struct input *input, struct err *err);

#endif
