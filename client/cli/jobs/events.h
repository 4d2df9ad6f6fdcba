/* SPDX-License-Identifier: Apache-2.0 */
/* The history of a job as `events` and `get` show it. */
#ifndef CLI_EVENTS_H
#define CLI_EVENTS_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

/* All events of the job, a new reference. */
json_t *events_get(struct api *api, const char *id, struct err *err);
/* Appends them as a table; width as for grid_print. */
void events_table(const json_t *events, bool wide, size_t width, struct text *out);

#endif
