/* SPDX-License-Identifier: Apache-2.0 */
/* The names and values that MLflow allows, and random names. A check fails the call. */
#ifndef MLFLOW_NAMES_H
#define MLFLOW_NAMES_H

#include <stddef.h>

#include "daemon/mlflow/call/call.h"

/* Checks the name of a metric, parameter or tag; what is the kind for messages, such as "metric". */
void name_check(struct call *call, const char *what, const char *name);
void name_check_experiment(struct call *call, const char *name);
void name_check_run_id(struct call *call, const char *run_id);
/* Checks for at most limit characters. */
void name_check_length(struct call *call, const char *what, const char *value, size_t limit);
/* Checks the name of a registered model: clients use it in paths and URIs. */
void name_check_registered(struct call *call, const char *name);
/* Checks an alias of a version, but not whether clients would read it as a version ("latest", "v1"). */
void name_check_alias(struct call *call, const char *alias);
/* Checks the place for an experiment's artifacts. */
void name_check_location(struct call *call, const char *location);

/* The first limit characters; the caller frees them. MLflow cuts values of parameters and tags that are too
 * long. */
char *name_cut(const char *value, size_t limit);

/* The allowed name that is nearest to the given name with its suffix; the caller frees it. suffix must be
 * allowed by itself. */
char *name_fit(const char *name, const char *suffix);

/* Draws a name for a run, such as "quiet-harbor-417"; the caller frees it. */
char *name_draw_run(void);

#endif
