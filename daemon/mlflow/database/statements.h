/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of the tracking database, prepared when first used. SQLite itself writes the JSON that
 * clients get: ids are texts, times are numbers of milliseconds, and members that are NULL are left out. The
 * functions of database.c write values of metrics (json_double) and ask for the sender's rights (sees,
 * finds). search/search.c builds the searches, whose text depends on the request. */
#ifndef MLFLOW_STATEMENTS_H
#define MLFLOW_STATEMENTS_H

/* --- parts of answers; ?1 is the key of the row that is shown --- */

/* An array: the expression for each row of the subquery. */
#define JSON_ROWS(expression, rows) "(SELECT json_group_array(" expression ") FROM (" rows "))"
/* An object without the members that are NULL. */
#define JSON_MEMBERS(members) "json_patch('{}', json_object(" members "))"

#define JSON_PAIR "json_object('key', name, 'value', value)"
#define JSON_PAIRS(table, owner)                                                                             \
    JSON_ROWS(JSON_PAIR, "SELECT name, value FROM " table " WHERE " owner " ORDER BY name")

#define JSON_POINT                                                                                           \
    "json_object('key', name, 'value', json_double(value, is_nan), 'timestamp', at_ms, 'step', step)"

#define JSON_EXPERIMENT_TAGS JSON_PAIRS("experiment_tags", "experiment = ?1")
#define JSON_EXPERIMENT                                                                                      \
    "json_object('experiment_id', CAST(id AS TEXT), 'name', name, 'artifact_location', artifact_location, "  \
    "'lifecycle_stage', iif(deleted, 'deleted', 'active'), 'creation_time', created_ms, "                    \
    "'last_update_time', updated_ms, 'tags', " JSON_EXPERIMENT_TAGS ")"

#define RUN_INFO                                                                                             \
    "'run_id', id, 'run_uuid', id, 'run_name', name, 'experiment_id', CAST(experiment AS TEXT), "            \
    "'user_id', user_id, 'status', status, 'start_time', start_ms, 'end_time', end_ms, "                     \
    "'artifact_uri', artifact_uri, 'lifecycle_stage', iif(deleted = 0, 'active', 'deleted')"
#define JSON_RUN_INFO    JSON_MEMBERS(RUN_INFO)
#define JSON_RUN_METRICS JSON_ROWS(JSON_POINT, "SELECT * FROM metrics WHERE run = ?1 ORDER BY name")
#define JSON_RUN_PARAMS  JSON_PAIRS("params", "run = ?1")
#define JSON_RUN_TAGS    JSON_PAIRS("tags", "run = ?1")
#define JSON_RUN_INPUTS                                                                                      \
    JSON_ROWS("json(input)", "SELECT input FROM inputs WHERE run = ?1 ORDER BY name, digest")
#define JSON_RUN_OUTPUTS                                                                                     \
    JSON_ROWS("json_object('model_id', model_id, 'step', step)",                                             \
              "SELECT model_id, step FROM outputs WHERE run = ?1 ORDER BY step, model_id")
#define JSON_RUN                                                                                             \
    "json_object('info', " JSON_RUN_INFO ", "                                                                \
    "'data', json_object('metrics', " JSON_RUN_METRICS ", 'params', " JSON_RUN_PARAMS ", "                   \
    "'tags', " JSON_RUN_TAGS "), 'inputs', json_object('dataset_inputs', " JSON_RUN_INPUTS "), "             \
    "'outputs', json_object('model_outputs', " JSON_RUN_OUTPUTS "))"

/* The tags of a run that name its job. */
#define TAG_JOB     "gpuctl.job_id"
#define TAG_ATTEMPT "gpuctl.attempt"
/* A tag of a row of runs; empty: there is none. */
#define RUN_TAG(tag) "coalesce((SELECT value FROM tags WHERE run = runs.key AND name = '" tag "'), '')"

/* The runs that ?1 asks for, a JSON array of {attempt, run_id}; ?2 is the URL of the web page. */
#define RUN_OF_JOB                                                                                           \
    "'attempt', attempt, 'run_id', id, 'run_name', run_name, 'experiment_id', CAST(experiment AS TEXT), "    \
    "'experiment', name, 'status', status, 'tracking_uri', NULL, "                                           \
    "'url', ?2 || '#/experiments/' || experiment || '/runs/' || id"
#define JSON_RUNS_OF_JOB                                                                                     \
    JSON_ROWS("json_object(" RUN_OF_JOB ")",                                                                 \
              "SELECT json_extract(asked.value, '$.attempt') AS attempt, runs.id AS id, "                    \
              "runs.name AS run_name, runs.experiment AS experiment, experiments.name AS name, status "      \
              "FROM json_each(?1) AS asked JOIN runs ON runs.id = json_extract(asked.value, '$.run_id') "    \
              "JOIN experiments ON experiments.id = runs.experiment ORDER BY asked.key")

#define JSON_MODEL_TAGS   JSON_PAIRS("model_tags", "model = ?1")
#define JSON_MODEL_PARAMS JSON_PAIRS("model_params", "model = ?1")
#define MODEL_INFO                                                                                           \
    "'model_id', id, 'experiment_id', CAST(experiment AS TEXT), 'name', name, 'model_type', type, "          \
    "'source_run_id', source_run, 'status', 'LOGGED_MODEL_' || status, 'artifact_uri', artifact_uri, "       \
    "'creation_timestamp_ms', created_ms, 'last_updated_timestamp_ms', updated_ms, "                         \
    "'tags', " JSON_MODEL_TAGS
#define JSON_MODEL_INFO JSON_MEMBERS(MODEL_INFO)
#define JSON_MODEL                                                                                           \
    "json_object('info', " JSON_MODEL_INFO ", 'data', json_object('params', " JSON_MODEL_PARAMS "))"

/* Versions of registered models, with their names. */
#define TABLES_VERSION    "model_versions AS v JOIN registered_models AS r ON r.key = v.model"
#define JSON_VERSION_TAGS JSON_PAIRS("model_version_tags", "version = v.key")
#define JSON_VERSION_ALIASES                                                                                 \
    JSON_ROWS("name", "SELECT name FROM registered_model_aliases WHERE model = v.model "                     \
                      "AND version = v.number ORDER BY name")
#define VERSION_MEMBERS                                                                                      \
    "'name', r.name, 'version', CAST(v.number AS TEXT), 'description', v.description, 'user_id', "           \
    "v.user_id, "                                                                                            \
    "'current_stage', v.stage, 'source', v.source, 'run_id', v.run_id, 'run_link', v.run_link, "             \
    "'model_id', nullif(v.model_id, ''), 'creation_timestamp', v.created_ms, "                               \
    "'last_updated_timestamp', v.updated_ms, 'status', 'READY', "                                            \
    "'tags', " JSON_VERSION_TAGS ", 'aliases', " JSON_VERSION_ALIASES
#define JSON_VERSION JSON_MEMBERS(VERSION_MEMBERS)

/* The newest version of each stage of a registered model; ?2: a JSON array of stages, NULL for all. */
#define STAGES          "json_each('[\"None\", \"Staging\", \"Production\", \"Archived\"]') AS stages"
#define NEWEST_OF_STAGE "(SELECT max(number) FROM model_versions WHERE model = ?1 AND stage = stages.value)"
#define JSON_LATEST                                                                                          \
    JSON_ROWS("json(shown)",                                                                                 \
              "SELECT " JSON_VERSION " AS shown FROM " STAGES " JOIN " TABLES_VERSION                        \
              " AND v.model = ?1 AND v.stage = stages.value AND v.number = " NEWEST_OF_STAGE                 \
              " WHERE ?2 IS NULL OR stages.value IN (SELECT value FROM json_each(?2)) ORDER BY stages.key")

#define JSON_REGISTERED_TAGS JSON_PAIRS("registered_model_tags", "model = ?1")
#define JSON_REGISTERED_ALIASES                                                                              \
    JSON_ROWS("json_object('alias', name, 'version', CAST(version AS TEXT))",                                \
              "SELECT name, version FROM registered_model_aliases WHERE model = ?1 ORDER BY name")
#define JSON_REGISTERED                                                                                      \
    "json_object('name', name, 'description', description, 'creation_timestamp', created_ms, "               \
    "'last_updated_timestamp', updated_ms, 'tags', " JSON_REGISTERED_TAGS ", "                               \
    "'aliases', " JSON_REGISTERED_ALIASES ", 'latest_versions', " JSON_LATEST ")"

/* --- statements --- */

/* A table of tags or parameters, with the column of their owner. */
#define PAIR_QUERIES(X, name, table, owner)                                                                  \
    X(name##_PUT, "INSERT INTO " table " (" owner ", name, value) VALUES (?, ?, ?) "                         \
                  "ON CONFLICT (" owner ", name) DO UPDATE SET value = excluded.value")                      \
    X(name##_DELETE, "DELETE FROM " table " WHERE " owner " = ? AND name = ?")                               \
    X(name##_COUNT, "SELECT count(*) FROM " table " WHERE " owner " = ?")

/* A key that no row has, nor one of which parts are left. */
#define NEXT_KEY(table, removed)                                                                             \
    "(SELECT max(coalesce((SELECT max(key) FROM " table "), 0), "                                            \
    "coalesce((SELECT max(" removed ") FROM removals), 0)) + 1)"

/* Of a run: it has ended or was deleted, and no registered model is made of it; since when. */
#define RUN_IS_OVER                                                                                          \
    "(deleted <> 0 OR status NOT IN ('RUNNING', 'SCHEDULED')) "                                              \
    "AND NOT EXISTS (SELECT 1 FROM model_versions WHERE run_id = runs.id) "                                  \
    "AND NOT EXISTS (SELECT 1 FROM models CROSS JOIN model_versions ON model_versions.model_id = models.id " \
    "AND model_versions.model_id <> '' WHERE source_run = runs.id)"
#define RUN_OVER_MS "coalesce(end_ms, start_ms)"

/* Parts of the removal ?1: at most ?2 rows of a table whose rows belong to its run or its model. */
#define REMOVED(owner) owner " = (SELECT " owner " FROM removals WHERE key = ?1)"
#define REMOVE_PARTS(table, columns, owner)                                                                  \
    "DELETE FROM " table " WHERE (" columns ") IN (SELECT " columns " FROM " table                           \
    " WHERE " REMOVED(owner) " LIMIT ?2)"
#define NOTHING_LEFT(table, owner)                                                                           \
    " AND NOT EXISTS (SELECT 1 FROM " table " WHERE " table "." owner " = removals." owner ")"

/* --- who sees what; "" as the owner: everybody does, and adds to it --- */

/* By its experiment, unless that is everybody's. */
#define EXPERIMENT_SEEN(id)                                                                                  \
    "coalesce((SELECT owner <> '' AND sees(owner, project) FROM experiments WHERE id = " id "), 0)"
#define RUN_SEEN   "(sees(runs.owner, runs.project) OR " EXPERIMENT_SEEN("runs.experiment") ")"
#define MODEL_SEEN "(sees(models.owner, models.project) OR " EXPERIMENT_SEEN("models.experiment") ")"

/* Which of several of one name somebody means, ?2, who works in project ?3. */
#define NEAREST "project = ?3 DESC, owner = ?2 DESC"

/* X(name, text) */
#define QUERIES(X)                                                                                           \
    X(BEGIN_READ, "BEGIN")                                                                                   \
    X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                                        \
    X(COMMIT, "COMMIT")                                                                                      \
    X(ROLLBACK, "ROLLBACK")                                                                                  \
    PAIR_QUERIES(X, TAG, "tags", "run")                                                                      \
    PAIR_QUERIES(X, EXPERIMENT_TAG, "experiment_tags", "experiment")                                         \
    PAIR_QUERIES(X, MODEL_PARAM, "model_params", "model")                                                    \
    PAIR_QUERIES(X, MODEL_TAG, "model_tags", "model")                                                        \
    PAIR_QUERIES(X, REGISTERED_TAG, "registered_model_tags", "model")                                        \
    PAIR_QUERIES(X, VERSION_TAG, "model_version_tags", "version")                                            \
    X(EXPERIMENT, "SELECT id, deleted, artifact_location, owner, project FROM experiments WHERE id = ?")     \
    X(EXPERIMENT_BY_NAME,                                                                                    \
      "SELECT id, deleted, artifact_location, owner, project FROM experiments WHERE name = ?1 "              \
      "AND finds(owner, project) AND (NOT ?4 OR project = ?3 OR owner IN (?2, '')) "                         \
      "ORDER BY " NEAREST ", id LIMIT 1")                                                                    \
    X(EXPERIMENT_SHOW, "SELECT " JSON_EXPERIMENT " FROM experiments WHERE id = ?1")                          \
    X(EXPERIMENT_NEXT, "SELECT max(id) + 1 FROM experiments")                                                \
    X(EXPERIMENT_INSERT,                                                                                     \
      "INSERT INTO experiments (id, name, artifact_location, deleted, created_ms, updated_ms, owner, "       \
      "project) VALUES (?1, ?2, ?3, 0, ?4, ?4, ?5, ?6)")                                                     \
    X(EXPERIMENT_MOVE, "UPDATE experiments SET project = ?2, updated_ms = ?3 WHERE id = ?1")                 \
    X(EXPERIMENT_RENAME, "UPDATE experiments SET name = ?2, updated_ms = ?3 WHERE id = ?1")                  \
    X(EXPERIMENT_DELETE, "UPDATE experiments SET deleted = ?2, updated_ms = ?3 WHERE id = ?1")               \
    X(EXPERIMENT_RUNS_DELETE, "UPDATE runs SET deleted = ?3 WHERE experiment = ?1 AND deleted = ?2")         \
    X(RUN, "SELECT key, experiment, deleted, owner, project, " RUN_SEEN " FROM runs WHERE id = ?")           \
    X(RUN_SHOW, "SELECT " JSON_RUN " FROM runs WHERE key = ?1")                                              \
    X(RUN_SHOW_INFO, "SELECT " JSON_RUN_INFO " FROM runs WHERE key = ?1")                                    \
    X(RUN_ARTIFACTS, "SELECT artifact_uri FROM runs WHERE id = ? AND " RUN_SEEN)                             \
    X(ARTIFACT_OF_RUN, "SELECT artifact_uri, owner, project, " RUN_SEEN                                      \
                       ", " RUN_TAG(TAG_JOB) ", " RUN_TAG(TAG_ATTEMPT) " FROM runs WHERE id = ?")            \
    X(ARTIFACT_OF_MODEL, "SELECT artifact_uri, owner, project, " MODEL_SEEN " FROM models WHERE id = ?")     \
    X(ARTIFACT_OF_VERSION,                                                                                   \
      "SELECT 1 FROM " TABLES_VERSION " WHERE (v.run_id = ?1 OR (v.model_id = ?1 AND v.model_id <> '')) "    \
      "AND (v.location = ?2 OR substr(?2, 1, length(v.location) + 1) = v.location || '/') "                  \
      "AND sees(r.owner, r.project) LIMIT 1")                                                                \
    X(RUN_INSERT,                                                                                            \
      "INSERT INTO runs (key, id, experiment, name, user_id, status, start_ms, end_ms, deleted, "            \
      "artifact_uri, owner, project) VALUES (" NEXT_KEY(                                                     \
          "runs", "run") ", ?, ?, ?, ?, 'RUNNING', ?, NULL, 0, ?, ?, ?)")                                    \
    X(RUN_MOVE, "UPDATE runs SET experiment = ?2 WHERE id = ?1 AND experiment != ?2 "                        \
                "AND NOT EXISTS (SELECT * FROM params WHERE run = runs.key) AND NOT EXISTS "                 \
                "(SELECT * FROM metrics WHERE run = runs.key AND name NOT LIKE 'system/%')")                 \
    X(RUN_STATUS, "UPDATE runs SET status = ?2 WHERE key = ?1")                                              \
    X(RUN_END, "UPDATE runs SET end_ms = ?2 WHERE key = ?1")                                                 \
    X(RUN_GO_ON, "UPDATE runs SET status = 'RUNNING', end_ms = NULL, deleted = 0 WHERE key = ?1")            \
    X(RUN_RENAME, "UPDATE runs SET name = ?2 WHERE key = ?1")                                                \
    X(RUN_DELETE, "UPDATE runs SET deleted = ?2 WHERE key = ?1")                                             \
    X(METRIC, "SELECT key FROM metrics WHERE run = ? AND name = ?")                                          \
    X(METRIC_INSERT,                                                                                         \
      "INSERT INTO metrics (run, name, at_ms, step, value, is_nan) VALUES (?, ?, ?, ?, ?, ?)")               \
    X(METRIC_UPDATE, "UPDATE metrics SET at_ms = ?2, step = ?3, value = ?4, is_nan = ?5 WHERE key = ?1 AND " \
                     "(?3, ?2, ?4, ?5) > (step, at_ms, value, is_nan)")                                      \
    X(POINT_INSERT,                                                                                          \
      "INSERT INTO points (metric, at_ms, step, value, is_nan, run, number) VALUES (?1, ?2, ?3, ?4, ?5, "    \
      "?6, "                                                                                                 \
      "(SELECT coalesce(max(number), 0) + 1 FROM points WHERE run = ?6)) ON CONFLICT DO NOTHING")            \
    X(POINT_COPY, "INSERT INTO points (metric, at_ms, step, value, is_nan) VALUES (?, ?, ?, ?, ?) "          \
                  "ON CONFLICT DO UPDATE SET run = NULL, number = NULL")                                     \
    X(POINTS_LOGGED, "SELECT metrics.name, points.value, points.is_nan, points.at_ms, points.step, "         \
                     "points.number FROM points JOIN metrics ON metrics.key = points.metric "                \
                     "WHERE points.run = ? AND points.number > ? ORDER BY points.number LIMIT ?")            \
    X(POINTS, "SELECT " JSON_POINT ", at_ms, step, value, is_nan FROM (SELECT ?7 AS name, * FROM points) "   \
              "WHERE metric = ?1 AND (at_ms, step, value, is_nan) > (?2, ?3, ?4, ?5) "                       \
              "ORDER BY at_ms, step, value, is_nan LIMIT ?6")                                                \
    X(PARAM_INSERT, "INSERT INTO params (run, name, value) VALUES (?, ?, ?) ON CONFLICT DO NOTHING")         \
    X(PARAM, "SELECT value FROM params WHERE run = ? AND name = ?")                                          \
    X(TAG, "SELECT value FROM tags WHERE run = ? AND name = ?")                                              \
    X(INPUT_PUT,                                                                                             \
      "INSERT INTO inputs (run, name, digest, context, input) VALUES (?, ?, ?, ?, ?) "                       \
      "ON CONFLICT (run, name, digest) DO UPDATE SET context = excluded.context, input = excluded.input")    \
    X(MODEL, "SELECT key, artifact_uri, coalesce(source_run, ''), owner, project FROM models WHERE id = ? "  \
             "AND (deleted = 0 OR ?) AND " MODEL_SEEN)                                                       \
    X(MODEL_SHOW, "SELECT " JSON_MODEL " FROM models WHERE key = ?1")                                        \
    X(MODEL_INSERT,                                                                                          \
      "INSERT INTO models (key, id, experiment, name, type, source_run, status, artifact_uri, deleted, "     \
      "created_ms, updated_ms, owner, project) VALUES (" NEXT_KEY(                                           \
          "models", "model") ", ?1, ?2, ?3, ?4, ?5, 'PENDING', ?6, 0, ?7, ?7, ?8, ?9)")                      \
    X(MODEL_STATUS, "UPDATE models SET status = ?2, updated_ms = ?3 WHERE key = ?1")                         \
    X(MODEL_DELETE, "UPDATE models SET deleted = 1, updated_ms = ?2 WHERE key = ?1")                         \
    X(OUTPUT_PUT, "INSERT INTO outputs (run, model_id, step) VALUES (?, ?, ?) "                              \
                  "ON CONFLICT (run, model_id) DO UPDATE SET step = excluded.step")                          \
    X(REGISTERED,                                                                                            \
      "SELECT key, finds(owner, project) AS found, owner, project FROM registered_models WHERE name = ?1 "   \
      "AND sees(owner, project) ORDER BY found DESC, " NEAREST ", key LIMIT 1")                              \
    X(REGISTERED_SHOW, "SELECT " JSON_REGISTERED " FROM registered_models WHERE key = ?1")                   \
    X(REGISTERED_LATEST, "SELECT " JSON_LATEST)                                                              \
    X(REGISTERED_INSERT,                                                                                     \
      "INSERT INTO registered_models (name, description, last_version, created_ms, updated_ms, owner, "      \
      "project) VALUES (?1, ?2, 0, ?3, ?3, ?4, ?5)")                                                         \
    X(REGISTERED_MOVE, "UPDATE registered_models SET project = ?2, updated_ms = ?3 WHERE key = ?1")          \
    X(REGISTERED_UPDATE, "UPDATE registered_models SET description = ?2, updated_ms = ?3 WHERE key = ?1")    \
    X(REGISTERED_RENAME, "UPDATE registered_models SET name = ?2, updated_ms = ?3 WHERE key = ?1")           \
    X(REGISTERED_TOUCH, "UPDATE registered_models SET updated_ms = ?2 WHERE key = ?1")                       \
    X(REGISTERED_NEXT, "UPDATE registered_models SET last_version = last_version + 1, updated_ms = ?2 "      \
                       "WHERE key = ?1 AND last_version < ?3 RETURNING last_version")                        \
    X(REGISTERED_DELETE, "DELETE FROM registered_models WHERE key = ?")                                      \
    X(REGISTERED_TAGS_DELETE, "DELETE FROM registered_model_tags WHERE model = ?")                           \
    X(ALIAS, "SELECT version FROM registered_model_aliases WHERE model = ? AND name = ?")                    \
    X(ALIAS_PUT, "INSERT INTO registered_model_aliases (model, name, version) VALUES (?, ?, ?) "             \
                 "ON CONFLICT (model, name) DO UPDATE SET version = excluded.version")                       \
    X(ALIAS_DELETE, "DELETE FROM registered_model_aliases WHERE model = ? AND name = ?")                     \
    X(ALIASES_COUNT, "SELECT count(*) FROM registered_model_aliases WHERE model = ?")                        \
    X(ALIASES_DELETE, "DELETE FROM registered_model_aliases WHERE model = ?")                                \
    X(ALIASES_VERSION_DELETE, "DELETE FROM registered_model_aliases WHERE model = ? AND version = ?")        \
    X(VERSION, "SELECT key FROM model_versions WHERE model = ? AND number = ?")                              \
    X(VERSION_SHOW, "SELECT " JSON_VERSION " FROM " TABLES_VERSION " WHERE v.key = ?1")                      \
    X(VERSION_NEWEST, "SELECT key FROM model_versions WHERE model = ? ORDER BY number DESC LIMIT 1")         \
    X(VERSION_OF_STAGE,                                                                                      \
      "SELECT key FROM model_versions WHERE model = ? AND stage = ? ORDER BY number DESC LIMIT 1")           \
    X(VERSION_MAKER, "SELECT user_id FROM model_versions WHERE key = ?")                                     \
    X(VERSION_LOCATION, "SELECT json_quote(location) FROM model_versions WHERE key = ?")                     \
    X(VERSION_ORIGIN, "SELECT 'models:/' || r.name || '/' || v.number, v.location, v.run_id, v.model_id "    \
                      "FROM " TABLES_VERSION " WHERE v.key = ?")                                             \
    X(VERSION_INSERT,                                                                                        \
      "INSERT INTO model_versions (model, number, description, user_id, stage, source, location, run_id, "   \
      "run_link, model_id, created_ms, updated_ms) "                                                         \
      "VALUES (?1, ?2, ?3, ?4, 'None', ?5, ?6, ?7, ?8, ?9, ?10, ?10)")                                       \
    X(VERSION_UPDATE, "UPDATE model_versions SET description = ?2, updated_ms = ?3 WHERE key = ?1")          \
    X(VERSION_STAGE, "UPDATE model_versions SET stage = ?2, updated_ms = ?3 WHERE key = ?1")                 \
    X(VERSIONS_ARCHIVE, "UPDATE model_versions SET stage = 'Archived', updated_ms = ?3 "                     \
                        "WHERE model = ?1 AND stage = ?2 AND key <> ?4")                                     \
    X(VERSIONS_TOUCH, "UPDATE model_versions SET updated_ms = ?2 WHERE model = ?1")                          \
    X(VERSION_DELETE, "DELETE FROM model_versions WHERE key = ?")                                            \
    X(VERSION_TAGS_DELETE, "DELETE FROM model_version_tags WHERE version = ?")                               \
    X(VERSIONS_DELETE, "DELETE FROM model_versions WHERE model = ?")                                         \
    X(VERSIONS_TAGS_DELETE, "DELETE FROM model_version_tags WHERE version IN "                               \
                            "(SELECT key FROM model_versions WHERE model = ?)")                              \
    X(JOBS_RUNNING, "SELECT json_group_array(value) FROM (SELECT DISTINCT tags.value FROM runs JOIN tags "   \
                    "ON tags.run = runs.key AND tags.name = ? WHERE runs.status = 'RUNNING' LIMIT ?)")       \
    X(RUNS_OF_JOB, "SELECT json_object('runs', " JSON_RUNS_OF_JOB ")")                                       \
    X(OVER_RUNS, "SELECT key, " RUN_OVER_MS ", project, " RUN_IS_OVER                                        \
                 " FROM runs WHERE key > ?1 ORDER BY key LIMIT ?2")                                          \
    X(REMOVAL_OF_RUN, "INSERT INTO removals (run, id, artifact_uri) SELECT key, id, artifact_uri FROM runs " \
                      "WHERE key = ?1 AND " RUN_OVER_MS " <= ?2 AND " RUN_IS_OVER)                           \
    X(REMOVALS_OF_MODELS,                                                                                    \
      "INSERT INTO removals (model, id, artifact_uri) SELECT key, id, artifact_uri FROM models "             \
      "WHERE source_run = (SELECT id FROM runs WHERE key = ?)")                                              \
    X(RUN_MODELS_REMOVE, "DELETE FROM models WHERE source_run = (SELECT id FROM runs WHERE key = ?)")        \
    X(RUN_REMOVE, "DELETE FROM runs WHERE key = ?")                                                          \
    X(REMOVAL, "SELECT key, id, artifact_uri FROM removals ORDER BY key LIMIT 1")                            \
    X(REMOVE_POINTS,                                                                                         \
      "DELETE FROM points WHERE (metric, at_ms, step, value, is_nan) IN "                                    \
      "(SELECT points.metric, points.at_ms, points.step, points.value, points.is_nan FROM metrics "          \
      "CROSS JOIN points ON points.metric = metrics.key WHERE metrics." REMOVED("run") " LIMIT ?2)")         \
    X(REMOVE_METRICS,                                                                                        \
      "DELETE FROM metrics WHERE key IN (SELECT key FROM metrics WHERE " REMOVED(                            \
          "run") " AND NOT EXISTS (SELECT 1 FROM points WHERE metric = metrics.key) LIMIT ?2)")              \
    X(REMOVE_PARAMS, REMOVE_PARTS("params", "run, name", "run"))                                             \
    X(REMOVE_TAGS, REMOVE_PARTS("tags", "run, name", "run"))                                                 \
    X(REMOVE_INPUTS, REMOVE_PARTS("inputs", "run, name, digest", "run"))                                     \
    X(REMOVE_OUTPUTS, REMOVE_PARTS("outputs", "run, model_id", "run"))                                       \
    X(REMOVE_COPIED, REMOVE_PARTS("copied", "run, stream", "run"))                                           \
    X(REMOVE_MODEL_PARAMS, REMOVE_PARTS("model_params", "model, name", "model"))                             \
    X(REMOVE_MODEL_TAGS, REMOVE_PARTS("model_tags", "model, name", "model"))                                 \
    X(REMOVAL_END,                                                                                           \
      "DELETE FROM removals WHERE key = ?" NOTHING_LEFT("metrics", "run") NOTHING_LEFT("params", "run")      \
          NOTHING_LEFT("tags", "run") NOTHING_LEFT("inputs", "run") NOTHING_LEFT("outputs", "run")           \
              NOTHING_LEFT("copied", "run") NOTHING_LEFT("model_params", "model")                            \
                  NOTHING_LEFT("model_tags", "model"))                                                       \
    X(FILE_USE, "SELECT freelist_count * page_size, page_count * page_size "                                 \
                "FROM pragma_freelist_count, pragma_page_count, pragma_page_size")                           \
    X(SHRINK, "PRAGMA incremental_vacuum")                                                                   \
    X(COPIED, "SELECT bytes FROM copied WHERE run = ? AND stream = ?")                                       \
    X(COPIED_PUT, "INSERT INTO copied (run, stream, bytes) VALUES (?, ?, ?) "                                \
                  "ON CONFLICT (run, stream) DO UPDATE SET bytes = excluded.bytes")

enum query {
#define QUERY_AS_ENUM(name, text) QUERY_##name,
    QUERIES(QUERY_AS_ENUM)
#undef QUERY_AS_ENUM
        QUERY_COUNT
};

#endif
