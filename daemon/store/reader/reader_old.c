/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for retention: what is old, and what nothing uses. Each reads a bounded number of rows in the order
 * of an index, so a whole round is a number of short read transactions. */
#include "daemon/store/query.h"
#include "daemon/store/reader/reader.h"

struct rows reader_old_jobs(struct reader *reader, int64_t after_key, int64_t limit, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_OLD_JOBS);
    query_bind_number(&query, after_key);
    query_bind_number(&query, limit);
    return rows_open(reader, &query, err);
}

struct rows reader_removals(struct reader *reader, int64_t limit, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_REMOVALS);
    query_bind_number(&query, limit);
    return rows_open(reader, &query, err);
}

bool reader_old_reply(struct reader *reader, int64_t count, int64_t *ret_key, struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_OLD_REPLIES);
    query_bind_number(&query, count);
    *ret_key = 0;
    if (!query_step(&query, err)) {
        return !query.failed;
    }
    *ret_key = query_read_number(&query); /* of none: NULL, which reads as 0 */
    return query_read_end(&query, err);
}

bool reader_file_use(struct reader *reader, struct file_use *ret_use, struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_FILE_USE);
    *ret_use = (struct file_use){0};
    if (!query_step(&query, err)) {
        return !query.failed;
    }
    ret_use->free_bytes = query_read_number(&query);
    ret_use->bytes = query_read_number(&query);
    return query_read_end(&query, err);
}

struct rows reader_blob_uses(struct reader *reader, int64_t after, int64_t limit, int64_t created_ms,
                             struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_BLOB_USES);
    query_bind_number(&query, after);
    query_bind_number(&query, limit);
    query_bind_number(&query, created_ms);
    return rows_open(reader, &query, err);
}

bool rows_blob_use(struct rows *rows, struct blob_use *ret_use)
{
    struct query query = rows_query(rows);
    if (!rows_step(rows, &query)) {
        return false;
    }
    ret_use->number = query_read_number(&query);
    query_read_digest(&query, ret_use->hash);
    ret_use->size = query_read_number(&query);
    ret_use->file = query_read_number(&query) != 0;
    ret_use->unused = query_read_number(&query) != 0;
    return rows_end(rows, &query);
}

struct rows reader_limits(struct reader *reader, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_LIMITS);
    return rows_open(reader, &query, err);
}
