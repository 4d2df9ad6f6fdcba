/* SPDX-License-Identifier: Apache-2.0 */
/* The cancel of a job. */
#ifndef CORE_INPUTS_CANCEL_H
#define CORE_INPUTS_CANCEL_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;

/* The input CANCEL. */
bool cancel_take(struct core *core, const struct input *input, struct err *err);

#endif
