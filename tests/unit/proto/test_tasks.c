/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of arrays and sweeps in a spec, and of proto/tasks: ids, values, and what is put in their places. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/spec/tasks.h"
#include "tests/unit/proto/proto_suites.h"

/* Fails unless the spec is taken. */
static struct job_spec decode(const char *quoted)
{
    struct job_spec spec;
    struct err err = {0};
    ck_assert_msg(job_spec_decode(parse_quoted(quoted), LIMIT_LEASE_MIN_MS, &spec, &err), "%s", err.text);
    return spec;
}

static void refused(const char *quoted, enum err_code code, const char *field, const char *part)
{
    struct job_spec spec;
    struct err err = {0};
    ck_assert(!job_spec_decode(parse_quoted(quoted), LIMIT_LEASE_MIN_MS, &spec, &err));
    ck_assert_int_eq(err.code, code);
    ck_assert_str_eq(err.field, field);
    ck_assert_msg(strstr(err.text, part) != NULL, "%s", err.text);
}

/* --- what is taken --- */

START_TEST(an_array_says_how_many_and_how_many_at_a_time)
{
    struct job_spec spec = decode("{'gpus':1,'command':['x'],'array':{'tasks':100,'parallel':8}}");
    ck_assert_int_eq(spec.tasks, 100);
    ck_assert_int_eq(spec.parallel, 8);
    job_spec_finish(&spec);
    spec = decode("{'gpus':1,'command':['x'],'array':null,'sweep':null}");
    ck_assert_int_eq(spec.tasks, 0);
    job_spec_finish(&spec);
}
END_TEST

START_TEST(a_sweep_makes_a_task_for_each_choice)
{
    struct job_spec spec = decode("{'gpus':1,'command':['x'],'array':{'parallel':2},'sweep':{'lr':[0.1,0.01,"
                                  "1e-5],'batch':[32,'big']}}");
    ck_assert_int_eq(spec.tasks, 6);
    ck_assert_int_eq(spec.parallel, 2);
    job_spec_finish(&spec);
}
END_TEST

START_TEST(a_list_of_tasks_has_each_of_them_at_its_place)
{
    autofree struct task_list *list = task_list_read("3,7,10-12,19", 20);
    static const int64_t numbers[] = {3, 7, 10, 11, 12, 19};
    ck_assert_int_eq(task_list_count(list), 6);
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(task_list_at(list, i), numbers[i]);
        ck_assert_int_eq(task_list_place(list, numbers[i]), i);
    }
    ck_assert_int_eq(task_list_place(list, 4), -1);
    ck_assert_int_eq(task_list_place(list, 20), -1);
    autofree struct task_list *copy = task_list_copy(list);
    ck_assert_int_eq(task_list_at(copy, 5), 19);
    ck_assert_ptr_null(task_list_copy(NULL));
}
END_TEST

START_TEST(other_lists_of_tasks_are_refused)
{
    static const char *const wrong[] = {"",      ",",   "1,",  ",1", "1,,2", "2,1",  "1,1",
                                        "1-3,3", "3-1", "-1",  "1-", "20",   "1-20", "99999999999999999999",
                                        "1 ",    "+1",  "0x1", "a"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(task_list_read(wrong[i], 20) == NULL, "%s", wrong[i]);
    }
    autotext struct text many = {0};
    for (int i = 0; i <= LIMIT_TASK_RANGES; i++) {
        text_printf(&many, "%s%d", i > 0 ? "," : "", 2 * i);
    }
    ck_assert_ptr_null(task_list_read(many.bytes, LIMIT_ARRAY_TASKS));
    *strrchr(many.bytes, ',') = '\0';
    autofree struct task_list *most = task_list_read(many.bytes, LIMIT_ARRAY_TASKS);
    ck_assert_int_eq(task_list_at(most, LIMIT_TASK_RANGES - 1), 2 * LIMIT_TASK_RANGES - 2);
}
END_TEST

START_TEST(arrays_and_sweeps_survive_encode_and_decode)
{
    static const char *const specs[] = {
        "{'gpus':1,'command':['x'],'array':{'tasks':3,'parallel':2}}",
        "{'gpus':1,'command':['x'],'sweep':{'lr':[0.1,'a']}}",
        "{'gpus':1,'command':['x'],'array':{'parallel':1},'sweep':{'lr':[0.1]}}",
        "{'gpus':1,'command':['x'],'array':{'only':'1'},'sweep':{'lr':[0.1,0.2]}}",
    };
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct job_spec spec = decode(specs[i]);
        autojson json_t *encoded = job_spec_encode(&spec);
        autojson json_t *expected = parse_quoted(specs[i]);
        ck_assert_msg(json_equal(encoded, expected), "%s", specs[i]);
        job_spec_finish(&spec);
    }
}
END_TEST

/* --- what is refused --- */

#define JOB "{'gpus':1,'command':['x'],"

START_TEST(a_refusal_names_the_field)
{
    refused(JOB "'array':3}", ERR_FIELD, "array", "must be an object");
    refused(JOB "'array':{}}", ERR_FIELD, "array.tasks", "is missing");
    refused(JOB "'array':{'tasks':0}}", ERR_FIELD, "array.tasks", "array.tasks must be");
    refused(JOB "'array':{'tasks':1000001}}", ERR_FIELD, "array.tasks", "1 to 1000000");
    refused(JOB "'array':{'tasks':3,'parallel':0}}", ERR_FIELD, "array.parallel", "array.parallel must be");
    refused(JOB "'array':{'tasks':3,'only':'3'}}", ERR_FIELD, "array.only", "must be a list");
    refused(JOB "'array':{'tasks':3,'only':1}}", ERR_FIELD, "array.only", "must be a list");
    refused(JOB "'array':{'task':3}}", ERR_UNKNOWN_FIELD, "array.task", "not a known field");
    refused(JOB "'sweep':{}}", ERR_FIELD, "sweep", "must be an object of lists");
    refused(JOB "'sweep':{'lr':[]}}", ERR_FIELD, "sweep.lr", "must be a list");
    refused(JOB "'sweep':{'lr':0.1}}", ERR_FIELD, "sweep.lr", "must be a list");
    refused(JOB "'sweep':{'lr':[true]}}", ERR_FIELD, "sweep.lr", "strings and numbers");
    refused(JOB "'sweep':{'2lr':[1]}}", ERR_FIELD, "sweep.2lr", "no name");
    refused(JOB "'sweep':{'task':[1]}}", ERR_FIELD, "sweep.task", "no name");
    refused(JOB "'sweep':{'lr':[1],'LR':[2]}}", ERR_FIELD, "sweep.lr", "in case alone");
    refused(JOB "'sweep':{'lr':[1,2]},'array':{'tasks':3}}", ERR_FIELD, "array.tasks", "makes 2 tasks");
}
END_TEST

START_TEST(a_sweep_of_too_many_choices_is_refused)
{
    autojson json_t *json = parse_quoted(JOB "'sweep':{}}");
    json_t *list = json_array();
    for (int i = 0; i < 1001; i++) {
        json_array_append_new(list, json_integer(i));
    }
    json_object_set_new(json_object_get(json, "sweep"), "a", list);
    json_object_set(json_object_get(json, "sweep"), "b", list);
    struct job_spec spec;
    struct err err = {0};
    ck_assert(!job_spec_decode(give(json), LIMIT_LEASE_MIN_MS, &spec, &err));
    ck_assert_str_eq(err.field, "sweep");
}
END_TEST

START_TEST(words_that_grow_beyond_the_limit_are_refused)
{
    autojson json_t *json = parse_quoted("{'gpus':1,'sweep':{'v':[]}}");
    autotext struct text word = {0};
    char value[1001] = {0};
    memset(value, 'x', sizeof value - 1);
    for (int i = 0; i < 100; i++) {
        text_append(&word, "{v}");
    }
    json_object_set_new(json, "command", json_pack("[s]", word.bytes));
    json_array_append_new(json_object_get(json_object_get(json, "sweep"), "v"), json_string(value));
    struct job_spec spec;
    struct err err = {0};
    ck_assert(!job_spec_decode(give(json), LIMIT_LEASE_MIN_MS, &spec, &err));
    ck_assert_str_eq(err.field, "command");
}
END_TEST

/* --- values --- */

/* "task=3 lr=0.01 batch=32" */
static void expect_values(const struct job_spec *spec, int64_t task, const char *expected)
{
    autotext struct text text = {0};
    struct task_values values;
    task_values_make(spec->sweep, spec->tasks, task, &values);
    for (size_t i = 0; i < values.count; i++) {
        text_printf(&text, "%s%s=%s", i > 0 ? " " : "", values.items[i].name, values.items[i].text);
    }
    task_values_finish(&values);
    ck_assert_str_eq(text.bytes, expected);
}

START_TEST(the_last_name_of_a_sweep_changes_fastest)
{
    struct job_spec spec = decode(JOB "'sweep':{'lr':[0.1,'0.10',1e-5],'batch':[32,64],'depth':[1]}}");
    expect_values(&spec, 0, "task=0 lr=0.1 batch=32 depth=1");
    expect_values(&spec, 1, "task=1 lr=0.1 batch=64 depth=1");
    expect_values(&spec, 2, "task=2 lr=0.10 batch=32 depth=1");
    expect_values(&spec, 5, "task=5 lr=1e-05 batch=64 depth=1");
    job_spec_finish(&spec);
}
END_TEST

START_TEST(placeholders_are_names_in_braces_and_nothing_else_changes)
{
    struct job_spec spec = decode("{'gpus':1,'command':['{task}','--lr={lr}','{x} {lr {{lr}} }{'],"
                                  "'env':{'OUT':'run-{lr}-{task}'},'sweep':{'lr':[0.1,0.2]}}");
    json_t *told = json_incref(spec.json);
    task_fill_spec(&spec, 1);
    autojson json_t *words = parse_quoted("['1','--lr=0.2','{x} {lr {0.2} }{']");
    ck_assert(json_equal(spec.command, words));
    ck_assert_str_eq(json_string_value(json_object_get(spec.env, "OUT")), "run-0.2-1");
    ck_assert(json_object_get(spec.json, "env") == spec.env);
    const char *first = json_string_value(json_array_get(json_object_get(told, "command"), 0));
    ck_assert_str_eq(first, "{task}"); /* others may hold it */
    json_decref(told);
    job_spec_finish(&spec);
}
END_TEST

/* --- ids --- */

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

START_TEST(no_two_tasks_have_the_same_id)
{
    enum { COUNT = 100000 };
    char(*ids)[ID_LENGTH + 1] = xalloc(COUNT * sizeof *ids);
    for (int i = 0; i < COUNT; i++) {
        task_id("abcdefghij234567", i, ids[i]);
        ck_assert(text_is_id(ids[i]));
    }
    qsort(ids, COUNT, sizeof *ids, by_text);
    for (int i = 1; i < COUNT; i++) {
        ck_assert_str_ne(ids[i - 1], ids[i]);
    }
    free(ids);
}
END_TEST

START_TEST(an_id_follows_from_its_array_and_number)
{
    char first[ID_LENGTH + 1], last[ID_LENGTH + 1];
    task_id("7777777777777777", 0, first); /* the sum goes over its end */
    task_id("aaaaaaaaaaaaaaaa", 999999, last);
    ck_assert_str_eq(first, "g6ebb7xoo27vndex");
    ck_assert_str_eq(last, "fedkq4gwq5wwqclb");
}
END_TEST

START_TEST(a_reference_is_an_id_and_a_number)
{
    size_t length;
    int64_t task;
    ck_assert(task_reference("abc.17", &length, &task));
    ck_assert_uint_eq(length, 3);
    ck_assert_int_eq(task, 17);
    ck_assert(!task_reference("abc", &length, &task));
    ck_assert(!task_reference("abc.", &length, &task));
    ck_assert(!task_reference("abc.-1", &length, &task));
    ck_assert(!task_reference("abc.1x", &length, &task));
    ck_assert(!task_reference("abc.1000000", &length, &task));
}
END_TEST

Suite *tasks_suite(void)
{
    Suite *suite = suite_create("tasks");
    TCase *tests = tcase_create("tasks");
    tcase_add_test(tests, an_array_says_how_many_and_how_many_at_a_time);
    tcase_add_test(tests, a_sweep_makes_a_task_for_each_choice);
    tcase_add_test(tests, a_list_of_tasks_has_each_of_them_at_its_place);
    tcase_add_test(tests, other_lists_of_tasks_are_refused);
    tcase_add_test(tests, arrays_and_sweeps_survive_encode_and_decode);
    tcase_add_test(tests, a_refusal_names_the_field);
    tcase_add_test(tests, a_sweep_of_too_many_choices_is_refused);
    tcase_add_test(tests, words_that_grow_beyond_the_limit_are_refused);
    tcase_add_test(tests, the_last_name_of_a_sweep_changes_fastest);
    tcase_add_test(tests, placeholders_are_names_in_braces_and_nothing_else_changes);
    tcase_add_test(tests, no_two_tasks_have_the_same_id);
    tcase_add_test(tests, an_id_follows_from_its_array_and_number);
    tcase_add_test(tests, a_reference_is_an_id_and_a_number);
    suite_add_tcase(suite, tests);
    return suite;
}
