/* SPDX-License-Identifier: Apache-2.0 */
/* Finds registered models and their versions. */
#ifndef MLFLOW_REGISTRY_H
#define MLFLOW_REGISTRY_H

#include <stdlib.h>

#include "daemon/mlflow/call/rights.h"

/* --- registered_models.c */

struct registered {
    int64_t key;
    const char *name; /* borrowed */
};

/* The model that the member "name" of the request names. */
struct registered registered_of_request(struct call *call, enum tracking_right right);
/* Checks the name and finds the model, by it as experiments are found; who sees all also finds those of
 * others, after these. Fails the call with RESOURCE_DOES_NOT_EXIST if the sender sees none, and with
 * PERMISSION_DENIED if it has not the right. */
struct registered registered_find(struct call *call, enum tracking_right right, const char *name);
/* The version number of an alias; fails the call with INVALID_PARAMETER_VALUE if there is no such alias. */
int64_t registered_alias(struct call *call, const struct registered *model, const char *alias);

/* --- versions.c */

/* The key of the version of that number. Fails the call with RESOURCE_DOES_NOT_EXIST if there is none. */
int64_t version_find(struct call *call, const struct registered *model, int64_t number);
/* Finds the version by a number, "latest" or a stage. Fails the call with RESOURCE_DOES_NOT_EXIST if there is
 * none. */
int64_t version_find_word(struct call *call, const struct registered *model, const char *word);

/* The key of the newest version. Fails the call with RESOURCE_DOES_NOT_EXIST if there is none. */
int64_t version_newest(struct call *call, const struct registered *model);
/* Reads a stage, ignoring case, in its stored spelling; fails the call for any other word. */
const char *version_stage(struct call *call, const char *word);
/* Shows {"model_version": ...}. */
void version_show(struct call *call, int64_t key);

/* --- source.c */

/* The origin of a new version. */
struct version_source {
    char *source;   /* URI; owned, as all of these */
    char *location; /* URI of the files */
    char *run_id;   /* "": none */
    char *model_id; /* of the logged model; "": none */
};

static inline void cleanup_version_source(struct version_source *source)
{
    free(source->source);
    free(source->location);
    free(source->run_id);
    free(source->model_id);
}
#define autosource __attribute__((cleanup(cleanup_version_source)))

/* Reads the members source, run_id and model_id of the request and finds the files. Files on this server must
 * belong to the run or logged model that the request names. */
struct version_source version_source_read(struct call *call);

#endif
