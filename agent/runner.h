/* SPDX-License-Identifier: Apache-2.0 */
/* The program that runs a function in a rank: gpuctl_runner.py, carried in this one and laid on disk for the
 * ranks. */
#ifndef AGENT_RUNNER_H
#define AGENT_RUNNER_H

#include <stddef.h>

#include "agent/trash.h"
#include "proto/base/err.h"

/* gpuctl_runner.py, as it was when the program was built. */
extern const unsigned char runner_source[];
extern const size_t runner_source_length;

/* Lays it at <folder>/<16 hex digits of its SHA-256>/gpuctl_runner.py, unless it is there. Returns that inner
 * folder, which the caller frees; NULL with an error. */
char *runner_lay(const char *folder, struct err *err);

/* Throws other versions away: when no attempt lives that may still import one. */
void runner_drop_others(const char *folder, const char *kept, struct trash *trash);

#endif
