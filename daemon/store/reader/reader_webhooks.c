/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for webhooks and their deliveries. */
#include "daemon/store/query.h"
#include "daemon/store/reader/reader.h"

struct rows reader_webhook(struct reader *reader, const char *id, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_WEBHOOK);
    query_bind_text(&query, id);
    return rows_open(reader, &query, err);
}

struct rows reader_webhooks(struct reader *reader, const char *owner, const char *after, int64_t limit,
                            struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_WEBHOOKS);
    query_bind_text(&query, owner);
    query_bind_text(&query, after);
    query_bind_number(&query, limit);
    return rows_open(reader, &query, err);
}

bool rows_webhook(struct rows *rows, struct webhook_row *ret_row)
{
    struct query query = rows_query(rows);
    if (!rows_step(rows, &query)) {
        return false;
    }
    query_read_row(&query, TABLE_webhooks, ret_row);
    return rows_end(rows, &query);
}

struct rows reader_delivery(struct reader *reader, int64_t key, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_DELIVERY);
    query_bind_number(&query, key);
    return rows_open(reader, &query, err);
}

struct rows reader_deliveries(struct reader *reader, const char *webhook, int64_t before, const char *state,
                              int64_t limit, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_DELIVERIES);
    query_bind_text(&query, webhook);
    query_bind_number(&query, before);
    query_bind_text(&query, state);
    query_bind_number(&query, limit);
    return rows_open(reader, &query, err);
}

bool rows_delivery(struct rows *rows, struct delivery_record *ret_record)
{
    struct query query = rows_query(rows);
    if (!rows_step(rows, &query)) {
        return false;
    }
    query_read_row(&query, TABLE_deliveries, &ret_record->row);
    ret_record->job_id = query_read_text(&query);
    ret_record->kind = query_read_text(&query);
    return rows_end(rows, &query);
}

struct rows reader_next_deliveries(struct reader *reader, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_NEXT_DELIVERIES);
    return rows_open(reader, &query, err);
}

bool rows_next_delivery(struct rows *rows, struct delivery_row *ret_row, struct webhook_row *ret_webhook)
{
    struct query query = rows_query(rows);
    if (!rows_step(rows, &query)) {
        return false;
    }
    query_read_row(&query, TABLE_deliveries, ret_row);
    query_read_row(&query, TABLE_webhooks, ret_webhook);
    return rows_end(rows, &query);
}

bool reader_old_deliveries(struct reader *reader, int64_t created_ms, bool *ret_found, struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_OLD_DELIVERIES);
    query_bind_number(&query, created_ms);
    *ret_found = query_step(&query, err) && query_read_number(&query) != 0;
    return !query.failed;
}
