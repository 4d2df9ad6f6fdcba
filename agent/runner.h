/* SPDX-License-Identifier: Apache-2.0 */
/* The Python programs that this one carries and lays on disk: gpuctl_runner.py, which runs a function in a
 * rank, gpuctl_accelerate.py, which is `accelerate launch` in a rank, gpuctl_environment.py, which makes the
 * environments of jobs, and gpuctl_warm.py, the forkserver of warm workers. */
#ifndef AGENT_RUNNER_H
#define AGENT_RUNNER_H

#include <stddef.h>

#include "agent/trash.h"
#include "proto/base/err.h"

/* gpuctl_runner.py, as it was when the program was built. */
extern const unsigned char runner_source[];
extern const size_t runner_source_length;

/* Likewise gpuctl_accelerate.py. */
extern const unsigned char accelerate_source[];
extern const size_t accelerate_source_length;

/* Likewise gpuctl_environment.py. */
extern const unsigned char environment_source[];
extern const size_t environment_source_length;

/* Likewise gpuctl_warm.py. */
extern const unsigned char warm_source[];
extern const size_t warm_source_length;

#define RUNNER_ACCELERATE_FILE "gpuctl_accelerate.py"

/* Lays gpuctl_runner.py and gpuctl_accelerate.py into <folder>/<16 hex digits of the SHA-256 of both>, unless
 * they are there. Returns that inner folder, which the caller frees; NULL with an error. */
char *runner_lay(const char *folder, struct err *err);

/* Throws other versions away: when no attempt lives that may still import one. */
void runner_drop_others(const char *folder, const char *kept, struct trash *trash);

/* Lays gpuctl_environment.py at <folder>/gpuctl_environment.py; one that runs has read its file. Returns its
 * path, which the caller frees; NULL with an error. */
char *runner_lay_builder(const char *folder, struct err *err);

/* Lays gpuctl_warm.py at <folder>/gpuctl_warm.py. Returns the folder, which the caller frees; NULL with an
 * error. */
char *runner_lay_warm(const char *folder, struct err *err);

#endif
