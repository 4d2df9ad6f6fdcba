/* SPDX-License-Identifier: Apache-2.0 */
/* Removes runs in small transactions. A run goes at once, with the logged models that it made; its rows are
 * left to a removal, which deletes them piece by piece, so a removal that is cut off is continued. The caller
 * deletes the files before the last piece, and chooses the runs. */
#include <stdlib.h>

#include "daemon/mlflow/database/database.h"
#include "daemon/mlflow/tracking.h"

bool tracking_runs_over(struct tracking *tracking, int64_t *after_key, int64_t limit,
                        void (*visit)(const struct tracking_over *run, void *closure), void *closure,
                        bool *ret_last, struct tracking_error *error)
{
    struct call call = {.tracking = tracking, .error = error};
    int64_t seen = 0;
    database_begin(&call, false);
    {
        autoquery sqlite3_stmt *row = database_query(&call, QUERY_OVER_RUNS, "ii", *after_key, limit);
        for (; database_next(&call, row); seen++) {
            const struct tracking_over run = {.key = sqlite3_column_int64(row, 0),
                                              .at_ms = sqlite3_column_int64(row, 1),
                                              .project = column_text(row, 2)};
            *after_key = run.key;
            if (sqlite3_column_int(row, 3) != 0) {
                visit(&run, closure);
            }
        }
    }
    *ret_last = seen < limit;
    return database_end(&call);
}

bool tracking_run_remove(struct tracking *tracking, int64_t key, int64_t over_by_ms, bool *ret_removed,
                         struct tracking_error *error)
{
    struct call call = {.tracking = tracking, .error = error};
    database_begin(&call, true);
    *ret_removed = database_run(&call, QUERY_REMOVAL_OF_RUN, "ii", key, over_by_ms) > 0;
    if (*ret_removed) {
        database_run(&call, QUERY_REMOVALS_OF_MODELS, "i", key);
        database_run(&call, QUERY_RUN_MODELS_REMOVE, "i", key);
        database_run(&call, QUERY_RUN_REMOVE, "i", key);
    }
    return database_end(&call);
}

bool tracking_removal_next(struct tracking *tracking, struct tracking_removal *ret_removal,
                           struct tracking_error *error)
{
    struct call call = {.tracking = tracking, .error = error};
    *ret_removal = (struct tracking_removal){0};
    autoquery sqlite3_stmt *row = database_query(&call, QUERY_REMOVAL, "");
    if (database_next(&call, row)) {
        *ret_removal = (struct tracking_removal){.key = sqlite3_column_int64(row, 0),
                                                 .id = xstrdup(column_text(row, 1)),
                                                 .artifact_uri = xstrdup(column_text(row, 2))};
    }
    return !call.failed;
}

void tracking_removal_finish(struct tracking_removal *removal)
{
    free(removal->id);
    free(removal->artifact_uri);
    *removal = (struct tracking_removal){0};
}

bool tracking_removal_piece(struct tracking *tracking, int64_t key, int64_t limit, bool *ret_done,
                            struct tracking_error *error)
{
    static const enum query parts[] = {
        QUERY_REMOVE_POINTS, QUERY_REMOVE_METRICS,      QUERY_REMOVE_PARAMS,
        QUERY_REMOVE_TAGS,   QUERY_REMOVE_INPUTS,       QUERY_REMOVE_OUTPUTS,
        QUERY_REMOVE_COPIED, QUERY_REMOVE_MODEL_PARAMS, QUERY_REMOVE_MODEL_TAGS};
    struct call call = {.tracking = tracking, .error = error};
    database_begin(&call, true);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        database_run(&call, parts[i], "ii", key, limit);
    }
    *ret_done = database_run(&call, QUERY_REMOVAL_END, "i", key) > 0;
    return database_end(&call);
}

bool tracking_file_use(struct tracking *tracking, int64_t *ret_bytes, int64_t *ret_free_bytes,
                       struct tracking_error *error)
{
    struct call call = {.tracking = tracking, .error = error};
    autoquery sqlite3_stmt *row = database_query(&call, QUERY_FILE_USE, "");
    if (database_next(&call, row)) {
        *ret_free_bytes = sqlite3_column_int64(row, 0);
        *ret_bytes = sqlite3_column_int64(row, 1);
    }
    return !call.failed;
}

/* Each step of the statement puts the last page of the file in the place of a free one. */
bool tracking_shrink(struct tracking *tracking, int64_t pages, struct tracking_error *error)
{
    struct call call = {.tracking = tracking, .error = error};
    database_begin(&call, true);
    {
        autoquery sqlite3_stmt *step = database_query(&call, QUERY_SHRINK, "");
        while (pages > 0 && database_next(&call, step)) {
            pages--;
        }
    }
    return database_end(&call);
}
