/* SPDX-License-Identifier: Apache-2.0 */
/* The search language: what it finds, what it refuses and where, and that it is no way into the database. */
#include <string.h>

#include "proto/base/cleanup.h"
#include "tests/unit/mlflow/mlflow_rig.h"
#include "tests/unit/mlflow/mlflow_suites.h"

/* Three runs: a (finished, loss 0.1), b (running, loss 0.9, NaN), c (without anything). */
static const char *ids[3];

static void setup(void)
{
    static const char *const names[] = {"alpha", "Beta", "gamma's"};
    mlflow_setup();
    for (int i = 0; i < 3; i++) {
        ids[i] = mlflow_run("0", names[i]);
    }
    mlflow_log(ids[0], "loss", 0.1, 1, 1);
    mlflow_log(ids[1], "loss", 0.9, 1, 1);
    mlflow_log(ids[0], "val/loss x", 5, 1, 1);
    mlflow_ask("POST runs/log-metric", json_pack("{s:s, s:s, s:s, s:i}", "run_id", ids[1], "key", "odd",
                                                 "value", "NaN", "timestamp", 1));
    mlflow_log(ids[0], "odd", -3, 1, 1);
    mlflow_param(ids[0], "opt", "adam");
    mlflow_param(ids[1], "opt", "Adamax");
    mlflow_tag(ids[0], "mlflow.parentRunId", "p1");
    mlflow_tag(ids[1], "a share", "100%");
    mlflow_ask("POST runs/update", json_pack("{s:s, s:s, s:I}", "run_id", ids[0], "status", "FINISHED",
                                             "end_time", (json_int_t)1700000009000));
}

static json_t *body(const char *filter)
{
    return json_pack("{s:[s], s:s, s:[s]}", "experiment_ids", "0", "filter", filter, "order_by",
                     "start_time ASC");
}

/* wanted: the first letters of the runs that are found, oldest first. */
static void finds(const char *filter, const char *wanted)
{
    json_t *runs = mlflow_at(mlflow_ask("POST runs/search", body(filter)), "runs");
    autotext struct text found = {0};
    text_append(&found, "");
    for (size_t i = 0; i < json_array_size(runs); i++) {
        text_append_bytes(&found, mlflow_text(json_array_get(runs, i), "info.run_name"), 1);
    }
    ck_assert_msg(strcmp(found.bytes, wanted) == 0, "%s finds %s, not %s", filter, found.bytes, wanted);
}

static void refuses(const char *filter, const char *text)
{
    mlflow_refuse("POST runs/search", body(filter), TRACKING_INVALID_PARAMETER_VALUE, text);
}

START_TEST(metrics_are_compared_as_numbers)
{
    finds("", "aBg");
    finds("metrics.loss > 0.5", "B");
    finds("metrics.loss >= 0.9", "B");
    finds("metrics.loss < 9e-1", "a");
    finds("metric.loss<=0.9", "aB");
    finds("metrics.loss = 0.1", "a");
    finds("metrics.loss != 0.1", "B");
    finds("metrics.loss > -1", "aB");
    finds("metrics.`val/loss x` = 5", "a");
    finds("metrics.\"val/loss x\" = 5", "a");
    finds("metrics.val/loss = 5", "");
}
END_TEST

START_TEST(nan_is_unequal_to_every_number_and_nothing_else)
{
    finds("metrics.odd != 0", "aB");
    finds("metrics.odd != -3", "B");
    finds("metrics.odd = 0", "");
    finds("metrics.odd <= 0", "a");
    finds("metrics.odd > -100", "a");
}
END_TEST

START_TEST(parameters_and_tags_are_compared_as_texts)
{
    finds("params.opt = 'adam'", "a");
    finds("params.opt = \"adam\"", "a");
    finds("parameters.opt != 'adam'", "B");
    finds("param.opt LIKE 'Adam%'", "B");
    finds("params.opt like 'adam_'", "");
    finds("params.opt ILIKE 'ADAM%'", "aB");
    finds("tags.mlflow.parentRunId = 'p1'", "a");
    finds("tags.`mlflow.runName` LIKE 'g%'", "g");
    finds("tag.\"a share\" = '100%'", "B");
    finds("tags.`mlflow.runName` = 'gamma''s'", "g");
    finds("tags.`mlflow.runName` = \"gamma's\"", "g");
}
END_TEST

START_TEST(attributes_are_columns_of_the_run)
{
    finds("attributes.status = 'RUNNING'", "Bg");
    finds("status != 'RUNNING'", "a");
    finds("attribute.run_name ILIKE 'BETA'", "B");
    finds("`run_name` = 'alpha'", "a");
    finds("attr.start_time > 1700000000000", "Bg");
    finds("end_time > 0", "a");
    finds("end_time IS NULL", "Bg");
    finds("attributes.user_id = 'ada'", "aBg");
    finds("attributes.artifact_uri LIKE 'mlflow-artifacts:/0/%'", "aBg");
    finds("attributes.experiment_id = '0'", "aBg");
    autofree char *by_id = xprintf("run_id IN ('%s', '%s','none')", ids[0], ids[2]);
    finds(by_id, "ag");
    autofree char *by_others = xprintf("attributes.run_id NOT IN (\"%s\")", ids[0]);
    finds(by_others, "Bg");
}
END_TEST

START_TEST(comparisons_are_joined_by_and_in_any_case)
{
    finds("metrics.loss > 0 AND params.opt ILIKE 'adam%' and status = 'RUNNING'", "B");
    finds("metrics.loss>0.5 aNd metrics.loss<0.6", "");
    finds("  params.opt\n=\t'adam'  ", "a");
}
END_TEST

START_TEST(it_can_be_asked_whether_there_is_a_value)
{
    finds("tags.mlflow.parentRunId IS NULL", "Bg");
    finds("params.opt IS NOT NULL", "aB");
    finds("metrics.odd is null", "g");
}
END_TEST

START_TEST(what_is_wrong_is_refused_with_its_place)
{
    refuses("metrics.loss > 'x'", "'x' at character 16, where a number is expected");
    refuses("metrics.loss >", "ends where a number");
    refuses("metrics.loss", "ends where one of =, !=, <");
    refuses("metrics.loss > 0x10", "a number");
    refuses("metrics.loss > nan", "a number");
    refuses("metrics.loss > 1e999", "a number");
    refuses("metrics.loss LIKE '1'", "'LIKE' at character 14");
    refuses("params.opt > 'a'", "'>' at character 12");
    refuses("params.opt = adam", "'adam' at character 14, where a text in quotes");
    refuses("params.opt = `adam`", "a text in quotes");
    refuses("params.opt = 'adam", "the quote ' at character 14 is not closed");
    refuses("colours.x = 'a'", "'colours.x' at character 1, where a name that begins with metrics.");
    refuses("height = 3", "'height' at character 1 is no attribute. Known are: run_id, run_name");
    refuses("metrics.loss > 1 OR metrics.loss < 0", "'OR' at character 18, where AND or the end");
    refuses("metrics.loss > 1 AND", "ends where a name");
    refuses("(metrics.loss > 1)", "'(' at character 1");
    refuses("params. `opt` = 'a'", "at character 9, where a key");
    refuses("params. = 'a'", "where a key");
    refuses("status IN ()", "')' at character 12");
    refuses("status IN ('a' 'b')", "a comma or a closing parenthesis");
    refuses("status IN 'a'", "a list in parentheses");
    refuses("status NOT LIKE 'a'", "'LIKE' at character 12");
    refuses("params.opt = 'a' 'b'", "AND or the end");
    refuses("dataset.colour = 'a'", "Known are: name, digest, context");
    refuses("params.opt IS 'a'", "NULL or NOT NULL");
}
END_TEST

START_TEST(what_a_client_writes_never_becomes_sql)
{
    static const char *const attempts[] = {
        "params.opt = 'x' OR 1=1",
        "params.opt = 'x'; DROP TABLE runs",
        "params.opt = 'x' -- ",
        "1=1",
        "runs.id = 'x'",
        "metrics.loss > 0) OR (1=1",
        "metrics.loss > (SELECT 1)",
        "run_id IN (SELECT id FROM runs)",
        "status = 'a' UNION SELECT * FROM runs",
        "metrics.`loss = `; --` > 1 ; x",
    };
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
        refuses(attempts[i], "Invalid filter");
    }
    finds("params.opt = 'x'' OR ''1''=''1'", "");
    finds("params.`opt') OR 1=1 --` = 'x'", "");
    finds("params.\"a\"\" OR \"\"1\" = 'x'", "");
    finds("run_id IN ('\"]) OR 1=1 --')", "");
    finds("", "aBg");
}
END_TEST

START_TEST(a_filter_has_limits)
{
    autotext struct text filter = {0};
    for (int i = 0; i < 64; i++) {
        text_append(&filter, i > 0 ? " AND metrics.loss > 0" : "metrics.loss > 0");
    }
    finds(filter.bytes, "aB");
    text_append(&filter, " AND metrics.loss > 0");
    refuses(filter.bytes, "more than 64 comparisons");
    text_clear(&filter);
    while (filter.length <= 16384) {
        text_append(&filter, "                                ");
    }
    refuses(filter.bytes, "longer than 16384 bytes");
}
END_TEST

START_TEST(an_order_that_is_none_is_refused_with_its_place)
{
    static const struct {
        const char *order, *text;
    } cases[] = {
        {"metrics.loss DOWN", "'DOWN' at character 14, where ASC, DESC or the end"},
        {"metrics.loss DESC, run_id", "',' at character 18"},
        {"metrics.loss; DROP TABLE runs", "';' at character 13"},
        {"height", "no attribute"},
        {"", "ends where a name"},
        {"dataset.name", "cannot be ordered by data sets"},
        {"(SELECT 1)", "'(' at character 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mlflow_refuse("POST runs/search",
                      json_pack("{s:[s], s:[s]}", "experiment_ids", "0", "order_by", cases[i].order),
                      TRACKING_INVALID_PARAMETER_VALUE, cases[i].text);
    }
}
END_TEST

Suite *mlflow_filter_suite(void)
{
    Suite *suite = suite_create("mlflow-filter");
    TCase *tests = tcase_create("filter");
    tcase_add_checked_fixture(tests, setup, mlflow_teardown);
    tcase_add_test(tests, metrics_are_compared_as_numbers);
    tcase_add_test(tests, nan_is_unequal_to_every_number_and_nothing_else);
    tcase_add_test(tests, parameters_and_tags_are_compared_as_texts);
    tcase_add_test(tests, attributes_are_columns_of_the_run);
    tcase_add_test(tests, comparisons_are_joined_by_and_in_any_case);
    tcase_add_test(tests, it_can_be_asked_whether_there_is_a_value);
    tcase_add_test(tests, what_is_wrong_is_refused_with_its_place);
    tcase_add_test(tests, what_a_client_writes_never_becomes_sql);
    tcase_add_test(tests, a_filter_has_limits);
    tcase_add_test(tests, an_order_that_is_none_is_refused_with_its_place);
    suite_add_tcase(suite, tests);
    return suite;
}
