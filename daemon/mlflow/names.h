/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the names and values that MLflow allows, and draws random names. */
#ifndef MLFLOW_NAMES_H
#define MLFLOW_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/mlflow/tracking.h"

/* Checks the name of a metric, parameter or tag; what is the kind for messages, such as "metric". */
bool name_check(const char *what, const char *name, struct tracking_error *error);
bool name_check_experiment(const char *name, struct tracking_error *error);
bool name_check_run_id(const char *run_id, struct tracking_error *error);
/* Checks for at most limit characters. */
bool name_check_length(const char *what, const char *value, size_t limit, struct tracking_error *error);
/* Checks the name of a registered model: clients use it in paths and URIs. */
bool name_check_registered(const char *name, struct tracking_error *error);
/* Checks an alias of a version, but not whether clients would read it as a version ("latest", "v1"). */
bool name_check_alias(const char *alias, struct tracking_error *error);
/* Checks the place for an experiment's artifacts. */
bool name_check_location(const char *location, struct tracking_error *error);

/* The first limit characters; the caller frees them. MLflow cuts values of parameters and tags that are too
 * long. */
char *name_cut(const char *value, size_t limit);

/* The allowed name that is nearest to the given name with its suffix; the caller frees it. suffix must be
 * allowed by itself. */
char *name_fit(const char *name, const char *suffix);

/* Draws a name for a run, such as "quiet-harbor-417"; the caller frees it. */
char *name_draw_run(void);

#endif
