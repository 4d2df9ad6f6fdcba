/* SPDX-License-Identifier: Apache-2.0 */
/* Removes old jobs from the simulated controller, in place of the thread of daemon/retention/retention.c. */
#ifndef SIM_JANITOR_H
#define SIM_JANITOR_H

#include "tests/sim/world/sim.h"

void janitor_begin(struct sim *sim);

#endif
