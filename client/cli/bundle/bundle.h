/* SPDX-License-Identifier: Apache-2.0 */
/* The folder that travels with a job: --bundle, --python-path, `bundle` of job files. */
#ifndef CLI_BUNDLE_H
#define CLI_BUNDLE_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/transport/api.h"
#include "client/cli/show/notes.h"
#include "proto/base/err.h"

/* `bundle` of a job file: makes its `source`, a path from folder, a path from here. */
bool bundle_read(const char *folder, json_t *spec, struct err *err);

/* Packs the `source` of the spec's bundle, uploads it, and names its blob instead. With api NULL the folder
 * is only listed, and source becomes an absolute path. Errors name field. notes may be NULL. */
bool bundle_fill(struct api *api, json_t *spec, const char *field, struct notes *notes, struct err *err);

/* The same without sending: names the blob by its hash. */
bool bundle_name(json_t *spec, struct err *err);

#endif
