/* SPDX-License-Identifier: Apache-2.0 */
/* Holds: a waiting job is kept back until a person releases it. */
#ifndef CORE_INPUTS_HOLD_H
#define CORE_INPUTS_HOLD_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;

/* The inputs HOLD and RELEASE. Repeating either changes nothing. */
bool hold_job(struct core *core, const struct input *input, struct err *err);
bool hold_release(struct core *core, const struct input *input, struct err *err);

#endif
