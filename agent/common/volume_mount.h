/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts volumes of the node where a job wants them, in the mount namespace of its attempt. */
#ifndef AGENT_VOLUME_MOUNT_H
#define AGENT_VOLUME_MOUNT_H

#include <stdbool.h>

#include "proto/base/err.h"

/* Whether a volume can be mounted at this absolute path: it is an empty folder that no link leads to, or one
 * that volume_mount makes, in /, /data, /media, /mnt or /srv. Otherwise ERR_FIELD says what it is. */
bool volume_place_check(const char *at, struct err *err);

/* Mounts the folder `from` at `at`, with all that is mounted in it, without setuid programs and devices.
 * `at` may be `from` itself. */
bool volume_mount(const char *from, const char *at, bool read_only, struct err *err);

#endif
