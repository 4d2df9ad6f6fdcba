/* SPDX-License-Identifier: Apache-2.0 */
/* The state folder: one controller, or one restore, at a time. */
#ifndef DAEMON_HOME_H
#define DAEMON_HOME_H

#include "proto/base/err.h"

/* Makes the folder if it does not exist, and locks it until the returned fd is closed. -1 with ERR_CONFLICT
 * when a controller uses the folder. */
int home_lock(const char *state, struct err *err);

#endif
