/* SPDX-License-Identifier: Apache-2.0 */
/* Topology: which devices of a node are near each other. */
#ifndef CORE_TOPOLOGY_H
#define CORE_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>

struct stock;

/* Chooses count free devices of a stock, which has them: as near to each other as can be, and so that what is
 * left is, too. Indices, rising; the caller owns them. */
int64_t *topology_choose(const struct stock *stock, size_t count);

#endif
