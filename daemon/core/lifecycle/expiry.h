/* SPDX-License-Identifier: Apache-2.0 */
/* Expiry: how long an attempt may stay in its current state. */
#ifndef CORE_LIFECYCLE_EXPIRY_H
#define CORE_LIFECYCLE_EXPIRY_H

#include <stdint.h>

struct attempt;
struct core;

/* Sets the deadline of the state that begins now. */
void expiry_set(struct core *core, struct attempt *attempt);

/* Recalculates the deadline after a limit changed; the start of the state stays. */
void expiry_renew(struct core *core, struct attempt *attempt);

/* When the time limit of a STARTED attempt ends it; NEVER: it has none. */
int64_t expiry_limit_ms(const struct attempt *attempt);

/* Acts on an attempt whose deadline has come. */
void expiry_due(struct core *core, struct attempt *attempt);

#endif
