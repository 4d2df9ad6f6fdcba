/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the tracking database and runs its statements. A search ends within its time limit, and no row that
 * is shown is larger than LIMIT_TRACKING_ROW_BYTES. Texts of clients
 * are only ever bound parameters. Each call is one transaction.
 *
 * With synchronous=NORMAL a commit writes to the log and does not wait for the disk. Only a checkpoint waits,
 * which SQLite makes by itself every 1,000 pages. No request is answered before database_sync has synced the
 * log, once for all calls that came together. FULL would sync for each call, at an eighth of the call rate.
 * One handle writes. A second one searches; it waits for nobody, and nobody for it. */
#include "daemon/mlflow/database/database.h"

#include <assert.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/mlflow/database/tables.h"
#include "proto/base/clock.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_tracking.h"

/* Instructions of SQLite's virtual machine between two calls of search_progress: some 0.1 ms. */
#define SEARCH_STEPS 2000

/* SQLite has wanted this flag since 3.45. */
#ifdef SQLITE_RESULT_SUBTYPE
#define RESULT_SUBTYPE SQLITE_RESULT_SUBTYPE
#else
#define RESULT_SUBTYPE 0
#endif

static bool open_fail(const struct tracking *tracking, struct err *err)
{
    return err_set(err, ERR_IO, "cannot use the tracking database: %s", sqlite3_errmsg(tracking->db));
}

static bool set(struct tracking *tracking, const char *sql, struct err *err)
{
    return sqlite3_exec(tracking->db, sql, NULL, NULL, NULL) == SQLITE_OK || open_fail(tracking, err);
}

static void restrain(sqlite3 *db)
{
    static const struct {
        int setting, on;
    } settings[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1}, {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0}, {SQLITE_DBCONFIG_DQS_DDL, 0},
        {SQLITE_DBCONFIG_DQS_DML, 0},   {SQLITE_DBCONFIG_ENABLE_FKEY, 0},
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        int code = sqlite3_db_config(db, settings[i].setting, settings[i].on, NULL);
        assert(code == SQLITE_OK);
    }
    sqlite3_busy_timeout(db, TRACKING_BUSY_MS);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, LIMIT_TRACKING_ROW_BYTES);
}

static bool configure(struct tracking *tracking, struct err *err)
{
    char cache[64], log[64];
    sqlite3_snprintf(sizeof cache, cache, "PRAGMA cache_size = -%lld", LIMIT_TRACKING_CACHE_BYTES / KIB);
    sqlite3_snprintf(sizeof log, log, "PRAGMA journal_size_limit = %lld", LIMIT_TRACKING_LOG_BYTES);
    return set(tracking, "PRAGMA journal_mode = WAL", err) &&
           set(tracking, "PRAGMA synchronous = NORMAL", err) && set(tracking, "PRAGMA mmap_size = 0", err) &&
           set(tracking, "PRAGMA cell_size_check = ON", err) &&
           set(tracking, "PRAGMA case_sensitive_like = ON", err) && set(tracking, cache, err) &&
           set(tracking, log, err);
}

static const char *const texts[QUERY_COUNT] = {
#define AS_TEXT(name, text) [QUERY_##name] = (text),
    QUERIES(AS_TEXT)
#undef AS_TEXT
};

/* Makes the file with mode 0600, because others could read a file that SQLite makes by itself. */
static bool make_file(const char *path, struct err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return err_errno(err, "cannot open %s", path);
    }
    close(fd);
    return true;
}

/* SQL's json_double(value, is_nan): the shortest number that reads back as the same value. SQLite itself
 * writes only 15 digits. */
static void json_double(sqlite3_context *context, int count, sqlite3_value **arguments)
{
    double value = sqlite3_value_double(arguments[0]);
    char digits[40];
    if (sqlite3_value_int(arguments[1]) != 0) {
        sqlite3_result_text(context, "NaN", -1, SQLITE_STATIC);
    } else if (isinf(value)) {
        sqlite3_result_text(context, value > 0 ? "Infinity" : "-Infinity", -1, SQLITE_STATIC);
    } else {
        for (int precision = 15; precision <= 17; precision++) {
            snprintf(digits, sizeof digits, "%.*g", precision, value);
            if (strtod(digits, NULL) == value) {
                break;
            }
        }
        sqlite3_result_text(context, digits, -1, SQLITE_TRANSIENT);
        sqlite3_result_subtype(context, 'J'); /* the text is JSON */
    }
}

/* SQL's sees(owner, project) and finds(owner, project): whether the sender of the call has the right. */
static void has_right(sqlite3_context *context, enum tracking_right right, sqlite3_value **arguments)
{
    const struct tracking *tracking = sqlite3_user_data(context);
    const struct tracking_rights *rights = tracking->rights;
    const char *owner = (const char *)sqlite3_value_text(arguments[0]);
    const char *project = (const char *)sqlite3_value_text(arguments[1]);
    sqlite3_result_int(context, rights == NULL || rights->have(rights, right, owner != NULL ? owner : "",
                                                               project != NULL ? project : ""));
}

static void sees(sqlite3_context *context, int count, sqlite3_value **arguments)
{
    has_right(context, TRACKING_SEES, arguments);
}

static void finds(sqlite3_context *context, int count, sqlite3_value **arguments)
{
    has_right(context, TRACKING_FINDS, arguments);
}

static bool define(struct tracking *tracking, struct err *err)
{
    static const struct {
        const char *name;
        int flags;
        void (*function)(sqlite3_context *context, int count, sqlite3_value **arguments);
    } functions[] = {{"json_double", SQLITE_DETERMINISTIC | RESULT_SUBTYPE, json_double},
                     {"sees", SQLITE_DIRECTONLY, sees},
                     {"finds", SQLITE_DIRECTONLY, finds}};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (sqlite3_create_function_v2(tracking->db, functions[i].name, 2, SQLITE_UTF8 | functions[i].flags,
                                       tracking, functions[i].function, NULL, NULL, NULL) != SQLITE_OK) {
            return open_fail(tracking, err);
        }
    }
    return true;
}

/* Ends a search that is over its time. Other threads that wait for the processor go first, such as the writer
 * of jobs. */
static int search_progress(void *closure)
{
    const struct tracking *tracking = closure;
    if (tracking->stop_ms == 0) {
        return 0;
    }
    sched_yield();
    return clock_boot_ms() > tracking->stop_ms;
}

bool database_open(struct tracking *tracking, const char *path, struct err *err)
{
    /* Only one thread at a time uses a handle: no mutex. */
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE;
    if (!make_file(path, err)) {
        return false;
    }
    if (sqlite3_open_v2(path, &tracking->db, flags, NULL) != SQLITE_OK) {
        return open_fail(tracking, err);
    }
    restrain(tracking->db);
    tracking->search_ms = LIMIT_TRACKING_SEARCH_MS;
    sqlite3_progress_handler(tracking->db, SEARCH_STEPS, search_progress, tracking);
    return tables_check(tracking->db, err) && configure(tracking, err) && tables_migrate(tracking->db, err) &&
           tables_make_shrinkable(tracking->db, err) && define(tracking, err);
}

/* *ret_log has no methods while there is no log. */
static int find_log(struct tracking *tracking, sqlite3_file **ret_log)
{
    return sqlite3_file_control(tracking->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, ret_log);
}

void database_shorten_log(struct tracking *tracking)
{
    sqlite3_file *log = NULL;
    sqlite3_int64 size = 0;
    if (find_log(tracking, &log) == SQLITE_OK && log->pMethods != NULL &&
        log->pMethods->xFileSize(log, &size) == SQLITE_OK && size > LIMIT_TRACKING_LOG_BYTES) {
        sqlite3_wal_checkpoint_v2(tracking->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    }
}

bool database_sync(struct tracking *tracking, struct err *err)
{
    sqlite3_file *log = NULL;
    int changes = sqlite3_total_changes(tracking->db);
    if (changes == tracking->synced_changes) {
        return true;
    }
    int code = find_log(tracking, &log);
    if (code == SQLITE_OK && log->pMethods != NULL) {
        code = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
    }
    if (code != SQLITE_OK) {
        return err_set(err, ERR_UNKNOWN_OUTCOME, "cannot sync the tracking database: %s",
                       sqlite3_errstr(code));
    }
    tracking->synced_changes = changes;
    return true;
}

void database_close(struct tracking *tracking)
{
    for (size_t i = 0; i < QUERY_COUNT; i++) {
        sqlite3_finalize(tracking->statements[i]);
    }
    int code = sqlite3_close(tracking->db);
    assert(code == SQLITE_OK);
}

void database_fail(struct call *call)
{
    sqlite3 *db = call->tracking->db;
    switch (sqlite3_errcode(db) & 0xff) {
    case SQLITE_INTERRUPT:
        call_refuse(
            call,
            "The search takes longer than %d seconds. Narrow it down with filter, or ask for fewer rows "
            "with max_results and for the rest with page_token.",
            LIMIT_TRACKING_SEARCH_MS / 1000);
        return;
    case SQLITE_TOOBIG:
        call_refuse(call, "A row of the answer is larger than %lld MiB. Leave it out with filter.",
                    LIMIT_TRACKING_ROW_BYTES / MIB);
        return;
    case SQLITE_FULL:
        call_fail(call, TRACKING_TEMPORARILY_UNAVAILABLE, "The disk of the tracking database is full.");
        return;
    case SQLITE_BUSY:
        call_fail(call, TRACKING_TEMPORARILY_UNAVAILABLE, "The tracking database is busy.");
        return;
    default:
        call_fail(call, TRACKING_INTERNAL_ERROR, "The tracking database failed: %s", sqlite3_errmsg(db));
    }
}

/* --- transactions --- */

/* If a rollback failed, its transaction is still open and is rolled back now. */
void database_begin(struct call *call, bool writes)
{
    if (!sqlite3_get_autocommit(call->tracking->db)) {
        database_run(call, QUERY_ROLLBACK, "");
    }
    call->tracking->rights = call->request.rights;
    database_run(call, writes ? QUERY_BEGIN_WRITE : QUERY_BEGIN_READ, "");
}

/* After a failure SQLite may have rolled back already. */
bool database_end(struct call *call)
{
    database_run(call, QUERY_COMMIT, "");
    if (call->failed && !sqlite3_get_autocommit(call->tracking->db)) {
        struct tracking_error later;
        struct call rollback = {.tracking = call->tracking, .error = &later};
        database_run(&rollback, QUERY_ROLLBACK, "");
    }
    return !call->failed;
}

/* --- statements --- */

/* A parameter that is not there or a statement that is under way is a defect; memory that is out ends the
 * program. */
static void must(int code)
{
    if (code == SQLITE_NOMEM) {
        out_of_memory();
    }
    assert(code == SQLITE_OK);
}

/* NULL only when the call has failed. */
static sqlite3_stmt *prepare(struct call *call, enum query query)
{
    sqlite3 *db = call->tracking->db;
    sqlite3_stmt **statement = &call->tracking->statements[query];
    if (*statement == NULL && !call->failed &&
        sqlite3_prepare_v3(db, texts[query], -1, SQLITE_PREPARE_PERSISTENT, statement, NULL) != SQLITE_OK) {
        database_fail(call);
    }
    return *statement;
}

static sqlite3_stmt *bind(struct call *call, enum query query, const char *types, va_list args)
{
    sqlite3_stmt *statement = prepare(call, query);
    for (int i = 1; *types != '\0' && !call->failed; types++, i++) {
        switch (*types) {
        case 'i':
            must(sqlite3_bind_int64(statement, i, va_arg(args, int64_t)));
            break;
        case 'b':
            must(sqlite3_bind_int(statement, i, va_arg(args, int)));
            break;
        case 'd':
            must(sqlite3_bind_double(statement, i, va_arg(args, double)));
            break;
        case 't':
            must(sqlite3_bind_text(statement, i, va_arg(args, const char *), -1, SQLITE_STATIC));
            break;
        default:
            assert(!"a letter that is no type");
        }
    }
    return statement;
}

/* Binds the variable arguments of the calling function. */
#define BIND(statement, call, query, types)                                                                  \
    va_list args;                                                                                            \
    va_start(args, types);                                                                                   \
    autoquery sqlite3_stmt *statement = bind(call, query, types, args);                                      \
    va_end(args)

sqlite3_stmt *database_query(struct call *call, enum query query, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    sqlite3_stmt *statement = bind(call, query, types, args);
    va_end(args);
    return statement;
}

bool database_next(struct call *call, sqlite3_stmt *statement)
{
    if (call->failed) {
        return false;
    }
    int code = sqlite3_step(statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
        database_fail(call);
    }
    return code == SQLITE_ROW;
}

bool database_is_late(const struct call *call)
{
    const struct tracking *tracking = call->tracking;
    return clock_boot_ms() >= tracking->stop_ms - tracking->search_ms / 2;
}

int database_run(struct call *call, enum query query, const char *types, ...)
{
    BIND(statement, call, query, types);
    bool row = database_next(call, statement);
    assert(!row);
    return call->failed ? 0 : sqlite3_changes(call->tracking->db);
}

int64_t database_int(struct call *call, int64_t absent, enum query query, const char *types, ...)
{
    BIND(statement, call, query, types);
    return database_next(call, statement) ? sqlite3_column_int64(statement, 0) : absent;
}

char *database_text(struct call *call, enum query query, const char *types, ...)
{
    BIND(statement, call, query, types);
    return database_next(call, statement) ? xstrdup(column_text(statement, 0)) : NULL;
}

void database_append(struct call *call, enum query query, const char *types, ...)
{
    BIND(statement, call, query, types);
    if (database_next(call, statement)) {
        text_append(call->out, column_text(statement, 0));
    }
}

void database_answer(struct call *call, const char *member, enum query query, int64_t key)
{
    text_printf(call->out, "{\"%s\":", member);
    database_append(call, query, "i", key);
    text_append(call->out, "}");
}

const char *column_text(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    if (text == NULL && sqlite3_errcode(sqlite3_db_handle(statement)) == SQLITE_NOMEM) {
        out_of_memory(); /* column_text never returns a NULL of the row */
    }
    return text;
}
