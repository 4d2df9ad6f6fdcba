/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of `gpuctl doctor`: what was looked at, how it is, and what to do. */
#ifndef CLI_FINDINGS_H
#define CLI_FINDINGS_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/frame/verb.h"
#include "proto/base/err.h"

enum finding { FINDING_OK, FINDING_WARN, FINDING_FAIL };

struct findings {
    json_t *items; /* {check, state, found, remedy} */
    bool failed;
};

/* remedy may be NULL. */
void findings_add(struct findings *findings, enum finding state, const char *check, const char *remedy,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));
void findings_add_error(struct findings *findings, const char *check, const struct err *err);

/* Looks at the settings, the controller that they name, and its nodes. */
void findings_of_controller(const struct call *call, struct findings *findings);
/* Looks at this machine as a node. */
void findings_of_node(struct findings *findings);

#endif
