/* SPDX-License-Identifier: Apache-2.0 */
/* The Python environments of this node: where they are, which are ready, which are in use, which to remove.
 * gpuctl_environment.py builds them. */
#ifndef AGENT_ENVIRONMENTS_H
#define AGENT_ENVIRONMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct environments;

/* folder may be shared by the agents of one host, and is made if it does not exist. python is the interpreter
 * of jobs that name none; NULL: python3 on PATH. */
struct environments *environments_create(const char *folder, const char *python, int64_t limit_bytes,
                                         struct err *err);
void environments_destroy(struct environments *environments);

const char *environments_folder(const struct environments *environments);

/* The environment that a job asks for. */
struct environment_need {
    const char *requirements;   /* SHA-256 in hex */
    const char *python_version; /* or NULL */
    const char *python;         /* or NULL: the agent's */
};

/* The node's name for the environment: a hash of the need and of the current interpreter. The caller frees
 * both results. False with an error if there is no such interpreter. */
bool environment_name(const struct environments *environments, const struct environment_need *need,
                      char **ret_name, char **ret_interpreter, struct err *err);

/* Locks an environment against removal until the caller closes the returned descriptor; -1 with an error if
 * it is not ready. With fresh, the packages of the node's own Python on which it builds must also be
 * unchanged. The caller frees *ret_folder. */
int environment_use(const struct environments *environments, const char *name, bool fresh, char **ret_folder,
                    struct err *err);

/* Removes incomplete environments of killed builders, and as many unused ones as the limit requires, the
 * least recently used first. */
void environments_make_room(struct environments *environments);

/* Deletes a piece of the trash; true while there is more. */
bool environments_step(struct environments *environments);

#endif
