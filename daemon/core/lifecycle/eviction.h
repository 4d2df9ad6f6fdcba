/* SPDX-License-Identifier: Apache-2.0 */
/* What runs on nodes that go away. */
#ifndef CORE_LIFECYCLE_EVICTION_H
#define CORE_LIFECYCLE_EVICTION_H

struct core;

/* Stops what can no longer end before its node goes; notes when the next is due. */
void eviction_watch(struct core *core);

#endif
