/* SPDX-License-Identifier: Apache-2.0 */
/* The faults of machines, links, disks and clocks, and their times. */
#ifndef SIM_NEMESIS_H
#define SIM_NEMESIS_H

#include "tests/sim/world/sim.h"

/* Arranges faults until the world is healthy. */
void nemesis_begin(struct sim *sim);
/* Restores all links; dead parts come back by themselves. */
void nemesis_end(struct sim *sim);

#endif
