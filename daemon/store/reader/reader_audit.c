/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for the audit. */
#include "daemon/store/query.h"
#include "daemon/store/reader/reader.h"
#include "proto/limits_controller.h"

struct rows reader_audit(struct reader *reader, const struct audit_filter *filter, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_AUDIT);
    query_bind_number(&query, filter->before_seq);
    query_bind_number(&query, LIMIT_AUDIT_SCAN);
    query_bind_text(&query, filter->owner);
    query_bind_text(&query, filter->path);
    query_bind_number(&query, filter->limit);
    return rows_open(reader, &query, err);
}

bool rows_audit(struct rows *rows, struct audit_row *ret_row)
{
    struct query query = rows_query(rows);
    if (!rows_step(rows, &query)) {
        return false;
    }
    query_read_row(&query, TABLE_audit, ret_row);
    return rows_end(rows, &query);
}

struct audit_view store_audit_view(const struct audit_row *row)
{
    return (struct audit_view){.seq = row->seq,
                               .at_ms = row->at_ms,
                               .owner = row->owner,
                               .role = row->role,
                               .token = row->token,
                               .address = row->address,
                               .method = row->method,
                               .path = row->path,
                               .subject = row->subject,
                               .status = row->status,
                               .code = row->code,
                               .detail = row->detail};
}

bool reader_audit_ends(struct reader *reader, int64_t *ret_last, int64_t *ret_first, struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_AUDIT_ENDS);
    if (!query_step(&query, err)) {
        return false;
    }
    *ret_last = query_read_number(&query);
    *ret_first = query_read_number(&query);
    return query_read_end(&query, err);
}

bool reader_old_audit(struct reader *reader, int64_t at_ms, int64_t most, bool *ret_found, struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_OLD_AUDIT);
    query_bind_number(&query, at_ms);
    query_bind_number(&query, most);
    *ret_found = query_step(&query, err) && query_read_number(&query) != 0;
    return !query.failed;
}
