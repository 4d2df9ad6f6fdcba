/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli/ignore: what one .gitignore says of a path, as git would. */
#include "client/cli/bundle/ignore.h"

#include "tests/unit/cli/cli_suites.h"

struct question {
    const char *text, *path;
    bool is_folder;
    enum ignore_verdict verdict;
};

static void assert_answers(const struct question *questions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct question *asked = &questions[i];
        autoignore struct ignore *ignore = ignore_parse(asked->text);
        ck_assert_msg(ignore_ask(ignore, asked->path, asked->is_folder) == asked->verdict, "\"%s\" of \"%s\"",
                      asked->text, asked->path);
    }
}

#define ASSERT_ANSWERS(...)                                                                                  \
    do {                                                                                                     \
        static const struct question questions[] = {__VA_ARGS__};                                            \
        assert_answers(questions, sizeof questions / sizeof questions[0]);                                   \
    } while (0)

#define OUT  IGNORE_LEAVE_OUT
#define TAKE IGNORE_TAKE
#define NONE IGNORE_NOTHING

START_TEST(a_name_is_left_out_wherever_it_is)
{
    ASSERT_ANSWERS({"*.log", "a.log", false, OUT}, {"*.log", "in/it/a.log", false, OUT},
                   {"*.log", "a.log.txt", false, NONE}, {"*", ".hidden", false, OUT},
                   {"a?c", "abc", false, OUT}, {"a?c", "in/ac", false, NONE},
                   {"[a-c].py", "b.py", false, OUT}, {"[!a-c].py", "b.py", false, NONE},
                   {"**", "in/any", false, OUT});
}
END_TEST

START_TEST(a_pattern_with_a_slash_is_about_a_path_from_here)
{
    ASSERT_ANSWERS({"/top", "top", false, OUT}, {"/top", "in/top", false, NONE}, {"in/x", "in/x", false, OUT},
                   {"in/x", "out/in/x", false, NONE}, {"in/*.py", "in/a.py", false, OUT},
                   {"in/*.py", "in/deep/a.py", false, NONE});
}
END_TEST

START_TEST(a_slash_at_the_end_means_folders_only)
{
    ASSERT_ANSWERS({"out/", "out", true, OUT}, {"out/", "out", false, NONE}, {"out/", "in/out", true, OUT},
                   {"/out/", "in/out", true, NONE}, {"/", "a", true, NONE});
}
END_TEST

START_TEST(two_stars_stand_for_any_folders)
{
    ASSERT_ANSWERS({"**/x", "x", false, OUT}, {"**/x", "a/b/x", false, OUT}, {"a/**", "a/b/c", false, OUT},
                   {"a/**", "a", true, NONE}, {"a/**/z", "a/z", false, OUT},
                   {"a/**/z", "a/b/c/z", false, OUT}, {"a/**/z", "b/a/z", false, NONE},
                   {"**/a/**/a/**/a/**/b", "a/a/a/a/a/a/a/a/a/a/a/a/a/c", false, NONE});
}
END_TEST

START_TEST(the_last_line_that_matches_decides)
{
    ASSERT_ANSWERS({"*.log\n!keep.log", "keep.log", false, TAKE}, {"*.log\n!keep.log", "a.log", false, OUT},
                   {"!keep.log\n*.log", "keep.log", false, OUT}, {"*\n!*/", "folder", true, TAKE},
                   {"*.log\n!keep.log", "a.py", false, NONE});
}
END_TEST

START_TEST(comments_spaces_and_line_ends_mean_what_they_do_to_git)
{
    ASSERT_ANSWERS({"# a\n\n", "# a", false, NONE}, {"\\#a", "#a", false, OUT}, {"\\!a", "!a", false, OUT},
                   {"a  ", "a", false, OUT}, {"a\\ ", "a ", false, OUT}, {"a\\ ", "a", false, NONE},
                   {"a\r\nb\r\n", "a", false, OUT},
                   {"\xef\xbb\xbf"
                    "a",
                    "a", false, OUT},
                   {"a", "a", true, OUT});
}
END_TEST

Suite *cli_ignore_suite(void)
{
    Suite *suite = suite_create("cli ignore");
    TCase *tests = tcase_create("ignore");
    tcase_add_test(tests, a_name_is_left_out_wherever_it_is);
    tcase_add_test(tests, a_pattern_with_a_slash_is_about_a_path_from_here);
    tcase_add_test(tests, a_slash_at_the_end_means_folders_only);
    tcase_add_test(tests, two_stars_stand_for_any_folders);
    tcase_add_test(tests, the_last_line_that_matches_decides);
    tcase_add_test(tests, comments_spaces_and_line_ends_mean_what_they_do_to_git);
    suite_add_tcase(suite, tests);
    return suite;
}
