/* SPDX-License-Identifier: Apache-2.0 */
/* The removal of jobs that have ended. */
#ifndef CORE_INPUTS_REMOVE_H
#define CORE_INPUTS_REMOVE_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;

/* The input REMOVE. ERR_CONFLICT if one of the jobs is live: then none is removed. */
bool remove_jobs(struct core *core, const struct input *input, struct err *err);

#endif
