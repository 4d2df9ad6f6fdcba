/* SPDX-License-Identifier: Apache-2.0 */
/* What may be opened, what is refused, and what an open connection may do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/reader/reader.h"
#include "daemon/store/handle.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

static void run(sqlite3 *db, const char *sql)
{
    char *error = NULL;
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &error) == SQLITE_OK, "%s: %s", sql, error);
}

static int copy_table(void *closure, int columns, char **values, char **names)
{
    run(closure, values[0]);
    if (strcmp(values[1], "table") == 0) {
        autofree char *rows = xprintf("INSERT INTO %s SELECT * FROM summed.%s", values[2], values[2]);
        run(closure, rows);
    }
    return 0;
}

/* As a version that knew no sums would, and has written all of it. */
static void meddle_without_sums(const char *sql)
{
    autofree char *summed = xprintf("%s.summed", rig.path);
    autofree char *attach = xprintf("ATTACH '%s' AS summed", summed);
    ck_assert_int_eq(rename(rig.path, summed), 0);
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(rig.path, &db), SQLITE_OK);
    run(db, attach);
    ck_assert_int_eq(sqlite3_exec(db,
                                  "SELECT sql, type, name FROM summed.sqlite_schema WHERE sql IS NOT NULL",
                                  copy_table, db, NULL),
                     SQLITE_OK);
    run(db, "DETACH summed; PRAGMA application_id = 0x67707563");
    run(db, sql);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

static void remove_database(void)
{
    rig_close();
    autofree char *log = xprintf("%s-wal", rig.path);
    ck_assert_int_eq(unlink(log), 0);
    ck_assert_int_eq(unlink(rig.path), 0);
}

/* The text, or the remedy. */
static void expect_refused(enum err_code code, const char *text)
{
    rig.store = store_open(rig.path, &rig.err);
    ck_assert_ptr_null(rig.store);
    ck_assert_int_eq(rig.err.code, code);
    ck_assert_msg(strstr(rig.err.text, text) != NULL || strstr(rig.err.hint, text) != NULL, "%s",
                  rig.err.text);
}

START_TEST(each_opening_has_a_larger_incarnation)
{
    ck_assert_uint_eq(store_incarnation(rig.store), 1);
    rig_reopen();
    ck_assert_uint_eq(store_incarnation(rig.store), 2);
    rig_reopen();
    ck_assert_uint_eq(store_incarnation(rig.store), 3);
}
END_TEST

START_TEST(keys_of_jobs_go_on_after_the_largest)
{
    ck_assert_int_eq(store_next_job_key(rig.store), 1);
    rig_write((struct change[]){job_insert(41), job_insert(40)}, 2);
    ck_assert_int_eq(store_next_job_key(rig.store), 42);
    rig_reopen();
    ck_assert_int_eq(store_next_job_key(rig.store), 42);
}
END_TEST

static struct change event_of(int64_t seq, enum event_kind kind)
{
    return (struct change){.kind = CHANGE_EVENT_INSERT,
                           .event = {.job_key = 1, .seq = seq, .at_ms = seq, .kind = kind}};
}

static int take_text(void *closure, int columns, char **values, char **names)
{
    snprintf(closure, 32, "%s", values[0]);
    return 0;
}

#define DROP_COLUMN(table, column) "ALTER TABLE " table " DROP COLUMN " column ";"

/* What versions 12 and later brought. */
#define WITHOUT_VERSION_12                                                                                   \
    DROP_COLUMN("jobs", "kept_until_ms")                                                                     \
    DROP_COLUMN("jobs", "labels")                                                                            \
    DROP_COLUMN("jobs", "retry_of")                                                                          \
    DROP_COLUMN("jobs", "program")                                                                           \
    DROP_COLUMN("members", "isolated")                                                                       \
    "DROP TABLE schedules; DROP TABLE schedule_uses;"                                                        \
    "DROP TABLE node_jobs; DROP TABLE audit; DROP TABLE secrets;" DROP_COLUMN("tokens", "used_ms")           \
        DROP_COLUMN("nodes", "millicpus") DROP_COLUMN("nodes", "memory_bytes")                               \
            DROP_COLUMN("members", "millicpus") DROP_COLUMN("members", "memory_bytes")                       \
                DROP_COLUMN("tokens", "project") DROP_COLUMN("tokens", "subject")                            \
                    DROP_COLUMN("tokens", "groups")

/* What versions 11 and later brought. */
#define WITHOUT_WEBHOOKS                                                                                     \
    WITHOUT_VERSION_12                                                                                       \
    DROP_COLUMN("jobs", "idle_since_ms")                                                                     \
    "DROP TABLE webhooks; DROP TABLE deliveries;"

/* What versions 10 and later brought. */
#define WITHOUT_HOURS WITHOUT_WEBHOOKS "DROP TABLE hours;" DROP_COLUMN("members", "use")

/* What versions 8 and later brought. */
#define WITHOUT_RETENTION                                                                                    \
    WITHOUT_HOURS                                                                                            \
    "DROP TABLE job_ids; DROP TABLE uploads; DROP INDEX tokens_created; ALTER TABLE nodes DROP COLUMN "      \
    "heard_ms; DROP TABLE uses; DROP TABLE "                                                                 \
    "removals; DROP INDEX results_hash; DROP INDEX "                                                         \
    "dependencies_on;"                                                                                       \
    "DELETE FROM meta WHERE name <> 'incarnation';"

/* What versions 7 and later brought. */
#define WITHOUT_JOINS WITHOUT_RETENTION "DROP TABLE joins;" DROP_COLUMN("tokens", "node")

/* What versions 5 and later brought. */
#define WITHOUT_TIMING                                                                                       \
    WITHOUT_JOINS                                                                                            \
    DROP_COLUMN("attempts", "timing")                                                                        \
    DROP_COLUMN("members", "timing")                                                                         \
    DROP_COLUMN("members", "start")                                                                          \
    DROP_COLUMN("members", "marks")

/* What version 6 brought. */
#define WITHOUT_AGENTS DROP_COLUMN("nodes", "agent_id")

/* What versions 3 and later brought. */
#define WITHOUT_THE_SCHEDULER                                                                                \
    WITHOUT_AGENTS                                                                                           \
    WITHOUT_TIMING                                                                                           \
    "DROP TABLE lost; ALTER TABLE jobs DROP COLUMN priority; ALTER TABLE jobs DROP COLUMN time_limit_ms;"    \
    "ALTER TABLE jobs DROP COLUMN ran_ms; ALTER TABLE attempts DROP COLUMN claim;"                           \
    "ALTER TABLE attempts DROP COLUMN gpu_type; DROP TABLE limits;"                                          \
    "ALTER TABLE attempts DROP COLUMN warned_ms; ALTER TABLE attempts DROP COLUMN checkpoint_ms;"            \
    "ALTER TABLE nodes DROP COLUMN labels; ALTER TABLE nodes DROP COLUMN agent_expires_at_ms;"               \
    "DROP TABLE history; DROP TABLE usage; DROP TABLE windows; DROP TABLE dependencies; DROP TABLE arrays;"  \
    "DROP INDEX jobs_array; DROP INDEX jobs_top; DROP INDEX jobs_owner; ALTER TABLE jobs DROP COLUMN task;"  \
    "ALTER TABLE jobs DROP COLUMN array_key; CREATE INDEX jobs_owner ON jobs (owner);"

static void expect_number(const char *sql, const char *expected)
{
    sqlite3 *db;
    char value[32] = "";
    ck_assert_int_eq(sqlite3_open(rig.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, sql, take_text, value, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    ck_assert_msg(strcmp(value, expected) == 0, "%s is %s", sql, value);
}

START_TEST(a_database_of_the_second_version_learns_priority_and_limit_of_live_jobs_from_their_specs)
{
    struct change job = job_insert(1);
    const char *spec = "{\"gpus\":1,\"command\":[\"true\"],\"priority\":7,\"time_limit_s\":1.5}";
    job.job.birth.spec = spec;
    job.job.birth.spec_length = strlen(spec);
    rig_write_one(job);
    rig_close();
    meddle_without_sums(WITHOUT_THE_SCHEDULER "PRAGMA user_version = 2");
    rig_reopen();
    rig_close();
    expect_number("SELECT priority FROM jobs", "7");
    expect_number("SELECT time_limit_ms FROM jobs", "1500");
}
END_TEST

/* As version 3 knew the causes. */
START_TEST(a_database_of_the_third_version_takes_the_causes_of_today)
{
    struct change job = job_insert(1);
    const char *spec = "{\"gpus\":1,\"command\":[\"true\"],\"priority\":7}";
    job.job.birth.spec = spec;
    job.job.birth.spec_length = strlen(spec);
    job.job.life.priority = 7;
    rig_write((struct change[]){job, attempt_insert(5, 1, 1)}, 2);
    rig_close();
    meddle_without_sums("PRAGMA writable_schema = ON;"
                        "UPDATE sqlite_schema SET sql = replace(sql, ' WHEN ''OUT_OF_MEMORY'' THEN 1', '');"
                        "PRAGMA writable_schema = RESET; DROP TABLE lost;" WITHOUT_AGENTS WITHOUT_TIMING
                        "PRAGMA user_version = 3");
    rig_reopen();
    struct change later = attempt_insert(6, 2, 1);
    later.attempt.cause = CAUSE_OUT_OF_MEMORY;
    struct change other = job_insert(2);
    other.job.life.cause = CAUSE_OUT_OF_MEMORY;
    rig_write((struct change[]){other, later}, 2);
    rig_close();
    expect_number("SELECT priority FROM jobs WHERE key = 1", "7");
    expect_number("SELECT checkpoint_ms FROM attempts WHERE epoch = 5", "17");
    expect_number("SELECT count(*) FROM jobs INDEXED BY jobs_top WHERE array_key IS NULL", "2");
    expect_number("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'old\\_%' ESCAPE '\\'", "0");
}
END_TEST

/* As version 9 knew the roles. */
START_TEST(a_database_of_the_ninth_version_takes_the_role_of_today_and_keeps_its_tokens)
{
    struct change token = {
        .kind = CHANGE_TOKEN_INSERT,
        .token = {.id = "old", .role = ROLE_NODE, .owner = "n", .created_ms = 1, .node = "n"}};
    rig_write_one(token);
    rig_close();
    rig_meddle("PRAGMA writable_schema = ON;"
               "UPDATE sqlite_schema SET sql = replace(sql, ' WHEN ''monitor'' THEN 1', '');"
               "PRAGMA writable_schema = RESET;" WITHOUT_HOURS "PRAGMA user_version = 9");
    rig_reopen();
    token.token = (struct token_row){.id = "new", .role = ROLE_MONITOR, .owner = "probe", .created_ms = 2};
    rig_write_one(token);
    rig_close();
    expect_number("SELECT count(*) FROM tokens INDEXED BY tokens_created WHERE created_ms > 0", "2");
    expect_number("SELECT node = 'n' FROM tokens WHERE id = 'old'", "1");
}
END_TEST

/* As version 10 knew the events. */
START_TEST(a_database_of_the_tenth_version_takes_the_events_of_today_and_keeps_its_own)
{
    struct change job = job_insert(1),
                  event = {.kind = CHANGE_EVENT_INSERT, .event = {.job_key = 1, .seq = 1, .at_ms = 5}};
    rig_write((struct change[]){job, event}, 2);
    rig_close();
    rig_meddle("PRAGMA writable_schema = ON;"
               "UPDATE sqlite_schema SET sql = replace(sql, ' WHEN ''idle'' THEN 1', '');"
               "PRAGMA writable_schema = RESET;" WITHOUT_WEBHOOKS "PRAGMA user_version = 10");
    rig_reopen();
    event.event = (struct event_row){.job_key = 1, .seq = 2, .at_ms = 6, .kind = EVENT_IDLE};
    rig_write_one(event);
    rig_close();
    expect_number("SELECT sum(at_ms) FROM events", "11");
    expect_number("SELECT idle_since_ms FROM jobs", "0");
}
END_TEST

/* As version 15 knew the states of attempts, and the events. */
START_TEST(a_database_of_the_fifteenth_version_takes_attempts_that_are_kept_and_keeps_its_own)
{
    struct change event = {.kind = CHANGE_EVENT_INSERT, .event = {.job_key = 1, .seq = 1, .at_ms = 5}};
    rig_write((struct change[]){job_insert(1), job_insert(2), event, attempt_insert(5, 1, 1)}, 4);
    rig_close();
    rig_meddle("PRAGMA writable_schema = ON;"
               "UPDATE sqlite_schema SET sql = replace(replace(sql, ' WHEN ''KEPT'' THEN 1', ''), "
               "' WHEN ''kept'' THEN 1', '');"
               "PRAGMA writable_schema = RESET; DROP TABLE schedules; DROP TABLE schedule_uses;" DROP_COLUMN(
                   "jobs", "kept_until_ms") "PRAGMA user_version = "
                                            "15");
    rig_reopen();
    event.event = (struct event_row){.job_key = 1, .seq = 2, .at_ms = 6, .kind = EVENT_KEPT};
    struct change kept = attempt_insert(6, 2, 1);
    kept.attempt.state = ATTEMPT_KEPT;
    rig_write((struct change[]){event, kept}, 2);
    rig_close();
    expect_number("SELECT sum(at_ms) FROM events", "11");
    expect_number("SELECT count(*) FROM attempts INDEXED BY attempts_job WHERE job_key > 0", "2");
    expect_number("SELECT sum(kept_until_ms) FROM jobs", "0");
    expect_number("SELECT checkpoint_ms FROM attempts WHERE epoch = 5", "17");
    expect_number("SELECT count(*) FROM attempts WHERE timing IS NOT NULL", "2");
}
END_TEST

/* As version 11 knew the roles. */
START_TEST(a_database_of_the_eleventh_version_takes_the_roles_of_today_and_keeps_its_tokens)
{
    struct change token = {
        .kind = CHANGE_TOKEN_INSERT,
        .token = {.id = "old", .role = ROLE_NODE, .owner = "n", .created_ms = 1, .node = "n"}};
    rig_write_one(token);
    rig_close();
    rig_meddle("PRAGMA writable_schema = ON;"
               "UPDATE sqlite_schema SET sql = replace(replace(sql, ' WHEN ''viewer'' THEN 1', ''), "
               "' WHEN ''operator'' THEN 1', '');"
               "PRAGMA writable_schema = RESET;" WITHOUT_VERSION_12 "PRAGMA user_version = 11");
    rig_reopen();
    token.token = (struct token_row){.id = "new", .role = ROLE_OPERATOR, .owner = "ann", .created_ms = 2};
    rig_write_one(token);
    rig_close();
    expect_number("SELECT count(*) FROM tokens INDEXED BY tokens_created WHERE created_ms > 0", "2");
    expect_number("SELECT node = 'n' FROM tokens WHERE id = 'old'", "1");
}
END_TEST

START_TEST(a_database_of_the_eleventh_version_finds_which_jobs_each_node_had)
{
    rig_write((struct change[]){job_insert(1),
                                job_insert(2),
                                attempt_insert(5, 2, 1),
                                member_insert(5, 0, "b", "0"),
                                member_insert(5, 1, "a", "0"),
                                job_update(2, JOB_QUEUED),
                                {.kind = CHANGE_ATTEMPT_UPDATE,
                                 .attempt = {.attempt_id = 5, .state = ATTEMPT_ENDED}},
                                attempt_insert(6, 2, 2),
                                member_insert(6, 0, "b", "3"),
                                attempt_insert(7, 1, 1),
                                member_insert(7, 0, "c", "0"),
                                member_insert(7, 1, "b", "1")},
              12);
    rig_close();
    rig_meddle(WITHOUT_VERSION_12 "PRAGMA user_version = 11");
    rig_reopen();
    rig_close();
    expect_number("SELECT group_concat(node || job_key || epoch || node_rank, ' ') FROM "
                  "(SELECT * FROM node_jobs ORDER BY node, job_key)",
                  "a251 b171 b260 c170");
}
END_TEST

/* Before moments of starts were kept. */
START_TEST(an_attempt_of_the_fourth_version_has_no_moments_and_gets_those_that_come)
{
    struct change attempt = attempt_insert(5, 1, 1), member = member_insert(5, 0, "gpu-1", "0");
    rig_write((struct change[]){job_insert(1), attempt, member}, 3);
    rig_close();
    rig_meddle(WITHOUT_AGENTS WITHOUT_TIMING "PRAGMA user_version = 4");
    rig_reopen();
    autotext struct text read = {0};
    attempt.attempt.timing = (struct attempt_timing){0};
    autotext struct text written = {0};
    visit_attempt(&attempt.attempt, &written);
    ck_assert(each_attempt(reader_attempts(rig.reader, 1, ALL_ATTEMPTS, &rig.err), visit_attempt, &read));
    ck_assert_str_eq(read.bytes, written.bytes);
    attempt.kind = CHANGE_ATTEMPT_UPDATE;
    attempt.attempt.timing.settled_us = 10;
    struct change said = {.kind = CHANGE_MEMBER_UPDATE,
                          .member = {.attempt_id = 5, .state = MEMBER_EXITED, .timing = {.output_us = 11}}};
    rig_write((struct change[]){attempt, said}, 2);
    rig_close();
    expect_number("SELECT hex(substr(timing, 33)) FROM attempts", "0A00000000000000");
    expect_number("SELECT hex(substr(timing, 73, 8)) FROM members WHERE start IS NULL", "0B00000000000000");
    expect_number("SELECT checkpoint_ms FROM attempts", "17");
}
END_TEST

/* As it was before nodes got ready for jobs: fewer words. */
START_TEST(a_database_of_the_first_version_goes_on_with_all_its_rows)
{
    autotext struct text read = {0};
    rig_write((struct change[]){job_insert(1), event_of(1, EVENT_SUBMITTED)}, 2);
    rig_close();
    meddle_without_sums(
        "CREATE TABLE small (job_key INTEGER NOT NULL, seq INTEGER NOT NULL, at_ms INTEGER NOT NULL, "
        "kind TEXT NOT NULL CHECK (kind IN ('submitted', 'placed')), attempt INTEGER NOT NULL, "
        "detail TEXT, PRIMARY KEY (job_key, seq)) STRICT, WITHOUT ROWID;"
        "INSERT INTO small SELECT * FROM events; DROP TABLE events;"
        "ALTER TABLE small RENAME TO events;" WITHOUT_THE_SCHEDULER "PRAGMA user_version = 1");
    rig_reopen();
    rig_write_one(event_of(2, EVENT_STAGING));
    ck_assert(each_event(reader_events(rig.reader, 1, 0, 10, &rig.err), visit_event, &read));
    ck_assert_ptr_nonnull(strstr(read.bytes, "submitted"));
    ck_assert_ptr_nonnull(strstr(read.bytes, "staging"));
    bool found = false;
    text_clear(&read);
    ck_assert(one_job(reader_job(rig.reader, rig_id(1), &rig.err), visit_one_job, &read, &found));
    ck_assert(found);
    ck_assert(pages_are_summed(rig.store->connection.db));
}
END_TEST

START_TEST(a_database_of_the_newest_version_without_sums_is_refused)
{
    rig_write_one(job_insert(1));
    rig_close();
    meddle_without_sums("PRAGMA user_version = 8");
    expect_refused(ERR_DAMAGED, "no sums");
}
END_TEST

START_TEST(a_database_that_another_program_wrote_to_is_refused)
{
    rig_write_one(job_insert(1));
    rig_close();
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(rig.path, &db), SQLITE_OK);
    run(db, "UPDATE jobs SET owner = 'mallory'");
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    expect_refused(ERR_DAMAGED, "restore");
}
END_TEST

/* The database, its log and its mark, one after the other. The log's index is no data: whoever reads notes
 * there how far it may read. */
static char *read_all_files(size_t *ret_size)
{
    static const char *const suffixes[] = {"", "-wal", ".incarnation"};
    struct text all = {0};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        autofree char *path = xprintf("%s%s", rig.path, suffixes[i]);
        autofree char *bytes = NULL;
        size_t size;
        ck_assert_msg(file_read(path, 1 << 24, &bytes, &size, &rig.err), "%s", rig.err.text);
        text_append_bytes(&all, bytes, size);
    }
    *ret_size = all.length;
    return text_take(&all);
}

static void expect_refused_untouched(enum err_code code, const char *text)
{
    size_t size_before, size_after;
    autofree char *before = read_all_files(&size_before);
    expect_refused(code, text);
    autofree char *after = read_all_files(&size_after);
    autofree char *backups = xprintf("%s/backups", rig.folder);
    ck_assert_uint_eq(size_before, size_after);
    ck_assert_mem_eq(before, after, size_before);
    ck_assert_int_ne(access(backups, F_OK), 0);
}

/* The change is in the log still, and nobody has the database open: as after a kill. */
static void meddle_in_log(const char *sql)
{
    sqlite3 *db;
    rig_close();
    ck_assert_int_eq(sqlite3_open(rig.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

START_TEST(a_newer_schema_is_refused_and_all_its_files_left_as_they_are)
{
    rig_write_one(job_insert(1));
    meddle_in_log("PRAGMA user_version = 1000");
    expect_refused_untouched(ERR_IO, "schema version 1000");
}
END_TEST

START_TEST(a_database_of_another_program_is_refused)
{
    remove_database();
    rig_meddle("CREATE TABLE recipes (cake TEXT)");
    expect_refused(ERR_IO, "another program");
}
END_TEST

START_TEST(a_database_of_another_application_is_refused_and_left_as_it_is)
{
    rig_write_one(job_insert(1));
    meddle_in_log("PRAGMA application_id = 42");
    expect_refused_untouched(ERR_IO, "another program");
}
END_TEST

START_TEST(a_file_that_is_no_database_is_refused)
{
    remove_database();
    ck_assert(file_replace(rig.path, "once upon a time, long before the first page", 44, 0600, &rig.err));
    expect_refused(ERR_DAMAGED, "not a database");
}
END_TEST

START_TEST(a_statement_that_does_not_fit_the_tables_ends_the_start)
{
    rig_close();
    rig_meddle("ALTER TABLE tokens RENAME COLUMN owner TO person");
    expect_refused(ERR_IO, "owner");
    rig.reader = reader_open(rig.path, &rig.err);
    ck_assert_ptr_null(rig.reader);
    ck_assert_ptr_nonnull(strstr(rig.err.text, "owner"));
}
END_TEST

START_TEST(every_statement_is_prepared_by_one_kind_of_connection)
{
    struct connection checker, copier;
    ck_assert(connection_open(&checker, rig.path, CONNECTION_CHECKER, NULL, &rig.err));
    ck_assert(connection_open(&copier, rig.path, CONNECTION_COPIER, NULL, &rig.err));
    for (int sql = 0; sql < SQL_COUNT; sql++) {
        int times = (rig.store->connection.statements[sql] != NULL) +
                    (rig.reader->connection.statements[sql] != NULL) + (checker.statements[sql] != NULL) +
                    (copier.statements[sql] != NULL);
        ck_assert_msg(times == 1, "statement %d", sql);
    }
    connection_close(&checker);
    connection_close(&copier);
}
END_TEST

static void remove_beside(const char *suffix)
{
    autofree char *name = xprintf("%s%s", rig.path, suffix);
    ck_assert_int_eq(unlink(name), 0);
}

/* A14: any of what lies beside it tells that there was one. */
START_TEST(a_database_that_was_emptied_or_removed_is_refused_while_anything_tells_of_it)
{
    rig_write_one(job_insert(1));
    rig_close();
    ck_assert_int_eq(truncate(rig.path, 1), 0); /* which SQLite takes for an empty one */
    expect_refused(ERR_DAMAGED, "is empty");
    ck_assert_int_eq(truncate(rig.path, 0), 0);
    expect_refused(ERR_DAMAGED, "is empty");
    remove_beside("");
    expect_refused(ERR_DAMAGED, "is gone");
    ck_assert_ptr_nonnull(strstr(rig.err.hint, "gpuctl admin restore"));
    ck_assert_ptr_nonnull(strstr(rig.err.hint, "move the whole state folder away"));
    remove_beside(".lock");
    expect_refused(ERR_DAMAGED, "is gone");
    remove_beside("-wal");
    expect_refused(ERR_DAMAGED, "is gone");
    remove_beside(".incarnation");
    rig_reopen();
    ck_assert_int_eq(store_next_job_key(rig.store), 1);
}
END_TEST

START_TEST(a_second_writer_is_refused_while_the_first_is_open)
{
    struct store *first = rig.store;
    expect_refused(ERR_CONFLICT, "another controller");
    rig.store = first;
    rig_reopen();
}
END_TEST

START_TEST(only_the_owner_may_read_the_files)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", ".lock"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        struct stat status;
        autofree char *path = xprintf("%s%s", rig.path, suffixes[i]);
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_msg((status.st_mode & 0777) == 0600, "%s has mode %o", path, status.st_mode & 0777);
    }
}
END_TEST

START_TEST(a_folder_that_is_not_there_is_named)
{
    rig_close();
    struct store *store = store_open("/nowhere/at/all/db", &rig.err);
    ck_assert_ptr_null(store);
    ck_assert_ptr_nonnull(strstr(rig.err.text, "/nowhere/at/all/db"));
    ck_assert_ptr_null(reader_open("/nowhere/at/all/db", &rig.err));
}
END_TEST

START_TEST(a_reader_can_neither_write_nor_checkpoint)
{
    sqlite3 *db = rig.reader->connection.db;
    rig_write_one(job_insert(1));
    ck_assert_int_eq(sqlite3_exec(db, "DELETE FROM jobs", NULL, NULL, NULL), SQLITE_READONLY);
    ck_assert_int_ne(sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL), SQLITE_OK);
}
END_TEST

static void expect_setting(sqlite3 *db, const char *pragma, const char *expected)
{
    char value[32] = "";
    ck_assert_int_eq(sqlite3_exec(db, pragma, take_text, value, NULL), SQLITE_OK);
    ck_assert_msg(strcmp(value, expected) == 0, "%s is %s", pragma, value);
}

START_TEST(connections_have_the_settings_that_durability_needs)
{
    sqlite3 *writer = rig.store->connection.db;
    sqlite3 *reader = rig.reader->connection.db;
    expect_setting(writer, "PRAGMA journal_mode", "wal");
    expect_setting(writer, "PRAGMA synchronous", "2");
    expect_setting(writer, "PRAGMA page_size", "4096");
    expect_setting(reader, "PRAGMA query_only", "1");
    sqlite3 *const both[] = {writer, reader};
    for (int i = 0; i < 2; i++) {
        expect_setting(both[i], "PRAGMA mmap_size", "0");
        expect_setting(both[i], "PRAGMA trusted_schema", "0");
        expect_setting(both[i], "PRAGMA foreign_keys", "0");
        int on = 0;
        ck_assert_int_eq(sqlite3_db_config(both[i], SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, -1, &on), SQLITE_OK);
        ck_assert_int_eq(on, 1);
        ck_assert_int_eq(sqlite3_db_config(both[i], SQLITE_DBCONFIG_DEFENSIVE, -1, &on), SQLITE_OK);
        ck_assert_int_eq(on, 1);
    }
    expect_setting(reader, "PRAGMA wal_autocheckpoint",
                   "0"); /* asking the writer would end its count of pages */
}
END_TEST

Suite *store_open_suite(void)
{
    Suite *suite = suite_create("store-open");
    TCase *cases = tcase_create("open");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_add_test(cases, each_opening_has_a_larger_incarnation);
    tcase_add_test(cases, keys_of_jobs_go_on_after_the_largest);
    tcase_add_test(cases, a_database_of_the_first_version_goes_on_with_all_its_rows);
    tcase_add_test(cases, a_database_of_the_eleventh_version_takes_the_roles_of_today_and_keeps_its_tokens);
    tcase_add_test(cases, a_database_of_the_eleventh_version_finds_which_jobs_each_node_had);
    tcase_add_test(cases, an_attempt_of_the_fourth_version_has_no_moments_and_gets_those_that_come);
    tcase_add_test(cases, a_database_of_the_third_version_takes_the_causes_of_today);
    tcase_add_test(cases, a_database_of_the_tenth_version_takes_the_events_of_today_and_keeps_its_own);
    tcase_add_test(cases, a_database_of_the_fifteenth_version_takes_attempts_that_are_kept_and_keeps_its_own);
    tcase_add_test(cases, a_database_of_the_ninth_version_takes_the_role_of_today_and_keeps_its_tokens);
    tcase_add_test(cases,
                   a_database_of_the_second_version_learns_priority_and_limit_of_live_jobs_from_their_specs);
    tcase_add_test(cases, a_database_of_the_newest_version_without_sums_is_refused);
    tcase_add_test(cases, a_database_that_another_program_wrote_to_is_refused);
    tcase_add_test(cases, a_newer_schema_is_refused_and_all_its_files_left_as_they_are);
    tcase_add_test(cases, a_database_of_another_application_is_refused_and_left_as_it_is);
    tcase_add_test(cases, a_database_of_another_program_is_refused);
    tcase_add_test(cases, a_file_that_is_no_database_is_refused);
    tcase_add_test(cases, a_statement_that_does_not_fit_the_tables_ends_the_start);
    tcase_add_test(cases, every_statement_is_prepared_by_one_kind_of_connection);
    tcase_add_test(cases, a_database_that_was_emptied_or_removed_is_refused_while_anything_tells_of_it);
    tcase_add_test(cases, a_second_writer_is_refused_while_the_first_is_open);
    tcase_add_test(cases, only_the_owner_may_read_the_files);
    tcase_add_test(cases, a_folder_that_is_not_there_is_named);
    tcase_add_test(cases, a_reader_can_neither_write_nor_checkpoint);
    tcase_add_test(cases, connections_have_the_settings_that_durability_needs);
    suite_add_tcase(suite, cases);
    return suite;
}
