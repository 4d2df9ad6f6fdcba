/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the queries for where work runs: nodes, attempts, their members, ranks and results. It promises that a
 * node's used devices are counted in the same snapshot as the node is read. */
#include "daemon/store/columns.h"
#include "daemon/store/reader.h"

bool reader_attempts(struct reader *reader, int64_t job_key,
                     bool (*visit)(const struct attempt_row *row, void *closure), void *closure,
                     struct err *err)
{
    struct binder to = binder_begin(&reader->connection, SQL_ATTEMPTS);
    bind_int(&to, job_key);
    autoreset sqlite3_stmt *statement = to.statement;
    bool ok, row;
    while ((ok = connection_step(&reader->connection, statement, &row, err)) && row) {
        struct attempt_row attempt;
        if (!columns_attempt(statement, &attempt, err)) {
            return false;
        }
        if (!visit(&attempt, closure)) {
            return true;
        }
    }
    return ok;
}

bool reader_members(struct reader *reader, uint64_t epoch,
                    bool (*visit)(const struct member_row *row, void *closure), void *closure,
                    struct err *err)
{
    struct binder to = binder_begin(&reader->connection, SQL_MEMBERS);
    bind_int(&to, (int64_t)epoch);
    autoreset sqlite3_stmt *statement = to.statement;
    bool ok, row;
    while ((ok = connection_step(&reader->connection, statement, &row, err)) && row) {
        struct member_row member;
        if (!columns_member(statement, &member, err)) {
            return false;
        }
        if (!visit(&member, closure)) {
            return true;
        }
    }
    return ok;
}

bool reader_ranks(struct reader *reader, uint64_t epoch,
                  bool (*visit)(const struct rank_row *row, void *closure), void *closure, struct err *err)
{
    struct binder to = binder_begin(&reader->connection, SQL_RANKS);
    bind_int(&to, (int64_t)epoch);
    autoreset sqlite3_stmt *statement = to.statement;
    bool ok, row;
    while ((ok = connection_step(&reader->connection, statement, &row, err)) && row) {
        struct rank_row rank;
        if (!columns_rank(statement, &rank, err)) {
            return false;
        }
        if (!visit(&rank, closure)) {
            return true;
        }
    }
    return ok;
}

bool reader_results(struct reader *reader, uint64_t epoch, int64_t after_rank, int64_t limit,
                    bool (*visit)(const struct result_row *row, const void *bytes, void *closure),
                    void *closure, struct err *err)
{
    struct binder to = binder_begin(&reader->connection, SQL_RESULTS);
    bind_int(&to, (int64_t)epoch);
    bind_int(&to, after_rank);
    bind_int(&to, limit);
    autoreset sqlite3_stmt *statement = to.statement;
    bool ok, row;
    while ((ok = connection_step(&reader->connection, statement, &row, err)) && row) {
        struct result_row result;
        const void *bytes;
        if (!columns_result(statement, &result, &bytes, err)) {
            return false;
        }
        if (!visit(&result, bytes, closure)) {
            return true;
        }
    }
    return ok;
}

bool reader_epoch(struct reader *reader, uint64_t epoch, bool *ret_found, struct epoch_record *ret_record,
                  struct err *err)
{
    struct binder to = binder_begin(&reader->connection, SQL_EPOCH);
    bind_int(&to, (int64_t)epoch);
    autoreset sqlite3_stmt *statement = to.statement;
    return connection_step(&reader->connection, statement, ret_found, err) &&
           (!*ret_found || columns_epoch(statement, ret_record, err));
}

bool reader_nodes(struct reader *reader, const char *name,
                  bool (*visit)(const struct node_row *row, int64_t used_gpus, void *closure), void *closure,
                  struct err *err)
{
    struct binder to = binder_begin(&reader->connection, name == NULL ? SQL_NODES : SQL_NODE);
    if (name != NULL) {
        bind_text(&to, name);
    }
    autoreset sqlite3_stmt *statement = to.statement;
    bool ok, row;
    while ((ok = connection_step(&reader->connection, statement, &row, err)) && row) {
        struct node_row node;
        int64_t used;
        if (!columns_node_with_use(statement, &node, &used, err)) {
            return false;
        }
        if (!visit(&node, used, closure)) {
            return true;
        }
    }
    return ok;
}
