/* SPDX-License-Identifier: Apache-2.0 */
/* Reports: a node's messages about its part of an attempt. */
#ifndef CORE_INPUTS_REPORT_H
#define CORE_INPUTS_REPORT_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;

/* The input REPORT. A repeated report is accepted again and changes nothing. */
bool report_take(struct core *core, const struct input *input, struct err *err);

#endif
