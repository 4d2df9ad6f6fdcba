/* SPDX-License-Identifier: Apache-2.0 */
/* Topology: which devices of a node are near each other. */
#ifndef CORE_FLEET_TOPOLOGY_H
#define CORE_FLEET_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>

struct capacity;

/* Chooses count free devices of a node capacity, which has that many: as near to each other as possible, so
 * that the devices left are near each other, too. Returns ascending indices; the caller owns them. */
int64_t *topology_choose(const struct capacity *capacity, size_t count);

#endif
