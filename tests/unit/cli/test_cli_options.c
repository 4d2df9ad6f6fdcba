/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli: options, and the job spec that they amount to. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cli/bundle/attach.h"
#include "client/cli/spec/spec.h"
#include "client/cli/frame/hint.h"
#include "client/cli/frame/verb.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/spec/jobspec.h"
#include "proto/limits.h"
#include "tests/unit/cli/cli_suites.h"

/* --- verbs --- */

static void assert_table_sound(const char *words, const struct option_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct option_spec *spec = &table->items[i];
        ck_assert_msg(spec->help != NULL && spec->help[0] != '\0', "%s --%s has no help", words, spec->name);
        ck_assert_msg((spec->kind == OPTION_FLAG) == (spec->value_name == NULL), "%s --%s and its value",
                      words, spec->name);
        for (size_t j = 0; j < i; j++) {
            ck_assert_msg(strcmp(spec->name, table->items[j].name) != 0, "%s has --%s twice", words,
                          spec->name);
            ck_assert_msg(spec->letter == '\0' || spec->letter != table->items[j].letter, "%s has -%c twice",
                          words, spec->letter);
        }
    }
}

/* Calls visit for every verb that can be run, with its table. */
static void each_verb(const struct verb *const *verbs,
                      void (*visit)(const char *words, const struct option_table *table))
{
    for (; *verbs != NULL; verbs++) {
        if ((*verbs)->nested != NULL) {
            each_verb((*verbs)->nested, visit);
            continue;
        }
        autofree void *options = xzalloc((*verbs)->options_size + 1);
        struct common common = {0};
        struct option_table table;
        verb_describe(*verbs, options, &common, &table);
        visit((*verbs)->name, &table);
        option_table_finish(&table);
    }
}

START_TEST(every_option_has_help_and_a_name_of_its_own)
{
    each_verb(verb_all(), assert_table_sound);
}
END_TEST

START_TEST(an_unknown_verb_suggests_the_nearest)
{
    struct err err;
    ck_assert_ptr_null(verb_find(verb_all(), "cancle", &err));
    ck_assert_int_eq(err.code, ERR_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "did you mean \"cancel\""));
    ck_assert_ptr_null(verb_find(verb_all(), "qqqqqqqqqq", &err));
    ck_assert_ptr_null(strstr(err.text, "did you mean"));
    ck_assert_ptr_eq(verb_find(verb_all(), "ps", &err), &verb_ps);
}
END_TEST

START_TEST(a_hint_names_a_verb_of_ours_and_is_none_itself)
{
    struct err err;
    for (const struct hint *hint = hint_all(); hint->words != NULL; hint++) {
        const char *const uses[] = {hint->ours, hint->alone != NULL ? hint->alone : hint->ours};
        for (size_t i = 0; i < 2; i++) {
            autofree char *verb = xstrndup(uses[i], strcspn(uses[i], " "));
            ck_assert_msg(verb_find(verb_all(), verb, &err) != NULL, "%s: there is no %s", hint->words, verb);
        }
        autofree char *first = xstrndup(hint->words, strcspn(hint->words, " "));
        ck_assert_msg(verb_find(verb_all(), first, &err) == NULL, "%s is a verb", first);
    }
}
END_TEST

static void assert_hint(const char *expected, char **typed, size_t count)
{
    struct err err;
    ck_assert(hint_find(typed, count, &err));
    ck_assert_int_eq(err.code, ERR_USAGE);
    ck_assert_str_eq(strstr(err.text, "use: "), expected);
}
#define ASSERT_HINT(expected, ...)                                                                           \
    assert_hint((expected), (char *[]){__VA_ARGS__}, sizeof((char *[]){__VA_ARGS__}) / sizeof(char *))

START_TEST(a_hint_takes_plain_arguments_over)
{
    struct err err;
    ASSERT_HINT("use: gpuctl cancel 42", (char[]){"kill"}, (char[]){"42"});
    ASSERT_HINT("use: gpuctl cancel 42 43.1", (char[]){"scancel"}, (char[]){"42"}, (char[]){"43.1"});
    ASSERT_HINT("use: gpuctl cancel ID", (char[]){"kill"});
    ASSERT_HINT("use: gpuctl cancel ID", (char[]){"kill"}, (char[]){"-9"}, (char[]){"42"});
    ASSERT_HINT("use: gpuctl cancel ID", (char[]){"kill"}, (char[]){"4;2"});
    ASSERT_HINT("use: gpuctl ps", (char[]){"squeue"}, (char[]){"-u"}, (char[]){"anna"});
    ASSERT_HINT("use: gpuctl ps", (char[]){"status"});
    ASSERT_HINT("use: gpuctl get x7k2", (char[]){"status"}, (char[]){"x7k2"});
    ASSERT_HINT("use: gpuctl nodes show gpu-7", (char[]){"scontrol"}, (char[]){"show"}, (char[]){"node"},
                (char[]){"gpu-7"});
    ASSERT_HINT("use: gpuctl get x7k2", (char[]){"scontrol"}, (char[]){"x7k2"});
    char *none[] = {(char[]){"cancle"}, (char[]){"42"}};
    ck_assert(!hint_find(none, 2, &err));
}
END_TEST

START_TEST(help_shows_usage_and_every_option)
{
    autofree char *help = NULL;
    size_t length;
    FILE *out = open_memstream(&help, &length);
    verb_help(out, &verb_run, "gpuctl run");
    fclose(out);
    ck_assert_ptr_nonnull(strstr(help, "Usage: gpuctl run [OPTIONS] [-f FILE] [--] [COMMAND"));
    ck_assert_ptr_nonnull(strstr(help, "--gpu-type NAME"));
    ck_assert_ptr_nonnull(strstr(help, "--url URL"));
}
END_TEST

START_TEST(a_text_that_is_sent_is_utf8)
{
    struct spec_options options = {0};
    struct err err;
    option_rows_default(spec_rows, &options);
    options.name = "caf\xc3\xa9";
    ck_assert(verb_can_send(&verb_submit, &options, &err));
    options.name = "\xff";
    ck_assert(!verb_can_send(&verb_submit, &options, &err));
    ck_assert_int_eq(err.code, ERR_USAGE);
    ck_assert_str_eq(err.field, "name");
}
END_TEST

/* --- spec --- */

static char *words[] = {(char[]){"python"}, (char[]){"train.py"}};

static void assert_spec(const struct spec_options *options, const struct spec_surroundings *around,
                        const char *expected)
{
    struct err err;
    autojson json_t *spec = spec_build(options, around, words, 2, &err);
    ck_assert_msg(spec != NULL, "%s", err.text);
    autofree char *text = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
    ck_assert_str_eq(text, expected);
    struct job_spec decoded;
    bool good = job_spec_decode(json_incref(spec), LIMIT_LEASE_MIN_MS, &decoded, &err);
    ck_assert_msg(good, "the controller would refuse it: %s", err.text);
    job_spec_finish(&decoded);
}

/* The options as they are when none was given. */
static void plain(struct spec_options *options)
{
    *options = (struct spec_options){0};
    option_rows_default(spec_rows, options);
}

START_TEST(a_plain_spec_leaves_the_defaults_to_the_controller)
{
    struct spec_options options;
    plain(&options);
    assert_spec(&options, &(struct spec_surroundings){0},
                "{\"command\":[\"python\",\"train.py\"],\"gpus\":1}");
}
END_TEST

START_TEST(every_option_reaches_the_spec)
{
    struct spec_options options;
    plain(&options);
    const char *env[] = {"A=b=c", "FROM_HERE", "EMPTY="};
    const char *labels[] = {"team=x"}, *constraints[] = {"zone=a,b", "disk!=hdd", "zone!=c"};
    const char *avoid[] = {"n1,n2", "n3"}, *exclude[] = {"n4"};
    setenv("FROM_HERE", "yes", 1);
    options.gpus = 8;
    options.gpu_type = "H100";
    options.pool = "big";
    options.constraints = (struct option_list){constraints, 3};
    options.avoid = (struct option_list){avoid, 2};
    options.exclude = (struct option_list){exclude, 1};
    options.placement = "spread";
    options.no_reserved = true;
    options.local = true;
    options.launch_mode = "node";
    options.env = (struct option_list){env, 3};
    options.labels = (struct option_list){labels, 1};
    options.name = "n";
    options.project = "p";
    options.python = "/usr/bin/python3";
    options.priority = -5;
    options.time_ms = 90000;
    options.grace_ms = 1500;
    options.keep_ms = 3600000;
    options.early_signal = "SIGUSR1@80";
    options.lease_ms = 120000;
    options.retries = 0;
    options.infra_retries = 7;
    options.on_disconnect = "requeue";
    options.workdir = "/data";
    char host[65];
    file_host_id(host);
    autofree char *expected = xprintf(
        "{\"avoid\":[\"n1\",\"n2\",\"n3\"],\"command\":[\"python\",\"train.py\"],"
        "\"constraints\":{\"disk\":{\"not\":[\"hdd\"]},\"zone\":{\"in\":[\"a\",\"b\"],\"not\":[\"c\"]}},"
        "\"early_signal\":{\"before_s\":80,\"signal\":\"USR1\"},"
        "\"env\":{\"A\":\"b=c\",\"EMPTY\":\"\",\"FROM_HERE\":\"yes\"},\"exclude\":[\"n4\"],"
        "\"gpu_type\":\"H100\",\"gpus\":8,\"grace_s\":1.5,\"host_id\":\"%s\",\"infra_retries\":7,\"keep_on_"
        "failure_s\":3600,\"labels\":{"
        "\"team\":\"x\"},"
        "\"launch_mode\":\"node\",\"lease_s\":120,\"name\":\"n\",\"on_disconnect\":\"requeue\",\"placement\":"
        "\"spread\",\"pool\":"
        "\"big\",\"priority\":-5,"
        "\"project\":\"p\",\"python\":\"/usr/bin/"
        "python3\",\"remote\":false,\"retries\":0,\"time_limit_s\":90,"
        "\"use_reserved_pool\":false,\"workdir\":\"/data\"}",
        host);
    assert_spec(&options, &(struct spec_surroundings){.host_id = host}, expected);
}
END_TEST

START_TEST(options_win_over_the_spec_of_a_job_file)
{
    struct spec_options options;
    struct err err;
    plain(&options);
    const char *env[] = {"A=flag"};
    const char *labels[] = {"x=flag"};
    options.env = (struct option_list){env, 1};
    options.labels = (struct option_list){labels, 1};
    options.priority = 0;
    options.no_reserved = true;
    autojson json_t *base =
        json_pack("{s:i,s:i,s:i,s:{s:s,s:s},s:{s:s},s:[s],s:b,s:s,s:b}", "gpus", 4, "priority", 7, "retries",
                  2, "env", "A", "file", "B", "file", "labels", "y", "file", "command", "file",
                  "use_reserved_pool", 1, "workdir", "/file", "remote", 0);
    const struct spec_surroundings around = {
        .base = base, .here = "/here", .reserved = "true", .host_id = "me"};
    autojson json_t *spec = spec_build(&options, &around, words, 0, &err);
    autofree char *text = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
    ck_assert_str_eq(text,
                     "{\"command\":[\"file\"],\"env\":{\"A\":\"flag\",\"B\":\"file\"},\"gpus\":4,"
                     "\"host_id\":\"me\",\"labels\":{\"x\":\"flag\",\"y\":\"file\"},\"priority\":0,"
                     "\"remote\":false,\"retries\":2,\"use_reserved_pool\":false,\"workdir\":\"/file\"}");
    ck_assert_int_eq(json_integer_value(json_object_get(base, "priority")), 7);
    options.gpus = 1;
    options.retries = 0;
    autojson json_t *other = spec_build(&options, &around, words, 2, &err);
    ck_assert_int_eq(json_integer_value(json_object_get(other, "gpus")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(other, "retries")), 0);
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(other, "command"), 1)), "train.py");
}
END_TEST

static void assert_reserved(bool yes, bool no, const char *environment, const char *expected)
{
    struct spec_options options;
    struct err err;
    plain(&options);
    options.reserved = yes;
    options.no_reserved = no;
    autojson json_t *spec =
        spec_build(&options, &(struct spec_surroundings){.reserved = environment}, words, 2, &err);
    const json_t *value = json_object_get(spec, "use_reserved_pool");
    autofree char *text = value != NULL ? json_text(value) : xstrdup("absent");
    ck_assert_str_eq(text, expected);
}

START_TEST(the_reserved_pool_is_chosen_by_flag_then_environment)
{
    assert_reserved(false, false, NULL, "absent");
    assert_reserved(false, false, "False", "false");
    assert_reserved(false, false, "0", "false");
    assert_reserved(false, false, "NO", "false");
    assert_reserved(false, false, "off", "false");
    assert_reserved(false, false, "true", "absent");
    assert_reserved(false, false, "1", "absent");
    assert_reserved(false, false, "", "absent");
    assert_reserved(true, false, "false", "true");
    assert_reserved(false, true, "true", "false");
    assert_reserved(false, true, "maybe", "false");
    struct spec_options options;
    struct err err;
    plain(&options);
    ck_assert_ptr_null(
        spec_build(&options, &(struct spec_surroundings){.reserved = "maybe"}, words, 2, &err));
    ck_assert_str_eq(err.field, "DATABRICKS_USE_RESERVED_GPU_POOL");
}
END_TEST

static const struct {
    int64_t gpus, nodes, each;
    const char *base, *expected; /* NULL: refused */
} shapes[] = {
    {0, 0, 0, NULL, "1 over 0"},
    {6, 0, 0, NULL, "6 over 0"},
    {0, 3, 0, NULL, "3 over 3"},
    {6, 3, 0, NULL, "6 over 3"},
    {0, 3, 2, NULL, "6 over 3"},
    {6, 0, 2, NULL, "6 over 3"},
    {6, 3, 2, NULL, "6 over 3"},
    {0, 0, 4, NULL, "4 over 1"},
    {5, 0, 2, NULL, NULL},
    {6, 2, 2, NULL, NULL},
    {1, 0, 2, NULL, NULL},
    {0, 2, 0, "{\"gpus\":8}", "8 over 2"},
    {0, 0, 0, "{\"gpus\":8}", "8 over 0"},
};

START_TEST(gpus_and_nodes_follow_from_any_two_of_three_options)
{
    struct spec_options options;
    struct err err;
    plain(&options);
    options.gpus = shapes[_i].gpus > 0 ? shapes[_i].gpus : NOT_GIVEN;
    options.nodes = shapes[_i].nodes;
    options.gpus_per_node = shapes[_i].each;
    const char *base = shapes[_i].base;
    autojson json_t *given = base != NULL ? json_loads(base, 0, NULL) : NULL;
    autojson json_t *spec = spec_build(&options, &(struct spec_surroundings){.base = given}, words, 2, &err);
    if (shapes[_i].expected == NULL) {
        ck_assert_ptr_null(spec);
        ck_assert_str_eq(err.field, "gpus-per-node");
        return;
    }
    ck_assert_ptr_nonnull(spec);
    autofree char *found = xprintf("%lld over %lld", json_integer_value(json_object_get(spec, "gpus")),
                                   json_integer_value(json_object_get(spec, "nodes")));
    ck_assert_str_eq(found, shapes[_i].expected);
}
END_TEST

static void assert_workdir(const char *given, size_t files, const char *here, const char *expected)
{
    struct spec_options options;
    const char *file[] = {"x"};
    struct err err;
    plain(&options);
    options.workdir = given;
    options.files = (struct option_list){file, files};
    autojson json_t *spec = spec_build(&options, &(struct spec_surroundings){.here = here}, words, 2, &err);
    const char *workdir = json_string_value(json_object_get(spec, "workdir"));
    ck_assert_str_eq(workdir != NULL ? workdir : "absent", expected);
}

START_TEST(a_job_runs_here_only_where_the_nodes_are_here_and_no_files_are_laid)
{
    assert_workdir(NULL, 0, NULL, "absent");
    assert_workdir(NULL, 0, "/home/me", "/home/me");
    assert_workdir(NULL, 1, "/home/me", "absent");
    assert_workdir("/data", 1, "/home/me", "/data");
    assert_workdir("sub", 0, "/home/me", "/home/me/sub");
}
END_TEST

static void assert_spec_refused(const struct spec_options *options, const char *field)
{
    struct err err;
    ck_assert_ptr_null(spec_build(options, &(struct spec_surroundings){0}, words, 2, &err));
    ck_assert_int_eq(err.code, ERR_USAGE);
    ck_assert_str_eq(err.field, field);
    ck_assert_str_ne(err.hint, "");
}

START_TEST(wrong_options_are_refused_by_name)
{
    struct spec_options options;
    const char *unset[] = {"GPUCTL_TEST_NOT_SET"}, *nameless[] = {"=x"}, *bytes[] = {"A=\xff"},
               *bare[] = {"label"}, *valueless[] = {"zone"}, *signs[] = {"zone!a"};
    plain(&options);
    options.reserved = options.no_reserved = true;
    assert_spec_refused(&options, "reserved");
    plain(&options);
    options.env = (struct option_list){unset, 1};
    assert_spec_refused(&options, "env");
    options.env = (struct option_list){nameless, 1};
    assert_spec_refused(&options, "env");
    options.env = (struct option_list){bytes, 1};
    assert_spec_refused(&options, "env");
    plain(&options);
    options.labels = (struct option_list){bare, 1};
    assert_spec_refused(&options, "label");
    plain(&options);
    options.constraints = (struct option_list){valueless, 1};
    assert_spec_refused(&options, "constraint");
    options.constraints = (struct option_list){signs, 1};
    assert_spec_refused(&options, "constraint");
    options.constraints = (struct option_list){nameless, 1};
    assert_spec_refused(&options, "constraint");
}
END_TEST

/* --- files --- */

static void assert_split(const char *argument, const char *local, const char *remote)
{
    autofree char *got_local = NULL;
    autofree char *got_remote = NULL;
    struct err err;
    ck_assert_msg(attach_split(argument, &got_local, &got_remote, &err), "%s", err.text);
    ck_assert_str_eq(got_local, local);
    ck_assert_str_eq(got_remote, remote);
}

START_TEST(a_file_keeps_its_place_below_the_current_directory)
{
    assert_split("train.py", "train.py", "train.py");
    assert_split("src/train.py", "src/train.py", "src/train.py");
    assert_split("./src/train.py", "./src/train.py", "src/train.py");
    assert_split("../train.py", "../train.py", "train.py");
    assert_split("a/../train.py", "a/../train.py", "train.py");
    assert_split("/data/x.bin", "/data/x.bin", "x.bin");
    assert_split("a:b/c", "a", "b/c");
    assert_split("a:b:c", "a:b", "c");
    struct err err;
    ck_assert(!attach_split(":x", &(char *){0}, &(char *){0}, &err));
    ck_assert(!attach_split("x:", &(char *){0}, &(char *){0}, &err));
    ck_assert(!attach_split("dir/", &(char *){0}, &(char *){0}, &err));
    ck_assert_str_eq(err.field, "file");
}
END_TEST

START_TEST(small_files_ride_in_the_spec_as_they_are)
{
    cli_write_file("text.txt", "h\xc3\xa9llo\n");
    cli_write_file("raw.bin", "\xff\xfe");
    autofree char *text = xprintf("%s/text.txt", cli_folder);
    autofree char *raw = xprintf("%s/raw.bin:in/raw", cli_folder);
    ck_assert_int_eq(chmod(text, 0755), 0);
    const char *items[] = {text, raw};
    autojson json_t *spec = json_object();
    struct err err;
    ck_assert_msg(attach_files(NULL, &(struct option_list){items, 2}, spec, &err), "%s", err.text);
    autofree char *made = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
    ck_assert_str_eq(made,
                     "{\"files\":[{\"executable\":true,\"path\":\"text.txt\",\"text\":\"h\xc3\xa9llo\\n\"},"
                     "{\"base64\":\"//4=\",\"path\":\"in/raw\"}]}");
    const char *missing[] = {"/nowhere/at/all"};
    ck_assert(!attach_files(NULL, &(struct option_list){missing, 1}, spec, &err));
    ck_assert_str_eq(err.field, "file");
}
END_TEST

Suite *cli_options_suite(void)
{
    Suite *suite = suite_create("cli options");
    TCase *tests = tcase_create("options");
    tcase_add_checked_fixture(tests, cli_make_folder, cli_remove_folder);
    tcase_add_test(tests, every_option_has_help_and_a_name_of_its_own);
    tcase_add_test(tests, an_unknown_verb_suggests_the_nearest);
    tcase_add_test(tests, a_hint_names_a_verb_of_ours_and_is_none_itself);
    tcase_add_test(tests, a_hint_takes_plain_arguments_over);
    tcase_add_test(tests, a_text_that_is_sent_is_utf8);
    tcase_add_test(tests, help_shows_usage_and_every_option);
    tcase_add_test(tests, a_plain_spec_leaves_the_defaults_to_the_controller);
    tcase_add_test(tests, every_option_reaches_the_spec);
    tcase_add_test(tests, options_win_over_the_spec_of_a_job_file);
    tcase_add_test(tests, the_reserved_pool_is_chosen_by_flag_then_environment);
    tcase_add_loop_test(tests, gpus_and_nodes_follow_from_any_two_of_three_options, 0,
                        sizeof shapes / sizeof shapes[0]);
    tcase_add_test(tests, a_job_runs_here_only_where_the_nodes_are_here_and_no_files_are_laid);
    tcase_add_test(tests, wrong_options_are_refused_by_name);
    tcase_add_test(tests, a_file_keeps_its_place_below_the_current_directory);
    tcase_add_test(tests, small_files_ride_in_the_spec_as_they_are);
    suite_add_tcase(suite, tests);
    return suite;
}
