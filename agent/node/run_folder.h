/* SPDX-License-Identifier: Apache-2.0 */
/* The run folder of this boot: sockets, launch files and process numbers of live attempts. */
#ifndef AGENT_RUN_FOLDER_H
#define AGENT_RUN_FOLDER_H

#include <stdbool.h>

#include "proto/base/err.h"

/* Makes the folder, and empties it if an earlier boot filled it. *run is the folder from the settings; it is
 * replaced (still owned by the caller) by the folder that an agent of the same state folder has used in this
 * boot. */
bool run_folder_open(const char *state, const char *boot_id, char **run, struct err *err);

#endif
