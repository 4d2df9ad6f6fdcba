/* SPDX-License-Identifier: Apache-2.0 */
/* Registration: a node comes, or comes back, and says what lives on it. */
#ifndef CORE_INPUTS_REGISTER_H
#define CORE_INPUTS_REGISTER_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;

/* The input REGISTER. */
bool register_node(struct core *core, const struct input *input, struct err *err);

#endif
