/* SPDX-License-Identifier: Apache-2.0 */
/* The attempts that this node has run since its boot and has forgotten: none of them is claimed again. */
#ifndef AGENT_SEEN_H
#define AGENT_SEEN_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

#define SEEN_FILE "seen" /* in the run folder */

struct seen;

/* NULL with *err. */
struct seen *seen_open(const char *run, struct err *err);
void seen_close(struct seen *seen);

/* Whether the id was added, or is so old that it may have been. */
bool seen_has(const struct seen *seen, uint64_t attempt_id);

/* Adds the id. False if it could not be written: then it must be recorded in another way. */
bool seen_add(struct seen *seen, uint64_t attempt_id);

#endif
