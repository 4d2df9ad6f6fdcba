/* SPDX-License-Identifier: Apache-2.0 */
/* The need of a job, from its spec to the core. */
#ifndef DAEMON_NEED_H
#define DAEMON_NEED_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/core/core.h"
#include "proto/jobspec.h"

/* core borrows from the rest. */
struct need {
    struct core_need core;
    json_t *json;
    char *text;
};

/* false: the spec needs nothing, and *ret_need is empty. */
bool need_of_spec(const struct job_spec *spec, struct need *ret_need);
void need_finish(struct need *need);

#endif
