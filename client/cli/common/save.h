/* SPDX-License-Identifier: Apache-2.0 */
/* Stored bytes into a file. */
#ifndef CLI_SAVE_H
#define CLI_SAVE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"

/* Refuses a place that save_blob could not or should not write: a folder, a terminal. "-" is stdout. */
bool save_check(const char *place, struct err *err);

/* What the controller stores. */
struct stored {
    const char *path;   /* in the API */
    const char *sha256; /* of the bytes; NULL: not known */
    int64_t size;       /* of them; -1: not known */
};

/* Streams the bytes to the place and checks them. A file appears whole or not at all, over the one
 * that was there; stdout and what is no regular file are written as the bytes come. From now on SIGINT and
 * SIGTERM are counted, not deadly; one ends the transfer. */
bool save_stored(struct api *api, const struct stored *stored, const char *place, struct err *err);
/* The same for the blob of that hash. */
bool save_blob(struct api *api, const char *sha256, const char *place, struct err *err);

#endif
