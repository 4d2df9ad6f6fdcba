/* SPDX-License-Identifier: Apache-2.0 */
/* The registry inside a transaction: how registered models and their versions are found and shown. */
#ifndef MLFLOW_REGISTRY_H
#define MLFLOW_REGISTRY_H

#include <jansson.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "daemon/mlflow/queries.h"
#include "daemon/mlflow/tracking.h"

/* The stages of a version, spelled as clients know them. */
#define VERSION_STAGES(X) X(None) X(Staging) X(Production) X(Archived)

/* --- registry.c */

struct registered {
    int64_t key;
    const char *name; /* borrowed from the request */
};

/* The model that the member "name" of a request names. False with RESOURCE_DOES_NOT_EXIST where there is
 * none. */
bool registered_of_request(struct tracking *tracking, const json_t *body, struct registered *model,
                           struct tracking_error *error);
/* By its name, which is checked. */
bool registered_find(struct tracking *tracking, const char *name, struct registered *model,
                     struct tracking_error *error);
/* The version number that an alias has; false with INVALID_PARAMETER_VALUE where there is no such alias. */
bool registered_alias(struct tracking *tracking, const struct registered *model, const char *alias,
                      int64_t *ret_number, struct tracking_error *error);

/* Appends an object. The statement stands on a row of COLUMNS_REGISTERED. */
bool show_registered(struct tracking *tracking, sqlite3_stmt *row, struct text *out,
                     struct tracking_error *error);

/* The queries of a table of tags. */
struct tag_table {
    enum query put, count;
};
/* Objects {key, value} into the table, for the owner. */
bool registry_put_tags(struct tracking *tracking, const struct tag_table *table, int64_t owner,
                       const json_t *tags, struct tracking_error *error);
/* One object {key, value}. */
bool registry_put_tag(struct tracking *tracking, const struct tag_table *table, int64_t owner,
                      const json_t *tag, struct tracking_error *error);

/* --- registry_versions.c */

/* Appends an object. The statement stands on a row of COLUMNS_VERSION. */
bool show_version(struct tracking *tracking, sqlite3_stmt *row, struct text *out,
                  struct tracking_error *error);
/* Appends "[...]", the newest version of each stage; stages NULL or empty: of all stages, else of those that
 * the texts name. */
bool show_latest(struct tracking *tracking, int64_t model, const json_t *stages, struct text *out,
                 struct tracking_error *error);
/* The word of a stage, in any case, as it is stored; INVALID_PARAMETER_VALUE where it is none. */
bool version_stage(const char *word, const char **ret_stage, struct tracking_error *error);
/* A version is there, by its number. False with RESOURCE_DOES_NOT_EXIST where there is none. */
bool version_find(struct tracking *tracking, const struct registered *model, int64_t number, int64_t *ret_key,
                  struct tracking_error *error);

/* --- registry_source.c */

/* What a new version is made of. */
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

/* Reads the members source, run_id and model_id of a request and finds the files. Files that this server
 * keeps must be those of the run or logged model that the request names. */
bool version_source_read(struct tracking *tracking, const json_t *body, struct version_source *source,
                         struct tracking_error *error);

#endif
