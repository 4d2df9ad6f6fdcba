/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/said: what is left of words that programs on nodes have written. */
#include <string.h>

#include "daemon/http/agent/excerpt.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "tests/unit/http/http_suites.h"

static void assert_said(const char *text, size_t max, enum excerpt_form form, const char *expected)
{
    autofree char *actual = excerpt_fit(text, max, form);
    ck_assert_str_eq(actual, expected);
}

START_TEST(plain_words_stay_as_they_are)
{
    assert_said("Installing torch", 100, EXCERPT_LINE, "Installing torch");
    assert_said("gr\u00f6\u00dfer \u20ac", 100, EXCERPT_LINE, "gr\u00f6\u00dfer \u20ac");
    assert_said("", 100, EXCERPT_LINE, "");
    ck_assert_ptr_null(excerpt_fit(NULL, 100, EXCERPT_LINE));
}
END_TEST

START_TEST(nothing_that_speaks_to_a_terminal_is_left)
{
    assert_said("a\x1b[31mb\x07\tc\x7f"
                "d",
                100, EXCERPT_LINE, "a [31mb  c d");
    assert_said("a\xc2\x9b"
                "31mb\xc2\x80",
                100, EXCERPT_LINE, "a 31mb");
    assert_said("a\u00a0b", 100, EXCERPT_LINE, "a\u00a0b"); /* the first that is none */
}
END_TEST

START_TEST(lines_stay_where_there_may_be_some)
{
    assert_said("\n ERROR: a\r\n  b\n\n", 100, EXCERPT_LINES, "ERROR: a \n  b");
    assert_said("ERROR: a\r\n  b\n\n", 100, EXCERPT_LINE, "ERROR: a    b");
}
END_TEST

START_TEST(long_words_are_cut_between_characters)
{
    assert_said("abcdef", 6, EXCERPT_LINE, "abcdef");
    assert_said("abcdef", 5, EXCERPT_LINE, "abcde");
    assert_said("ab\u20ac", 5, EXCERPT_LINE, "ab\u20ac");
    assert_said("ab\u20ac", 4, EXCERPT_LINE, "ab");
    assert_said("ab\u20ac", 3, EXCERPT_LINE, "ab");
    assert_said("ab\u20ac", 2, EXCERPT_LINE, "ab");
    assert_said("\u20ac", 2, EXCERPT_LINE, "");
}
END_TEST

Suite *excerpt_suite(void)
{
    Suite *suite = suite_create("excerpt");
    TCase *words = tcase_create("words");
    tcase_add_test(words, plain_words_stay_as_they_are);
    tcase_add_test(words, nothing_that_speaks_to_a_terminal_is_left);
    tcase_add_test(words, lines_stay_where_there_may_be_some);
    tcase_add_test(words, long_words_are_cut_between_characters);
    suite_add_tcase(suite, words);
    return suite;
}
