/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a database file and sets up its connections. A reader cannot write. Only the writer's connection
 * moves the WAL, and not even that one by itself: store.c begins and commits, wal.c checkpoints.
 *
 * One connection writes and checkpoints because SQLite up to 3.51.2 can corrupt a database when a second one
 * does (the WAL-reset bug). Readers wait for nothing (no busy timeout): in WAL mode neither the writer nor a
 * checkpoint blocks them, so SQLITE_BUSY would be a defect, which must be seen instead of slowing the HTTP
 * thread. */
#include "daemon/store/database/connection.h"

#include <assert.h>
#include <string.h>

#include "daemon/store/database/migration.h"
#include "daemon/store/database/schema_version.h"
#include "daemon/store/database/tables.h"
#include "daemon/store/database/wal.h"
#include "daemon/store/database/wal_check.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

bool connection_fail(struct connection *connection, struct err *err)
{
    connection->failed = true;
    int code = sqlite3_errcode(connection->db) & 0xff;
    const char *text = sqlite3_errmsg(connection->db);
    if (code == SQLITE_FULL) {
        err_set(err, ERR_DISK_FULL, "the disk of the database is full");
        return err_hint(err, "free space, then start gpuctld again");
    }
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
        return connection_damaged(err, text);
    }
    if (!connection->serving) {
        return err_set(err, ERR_IO, "cannot use the database: %s", text);
    }
    if (code == SQLITE_IOERR && connection->kind == CONNECTION_WRITER) {
        return err_set(err, ERR_UNKNOWN_OUTCOME, "the database failed while it was written: %s", text);
    }
    return err_set(err, ERR_INTERNAL, "the database failed: %s", text);
}

bool connection_damaged(struct err *err, const char *what)
{
    err_set(err, ERR_DAMAGED, "the database is damaged: %s", what);
    return err_hint(err, PAGES_REMEDY);
}

bool connection_set(struct connection *connection, const char *sql, struct err *err)
{
    return sqlite3_exec(connection->db, sql, NULL, NULL, NULL) == SQLITE_OK ||
           connection_fail(connection, err);
}

/* Restricts, before anything is read, the things that SQLite does by itself. */
static void restrain(sqlite3 *db)
{
    static const struct {
        int setting, on;
    } settings[] = {
        {SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1}, {SQLITE_DBCONFIG_DEFENSIVE, 1},
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},   {SQLITE_DBCONFIG_DQS_DDL, 0},
        {SQLITE_DBCONFIG_DQS_DML, 0},          {SQLITE_DBCONFIG_ENABLE_FKEY, 0},
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        int code = sqlite3_db_config(db, settings[i].setting, settings[i].on, NULL);
        assert(code == SQLITE_OK);
    }
}

/* SQLite may refuse the mode without an error. It stores the mode when the statement ends, not when it
 * answers. */
static bool set_wal(struct connection *connection, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    bool wal = false;
    int code = sqlite3_prepare_v2(connection->db, "PRAGMA journal_mode = WAL", -1, &statement, NULL);
    if (code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
        wal = strcmp(connection_text(statement, 0), "wal") == 0;
    }
    if (sqlite3_finalize(statement) != SQLITE_OK || code != SQLITE_OK) {
        return connection_fail(connection, err);
    }
    return wal || err_set(err, ERR_IO, "the file system of the database does not allow a write-ahead log");
}

/* Reserves room for a sum in each page: in a new database from its first page on, in an older one from its
 * next VACUUM on. Comes after PRAGMA page_size, which undoes it. */
static bool reserve_sums(struct connection *connection, struct err *err)
{
    int bytes = PAGE_SUM_BYTES;
    int code = sqlite3_file_control(connection->db, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes);
    return code == SQLITE_OK || connection_fail(connection, err);
}

/* From its first page on, or from its next VACUUM on. Where it is so, SQLite would write it again: behind
 * what a crash has left in the log, before that was looked after. */
static bool let_shrink(struct connection *connection, struct err *err)
{
    bool can;
    return schema_can_shrink(connection->db, &can, err) &&
           (can || connection_set(connection, "PRAGMA auto_vacuum = INCREMENTAL", err));
}

static bool configure_writer(struct connection *connection, struct err *err)
{
    char limit[64];
    sqlite3_snprintf(sizeof limit, limit, "PRAGMA journal_size_limit = %lld", 2 * WAL_PASSIVE_BYTES);
    return connection_set(connection, "PRAGMA page_size = 4096", err) && reserve_sums(connection, err) &&
           let_shrink(connection, err) && set_wal(connection, err) &&
           connection_set(connection, "PRAGMA synchronous = FULL", err) &&
           connection_set(connection, limit, err);
}

/* After the last change of how it syncs. */
static void gather_frames(struct connection *connection)
{
    if (connection->kind == CONNECTION_WRITER) {
        pages_gather(connection->pages);
    }
}

static bool configure(struct connection *connection, struct err *err)
{
    bool writer = connection->kind == CONNECTION_WRITER;
    char cache[64];
    sqlite3_snprintf(sizeof cache, cache, "PRAGMA cache_size = -%lld",
                     (writer ? LIMIT_WRITER_CACHE_BYTES : LIMIT_READER_CACHE_BYTES) / KIB);
    return connection_set(connection, "PRAGMA mmap_size = 0", err) &&
           connection_set(connection, "PRAGMA cell_size_check = ON", err) &&
           connection_set(connection, "PRAGMA wal_autocheckpoint = 0", err) &&
           connection_set(connection, cache, err) &&
           (writer ? configure_writer(connection, err)
                   : connection_set(connection, "PRAGMA query_only = ON", err));
}

static const struct {
    enum connection_kind kind;
    const char *text;
} statements[SQL_COUNT] = {
#define AS_STATEMENT(name, kind, text) [SQL_##name] = {CONNECTION_##kind, text},
    SQL_STATEMENTS(AS_STATEMENT)
#undef AS_STATEMENT
};

static bool prepare(struct connection *connection, struct err *err)
{
    autotext struct text sql = {0};
    for (size_t i = 0; i < SQL_COUNT; i++) {
        if (statements[i].kind != connection->kind) {
            continue;
        }
        text_clear(&sql);
        table_sql(statements[i].text, &sql);
        if (sqlite3_prepare_v3(connection->db, sql.bytes, -1, SQLITE_PREPARE_PERSISTENT,
                               &connection->statements[i], NULL) != SQLITE_OK) {
            return err_set(err, ERR_IO, "cannot use the database: %s in \"%s\"",
                           sqlite3_errmsg(connection->db), sql.bytes);
        }
    }
    return true;
}

/* From here on a writer commits. */
static bool make_ready(struct connection *connection, int64_t torn_at, struct err *err)
{
    return connection->kind != CONNECTION_WRITER ||
           ((torn_at < 0 || wal_cut(connection, torn_at, err)) && wal_renew(connection, err) &&
            schema_migrate(connection->db, err));
}

/* Checks that pages have sums, whatever the first page says. */
static bool check_sums(struct connection *connection, struct err *err)
{
    bool wants;
    return schema_wants_sums(connection->db, &wants, err) &&
           (!wants || pages_are_summed(connection->db) || connection_damaged(err, "its pages have no sums"));
}

bool connection_open(struct connection *connection, const char *path, enum connection_kind kind,
                     struct reserve_file *reserve_file, struct err *err)
{
    int64_t torn_at = -1;
    *connection = (struct connection){.kind = kind, .pages = pages_create(reserve_file)};
    if (kind == CONNECTION_WRITER && !wal_check(path, &torn_at, err)) {
        return false;
    }
    /* Each connection stays on one thread at a time: no mutex. */
    int flags =
        SQLITE_OPEN_NOMUTEX | (kind == CONNECTION_WRITER ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY);
    if (sqlite3_open_v2(path, &connection->db, flags, pages_name(connection->pages)) != SQLITE_OK) {
        return connection_fail(connection, err);
    }
    restrain(connection->db);
    if (kind == CONNECTION_WRITER &&
        (!schema_check(connection->db, err) || !migration_keep(connection->db, path, err))) {
        return false;
    }
    if (!configure(connection, err) || !make_ready(connection, torn_at, err)) {
        return false;
    }
    gather_frames(connection);
    return check_sums(connection, err) && prepare(connection, err);
}

void connection_close(struct connection *connection)
{
    for (size_t i = 0; i < SQL_COUNT; i++) {
        sqlite3_finalize(connection->statements[i]);
    }
    int code = sqlite3_close(connection->db);
    assert(code == SQLITE_OK);
    pages_destroy(connection->pages);
    *connection = (struct connection){0};
}

/* SQLite returns NULL for a NULL column and when memory is out; only its error tells them apart. */
static const void *there(sqlite3_stmt *statement, const void *value)
{
    if (value == NULL && sqlite3_errcode(sqlite3_db_handle(statement)) == SQLITE_NOMEM) {
        out_of_memory();
    }
    return value;
}

const char *connection_text(sqlite3_stmt *statement, int column)
{
    return there(statement, sqlite3_column_text(statement, column));
}

const void *connection_blob(sqlite3_stmt *statement, int column)
{
    return there(statement, sqlite3_column_blob(statement, column));
}
