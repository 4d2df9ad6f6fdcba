/* SPDX-License-Identifier: Apache-2.0 */
/* The Python programs that the agent contains and writes to disk: gpuctl_runner.py runs a function in a rank;
 * gpuctl_accelerate.py is `accelerate launch` in a rank; gpuctl_watch.py with gpuctl_site.py, gpuctl_jax.py
 * and gpuctl_mlflow.py help frameworks to make one world of a gang; gpuctl_environment.py builds the
 * environments of jobs; gpuctl_warm.py is the forkserver of warm workers. */
#ifndef AGENT_RUNNER_H
#define AGENT_RUNNER_H

#include <stddef.h>

#include "agent/base/trash.h"
#include "proto/base/err.h"

/* The programs at the time of the build, as NAME_source and NAME_source_length. X(NAME) */
#define RUNNER_PROGRAMS(X) X(runner) X(accelerate) X(watch) X(jax) X(mlflow) X(site) X(environment) X(warm)
#define AS_SOURCE(name)                                                                                      \
    extern const unsigned char name##_source[];                                                              \
    extern const size_t name##_source_length;
RUNNER_PROGRAMS(AS_SOURCE)

#define RUNNER_ACCELERATE_FILE "gpuctl_accelerate.py"

/* Writes the programs of ranks (gpuctl_runner.py, gpuctl_accelerate.py, gpuctl_watch.py, gpuctl_jax.py,
 * gpuctl_mlflow.py and watch/sitecustomize.py) into <folder>/<16 hex digits of the SHA-256 of all>, unless
 * they are there. Returns that inner folder, which the caller frees; NULL with an error. */
char *runner_stage(const char *folder, struct err *err);

/* Removes other versions; only when no attempt lives that may still import one. */
void runner_drop_others(const char *folder, const char *kept, struct trash *trash);

/* Writes <folder>/gpuctl_environment.py; a running builder has read its file already. Returns the path, which
 * the caller frees; NULL with an error. */
char *runner_stage_builder(const char *folder, struct err *err);

/* Writes <folder>/gpuctl_warm.py. Returns the folder, which the caller frees; NULL with an error. */
char *runner_stage_warm(const char *folder, struct err *err);

#endif
