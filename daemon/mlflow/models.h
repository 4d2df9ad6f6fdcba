/* SPDX-License-Identifier: Apache-2.0 */
/* Shows logged models, and those that a run made, inside a transaction. */
#ifndef MLFLOW_MODELS_H
#define MLFLOW_MODELS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/mlflow/tracking.h"

/* The states of a model; clients spell them LOGGED_MODEL_... */
#define MODEL_STATUSES(X) X(PENDING) X(READY) X(UPLOAD_FAILED)

/* Appends an object. The statement is at a row of COLUMNS_MODEL. */
bool show_model(struct tracking *tracking, sqlite3_stmt *row, struct text *out, struct tracking_error *error);

/* Appends "[...]": the models that a run made. */
bool show_model_outputs(struct tracking *tracking, int64_t run, struct text *out,
                        struct tracking_error *error);

/* Finds the place of a logged model's files, and the id of the run that made it ("": none); the caller frees
 * both. *ret_there false: there is no such model. */
bool model_place(struct tracking *tracking, const char *id, bool *ret_there, char **ret_uri, char **ret_run,
                 struct tracking_error *error);

#endif
