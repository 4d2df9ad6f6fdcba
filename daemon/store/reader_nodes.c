/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the queries for where work runs: nodes, their maintenance windows, attempts, their members, ranks and
 * results. It promises that a node's used devices are counted in the same snapshot as the node is read. */
#include <string.h>

#include "daemon/store/query.h"
#include "daemon/store/reader.h"

bool reader_attempts(struct reader *reader, int64_t job_key,
                     bool (*visit)(const struct attempt_row *row, void *closure), void *closure,
                     struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_ATTEMPTS);
    query_bind_number(&query, job_key);
    struct attempt_row attempt;
    while (query_next(&query, TABLE_attempts, &attempt, err) && visit(&attempt, closure)) {
    }
    return !query.failed;
}

bool reader_members(struct reader *reader, uint64_t attempt_id,
                    bool (*visit)(const struct member_row *row, void *closure), void *closure,
                    struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_MEMBERS);
    query_bind_number(&query, (int64_t)attempt_id);
    struct member_row member;
    while (query_next(&query, TABLE_members, &member, err) && visit(&member, closure)) {
    }
    return !query.failed;
}

bool reader_ranks(struct reader *reader, uint64_t attempt_id,
                  bool (*visit)(const struct rank_row *row, void *closure), void *closure, struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_RANKS);
    query_bind_number(&query, (int64_t)attempt_id);
    struct rank_row rank;
    while (query_next(&query, TABLE_ranks, &rank, err) && visit(&rank, closure)) {
    }
    return !query.failed;
}

bool reader_results(struct reader *reader, uint64_t attempt_id, int64_t after_rank, int64_t limit,
                    bool (*visit)(const struct result_row *row, const void *bytes, void *closure),
                    void *closure, struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_RESULTS);
    query_bind_number(&query, (int64_t)attempt_id);
    query_bind_number(&query, after_rank);
    query_bind_number(&query, limit);
    bool goes_on = true;
    while (goes_on && query_step(&query, err)) {
        struct result_row result;
        query_read_row(&query, TABLE_results, &result);
        const void *bytes = query_read_bytes(&query);
        goes_on = query_read_end(&query, err) && visit(&result, bytes, closure);
    }
    return !query.failed;
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

bool reader_nodes(struct reader *reader, const char *name,
                  bool (*visit)(const struct node_row *row, int64_t used_gpus, void *closure), void *closure,
                  struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, name == NULL ? SQL_NODES : SQL_NODE);
    if (name != NULL) {
        query_bind_text(&query, name);
    }
    bool goes_on = true;
    while (goes_on && query_step(&query, err)) {
        struct node_row node;
        query_read_row(&query, TABLE_nodes, &node);
        int64_t used = query_read_number(&query);
        goes_on = query_read_end(&query, err) && visit(&node, used, closure);
    }
    return !query.failed;
}

bool reader_windows(struct reader *reader, bool (*visit)(const struct window_row *row, void *closure),
                    void *closure, struct err *err)
{
    autoquery struct query query = query_begin(&reader->connection, SQL_WINDOWS);
    struct window_row window;
    while (query_next(&query, TABLE_windows, &window, err) && visit(&window, closure)) {
    }
    return !query.failed;
}
