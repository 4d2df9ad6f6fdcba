/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes readers, steps through the rows of their queries, and has the small queries: tokens,
 * joins, blobs, lost attempts. A reader sees committed state only. Every query is one statement, and so
 * one read transaction. */
#include "daemon/store/reader/reader.h"

#include <assert.h>
#include <stdlib.h>

#include "daemon/store/query.h"
#include "proto/base/text/text.h"

struct reader *reader_open(const char *path, struct err *err)
{
    struct reader *reader = xzalloc(sizeof *reader);
    if (!connection_open(&reader->connection, path, CONNECTION_READER, NULL, err)) {
        reader_close(reader);
        return NULL;
    }
    reader->connection.serving = true;
    return reader;
}

void reader_close(struct reader *reader)
{
    if (reader != NULL) {
        connection_close(&reader->connection);
        free(reader);
    }
}

/* --- rows ----------------------------------------------------------------------------------------------- */

struct rows rows_open(struct reader *reader, const struct query *query, struct err *err)
{
    assert(!sqlite3_stmt_busy(query->statement));
    return (struct rows){.reader = reader, .statement = query->statement, .err = err};
}

void rows_close(struct rows *rows)
{
    sqlite3_reset(rows->statement);
}

struct query rows_query(const struct rows *rows)
{
    return (struct query){
        .connection = &rows->reader->connection, .statement = rows->statement, .failed = rows->failed};
}

bool rows_step(struct rows *rows, struct query *query)
{
    bool found = !rows->failed && query_step(query, rows->err);
    rows->failed = query->failed;
    return found;
}

bool rows_end(struct rows *rows, struct query *query)
{
    rows->failed = !query_read_end(query, rows->err);
    return !rows->failed;
}

static bool next(struct rows *rows, enum table_id table, void *ret_row)
{
    struct query query = rows_query(rows);
    if (!rows_step(rows, &query)) {
        return false;
    }
    query_read_row(&query, table, ret_row);
    return rows_end(rows, &query);
}

#define DEFINE_NEXT(name, type, table)                                                                       \
    bool rows_##name(struct rows *rows, struct type *ret_row)                                                \
    {                                                                                                        \
        return next(rows, TABLE_##table, ret_row);                                                           \
    }
DEFINE_NEXT(event, event_row, events)
DEFINE_NEXT(attempt, attempt_row, attempts)
DEFINE_NEXT(member, member_row, members)
DEFINE_NEXT(rank, rank_row, ranks)
DEFINE_NEXT(window, window_row, windows)
DEFINE_NEXT(token, token_row, tokens)
DEFINE_NEXT(join, join_row, joins)
DEFINE_NEXT(blob, blob_row, blobs)
DEFINE_NEXT(upload, upload_row, uploads)
DEFINE_NEXT(removal, removal_row, removals)
DEFINE_NEXT(limits, limits_row, limits)

bool rows_lost(struct rows *rows, int64_t *ret_key, struct lost_row *ret_row)
{
    struct query query = rows_query(rows);
    if (!rows_step(rows, &query)) {
        return false;
    }
    *ret_key = query_read_number(&query);
    query_read_row(&query, TABLE_lost, ret_row);
    return rows_end(rows, &query);
}

/* --- small queries -------------------------------------------------------------------------------------- */

struct rows reader_token(struct reader *reader, const char *id, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_TOKEN);
    query_bind_text(&query, id);
    return rows_open(reader, &query, err);
}

struct rows reader_tokens(struct reader *reader, const char *after, int64_t limit, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_TOKENS);
    query_bind_text(&query, after);
    query_bind_number(&query, limit);
    return rows_open(reader, &query, err);
}

struct rows reader_join(struct reader *reader, const char *id, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_JOIN);
    query_bind_text(&query, id);
    return rows_open(reader, &query, err);
}

struct rows reader_blob(struct reader *reader, const uint8_t hash[32], struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_BLOB);
    query_bind_digest(&query, hash);
    return rows_open(reader, &query, err);
}

struct rows reader_blob_that_stays(struct reader *reader, const uint8_t hash[32], int64_t created_ms,
                                   const char *owner, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_BLOB_THAT_STAYS);
    query_bind_digest(&query, hash);
    query_bind_number(&query, created_ms);
    query_bind_text(&query, owner);
    return rows_open(reader, &query, err);
}

bool reader_jobs_use(struct reader *reader, const uint8_t hash[32], const int64_t *job_keys, size_t count,
                     bool *ret_use, struct err *err)
{
    *ret_use = false;
    for (size_t i = 0; i < count && !*ret_use; i++) {
        autoquery struct query query = query_begin(&reader->connection, SQL_JOB_USES);
        query_bind_number(&query, job_keys[i]);
        query_bind_digest(&query, hash);
        *ret_use = query_step(&query, err);
        if (query.failed) {
            return false;
        }
    }
    return true;
}

struct rows reader_blob_of_live_job(struct reader *reader, const uint8_t hash[32], struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_BLOB_OF_LIVE_JOB);
    query_bind_digest(&query, hash);
    return rows_open(reader, &query, err);
}

struct rows reader_uploads(struct reader *reader, int64_t after_ms, int64_t limit, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_UPLOADS);
    query_bind_number(&query, after_ms);
    query_bind_number(&query, limit);
    return rows_open(reader, &query, err);
}

struct rows reader_lost(struct reader *reader, int64_t after_key, int64_t limit, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_LOST);
    query_bind_number(&query, after_key);
    query_bind_number(&query, limit);
    return rows_open(reader, &query, err);
}
