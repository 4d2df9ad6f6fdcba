/* SPDX-License-Identifier: Apache-2.0 */
/* What gpuctld does instead of serving: gpuctld --backup, --restore and --check. */
#ifndef DAEMON_UPKEEP_H
#define DAEMON_UPKEEP_H

#include <stdbool.h>

#include "daemon/config.h"
#include "proto/base/err.h"

bool upkeep_wanted(const struct config *config);

/* Does it, and says on stdout what was done. A check that finds something fails with ERR_IO, after it has
 * named all that it found. */
bool upkeep_run(const struct config *config, struct err *err);

#endif
