/* SPDX-License-Identifier: Apache-2.0 */
/* Stored bytes into a file. */
#ifndef CLI_SAVE_H
#define CLI_SAVE_H

#include <stdbool.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"

/* Refuses a place that save_blob could not or should not write: a folder, a terminal. "-" is stdout. */
bool save_check(const char *place, struct err *err);

/* Streams the blob of that hash to the place and checks it. A file appears whole or not at all, over the one
 * that was there; stdout and what is no regular file are written as the bytes come. From now on SIGINT and
 * SIGTERM are counted, not deadly; one ends the transfer. */
bool save_blob(struct api *api, const char *sha256, const char *place, struct err *err);

#endif
