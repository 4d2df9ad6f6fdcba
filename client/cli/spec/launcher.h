/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that start the ranks of a node themselves. */
#ifndef CLIENT_LAUNCHER_H
#define CLIENT_LAUNCHER_H

#include <jansson.h>
#include <stdbool.h>

/* Whether the command, an array of strings or NULL, is torchrun under one of its names, also as the first
 * command of a script for a shell. */
bool launcher_is_torchrun(const json_t *command);

#endif
