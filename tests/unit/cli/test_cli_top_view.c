/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli/top/top_view: what keys do to the picture that somebody looks at. */
#include <string.h>

#include "client/cli/top/top_draw.h"
#include "client/cli/top/data/top_job.h"
#include "client/cli/top/top_keys.h"
#include "client/cli/top/top_view.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "tests/unit/cli/cli_suites.h"
#include "tests/unit/cli/top_rig.h"

/* The act of the last of these keys, each of which is about the picture that the one before has left. */
static enum top_act type(struct top_view *view, const struct top_picture *picture, const char *bytes)
{
    struct top_look look = top_plain;
    struct top_keys keys = {0};
    struct top_key key;
    enum top_act act = TOP_NOTHING;
    look.height = 12;
    top_press(&keys, bytes);
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
    struct top_look look = top_plain;
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
    world->nodes = top_parse(top_nodes);
    world->queue = top_parse(top_queue);
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
    world.picture.extent[TOP_QUEUE] = TOP_CUT;
    type(view, &world.picture, "3\033[F");
    ck_assert_uint_eq(view->page, 6);
    check_line(view, &world.picture, 3, "28-33 of 33, and more: these are the newest");
    world.picture.extent[TOP_QUEUE] = TOP_PARTLY;
    check_line(view, &world.picture, 3, "28-33 of 33, and more, which are being read");
    check_line(view, &world.picture, 0, "33+ waiting");
    check_line(view, &world.picture, 10, "> z29");
    type(view, &world.picture, "\033[5~");
    check_line(view, &world.picture, 3, "27-32 of 33");
    check_line(view, &world.picture, 5, "> z23");
    world_end(&world);
}
END_TEST

/* The whole help that stands for a table; the caller frees it. */
static char *help_of(enum top_table_id table)
{
    struct top_view view;
    struct top_look look = top_plain;
    struct text_list frame = {0};
    struct top_shown shown = {0};
    top_view_init(&view);
    view.table = table;
    view.help = true;
    look.height = 24;
    top_draw(&view, &(struct top_picture){0}, &look, &frame, &shown);
    char *all = top_joined(&frame);
    text_list_finish(&frame);
    return all;
}

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
    autofree char *help = help_of(TOP_NODES);
    ck_assert_ptr_nonnull(strstr(help, "that of the newest sample, one each 30 s"));
    world_end(&world);
}
END_TEST

START_TEST(a_job_is_shown_with_its_ranks_and_the_output_of_the_selected_one)
{
    struct world world;
    world_make(&world);
    struct top_view *view = &world.view;
    struct text output = {.bytes = (char[]){"hello\nworld\n"}, .length = 12};
    autojson json_t *job = top_parse(
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
    top_draw_once(&world.view, &world.picture, &top_plain, &frame, &shown);
    ck_assert_uint_eq(shown.nodes.count, 3);
    ck_assert_uint_eq(shown.jobs.count, 3); /* of those that have a state */
    top_shown_finish(&shown);
    autofree char *all = top_joined(&frame);
    ck_assert_ptr_nonnull(strstr(all, "\nnodes\n"));
    ck_assert_ptr_nonnull(strstr(all, "\njobs\n"));
    ck_assert_ptr_nonnull(strstr(all, "\nand 13 more\n"));
    ck_assert_ptr_null(strchr(all, '\033'));
    ck_assert_ptr_null(strstr(all, ">"));
    text_list_finish(&frame);
    world_end(&world);
}
END_TEST

Suite *cli_top_view_suite(void)
{
    Suite *suite = suite_create("cli_top_view");
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
