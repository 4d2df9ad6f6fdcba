/* SPDX-License-Identifier: Apache-2.0 */
/* The disk under test, and operations of tests on it, with SQLite and without. */
#include "tests/sim/disk/disk_rig.h"

#include <stdlib.h>
#include <string.h>

struct disk *disk;

void rig_begin(void)
{
    disk = disk_create("disk", true, 1);
}

void rig_end(void)
{
    disk_destroy(disk);
}

void rig_renew(uint64_t seed)
{
    rig_end();
    disk = disk_create("disk", true, seed);
}

sqlite3 *open_database(void)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open_v2("/db", &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return db;
}

int run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

void must(sqlite3 *db, const char *sql)
{
    ck_assert_msg(run(db, sql) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
}

/* The single number that the query returns; -1: an error. */
int64_t number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int64_t value = -1;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        value = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return value;
}

sqlite3 *open_log(void)
{
    sqlite3 *db = open_database();
    must(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0");
    must(db, "CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, b BLOB)");
    return db;
}

const char insert[] = "INSERT INTO t (b) VALUES (zeroblob(3000))";

int64_t rows(sqlite3 *db)
{
    ck_assert_int_eq(number(db, "SELECT count(*) FROM pragma_quick_check WHERE quick_check <> 'ok'"), 0);
    return number(db, "SELECT count(*) FROM t");
}

sqlite3_file *open_file(const char *name)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find("disk");
    sqlite3_file *file = calloc(1, (size_t)vfs->szOsFile);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MAIN_DB;
    ck_assert_int_eq(vfs->xOpen(vfs, name, file, flags, NULL), SQLITE_OK);
    return file;
}

void close_file(sqlite3_file *file)
{
    file->pMethods->xClose(file);
    free(file);
}

void fill(sqlite3_file *file, uint8_t byte, int size, int64_t offset)
{
    uint8_t bytes[4096];
    memset(bytes, byte, sizeof bytes);
    ck_assert_int_eq(file->pMethods->xWrite(file, bytes, size, offset), SQLITE_OK);
}
