/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the rows that the core needs at the start: history, limits and usage, all nodes, windows, live
 * jobs in order of key, their dependencies, arrays, newest attempts, and the members of those. It touches
 * no finished jobs, however many there are. */
#include "daemon/store/store.h"

#include "daemon/store/handle.h"
#include "daemon/store/query.h"

#define DEFINE_LOAD(table, row, statement)                                                                   \
    static bool load_##table(struct store *store, const struct store_visitor *visitor, struct err *err)      \
    {                                                                                                        \
        autoquery struct query query = query_begin(&store->connection, statement);                           \
        struct row##_row its;                                                                                \
        while (query_next(&query, TABLE_##table, &its, err)) {                                               \
            if (!visitor->row(&its, visitor->closure, err)) {                                                \
                return false;                                                                                \
            }                                                                                                \
        }                                                                                                    \
        return !query.failed;                                                                                \
    }
DEFINE_LOAD(history, history, SQL_LOAD_HISTORY)
DEFINE_LOAD(limits, limits, SQL_LOAD_LIMITS)
DEFINE_LOAD(usage, usage, SQL_LOAD_USAGE)
DEFINE_LOAD(nodes, node, SQL_LOAD_NODES)
DEFINE_LOAD(windows, window, SQL_LOAD_WINDOWS)
DEFINE_LOAD(webhooks, webhook, SQL_LOAD_WEBHOOKS)
DEFINE_LOAD(deliveries, delivery, SQL_LOAD_DELIVERIES)
DEFINE_LOAD(dependencies, dependency, SQL_LOAD_DEPENDENCIES)
DEFINE_LOAD(arrays, array, SQL_LOAD_ARRAYS)
DEFINE_LOAD(attempts, attempt, SQL_LOAD_ATTEMPTS)
DEFINE_LOAD(members, member, SQL_LOAD_MEMBERS)

/* With their specs, the times of their last events, and when the attempts of those that are kept began to be
 * so. */
static bool load_jobs(struct store *store, const struct store_visitor *visitor, struct err *err)
{
    autoquery struct query query = query_begin(&store->connection, SQL_LOAD_JOBS);
    while (query_step(&query, err)) {
        struct job_row job = {0};
        query_read_row(&query, TABLE_jobs, &job);
        job.birth.key = job.life.key;
        job.birth.spec = query_read_long_text(&query, &job.birth.spec_length);
        job.life.event_ms = query_read_number(&query);
        job.life.kept_since_ms = query_read_number(&query);
        if (!query_read_end(&query, err) || !visitor->job(&job.birth, &job.life, visitor->closure, err)) {
            return false;
        }
    }
    return !query.failed;
}

bool store_load_live(struct store *store, const struct store_visitor *visitor, struct err *err)
{
    return load_history(store, visitor, err) && load_limits(store, visitor, err) &&
           load_usage(store, visitor, err) && load_nodes(store, visitor, err) &&
           load_windows(store, visitor, err) && load_webhooks(store, visitor, err) &&
           load_deliveries(store, visitor, err) && load_jobs(store, visitor, err) &&
           load_dependencies(store, visitor, err) && load_arrays(store, visitor, err) &&
           load_attempts(store, visitor, err) && load_members(store, visitor, err);
}
