/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/blob/log_reader: lines of metrics, however they were cut on their way. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/text/text.h"
#include "proto/limits_controller.h"
#include "tests/unit/http/http_suites.h"
#include "tests/unit/http/metrics_rig.h"

static void expect_piece(struct log_reader *reader, int64_t rank, const char *text, char *ret_id)
{
    bool found;
    struct log_piece piece;
    ck_assert(log_reader_next(reader, &found, &piece, &rig_err));
    ck_assert(found);
    ck_assert_int_eq(piece.rank, rank);
    ck_assert_uint_eq(piece.length, strlen(text));
    ck_assert_mem_eq(piece.bytes, text, piece.length);
    if (ret_id != NULL) {
        log_piece_id(&piece, piece.length, ret_id);
    }
}

static void expect_nothing(struct log_reader *reader)
{
    bool found;
    struct log_piece piece;
    ck_assert(log_reader_next(reader, &found, &piece, &rig_err));
    ck_assert(!found);
}

START_TEST(a_line_of_metrics_comes_whole_when_its_end_has_come)
{
    char id[LOG_ID_BYTES];
    struct log_reader *reader = rig_reader(NULL);
    rig_store_text(&rig_metrics0, "one\ntw");
    expect_piece(reader, 0, "one\n", NULL);
    expect_nothing(reader);
    rig_store_text(&rig_metrics4, "three");
    rig_store_text(&rig_metrics0, "o");
    expect_nothing(reader);
    rig_store_text(&rig_metrics4, "\n");
    expect_piece(reader, 4, "three\n", id);
    rig_store_text(&rig_metrics0, "\nfour\n");
    expect_piece(reader, 0, "two\nfour\n", NULL);
    log_reader_close(reader);
    reader = rig_reader(id);
    expect_piece(reader, 0, "two\nfour\n", NULL);
    expect_nothing(reader);
    log_reader_close(reader);
}
END_TEST

/* A small generator, so that a failing seed replays. */
static uint32_t seed;

static size_t any_below(size_t limit)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % limit;
}

static void append_row(struct text *text, size_t length)
{
    for (size_t i = 1; i < length; i++) {
        text_append_bytes(text, "x", 1);
    }
    text_append(text, "\n");
}

/* "c17.5 and so on\n": channel, number, and a length that now and then is more than a piece. */
static void write_line(struct text *text, int channel, int number)
{
    size_t length = any_below(20) == 0 ? any_below(3 * LIMIT_LOG_PIECE_BYTES) : any_below(300);
    text_printf(text, "c%d.%d ", channel, number);
    append_row(text, length + 1);
}

/* Stores lines of two nodes in uploads that end anywhere, with output in between. */
static void store_lines(struct text streams[2])
{
    const struct log_name *names[] = {&rig_metrics0, &rig_metrics4};
    size_t sent[2] = {0};
    for (int number = 0; number < 300; number++) {
        write_line(&streams[number % 2], number % 2, number);
    }
    while (sent[0] < streams[0].length || sent[1] < streams[1].length) {
        size_t which = any_below(2);
        size_t left = streams[which].length - sent[which];
        size_t length = 1 + any_below(any_below(2) == 0 ? 40 : 2 * LIMIT_LOG_PIECE_BYTES);
        length = length < left ? length : left;
        if (length > 0) {
            rig_store(names[which], streams[which].bytes + sent[which], length);
            sent[which] += length;
        }
        if (any_below(4) == 0) {
            rig_store_text(&rig_out0, "told\n");
        }
    }
}

/* What a reader should give of a stream: its lines but those that are too long. */
static void keep_short_lines(const struct text *stream, struct text *out)
{
    for (size_t at = 0; at < stream->length;) {
        size_t length = strcspn(stream->bytes + at, "\n") + 1;
        if (length <= (size_t)LIMIT_LOG_PIECE_BYTES) {
            text_append_bytes(out, stream->bytes + at, length);
        }
        at += length;
    }
}

/* Reads all from an id on, into one text a node; a random line is where it stops. */
static bool read_some(char id[LOG_ID_BYTES], struct text seen[2], size_t lines)
{
    struct log_reader *reader = rig_reader(id);
    struct log_piece piece;
    bool found = true;
    while (lines > 0 && log_reader_next(reader, &found, &piece, &rig_err) && found) {
        size_t at = 0;
        lines -= piece.length == 0; /* its id is one to come back with, too */
        for (; at < piece.length && lines > 0; lines--) {
            size_t length =
                (size_t)((char *)memchr(piece.bytes + at, '\n', piece.length - at) - piece.bytes) + 1 - at;
            text_append_bytes(&seen[piece.rank == 4], piece.bytes + at, length);
            at += length;
        }
        log_piece_id(&piece, at, id);
    }
    log_reader_close(reader);
    return found;
}

START_TEST(metrics_are_read_once_and_in_order_from_any_line_on)
{
    seed = (uint32_t)_i;
    struct text streams[2] = {{0}}, want[2] = {{0}}, seen[2] = {{0}};
    char id[LOG_ID_BYTES] = "";
    store_lines(streams);
    while (read_some(id, seen, 1 + any_below(30))) {
    }
    for (int i = 0; i < 2; i++) {
        keep_short_lines(&streams[i], &want[i]);
        text_reserve(&seen[i], 0);
        ck_assert_uint_eq(seen[i].length, want[i].length);
        ck_assert_mem_eq(seen[i].bytes, want[i].bytes, want[i].length);
        text_finish(&streams[i]);
        text_finish(&want[i]);
        text_finish(&seen[i]);
    }
}
END_TEST

START_TEST(a_line_as_long_as_a_piece_is_given_and_a_longer_one_is_passed)
{
    autotext struct text first = {0}, lines = {0};
    append_row(&first, LIMIT_LOG_PIECE_BYTES);
    append_row(&lines, LIMIT_LOG_PIECE_BYTES);
    append_row(&lines, LIMIT_LOG_PIECE_BYTES + 1);
    text_append(&lines, "y\n");
    rig_store_text(&rig_metrics0, lines.bytes);
    struct log_reader *reader = rig_reader(NULL);
    expect_piece(reader, 0, first.bytes, NULL);
    expect_piece(reader, 0, "", NULL);
    expect_piece(reader, 0, "", NULL);
    expect_piece(reader, 0, "y\n", NULL);
    expect_nothing(reader);
    log_reader_close(reader);
}
END_TEST

Suite *metrics_reader_suite(void)
{
    Suite *suite = suite_create("metrics reader");
    TCase *cases = tcase_create("lines");
    tcase_add_checked_fixture(cases, metrics_rig_open, metrics_rig_close);
    tcase_add_test(cases, a_line_of_metrics_comes_whole_when_its_end_has_come);
    tcase_add_test(cases, a_line_as_long_as_a_piece_is_given_and_a_longer_one_is_passed);
    tcase_add_loop_test(cases, metrics_are_read_once_and_in_order_from_any_line_on, 0, 20);
    suite_add_tcase(suite, cases);
    return suite;
}
