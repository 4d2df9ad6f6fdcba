/* SPDX-License-Identifier: Apache-2.0 */
/* bench-read DATABASE: the least that a start has to do. Opens the database of a controller that does not
 * run, with what its log has, and reads the rows of jobs, attempts, members and nodes by plain SQLite. Prints
 * how many rows there were. */
#include <stdio.h>
#include <stdlib.h>

#include <sqlite3.h>

static void must(sqlite3 *db, int good)
{
    if (!good) {
        fprintf(stderr, "bench-read: %s\n", sqlite3_errmsg(db));
        exit(EXIT_FAILURE);
    }
}

/* Texts are taken as they are; nothing is kept. */
static void read_row(sqlite3_stmt *statement)
{
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        switch (sqlite3_column_type(statement, i)) {
        case SQLITE_INTEGER:
            sqlite3_column_int64(statement, i);
            break;
        case SQLITE_NULL:
            break;
        default:
            sqlite3_column_text(statement, i);
        }
    }
}

static long read_table(sqlite3 *db, const char *query)
{
    sqlite3_stmt *statement = NULL;
    long count = 0;
    int code;
    must(db, sqlite3_prepare_v2(db, query, -1, &statement, NULL) == SQLITE_OK);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        read_row(statement);
        count++;
    }
    must(db, code == SQLITE_DONE);
    sqlite3_finalize(statement);
    return count;
}

int main(int argc, char **argv)
{
    static const char *const queries[] = {"SELECT * FROM jobs", "SELECT * FROM attempts",
                                          "SELECT * FROM members", "SELECT * FROM nodes"};
    sqlite3 *db = NULL;
    long count = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: bench-read DATABASE\n");
        return 2;
    }
    must(db, sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        count += read_table(db, queries[i]);
    }
    printf("%ld\n", count);
    fflush(stdout);
    _Exit(EXIT_SUCCESS); /* the end is no part of a start */
}
