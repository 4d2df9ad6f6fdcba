/* SPDX-License-Identifier: Apache-2.0 */
/* The database connection of a tracking handle: its statements and the functions that run them. */
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
    int synced_changes; /* SQLite's count of changed rows at the last sync of the log */
    int64_t stop_ms;    /* CLOCK_BOOTTIME: interrupts a search that still runs then; 0: none is running */
};

/* Opens the file, or makes it. The caller calls database_close in any case. */
bool database_open(struct tracking *tracking, const char *path, struct err *err);
/* All commits are on disk when this returns. */
bool database_sync(struct tracking *tracking, struct err *err);
void database_close(struct tracking *tracking);

/* Resets a running statement when the scope ends. */
static inline void cleanup_query(sqlite3_stmt **statement)
{
    sqlite3_reset(*statement);
}
#define autoquery __attribute__((cleanup(cleanup_query)))

/* A statement with its parameters bound, one per letter of types: 'i' int64_t, 'b' int, 'd' double, 't' const
 * char * (NULL is NULL). Texts must stay valid until the statement is reset. */
sqlite3_stmt *database_query(struct tracking *tracking, enum query query, const char *types, ...);

/* Goes to the next row; *ret_row false: there are no more rows. */
bool database_step(struct tracking *tracking, sqlite3_stmt *statement, bool *ret_row,
                   struct tracking_error *error);

/* Runs a statement without result rows. types as above. */
bool database_run(struct tracking *tracking, struct tracking_error *error, enum query query,
                  const char *types, ...);

/* Turns SQLite's error into ours; returns false. */
bool database_fail(struct tracking *tracking, struct tracking_error *error);

/* The text of a column, borrowed until the next step. */
const char *column_text(sqlite3_stmt *statement, int column);

#endif
