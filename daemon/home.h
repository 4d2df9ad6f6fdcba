/* SPDX-License-Identifier: Apache-2.0 */
/* The state folder: one controller, or one restore, at a time. */
#ifndef DAEMON_HOME_H
#define DAEMON_HOME_H

#include "proto/base/err.h"

/* Makes the folder when it is not there, and locks it for as long as the fd is open. -1 with ERR_CONFLICT
 * when a controller uses it. */
int home_lock(const char *state, struct err *err);

#endif
