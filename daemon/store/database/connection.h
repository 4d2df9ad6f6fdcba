/* SPDX-License-Identifier: Apache-2.0 */
/* One SQLite connection with its prepared statements, which query.h runs. */
#ifndef STORE_CONNECTION_H
#define STORE_CONNECTION_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/database/pages.h"
#include "daemon/store/database/sql.h"
#include "proto/base/err.h"

enum connection_kind {
    CONNECTION_WRITER,
    CONNECTION_READER,
    CONNECTION_CHECKER, /* a reader with the statements of checks.h */
    CONNECTION_COPIER,  /* a reader without statements: of any database */
};

struct connection {
    sqlite3 *db;
    struct pages *pages; /* below it */
    enum connection_kind kind;
    bool serving;                        /* its owner has opened all: a failure from now on fails a request */
    bool failed;                         /* something did */
    sqlite3_stmt *statements[SQL_COUNT]; /* those of its kind */
};

/* Opens the file; a writer refuses a database that schema_check refuses, else keeps a copy of an older one
 * and migrates it, and gives up the reserve file when the disk is full (borrowed; NULL: none). Closed by
 * connection_close in any case, which moves nothing out of the WAL. */
bool connection_open(struct connection *connection, const char *path, enum connection_kind kind,
                     struct reserve_file *reserve_file, struct err *err);
void connection_close(struct connection *connection);

/* Runs one statement without parameters and rows that is not of sql.h: a setting. */
bool connection_set(struct connection *connection, const char *sql, struct err *err);

/* Turns SQLite's error into ours. While serving, an error of the disk means for a writer that the outcome is
 * not known. */
bool connection_fail(struct connection *connection, struct err *err);

/* ERR_DAMAGED with the remedy. */
bool connection_damaged(struct err *err, const char *what);

/* A text or bytes of the row, borrowed until the next step; NULL is NULL. Out of memory ends the program. */
const char *connection_text(sqlite3_stmt *statement, int column);
const void *connection_blob(sqlite3_stmt *statement, int column);

#endif
