/* SPDX-License-Identifier: Apache-2.0 */
/* Submission: a job comes in, if the registered nodes could ever run it. */
#ifndef CORE_SUBMIT_H
#define CORE_SUBMIT_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;
struct resource_request;

/* Whether a job with such a resource request would be let in; changes nothing. */
bool submit_admits(const struct core *core, const struct resource_request *request, struct err *err);

/* The input SUBMIT. */
bool submit_job(struct core *core, const struct input *input, struct err *err);

#endif
