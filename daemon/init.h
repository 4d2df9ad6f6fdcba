/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctld init`: prepares everything that a controller needs before its first start. */
#ifndef DAEMON_INIT_H
#define DAEMON_INIT_H

#include <stdbool.h>

#include "proto/base/err.h"

/* argv[0] is "init". Prints on stdout the files that it made and the next steps. A second run changes
 * nothing. */
bool init_run(int argc, char **argv, struct err *err);

#endif
