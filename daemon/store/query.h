/* SPDX-License-Identifier: Apache-2.0 */
/* A statement of sql.h that runs: its parameters are bound, then its rows are read, column by column. Bound
 * values must stay until the query ends, and values that are read are borrowed until the next row. */
#ifndef STORE_QUERY_H
#define STORE_QUERY_H

#include "daemon/store/database/connection.h"
#include "daemon/store/database/tables.h"

struct query {
    struct connection *connection;
    sqlite3_stmt *statement;
    int parameter, column; /* the last one bound, the next one read */
    const char *unknown;   /* the first word of the row that no list of proto/states.h knows */
    bool failed;
    uint8_t moments[sizeof(struct member_timing) + sizeof(struct member_use)]; /* that are bound */
    size_t moments_used;
};

struct query query_begin(struct connection *connection, enum sql sql);
/* The statement is back at its start. */
static inline void query_end(struct query *query)
{
    sqlite3_reset(query->statement);
}
#define autoquery __attribute__((cleanup(query_end)))

/* Each binds the next parameter. */
void query_bind_number(struct query *query, int64_t value);
void query_bind_text(struct query *query, const char *text); /* NULL is NULL */
void query_bind_digest(struct query *query, const uint8_t digest[32]);
/* Binds the columns of the row that have one of the roles, each to the parameter with the number of its place
 * in its list. The next parameter is the one behind the last column. */
void query_bind_row(struct query *query, enum table_id table, const void *row, unsigned roles);

/* The same for the row of that number, from 0, of several. */
void query_bind_next_row(struct query *query, enum table_id table, int number, const void *row,
                         unsigned roles);

/* Runs a statement that has no rows; *ret_changed, which may be NULL, is how many it has changed. */
bool query_run(struct query *query, int *ret_changed, struct err *err);

/* Goes to the next row; false: there is none, or the query has failed. */
bool query_step(struct query *query, struct err *err);

/* Each reads the next columns of the row: all of a table, in the order of its list, or one. */
void query_read_row(struct query *query, enum table_id table, void *ret_row);
int64_t query_read_number(struct query *query);
const char *query_read_text(struct query *query); /* NULL for NULL */
const char *query_read_long_text(struct query *query, size_t *ret_length);
const void *query_read_bytes(struct query *query);                   /* NULL for NULL */
const void *query_read_counted(struct query *query, int64_t length); /* the same; the row says how many */
void query_read_digest(struct query *query, uint8_t ret_digest[32]);
unsigned query_read_word(struct query *query, enum column_type type);

/* All columns of the row were read. False, and the query has failed: it holds something that this program
 * does not know. */
bool query_read_end(struct query *query, struct err *err);

/* The next row of a statement that has the columns of one table alone. */
bool query_next(struct query *query, enum table_id table, void *ret_row, struct err *err);

#endif
