/* SPDX-License-Identifier: Apache-2.0 */
/* Databases of every released schema: what they hold reads back the same after the migration, and what they
 * were stays beside them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/database/connection.h"
#include "daemon/store/database/schema_version.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "tests/unit/store/old_database.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

static void begin(void)
{
    rig_begin();
    rig_close();
    ck_assert_int_eq(unlink(rig.path), 0);
    autofree char *log = xprintf("%s-wal", rig.path);
    autofree char *mark = xprintf("%s.incarnation", rig.path);
    autofree char *lock = xprintf("%s.lock", rig.path);
    unlink(log);
    unlink(mark);
    unlink(lock);
}

static char *kept_path(void)
{
    return xprintf("%s/backups/before-schema-%lld.db", rig.folder, (long long)schema_newest());
}

static char *rows_of(const char *path)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    char *rows = old_database_rows(db);
    sqlite3_close(db);
    return rows;
}

static int64_t version_of(const char *path)
{
    sqlite3 *db;
    int64_t version;
    ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ck_assert(schema_version(db, &version, &rig.err));
    sqlite3_close(db);
    return version;
}

START_TEST(every_released_schema_is_migrated_with_all_its_rows_and_kept)
{
    autofree char *kept = kept_path();
    old_database_make(rig.path, _i);
    autofree char *before = rows_of(rig.path);
    rig.store = store_open(rig.path, &rig.err);
    ck_assert_msg(rig.store != NULL, "%s", rig.err.text);
    rig_close();
    autofree char *after = rows_of(rig.path);
    autofree char *in_copy = rows_of(kept);
    ck_assert_str_eq(before, after);
    ck_assert_str_eq(before, in_copy);
    ck_assert_int_eq(version_of(rig.path), schema_newest());
    ck_assert_int_eq(version_of(kept), _i);
    ck_assert_ptr_nonnull(strstr(before, "alice")); /* they say something */
}
END_TEST

START_TEST(a_copy_that_cannot_be_made_leaves_the_database_as_it_is)
{
    autofree char *in_the_way = xprintf("%s/backups", rig.folder);
    old_database_make(rig.path, 1);
    ck_assert(file_replace(in_the_way, "no folder", 9, 0600, &rig.err));
    ck_assert_ptr_null(store_open(rig.path, &rig.err));
    ck_assert_ptr_nonnull(strstr(rig.err.text, "backups"));
    ck_assert_int_eq(version_of(rig.path), 1);
}
END_TEST

START_TEST(what_a_start_before_left_half_copied_is_made_anew)
{
    autofree char *kept = kept_path();
    autofree char *folder = xprintf("%s/backups", rig.folder);
    autofree char *arriving = xprintf("%s/arriving.db", folder);
    ck_assert(file_make_directories(folder, 0700, &rig.err));
    ck_assert(file_replace(arriving, "half of it", 10, 0600, &rig.err));
    old_database_make(rig.path, 2);
    rig.store = store_open(rig.path, &rig.err);
    ck_assert_msg(rig.store != NULL, "%s", rig.err.text);
    ck_assert_int_eq(version_of(kept), 2);
    ck_assert_int_ne(access(arriving, F_OK), 0);
}
END_TEST

START_TEST(a_database_of_the_newest_schema_is_not_copied)
{
    autofree char *folder = xprintf("%s/backups", rig.folder);
    rig_reopen();
    rig_reopen();
    ck_assert_int_ne(access(folder, F_OK), 0);
}
END_TEST

Suite *store_migration_suite(void)
{
    Suite *suite = suite_create("store-migration");
    TCase *cases = tcase_create("migration");
    tcase_add_checked_fixture(cases, begin, rig_end);
    tcase_add_loop_test(cases, every_released_schema_is_migrated_with_all_its_rows_and_kept, 1,
                        (int)schema_newest());
    tcase_add_test(cases, a_copy_that_cannot_be_made_leaves_the_database_as_it_is);
    tcase_add_test(cases, what_a_start_before_left_half_copied_is_made_anew);
    tcase_add_test(cases, a_database_of_the_newest_schema_is_not_copied);
    suite_add_tcase(suite, cases);
    return suite;
}
