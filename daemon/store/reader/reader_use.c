/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for who used what, and how long jobs wait. One statement reads the hours and the live attempts, so
 * an attempt that ends meanwhile is in one of both. */
#include "daemon/store/query.h"
#include "daemon/store/reader/reader.h"

struct rows reader_use(struct reader *reader, const struct use_question *question, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_USE);
    query_bind_number(&query, question->since_ms);
    query_bind_number(&query, question->until_ms);
    query_bind_number(&query, question->step_ms);
    query_bind_number(&query, question->by_project);
    query_bind_number(&query, question->by_owner);
    query_bind_number(&query, question->by_reserved);
    query_bind_text(&query, question->project);
    query_bind_text(&query, question->owner);
    return rows_open(reader, &query, err);
}

bool rows_use(struct rows *rows, struct use_record *ret_record)
{
    struct query query = rows_query(rows);
    if (!rows_step(rows, &query)) {
        return false;
    }
    ret_record->gpus = query_read_number(&query);
    query_read_row(&query, TABLE_hours, &ret_record->row);
    return rows_end(rows, &query);
}

bool reader_old_hours(struct reader *reader, int64_t hour_ms, bool *ret_found, struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_OLD_HOURS);
    query_bind_number(&query, hour_ms);
    *ret_found = query_step(&query, err);
    return !query.failed;
}

bool reader_job_name(struct reader *reader, const char *id, char **ret_name, struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_JOB_NAME);
    query_bind_text(&query, id);
    const char *name = query_step(&query, err) ? query_read_text(&query) : NULL;
    *ret_name = name != NULL ? xstrdup(name) : NULL;
    return !query.failed;
}

bool reader_oldest_waiting(struct reader *reader, int64_t *ret_created_ms, struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_OLDEST_WAITING);
    *ret_created_ms = query_step(&query, err) ? query_read_number(&query) : 0;
    return !query.failed;
}
