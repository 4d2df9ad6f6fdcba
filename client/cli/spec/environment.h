/* SPDX-License-Identifier: Apache-2.0 */
/* The Python packages that a job needs: --requirements, --python-version, `environment` of job files. */
#ifndef CLI_ENVIRONMENT_H
#define CLI_ENVIRONMENT_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/transport/api.h"
#include "client/cli/spec/spec.h"
#include "proto/base/err.h"

/* `environment` of a job file, whose files are named from folder: replaces the file by its lines. */
bool environment_read(const char *folder, json_t *spec, struct err *err);

/* Adds the options, checks the result, and uploads lines that are too long for the spec as a blob. With api
 * NULL nothing is sent. */
bool environment_fill(struct api *api, const struct spec_options *options, json_t *spec, struct err *err);

#endif
