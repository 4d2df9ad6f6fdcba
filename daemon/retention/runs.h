/* SPDX-License-Identifier: Apache-2.0 */
/* Retention of MLflow's runs. */
#ifndef RETENTION_RUNS_H
#define RETENTION_RUNS_H

#include "daemon/retention/round.h"

/* Removes runs that have reached their age, with their files, and gives free pages of their database back. */
bool runs_sweep(struct round *round);

#endif
