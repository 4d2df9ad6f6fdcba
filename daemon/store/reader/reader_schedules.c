/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for schedules. */
#include "daemon/store/query.h"
#include "daemon/store/reader/reader.h"

struct rows reader_schedule(struct reader *reader, const char *id, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_SCHEDULE);
    query_bind_text(&query, id);
    return rows_open(reader, &query, err);
}

struct rows reader_schedules(struct reader *reader, const char *owner, const char *after, int64_t limit,
                             struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_SCHEDULES);
    query_bind_text(&query, owner);
    query_bind_text(&query, after);
    query_bind_number(&query, limit);
    return rows_open(reader, &query, err);
}

struct rows reader_due_schedules(struct reader *reader, int64_t limit, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_DUE_SCHEDULES);
    query_bind_number(&query, limit);
    return rows_open(reader, &query, err);
}

bool rows_schedule(struct rows *rows, struct schedule_row *ret_row)
{
    struct query query = rows_query(rows);
    if (!rows_step(rows, &query)) {
        return false;
    }
    query_read_row(&query, TABLE_schedules, ret_row);
    return rows_end(rows, &query);
}

bool reader_schedule_counts(struct reader *reader, const char *owner, const char *name,
                            struct schedule_counts *ret_counts, struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_SCHEDULE_COUNTS);
    query_bind_text(&query, owner);
    query_bind_text(&query, name);
    if (!query_step(&query, err)) {
        return false;
    }
    ret_counts->all = query_read_number(&query);
    ret_counts->own = query_read_number(&query);
    ret_counts->named = query_read_number(&query);
    return !query.failed;
}
