/* SPDX-License-Identifier: Apache-2.0 */
/* The Python environments that this node has: where they are, which are ready, which are in use, which must
 * go. gpuctl_environment.py makes them. */
#ifndef AGENT_ENVIRONMENTS_H
#define AGENT_ENVIRONMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct environments;

/* folder may be shared by the agents of one host, and is made if need be. python is the interpreter of jobs
 * that name none, NULL for python3 on PATH. */
struct environments *environments_create(const char *folder, const char *python, int64_t limit_bytes,
                                         struct err *err);
void environments_destroy(struct environments *environments);

const char *environments_folder(const struct environments *environments);

/* What is asked for. */
struct environment_need {
    const char *requirements;   /* SHA-256 in hex */
    const char *python_version; /* or NULL */
    const char *python;         /* or NULL: the agent's */
};

/* What this node calls it: a hash of the need and of the interpreter as it is now. Both are the caller's to
 * free; false with an error where there is no such interpreter. */
bool environment_name(const struct environments *environments, const struct environment_need *need,
                      char **ret_name, char **ret_interpreter, struct err *err);

/* Keeps an environment from being thrown away until the descriptor is closed, which is the caller's; -1 with
 * an error where it is not ready. fresh asks for more than that it is whole: that what it takes from the
 * node's own Python was not changed since. *ret_folder is the caller's. */
int environment_use(const struct environments *environments, const char *name, bool fresh, char **ret_folder,
                    struct err *err);

/* The file that users of an environment lock together (flock), its builder alone. The caller frees it. */
char *environment_lock_path(const char *folder);

/* Throws away what a killed builder left, and as much of what is not in use as the limit asks for, those used
 * longest ago first. */
void environments_make_room(struct environments *environments);

/* Deletes a piece of what was thrown away; true while there is more. */
bool environments_step(struct environments *environments);

#endif
