/* SPDX-License-Identifier: Apache-2.0 */
/* The removal of runs: which are over, that nothing of them is left, and that no other run gets their rows.
 */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "tests/unit/mlflow/mlflow_rig.h"
#include "tests/unit/mlflow/mlflow_suites.h"

static int64_t count(const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    ck_assert_int_eq(sqlite3_open_v2(mlflow.path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

static int64_t rows(void)
{
    return count(
        "SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM metrics) + (SELECT count(*) FROM points) "
        "+ "
        "(SELECT count(*) FROM params) + (SELECT count(*) FROM tags) + (SELECT count(*) FROM inputs) + "
        "(SELECT count(*) FROM outputs) + (SELECT count(*) FROM copied) + (SELECT count(*) FROM models) + "
        "(SELECT count(*) FROM model_params) + (SELECT count(*) FROM model_tags) + (SELECT count(*) FROM "
        "removals)");
}

/* A run with rows of most kinds. */
static const char *full_run(const char *name)
{
    const char *id = mlflow_run("0", name);
    for (int64_t i = 0; i < 20; i++) {
        mlflow_log(id, i % 2 == 0 ? "loss" : "accuracy", 0.5, 1000 + i, i);
    }
    mlflow_param(id, "lr", "0.1");
    mlflow_tag(id, "who", "me");
    mlflow_ask("POST logged-models",
               json_pack("{s:s, s:s, s:s, s:[{s:s, s:s}]}", "experiment_id", "0", "name", "m",
                         "source_run_id", id, "params", "key", "depth", "value", "3"));
    return id;
}

static void end(const char *id, int64_t end_ms)
{
    mlflow_ask("POST runs/update", json_pack("{s:s, s:s, s:I}", "run_id", id, "status", "FINISHED",
                                             "end_time", (json_int_t)end_ms));
}

struct found {
    int64_t keys[16], at_ms[16];
    char projects[16][32];
    size_t count;
};

static void take(const struct tracking_over *run, void *closure)
{
    struct found *found = closure;
    found->keys[found->count] = run->key;
    found->at_ms[found->count] = run->at_ms;
    snprintf(found->projects[found->count++], 32, "%s", run->project != NULL ? run->project : "-");
}

/* All runs that are over, two at a time. */
static struct found over(void)
{
    struct found found = {.count = 0};
    int64_t after_key = 0;
    bool last = false;
    while (!last) {
        ck_assert(tracking_runs_over(mlflow.tracking, &after_key, 2, take, &found, &last, &mlflow.error));
    }
    return found;
}

static bool remove_run(int64_t key, int64_t by_ms)
{
    bool removed = false;
    ck_assert(tracking_run_remove(mlflow.tracking, key, by_ms, &removed, &mlflow.error));
    return removed;
}

/* All removals, few rows at a time; how many pieces that took. */
static int finish(void)
{
    int pieces = 0;
    for (;;) {
        struct tracking_removal removal;
        bool done = false;
        ck_assert(tracking_removal_next(mlflow.tracking, &removal, &mlflow.error));
        int64_t key = removal.key;
        tracking_removal_finish(&removal);
        if (key == 0) {
            return pieces;
        }
        for (; !done; pieces++) {
            ck_assert(pieces < 100);
            ck_assert(tracking_removal_piece(mlflow.tracking, key, 3, &done, &mlflow.error));
        }
    }
}

START_TEST(runs_are_over_once_they_ended_or_were_deleted)
{
    const char *ended = mlflow_run("0", "ended"), *deleted = mlflow_run("0", "deleted");
    mlflow_run("0", "running");
    end(ended, 5000);
    mlflow_ask("POST runs/delete", json_pack("{s:s}", "run_id", deleted));
    struct found found = over();
    ck_assert_uint_eq(found.count, 2);
    ck_assert_int_eq(found.at_ms[0], 5000);
    ck_assert_str_eq(found.projects[0], "default");
}
END_TEST

START_TEST(nothing_is_left_of_a_removed_run_and_all_of_the_others)
{
    const char *other = full_run("other");
    int64_t before = rows();
    const char *old = full_run("old");
    end(old, 5000);
    end(other, 7000);
    struct found found = over();
    ck_assert_uint_eq(found.count, 2);
    ck_assert(!remove_run(found.keys[1], 4999)); /* not that old */
    ck_assert(remove_run(found.keys[1], 5000));
    mlflow_refuse("GET runs/get", json_pack("{s:s}", "run_id", old), TRACKING_RESOURCE_DOES_NOT_EXIST,
                  "not found");
    ck_assert_int_gt(finish(), 5);
    ck_assert_int_eq(rows(), before);
    mlflow_get(other);
}
END_TEST

START_TEST(a_new_run_has_no_rows_of_one_whose_removal_is_not_finished)
{
    const char *old = full_run("old");
    end(old, 5000);
    ck_assert(remove_run(over().keys[0], 5000));
    mlflow_reopen();
    const char *young = mlflow_run("0", "young");
    ck_assert_uint_eq(json_array_size(mlflow_at(mlflow_get(young), "data.metrics")), 0);
    ck_assert_ptr_null(mlflow_value(mlflow_at(mlflow_get(young), "data.tags"), "who"));
    int64_t before = count("SELECT count(*) FROM tags JOIN runs ON runs.key = run");
    ck_assert_int_gt(finish(), 5);
    ck_assert_int_eq(count("SELECT count(*) FROM tags JOIN runs ON runs.key = run"), before);
    ck_assert_int_eq(count("SELECT count(*) FROM points"), 0);
}
END_TEST

START_TEST(a_run_of_which_a_registered_model_is_made_stays)
{
    const char *id = full_run("best");
    end(id, 5000);
    mlflow_ask("POST registered-models/create", json_pack("{s:s}", "name", "net"));
    autofree char *source = xprintf("mlflow-artifacts:/0/%s/artifacts/net", id);
    mlflow_ask("POST model-versions/create",
               json_pack("{s:s, s:s, s:s}", "name", "net", "source", source, "run_id", id));
    ck_assert_uint_eq(over().count, 0);
    mlflow_ask("DELETE model-versions/delete", json_pack("{s:s, s:s}", "name", "net", "version", "1"));
    ck_assert_uint_eq(over().count, 1);
}
END_TEST

START_TEST(the_file_gives_back_what_removed_runs_took)
{
    const char *old = mlflow_run("0", "old");
    for (int64_t i = 0; i < 3000; i++) {
        mlflow_log(old, "loss", 0.5, 1000 + i, i);
    }
    end(old, 5000);
    int64_t full, now, unused;
    ck_assert(tracking_file_use(mlflow.tracking, &full, &unused, &mlflow.error));
    ck_assert(remove_run(over().keys[0], 5000));
    struct tracking_removal removal;
    ck_assert(tracking_removal_next(mlflow.tracking, &removal, &mlflow.error));
    bool done = false;
    while (!done) {
        ck_assert(tracking_removal_piece(mlflow.tracking, removal.key, 1000, &done, &mlflow.error));
    }
    tracking_removal_finish(&removal);
    ck_assert(tracking_shrink(mlflow.tracking, 1, &mlflow.error));
    ck_assert(tracking_file_use(mlflow.tracking, &now, &unused, &mlflow.error));
    ck_assert_int_eq(now, full - 4096);
    ck_assert(tracking_shrink(mlflow.tracking, 1000, &mlflow.error));
    ck_assert(tracking_file_use(mlflow.tracking, &now, &unused, &mlflow.error));
    ck_assert_int_eq(unused, 0);
    ck_assert_int_lt(now, full / 2 + 100000);
}
END_TEST

Suite *mlflow_removal_suite(void)
{
    Suite *suite = suite_create("mlflow-removal");
    TCase *cases = tcase_create("removal");
    tcase_add_checked_fixture(cases, mlflow_setup, mlflow_teardown);
    tcase_add_test(cases, runs_are_over_once_they_ended_or_were_deleted);
    tcase_add_test(cases, nothing_is_left_of_a_removed_run_and_all_of_the_others);
    tcase_add_test(cases, a_new_run_has_no_rows_of_one_whose_removal_is_not_finished);
    tcase_add_test(cases, a_run_of_which_a_registered_model_is_made_stays);
    tcase_add_test(cases, the_file_gives_back_what_removed_runs_took);
    suite_add_tcase(suite, cases);
    return suite;
}
