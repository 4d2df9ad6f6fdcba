/* SPDX-License-Identifier: Apache-2.0 */
/* What a node says of an environment that it was to get ready. */
#ifndef CORE_INPUTS_STAGING_REPORT_H
#define CORE_INPUTS_STAGING_REPORT_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;

/* The input STAGING. */
bool staging_report_take(struct core *core, const struct input *input, struct err *err);

#endif
