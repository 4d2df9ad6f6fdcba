/* SPDX-License-Identifier: Apache-2.0 */
/* Registration: a node joins or returns, and reports its live attempts. */
#ifndef CORE_INPUTS_REGISTER_H
#define CORE_INPUTS_REGISTER_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;

/* The input REGISTER. */
bool register_node(struct core *core, const struct input *input, struct err *err);

#endif
