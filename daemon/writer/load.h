/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the live state from the store into a core that has not run a step yet. */
#ifndef DAEMON_WRITER_LOAD_H
#define DAEMON_WRITER_LOAD_H

#include <stdbool.h>

#include "daemon/core/core.h"
#include "daemon/store/store.h"

bool load_live(struct store *store, struct core *core, struct err *err);

#endif
