/* SPDX-License-Identifier: Apache-2.0 */
/* Tags and parameters: objects {key, value} that belong to a run, an experiment, a model or a version. */
#ifndef MLFLOW_PAIRS_H
#define MLFLOW_PAIRS_H

#include "daemon/mlflow/call/call.h"
#include "daemon/mlflow/database/statements.h"

/* The run's name as a tag: setting it renames the run. */
#define TAG_RUN_NAME "mlflow.runName"

/* One of the tables of pairs, and what it takes. */
struct pair_table {
    const char *what; /* for messages */
    enum query put, remove, count;
    size_t limit; /* characters of a value */
    bool refuses; /* a longer value; else it is cut */
    int64_t most; /* pairs of one owner; 0: any number */
};
extern const struct pair_table run_tags, experiment_tags, model_params, model_tags, registered_tags,
    version_tags;

/* Sets a pair of the owner. */
void pair_put_text(struct call *call, const struct pair_table *table, int64_t owner, const char *key,
                   const char *value);
/* Sets one object {key, value}. */
void pair_put(struct call *call, const struct pair_table *table, int64_t owner, const json_t *pair);
/* Sets the objects of an array; NULL: none. */
void pairs_put(struct call *call, const struct pair_table *table, int64_t owner, const json_t *pairs);
/* Deletes the pair; false: there is none. */
bool pair_delete(struct call *call, const struct pair_table *table, int64_t owner, const char *key);

/* Writes one object {key, value} as a parameter of a run. The parameter may exist with the same value, but
 * not with a different one. */
void param_put(struct call *call, const char *run_id, int64_t run, const json_t *param);

#endif
