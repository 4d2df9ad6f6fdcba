/* SPDX-License-Identifier: Apache-2.0 */
/* The files that travel with a job: --file LOCAL[:REMOTE]. */
#ifndef CLI_ATTACH_H
#define CLI_ATTACH_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"
#include "proto/base/settings/options.h"

/* Splits "LOCAL[:REMOTE]". Without REMOTE, a LOCAL below the current directory keeps its path, and any other
 * gets its last part. The caller frees both. */
bool attach_split(const char *argument, char **ret_local, char **ret_remote, struct err *err);

/* Adds to the "files" of the spec. Files beyond CLIENT_INLINE_BYTES are uploaded as blobs first; with api
 * NULL they are only named by their hashes. */
bool attach_files(struct api *api, const struct option_list *files, json_t *spec, struct err *err);

/* Entries of the spec's "files" that name a local file as "source" get its content instead. A path that is
 * not absolute is looked up in folder. ERR_USAGE names the entry. */
bool attach_sources(struct api *api, const char *folder, json_t *spec, struct err *err);

#endif
