/* SPDX-License-Identifier: Apache-2.0 */
/* Submission: accepts a job if the registered nodes could ever run it. */
#ifndef CORE_INPUTS_SUBMIT_H
#define CORE_INPUTS_SUBMIT_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;

/* The input SUBMIT. */
bool submit_job(struct core *core, const struct input *input, struct err *err);

#endif
