/* SPDX-License-Identifier: Apache-2.0 */
/* The connection of a tracking handle: its statements, and the way to run them. */
#ifndef MLFLOW_DATABASE_H
#define MLFLOW_DATABASE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/mlflow/queries.h"
#include "daemon/mlflow/tracking.h"

struct tracking {
    sqlite3 *db;
    sqlite3_stmt *statements[QUERY_COUNT];
    int synced_changes; /* rows that SQLite counts as changed when the log was synced last */
    int64_t stop_ms;    /* on CLOCK_BOOTTIME: a search still running then is broken off; 0: none is running */
};

/* Opens the file, making it. Closed by database_close in any case. */
bool database_open(struct tracking *tracking, const char *path, struct err *err);
/* All that was committed is on disk when this returns. */
bool database_sync(struct tracking *tracking, struct err *err);
void database_close(struct tracking *tracking);

/* A statement on its way, back at its start when the scope ends. */
static inline void cleanup_query(sqlite3_stmt **statement)
{
    sqlite3_reset(*statement);
}
#define autoquery __attribute__((cleanup(cleanup_query)))

/* A statement with its parameters bound, one a letter of types: 'i' int64_t, 'b' int, 'd' double, 't' const
 * char * (NULL is NULL). Texts must stay until the statement is reset. */
sqlite3_stmt *database_query(struct tracking *tracking, enum query query, const char *types, ...);

/* Goes to the next row; *ret_row false: there is none. */
bool database_step(struct tracking *tracking, sqlite3_stmt *statement, bool *ret_row,
                   struct tracking_error *error);

/* Runs a statement that has no rows. types as above. */
bool database_run(struct tracking *tracking, struct tracking_error *error, enum query query,
                  const char *types, ...);

/* Turns SQLite's error into ours; returns false. */
bool database_fail(struct tracking *tracking, struct tracking_error *error);

/* The text of a column, borrowed until the next step. */
const char *column_text(sqlite3_stmt *statement, int column);

#endif
