/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters and tags of a run, inside a transaction. */
#ifndef MLFLOW_ENTRIES_H
#define MLFLOW_ENTRIES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/mlflow/tracking.h"

/* The run's name as a tag: setting it renames the run. */
#define TAG_RUN_NAME "mlflow.runName"

/* Sets a tag; cuts a value that is too long. */
bool tag_put(struct tracking *tracking, int64_t run, const char *name, const char *value,
             struct tracking_error *error);
/* Sets the tags of an array of objects {key, value}; NULL: none. */
bool tags_put(struct tracking *tracking, int64_t run, const json_t *tags, struct tracking_error *error);
/* Sets one object {key, value}. The parameter may exist with the same value, but not with a different one. */
bool param_put(struct tracking *tracking, const char *run_id, int64_t run, const json_t *param,
               struct tracking_error *error);

/* The value, cut to the length of a tag; the caller frees it. */
char *value_cut_tag(const char *value);

#endif
