/* SPDX-License-Identifier: Apache-2.0 */
/* The names and values that MLflow allows, and names that are drawn. */
#ifndef MLFLOW_NAMES_H
#define MLFLOW_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/mlflow/tracking.h"

/* Of a metric, parameter or tag; what says which, as "metric". */
bool name_check(const char *what, const char *name, struct tracking_error *error);
bool name_check_experiment(const char *name, struct tracking_error *error);
bool name_check_run_id(const char *run_id, struct tracking_error *error);
/* At most limit characters. */
bool name_check_length(const char *what, const char *value, size_t limit, struct tracking_error *error);
/* Of a registered model: clients make paths and URIs of it. */
bool name_check_registered(const char *name, struct tracking_error *error);
/* Of an alias of a version; whether it is one that clients take for a version by themselves is not asked. */
bool name_check_alias(const char *alias, struct tracking_error *error);
/* Where an experiment shall put its artifacts. */
bool name_check_location(const char *location, struct tracking_error *error);

/* The first limit characters, which the caller frees: MLflow cuts values of parameters and tags that are too
 * long. */
char *name_cut(const char *value, size_t limit);

/* A name that MLflow allows and that is as near to the given one and its suffix as can be; the caller frees
 * it. suffix is allowed by itself. */
char *name_fit(const char *name, const char *suffix);

/* A name for a run, as "quiet-harbor-417"; the caller frees it. */
char *name_draw_run(void);

#endif
