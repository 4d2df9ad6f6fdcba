/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps rows until there are enough for one statement. Everything that reads or changes rows in the open
 * transaction flushes first, so that nothing but the cost tells the rows from such that were inserted at
 * once.
 */
#include "daemon/store/gather.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/store/query.h"
#include "proto/base/text/text.h"

static const struct pile {
    enum table_id table;
    enum sql one, several;
    unsigned roles;
    size_t size; /* of a row */
} piles[GATHER_COUNT] = {
    [GATHER_JOB] = {TABLE_jobs, SQL_INSERT_JOB, SQL_INSERT_JOBS, ROLE_ALL & ~ROLE_TASK,
                    sizeof(struct job_row)},
    [GATHER_SPEC] = {TABLE_specs, SQL_INSERT_SPEC, SQL_INSERT_SPECS, ROLE_ALL, sizeof(struct spec_row)},
    [GATHER_EVENT] = {TABLE_events, SQL_INSERT_EVENT, SQL_INSERT_EVENTS, ROLE_ALL, sizeof(struct event_row)},
    [GATHER_REPLY] = {TABLE_replies, SQL_INSERT_REPLY, SQL_INSERT_REPLIES, ROLE_ALL,
                      sizeof(struct reply_row)},
    [GATHER_AUDIT] = {TABLE_audit, SQL_INSERT_AUDIT, SQL_INSERT_AUDITS, ROLE_ALL, sizeof(struct audit_row)},
};

static bool insert(struct connection *connection, const struct pile *pile, enum sql sql,
                   const union gathered *rows, int count, struct err *err)
{
    int changed;
    struct query query = query_begin(connection, sql);
    for (int i = 0; i < count; i++) {
        query_bind_next_row(&query, pile->table, i, &rows[i], pile->roles);
    }
    return query_run(&query, &changed, err) &&
           (changed == count || err_set(err, ERR_INTERNAL, "a new row is not in the database"));
}

static bool insert_all(const struct gather *gather, struct connection *connection, enum gather_kind kind,
                       struct err *err)
{
    const struct pile *pile = &piles[kind];
    const union gathered *rows = gather->rows[kind];
    if (gather->counts[kind] == STORE_INSERT_ROWS) {
        return insert(connection, pile, pile->several, rows, STORE_INSERT_ROWS, err);
    }
    for (int i = 0; i < gather->counts[kind]; i++) {
        if (!insert(connection, pile, pile->one, &rows[i], 1, err)) {
            return false;
        }
    }
    return true;
}

static void drop(struct gather *gather, enum gather_kind kind)
{
    for (int i = 0; kind == GATHER_REPLY && i < gather->counts[kind]; i++) {
        free((char *)(uintptr_t)gather->rows[kind][i].reply.answer);
    }
    gather->counts[kind] = 0;
}

static bool flush_kind(struct gather *gather, struct connection *connection, enum gather_kind kind,
                       struct err *err)
{
    bool good = insert_all(gather, connection, kind, err);
    drop(gather, kind);
    return good;
}

bool gather_add(struct gather *gather, struct connection *connection, enum gather_kind kind, const void *row,
                struct err *err)
{
    union gathered *kept = &gather->rows[kind][gather->counts[kind]++];
    memcpy(kept, row, piles[kind].size);
    if (kind == GATHER_REPLY && kept->reply.answer != NULL) { /* its text becomes the next answer */
        kept->reply.answer = xstrndup(kept->reply.answer, kept->reply.answer_length);
    }
    return gather->counts[kind] < STORE_INSERT_ROWS || flush_kind(gather, connection, kind, err);
}

bool gather_flush(struct gather *gather, struct connection *connection, struct err *err)
{
    for (int kind = 0; kind < GATHER_COUNT; kind++) {
        if (gather->counts[kind] > 0 && !flush_kind(gather, connection, (enum gather_kind)kind, err)) {
            return false;
        }
    }
    return true;
}

void gather_finish(struct gather *gather)
{
    for (int kind = 0; kind < GATHER_COUNT; kind++) {
        drop(gather, (enum gather_kind)kind);
    }
}
