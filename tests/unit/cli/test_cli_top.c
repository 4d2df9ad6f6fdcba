/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli/top: keys, lines, tables, totals, samples, ranks, and the picture that a view makes. */
#include <math.h>
#include <string.h>

#include "client/cli/top/top_columns.h"
#include "client/cli/top/top_draw.h"
#include "client/cli/top/top_frame.h"
#include "client/cli/top/top_head.h"
#include "client/cli/top/data/top_job.h"
#include "client/cli/top/top_keys.h"
#include "client/cli/top/data/top_samples.h"
#include "client/cli/top/top_table.h"
#include "client/cli/top/top_view.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "tests/unit/cli/cli_suites.h"

#define NOW_MS 1800000000000 /* 2027-01-15T08:00:00Z */

static const struct top_look plain = {.width = 200, .now_ms = NOW_MS};

static json_t *parse(const char *text)
{
    struct err err;
    json_t *json = json_parse(text, strlen(text), &err);
    ck_assert_msg(json != NULL, "%s", err.text);
    return json;
}

/* All lines, each with its end; the caller frees it. */
static char *joined(const struct text_list *frame)
{
    struct text all = {0};
    for (size_t i = 0; i < frame->count; i++) {
        text_printf(&all, "%s\n", frame->items[i]);
    }
    return text_take(&all);
}

static void check_lines(struct text_list *frame, const char *wanted)
{
    autofree char *all = joined(frame);
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

static void press(struct top_keys *keys, const char *bytes)
{
    top_keys_add(keys, bytes, strlen(bytes));
}

START_TEST(keys_come_one_after_the_other)
{
    struct top_keys keys = {0};
    press(&keys, "q\033[A\033OB\033[5~\033[6~\033[H\033[F\033[Z\t\r\x7f\033[1;5C\033[99~\x01");
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
    press(&keys, "\033");
    check_no_key(&keys, false);
    press(&keys, "[");
    check_no_key(&keys, false);
    press(&keys, "B");
    check_key(&keys, false, TOP_KEY_DOWN, "");
    press(&keys, "\033");
    check_no_key(&keys, false);
    check_key(&keys, true, TOP_KEY_ESCAPE, "");
    press(&keys, "\033x");
    check_key(&keys, false, TOP_KEY_ESCAPE, "");
    check_key(&keys, false, TOP_KEY_TEXT, "x");
    press(&keys, "\033[1;");
    check_no_key(&keys, false);
    check_key(&keys, true, TOP_KEY_OTHER, "");
    check_no_key(&keys, true);
}
END_TEST

START_TEST(characters_of_several_bytes_are_one_key_and_other_bytes_none_that_means_anything)
{
    struct top_keys keys = {0};
    press(&keys, "\xc3\xa9\xe2\x82");
    check_key(&keys, false, TOP_KEY_TEXT, "\xc3\xa9");
    check_no_key(&keys, false);
    press(&keys, "\xac\xff\xc3x");
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
    struct top_look look = plain;
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
    top_output(&plain, bytes, length, most, &frame);
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

#define JOB(id_, name_, gpus_, priority_, rest_)                                                             \
    "{\"id\":\"" id_ "\",\"name\":\"" name_ "\",\"owner\":\"ann\",\"state\":\"QUEUED\",\"gpus\":" gpus_      \
    ",\"priority\":" priority_ rest_ "}"

static const char queue[] =
    "[" JOB("a1", "alpha", "2", "0", ",\"created_at\":\"2027-01-15T07:00:00Z\"") "," JOB(
        "b2", "beta", "16", "5", "") "," JOB("c3", "gamma", "8", "0",
                                             ",\"reason\":\"waits for 8 H100\",\"gpu_type\":\"H100\"") "]";

/* The keys of the rows with blanks between them; the caller frees it. */
static char *keys_of(const char *rows, size_t column, bool reverse, const char *filter)
{
    autojson json_t *json = parse(rows);
    autorowlist struct top_rows made = {0};
    struct text keys = {0};
    const struct top_order order = {.column = column, .reverse = reverse, .filter = filter};
    top_rows_make(top_table_of(TOP_QUEUE), json, &order, &plain, &made);
    for (size_t i = 0; i < made.count; i++) {
        text_printf(&keys, "%s%s", i > 0 ? " " : "", top_rows_key(&made, i));
    }
    return text_take(&keys);
}

static void check_keys(size_t column, bool reverse, const char *filter, const char *wanted)
{
    autofree char *keys = keys_of(queue, column, reverse, filter);
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
    autojson json_t *json = parse(queue);
    autorowlist struct top_rows made = {0};
    top_rows_make(top_table_of(TOP_QUEUE), json, &(struct top_order){.column = 0}, look, &made);
    top_rows_draw(&made, first, shown, selected, look, frame);
}

START_TEST(a_table_marks_the_selected_row_and_shows_the_rows_from_the_first_on)
{
    struct text_list frame = {0};
    draw_queue(&plain, 1, 1, 1, &frame);
    check_lines(&frame, "  ID  NAME   STATE   OWNER  GPUS  TYPE  PRIORITY  WAITS  REASON\n"
                        "> b2  beta   QUEUED  ann      16  -            5      -  -\n");
}
END_TEST

START_TEST(a_narrow_table_leaves_columns_out_and_then_cuts_lines)
{
    struct text_list frame = {0};
    struct top_look look = plain;
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
    struct top_look look = plain;
    look.escapes = true;
    look.width = 40;
    draw_queue(&look, 0, 1, 0, &frame);
    check_lines(&frame, "\033[1m  ID ^  NAME   STATE   OWNER  GPUS  PRIO\033[0m\n"
                        "\033[7m> a1    alpha  QUEUED  ann       2      \033[0m\n");
}
END_TEST

/* --- nodes ---------------------------------------------------------------------------------------------- */

#define NODE(name_, state_, type_, gpus_, free_, unavailable_, rest_)                                        \
    "{\"name\":\"" name_ "\",\"state\":\"" state_ "\",\"pool\":\"p\",\"gpu_type\":\"" type_                  \
    "\",\"gpus\":" gpus_ ",\"free_gpus\":" free_ ",\"unavailable_gpus\":" unavailable_ rest_ "}"

static const char nodes[] =
    "[" NODE("n1", "READY", "H100", "8", "5", "1", ",\"unavailable\":\"ECC\"") "," NODE(
        "n2", "DRAINING", "H100", "8", "6", "0", ",\"reason\":\"disk\"") "," NODE("n3", "READY", "A10", "4",
                                                                                  "4", "0", "") "]";

START_TEST(free_gpus_of_nodes_that_take_no_work_count_as_unavailable)
{
    autojson json_t *json = parse(nodes);
    struct text_list frame = {0};
    size_t count;
    autofree struct top_group *groups = top_groups_make(json, &count);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(groups[0].type, "A10");
    ck_assert_str_eq(groups[1].type, "H100");
    ck_assert_int_eq(groups[1].used, 4);
    ck_assert_int_eq(groups[1].free, 5);
    ck_assert_int_eq(groups[1].unavailable, 7);
    top_groups_draw(json, 6, &plain, &frame);
    top_groups_draw(json, 1, &plain, &frame);
    check_lines(&frame, "A10 in p   ....................  0 of 4 in use, 4 free, 0 unavailable\n"
                        "H100 in p  #####...............  4 of 16 in use, 5 free, 7 unavailable\n"
                        "and 2 more types and pools\n");
}
END_TEST

START_TEST(a_node_shows_its_gpus_and_what_they_do)
{
    autojson json_t *json = parse(nodes);
    autojson json_t *use = parse("{\"gpu_percent\":50,\"gpu_memory_bytes\":4294967296,"
                                 "\"gpu_memory_total_bytes\":8589934592,\"cpu_percent\":12.4}");
    autorowlist struct top_rows made = {0};
    struct text_list frame = {0};
    json_object_set(json_array_get(json, 1), "use", use);
    top_rows_make(top_table_of(TOP_NODES), json, &(struct top_order){.column = 5}, &plain, &made);
    top_rows_draw(&made, 0, 2, TOP_NO_ROW, &plain, &frame);
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
    autojson json_t *reply = parse(samples);
    autojson json_t *newest = top_sample_newest(reply);
    autojson json_t *node = parse("{\"devices\":[{\"index\":0,\"memory_bytes\":1000},"
                                  "{\"index\":2,\"memory_bytes\":1000},{\"index\":12}]}");
    autojson json_t *totals = top_sample_totals(node);
    autojson json_t *use = top_sample_use(newest, totals, devices);
    autojson json_t *expected = parse(wanted);
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
    autojson json_t *none = parse("{\"at_ms\":[],\"gpus\":[]}");
    ck_assert_ptr_null(top_sample_newest(none));
    ck_assert_ptr_null(top_sample_use(NULL, NULL, NULL));
}
END_TEST

static void check_ranks(const char *placements, const char *wanted)
{
    autofree char *text = xprintf("{\"nodes\":[%s]}", placements);
    autojson json_t *view = parse(text);
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

#define PLACED(node_, first_, count_, devices_)                                                              \
    "{\"node\":\"" node_ "\",\"first_rank\":" first_ ",\"local_ranks\":" count_ ",\"devices\":\"" devices_   \
    "\",\"state\":\"RUNNING\"}"

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

/* --- the view ------------------------------------------------------------------------------------------- */

/* The act of the last of these keys, each of which is about the picture that the one before has left. */
static enum top_act type(struct top_view *view, const struct top_picture *picture, const char *bytes)
{
    struct top_look look = plain;
    struct top_keys keys = {0};
    struct top_key key;
    enum top_act act = TOP_NOTHING;
    look.height = 12;
    press(&keys, bytes);
    do {
        struct text_list frame = {0};
        struct top_shown shown = {0};
        top_draw(view, picture, &look, &frame, &shown);
        ck_assert_uint_eq(frame.count, look.height);
        text_list_finish(&frame);
        top_shown_finish(&shown);
        if (!top_keys_next(&keys, true, &key)) {
            return act;
        }
        act = top_view_key(view, &key);
    } while (true);
}

/* A line of the picture; the caller frees it. */
static char *line_of(struct top_view *view, const struct top_picture *picture, size_t line)
{
    struct top_look look = plain;
    struct text_list frame = {0};
    struct top_shown shown = {0};
    look.height = 12;
    top_draw(view, picture, &look, &frame, &shown);
    char *text = xstrdup(frame.items[line]);
    text_list_finish(&frame);
    top_shown_finish(&shown);
    return text;
}

static void check_line(struct top_view *view, const struct top_picture *picture, size_t line,
                       const char *wanted)
{
    autofree char *text = line_of(view, picture, line);
    ck_assert_msg(strstr(text, wanted) != NULL, "\"%s\" is not in \"%s\"", wanted, text);
}

#define LAST 11 /* of the lines */

struct world {
    json_t *nodes, *queue;
    struct top_view view;
    struct top_picture picture;
};

static void world_make(struct world *world)
{
    world->nodes = parse(nodes);
    world->queue = parse(queue);
    world->picture = (struct top_picture){.url = "http://c"};
    world->picture.rows[TOP_NODES] = world->nodes;
    world->picture.rows[TOP_QUEUE] = world->queue;
    top_view_init(&world->view);
}

static void world_end(struct world *world)
{
    json_decref(world->nodes);
    json_decref(world->queue);
}

START_TEST(keys_switch_tables_and_select_rows_within_their_bounds)
{
    struct world world;
    world_make(&world);
    struct top_view *view = &world.view;
    type(view, &world.picture, "3");
    ck_assert_int_eq(view->table, TOP_QUEUE);
    ck_assert_str_eq(view->places[TOP_QUEUE].key, "b2"); /* of the highest priority */
    type(view, &world.picture, "j");
    ck_assert_str_eq(view->places[TOP_QUEUE].key, "a1");
    type(view, &world.picture, "jjjj");
    ck_assert_str_eq(view->places[TOP_QUEUE].key, "c3");
    type(view, &world.picture, "\033[5~\033[A");
    ck_assert_str_eq(view->places[TOP_QUEUE].key, "b2");
    type(view, &world.picture, "\033[F\033[A");
    ck_assert_str_eq(view->places[TOP_QUEUE].key, "a1");
    type(view, &world.picture, "\t\t\t\033[Z");
    ck_assert_int_eq(view->table, TOP_JOBS);
    ck_assert_int_eq(type(view, &world.picture, "\r"), TOP_NOTHING);
    ck_assert_int_eq(type(view, &world.picture, "q"), TOP_QUIT);
    world_end(&world);
}
END_TEST

START_TEST(the_selected_row_stays_selected_when_the_order_or_the_rows_change)
{
    struct world world;
    world_make(&world);
    struct top_view *view = &world.view;
    type(view, &world.picture, "3j");
    ck_assert_str_eq(view->places[TOP_QUEUE].key, "a1");
    type(view, &world.picture, "ss");
    ck_assert_uint_eq(view->places[TOP_QUEUE].column, 8);
    type(view, &world.picture, "<");
    check_line(view, &world.picture, LAST, "sorted by WAITS");
    type(view, &world.picture, "r");
    ck_assert(!view->places[TOP_QUEUE].reverse);
    ck_assert_str_eq(view->places[TOP_QUEUE].key, "a1");
    ck_assert_uint_eq(view->places[TOP_QUEUE].selected, 0);
    json_array_remove(world.queue, 0);
    type(view, &world.picture, "");
    ck_assert_str_eq(view->places[TOP_QUEUE].key, "b2");
    json_array_clear(world.queue);
    type(view, &world.picture, "");
    ck_assert_str_eq(view->places[TOP_QUEUE].key, "");
    world_end(&world);
}
END_TEST

START_TEST(letters_go_into_the_filter_while_it_is_typed)
{
    struct world world;
    world_make(&world);
    struct top_view *view = &world.view;
    ck_assert_int_eq(type(view, &world.picture, "3/gamqx\x7f\xc3\xa9\x7f\x7f"), TOP_NOTHING);
    check_line(view, &world.picture, LAST, "/gam_");
    check_line(view, &world.picture, 3, "1-1 of 1, 2 filtered out");
    type(view, &world.picture, "\r");
    ck_assert(!view->filtering);
    ck_assert_str_eq(view->places[TOP_QUEUE].key, "c3");
    type(view, &world.picture, "\033");
    check_line(view, &world.picture, 3, "1-3 of 3");
    type(view, &world.picture, "/x\033");
    ck_assert_str_eq(view->places[TOP_QUEUE].filter, "");
    world_end(&world);
}
END_TEST

START_TEST(a_change_is_asked_for_by_name_and_only_a_yes_makes_it)
{
    struct world world;
    world_make(&world);
    struct top_view *view = &world.view;
    ck_assert_int_eq(type(view, &world.picture, "3jc"), TOP_NOTHING);
    check_line(view, &world.picture, LAST, "cancel job a1? y/n");
    ck_assert_int_eq(type(view, &world.picture, "q"), TOP_NOTHING);
    check_line(view, &world.picture, LAST, "nothing was changed");
    ck_assert_int_eq(type(view, &world.picture, "cy"), TOP_CANCEL);
    ck_assert_str_eq(view->target, "a1");
    ck_assert_int_eq(type(view, &world.picture, "hy"), TOP_HOLD);
    ck_assert_int_eq(type(view, &world.picture, "uY"), TOP_RELEASE);
    ck_assert_int_eq(type(view, &world.picture, "dy"), TOP_NOTHING);
    ck_assert_int_eq(type(view, &world.picture, "1dy"), TOP_DRAIN);
    ck_assert_str_eq(view->target, "n1");
    ck_assert_int_eq(type(view, &world.picture, "uy"), TOP_RESUME);
    ck_assert_int_eq(type(view, &world.picture, "cy"), TOP_NOTHING);
    ck_assert_int_eq(type(view, &world.picture, "2cy"), TOP_NOTHING);
    world_end(&world);
}
END_TEST

START_TEST(a_long_table_scrolls_with_the_selection)
{
    struct world world;
    world_make(&world);
    for (int i = 0; i < 30; i++) {
        json_array_append_new(world.queue,
                              json_pack("{s:o, s:i}", "id", json_sprintf("z%02d", i), "priority", -1));
    }
    struct top_view *view = &world.view;
    world.picture.cut[TOP_QUEUE] = true;
    type(view, &world.picture, "3\033[F");
    ck_assert_uint_eq(view->page, 6);
    check_line(view, &world.picture, 3, "28-33 of 33, and more: these are the newest");
    check_line(view, &world.picture, 10, "> z29");
    type(view, &world.picture, "\033[5~");
    check_line(view, &world.picture, 3, "27-32 of 33");
    check_line(view, &world.picture, 5, "> z23");
    world_end(&world);
}
END_TEST

START_TEST(trouble_takes_a_line_and_help_all_of_them)
{
    struct world world;
    world_make(&world);
    world.picture.trouble = "the controller does not answer since noon";
    check_line(&world.view, &world.picture, 1, "since noon");
    check_line(&world.view, &world.picture, 0, "nodes: 3  jobs: 0 running, 3 waiting");
    type(&world.view, &world.picture, "?");
    check_line(&world.view, &world.picture, 1, "show nodes, jobs that run, jobs that wait");
    ck_assert_int_eq(type(&world.view, &world.picture, "q"), TOP_NOTHING);
    check_line(&world.view, &world.picture, 1, "since noon");
    world_end(&world);
}
END_TEST

START_TEST(a_job_is_shown_with_its_ranks_and_the_output_of_the_selected_one)
{
    struct world world;
    world_make(&world);
    struct top_view *view = &world.view;
    struct text output = {.bytes = (char[]){"hello\nworld\n"}, .length = 12};
    autojson json_t *job = parse(
        "{\"id\":\"x7\",\"state\":\"RUNNING\",\"gpus\":3,\"reason\":\"a\\u001b[2Jb\",\"nodes\":[" PLACED(
            "a", "0", "2", "0,1") "," PLACED("b", "2", "1", "0") "]}");
    autojson json_t *ranks = top_job_ranks(job, NULL);
    type(view, &world.picture, "3");
    ck_assert_int_eq(type(view, &world.picture, "\r"), TOP_OPEN);
    ck_assert_str_eq(view->target, "b2");
    top_view_open(view, "x7");
    check_line(view, &world.picture, 1, "reading the job");
    world.picture.job = job;
    world.picture.rows[TOP_RANKS] = ranks;
    world.picture.output = &output;
    ck_assert_int_eq(type(view, &world.picture, "j"), TOP_REREAD);
    ck_assert_int_eq(top_view_rank(view), 1);
    check_line(view, &world.picture, 1, "job x7  RUNNING");
    check_line(view, &world.picture, 3, "reason a?[2Jb");
    check_line(view, &world.picture, 6, "> ");
    check_line(view, &world.picture, 8, "output of rank 1, stdout");
    check_line(view, &world.picture, 9, "hello");
    check_line(view, &world.picture, 10, "world");
    ck_assert_int_eq(type(view, &world.picture, "e"), TOP_REREAD);
    check_line(view, &world.picture, 8, "output of rank 1, stderr");
    ck_assert_int_eq(type(view, &world.picture, "cy"), TOP_CANCEL);
    ck_assert_str_eq(view->target, "x7");
    ck_assert_int_eq(type(view, &world.picture, "\033"), TOP_BACK);
    ck_assert_int_eq(view->table, TOP_JOBS);
    world_end(&world);
}
END_TEST

START_TEST(once_prints_all_tables_and_says_how_many_rows_are_left_out)
{
    struct world world;
    struct text_list frame = {0};
    world_make(&world);
    for (int i = 0; i < 110; i++) {
        json_array_append_new(world.queue, json_pack("{s:o}", "id", json_sprintf("z%03d", i)));
    }
    struct top_shown shown = {0};
    top_draw_once(&world.view, &world.picture, &plain, &frame, &shown);
    ck_assert_uint_eq(shown.nodes.count, 3);
    ck_assert_uint_eq(shown.jobs.count, 3); /* of those that have a state */
    top_shown_finish(&shown);
    autofree char *all = joined(&frame);
    ck_assert_ptr_nonnull(strstr(all, "\nnodes\n"));
    ck_assert_ptr_nonnull(strstr(all, "\njobs\n"));
    ck_assert_ptr_nonnull(strstr(all, "\nand 13 more\n"));
    ck_assert_ptr_null(strchr(all, '\033'));
    ck_assert_ptr_null(strstr(all, ">"));
    text_list_finish(&frame);
    world_end(&world);
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
    TCase *views = tcase_create("views");
    tcase_add_test(views, keys_switch_tables_and_select_rows_within_their_bounds);
    tcase_add_test(views, the_selected_row_stays_selected_when_the_order_or_the_rows_change);
    tcase_add_test(views, letters_go_into_the_filter_while_it_is_typed);
    tcase_add_test(views, a_change_is_asked_for_by_name_and_only_a_yes_makes_it);
    tcase_add_test(views, a_long_table_scrolls_with_the_selection);
    tcase_add_test(views, trouble_takes_a_line_and_help_all_of_them);
    tcase_add_test(views, a_job_is_shown_with_its_ranks_and_the_output_of_the_selected_one);
    tcase_add_test(views, once_prints_all_tables_and_says_how_many_rows_are_left_out);
    suite_add_tcase(suite, views);
    return suite;
}
