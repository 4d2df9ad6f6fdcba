/* SPDX-License-Identifier: Apache-2.0 */
/* The run folder of this boot: sockets, launch files and process numbers of the attempts that live. */
#ifndef AGENT_RUN_FOLDER_H
#define AGENT_RUN_FOLDER_H

#include <stdbool.h>

#include "proto/base/err.h"

/* Makes the folder, emptied if an earlier boot filled it. *run is what the settings of this start say; it is
 * replaced (owned, as before) by the folder that an agent of the same state folder has used in this boot. */
bool run_folder_open(const char *state, const char *boot_id, char **run, struct err *err);

#endif
