/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/wire/frame: what one side writes the other reads, however it is cut, and nothing else is
 * taken. */
#include <string.h>

#include "proto/limits.h"
#include "proto/wire/frame.h"
#include "tests/unit/proto/proto_suites.h"

static enum frame_look look(const char *bytes, size_t length)
{
    struct frame frame;
    size_t used;
    struct err err;
    return frame_decode(bytes, length, &frame, &used, &err);
}

START_TEST(a_frame_is_read_again_once_it_is_whole)
{
    char bytes[FRAME_HEAD_BYTES + 5] = {0};
    struct frame frame;
    size_t used;
    struct err err;
    frame_head(FRAME_DATA, 5, bytes);
    memcpy(bytes + FRAME_HEAD_BYTES, "hello", 5);
    for (size_t length = 0; length < sizeof bytes; length++) {
        ck_assert_int_eq(look(bytes, length), FRAME_PART);
    }
    ck_assert_int_eq(frame_decode(bytes, sizeof bytes, &frame, &used, &err), FRAME_WHOLE);
    ck_assert_int_eq(frame.kind, FRAME_DATA);
    ck_assert_uint_eq(used, sizeof bytes);
    ck_assert_mem_eq(frame.bytes, "hello", frame.length);
}
END_TEST

START_TEST(numbers_are_read_again)
{
    static const struct {
        enum frame_kind kind;
        uint32_t first, second;
    } rows[] = {{FRAME_SIZE, 65535, 80}, {FRAME_EXIT, 137, 9}, {FRAME_CREDIT, 0x01020304, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char bytes[FRAME_NUMBERS_BYTES];
        struct frame frame;
        size_t used;
        struct err err;
        size_t length = frame_numbers(rows[i].kind, rows[i].first, rows[i].second, bytes);
        ck_assert_int_eq(frame_decode(bytes, length, &frame, &used, &err), FRAME_WHOLE);
        ck_assert_uint_eq(used, length);
        ck_assert_uint_eq(frame.numbers[0], rows[i].first);
        ck_assert_uint_eq(frame.numbers[1], rows[i].second);
    }
}
END_TEST

START_TEST(what_is_no_frame_is_refused_at_its_head)
{
    static const char none[] = {0, 0, 0, 1}, unknown[] = {8, 0, 0, 1}, empty[] = {FRAME_DATA, 0, 0, 0};
    static const char large[] = {FRAME_DATA, 1, 0, 1}, end[] = {FRAME_END, 0, 0, 1},
                      size[] = {FRAME_SIZE, 0, 0, 3};
    ck_assert_int_eq(look(none, 1), FRAME_WRONG);
    ck_assert_int_eq(look(unknown, 1), FRAME_WRONG);
    ck_assert_int_eq(look(empty, 4), FRAME_WRONG);
    ck_assert_int_eq(look(large, 4), FRAME_WRONG); /* one byte above LIMIT_FRAME_BYTES */
    ck_assert_int_eq(look(end, 4), FRAME_WRONG);
    ck_assert_int_eq(look(size, 4), FRAME_WRONG);
}
END_TEST

Suite *frame_suite(void)
{
    Suite *suite = suite_create("frame");
    TCase *tests = tcase_create("frame");
    tcase_add_test(tests, a_frame_is_read_again_once_it_is_whole);
    tcase_add_test(tests, numbers_are_read_again);
    tcase_add_test(tests, what_is_no_frame_is_refused_at_its_head);
    suite_add_tcase(suite, tests);
    return suite;
}
