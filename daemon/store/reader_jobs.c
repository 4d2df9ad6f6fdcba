/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for jobs and their history. One job, a page of live jobs, and a page of one owner's jobs are found
 * by an index. A filter that no index serves walks back through the jobs until the page is full. */
#include <assert.h>

#include "daemon/store/query.h"
#include "daemon/store/reader.h"

bool rows_job(struct rows *rows, struct job_record *ret_job)
{
    struct query query = rows_query(rows);
    if (!rows_step(rows, &query)) {
        return false;
    }
    *ret_job = (struct job_record){0};
    query_read_row(&query, TABLE_jobs, &ret_job->row);
    ret_job->birth.key = ret_job->life.key;
    ret_job->birth.array_id = query_read_text(&query);
    query_read_row(&query, TABLE_arrays, &ret_job->array); /* tasks is 0 where there is none */
    if (rows->with_spec) {
        ret_job->birth.spec = query_read_long_text(&query, &ret_job->birth.spec_length);
    }
    return rows_end(rows, &query);
}

bool rows_dependency_with_job(struct rows *rows, struct dependency_record *ret_record)
{
    struct query query = rows_query(rows);
    if (!rows_step(rows, &query)) {
        return false;
    }
    query_read_row(&query, TABLE_dependencies, &ret_record->row);
    ret_record->id = query_read_text(&query);
    ret_record->state = (enum job_state)query_read_word(&query, COLUMN_job_state);
    ret_record->started = query_read_number(&query) != 0;
    return rows_end(rows, &query);
}

struct rows reader_job(struct reader *reader, const char *id, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_JOB);
    query_bind_text(&query, id);
    struct rows rows = rows_open(reader, &query, err);
    rows.with_spec = true;
    return rows;
}

struct rows reader_job_by_key(struct reader *reader, int64_t key, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_JOB_BY_KEY);
    query_bind_number(&query, key);
    struct rows rows = rows_open(reader, &query, err);
    rows.with_spec = true;
    return rows;
}

static bool only_live(uint32_t states)
{
    for (enum job_state state = 0; state < JOB_STATE_COUNT; state++) {
        if ((states & (1u << state)) != 0 && job_state_terminal(state)) {
            return false;
        }
    }
    return states != 0;
}

/* The way to the rows that passes the fewest others. */
static enum sql way_to(const struct job_filter *filter)
{
    if (filter->array_key != 0) {
        return SQL_JOBS_OF_ARRAY;
    }
    if (filter->id_prefix != NULL) {
        return SQL_JOBS_BY_PREFIX;
    }
    if (only_live(filter->states)) {
        return SQL_JOBS_LIVE;
    }
    return filter->owner != NULL ? SQL_JOBS_OF_OWNER : SQL_JOBS;
}

static void bind_filter(struct query *query, const struct job_filter *filter)
{
    query_bind_number(query, filter->before_key == 0 ? INT64_MAX : filter->before_key);
    query_bind_number(query, filter->limit);
    query_bind_text(query, filter->owner);
    query_bind_text(query, filter->name);
    query_bind_text(query, filter->project);
    query_bind_number(query, filter->since_ms);
    query_bind_text(query, filter->id_prefix);
    query_bind_number(query, filter->array_key);
    for (enum job_state state = 0; state < JOB_STATE_COUNT; state++) {
        bool wanted = filter->states == 0 || (filter->states & (1u << state)) != 0;
        query_bind_text(query, wanted ? job_state_text(state) : NULL);
    }
}

struct rows reader_jobs(struct reader *reader, const struct job_filter *filter, struct err *err)
{
    assert(filter->limit > 0);
    struct query query = query_begin(&reader->connection, way_to(filter));
    bind_filter(&query, filter);
    return rows_open(reader, &query, err);
}

struct rows reader_events(struct reader *reader, int64_t job_key, int64_t after_seq, int64_t limit,
                          struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_EVENTS);
    query_bind_number(&query, job_key);
    query_bind_number(&query, after_seq);
    query_bind_number(&query, limit);
    return rows_open(reader, &query, err);
}

struct rows reader_newest_event(struct reader *reader, int64_t job_key, enum event_kind kind, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_NEWEST_EVENT);
    query_bind_number(&query, job_key);
    query_bind_text(&query, event_kind_text(kind));
    return rows_open(reader, &query, err);
}

struct rows reader_dependencies(struct reader *reader, int64_t job_key, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_DEPENDENCIES);
    query_bind_number(&query, job_key);
    return rows_open(reader, &query, err);
}
