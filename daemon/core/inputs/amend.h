/* SPDX-License-Identifier: Apache-2.0 */
/* Amendments: changes that a person makes to a live job. */
#ifndef CORE_INPUTS_AMEND_H
#define CORE_INPUTS_AMEND_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;

/* The input CHANGE. */
bool amend_job(struct core *core, const struct input *input, struct err *err);

/* The inputs HOLD and RELEASE: a waiting job is kept back until a person releases it. Repeating either
 * changes nothing. */
bool amend_hold(struct core *core, const struct input *input, struct err *err);
bool amend_release(struct core *core, const struct input *input, struct err *err);

#endif
