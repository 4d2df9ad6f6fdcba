/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the core learns at the start: what the scheduler has learned, limits and use, all nodes, windows,
 * live jobs in order of key, what they follow, how far arrays are, their newest attempts, the members of
 * those. It promises to touch nothing of the history, however long that is. */
#include "daemon/store/store.h"

#include "daemon/store/columns.h"
#include "daemon/store/handle.h"

static bool load_nodes(struct store *store, const struct store_visitor *visitor, struct err *err)
{
    autoreset sqlite3_stmt *statement = store->connection.statements[SQL_LOAD_NODES];
    bool ok, row;
    while ((ok = connection_step(&store->connection, statement, &row, err)) && row) {
        struct node_row node;
        if (!columns_node(statement, &node, err) || !visitor->node(&node, visitor->closure, err)) {
            return false;
        }
    }
    return ok;
}

static bool load_windows(struct store *store, const struct store_visitor *visitor, struct err *err)
{
    autoreset sqlite3_stmt *statement = store->connection.statements[SQL_LOAD_WINDOWS];
    bool ok, row;
    while ((ok = connection_step(&store->connection, statement, &row, err)) && row) {
        struct window_row window;
        if (!columns_window(statement, &window, err) || !visitor->window(&window, visitor->closure, err)) {
            return false;
        }
    }
    return ok;
}

static bool load_jobs(struct store *store, const struct store_visitor *visitor, struct err *err)
{
    autoreset sqlite3_stmt *statement = store->connection.statements[SQL_LOAD_JOBS];
    bool ok, row;
    while ((ok = connection_step(&store->connection, statement, &row, err)) && row) {
        struct job_record job;
        if (!columns_live_job(statement, &job, err) ||
            !visitor->job(&job.birth, &job.life, visitor->closure, err)) {
            return false;
        }
    }
    return ok;
}

static bool load_arrays(struct store *store, const struct store_visitor *visitor, struct err *err)
{
    autoreset sqlite3_stmt *statement = store->connection.statements[SQL_LOAD_ARRAYS];
    bool ok, row;
    while ((ok = connection_step(&store->connection, statement, &row, err)) && row) {
        struct array_row array;
        if (!columns_array(statement, &array, err) || !visitor->array(&array, visitor->closure, err)) {
            return false;
        }
    }
    return ok;
}

static bool load_dependencies(struct store *store, const struct store_visitor *visitor, struct err *err)
{
    autoreset sqlite3_stmt *statement = store->connection.statements[SQL_LOAD_DEPENDENCIES];
    bool ok, row;
    while ((ok = connection_step(&store->connection, statement, &row, err)) && row) {
        struct dependency_row dependency;
        if (!columns_dependency(statement, &dependency, err) ||
            !visitor->dependency(&dependency, visitor->closure, err)) {
            return false;
        }
    }
    return ok;
}

static bool load_attempts(struct store *store, const struct store_visitor *visitor, struct err *err)
{
    autoreset sqlite3_stmt *statement = store->connection.statements[SQL_LOAD_ATTEMPTS];
    bool ok, row;
    while ((ok = connection_step(&store->connection, statement, &row, err)) && row) {
        struct attempt_row attempt;
        if (!columns_attempt(statement, &attempt, err) ||
            !visitor->attempt(&attempt, visitor->closure, err)) {
            return false;
        }
    }
    return ok;
}

static bool load_members(struct store *store, const struct store_visitor *visitor, struct err *err)
{
    autoreset sqlite3_stmt *statement = store->connection.statements[SQL_LOAD_MEMBERS];
    bool ok, row;
    while ((ok = connection_step(&store->connection, statement, &row, err)) && row) {
        struct member_row member;
        if (!columns_member(statement, &member, err) || !visitor->member(&member, visitor->closure, err)) {
            return false;
        }
    }
    return ok;
}

static bool load_history(struct store *store, const struct store_visitor *visitor, struct err *err)
{
    autoreset sqlite3_stmt *statement = store->connection.statements[SQL_LOAD_HISTORY];
    bool ok, row;
    while ((ok = connection_step(&store->connection, statement, &row, err)) && row) {
        struct history_row history;
        if (!columns_history(statement, &history, err) ||
            !visitor->history(&history, visitor->closure, err)) {
            return false;
        }
    }
    return ok;
}

static bool load_usage(struct store *store, const struct store_visitor *visitor, struct err *err)
{
    autoreset sqlite3_stmt *statement = store->connection.statements[SQL_LOAD_USAGE];
    bool ok, row;
    while ((ok = connection_step(&store->connection, statement, &row, err)) && row) {
        struct usage_row usage;
        if (!columns_usage(statement, &usage, err) || !visitor->usage(&usage, visitor->closure, err)) {
            return false;
        }
    }
    return ok;
}

static bool load_limits(struct store *store, const struct store_visitor *visitor, struct err *err)
{
    autoreset sqlite3_stmt *statement = store->connection.statements[SQL_LOAD_LIMITS];
    bool ok, row;
    while ((ok = connection_step(&store->connection, statement, &row, err)) && row) {
        struct limits_row limits;
        if (!columns_limits(statement, &limits, err) || !visitor->limits(&limits, visitor->closure, err)) {
            return false;
        }
    }
    return ok;
}

bool store_load_live(struct store *store, const struct store_visitor *visitor, struct err *err)
{
    return load_history(store, visitor, err) && load_limits(store, visitor, err) &&
           load_usage(store, visitor, err) && load_nodes(store, visitor, err) &&
           load_windows(store, visitor, err) && load_jobs(store, visitor, err) &&
           load_dependencies(store, visitor, err) && load_arrays(store, visitor, err) &&
           load_attempts(store, visitor, err) && load_members(store, visitor, err);
}
