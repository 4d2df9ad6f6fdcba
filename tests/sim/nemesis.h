/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong with machines, links, disks and clocks, and when. */
#ifndef SIM_NEMESIS_H
#define SIM_NEMESIS_H

#include "tests/sim/sim.h"

/* Arranges faults until the world is healthy. */
void nemesis_begin(struct sim *sim);
/* All links are whole; what is dead comes back by itself. */
void nemesis_end(struct sim *sim);

#endif
