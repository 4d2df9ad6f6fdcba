/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps job_ids: ids of jobs in few large runs, so that a job is found by some 50 searches among ten million.
 * When the keys of a run of level 0 have all been given away, its ids are copied from jobs_id. When 32 runs
 * are filled that make one of the next level, their ids move there. Both go in the order of ids and in small
 * steps: each submission pays for JOB_INDEX_PACE rows, and the steps ride in its transaction. A copy goes on
 * behind the last id that it has written, and a move with the first that is left, so nothing else is
 * remembered. Until a run is filled, readers find its jobs in jobs_id. Retention deletes the id of a job with
 * the job. */
#include "daemon/store/job_index.h"

#include <stdio.h>

#include "daemon/store/database/schema.h"
#include "daemon/store/handle.h"
#include "daemon/store/query.h"

enum { RUN_FAN = 1 << RUN_FAN_BITS };

/* A run that is being filled, from sources with consecutive numbers. */
struct filling {
    int64_t run, first, last;
    char behind[ID_LENGTH + 1]; /* the last id that it has of them */
    enum sql step_end, step;
};

static struct query begin(struct store *store, enum sql sql, const struct filling *filling)
{
    struct query query = query_begin(&store->connection, sql);
    query_bind_number(&query, filling->first);
    query_bind_number(&query, filling->last);
    query_bind_text(&query, filling->behind);
    return query;
}

/* *ret_id: up to it goes the next step; "": the step is the last one. */
static bool find_end(struct store *store, const struct filling *filling, char ret_id[ID_LENGTH + 1],
                     struct err *err)
{
    autoquery struct query query = begin(store, filling->step_end, filling);
    query_bind_number(&query, JOB_INDEX_STEP);
    ret_id[0] = '\0';
    if (!query_step(&query, err)) {
        return !query.failed;
    }
    const char *id = query_read_text(&query);
    snprintf(ret_id, ID_LENGTH + 1, "%s", id != NULL ? id : "");
    return query_read_end(&query, err);
}

/* Adds the ids up to `end`, which pays. */
static bool add_ids(struct store *store, const struct filling *filling, const char *end, struct err *err)
{
    int count;
    struct query query = begin(store, filling->step, filling);
    query_bind_text(&query, end[0] != '\0' ? end : NULL);
    query_bind_number(&query, filling->run);
    if (!query_run(&query, &count, err)) {
        return false;
    }
    store->job_index.credit -= count + 1;
    return true;
}

/* --- from jobs_id --------------------------------------------------------------------------------------- */

static bool is_full(const struct store *store)
{
    return store->next_job_key >> RUN_KEY_BITS > store->job_index.indexed;
}

static bool read_last_id(struct store *store, int64_t run, char ret_id[ID_LENGTH + 1], struct err *err)
{
    autoquery struct query query = query_begin(&store->connection, SQL_LAST_ID);
    query_bind_number(&query, run);
    ret_id[0] = '\0';
    if (!query_step(&query, err)) {
        return !query.failed;
    }
    const char *id = query_read_text(&query);
    snprintf(ret_id, ID_LENGTH + 1, "%s", id != NULL ? id : "");
    return query_read_end(&query, err);
}

static bool note_indexed(struct store *store, struct err *err)
{
    struct query query = query_begin(&store->connection, SQL_NOTE_INDEXED);
    store->job_index.indexed++;
    store->job_index.merged = false;
    return query_run(&query, NULL, err);
}

static bool copy_step(struct store *store, struct err *err)
{
    const int64_t run = store->job_index.indexed;
    char end[ID_LENGTH + 1];
    struct filling filling = {.run = run,
                              .first = run * RUN_FAN,
                              .last = run * RUN_FAN + RUN_FAN - 1,
                              .step_end = SQL_PARTS_STEP_END,
                              .step = SQL_PARTS_STEP};
    return read_last_id(store, run, filling.behind, err) && find_end(store, &filling, end, err) &&
           add_ids(store, &filling, end, err) && (end[0] != '\0' || note_indexed(store, err));
}

/* --- from runs ------------------------------------------------------------------------------------------ */

/* The first run of the level that belongs to a run of the next one which can be filled. */
static bool find_run(struct store *store, int64_t level, bool *ret_found, int64_t *ret_run, struct err *err)
{
    autoquery struct query query = query_begin(&store->connection, SQL_FIRST_RUN);
    int64_t filled = store->job_index.indexed >> (RUN_FAN_BITS * (level + 1));
    query_bind_number(&query, level << RUN_LEVEL_BITS);
    query_bind_number(&query, (level << RUN_LEVEL_BITS) + filled * RUN_FAN);
    if (!query_step(&query, err)) {
        return !query.failed;
    }
    *ret_found = sqlite3_column_type(query.statement, 0) != SQLITE_NULL;
    *ret_run = query_read_number(&query);
    return query_read_end(&query, err);
}

static bool delete_moved(struct store *store, const struct filling *filling, const char *end, struct err *err)
{
    struct query query = begin(store, SQL_DELETE_MOVED, filling);
    query_bind_text(&query, end[0] != '\0' ? end : NULL);
    return query_run(&query, NULL, err);
}

/* Moves ids from the runs to which this one of the level belongs. */
static bool move_step(struct store *store, int64_t level, int64_t run, struct err *err)
{
    const int64_t first = run / RUN_FAN * RUN_FAN;
    const int64_t range = (run - (level << RUN_LEVEL_BITS)) / RUN_FAN;
    char end[ID_LENGTH + 1];
    const struct filling filling = {.run = ((level + 1) << RUN_LEVEL_BITS) + range,
                                    .first = first,
                                    .last = first + RUN_FAN - 1,
                                    .step_end = SQL_RUNS_STEP_END,
                                    .step = SQL_RUNS_STEP};
    return find_end(store, &filling, end, err) && add_ids(store, &filling, end, err) &&
           delete_moved(store, &filling, end, err);
}

static bool merge_step(struct store *store, struct err *err)
{
    for (int64_t level = 0; level < RUN_LEVELS - 1; level++) {
        bool found = false;
        int64_t run;
        if (!find_run(store, level, &found, &run, err)) {
            return false;
        }
        if (found) {
            return move_step(store, level, run, err);
        }
    }
    store->job_index.merged = true;
    return true;
}

bool job_index_advance(struct store *store, struct err *err)
{
    struct job_index *index = &store->job_index;
    while (index->credit > 0) {
        bool full = is_full(store);
        if (!full && index->merged) {
            index->credit = 0;
        } else if (!(full ? copy_step(store, err) : merge_step(store, err))) {
            return false;
        }
    }
    return true;
}
