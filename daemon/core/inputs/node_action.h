/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator asks of a node. */
#ifndef CORE_INPUTS_NODE_ACTION_H
#define CORE_INPUTS_NODE_ACTION_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;

/* The input NODE. */
bool node_action_take(struct core *core, const struct input *input, struct err *err);

#endif
