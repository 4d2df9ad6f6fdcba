/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/base/options: every form of an option, every refusal, and --help. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/settings/options.h"
#include "tests/unit/base/base_suites.h"

/* What the command line of these tests sets. */
static struct {
    bool help, quiet, wait;
    const char *output;
    const char *name;
    int64_t gpus;
    int64_t time_ms;
    struct option_list env;
    char **rest;
    size_t rest_count;
    struct err err;
} got;

static const struct option_spec specs[] = {
    {.letter = 'h', .name = "help", .help = "show this help", .kind = OPTION_FLAG, .target = &got.help},
    {.letter = 'q', .name = "quiet", .help = "say less", .kind = OPTION_FLAG, .target = &got.quiet},
    {.joined = "qt", .name = "wait", .help = "wait for the end", .kind = OPTION_FLAG, .target = &got.wait},
    {.letter = 'o',
     .name = "output",
     .value_name = "FORMAT",
     .help = "form of the output",
     .kind = OPTION_TEXT,
     .target = &got.output,
     .choices = "table|wide|json"},
    {.name = "gpu-type",
     .value_name = "NAME",
     .help = "what kind of GPU",
     .kind = OPTION_TEXT,
     .target = &got.name},
    {.letter = 'g',
     .name = "gpus",
     .value_name = "N",
     .help = "how many GPUs",
     .kind = OPTION_INT,
     .target = &got.gpus,
     .min = 1,
     .max = 64},
    {.letter = 't', .name = "time", .help = "time limit", .kind = OPTION_DURATION, .target = &got.time_ms},
    {.letter = 'e',
     .name = "environment-variable",
     .value_name = "NAME=VALUE",
     .help = "set a variable",
     .kind = OPTION_LIST,
     .target = &got.env},
};
#define SPECS (sizeof specs / sizeof specs[0])

static void finish(void)
{
    options_finish_list(&got.env);
    free(got.rest);
    memset(&got, 0, sizeof got);
}

/* Parses the words up to NULL, after those of an earlier call are forgotten. */
static bool parse_words(bool stop, const char *const *words)
{
    finish();
    got.wait = true;
    static char *argv[32];
    int argc = 0;
    static char program[] = "gpuctl";
    argv[argc++] = program;
    for (; words[argc - 1] != NULL; argc++) {
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
    }
    argv[argc] = NULL;
    return options_parse(specs, SPECS, argc, argv, stop, NULL, &got.rest, &got.rest_count, &got.err);
}

#define parse(...)         parse_words(false, (const char *const[]){__VA_ARGS__, NULL})
#define parse_to_verb(...) parse_words(true, (const char *const[]){__VA_ARGS__, NULL})

static void assert_refused(bool parsed, const char *text)
{
    ck_assert(!parsed);
    ck_assert_int_eq(got.err.code, ERR_USAGE);
    ck_assert_str_eq(got.err.text, text);
    ck_assert_str_eq(got.err.hint, "see --help");
    ck_assert_ptr_null(got.rest);
}

/* --- forms ---------------------------------------------------------------------------------------------- */

START_TEST(a_value_follows_in_the_next_argument_or_after_an_equals_sign)
{
    ck_assert(parse("--gpus", "8", "--gpu-type=H100", "--time", "1h30m"));
    ck_assert_int_eq(got.gpus, 8);
    ck_assert_str_eq(got.name, "H100");
    ck_assert_int_eq(got.time_ms, 5400000);
    ck_assert(parse("--gpu-type=", "--output=json"));
    ck_assert_str_eq(got.name, "");
    ck_assert_str_eq(got.output, "json");
}
END_TEST

START_TEST(a_short_option_takes_its_value_with_or_without_a_space)
{
    ck_assert(parse("-g", "8", "-ojson", "-t90s"));
    ck_assert_int_eq(got.gpus, 8);
    ck_assert_str_eq(got.output, "json");
    ck_assert_int_eq(got.time_ms, 90000);
}
END_TEST

START_TEST(short_flags_are_grouped_and_the_last_letter_may_take_a_value)
{
    ck_assert(parse("-hqg8"));
    ck_assert(got.help && got.quiet);
    ck_assert_int_eq(got.gpus, 8);
    ck_assert(parse("-qg", "4"));
    ck_assert(got.quiet);
    ck_assert_int_eq(got.gpus, 4);
}
END_TEST

START_TEST(a_flag_is_switched_on_and_off_and_the_last_one_counts)
{
    ck_assert(parse("--quiet", "--no-wait"));
    ck_assert(got.quiet && !got.wait);
    ck_assert(parse("--no-wait", "--wait", "--quiet", "--no-quiet"));
    ck_assert(got.wait && !got.quiet);
}
END_TEST

START_TEST(letters_that_are_one_flag_are_not_read_one_by_one)
{
    ck_assert(parse("--no-wait", "-qt"));
    ck_assert(got.wait && !got.quiet && got.time_ms == 0);
    ck_assert(parse("--no-wait", "-qt5s"));
    ck_assert(!got.wait && got.quiet && got.time_ms == 5000);
}
END_TEST

START_TEST(a_list_collects_its_values_in_order)
{
    ck_assert(parse("-e", "A=1", "--environment-variable", "B=2", "-eC=3"));
    ck_assert_uint_eq(got.env.count, 3);
    ck_assert_str_eq(got.env.items[0], "A=1");
    ck_assert_str_eq(got.env.items[1], "B=2");
    ck_assert_str_eq(got.env.items[2], "C=3");
}
END_TEST

START_TEST(a_value_may_look_like_an_option)
{
    ck_assert(parse("--gpu-type", "--quiet", "-e", "-"));
    ck_assert_str_eq(got.name, "--quiet");
    ck_assert(!got.quiet);
    ck_assert_str_eq(got.env.items[0], "-");
}
END_TEST

START_TEST(positional_arguments_and_options_mix)
{
    ck_assert(parse("job1", "-q", "-", "--gpus", "2", "job2", ""));
    ck_assert_uint_eq(got.rest_count, 4);
    ck_assert_str_eq(got.rest[0], "job1");
    ck_assert_str_eq(got.rest[1], "-");
    ck_assert_str_eq(got.rest[2], "job2");
    ck_assert_str_eq(got.rest[3], "");
    ck_assert_ptr_null(got.rest[4]);
    ck_assert(got.quiet);
}
END_TEST

START_TEST(two_dashes_end_the_options)
{
    ck_assert(parse("a", "--", "-q", "--", "--gpus"));
    ck_assert_uint_eq(got.rest_count, 4);
    ck_assert_str_eq(got.rest[1], "-q");
    ck_assert_str_eq(got.rest[2], "--");
    ck_assert_str_eq(got.rest[3], "--gpus");
    ck_assert(!got.quiet);
}
END_TEST

START_TEST(a_verb_ends_the_options_where_asked)
{
    ck_assert(parse_to_verb("-q", "run", "--gpus", "8", "--", "python"));
    ck_assert(got.quiet);
    ck_assert_int_eq(got.gpus, 0);
    ck_assert_uint_eq(got.rest_count, 5);
    ck_assert_str_eq(got.rest[0], "run");
    ck_assert_str_eq(got.rest[3], "--");
    ck_assert(parse_to_verb("-q", "--", "python", "-q"));
    ck_assert_uint_eq(got.rest_count, 2);
    ck_assert_str_eq(got.rest[0], "python");
}
END_TEST

START_TEST(an_empty_command_line_is_fine)
{
    ck_assert(parse(NULL));
    ck_assert_uint_eq(got.rest_count, 0);
    ck_assert_ptr_null(got.rest[0]);
}
END_TEST

/* --- refusals ------------------------------------------------------------------------------------------- */

START_TEST(an_unknown_option_suggests_the_nearest)
{
    assert_refused(parse("--gpu-typ", "H100"), "unknown option --gpu-typ; did you mean --gpu-type?");
    assert_refused(parse("--GPUS=8"), "unknown option --GPUS; did you mean --gpus?");
    assert_refused(parse("--no-wiat"), "unknown option --no-wiat; did you mean --no-wait?");
}
END_TEST

START_TEST(an_unknown_option_like_no_other_suggests_nothing)
{
    assert_refused(parse("--frobnicate"), "unknown option --frobnicate");
    assert_refused(parse("--x"), "unknown option --x");
    assert_refused(parse("-qx"), "unknown option -x");
    assert_refused(parse("-5"), "unknown option -5");
}
END_TEST

START_TEST(only_flags_can_be_negated)
{
    assert_refused(parse("--no-gpus"), "unknown option --no-gpus; did you mean --gpus?");
    assert_refused(parse("--no-gpsu"), "unknown option --no-gpsu");
    assert_refused(parse("--no-"), "unknown option --no-");
}
END_TEST

START_TEST(a_missing_value_is_named)
{
    assert_refused(parse("--gpus"), "--gpus needs a value");
    assert_refused(parse("-q", "-o"), "-o needs a value");
}
END_TEST

START_TEST(a_flag_takes_no_value)
{
    assert_refused(parse("--quiet=yes"), "--quiet takes no value");
    assert_refused(parse("--no-wait="), "--no-wait takes no value");
}
END_TEST

START_TEST(a_wrong_value_is_named_with_what_is_allowed)
{
    assert_refused(parse("--gpus", "65"), "--gpus must be a whole number from 1 to 64, not \"65\"");
    assert_refused(parse("-gx"), "-g must be a whole number from 1 to 64, not \"x\"");
    assert_refused(parse("--time=soon"), "--time must be a duration such as 90s, 15m or 2h, not \"soon\"");
    assert_refused(parse("-o", "jso"), "-o must be one of table|wide|json, not \"jso\"");
    assert_refused(parse("-o", ""), "-o must be one of table|wide|json, not \"\"");
    assert_refused(parse("-o", "wide|json"), "-o must be one of table|wide|json, not \"wide|json\"");
}
END_TEST

/* --- help ----------------------------------------------------------------------------------------------- */

START_TEST(help_shows_usage_summary_and_one_row_an_option)
{
    char *shown = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&shown, &size);
    options_help(out, "gpuctl run [options] -- COMMAND", "Runs a command on GPUs.", specs, SPECS);
    fclose(out);
    ck_assert_str_eq(shown, "Usage: gpuctl run [options] -- COMMAND\n"
                            "\n"
                            "Runs a command on GPUs.\n"
                            "\n"
                            "Options:\n"
                            "  -h, --help                show this help\n"
                            "  -q, --quiet               say less\n"
                            " -qt, --wait                wait for the end\n"
                            "  -o, --output FORMAT       form of the output (table|wide|json)\n"
                            "      --gpu-type NAME       what kind of GPU\n"
                            "  -g, --gpus N              how many GPUs\n"
                            "  -t, --time VALUE          time limit\n"
                            "  -e, --environment-variable NAME=VALUE\n"
                            "                            set a variable\n");
    free(shown);
}
END_TEST

static TCase *form_tests(void)
{
    TCase *cases = tcase_create("forms");
    tcase_add_checked_fixture(cases, NULL, finish);
    tcase_add_test(cases, a_value_follows_in_the_next_argument_or_after_an_equals_sign);
    tcase_add_test(cases, a_short_option_takes_its_value_with_or_without_a_space);
    tcase_add_test(cases, short_flags_are_grouped_and_the_last_letter_may_take_a_value);
    tcase_add_test(cases, a_flag_is_switched_on_and_off_and_the_last_one_counts);
    tcase_add_test(cases, letters_that_are_one_flag_are_not_read_one_by_one);
    tcase_add_test(cases, a_list_collects_its_values_in_order);
    tcase_add_test(cases, a_value_may_look_like_an_option);
    tcase_add_test(cases, positional_arguments_and_options_mix);
    tcase_add_test(cases, two_dashes_end_the_options);
    tcase_add_test(cases, a_verb_ends_the_options_where_asked);
    tcase_add_test(cases, an_empty_command_line_is_fine);
    tcase_add_test(cases, help_shows_usage_summary_and_one_row_an_option);
    return cases;
}

static TCase *refusal_tests(void)
{
    TCase *cases = tcase_create("refusals");
    tcase_add_checked_fixture(cases, NULL, finish);
    tcase_add_test(cases, an_unknown_option_suggests_the_nearest);
    tcase_add_test(cases, an_unknown_option_like_no_other_suggests_nothing);
    tcase_add_test(cases, only_flags_can_be_negated);
    tcase_add_test(cases, a_missing_value_is_named);
    tcase_add_test(cases, a_flag_takes_no_value);
    tcase_add_test(cases, a_wrong_value_is_named_with_what_is_allowed);
    return cases;
}

Suite *options_suite(void)
{
    Suite *suite = suite_create("options");
    suite_add_tcase(suite, form_tests());
    suite_add_tcase(suite, refusal_tests());
    return suite;
}
