/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of the tracking database, prepared when it is opened. search.c builds the searches, whose
 * text depends on the request, from the columns here. */
#ifndef MLFLOW_QUERIES_H
#define MLFLOW_QUERIES_H

#define COLUMNS_RUN                                                                                          \
    "runs.key, runs.id, runs.experiment, runs.name, runs.user_id, runs.status, runs.start_ms, "              \
    "runs.end_ms, runs.deleted, runs.artifact_uri"
#define COLUMNS_EXPERIMENT                                                                                   \
    "experiments.id, experiments.name, experiments.artifact_location, experiments.deleted, "                 \
    "experiments.created_ms, experiments.updated_ms"

#define COLUMNS_MODEL                                                                                        \
    "models.key, models.id, models.experiment, models.name, models.type, models.source_run, models.status, " \
    "models.artifact_uri, models.created_ms, models.updated_ms"

#define COLUMNS_REGISTERED                                                                                   \
    "registered_models.key, registered_models.name, registered_models.description, "                         \
    "registered_models.created_ms, registered_models.updated_ms"

#define COLUMNS_VERSION                                                                                      \
    "model_versions.key, model_versions.model, registered_models.name, model_versions.number, "              \
    "model_versions.description, model_versions.user_id, model_versions.stage, model_versions.source, "      \
    "model_versions.location, model_versions.run_id, model_versions.run_link, model_versions.model_id, "     \
    "model_versions.created_ms, model_versions.updated_ms"
#define TABLES_VERSION "model_versions JOIN registered_models ON registered_models.key = model_versions.model"

/* X(name, text) */
#define QUERIES(X)                                                                                           \
    X(BEGIN_READ, "BEGIN")                                                                                   \
    X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                                        \
    X(COMMIT, "COMMIT")                                                                                      \
    X(ROLLBACK, "ROLLBACK")                                                                                  \
    X(EXPERIMENT, "SELECT " COLUMNS_EXPERIMENT " FROM experiments WHERE id = ?")                             \
    X(EXPERIMENT_BY_NAME, "SELECT " COLUMNS_EXPERIMENT " FROM experiments WHERE name = ?")                   \
    X(EXPERIMENT_NEXT, "SELECT max(id) + 1 FROM experiments")                                                \
    X(EXPERIMENT_INSERT,                                                                                     \
      "INSERT INTO experiments (id, name, artifact_location, deleted, created_ms, updated_ms) "              \
      "VALUES (?1, ?2, ?3, 0, ?4, ?4)")                                                                      \
    X(EXPERIMENT_RENAME, "UPDATE experiments SET name = ?2, updated_ms = ?3 WHERE id = ?1")                  \
    X(EXPERIMENT_DELETE, "UPDATE experiments SET deleted = ?2, updated_ms = ?3 WHERE id = ?1")               \
    X(EXPERIMENT_RUNS_DELETE, "UPDATE runs SET deleted = ?3 WHERE experiment = ?1 AND deleted = ?2")         \
    X(EXPERIMENT_TAGS, "SELECT name, value FROM experiment_tags WHERE experiment = ? ORDER BY name")         \
    X(EXPERIMENT_TAG_PUT, "INSERT INTO experiment_tags (experiment, name, value) VALUES (?, ?, ?) "          \
                          "ON CONFLICT (experiment, name) DO UPDATE SET value = excluded.value")             \
    X(EXPERIMENT_TAG_DELETE, "DELETE FROM experiment_tags WHERE experiment = ? AND name = ?")                \
    X(RUN, "SELECT " COLUMNS_RUN " FROM runs WHERE id = ?")                                                  \
    X(RUN_INSERT,                                                                                            \
      "INSERT INTO runs (id, experiment, name, user_id, status, start_ms, end_ms, deleted, artifact_uri) "   \
      "VALUES (?, ?, ?, ?, ?, ?, NULL, 0, ?)")                                                               \
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
      "INSERT INTO metrics (run, name, step, at_ms, value, is_nan) VALUES (?, ?, ?, ?, ?, ?)")               \
    X(METRIC_UPDATE, "UPDATE metrics SET step = ?2, at_ms = ?3, value = ?4, is_nan = ?5 WHERE key = ?1 AND " \
                     "(?2, ?3, ?4, ?5) > (step, at_ms, value, is_nan)")                                      \
    X(METRICS, "SELECT name, value, is_nan, at_ms, step FROM metrics WHERE run = ? ORDER BY name")           \
    X(POINT_INSERT,                                                                                          \
      "INSERT INTO points (metric, at_ms, step, value, is_nan, run, number) VALUES (?1, ?2, ?3, ?4, ?5, "    \
      "?6, "                                                                                                 \
      "(SELECT coalesce(max(number), 0) + 1 FROM points WHERE run = ?6)) ON CONFLICT DO NOTHING")            \
    X(POINT_COPY, "INSERT INTO points (metric, at_ms, step, value, is_nan) VALUES (?, ?, ?, ?, ?) "          \
                  "ON CONFLICT DO UPDATE SET run = NULL, number = NULL")                                     \
    X(POINTS_LOGGED, "SELECT metrics.name, points.value, points.is_nan, points.at_ms, points.step, "         \
                     "points.number FROM points JOIN metrics ON metrics.key = points.metric "                \
                     "WHERE points.run = ? AND points.number > ? ORDER BY points.number LIMIT ?")            \
    X(POINTS, "SELECT value, is_nan, at_ms, step FROM points WHERE metric = ? "                              \
              "AND (at_ms, step, value, is_nan) > (?, ?, ?, ?) ORDER BY at_ms, step, value, is_nan LIMIT ?") \
    X(PARAM_INSERT, "INSERT INTO params (run, name, value) VALUES (?, ?, ?) ON CONFLICT DO NOTHING")         \
    X(PARAM, "SELECT value FROM params WHERE run = ? AND name = ?")                                          \
    X(PARAMS, "SELECT name, value FROM params WHERE run = ? ORDER BY name")                                  \
    X(TAG_PUT, "INSERT INTO tags (run, name, value) VALUES (?, ?, ?) "                                       \
               "ON CONFLICT (run, name) DO UPDATE SET value = excluded.value")                               \
    X(TAG_DELETE, "DELETE FROM tags WHERE run = ? AND name = ?")                                             \
    X(TAG, "SELECT value FROM tags WHERE run = ? AND name = ?")                                              \
    X(TAGS, "SELECT name, value FROM tags WHERE run = ? ORDER BY name")                                      \
    X(INPUT_PUT,                                                                                             \
      "INSERT INTO inputs (run, name, digest, context, input) VALUES (?, ?, ?, ?, ?) "                       \
      "ON CONFLICT (run, name, digest) DO UPDATE SET context = excluded.context, input = excluded.input")    \
    X(INPUTS, "SELECT input FROM inputs WHERE run = ? ORDER BY name, digest")                                \
    X(MODEL, "SELECT " COLUMNS_MODEL " FROM models WHERE id = ? AND deleted = 0")                            \
    X(MODEL_INSERT,                                                                                          \
      "INSERT INTO models (id, experiment, name, type, source_run, status, artifact_uri, deleted, "          \
      "created_ms, updated_ms) VALUES (?1, ?2, ?3, ?4, ?5, 'PENDING', ?6, 0, ?7, ?7)")                       \
    X(MODEL_STATUS, "UPDATE models SET status = ?2, updated_ms = ?3 WHERE key = ?1")                         \
    X(MODEL_DELETE, "UPDATE models SET deleted = 1, updated_ms = ?2 WHERE id = ?1")                          \
    X(MODEL_PARAM_PUT, "INSERT INTO model_params (model, name, value) VALUES (?, ?, ?) "                     \
                       "ON CONFLICT (model, name) DO UPDATE SET value = excluded.value")                     \
    X(MODEL_PARAMS, "SELECT name, value FROM model_params WHERE model = ? ORDER BY name")                    \
    X(MODEL_TAG_PUT, "INSERT INTO model_tags (model, name, value) VALUES (?, ?, ?) "                         \
                     "ON CONFLICT (model, name) DO UPDATE SET value = excluded.value")                       \
    X(MODEL_TAG_DELETE, "DELETE FROM model_tags WHERE model = ? AND name = ?")                               \
    X(MODEL_TAGS, "SELECT name, value FROM model_tags WHERE model = ? ORDER BY name")                        \
    X(OUTPUT_PUT, "INSERT INTO outputs (run, model_id, step) VALUES (?, ?, ?) "                              \
                  "ON CONFLICT (run, model_id) DO UPDATE SET step = excluded.step")                          \
    X(OUTPUTS, "SELECT model_id, step FROM outputs WHERE run = ? ORDER BY step, model_id")                   \
    X(REGISTERED, "SELECT " COLUMNS_REGISTERED " FROM registered_models WHERE name = ?")                     \
    X(REGISTERED_INSERT,                                                                                     \
      "INSERT INTO registered_models (name, description, last_version, created_ms, updated_ms) "             \
      "VALUES (?1, ?2, 0, ?3, ?3)")                                                                          \
    X(REGISTERED_UPDATE, "UPDATE registered_models SET description = ?2, updated_ms = ?3 WHERE key = ?1")    \
    X(REGISTERED_RENAME, "UPDATE registered_models SET name = ?2, updated_ms = ?3 WHERE key = ?1")           \
    X(REGISTERED_TOUCH, "UPDATE registered_models SET updated_ms = ?2 WHERE key = ?1")                       \
    X(REGISTERED_NEXT, "UPDATE registered_models SET last_version = last_version + 1, updated_ms = ?2 "      \
                       "WHERE key = ?1 AND last_version < ?3 RETURNING last_version")                        \
    X(REGISTERED_DELETE, "DELETE FROM registered_models WHERE key = ?")                                      \
    X(REGISTERED_TAG_PUT, "INSERT INTO registered_model_tags (model, name, value) VALUES (?, ?, ?) "         \
                          "ON CONFLICT (model, name) DO UPDATE SET value = excluded.value")                  \
    X(REGISTERED_TAG_DELETE, "DELETE FROM registered_model_tags WHERE model = ? AND name = ?")               \
    X(REGISTERED_TAGS, "SELECT name, value FROM registered_model_tags WHERE model = ? ORDER BY name")        \
    X(REGISTERED_TAGS_COUNT, "SELECT count(*) FROM registered_model_tags WHERE model = ?")                   \
    X(REGISTERED_TAGS_DELETE, "DELETE FROM registered_model_tags WHERE model = ?")                           \
    X(ALIAS, "SELECT version FROM registered_model_aliases WHERE model = ? AND name = ?")                    \
    X(ALIAS_PUT, "INSERT INTO registered_model_aliases (model, name, version) VALUES (?, ?, ?) "             \
                 "ON CONFLICT (model, name) DO UPDATE SET version = excluded.version")                       \
    X(ALIAS_DELETE, "DELETE FROM registered_model_aliases WHERE model = ? AND name = ?")                     \
    X(ALIASES, "SELECT name, version FROM registered_model_aliases WHERE model = ? ORDER BY name")           \
    X(ALIASES_COUNT, "SELECT count(*) FROM registered_model_aliases WHERE model = ?")                        \
    X(ALIASES_DELETE, "DELETE FROM registered_model_aliases WHERE model = ?")                                \
    X(ALIASES_VERSION, "SELECT name FROM registered_model_aliases WHERE model = ? AND version = ? "          \
                       "ORDER BY name")                                                                      \
    X(ALIASES_VERSION_DELETE, "DELETE FROM registered_model_aliases WHERE model = ? AND version = ?")        \
    X(VERSION, "SELECT " COLUMNS_VERSION " FROM " TABLES_VERSION                                             \
               " WHERE model_versions.model = ? AND model_versions.number = ?")                              \
    X(VERSION_NEWEST, "SELECT " COLUMNS_VERSION " FROM " TABLES_VERSION " WHERE model_versions.model = ? "   \
                      "ORDER BY model_versions.number DESC LIMIT 1")                                         \
    X(VERSION_OF_STAGE, "SELECT " COLUMNS_VERSION " FROM " TABLES_VERSION                                    \
                        " WHERE model_versions.model = ? AND model_versions.stage = ? "                      \
                        "ORDER BY model_versions.number DESC LIMIT 1")                                       \
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
    X(VERSIONS_DELETE, "DELETE FROM model_versions WHERE model = ?")                                         \
    X(VERSION_TAG_PUT, "INSERT INTO model_version_tags (version, name, value) VALUES (?, ?, ?) "             \
                       "ON CONFLICT (version, name) DO UPDATE SET value = excluded.value")                   \
    X(VERSION_TAG_DELETE, "DELETE FROM model_version_tags WHERE version = ? AND name = ?")                   \
    X(VERSION_TAGS, "SELECT name, value FROM model_version_tags WHERE version = ? ORDER BY name")            \
    X(VERSION_TAGS_COUNT, "SELECT count(*) FROM model_version_tags WHERE version = ?")                       \
    X(VERSION_TAGS_DELETE, "DELETE FROM model_version_tags WHERE version = ?")                               \
    X(VERSIONS_TAGS_DELETE, "DELETE FROM model_version_tags WHERE version IN "                               \
                            "(SELECT key FROM model_versions WHERE model = ?)")                              \
    X(JOBS_RUNNING, "SELECT DISTINCT tags.value FROM runs JOIN tags ON tags.run = runs.key "                 \
                    "AND tags.name = ? WHERE runs.status = 'RUNNING' LIMIT ?")                               \
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
