/* SPDX-License-Identifier: Apache-2.0 */
/* The actions of gpuctld instead of serving: gpuctld --backup, --restore and --check. */
#ifndef DAEMON_UPKEEP_H
#define DAEMON_UPKEEP_H

#include <stdbool.h>

#include "daemon/config.h"
#include "proto/base/err.h"

bool upkeep_wanted(const struct config *config);

/* Runs the action and prints the result on stdout. A check with findings fails with ERR_IO after it has
 * printed all of them. */
bool upkeep_run(const struct config *config, struct err *err);

#endif
