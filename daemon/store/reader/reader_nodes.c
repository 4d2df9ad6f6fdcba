/* SPDX-License-Identifier: Apache-2.0 */
/* Queries where work runs: nodes, their maintenance windows, attempts, and members, ranks and results of
 * attempts. The used devices of a node are counted in the snapshot in which the node is read. */
#include <string.h>

#include "daemon/store/query.h"
#include "daemon/store/reader/reader.h"

struct rows reader_attempts(struct reader *reader, int64_t job_key, int64_t before, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_ATTEMPTS);
    query_bind_number(&query, job_key);
    query_bind_number(&query, before);
    return rows_open(reader, &query, err);
}

struct rows reader_members(struct reader *reader, uint64_t attempt_id, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_MEMBERS);
    query_bind_number(&query, (int64_t)attempt_id);
    return rows_open(reader, &query, err);
}

struct rows reader_on_node(struct reader *reader, int64_t job_key, const char *node, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_ON_NODE);
    query_bind_text(&query, node);
    query_bind_number(&query, job_key);
    return rows_open(reader, &query, err);
}

bool rows_on_node(struct rows *rows, struct attempt_row *ret_attempt, struct member_row *ret_member)
{
    struct query query = rows_query(rows);
    if (!rows_step(rows, &query)) {
        return false;
    }
    query_read_row(&query, TABLE_attempts, ret_attempt);
    query_read_row(&query, TABLE_members, ret_member);
    return rows_end(rows, &query);
}

struct rows reader_ranks(struct reader *reader, uint64_t attempt_id, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_RANKS);
    query_bind_number(&query, (int64_t)attempt_id);
    return rows_open(reader, &query, err);
}

struct rows reader_results(struct reader *reader, uint64_t attempt_id, int64_t after_rank, int64_t limit,
                           struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_RESULTS);
    query_bind_number(&query, (int64_t)attempt_id);
    query_bind_number(&query, after_rank);
    query_bind_number(&query, limit);
    return rows_open(reader, &query, err);
}

bool reader_attempt_record(struct reader *reader, uint64_t attempt_id, bool *ret_found,
                           struct attempt_record *ret_record, struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_ATTEMPT_ID);
    query_bind_number(&query, (int64_t)attempt_id);
    *ret_found = query_step(&query, err);
    if (!*ret_found) {
        return !query.failed;
    }
    const char *id = query_read_text(&query);
    size_t length = strlen(id);
    if (length >= sizeof ret_record->job_id) {
        return err_set(err, ERR_INTERNAL, "the database holds the job id \"%s\", which is too long", id);
    }
    memcpy(ret_record->job_id, id, length + 1);
    ret_record->job_key = query_read_number(&query);
    ret_record->number = query_read_number(&query);
    ret_record->state = (enum attempt_state)query_read_word(&query, COLUMN_attempt_state);
    return query_read_end(&query, err);
}

struct rows reader_node(struct reader *reader, const char *name, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_NODE);
    query_bind_text(&query, name);
    return rows_open(reader, &query, err);
}

struct rows reader_nodes(struct reader *reader, const char *after, int64_t limit, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_NODES);
    query_bind_text(&query, after);
    query_bind_number(&query, limit);
    return rows_open(reader, &query, err);
}

struct rows reader_nodes_from(struct reader *reader, const char *name, bool with_it, int64_t limit,
                              struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_NODES_FROM);
    query_bind_text(&query, name);
    query_bind_number(&query, with_it);
    query_bind_number(&query, limit);
    return rows_open(reader, &query, err);
}

char *reader_node_gpus(struct reader *reader, const char *name)
{
    struct err err;
    autoquery struct query query = query_begin(&reader->connection, SQL_NODE_GPUS);
    query_bind_text(&query, name);
    return query_step(&query, &err) ? xstrdup(query_read_text(&query)) : NULL;
}

struct rows reader_allocations(struct reader *reader, int64_t job_key, int64_t node_rank, int64_t limit,
                               struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_ALLOCATIONS);
    query_bind_number(&query, job_key);
    query_bind_number(&query, node_rank);
    query_bind_number(&query, limit);
    return rows_open(reader, &query, err);
}

struct rows reader_windows(struct reader *reader, struct err *err)
{
    struct query query = query_begin(&reader->connection, SQL_WINDOWS);
    return rows_open(reader, &query, err);
}

bool rows_result(struct rows *rows, struct result_row *ret_row, const void **ret_bytes)
{
    struct query query = rows_query(rows);
    if (!rows_step(rows, &query)) {
        return false;
    }
    query_read_row(&query, TABLE_results, ret_row);
    *ret_bytes = query_read_counted(&query, ret_row->size);
    return rows_end(rows, &query);
}

bool rows_node(struct rows *rows, struct node_row *ret_row, struct node_used *ret_used)
{
    struct query query = rows_query(rows);
    if (!rows_step(rows, &query)) {
        return false;
    }
    query_read_row(&query, TABLE_nodes, ret_row);
    ret_used->gpus = query_read_number(&query);
    ret_used->millicpus = query_read_number(&query);
    ret_used->memory_bytes = query_read_number(&query);
    return rows_end(rows, &query);
}

bool rows_allocation(struct rows *rows, struct allocation *ret_allocation)
{
    struct query query = rows_query(rows);
    if (!rows_step(rows, &query)) {
        return false;
    }
    ret_allocation->job_key = query_read_number(&query);
    ret_allocation->node_rank = query_read_number(&query);
    ret_allocation->job_id = query_read_text(&query);
    ret_allocation->job_name = query_read_text(&query);
    ret_allocation->owner = query_read_text(&query);
    ret_allocation->project = query_read_text(&query);
    ret_allocation->node = query_read_text(&query);
    ret_allocation->devices = query_read_text(&query);
    ret_allocation->gpus = query_read_number(&query);
    ret_allocation->first_rank = query_read_number(&query);
    ret_allocation->local_ranks = query_read_number(&query);
    ret_allocation->since_ms = query_read_number(&query);
    return rows_end(rows, &query);
}
