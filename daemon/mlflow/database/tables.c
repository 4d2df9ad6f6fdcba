/* SPDX-License-Identifier: Apache-2.0 */
/* Defines the tables of the tracking database and migrates them. A database either has the newest version or
 * is refused; each version is reached in one transaction. statements.h has the statements.
 *
 * Each metric has a row with its latest value, because searches and views of a run ask for that. All its
 * points are rows without text, in the order in which a history is read. NaN, which SQLite would store as
 * NULL, is value 0 with is_nan 1. */
#include "daemon/mlflow/database/tables.h"

#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"

/* Marks the file as ours: "gpum". */
#define APPLICATION_ID      0x6770756d
#define APPLICATION_ID_TEXT "0x6770756d"

#define OR_STATUS(name) ", '" #name "'"

/* Tags or parameters of a row of another table. */
#define PAIRS_TABLE(name, owner, of)                                                                         \
    "CREATE TABLE " name " (\n"                                                                              \
    "  " owner " INTEGER NOT NULL, -- " of "\n"                                                              \
    "  name TEXT NOT NULL,\n"                                                                                \
    "  value TEXT NOT NULL,\n"                                                                               \
    "  PRIMARY KEY (" owner ", name)\n"                                                                      \
    ") STRICT, WITHOUT ROWID"

static const char *const version_1[] = {
    "PRAGMA application_id = " APPLICATION_ID_TEXT,

    "CREATE TABLE experiments (\n"
    "  id INTEGER PRIMARY KEY, -- 0: Default\n"
    "  name TEXT NOT NULL UNIQUE, -- among those that are deleted, too\n"
    "  artifact_location TEXT NOT NULL, -- URI; artifacts of its runs are below\n"
    "  deleted INTEGER NOT NULL CHECK (deleted IN (0, 1)),\n"
    "  created_ms INTEGER NOT NULL, -- wall clock, as all columns that end so\n"
    "  updated_ms INTEGER NOT NULL\n"
    ") STRICT",

    "INSERT INTO experiments VALUES (0, 'Default', 'mlflow-artifacts:/0', 0, 0, 0)",

    PAIRS_TABLE("experiment_tags", "experiment", "experiments.id"),

    "CREATE TABLE runs (\n"
    "  key INTEGER PRIMARY KEY, -- in order of creation; what the other tables refer to\n"
    "  id TEXT NOT NULL UNIQUE, -- the name of the run outside\n"
    "  experiment INTEGER NOT NULL, -- experiments.id\n"
    "  name TEXT NOT NULL, -- for people; the tag mlflow.runName says the same\n"
    "  user_id TEXT NOT NULL,\n"
    "  status TEXT NOT NULL CHECK (status IN (''" TRACKING_STATUSES(
        OR_STATUS) ")),\n"
                   "  start_ms INTEGER NOT NULL,\n"
                   "  end_ms INTEGER, -- NULL: not yet\n"
                   "  deleted INTEGER NOT NULL CHECK (deleted IN (0, 1, 2)), -- 2: with its experiment\n"
                   "  artifact_uri TEXT NOT NULL\n"
                   ") STRICT",

    "CREATE INDEX runs_experiment ON runs (experiment, start_ms)",

    "CREATE TABLE metrics ( -- the latest value of each: by step, then time, then value\n"
    "  key INTEGER PRIMARY KEY,\n"
    "  run INTEGER NOT NULL, -- runs.key\n"
    "  name TEXT NOT NULL,\n"
    "  step INTEGER NOT NULL,\n"
    "  at_ms INTEGER NOT NULL, -- as the client said\n"
    "  value REAL NOT NULL,\n"
    "  is_nan INTEGER NOT NULL CHECK (is_nan IN (0, 1)),\n"
    "  UNIQUE (run, name)\n"
    ") STRICT",

    "CREATE TABLE points ( -- all values of each metric, the latest included; the same one counts once\n"
    "  metric INTEGER NOT NULL, -- metrics.key\n"
    "  at_ms INTEGER NOT NULL,\n"
    "  step INTEGER NOT NULL,\n"
    "  value REAL NOT NULL,\n"
    "  is_nan INTEGER NOT NULL,\n"
    "  PRIMARY KEY (metric, at_ms, step, value, is_nan)\n"
    ") STRICT, WITHOUT ROWID",

    PAIRS_TABLE("params", "run", "runs.key"), /* written once */

    PAIRS_TABLE("tags", "run", "runs.key"),

    "CREATE TABLE inputs ( -- data sets that a run read\n"
    "  run INTEGER NOT NULL, -- runs.key\n"
    "  name TEXT NOT NULL, -- of the data set\n"
    "  digest TEXT NOT NULL,\n"
    "  context TEXT, -- what for, as \"training\"; NULL: not said\n"
    "  input TEXT NOT NULL, -- JSON as it is shown: {tags, dataset}\n"
    "  PRIMARY KEY (run, name, digest)\n"
    ") STRICT",

    NULL,
};

static const char *const version_2[] = {
    "CREATE TABLE copied ( -- how much of the metrics streams of jobs is in their runs\n"
    "  run INTEGER NOT NULL, -- runs.key\n"
    "  stream INTEGER NOT NULL, -- the first rank of the node that it comes from\n"
    "  bytes INTEGER NOT NULL, -- from its start\n"
    "  PRIMARY KEY (run, stream)\n"
    ") STRICT, WITHOUT ROWID",

    "CREATE TABLE models ( -- as MLflow 3 logs them\n"
    "  key INTEGER PRIMARY KEY, -- in order of creation; what the other tables refer to\n"
    "  id TEXT NOT NULL UNIQUE, -- the name of the model outside\n"
    "  experiment INTEGER NOT NULL, -- experiments.id\n"
    "  name TEXT NOT NULL, -- for people\n"
    "  type TEXT NOT NULL, -- as the client has it\n"
    "  source_run TEXT, -- id of the run that it says made it; NULL: none\n"
    "  status TEXT NOT NULL CHECK (status IN (''" MODEL_STATUSES(
        OR_STATUS) ")),\n"
                   "  artifact_uri TEXT NOT NULL, -- its files are below\n"
                   "  deleted INTEGER NOT NULL CHECK (deleted IN (0, 1)),\n"
                   "  created_ms INTEGER NOT NULL,\n"
                   "  updated_ms INTEGER NOT NULL\n"
                   ") STRICT",

    "CREATE INDEX models_experiment ON models (experiment, created_ms)",

    PAIRS_TABLE("model_params", "model", "models.key"),

    PAIRS_TABLE("model_tags", "model", "models.key"),

    "CREATE TABLE outputs ( -- models that a run made\n"
    "  run INTEGER NOT NULL, -- runs.key\n"
    "  model_id TEXT NOT NULL, -- models.id, as the client says\n"
    "  step INTEGER NOT NULL,\n"
    "  PRIMARY KEY (run, model_id)\n"
    ") STRICT, WITHOUT ROWID",

    NULL,
};

static const char *const version_3[] = {
    "CREATE TABLE registered_models ( -- the registry's\n"
    "  key INTEGER PRIMARY KEY, -- in order of creation; what the other tables refer to\n"
    "  name TEXT NOT NULL UNIQUE,\n"
    "  description TEXT NOT NULL,\n"
    "  last_version INTEGER NOT NULL, -- the number given last; 0: none\n"
    "  created_ms INTEGER NOT NULL,\n"
    "  updated_ms INTEGER NOT NULL\n"
    ") STRICT",

    PAIRS_TABLE("registered_model_tags", "model", "registered_models.key"),

    "CREATE TABLE registered_model_aliases (\n"
    "  model INTEGER NOT NULL, -- registered_models.key\n"
    "  name TEXT NOT NULL,\n"
    "  version INTEGER NOT NULL, -- model_versions.number\n"
    "  PRIMARY KEY (model, name)\n"
    ") STRICT, WITHOUT ROWID",

    "CREATE TABLE model_versions ( -- of registered models\n"
    "  key INTEGER PRIMARY KEY, -- in order of creation; what model_version_tags refers to\n"
    "  model INTEGER NOT NULL, -- registered_models.key\n"
    "  number INTEGER NOT NULL, -- from 1; that of a deleted version is not given again\n"
    "  description TEXT, -- NULL: none\n"
    "  user_id TEXT NOT NULL, -- who made it\n"
    "  stage TEXT NOT NULL CHECK (stage IN (''" VERSION_STAGES(
        OR_STATUS) ")),\n"
                   "  source TEXT NOT NULL, -- URI, as the client said\n"
                   "  location TEXT NOT NULL, -- URI of its files\n"
                   "  run_id TEXT NOT NULL, -- that made it; '': none\n"
                   "  run_link TEXT NOT NULL, -- '': none\n"
                   "  model_id TEXT NOT NULL, -- models.id of the logged model; '': none\n"
                   "  created_ms INTEGER NOT NULL,\n"
                   "  updated_ms INTEGER NOT NULL,\n"
                   "  UNIQUE (model, number)\n"
                   ") STRICT",

    "CREATE INDEX model_versions_stage ON model_versions (model, stage, number)",

    "CREATE INDEX model_versions_run ON model_versions (run_id)",

    PAIRS_TABLE("model_version_tags", "version", "model_versions.key"),

    NULL,
};

static const char *const version_4[] = {
    "ALTER TABLE points ADD COLUMN run INTEGER "
    "/* runs.key, of a point that a client logged; NULL: of the job's own metrics, or from before this */",

    "ALTER TABLE points ADD COLUMN number INTEGER "
    "/* from 1, in the order in which clients logged into the run */",

    "CREATE UNIQUE INDEX points_logged ON points (run, number) WHERE run IS NOT NULL",

    NULL,
};

/* Old runs are removed. */
static const char *const version_5[] = {
    "CREATE TABLE removals ( -- runs and logged models that are gone, while some of their rows or files are "
    "left\n"
    "  key INTEGER PRIMARY KEY,\n"
    "  run INTEGER, -- runs.key, which no other run has yet; NULL: it is a model\n"
    "  model INTEGER, -- models.key, likewise; NULL: it is a run\n"
    "  id TEXT NOT NULL,\n"
    "  artifact_uri TEXT NOT NULL\n"
    ") STRICT",

    "CREATE INDEX models_source ON models (source_run) WHERE source_run IS NOT NULL",

    "CREATE INDEX model_versions_logged ON model_versions (model_id) WHERE model_id <> ''",

    NULL,
};

/* Everything has an owner and a project. What is from before this is everybody's, but for runs of jobs, and
 * registered models whose first version says who made it. */
static const char *const version_6[] = {
    "CREATE TABLE experiments_6 (\n"
    "  id INTEGER PRIMARY KEY, -- 0: Default\n"
    "  name TEXT NOT NULL,\n"
    "  artifact_location TEXT NOT NULL, -- URI; artifacts of its runs are below\n"
    "  deleted INTEGER NOT NULL CHECK (deleted IN (0, 1)),\n"
    "  created_ms INTEGER NOT NULL, -- wall clock, as all columns that end so\n"
    "  updated_ms INTEGER NOT NULL,\n"
    "  owner TEXT NOT NULL, -- '': everybody adds to it\n"
    "  project TEXT NOT NULL,\n"
    "  UNIQUE (name, owner, project) -- among those that are deleted, too\n"
    ") STRICT",

    "INSERT INTO experiments_6 SELECT id, name, artifact_location, deleted, created_ms, updated_ms, "
    "'', 'default' FROM experiments",

    "DROP TABLE experiments",

    "ALTER TABLE experiments_6 RENAME TO experiments",

    "ALTER TABLE runs ADD COLUMN owner TEXT NOT NULL DEFAULT '' /* whose run it is; user_id is what clients "
    "say */",

    "ALTER TABLE runs ADD COLUMN project TEXT NOT NULL DEFAULT 'default'",

    "UPDATE runs SET owner = user_id FROM tags WHERE tags.run = runs.key AND tags.name = 'gpuctl.job_id'",

    "UPDATE runs SET project = tags.value FROM tags WHERE tags.run = runs.key AND tags.name = "
    "'gpuctl.project'",

    "ALTER TABLE models ADD COLUMN owner TEXT NOT NULL DEFAULT ''",

    "ALTER TABLE models ADD COLUMN project TEXT NOT NULL DEFAULT 'default'",

    "UPDATE models SET owner = runs.owner, project = runs.project FROM runs WHERE runs.id = "
    "models.source_run",

    "CREATE TABLE registered_models_6 ( -- the registry's\n"
    "  key INTEGER PRIMARY KEY, -- in order of creation; what the other tables refer to\n"
    "  name TEXT NOT NULL,\n"
    "  description TEXT NOT NULL,\n"
    "  last_version INTEGER NOT NULL, -- the number given last; 0: none\n"
    "  created_ms INTEGER NOT NULL,\n"
    "  updated_ms INTEGER NOT NULL,\n"
    "  owner TEXT NOT NULL, -- '': everybody adds versions\n"
    "  project TEXT NOT NULL,\n"
    "  UNIQUE (name, owner, project)\n"
    ") STRICT",

    "INSERT INTO registered_models_6 SELECT key, name, description, last_version, created_ms, updated_ms, "
    "coalesce((SELECT user_id FROM model_versions WHERE model = "
    "registered_models.key AND user_id <> 'job' ORDER BY number LIMIT 1), ''), 'default' FROM "
    "registered_models",

    "DROP TABLE registered_models",

    "ALTER TABLE registered_models_6 RENAME TO registered_models",

    NULL,
};

/* Append only: a released version never changes. */
static const char *const *const versions[] = {version_1, version_2, version_3,
                                              version_4, version_5, version_6};

enum { VERSION_COUNT = sizeof versions / sizeof versions[0] };

static bool fail(sqlite3 *db, const char *doing, struct err *err)
{
    return err_set(err, ERR_IO, "cannot %s the tracking database: %s", doing, sqlite3_errmsg(db));
}

static bool number(sqlite3 *db, const char *sql, int64_t *ret_value, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    bool ok = sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
              sqlite3_step(statement) == SQLITE_ROW;
    if (ok) {
        *ret_value = sqlite3_column_int64(statement, 0);
    } else {
        fail(db, "read", err);
    }
    sqlite3_finalize(statement);
    return ok;
}

bool tables_check(sqlite3 *db, struct err *err)
{
    int64_t application, version, things;
    if (!number(db, "PRAGMA application_id", &application, err) ||
        !number(db, "PRAGMA user_version", &version, err) ||
        !number(db, "SELECT count(*) FROM sqlite_schema", &things, err)) {
        return false;
    }
    if (things > 0 && application != APPLICATION_ID) {
        return err_set(err, ERR_IO, "the file for tracking is a database of another program");
    }
    if (version > VERSION_COUNT) {
        err_set(err, ERR_IO,
                "the tracking database has schema version %lld; this program knows versions up to %d",
                (long long)version, VERSION_COUNT);
        return err_hint(err, "start the version of gpuctld that wrote it, or a newer one");
    }
    return true;
}

/* Runs the statements up to the NULL and sets the version. */
static bool apply(sqlite3 *db, const char *const *statements, int version)
{
    for (; *statements != NULL; statements++) {
        if (sqlite3_exec(db, *statements, NULL, NULL, NULL) != SQLITE_OK) {
            return false;
        }
    }
    char set_version[64];
    sqlite3_snprintf(sizeof set_version, set_version, "PRAGMA user_version = %d", version);
    return sqlite3_exec(db, set_version, NULL, NULL, NULL) == SQLITE_OK;
}

/* Reads the version inside the transaction, because another handle may be migrating, too. */
static bool migrate(sqlite3 *db, bool *ret_done, struct err *err)
{
    int64_t version;
    if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK) {
        return fail(db, "migrate", err);
    }
    if (!number(db, "PRAGMA user_version", &version, err)) {
        return false;
    }
    *ret_done = version >= VERSION_COUNT;
    if ((!*ret_done && !apply(db, versions[version], (int)version + 1)) ||
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
        return fail(db, "migrate", err); /* the connection is closed, which rolls back */
    }
    return true;
}

bool tables_make_shrinkable(sqlite3 *db, struct err *err)
{
    int64_t mode, pages, page_bytes;
    if (!number(db, "PRAGMA auto_vacuum", &mode, err) || !number(db, "PRAGMA page_count", &pages, err) ||
        !number(db, "PRAGMA page_size", &page_bytes, err)) {
        return false;
    }
    if (mode != 0 || pages > LIMIT_REWRITE_BYTES / page_bytes) {
        return true;
    }
    return sqlite3_exec(db, "PRAGMA auto_vacuum = INCREMENTAL; VACUUM", NULL, NULL, NULL) == SQLITE_OK ||
           (sqlite3_errcode(db) & 0xff) == SQLITE_FULL || fail(db, "rewrite", err);
}

bool tables_migrate(sqlite3 *db, struct err *err)
{
    bool done = false;
    while (!done) {
        if (!migrate(db, &done, err)) {
            return false;
        }
    }
    return true;
}
