/* SPDX-License-Identifier: Apache-2.0 */
/* Writes tags and parameters. A parameter of a run is written once. Repeating the same value is no error,
 * because clients repeat requests that got no answer. */
#include "daemon/mlflow/runs/pairs.h"

#include <string.h>

#include "daemon/mlflow/call/field.h"
#include "daemon/mlflow/call/names.h"
#include "daemon/mlflow/database/database.h"
#include "proto/base/cleanup.h"
#include "proto/limits_tracking.h"

#define QUERIES_OF(name) QUERY_##name##_PUT, QUERY_##name##_DELETE, QUERY_##name##_COUNT

const struct pair_table run_tags = {"tag", QUERIES_OF(TAG), LIMIT_TRACKING_TAG_VALUE, false, 0};
const struct pair_table experiment_tags = {"tag", QUERIES_OF(EXPERIMENT_TAG), LIMIT_TRACKING_TAG_VALUE, true,
                                           0};
const struct pair_table model_params = {"parameter", QUERIES_OF(MODEL_PARAM), LIMIT_TRACKING_PARAM_VALUE,
                                        false, 0};
const struct pair_table model_tags = {"tag", QUERIES_OF(MODEL_TAG), LIMIT_TRACKING_TAG_VALUE, false, 0};
const struct pair_table registered_tags = {"tag", QUERIES_OF(REGISTERED_TAG), LIMIT_REGISTRY_TEXT, true,
                                           LIMIT_REGISTRY_TAGS};
const struct pair_table version_tags = {"tag", QUERIES_OF(VERSION_TAG), LIMIT_REGISTRY_TEXT, true,
                                        LIMIT_REGISTRY_TAGS};

void pair_put_text(struct call *call, const struct pair_table *table, int64_t owner, const char *key,
                   const char *value)
{
    name_check(call, table->what, key);
    if (table->refuses) {
        name_check_length(call, "tag value", value, table->limit);
    }
    autofree char *cut = name_cut(value, table->limit);
    database_run(call, table->put, "itt", owner, key, cut);
    if (table == &run_tags && strcmp(key, TAG_RUN_NAME) == 0) {
        database_run(call, QUERY_RUN_RENAME, "it", owner, cut);
    }
    if (table->most > 0 && database_int(call, 0, table->count, "i", owner) > table->most) {
        call_refuse(call, "It can have at most %lld tags.", (long long)table->most);
    }
}

void pair_put(struct call *call, const struct pair_table *table, int64_t owner, const json_t *pair)
{
    const char *key = field_need_text(call, pair, "key");
    pair_put_text(call, table, owner, key, field_text(call, pair, "value", ""));
}

void pairs_put(struct call *call, const struct pair_table *table, int64_t owner, const json_t *pairs)
{
    size_t i;
    const json_t *pair;
    json_array_foreach (pairs, i, pair) {
        pair_put(call, table, owner, pair);
    }
}

bool pair_delete(struct call *call, const struct pair_table *table, int64_t owner, const char *key)
{
    return database_run(call, table->remove, "it", owner, key) > 0;
}

void param_put(struct call *call, const char *run_id, int64_t run, const json_t *param)
{
    const char *key = field_need_text(call, param, "key");
    const char *value = field_text(call, param, "value", "");
    name_check(call, "parameter", key);
    autofree char *cut = name_cut(value, LIMIT_TRACKING_PARAM_VALUE);
    if (database_run(call, QUERY_PARAM_INSERT, "itt", run, key, cut) == 1) {
        return;
    }
    autofree char *old = database_text(call, QUERY_PARAM, "it", run, key);
    if (old != NULL && strcmp(old, cut) != 0) {
        call_refuse(call,
                    "Changing param values is not allowed. Param with key='%.250s' was already logged with "
                    "value='%.200s' for run ID='%.64s'. Attempted logging new value '%.200s'.",
                    key, old, run_id, cut);
    }
}
