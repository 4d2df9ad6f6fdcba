/* SPDX-License-Identifier: Apache-2.0 */
/* A database has the newest version or is refused. A version is reached in one transaction or not at all; a
 * new database reaches the newest one in one transaction. */
#include "daemon/store/database/schema_version.h"

#include <stddef.h>

#include "daemon/store/database/pages.h"
#include "daemon/store/database/schema.h"
#include "proto/limits.h"

/* From this version on pages have sums (pages.c). */
enum { SUMS_VERSION = 4 };

static bool fail(sqlite3 *db, const char *doing, struct err *err)
{
    int code = sqlite3_errcode(db) & 0xff;
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
        err_set(err, ERR_DAMAGED, "the database is damaged: %s", sqlite3_errmsg(db));
        return err_hint(err, PAGES_REMEDY);
    }
    if (code == SQLITE_FULL) {
        err_set(err, ERR_DISK_FULL, "cannot %s the database: the disk is full", doing);
        return err_hint(err, "free space, then start gpuctld again");
    }
    return err_set(err, ERR_IO, "cannot %s the database: %s", doing, sqlite3_errmsg(db));
}

static bool number(sqlite3 *db, const char *sql, int64_t *ret_value, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    bool ok = sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
              sqlite3_step(statement) == SQLITE_ROW;
    if (ok) {
        *ret_value = sqlite3_column_int64(statement, 0);
    } else {
        fail(db, "read", err);
    }
    sqlite3_finalize(statement);
    return ok;
}

bool schema_version(sqlite3 *db, int64_t *ret_version, struct err *err)
{
    return number(db, "PRAGMA user_version", ret_version, err);
}

int64_t schema_newest(void)
{
    return schema_versions;
}

bool schema_wants_sums(sqlite3 *db, bool *ret_wants, struct err *err)
{
    int64_t application, version;
    bool ok = number(db, "PRAGMA application_id", &application, err) && schema_version(db, &version, err);
    *ret_wants = ok && application == SCHEMA_APPLICATION_ID && version >= SUMS_VERSION;
    return ok;
}

bool schema_check(sqlite3 *db, struct err *err)
{
    int64_t application, version, things;
    if (!number(db, "PRAGMA application_id", &application, err) ||
        !number(db, "PRAGMA user_version", &version, err) ||
        !number(db, "SELECT count(*) FROM sqlite_schema", &things, err)) {
        return false;
    }
    if (things > 0 && application != SCHEMA_APPLICATION_ID) {
        return err_set(err, ERR_IO, "the file is a database of another program");
    }
    if (version > schema_versions) {
        err_set(err, ERR_IO, "the database has schema version %lld; this program knows versions up to %d",
                (long long)version, schema_versions);
        return err_hint(err, "start the version of gpuctld that wrote it, or a newer one");
    }
    return true;
}

/* Runs statements up to the NULL and sets the version, inside the transaction of the caller. */
static bool apply(sqlite3 *db, const char *const *statements, int version)
{
    for (; *statements != NULL; statements++) {
        if (sqlite3_exec(db, *statements, NULL, NULL, NULL) != SQLITE_OK) {
            return false;
        }
    }
    char set_version[64];
    sqlite3_snprintf(sizeof set_version, set_version, "PRAGMA user_version = %d", version);
    return sqlite3_exec(db, set_version, NULL, NULL, NULL) == SQLITE_OK;
}

/* One transaction from a version to a later one. */
static bool migrate(sqlite3 *db, int64_t from, int64_t to)
{
    bool ok = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK;
    for (int next = (int)from + 1; ok && next <= to; next++) {
        ok = apply(db, schema_statements(next), next);
    }
    return ok && sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
}

static bool move_log(sqlite3 *db)
{
    return sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_RESTART, NULL, NULL) == SQLITE_OK;
}

/* Writes the whole file anew, with sums and able to shrink, and makes it the one on disk. A crash leaves the
 * old one or the new one, and in either case this is done again. */
static bool rewrite(sqlite3 *db)
{
    return move_log(db) && sqlite3_exec(db, "VACUUM", NULL, NULL, NULL) == SQLITE_OK && move_log(db);
}

bool schema_migrate(sqlite3 *db, struct err *err)
{
    return schema_migrate_to(db, schema_versions, err);
}

bool schema_migrate_to(sqlite3 *db, int64_t last, struct err *err)
{
    int64_t version;
    if (!schema_version(db, &version, err)) {
        return false;
    }
    if (version > 0 && version < SUMS_VERSION && last >= SUMS_VERSION && !rewrite(db)) {
        return fail(db, "migrate", err);
    }
    while (version < last) {
        int64_t end = version == 0 ? last : version + 1;
        if (!migrate(db, version, end)) {
            return fail(db, "migrate", err); /* the connection is closed, which rolls back */
        }
        version = end;
    }
    return true;
}

bool schema_can_shrink(sqlite3 *db, bool *ret_can, struct err *err)
{
    int64_t mode = 0;
    bool ok = number(db, "PRAGMA auto_vacuum", &mode, err);
    *ret_can = mode != 0;
    return ok;
}

bool schema_make_shrinkable(sqlite3 *db, struct err *err)
{
    bool can;
    int64_t pages;
    return schema_can_shrink(db, &can, err) && number(db, "PRAGMA page_count", &pages, err) &&
           (can || pages > LIMIT_REWRITE_BYTES / PAGE_BYTES || rewrite(db) ||
            (sqlite3_errcode(db) & 0xff) == SQLITE_FULL || fail(db, "rewrite", err));
}
