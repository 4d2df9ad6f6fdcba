/* SPDX-License-Identifier: Apache-2.0 */
/* Finds logged models. */
#ifndef MLFLOW_LOGGED_MODELS_H
#define MLFLOW_LOGGED_MODELS_H

#include "daemon/mlflow/call/call.h"

/* Finds the place of a logged model's files, and the id of the run that made it ("": none); the caller frees
 * both. Fails the call with RESOURCE_DOES_NOT_EXIST if there is no such model; both are NULL then. */
void logged_model_place(struct call *call, const char *id, char **ret_uri, char **ret_run);

#endif
