/* SPDX-License-Identifier: Apache-2.0 */
/* The signals that do not end the shim, and whose default it restores for its ranks. Some ask a program to
 * end, which only the agent may ask of the shim (a TERM of init ends the attempt, see shim.c). The others
 * would end the shim when it writes to a dead pipe or beyond a file size limit. */
#ifndef AGENT_SHIM_SIGNALS_H
#define AGENT_SHIM_SIGNALS_H

#include <signal.h>

static const int shim_ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGXFSZ};

#define SHIM_IGNORED_COUNT (sizeof shim_ignored / sizeof shim_ignored[0])

#endif
