/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for jobs and their history. A list of jobs goes back through one index, of all jobs, those of an
 * owner, those that live, those of a node or an array, or by the start of the id, until the page is full.
 * What else a filter says costs a look at each job on that way, and reader_jobs_bound says where the looks
 * should end. */
#include <assert.h>
#include <string.h>

#include "daemon/store/query.h"
#include "daemon/store/reader/reader.h"

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

enum way { WAY_TOP, WAY_OWNER, WAY_LIVE, WAY_NODE, WAY_ARRAY, WAY_PREFIX, WAY_LONG_PREFIX };

static const struct {
    enum sql jobs;
    enum sql behind; /* of a way that may be long */
} ways[] = {
    [WAY_TOP] = {SQL_JOBS, SQL_BEHIND},
    [WAY_OWNER] = {SQL_JOBS_OF_OWNER, SQL_BEHIND_OF_OWNER},
    [WAY_LIVE] = {SQL_JOBS_LIVE, SQL_BEHIND_LIVE},
    [WAY_NODE] = {SQL_JOBS_OF_NODE, SQL_BEHIND_OF_NODE},
    [WAY_ARRAY] = {SQL_JOBS_OF_ARRAY, SQL_BEHIND_OF_ARRAY},
    [WAY_PREFIX] = {SQL_JOBS_BY_PREFIX, SQL_BEHIND_BY_PREFIX},
    [WAY_LONG_PREFIX] = {SQL_JOBS_BY_LONG_PREFIX, SQL_COUNT},
};

/* The way to the rows that passes the fewest others. */
static enum way way_to(const struct job_filter *filter)
{
    if (filter->array_key != 0) {
        return WAY_ARRAY;
    }
    if (filter->id_prefix != NULL) {
        return strlen(filter->id_prefix) < LIMIT_LONG_PREFIX ? WAY_PREFIX : WAY_LONG_PREFIX;
    }
    if (only_live(filter->states)) {
        return WAY_LIVE;
    }
    return filter->node != NULL ? WAY_NODE : filter->owner != NULL ? WAY_OWNER : WAY_TOP;
}

/* The way passes no job that does not fit, or only a few. */
static bool is_short(const struct job_filter *filter, enum way way)
{
    bool by_way = way == WAY_TOP || way == WAY_OWNER || (way == WAY_NODE && filter->owner == NULL) ||
                  (way == WAY_ARRAY && filter->owner == NULL && filter->node == NULL);
    if (way == WAY_LONG_PREFIX) {
        return true;
    }
    return by_way && filter->name == NULL && filter->label == NULL && filter->project == NULL &&
           filter->since_ms == 0 && filter->states == 0;
}

static void bind_before(struct query *query, const struct job_filter *filter)
{
    query_bind_number(query, filter->before_key == 0 ? INT64_MAX : filter->before_key);
}

static void bind_filter(struct query *query, const struct job_filter *filter)
{
    bind_before(query, filter);
    query_bind_number(query, filter->limit);
    query_bind_text(query, filter->id_prefix);
    query_bind_text(query, filter->name);
    query_bind_text(query, filter->project);
    query_bind_number(query, filter->since_ms);
    query_bind_text(query, filter->owner);
    query_bind_number(query, filter->array_key);
    query_bind_number(query, filter->behind_key);
    query_bind_text(query, filter->node);
    query_bind_text(query, filter->label);
    query_bind_text(query, filter->label_value);
    for (enum job_state state = 0; state < JOB_STATE_COUNT; state++) {
        bool wanted = filter->states == 0 || (filter->states & (1u << state)) != 0;
        query_bind_text(query, wanted ? job_state_text(state) : NULL);
    }
}

struct rows reader_jobs(struct reader *reader, const struct job_filter *filter, struct err *err)
{
    assert(filter->limit > 0);
    struct query query = query_begin(&reader->connection, ways[way_to(filter)].jobs);
    bind_filter(&query, filter);
    return rows_open(reader, &query, err);
}

static void bind_way(struct query *query, const struct job_filter *filter, enum way way)
{
    bind_before(query, filter);
    query_bind_number(query, LIMIT_SCAN_ROWS);
    switch (way) {
    case WAY_OWNER:
        query_bind_text(query, filter->owner);
        break;
    case WAY_NODE:
        query_bind_text(query, filter->node);
        break;
    case WAY_ARRAY:
        query_bind_number(query, filter->array_key);
        break;
    case WAY_PREFIX:
        query_bind_text(query, filter->id_prefix);
        break;
    case WAY_TOP:
    case WAY_LIVE:
    case WAY_LONG_PREFIX:
        break;
    }
}

bool reader_jobs_bound(struct reader *reader, struct job_filter *filter, bool *ret_over, struct err *err)
{
    enum way way = way_to(filter);
    *ret_over = true;
    if (is_short(filter, way)) {
        return true;
    }
    autoquery struct query query = query_begin(&reader->connection, ways[way].behind);
    bind_way(&query, filter, way);
    if (!query_step(&query, err)) {
        return !query.failed;
    }
    filter->behind_key = query_read_number(&query);
    *ret_over = query_read_number(&query) < filter->since_ms - LIMIT_SINCE_SLACK_MS;
    return query_read_end(&query, err);
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
