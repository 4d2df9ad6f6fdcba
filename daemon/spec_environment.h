/* SPDX-License-Identifier: Apache-2.0 */
/* The environment that a job needs, from its spec to the core. */
#ifndef DAEMON_SPEC_ENVIRONMENT_H
#define DAEMON_SPEC_ENVIRONMENT_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/core/core.h"
#include "proto/spec/jobspec.h"

/* core borrows from the rest. */
struct spec_environment {
    struct environment_spec core;
    json_t *json;
    char *text;
};

/* false: the spec needs nothing, and *ret_environment is empty. */
bool spec_environment_of(const struct job_spec *spec, struct spec_environment *ret_environment);
void spec_environment_finish(struct spec_environment *environment);

#endif
