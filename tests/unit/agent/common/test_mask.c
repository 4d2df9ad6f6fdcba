/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/common/mask: no value of a secret passes, wherever the bytes are cut, and nothing else is
 * changed or kept. */
#include "agent/common/mask.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "tests/trace/harness/chance.h"
#include "tests/unit/agent/agent_suites.h"

static struct mask *mask;

static void set_up(void)
{
    mask = mask_create();
}

static void tear_down(void)
{
    mask_destroy(mask);
}

static void add(const char *value)
{
    mask_add(mask, value, strlen(value));
}

/* What of the bytes is shown when they come in pieces of this size. */
static char *shown(const char *bytes, size_t piece)
{
    struct text out = {0};
    size_t length = strlen(bytes);
    struct mask_stream *stream = mask_stream_create(mask);
    text_append(&out, "");
    for (size_t at = 0; at < length; at += piece) {
        mask_feed(stream, bytes + at, length - at < piece ? length - at : piece, &out);
    }
    mask_end(stream, &out);
    mask_stream_destroy(stream);
    return text_take(&out);
}

static void expect(const char *bytes, const char *expected)
{
    for (size_t piece = 1; piece <= strlen(bytes); piece++) {
        autofree char *text = shown(bytes, piece);
        ck_assert_msg(strcmp(text, expected) == 0, "in pieces of %zu: %s", piece, text);
    }
}

START_TEST(a_value_is_masked_wherever_the_bytes_are_cut)
{
    add("hf_0123456789");
    expect("hf_0123456789", "***");
    expect("token hf_0123456789, again hf_0123456789\n", "token ***, again ***\n");
    expect("hf_hf_0123456789", "hf_***");
    expect("hf_012345678 and hf_", "hf_012345678 and hf_");
}
END_TEST

START_TEST(values_that_overlap_touch_or_repeat_themselves_leave_nothing)
{
    add("abcdefgh");
    add("efghijkl");
    add("aaaaaaaa");
    expect("xabcdefghijklx", "x***x");
    expect("abcdefghabcdefgh.", "***.");
    expect("aaaaaaaaaaaaaaaaaaa-", "***-");
    expect("aaaaaaa-abcdefgaaaaaaaabcdefgh", "aaaaaaa-abcdefg***");
}
END_TEST

START_TEST(short_values_are_shown_and_blanks_around_a_value_do_not_count)
{
    add("seven77");
    add(" \r\n  \n");
    add("\n  a longer value \r\n");
    expect("seven77 a longer value", "seven77 ***");
}
END_TEST

START_TEST(bytes_are_held_back_only_while_they_may_begin_a_value)
{
    struct mask_stream *stream = mask_stream_create(mask);
    autotext struct text out = {0};
    add("password1");
    mask_feed(stream, "prompt: ", 8, &out);
    ck_assert_str_eq(out.bytes, "prompt: ");
    mask_feed(stream, "pass", 4, &out);
    ck_assert_str_eq(out.bytes, "prompt: ");
    mask_feed(stream, "ing", 3, &out);
    ck_assert_str_eq(out.bytes, "prompt: passing");
    mask_stream_destroy(stream);
}
END_TEST

START_TEST(a_text_that_was_cut_does_not_end_with_a_part_of_a_value)
{
    add("password123");
    autofree char *whole = mask_text(mask, xstrdup("wrong password123!"));
    autofree char *cut = mask_text(mask, xstrdup("wrong password1"));
    autofree char *harmless = mask_text(mask, xstrdup("wrong pass"));
    autofree char *free_of_secrets = mask_text(NULL, xstrdup("password123"));
    ck_assert_str_eq(whole, "wrong ***!");
    ck_assert_str_eq(cut, "wrong ***");
    ck_assert_str_eq(harmless, "wrong pass");
    ck_assert_str_eq(free_of_secrets, "password123");
    autofree char *empty = mask_text(mask, xstrdup(""));
    ck_assert_str_eq(empty, "");
    ck_assert_ptr_null(mask_text(mask, NULL));
    struct mask *unknown = mask_create_unknown();
    ck_assert_ptr_null(mask_text(unknown, xstrdup("anything")));
    mask_destroy(unknown);
}
END_TEST

/* Slow and plain: covers each place where a value stands. */
static char *plainly(const char *bytes, const char *const *values, size_t count)
{
    size_t length = strlen(bytes);
    autofree char *covered = xzalloc(length + 1);
    struct text out = {0};
    text_append(&out, "");
    for (size_t i = 0; i < count; i++) {
        for (const char *at = bytes; (at = strstr(at, values[i])) != NULL; at++) {
            memset(covered + (at - bytes), 1, strlen(values[i]));
        }
    }
    for (size_t i = 0; i < length; i++) {
        if (!covered[i]) {
            text_append_bytes(&out, &bytes[i], 1);
        } else if (i == 0 || !covered[i - 1]) {
            text_append(&out, MASK);
        }
    }
    return text_take(&out);
}

/* Of two letters, so that values begin in each other all the time. */
START_TEST(any_bytes_in_any_pieces_are_masked_as_a_plain_search_does)
{
    struct chance chance = {.state = (uint64_t)_i + 1};
    char words[3][LIMIT_MASKED_BYTES + 6], bytes[600];
    const char *values[3] = {words[0], words[1], words[2]};
    for (size_t i = 0; i < 3; i++) {
        size_t length = LIMIT_MASKED_BYTES + (size_t)chance_below(&chance, 5);
        for (size_t at = 0; at < length; at++) {
            words[i][at] = chance_below(&chance, 3) == 0 ? 'b' : 'a';
        }
        words[i][length] = '\0';
        add(words[i]);
    }
    for (size_t at = 0; at < sizeof bytes - 1; at++) {
        bytes[at] = chance_below(&chance, 3) == 0 ? 'b' : 'a';
    }
    bytes[sizeof bytes - 1] = '\0';
    autofree char *expected = plainly(bytes, values, 3);
    for (size_t piece = 1; piece < sizeof bytes; piece = 2 * piece + 1) {
        autofree char *text = shown(bytes, piece);
        ck_assert_str_eq(text, expected);
    }
}
END_TEST

Suite *mask_suite(void)
{
    Suite *suite = suite_create("mask");
    TCase *cases = tcase_create("mask");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, a_value_is_masked_wherever_the_bytes_are_cut);
    tcase_add_test(cases, values_that_overlap_touch_or_repeat_themselves_leave_nothing);
    tcase_add_test(cases, short_values_are_shown_and_blanks_around_a_value_do_not_count);
    tcase_add_test(cases, bytes_are_held_back_only_while_they_may_begin_a_value);
    tcase_add_test(cases, a_text_that_was_cut_does_not_end_with_a_part_of_a_value);
    tcase_add_loop_test(cases, any_bytes_in_any_pieces_are_masked_as_a_plain_search_does, 0, 200);
    suite_add_tcase(suite, cases);
    return suite;
}
