/* SPDX-License-Identifier: Apache-2.0 */
/* The files that travel with a job: --file LOCAL[:REMOTE]. */
#ifndef CLI_ATTACH_H
#define CLI_ATTACH_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"
#include "proto/base/options.h"

/* Splits "LOCAL[:REMOTE]". Without REMOTE it is LOCAL as long as that lies below the current directory, else
 * its last part. The caller frees both. */
bool attach_split(const char *argument, char **ret_local, char **ret_remote, struct err *err);

/* Adds to the "files" of the spec. What does not fit into CLIENT_INLINE_BYTES is put as blobs first; with api
 * NULL it is only named by its hash. */
bool attach_files(struct api *api, const struct option_list *files, json_t *spec, struct err *err);

/* Entries of the spec's "files" that name a local file as "source" get its content instead. A path that is
 * not absolute is looked up in folder. ERR_USAGE names the entry. */
bool attach_sources(struct api *api, const char *folder, json_t *spec, struct err *err);

#endif
