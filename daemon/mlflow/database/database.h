/* SPDX-License-Identifier: Apache-2.0 */
/* The connection of a tracking handle to its database: transactions, statements, and the functions that run
 * them for a call. Once the call has failed they do nothing, and an error of SQLite fails it. */
#ifndef MLFLOW_DATABASE_H
#define MLFLOW_DATABASE_H

#include <sqlite3.h>

#include "daemon/mlflow/call/call.h"
#include "daemon/mlflow/database/statements.h"
#include "proto/base/err.h"

struct tracking {
    sqlite3 *db;
    sqlite3_stmt *statements[QUERY_COUNT]; /* NULL until first used */
    int synced_changes;                    /* SQLite's count of changed rows at the last sync of the log */
    int64_t search_ms;                     /* a search may take so long */
    const struct tracking_rights *rights;  /* of the call that is served; NULL: all */
    int64_t stop_ms; /* CLOCK_BOOTTIME: interrupts a search that still runs then; 0: none is running */
};

/* Opens the file, or makes it. The caller calls database_close in any case. */
bool database_open(struct tracking *tracking, const char *path, struct err *err);
/* All commits are on disk when this returns. */
bool database_sync(struct tracking *tracking, struct err *err);
/* Brings what the log has into the database if the log is longer than LIMIT_TRACKING_LOG_BYTES, so that the
 * next change begins it anew. */
void database_shorten_log(struct tracking *tracking);
void database_close(struct tracking *tracking);

/* Begins the transaction of a call. */
void database_begin(struct call *call, bool writes);
/* Commits it, or rolls it back if the call has failed; false: it has failed. */
bool database_end(struct call *call);

/* Resets a running statement when the scope ends. */
static inline void cleanup_query(sqlite3_stmt **statement)
{
    sqlite3_reset(*statement);
}
#define autoquery __attribute__((cleanup(cleanup_query)))

/* A statement with its parameters bound, one per letter of types: 'i' int64_t, 'b' int, 'd' double, 't' const
 * char * (NULL is NULL). Texts must stay valid until the statement is reset. */
sqlite3_stmt *database_query(struct call *call, enum query query, const char *types, ...);
/* Goes to the next row; false: there are no more rows. */
bool database_next(struct call *call, sqlite3_stmt *statement);

/* Whether half of the time of a search is over: its page ends here, and the token leads to the rest. */
bool database_is_late(const struct call *call);

/* These run a statement to its end. Types as above. */

/* Runs a statement without result rows; returns how many rows it has changed. */
int database_run(struct call *call, enum query query, const char *types, ...);
/* The number in the first row; absent: there is no row. */
int64_t database_int(struct call *call, int64_t absent, enum query query, const char *types, ...);
/* The text in the first row, which the caller frees; NULL: there is no row. */
char *database_text(struct call *call, enum query query, const char *types, ...);
/* Appends the text in the first row, JSON, to the answer. */
void database_append(struct call *call, enum query query, const char *types, ...);

/* Answers {"member": ...} with the JSON that the query has for the key. */
void database_answer(struct call *call, const char *member, enum query query, int64_t key);

/* Fails the call with the last error of SQLite. */
void database_fail(struct call *call);

/* The text of a column, borrowed until the next step. */
const char *column_text(sqlite3_stmt *statement, int column);

#endif
