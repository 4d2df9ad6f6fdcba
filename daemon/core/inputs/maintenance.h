/* SPDX-License-Identifier: Apache-2.0 */
/* Making and removing maintenance windows. */
#ifndef CORE_INPUTS_MAINTENANCE_H
#define CORE_INPUTS_MAINTENANCE_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;

/* The input WINDOW. */
bool maintenance_take(struct core *core, const struct input *input, struct err *err);

#endif
