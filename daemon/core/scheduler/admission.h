/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the registered nodes could ever run a job. */
#ifndef CORE_SCHEDULER_ADMISSION_H
#define CORE_SCHEDULER_ADMISSION_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct resource_request;
struct text;

/* Whether a job with such a resource request would be accepted; changes nothing. */
bool admission_check(struct core *core, const struct resource_request *request, struct err *err);

/* Where the constraints leave no node, appends which of them fail: ": volume data fails on 2 of 2 nodes". */
void admission_say_failures(const struct core *core, const struct resource_request *request,
                            struct text *out);

#endif
