/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the parts of client/cli/top: keys, lines, tables, totals, samples, ranks. */
#include <math.h>
#include <string.h>

#include "client/cli/top/top_columns.h"
#include "client/cli/top/top_frame.h"
#include "client/cli/top/top_head.h"
#include "client/cli/top/data/top_job.h"
#include "client/cli/top/top_keys.h"
#include "client/cli/top/data/top_samples.h"
#include "client/cli/top/top_table.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "tests/unit/cli/cli_suites.h"
#include "tests/unit/cli/top_rig.h"

static void check_lines(struct text_list *frame, const char *wanted)
{
    autofree char *all = top_joined(frame);
    ck_assert_str_eq(all, wanted);
    text_list_finish(frame);
}

/* --- keys ----------------------------------------------------------------------------------------------- */

static void check_key(struct top_keys *keys, bool silent, enum top_key_kind kind, const char *text)
{
    struct top_key key;
    ck_assert(top_keys_next(keys, silent, &key));
    ck_assert_int_eq(key.kind, kind);
    ck_assert_str_eq(key.text, text);
}

static void check_no_key(struct top_keys *keys, bool silent)
{
    struct top_key key;
    ck_assert(!top_keys_next(keys, silent, &key));
}

START_TEST(keys_come_one_after_the_other)
{
    struct top_keys keys = {0};
    top_press(&keys, "q\033[A\033OB\033[5~\033[6~\033[H\033[F\033[Z\t\r\x7f\033[1;5C\033[99~\x01");
    check_key(&keys, false, TOP_KEY_TEXT, "q");
    check_key(&keys, false, TOP_KEY_UP, "");
    check_key(&keys, false, TOP_KEY_DOWN, "");
    check_key(&keys, false, TOP_KEY_PAGE_UP, "");
    check_key(&keys, false, TOP_KEY_PAGE_DOWN, "");
    check_key(&keys, false, TOP_KEY_HOME, "");
    check_key(&keys, false, TOP_KEY_END, "");
    check_key(&keys, false, TOP_KEY_BACK_TAB, "");
    check_key(&keys, false, TOP_KEY_TAB, "");
    check_key(&keys, false, TOP_KEY_ENTER, "");
    check_key(&keys, false, TOP_KEY_BACKSPACE, "");
    check_key(&keys, false, TOP_KEY_RIGHT, "");
    check_key(&keys, false, TOP_KEY_OTHER, "");
    check_key(&keys, false, TOP_KEY_OTHER, "");
    check_no_key(&keys, true);
}
END_TEST

START_TEST(a_sequence_in_parts_is_one_key_and_an_escape_alone_is_the_escape_key)
{
    struct top_keys keys = {0};
    top_press(&keys, "\033");
    check_no_key(&keys, false);
    top_press(&keys, "[");
    check_no_key(&keys, false);
    top_press(&keys, "B");
    check_key(&keys, false, TOP_KEY_DOWN, "");
    top_press(&keys, "\033");
    check_no_key(&keys, false);
    check_key(&keys, true, TOP_KEY_ESCAPE, "");
    top_press(&keys, "\033x");
    check_key(&keys, false, TOP_KEY_ESCAPE, "");
    check_key(&keys, false, TOP_KEY_TEXT, "x");
    top_press(&keys, "\033[1;");
    check_no_key(&keys, false);
    check_key(&keys, true, TOP_KEY_OTHER, "");
    check_no_key(&keys, true);
}
END_TEST

START_TEST(characters_of_several_bytes_are_one_key_and_other_bytes_none_that_means_anything)
{
    struct top_keys keys = {0};
    top_press(&keys, "\xc3\xa9\xe2\x82");
    check_key(&keys, false, TOP_KEY_TEXT, "\xc3\xa9");
    check_no_key(&keys, false);
    top_press(&keys, "\xac\xff\xc3x");
    check_key(&keys, false, TOP_KEY_TEXT, "\xe2\x82\xac");
    check_key(&keys, false, TOP_KEY_OTHER, "");
    check_key(&keys, false, TOP_KEY_OTHER, "");
    check_key(&keys, false, TOP_KEY_TEXT, "x");
    check_no_key(&keys, true);
}
END_TEST

START_TEST(more_bytes_than_there_is_room_for_are_dropped)
{
    struct top_keys keys = {0};
    struct top_key key;
    char many[2 * TOP_KEYS_BYTES];
    memset(many, '\033', sizeof many);
    many[1] = '[';
    memset(many + 2, '1', sizeof many - 2);
    top_keys_add(&keys, many, sizeof many);
    check_key(&keys, false, TOP_KEY_OTHER, "");
    ck_assert(!top_keys_next(&keys, true, &key));
}
END_TEST

/* --- lines ---------------------------------------------------------------------------------------------- */

START_TEST(a_line_is_cut_at_the_width_and_text_of_others_cannot_steer_the_terminal)
{
    struct top_look look = {.width = 12, .escapes = true, .colour = true};
    struct text_list frame = {0};
    struct top_line line;
    top_line_begin(&line, &look, NULL);
    top_line_put(&line, "a\033[2J\xc2\x9b\n", NULL);
    top_line_put(&line, "red", TOP_RED);
    top_line_put(&line, "beyond", TOP_RED);
    top_line_end(&line, &frame);
    check_lines(&frame, "a?[2J?? \033[31mred\033[0m\033[31mb\033[0m\n");
}
END_TEST

START_TEST(fields_are_filled_on_either_side_and_a_reversed_line_to_its_end)
{
    struct top_look look = {.width = 14, .escapes = true, .colour = true};
    struct text_list frame = {0};
    struct top_line line;
    top_line_begin(&line, &look, TOP_REVERSE);
    top_line_field(&line, "\xc3\xa9", 4, false, TOP_RED);
    top_line_field(&line, "7", 4, true, NULL);
    top_line_field(&line, "longer", 3, true, NULL);
    top_line_end(&line, &frame);
    look.escapes = look.colour = false;
    top_line_begin(&line, &look, TOP_REVERSE);
    top_line_field(&line, "a", 20, false, TOP_RED);
    top_line_end(&line, &frame);
    check_lines(&frame, "\033[7m\xc3\xa9      7lon   \033[0m\na\n");
}
END_TEST

START_TEST(a_bar_has_its_cells_in_utf8_or_ascii)
{
    autotext struct text out = {0};
    struct top_look look = top_plain;
    top_bar(&look, 0.5, 4, &out);
    text_append(&out, " ");
    top_bar(&look, -1, 2, &out);
    top_bar(&look, 7, 2, &out);
    top_bar(&look, (double)NAN, 1, &out);
    look.utf8 = true;
    top_bar(&look, 0.5, 2, &out);
    ck_assert_str_eq(out.bytes, "##.. ..##.\xe2\x96\x88\xe2\x96\x91");
}
END_TEST

static void check_output(const char *bytes, size_t length, size_t most, const char *wanted)
{
    struct text_list frame = {0};
    top_output(&top_plain, bytes, length, most, &frame);
    check_lines(&frame, wanted);
}

START_TEST(output_of_programs_is_shown_without_what_it_would_do_to_a_terminal)
{
    static const char wild[] =
        "one\n\033[31mred\033[0m\033]0;title\007\n10%\r50%\r100%\r\nta\tb\xff\xc2\x9b\0c\n";
    check_output(wild, sizeof wild - 1, 9, "one\nred]0;title\n100%\nta      b???c\n");
    check_output(wild, sizeof wild - 1, 2, "100%\nta      b???c\n");
    check_output(wild, sizeof wild - 1, 0, "");
    check_output("a\nb", 3, 1, "b\n");
    check_output("a\n\n", 3, 1, "\n");
    check_output("\xe2xyz", 4, 1, "?xyz\n");
    check_output("", 0, 5, "");
    check_output("x\033[", 3, 5, "x\n");
}
END_TEST

/* --- tables --------------------------------------------------------------------------------------------- */

/* The keys of the rows with blanks between them; the caller frees it. */
static char *keys_of(const char *rows, size_t column, bool reverse, const char *filter)
{
    autojson json_t *json = top_parse(rows);
    autorowlist struct top_rows made = {0};
    struct text keys = {0};
    const struct top_order order = {.column = column, .reverse = reverse, .filter = filter};
    top_rows_make(top_table_of(TOP_QUEUE), json, &order, &top_plain, &made);
    for (size_t i = 0; i < made.count; i++) {
        text_printf(&keys, "%s%s", i > 0 ? " " : "", top_rows_key(&made, i));
    }
    return text_take(&keys);
}

static void check_keys(size_t column, bool reverse, const char *filter, const char *wanted)
{
    autofree char *keys = keys_of(top_queue, column, reverse, filter);
    ck_assert_str_eq(keys, wanted);
}

START_TEST(rows_are_sorted_by_text_or_value_with_equal_ones_in_their_order_and_missing_ones_last)
{
    check_keys(1, false, NULL, "a1 b2 c3");
    check_keys(1, true, NULL, "c3 b2 a1");
    check_keys(4, false, NULL, "a1 c3 b2");
    check_keys(6, false, NULL, "a1 c3 b2");
    check_keys(6, true, NULL, "b2 a1 c3");
    check_keys(7, false, NULL, "a1 b2 c3");
    check_keys(7, true, NULL, "a1 b2 c3");
}
END_TEST

START_TEST(a_filter_keeps_rows_with_the_text_in_any_cell)
{
    check_keys(0, false, "ALPHA", "a1");
    check_keys(0, false, "h100", "c3");
    check_keys(0, false, "ann", "a1 b2 c3");
    check_keys(0, false, "", "a1 b2 c3");
    check_keys(0, false, "no such", "");
}
END_TEST

/* The lines of the queue, sorted by id. */
static void draw_queue(const struct top_look *look, size_t first, size_t shown, size_t selected,
                       struct text_list *frame)
{
    autojson json_t *json = top_parse(top_queue);
    autorowlist struct top_rows made = {0};
    top_rows_make(top_table_of(TOP_QUEUE), json, &(struct top_order){.column = 0}, look, &made);
    top_rows_draw(&made, first, shown, selected, look, frame);
}

START_TEST(a_table_marks_the_selected_row_and_shows_the_rows_from_the_first_on)
{
    struct text_list frame = {0};
    draw_queue(&top_plain, 1, 1, 1, &frame);
    check_lines(&frame, "  ID  NAME   STATE   OWNER  GPUS  TYPE  PRIORITY  WAITS  REASON\n"
                        "> b2  beta   QUEUED  ann      16  -            5      -  -\n");
}
END_TEST

START_TEST(a_narrow_table_leaves_columns_out_and_then_cuts_lines)
{
    struct text_list frame = {0};
    struct top_look look = top_plain;
    look.width = 73; /* of all columns */
    draw_queue(&look, 2, 1, TOP_NO_ROW, &frame);
    look.width = 66;
    draw_queue(&look, 2, 1, TOP_NO_ROW, &frame);
    look.width = 30;
    draw_queue(&look, 0, 1, TOP_NO_ROW, &frame);
    check_lines(&frame, "  ID  NAME   STATE   OWNER  GPUS  TYPE  PRIORITY  WAITS  REASON\n"
                        "  c3  gamma  QUEUED  ann       8  H100         0      -  waits for 8 H100\n"
                        "  ID  NAME   STATE   OWNER  GPUS  PRIORITY  WAITS  REASON\n"
                        "  c3  gamma  QUEUED  ann       8         0      -  waits for 8 H10\n"
                        "  ID  NAME   STATE   OWNER  GP\n"
                        "  a1  alpha  QUEUED  ann\n");
}
END_TEST

START_TEST(the_sorted_column_has_a_mark_on_a_terminal)
{
    struct text_list frame = {0};
    struct top_look look = top_plain;
    look.escapes = true;
    look.width = 40;
    draw_queue(&look, 0, 1, 0, &frame);
    check_lines(&frame, "\033[1m  ID ^  NAME   STATE   OWNER  GPUS  PRIO\033[0m\n"
                        "\033[7m> a1    alpha  QUEUED  ann       2      \033[0m\n");
}
END_TEST

/* --- nodes ---------------------------------------------------------------------------------------------- */

START_TEST(free_gpus_of_nodes_that_take_no_work_count_as_unavailable)
{
    autojson json_t *json = top_parse(top_nodes);
    struct text_list frame = {0};
    size_t count;
    autofree struct top_group *groups = top_groups_make(json, &count);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(groups[0].type, "A10");
    ck_assert_str_eq(groups[1].type, "H100");
    ck_assert_int_eq(groups[1].used, 4);
    ck_assert_int_eq(groups[1].free, 5);
    ck_assert_int_eq(groups[1].unavailable, 7);
    top_groups_draw(json, 6, &top_plain, &frame);
    top_groups_draw(json, 1, &top_plain, &frame);
    check_lines(&frame, "A10 in p   ....................  0 of 4 in use, 4 free, 0 unavailable\n"
                        "H100 in p  #####...............  4 of 16 in use, 5 free, 7 unavailable\n"
                        "and 2 more types and pools\n");
}
END_TEST

START_TEST(a_node_shows_its_gpus_and_what_they_do)
{
    autojson json_t *json = top_parse(top_nodes);
    autojson json_t *use = top_parse("{\"gpu_percent\":50,\"gpu_memory_bytes\":4294967296,"
                                     "\"gpu_memory_total_bytes\":8589934592,\"cpu_percent\":12.4}");
    autorowlist struct top_rows made = {0};
    struct text_list frame = {0};
    json_object_set(json_array_get(json, 1), "use", use);
    top_rows_make(top_table_of(TOP_NODES), json, &(struct top_order){.column = 5}, &top_plain, &made);
    top_rows_draw(&made, 0, 2, TOP_NO_ROW, &top_plain, &frame);
    check_lines(
        &frame,
        "  NAME  STATE     POOL  TYPE  GPUS          GPU USE        GPU MEMORY        CPU            MEMORY  "
        "REASON\n"
        "  n2    DRAINING  p     H100  ##...... 2/8  ####....  50%  ####.... 4.0 GiB  #.......  12%       -  "
        "disk\n"
        "  n1    READY     p     H100  ##...... 2/8  -              -                 -                   -  "
        "1 GPU unavailable: ECC\n");
}
END_TEST

/* --- samples and ranks ---------------------------------------------------------------------------------- */

static const char samples[] =
    "{\"node\":\"n1\",\"at_ms\":[1,2],\"cpu_percent\":[1.5,20],\"memory_bytes\":[5,null],\"gpus\":["
    "{\"index\":0,\"utilization_percent\":[0,90],\"memory_bytes\":[1,100]},"
    "{\"index\":2,\"utilization_percent\":[0,30],\"memory_bytes\":[1,300]},"
    "{\"index\":12,\"utilization_percent\":[0,null],\"memory_bytes\":[1,null]},"
    "{\"index\":20,\"utilization_percent\":[0,90],\"memory_bytes\":[1,null]}]}";

static void check_use(const char *devices, const char *wanted)
{
    autojson json_t *reply = top_parse(samples);
    autojson json_t *newest = top_sample_newest(reply);
    autojson json_t *node = top_parse("{\"devices\":[{\"index\":0,\"memory_bytes\":1000},"
                                      "{\"index\":2,\"memory_bytes\":1000},{\"index\":12}]}");
    autojson json_t *totals = top_sample_totals(node);
    autojson json_t *use = top_sample_use(newest, totals, devices);
    autojson json_t *expected = top_parse(wanted);
    autofree char *text = json_text(use);
    ck_assert_msg(json_equal(use, expected), "%s", text);
}

START_TEST(the_newest_sample_counts_for_the_devices_that_are_asked_for)
{
    check_use("2", "{\"gpu_percent\":30.0,\"gpu_memory_bytes\":300.0,\"gpu_memory_total_bytes\":1000.0,"
                   "\"cpu_percent\":20}");
    check_use("0,2", "{\"gpu_percent\":60.0,\"gpu_memory_bytes\":400.0,\"gpu_memory_total_bytes\":2000.0,"
                     "\"cpu_percent\":20}");
    check_use(NULL, "{\"gpu_percent\":70.0,\"gpu_memory_bytes\":400.0,\"gpu_memory_total_bytes\":2000.0,"
                    "\"cpu_percent\":20}");
    check_use("12", "{\"cpu_percent\":20}");
    autojson json_t *none = top_parse("{\"at_ms\":[],\"gpus\":[]}");
    ck_assert_ptr_null(top_sample_newest(none));
    ck_assert_ptr_null(top_sample_use(NULL, NULL, NULL));
}
END_TEST

static void check_ranks(const char *placements, const char *wanted)
{
    autofree char *text = xprintf("{\"nodes\":[%s]}", placements);
    autojson json_t *view = top_parse(text);
    autojson json_t *ranks = top_job_ranks(view, NULL);
    struct text told = {0};
    for (size_t i = 0; i < json_array_size(ranks); i++) {
        const json_t *rank = json_array_get(ranks, i);
        text_printf(&told, "%lld:%s:%s ", (long long)json_integer_value(json_object_get(rank, "rank")),
                    json_string_of(rank, "node"), json_string_of(rank, "devices"));
    }
    autofree char *all = text_take(&told);
    ck_assert_str_eq(all, wanted);
}

START_TEST(ranks_share_the_devices_of_their_node)
{
    check_ranks(PLACED("a", "0", "2", "3,5") "," PLACED("b", "2", "1", "0"), "0:a:3 1:a:5 2:b:0 ");
    check_ranks(PLACED("a", "0", "2", "10,11,2,3"), "0:a:10,11 1:a:2,3 ");
    check_ranks(PLACED("a", "0", "1", "0,1,2"), "0:a:0,1,2 ");
    check_ranks(PLACED("a", "0", "2", "0,1,2"), "0:a:0,1,2 1:a:0,1,2 ");
    check_ranks(PLACED("a", "0", "1", ""), "0:a: ");
    check_ranks("", "");
}
END_TEST

Suite *cli_top_suite(void)
{
    Suite *suite = suite_create("cli_top");
    TCase *parts = tcase_create("parts");
    tcase_add_test(parts, keys_come_one_after_the_other);
    tcase_add_test(parts, a_sequence_in_parts_is_one_key_and_an_escape_alone_is_the_escape_key);
    tcase_add_test(parts, characters_of_several_bytes_are_one_key_and_other_bytes_none_that_means_anything);
    tcase_add_test(parts, more_bytes_than_there_is_room_for_are_dropped);
    tcase_add_test(parts, a_line_is_cut_at_the_width_and_text_of_others_cannot_steer_the_terminal);
    tcase_add_test(parts, fields_are_filled_on_either_side_and_a_reversed_line_to_its_end);
    tcase_add_test(parts, a_bar_has_its_cells_in_utf8_or_ascii);
    tcase_add_test(parts, output_of_programs_is_shown_without_what_it_would_do_to_a_terminal);
    suite_add_tcase(suite, parts);
    TCase *tables = tcase_create("tables");
    tcase_add_test(tables,
                   rows_are_sorted_by_text_or_value_with_equal_ones_in_their_order_and_missing_ones_last);
    tcase_add_test(tables, a_filter_keeps_rows_with_the_text_in_any_cell);
    tcase_add_test(tables, a_table_marks_the_selected_row_and_shows_the_rows_from_the_first_on);
    tcase_add_test(tables, a_narrow_table_leaves_columns_out_and_then_cuts_lines);
    tcase_add_test(tables, the_sorted_column_has_a_mark_on_a_terminal);
    tcase_add_test(tables, free_gpus_of_nodes_that_take_no_work_count_as_unavailable);
    tcase_add_test(tables, a_node_shows_its_gpus_and_what_they_do);
    tcase_add_test(tables, the_newest_sample_counts_for_the_devices_that_are_asked_for);
    tcase_add_test(tables, ranks_share_the_devices_of_their_node);
    suite_add_tcase(suite, tables);
    return suite;
}
