/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctld init`: all that a controller needs before its first start. */
#ifndef DAEMON_INIT_H
#define DAEMON_INIT_H

#include <stdbool.h>

#include "proto/base/err.h"

/* argv[0] is "init". Says on stdout what it has made and what to do next. Run again, it changes nothing. */
bool init_run(int argc, char **argv, struct err *err);

#endif
