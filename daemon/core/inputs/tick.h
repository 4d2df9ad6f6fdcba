/* SPDX-License-Identifier: Apache-2.0 */
/* Time: notes and processes due work. */
#ifndef CORE_INPUTS_TICK_H
#define CORE_INPUTS_TICK_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct core;
struct input;

/* Checks whether so many nodes are silent that the controller is likely the cause; called at the end of every
 * step. */
void tick_watch_brake(struct core *core);

/* The inputs BOOT and TICK. */
bool tick_boot(struct core *core, const struct input *input, struct err *err);
bool tick_pass(struct core *core, const struct input *input, struct err *err);

#endif
