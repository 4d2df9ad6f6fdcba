/* SPDX-License-Identifier: Apache-2.0 */
/* The Python programs that the agent contains and writes to disk. */
#ifndef AGENT_RUNNER_H
#define AGENT_RUNNER_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/base/trash.h"
#include "agent/shim/shimwire.h"
#include "proto/base/err.h"

#define RUNNER_ACCELERATE_FILE  "gpuctl_accelerate.py"
#define RUNNER_ENVIRONMENT_FILE "gpuctl_environment.py"

/* Each program, and its file: the runner of functions and its helper for torch's store, the launcher for
 * Accelerate, the watch of gangs with its helpers for JAX and MLflow and the file that starts it, the builder
 * of environments and its helpers for the node's Python, for pip and for its user, and the forkserver of warm
 * workers. agent/meson.build embeds agent/python/gpuctl_<name>.py as <name>_source. */
#define RUNNER_PROGRAMS(X)                                                                                   \
    X(runner, "gpuctl_runner.py")                                                                            \
    X(store, "gpuctl_store.py")                                                                              \
    X(accelerate, RUNNER_ACCELERATE_FILE)                                                                    \
    X(watch, "gpuctl_watch.py")                                                                              \
    X(jax, "gpuctl_jax.py")                                                                                  \
    X(mlflow, "gpuctl_mlflow.py")                                                                            \
    X(site, SHIM_WATCH_FOLDER "/sitecustomize.py")                                                           \
    X(environment, RUNNER_ENVIRONMENT_FILE)                                                                  \
    X(base, "gpuctl_base.py")                                                                                \
    X(pip, "gpuctl_pip.py")                                                                                  \
    X(stranger, "gpuctl_stranger.py")                                                                        \
    X(warm, "gpuctl_warm.py")

#define RUNNER_DECLARE(name, file)                                                                           \
    extern const unsigned char name##_source[];                                                              \
    extern const size_t name##_source_length;
RUNNER_PROGRAMS(RUNNER_DECLARE)
#undef RUNNER_DECLARE

/* Writes the programs into <folder>/<16 hex digits of the SHA-256 of all>, unless they are there. Returns
 * that inner folder, which the caller frees; NULL with an error. */
char *runner_stage(const char *folder, struct err *err);

/* Writes those of the programs again that are no longer as they were written, and logs them. version: what
 * runner_stage returned last. Before each use: where nothing has changed in the folder, no file is read. */
bool runner_restore(const char *version, struct err *err);

/* Removes other versions; only when no attempt lives that may still import one. */
void runner_drop_others(const char *folder, const char *kept, struct trash *trash);

#endif
