/* SPDX-License-Identifier: Apache-2.0 */
/* Passes the environment spec of a job from its job spec to the core. */
#ifndef DAEMON_WRITER_SPEC_ENVIRONMENT_H
#define DAEMON_WRITER_SPEC_ENVIRONMENT_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/core/core.h"
#include "proto/spec/jobspec.h"

/* core borrows from the other members. */
struct spec_environment {
    struct environment_spec core;
    json_t *json;
    char *text, *parts;
};

/* owner: of the job. false: the spec needs no environment, and *ret_environment is empty. */
bool spec_environment_of(const struct job_spec *spec, const char *owner,
                         struct spec_environment *ret_environment);
void spec_environment_finish(struct spec_environment *environment);

#endif
