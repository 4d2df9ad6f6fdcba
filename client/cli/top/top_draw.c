/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the view with the rows that were read. It promises that the picture has exactly the lines that fit,
 * the last of which is the one for questions, and that a selected row is on the screen. */
#include "client/cli/top/top_draw.h"

#include <stdio.h>
#include <string.h>

#include "client/cli/show/print.h"
#include "client/cli/top/top_head.h"
#include "client/cli/top/top_table.h"
#include "proto/base/text/json.h"
#include "proto/limits_client.h"
#include "proto/states.h"

#define MOST_GROUPS  6  /* lines of totals */
#define LEAST_ROWS   3  /* of a table, where the terminal is low */
#define ONCE_OUTPUT  20 /* lines of output of a job that is printed */
#define CLOCK_OFFSET 11 /* of "2026-11-21 09:30:00" */

static void add_line(const struct top_look *look, const char *text, const char *paint,
                     struct text_list *frame)
{
    struct top_line line;
    top_line_begin(&line, look, NULL);
    top_line_put(&line, text, paint);
    top_line_end(&line, frame);
}

static void add_title(const struct top_look *look, const char *text, struct text_list *frame)
{
    struct top_line line;
    top_line_begin(&line, look, TOP_BOLD);
    top_line_put(&line, text, NULL);
    top_line_end(&line, frame);
}

/* --- the head ------------------------------------------------------------------------------------------- */

static const char *plus(const struct top_picture *picture, enum top_table_id table)
{
    return picture->extent[table] != TOP_WHOLE ? "+" : "";
}

static void begin_first_line(struct top_line *line, const struct top_picture *picture,
                             const struct top_look *look)
{
    char now[32];
    print_time(look->now_ms, now);
    top_line_begin(line, look, NULL);
    top_line_putf(line, "gpuctl top  %s  %s", picture->url, now + CLOCK_OFFSET);
}

static void draw_trouble(const struct top_picture *picture, const struct top_look *look,
                         struct text_list *frame)
{
    if (picture->trouble != NULL) {
        add_line(look, picture->trouble, TOP_RED, frame);
    }
}

static void draw_head(const struct top_picture *picture, const struct top_look *look, struct text_list *frame)
{
    size_t most = look->height > 0 && look->height < 4 * MOST_GROUPS ? look->height / 4 : MOST_GROUPS;
    struct top_line line;
    begin_first_line(&line, picture, look);
    top_line_putf(&line, "  nodes: %zu%s", json_array_size(picture->rows[TOP_NODES]),
                  plus(picture, TOP_NODES));
    top_line_putf(&line, "  jobs: %zu%s running, ", json_array_size(picture->rows[TOP_JOBS]),
                  plus(picture, TOP_JOBS));
    top_line_putf(&line, "%zu%s waiting", json_array_size(picture->rows[TOP_QUEUE]),
                  plus(picture, TOP_QUEUE));
    top_line_end(&line, frame);
    draw_trouble(picture, look, frame);
    top_groups_draw(picture->rows[TOP_NODES], most > 0 ? most : 1, look, frame);
}

/* --- tables --------------------------------------------------------------------------------------------- */

static void draw_tabs(const struct top_view *view, const struct top_picture *picture,
                      const struct top_look *look, const struct top_rows *rows, struct text_list *frame)
{
    struct top_line line;
    const struct top_place *place = &view->places[view->table];
    size_t last = place->first + view->page < rows->count ? place->first + view->page : rows->count;
    top_line_begin(&line, look, NULL);
    for (int i = 0; i < TOP_RANKS; i++) {
        bool open = (enum top_table_id)i == view->table;
        autotext struct text tab = {0};
        text_printf(&tab, "%s%d %s%s", open ? "[" : " ", i + 1, top_table_of((enum top_table_id)i)->name,
                    open ? "]" : " ");
        top_line_put(&line, tab.bytes, open ? TOP_YELLOW : NULL);
        top_line_put(&line, " ", NULL);
    }
    top_line_putf(&line, " %zu-%zu of %zu", rows->count > 0 ? place->first + 1 : 0, last, rows->count);
    if (rows->count < rows->listed) {
        top_line_putf(&line, ", %zu filtered out", rows->listed - rows->count);
    }
    if (picture->extent[view->table] == TOP_PARTLY) {
        top_line_putf(&line, ", and more, which are being read");
    }
    if (picture->extent[view->table] == TOP_CUT) {
        top_line_putf(&line, ", and more: these are the %s", view->table == TOP_NODES ? "first" : "newest");
    }
    top_line_end(&line, frame);
}

/* The selected row stays selected where it is now; where it is gone, the row in its place is. */
static void settle(struct top_view *view, const struct top_rows *rows)
{
    struct top_place *place = &view->places[view->table];
    size_t found = place->key[0] != '\0' ? top_rows_find(rows, place->key) : rows->count;
    if (found < rows->count) {
        place->selected = found;
    }
    if (place->selected >= rows->count) {
        place->selected = rows->count > 0 ? rows->count - 1 : 0;
    }
    snprintf(place->key, sizeof place->key, "%s", top_rows_key(rows, place->selected));
    if (place->first > place->selected) {
        place->first = place->selected;
    }
    if (place->selected >= place->first + view->page) {
        place->first = place->selected + 1 - view->page;
    }
    if (place->first + view->page > rows->count) {
        place->first = rows->count > view->page ? rows->count - view->page : 0;
    }
}

static void make_rows(const struct top_view *view, enum top_table_id table, const struct top_picture *picture,
                      const struct top_look *look, struct top_rows *ret_rows)
{
    const struct top_place *place = &view->places[table];
    const struct top_order order = {
        .column = place->column, .reverse = place->reverse, .filter = place->filter};
    top_rows_make(top_table_of(table), picture->rows[table], &order, look, ret_rows);
}

/* Rows that fit below so many lines, with as many left out at the end; at least one. */
static size_t page_below(const struct top_look *look, size_t lines, size_t kept)
{
    return look->height > lines + kept + 1 ? look->height - lines - kept : 1;
}

/* Of `count` rows from the first on. */
static void add_shown(const struct top_rows *rows, size_t first, size_t count, struct top_shown *shown)
{
    for (size_t i = first; i < rows->count && i - first < count; i++) {
        const json_t *row = rows->items[i].json;
        const char *node = json_string_of(row, rows->table == top_table_of(TOP_RANKS) ? "node" : "name");
        bool job = rows->table == top_table_of(TOP_JOBS) || rows->table == top_table_of(TOP_QUEUE);
        if (job && top_job_waits(row)) {
            text_list_add(&shown->jobs, xstrdup(print_text_of(row, "id")));
        }
        if (!job && node != NULL) {
            text_list_add(&shown->nodes, xstrdup(node));
        }
    }
}

static void draw_rows(const struct top_view *view, const struct top_rows *rows, const struct top_look *look,
                      struct text_list *frame)
{
    const struct top_place *place = &view->places[view->table];
    top_rows_draw(rows, place->first, view->page, place->selected, look, frame);
}

static void draw_table(struct top_view *view, const struct top_picture *picture, const struct top_look *look,
                       struct text_list *frame, struct top_shown *shown)
{
    autorowlist struct top_rows rows = {0};
    draw_head(picture, look, frame);
    make_rows(view, view->table, picture, look, &rows);
    view->page = page_below(look, frame->count, 3); /* tabs, titles and the last line */
    settle(view, &rows);
    draw_tabs(view, picture, look, &rows, frame);
    draw_rows(view, &rows, look, frame);
    add_shown(&rows, view->places[view->table].first, view->page, shown);
}

/* --- one job -------------------------------------------------------------------------------------------- */

static void put_fact(struct top_line *line, const json_t *job, const char *title, const char *member)
{
    autotext struct text value = {0};
    cell_plain(job, member, &value);
    if (value.length > 0) {
        top_line_putf(line, "  %s ", title);
        top_line_put(line, value.bytes, NULL);
    }
}

static void put_time(struct top_line *line, const json_t *job)
{
    int64_t from_ms = print_time_of(job, "started_at"), to_ms = print_time_of(job, "ended_at");
    char span[32];
    if (from_ms > 0) {
        int64_t end_ms = to_ms > 0 ? to_ms : line->look->now_ms;
        text_from_duration_ms(end_ms > from_ms ? end_ms - from_ms : 0, span, sizeof span);
        top_line_putf(line, "  time %s", span);
    }
}

static void draw_facts(const json_t *job, const struct top_look *look, struct text_list *frame)
{
    struct top_line line;
    const char *state = print_text_of(job, "state"), *reason = json_string_of(job, "reason");
    top_line_begin(&line, look, NULL);
    top_line_putf(&line, "job %s  ", print_text_of(job, "id"));
    top_line_put(&line, state, print_paint(state));
    put_fact(&line, job, "name", "name");
    put_fact(&line, job, "owner", "owner");
    put_fact(&line, job, "project", "project");
    top_line_end(&line, frame);
    top_line_begin(&line, look, NULL);
    top_line_put(&line, "   ", NULL);
    put_fact(&line, job, "GPUs", "gpus");
    put_fact(&line, job, "type", "gpu_type");
    put_fact(&line, job, "pool", "pool");
    put_fact(&line, job, "attempt", "attempt");
    put_time(&line, job);
    put_fact(&line, job, "exit", "exit_code");
    top_line_end(&line, frame);
    top_line_begin(&line, look, NULL);
    top_line_putf(&line, "     reason ");
    top_line_put(&line, reason != NULL ? reason : "-", NULL);
    top_line_end(&line, frame);
}

static void draw_output(const struct top_view *view, const struct top_picture *picture, size_t lines,
                        const struct top_look *look, struct text_list *frame)
{
    char title[128];
    snprintf(title, sizeof title, "output of rank %lld, %s%s", (long long)top_view_rank(view),
             stream_text(view->stream), picture->output == NULL ? ": none" : "");
    add_title(look, title, frame);
    if (picture->output != NULL) {
        top_output(look, picture->output->bytes, picture->output->length, lines, frame);
    }
}

static void draw_job(struct top_view *view, const struct top_picture *picture, const struct top_look *look,
                     struct text_list *frame, struct top_shown *shown)
{
    autorowlist struct top_rows rows = {0};
    struct top_line line;
    begin_first_line(&line, picture, look);
    top_line_end(&line, frame);
    draw_trouble(picture, look, frame);
    if (picture->job == NULL) {
        add_line(look, "reading the job", NULL, frame);
        return;
    }
    draw_facts(picture->job, look, frame);
    make_rows(view, TOP_RANKS, picture, look, &rows);
    size_t half = page_below(look, frame->count, 3) / 2; /* titles of both halves, and the last line */
    view->page = half > LEAST_ROWS ? half : LEAST_ROWS;
    settle(view, &rows);
    draw_rows(view, &rows, look, frame);
    add_shown(&rows, view->places[TOP_RANKS].first, view->page, shown);
    draw_output(view, picture, page_below(look, frame->count, 2), look, frame);
}

/* --- the last line, and help ---------------------------------------------------------------------------- */

static const char *const keys[][2] = {
    {"1 2 3, Tab", "show nodes, jobs that run, jobs that wait"},
    {"up down, j k", "select a row; PgUp PgDn Home End go further"},
    {"s >, <", "sort by the next column, or by the one before"},
    {"r", "reverse the order"},
    {"/", "show only rows with a text in them; Esc shows all"},
    {"Enter", "show the selected job, its ranks and their output; Esc goes back"},
    {"e", "of a job: show its other stream, stdout or stderr"},
    {"c", "cancel the job"},
    {"h, u", "hold the job, release it"},
    {"d, u", "of nodes: drain the node, resume it"},
    {"?", "show this; any key goes back"},
    {"q, Ctrl-C", "quit"},
};

static void add_help(const struct top_look *look, const char *name, const char *text, struct text_list *frame)
{
    struct top_line line;
    top_line_begin(&line, look, NULL);
    top_line_field(&line, name, 16, false, TOP_YELLOW);
    top_line_put(&line, text, NULL);
    top_line_end(&line, frame);
}

/* Keys, then those columns of the table whose titles do not say all. */
static void draw_help(const struct top_table *table, const struct top_look *look, struct text_list *frame)
{
    add_title(look, "gpuctl top: keys", frame);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        add_help(look, keys[i][0], keys[i][1], frame);
    }
    text_list_add(frame, xstrdup(""));
    for (size_t i = 0; i < table->count; i++) {
        if (table->columns[i].help != NULL) {
            add_help(look, table->columns[i].title, table->columns[i].help, frame);
        }
    }
}

static const char *const hints[TOP_TABLES] = {
    [TOP_NODES] = "q quit  ? keys  Tab tables  s sort  r reverse  / filter  d drain  u resume",
    [TOP_JOBS] = "q quit  ? keys  Tab tables  s sort  r reverse  / filter  Enter show  c cancel",
    [TOP_QUEUE] =
        "q quit  ? keys  Tab tables  s sort  r reverse  / filter  Enter show  c cancel  h hold  u release",
    [TOP_RANKS] = "q quit  ? keys  Esc back  j k rank  e stdout or stderr  c cancel  h hold  u release",
};

static void draw_last_line(const struct top_view *view, const struct top_look *look, struct text_list *frame)
{
    const char *filter = view->places[view->table].filter;
    autotext struct text text = {0};
    if (view->asked != TOP_NOTHING) {
        text_printf(&text, "%s %s %s? y/n", top_act_verb(view->asked),
                    top_act_of_node(view->asked) ? "node" : "job", view->target);
    } else if (view->filtering) {
        text_printf(&text, "/%s_", filter);
    } else if (view->message[0] != '\0') {
        text_append(&text, view->message);
    } else if (filter[0] != '\0') {
        text_printf(&text, "filter: %s  (/ changes it, Esc shows all)", filter);
    } else {
        text_append(&text, hints[view->table]);
    }
    add_line(look, text.bytes, view->asked != TOP_NOTHING ? TOP_YELLOW : NULL, frame);
}

void top_draw(struct top_view *view, const struct top_picture *picture, const struct top_look *look,
              struct text_list *frame, struct top_shown *shown)
{
    struct text_list above = {0};
    if (view->help) {
        draw_help(top_table_of(view->table), look, &above);
    } else if (view->table == TOP_RANKS) {
        draw_job(view, picture, look, &above, shown);
    } else {
        draw_table(view, picture, look, &above, shown);
    }
    for (size_t i = 0; i + 1 < look->height; i++) {
        text_list_add(frame, xstrdup(i < above.count ? above.items[i] : ""));
    }
    text_list_finish(&above);
    draw_last_line(view, look, frame);
}

/* --- once ----------------------------------------------------------------------------------------------- */

static void print_table(const struct top_view *view, enum top_table_id table,
                        const struct top_picture *picture, const struct top_look *look,
                        struct text_list *frame, struct top_shown *shown)
{
    autorowlist struct top_rows rows = {0};
    make_rows(view, table, picture, look, &rows);
    add_shown(&rows, 0, LIMIT_TOP_ONCE_ROWS, shown);
    text_list_add(frame, xstrdup(""));
    add_title(look, top_table_of(table)->name, frame);
    top_rows_draw(&rows, 0, LIMIT_TOP_ONCE_ROWS, TOP_NO_ROW, look, frame);
    if (rows.count > LIMIT_TOP_ONCE_ROWS || picture->extent[table] != TOP_WHOLE) {
        struct top_line line;
        size_t more = rows.count > LIMIT_TOP_ONCE_ROWS ? rows.count - LIMIT_TOP_ONCE_ROWS : 0;
        top_line_begin(&line, look, NULL);
        top_line_putf(&line, "and %zu%s more", more, plus(picture, table));
        top_line_end(&line, frame);
    }
}

void top_draw_once(const struct top_view *view, const struct top_picture *picture,
                   const struct top_look *look, struct text_list *frame, struct top_shown *shown)
{
    if (view->table == TOP_RANKS) {
        draw_facts(picture->job, look, frame);
        print_table(view, TOP_RANKS, picture, look, frame, shown);
        text_list_add(frame, xstrdup(""));
        draw_output(view, picture, ONCE_OUTPUT, look, frame);
        return;
    }
    draw_head(picture, look, frame);
    for (int i = 0; i < TOP_RANKS; i++) {
        print_table(view, (enum top_table_id)i, picture, look, frame, shown);
    }
}
