/* SPDX-License-Identifier: Apache-2.0 */
/* The heartbeat of a node. */
#ifndef CORE_INPUTS_HEARTBEAT_H
#define CORE_INPUTS_HEARTBEAT_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;

/* The input HEARTBEAT. */
bool heartbeat_take(struct core *core, const struct input *input, struct err *err);

#endif
