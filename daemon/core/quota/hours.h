/* SPDX-License-Identifier: Apache-2.0 */
/* Who held which GPUs for how long, hour by hour. This stays when jobs are removed, and is what people are
 * shown and charged; fair shares have decaying sums of their own. */
#ifndef CORE_QUOTA_HOURS_H
#define CORE_QUOTA_HOURS_H

struct attempt;
struct core;

/* Adds what an attempt that has just ended held: all its GPUs, from created_ms to ended_ms. */
void hours_charge(struct core *core, const struct attempt *attempt);

#endif
