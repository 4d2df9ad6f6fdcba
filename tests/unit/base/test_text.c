/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/base/text: the buffer, and every spelling that people or programs write. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "tests/unit/base/base_suites.h"

/* --- the buffer ----------------------------------------------------------------------------------------- */

START_TEST(a_buffer_grows_and_stays_terminated)
{
    autotext struct text text = {0};
    for (int i = 0; i < 1000; i++) {
        text_append(&text, "ab");
        ck_assert_uint_eq(text.length, 2 * (size_t)(i + 1));
        ck_assert_int_eq(text.bytes[text.length], '\0');
    }
    ck_assert_uint_eq(strlen(text.bytes), 2000);
}
END_TEST

START_TEST(printing_into_a_buffer_appends_whatever_its_length)
{
    autotext struct text text = {0};
    for (int width = 1; width < 200; width++) {
        text_clear(&text);
        text_append(&text, "<");
        text_printf(&text, "%0*d>", width, 7);
        ck_assert_uint_eq(text.length, (size_t)width + 2);
        ck_assert_str_eq(text.bytes + text.length - 2, "7>");
    }
}
END_TEST

START_TEST(taking_the_bytes_leaves_an_empty_buffer_and_is_never_null)
{
    struct text text = {0};
    autofree char *nothing = text_take(&text);
    ck_assert_str_eq(nothing, "");
    text_append(&text, "kept");
    autofree char *kept = text_take(&text);
    ck_assert_str_eq(kept, "kept");
    ck_assert_ptr_null(text.bytes);
    ck_assert_uint_eq(text.length, 0);
}
END_TEST

START_TEST(a_buffer_holds_nul_bytes)
{
    autotext struct text text = {0};
    text_append_bytes(&text, "a\0b", 3);
    text_append_bytes(&text, NULL, 0);
    ck_assert_uint_eq(text.length, 3);
    ck_assert_mem_eq(text.bytes, "a\0b", 4);
}
END_TEST

START_TEST(memory_that_is_out_ends_the_program_with_a_sentence)
{
    int said[2];
    ck_assert_int_eq(pipe(said), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(said[1], STDERR_FILENO);
        out_of_memory();
    }
    close(said[1]);
    char line[256] = "";
    ssize_t length = read(said[0], line, sizeof line - 1);
    close(said[0]);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGABRT);
    ck_assert_int_gt(length, 0);
    ck_assert_ptr_nonnull(strstr(line, ": out of memory\n"));
}
END_TEST

START_TEST(a_reserve_that_cannot_be_met_aborts)
{
    struct text text = {.length = 1};
    text_reserve(&text, SIZE_MAX);
}
END_TEST

START_TEST(copies_are_cut_where_asked)
{
    autofree char *whole = xstrdup("whole");
    autofree char *cut = xstrndup("whole", 2);
    autofree char *longer = xstrndup("ab", 10);
    autofree char *printed = xprintf("%s-%d", "a", 1);
    ck_assert_str_eq(whole, "whole");
    ck_assert_str_eq(cut, "wh");
    ck_assert_str_eq(longer, "ab");
    ck_assert_str_eq(printed, "a-1");
}
END_TEST

/* --- JSON strings --------------------------------------------------------------------------------------- */

static void assert_json(const char *bytes, size_t length, const char *expected)
{
    autotext struct text text = {0};
    text_json_string(&text, bytes, length);
    ck_assert_str_eq(text.bytes, expected);
}

START_TEST(plain_text_and_utf8_enter_json_unchanged)
{
    assert_json("", 0, "\"\"");
    const char *plain = "The quick brown fox, 0123456789, ~ and \x7f.";
    autofree char *quoted = xprintf("\"%s\"", plain);
    assert_json(plain, strlen(plain), quoted);
    const char *utf8 = "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\x80 \xed\x9f\xbf \xf4\x8f\xbf\xbf";
    autofree char *quoted_utf8 = xprintf("\"%s\"", utf8);
    assert_json(utf8, strlen(utf8), quoted_utf8);
}
END_TEST

START_TEST(quotes_backslashes_and_controls_are_escaped_in_json)
{
    assert_json("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
    assert_json("\n\r\t\b\f", 5, "\"\\n\\r\\t\\b\\f\"");
    assert_json("\0\x01\x1f", 3, "\"\\u0000\\u0001\\u001f\"");
}
END_TEST

START_TEST(an_escape_is_found_at_every_place_of_a_long_text)
{
    static const char *const escapes[][2] = {
        {"\"", "\\\""}, {"\\", "\\\\"}, {"\n", "\\n"}, {"\x1f", "\\u001f"}, {"\xff", "\\ufffd"}};
    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++) {
        for (size_t at = 0; at < 24; at++) {
            char bytes[25] = "abcdefghijklmnopqrstuvwx";
            bytes[at] = escapes[i][0][0];
            autofree char *expected = xprintf("\"%.*s%s%s\"", (int)at, bytes, escapes[i][1], bytes + at + 1);
            assert_json(bytes, 24, expected);
        }
    }
}
END_TEST

START_TEST(bytes_that_are_not_utf8_become_the_replacement_character)
{
    assert_json("\x80", 1, "\"\\ufffd\"");                                  /* a continuation alone */
    assert_json("a\xc3", 2, "\"a\\ufffd\"");                                /* cut off */
    assert_json("\xc3(", 2, "\"\\ufffd(\"");                                /* not continued */
    assert_json("\xc0\xaf", 2, "\"\\ufffd\\ufffd\"");                       /* overlong */
    assert_json("\xe0\x80\x80", 3, "\"\\ufffd\\ufffd\\ufffd\"");            /* overlong */
    assert_json("\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\"");            /* a surrogate */
    assert_json("\xf0\x8f\xbf\xbf", 4, "\"\\ufffd\\ufffd\\ufffd\\ufffd\""); /* overlong */
    assert_json("\xf4\x90\x80\x80", 4, "\"\\ufffd\\ufffd\\ufffd\\ufffd\""); /* above U+10FFFF */
    assert_json("\xff", 1, "\"\\ufffd\"");
}
END_TEST

/* --- numbers and durations ------------------------------------------------------------------------------ */

START_TEST(whole_numbers_are_read_to_both_ends_of_their_range)
{
    int64_t value = 0;
    ck_assert(text_to_int("9223372036854775807", INT64_MIN, INT64_MAX, &value));
    ck_assert_int_eq(value, INT64_MAX);
    ck_assert(text_to_int("-9223372036854775808", INT64_MIN, INT64_MAX, &value));
    ck_assert_int_eq(value, INT64_MIN);
    ck_assert(text_to_int("007", 1, 7, &value));
    ck_assert_int_eq(value, 7);
}
END_TEST

START_TEST(what_is_no_whole_number_in_range_is_refused_and_changes_nothing)
{
    static const char *const wrong[] = {"",
                                        "-",
                                        "+1",
                                        " 1",
                                        "1 ",
                                        "1.0",
                                        "0x1",
                                        "1e3",
                                        "--1",
                                        "9",
                                        "-1",
                                        "9223372036854775808",
                                        "-9223372036854775809",
                                        "99999999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int64_t value = 42;
        ck_assert_msg(!text_to_int(wrong[i], 0, 8, &value), "%s", wrong[i]);
        ck_assert_int_eq(value, 42);
    }
}
END_TEST

static void assert_size(const char *string, int64_t expected)
{
    int64_t bytes = -1;
    ck_assert_msg(text_to_size(string, &bytes), "%s", string);
    ck_assert_int_eq(bytes, expected);
}

START_TEST(sizes_are_read_as_people_write_them)
{
    assert_size("0", 0);
    assert_size("1048576", 1048576);
    assert_size("4K", 4096);
    assert_size("512M", 512LL << 20);
    assert_size("64g", 64LL << 30);
    assert_size("64GB", 64LL << 30);
    assert_size("64Gi", 64LL << 30);
    assert_size("2GiB", 2LL << 30);
    assert_size("8388607T", 8388607LL << 40);
}
END_TEST

START_TEST(sizes_that_could_mean_two_things_or_do_not_fit_are_refused)
{
    static const char *const wrong[] = {"",      "G",    "-1G", "1.5G",     "1 G",
                                        "1 ",    "1P",   "1GG", "1iB",      "1B",
                                        "1Gib ", "1G1M", "0x1", "8388608T", "9223372036854775808"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int64_t bytes = 42;
        ck_assert_msg(!text_to_size(wrong[i], &bytes), "%s", wrong[i]);
    }
}
END_TEST

static void assert_duration(const char *string, int64_t expected_ms)
{
    int64_t ms = -1;
    ck_assert_msg(text_to_duration_ms(string, &ms), "%s", string);
    ck_assert_int_eq(ms, expected_ms);
}

START_TEST(durations_are_read_as_people_write_them)
{
    assert_duration("90", 90000);
    assert_duration("0", 0);
    assert_duration("90s", 90000);
    assert_duration("15m", 900000);
    assert_duration("2h", 7200000);
    assert_duration("1d12h", 129600000);
    assert_duration("250ms", 250);
    assert_duration("1d2h3m4s5ms", 93784005);
}
END_TEST

START_TEST(durations_that_could_mean_two_things_or_do_not_fit_are_refused)
{
    static const char *const wrong[] = {"",
                                        "s",
                                        "-1s",
                                        "1.5h",
                                        "1h30",
                                        "1m1h",
                                        "1h1h",
                                        "1 h",
                                        "1w",
                                        "1H",
                                        "h1",
                                        "1hm",
                                        "9223372036854775807s",
                                        "106751991168d",
                                        "9223372036854775807"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int64_t ms = 42;
        ck_assert_msg(!text_to_duration_ms(wrong[i], &ms), "%s", wrong[i]);
        ck_assert_int_eq(ms, 42);
    }
}
END_TEST

static void assert_duration_shown(int64_t ms, const char *expected)
{
    char shown[32];
    text_from_duration_ms(ms, shown, sizeof shown);
    ck_assert_str_eq(shown, expected);
}

START_TEST(durations_are_shown_in_at_most_two_units)
{
    assert_duration_shown(0, "0 ms");
    assert_duration_shown(-5, "0 ms");
    assert_duration_shown(250, "250 ms");
    assert_duration_shown(1449, "1.4 s");
    assert_duration_shown(42900, "42 s");
    assert_duration_shown(180000, "3 min");
    assert_duration_shown(185000, "3 min 05 s");
    assert_duration_shown(7500000, "2 h 05 min");
    assert_duration_shown(86400000, "1 d");
    assert_duration_shown(INT64_MAX, "106751991167 d 07 h");
}
END_TEST

/* --- hex, ids, base64, names ---------------------------------------------------------------------------- */

START_TEST(hex_goes_there_and_back)
{
    const uint8_t bytes[] = {0x00, 0x7f, 0xa5, 0xff};
    char hex[9];
    text_to_hex(bytes, sizeof bytes, hex);
    ck_assert_str_eq(hex, "007fa5ff");
    uint8_t back[4];
    ck_assert(text_from_hex(hex, back, sizeof back));
    ck_assert_mem_eq(back, bytes, sizeof bytes);
    ck_assert(text_from_hex("007FA5fF", back, sizeof back));
    ck_assert_mem_eq(back, bytes, sizeof bytes);
}
END_TEST

START_TEST(hex_of_another_length_or_with_other_characters_is_refused)
{
    uint8_t out[2] = {1, 2};
    ck_assert(!text_from_hex("", out, 2));
    ck_assert(!text_from_hex("abc", out, 2));
    ck_assert(!text_from_hex("abcde", out, 2));
    ck_assert(!text_from_hex("abcg", out, 2));
    ck_assert(!text_from_hex("0xab", out, 2));
    ck_assert_int_eq(out[0], 1);
}
END_TEST

START_TEST(an_id_is_sixteen_base32_characters_of_its_ten_bytes)
{
    char id[ID_LENGTH + 1];
    const uint8_t zeros[10] = {0};
    text_id_from_bytes(zeros, id);
    ck_assert_str_eq(id, "aaaaaaaaaaaaaaaa");
    const uint8_t bytes[10] = {'f', 'o', 'o', 'b', 'a', 'r', 0xff, 0xff, 0xff, 0xff};
    text_id_from_bytes(bytes, id);
    ck_assert_str_eq(id, "mzxw6ytbol777777");
    ck_assert(text_is_id(id));
}
END_TEST

START_TEST(what_is_no_id_is_told_apart)
{
    ck_assert(!text_is_id(""));
    ck_assert(!text_is_id("mzxw6ytbol77777"));
    ck_assert(!text_is_id("mzxw6ytbol7777777"));
    ck_assert(!text_is_id("mzxw6ytbol77777A"));
    ck_assert(!text_is_id("mzxw6ytbol777770"));
}
END_TEST

START_TEST(base64_agrees_with_the_vectors_of_the_rfc_both_ways)
{
    static const char *const vectors[][2] = {{"", ""},
                                             {"f", "Zg=="},
                                             {"fo", "Zm8="},
                                             {"foo", "Zm9v"},
                                             {"foob", "Zm9vYg=="},
                                             {"fooba", "Zm9vYmE="},
                                             {"foobar", "Zm9vYmFy"},
                                             {"\xff\xfe\xfd", "//79"}};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        size_t plain_length = strlen(vectors[i][0]);
        autofree char *encoded = text_to_base64((const uint8_t *)vectors[i][0], plain_length);
        ck_assert_str_eq(encoded, vectors[i][1]);
        autofree uint8_t *decoded = NULL;
        size_t length = 99;
        ck_assert(text_from_base64(encoded, strlen(encoded), &decoded, &length));
        ck_assert_uint_eq(length, plain_length);
        ck_assert_int_eq(memcmp(decoded, vectors[i][0], length), 0);
    }
}
END_TEST

START_TEST(base64_with_gaps_wrong_padding_or_spare_bits_is_refused)
{
    static const char *const wrong[] = {
        "Z",    "Zg",        "Zg=",    "Zg===", "Zh==", "Zm9=",     "=",
        "====", "Zm9v Zg==", "Zm9v\n", "Zm-_",  "Z=g=", "Zg==Zg==", "Zm9vY==="};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint8_t *decoded = NULL;
        size_t length = 99;
        ck_assert_msg(!text_from_base64(wrong[i], strlen(wrong[i]), &decoded, &length), "%s", wrong[i]);
        ck_assert_ptr_null(decoded);
        ck_assert_uint_eq(length, 99);
    }
}
END_TEST

START_TEST(names_start_with_a_letter_or_digit_and_keep_to_their_length)
{
    ck_assert(text_is_name("a", 1));
    ck_assert(text_is_name("H100-80.gb_x", 63));
    ck_assert(text_is_name("0abc", 4));
    ck_assert(!text_is_name("", 63));
    ck_assert(!text_is_name("abcde", 4));
    ck_assert(!text_is_name("-a", 63));
    ck_assert(!text_is_name(".a", 63));
    ck_assert(!text_is_name("a b", 63));
    ck_assert(!text_is_name("a/b", 63));
    ck_assert(!text_is_name("\xc3\xa9", 63));
}
END_TEST

START_TEST(distance_counts_edits_and_ignores_letter_case)
{
    ck_assert_uint_eq(text_distance("", ""), 0);
    ck_assert_uint_eq(text_distance("", "abc"), 3);
    ck_assert_uint_eq(text_distance("kitten", "sitting"), 3);
    ck_assert_uint_eq(text_distance("GPU-Type", "gpu-type"), 0);
    ck_assert_uint_eq(text_distance("gpu-typ", "gpu-type"), 1);
}
END_TEST

START_TEST(words_too_long_to_compare_are_far_apart)
{
    char longer[200];
    memset(longer, 'a', sizeof longer);
    longer[199] = '\0';
    ck_assert_uint_gt(text_distance(longer, longer), 64);
    longer[64] = '\0';
    ck_assert_uint_eq(text_distance(longer, longer), 0);
}
END_TEST

static void add_buffer_tests(TCase *cases)
{
    tcase_add_test(cases, a_buffer_grows_and_stays_terminated);
    tcase_add_test(cases, printing_into_a_buffer_appends_whatever_its_length);
    tcase_add_test(cases, taking_the_bytes_leaves_an_empty_buffer_and_is_never_null);
    tcase_add_test(cases, a_buffer_holds_nul_bytes);
    tcase_add_test(cases, memory_that_is_out_ends_the_program_with_a_sentence);
    tcase_add_test_raise_signal(cases, a_reserve_that_cannot_be_met_aborts, SIGABRT);
    tcase_add_test(cases, copies_are_cut_where_asked);
    tcase_add_test(cases, plain_text_and_utf8_enter_json_unchanged);
    tcase_add_test(cases, quotes_backslashes_and_controls_are_escaped_in_json);
    tcase_add_test(cases, an_escape_is_found_at_every_place_of_a_long_text);
    tcase_add_test(cases, bytes_that_are_not_utf8_become_the_replacement_character);
}

static void add_spelling_tests(TCase *cases)
{
    tcase_add_test(cases, whole_numbers_are_read_to_both_ends_of_their_range);
    tcase_add_test(cases, what_is_no_whole_number_in_range_is_refused_and_changes_nothing);
    tcase_add_test(cases, sizes_are_read_as_people_write_them);
    tcase_add_test(cases, sizes_that_could_mean_two_things_or_do_not_fit_are_refused);
    tcase_add_test(cases, durations_are_read_as_people_write_them);
    tcase_add_test(cases, durations_that_could_mean_two_things_or_do_not_fit_are_refused);
    tcase_add_test(cases, durations_are_shown_in_at_most_two_units);
    tcase_add_test(cases, hex_goes_there_and_back);
    tcase_add_test(cases, hex_of_another_length_or_with_other_characters_is_refused);
    tcase_add_test(cases, an_id_is_sixteen_base32_characters_of_its_ten_bytes);
    tcase_add_test(cases, what_is_no_id_is_told_apart);
    tcase_add_test(cases, base64_agrees_with_the_vectors_of_the_rfc_both_ways);
    tcase_add_test(cases, base64_with_gaps_wrong_padding_or_spare_bits_is_refused);
    tcase_add_test(cases, names_start_with_a_letter_or_digit_and_keep_to_their_length);
    tcase_add_test(cases, distance_counts_edits_and_ignores_letter_case);
    tcase_add_test(cases, words_too_long_to_compare_are_far_apart);
}

Suite *text_suite(void)
{
    Suite *suite = suite_create("text");
    TCase *buffers = tcase_create("buffers");
    add_buffer_tests(buffers);
    suite_add_tcase(suite, buffers);
    TCase *spellings = tcase_create("spellings");
    add_spelling_tests(spellings);
    suite_add_tcase(suite, spellings);
    return suite;
}
