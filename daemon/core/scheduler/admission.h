/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the registered nodes could ever run a job. */
#ifndef CORE_SCHEDULER_ADMISSION_H
#define CORE_SCHEDULER_ADMISSION_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct resource_request;

/* Whether a job with such a resource request would be accepted; changes nothing. */
bool admission_check(struct core *core, const struct resource_request *request, struct err *err);

#endif
