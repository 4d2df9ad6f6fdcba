/* SPDX-License-Identifier: Apache-2.0 */
/* Expiry: how long an attempt may stay in its present state. */
#ifndef CORE_LIFECYCLE_EXPIRY_H
#define CORE_LIFECYCLE_EXPIRY_H

struct attempt;
struct core;

/* Its present state begins now. */
void expiry_set(struct core *core, struct attempt *attempt);

/* What it is allowed has changed; its present state began when it did. */
void expiry_renew(struct core *core, struct attempt *attempt);

/* Its deadline has come. */
void expiry_due(struct core *core, struct attempt *attempt);

#endif
