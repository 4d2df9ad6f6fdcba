/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and shows registered models and their versions, inside a transaction. */
#ifndef MLFLOW_REGISTRY_H
#define MLFLOW_REGISTRY_H

#include <jansson.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "daemon/mlflow/queries.h"
#include "daemon/mlflow/tracking.h"

/* The stages of a version, in the spelling of clients. */
#define VERSION_STAGES(X) X(None) X(Staging) X(Production) X(Archived)

/* --- registry.c */

struct registered {
    int64_t key;
    const char *name; /* borrowed from the request */
};

/* The model that the member "name" of a request names. False with RESOURCE_DOES_NOT_EXIST if there is
 * none. */
bool registered_of_request(struct tracking *tracking, const json_t *body, struct registered *model,
                           struct tracking_error *error);
/* Checks the name and finds the model. */
bool registered_find(struct tracking *tracking, const char *name, struct registered *model,
                     struct tracking_error *error);
/* The version number of an alias; false with INVALID_PARAMETER_VALUE if there is no such alias. */
bool registered_alias(struct tracking *tracking, const struct registered *model, const char *alias,
                      int64_t *ret_number, struct tracking_error *error);

/* Appends an object. The statement is at a row of COLUMNS_REGISTERED. */
bool show_registered(struct tracking *tracking, sqlite3_stmt *row, struct text *out,
                     struct tracking_error *error);

/* The queries of a table of tags. */
struct tag_table {
    enum query put, count;
};
/* Writes an array of objects {key, value} into the table, for the owner. */
bool registry_put_tags(struct tracking *tracking, const struct tag_table *table, int64_t owner,
                       const json_t *tags, struct tracking_error *error);
/* Writes one object {key, value}. */
bool registry_put_tag(struct tracking *tracking, const struct tag_table *table, int64_t owner,
                      const json_t *tag, struct tracking_error *error);

/* --- registry_versions.c */

/* Appends an object. The statement is at a row of COLUMNS_VERSION. */
bool show_version(struct tracking *tracking, sqlite3_stmt *row, struct text *out,
                  struct tracking_error *error);
/* Appends "[...]": the newest version of each stage in stages; stages NULL or empty: of all stages. */
bool show_latest(struct tracking *tracking, int64_t model, const json_t *stages, struct text *out,
                 struct tracking_error *error);
/* Reads a stage, ignoring case, in its stored spelling; INVALID_PARAMETER_VALUE for any other word. */
bool version_stage(const char *word, const char **ret_stage, struct tracking_error *error);
/* Checks that the version of that number exists. False with RESOURCE_DOES_NOT_EXIST if there is none. */
bool version_find(struct tracking *tracking, const struct registered *model, int64_t number, int64_t *ret_key,
                  struct tracking_error *error);

/* --- registry_source.c */

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

/* Reads the members source, run_id and model_id of a request and finds the files. Files on this server must
 * belong to the run or logged model that the request names. */
bool version_source_read(struct tracking *tracking, const json_t *body, struct version_source *source,
                         struct tracking_error *error);

#endif
