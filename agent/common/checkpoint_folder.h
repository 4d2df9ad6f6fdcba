/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the folder of a job's checkpoints on a volume. */
#ifndef AGENT_CHECKPOINT_FOLDER_H
#define AGENT_CHECKPOINT_FOLDER_H

#include <stdbool.h>

#include "proto/base/err.h"

/* Makes VOLUME/PARENT/NAME with the rights of this process, or finds it: afterwards it is a folder that
 * nobody but this user enters. Takes as long as the file system does. */
bool checkpoint_folder_make(const char *volume, const char *parent, const char *name, struct err *err);

#endif
