/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the queries for jobs, their history, and why they wait. It promises that one job, a page of live jobs,
 * and a page of one owner's are found by an index; a filter that no index serves walks back through the jobs
 * until the page is full. */
#include <assert.h>

#include "daemon/store/query.h"
#include "daemon/store/reader.h"

/* The next row of a statement that shows jobs. */
static bool next_job(struct query *query, bool with_spec, struct job_record *ret_job, struct err *err)
{
    if (!query_step(query, err)) {
        return false;
    }
    *ret_job = (struct job_record){0};
    query_read_row(query, TABLE_jobs, &ret_job->row);
    ret_job->birth.key = ret_job->life.key;
    ret_job->birth.array_id = query_read_text(query);
    query_read_row(query, TABLE_arrays, &ret_job->array); /* tasks is 0 where there is none */
    if (with_spec) {
        ret_job->birth.spec = query_read_long_text(query, &ret_job->birth.spec_length);
    }
    return query_read_end(query, err);
}

static bool one_job(struct query *query, void (*visit)(const struct job_record *job, void *closure),
                    void *closure, bool *ret_found, struct err *err)
{
    struct job_record job;
    *ret_found = next_job(query, true, &job, err);
    if (*ret_found) {
        visit(&job, closure);
    }
    return !query->failed;
}

bool reader_job(struct reader *reader, const char *id,
                void (*visit)(const struct job_record *job, void *closure), void *closure, bool *ret_found,
                struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_JOB);
    query_bind_text(&query, id);
    return one_job(&query, visit, closure, ret_found, err);
}

bool reader_job_by_key(struct reader *reader, int64_t key,
                       void (*visit)(const struct job_record *job, void *closure), void *closure,
                       bool *ret_found, struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_JOB_BY_KEY);
    query_bind_number(&query, key);
    return one_job(&query, visit, closure, ret_found, err);
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

bool reader_jobs(struct reader *reader, const struct job_filter *filter,
                 bool (*visit)(const struct job_record *job, void *closure), void *closure, struct err *err)
{
    assert(filter->limit > 0);
    autoquery struct query query = query_begin(&reader->connection, way_to(filter));
    bind_filter(&query, filter);
    struct job_record job;
    while (next_job(&query, false, &job, err) && visit(&job, closure)) {
    }
    return !query.failed;
}

bool reader_events(struct reader *reader, int64_t job_key, int64_t after_seq, int64_t limit,
                   bool (*visit)(const struct event_row *row, void *closure), void *closure, struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_EVENTS);
    query_bind_number(&query, job_key);
    query_bind_number(&query, after_seq);
    query_bind_number(&query, limit);
    struct event_row event;
    while (query_next(&query, TABLE_events, &event, err) && visit(&event, closure)) {
    }
    return !query.failed;
}

bool reader_newest_event(struct reader *reader, int64_t job_key, enum event_kind kind,
                         void (*visit)(const struct event_row *row, void *closure), void *closure,
                         struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_NEWEST_EVENT);
    query_bind_number(&query, job_key);
    query_bind_text(&query, event_kind_text(kind));
    struct event_row event;
    if (query_next(&query, TABLE_events, &event, err)) {
        visit(&event, closure);
    }
    return !query.failed;
}

bool reader_dependencies(struct reader *reader, int64_t job_key,
                         bool (*visit)(const struct dependency_record *record, void *closure), void *closure,
                         struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_DEPENDENCIES);
    query_bind_number(&query, job_key);
    bool goes_on = true;
    while (goes_on && query_step(&query, err)) {
        struct dependency_record record;
        query_read_row(&query, TABLE_dependencies, &record.row);
        record.id = query_read_text(&query);
        record.state = (enum job_state)query_read_word(&query, COLUMN_job_state);
        record.started = query_read_number(&query) != 0;
        goes_on = query_read_end(&query, err) && visit(&record, closure);
    }
    return !query.failed;
}

bool reader_queue_facts(struct reader *reader, int64_t job_key, const char *gpu_type,
                        struct queue_facts *ret_facts, struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_QUEUE_FACTS);
    query_bind_number(&query, job_key);
    query_bind_text(&query, gpu_type);
    if (!query_step(&query, err)) {
        return false;
    }
    ret_facts->ahead = query_read_number(&query);
    ret_facts->registered = query_read_number(&query);
    ret_facts->used = query_read_number(&query);
    ret_facts->drained = query_read_number(&query);
    return query_read_end(&query, err);
}
