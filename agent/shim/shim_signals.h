/* SPDX-License-Identifier: Apache-2.0 */
/* The signals that do not end the shim and that it gives back to its ranks: those that tell a program to end,
 * which only the agent may tell the shim (a TERM of init ends the attempt, see shim.c), and those by which a
 * write to a dead pipe or beyond a file size limit would end it. */
#ifndef AGENT_SHIM_SIGNALS_H
#define AGENT_SHIM_SIGNALS_H

#include <signal.h>

static const int shim_ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGXFSZ};

#define SHIM_IGNORED_COUNT (sizeof shim_ignored / sizeof shim_ignored[0])

#endif
