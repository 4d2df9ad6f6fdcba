/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for secrets, whose values are sealed here as everywhere. */
#include "daemon/store/query.h"
#include "daemon/store/reader/reader.h"

struct rows reader_secret(struct reader *reader, const char *owner, const char *project, const char *name,
                          struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_SECRET);
    query_bind_text(&query, owner);
    query_bind_text(&query, project);
    query_bind_text(&query, name);
    return rows_open(reader, &query, err);
}

struct rows reader_secrets(struct reader *reader, const char *owner, const char *project, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_SECRETS);
    query_bind_text(&query, owner);
    query_bind_text(&query, project);
    return rows_open(reader, &query, err);
}

struct rows reader_all_secrets(struct reader *reader, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_ALL_SECRETS);
    return rows_open(reader, &query, err);
}

bool rows_secret(struct rows *rows, struct secret_row *ret_row)
{
    struct query query = rows_query(rows);
    if (!rows_step(rows, &query)) {
        return false;
    }
    query_read_row(&query, TABLE_secrets, ret_row);
    return rows_end(rows, &query);
}

bool reader_secret_counts(struct reader *reader, const char *owner, const char *project, int64_t *ret_all,
                          int64_t *ret_own, struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_SECRET_COUNTS);
    query_bind_text(&query, owner);
    query_bind_text(&query, project);
    if (!query_step(&query, err)) {
        return false;
    }
    *ret_all = query_read_number(&query);
    *ret_own = query_read_number(&query);
    return !query.failed;
}
