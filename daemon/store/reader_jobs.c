/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the queries for jobs, their history, and why they wait. It promises that one job, a page of live jobs,
 * and a page of one owner's are found by an index; a filter that no index serves walks back through the jobs
 * until the page is full. */
#include <assert.h>

#include "daemon/store/columns.h"
#include "daemon/store/reader.h"

/* The one row of a statement whose parameters are bound. */
static bool one_job(struct reader *reader, sqlite3_stmt *job_statement,
                    void (*visit)(const struct job_record *job, void *closure), void *closure,
                    bool *ret_found, struct err *err)
{
    autoreset sqlite3_stmt *statement = job_statement;
    struct job_record job;
    if (!connection_step(&reader->connection, statement, ret_found, err) ||
        (*ret_found && !columns_shown(statement, true, &job, err))) {
        return false;
    }
    if (*ret_found) {
        visit(&job, closure);
    }
    return true;
}

bool reader_job(struct reader *reader, const char *id,
                void (*visit)(const struct job_record *job, void *closure), void *closure, bool *ret_found,
                struct err *err)
{
    struct binder to = binder_begin(&reader->connection, SQL_JOB);
    bind_text(&to, id);
    return one_job(reader, to.statement, visit, closure, ret_found, err);
}

bool reader_job_by_key(struct reader *reader, int64_t key,
                       void (*visit)(const struct job_record *job, void *closure), void *closure,
                       bool *ret_found, struct err *err)
{
    struct binder to = binder_begin(&reader->connection, SQL_JOB_BY_KEY);
    bind_int(&to, key);
    return one_job(reader, to.statement, visit, closure, ret_found, err);
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

static void bind_filter(struct binder *to, const struct job_filter *filter)
{
    bind_int(to, filter->before_key == 0 ? INT64_MAX : filter->before_key);
    bind_int(to, filter->limit);
    bind_text(to, filter->owner);
    bind_text(to, filter->name);
    bind_text(to, filter->project);
    bind_int(to, filter->since_ms);
    bind_text(to, filter->id_prefix);
    bind_int(to, filter->array_key);
    for (enum job_state state = 0; state < JOB_STATE_COUNT; state++) {
        bool wanted = filter->states == 0 || (filter->states & (1u << state)) != 0;
        bind_text(to, wanted ? job_state_text(state) : NULL);
    }
}

bool reader_jobs(struct reader *reader, const struct job_filter *filter,
                 bool (*visit)(const struct job_record *job, void *closure), void *closure, struct err *err)
{
    assert(filter->limit > 0);
    struct binder to = binder_begin(&reader->connection, way_to(filter));
    bind_filter(&to, filter);
    autoreset sqlite3_stmt *statement = to.statement;
    bool ok, row;
    while ((ok = connection_step(&reader->connection, statement, &row, err)) && row) {
        struct job_record job;
        if (!columns_shown(statement, false, &job, err)) {
            return false;
        }
        if (!visit(&job, closure)) {
            return true;
        }
    }
    return ok;
}

bool reader_events(struct reader *reader, int64_t job_key, int64_t after_seq, int64_t limit,
                   bool (*visit)(const struct event_row *row, void *closure), void *closure, struct err *err)
{
    struct binder to = binder_begin(&reader->connection, SQL_EVENTS);
    bind_int(&to, job_key);
    bind_int(&to, after_seq);
    bind_int(&to, limit);
    autoreset sqlite3_stmt *statement = to.statement;
    bool ok, row;
    while ((ok = connection_step(&reader->connection, statement, &row, err)) && row) {
        struct event_row event;
        if (!columns_event(statement, &event, err)) {
            return false;
        }
        if (!visit(&event, closure)) {
            return true;
        }
    }
    return ok;
}

bool reader_newest_event(struct reader *reader, int64_t job_key, enum event_kind kind,
                         void (*visit)(const struct event_row *row, void *closure), void *closure,
                         struct err *err)
{
    struct binder to = binder_begin(&reader->connection, SQL_NEWEST_EVENT);
    bind_int(&to, job_key);
    bind_text(&to, event_kind_text(kind));
    autoreset sqlite3_stmt *statement = to.statement;
    bool row;
    struct event_row event;
    if (!connection_step(&reader->connection, statement, &row, err) ||
        (row && !columns_event(statement, &event, err))) {
        return false;
    }
    if (row) {
        visit(&event, closure);
    }
    return true;
}

bool reader_dependencies(struct reader *reader, int64_t job_key,
                         bool (*visit)(const struct dependency_record *record, void *closure), void *closure,
                         struct err *err)
{
    struct binder to = binder_begin(&reader->connection, SQL_DEPENDENCIES);
    bind_int(&to, job_key);
    autoreset sqlite3_stmt *statement = to.statement;
    bool ok, row;
    while ((ok = connection_step(&reader->connection, statement, &row, err)) && row) {
        struct dependency_record record;
        if (!columns_dependency_with_job(statement, &record, err)) {
            return false;
        }
        if (!visit(&record, closure)) {
            return true;
        }
    }
    return ok;
}

bool reader_queue_facts(struct reader *reader, int64_t job_key, const char *gpu_type,
                        struct queue_facts *ret_facts, struct err *err)
{
    struct binder to = binder_begin(&reader->connection, SQL_QUEUE_FACTS);
    bind_int(&to, job_key);
    bind_text(&to, gpu_type);
    autoreset sqlite3_stmt *statement = to.statement;
    bool row;
    if (!connection_step(&reader->connection, statement, &row, err)) {
        return false;
    }
    assert(row);
    return columns_facts(statement, ret_facts, err);
}
