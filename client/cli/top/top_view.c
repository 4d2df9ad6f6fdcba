/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what keys mean. It promises that nothing is changed at the controller without a question that the
 * person has answered with y, and that the question names the job or node which it is about. */
#include "client/cli/top/top_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/show/print.h"

static const struct {
    const char *verb;
    bool of_node;
} acts[] = {
    [TOP_CANCEL] = {"cancel", false}, [TOP_HOLD] = {"hold", false},    [TOP_RELEASE] = {"release", false},
    [TOP_DRAIN] = {"drain", true},    [TOP_RESUME] = {"resume", true},
};

const char *top_act_verb(enum top_act act)
{
    return acts[act].verb;
}

bool top_act_of_node(enum top_act act)
{
    return acts[act].of_node;
}

void top_view_init(struct top_view *view)
{
    *view = (struct top_view){.table = TOP_NODES, .stream = STREAM_STDOUT};
    for (int i = 0; i < TOP_TABLES; i++) {
        const struct top_table *table = top_table_of((enum top_table_id)i);
        view->places[i] = (struct top_place){.column = table->order, .reverse = table->reverse};
    }
}

void top_view_open(struct top_view *view, const char *job)
{
    const struct top_table *ranks = top_table_of(TOP_RANKS);
    snprintf(view->job, sizeof view->job, "%s", job);
    view->places[TOP_RANKS] = (struct top_place){.column = ranks->order, .reverse = ranks->reverse};
    view->table = TOP_RANKS;
}

void top_view_close(struct top_view *view)
{
    view->table = TOP_JOBS;
    view->job[0] = '\0';
}

int64_t top_view_rank(const struct top_view *view)
{
    return strtoll(view->places[TOP_RANKS].key, NULL, 10);
}

static struct top_place *place_of(struct top_view *view)
{
    return &view->places[view->table];
}

/* --- rows and columns ----------------------------------------------------------------------------------- */

/* Beyond the last row it is the last when the picture is drawn. In the ranks of a job another output is to be
 * shown then. */
static enum top_act select_row(struct top_view *view, size_t row)
{
    struct top_place *place = place_of(view);
    place->selected = row;
    place->key[0] = '\0';
    return view->table == TOP_RANKS ? TOP_REREAD : TOP_NOTHING;
}

static enum top_act move(struct top_view *view, size_t down, size_t up)
{
    size_t row = place_of(view)->selected + down;
    return select_row(view, row > up ? row - up : 0);
}

/* To the next column, or to the one before. */
static enum top_act sort_by(struct top_view *view, bool next)
{
    size_t count = top_table_of(view->table)->count;
    struct top_place *place = place_of(view);
    place->column = (place->column + (next ? 1 : count - 1)) % count;
    snprintf(view->message, sizeof view->message, "sorted by %s",
             top_table_of(view->table)->columns[place->column].title);
    return TOP_NOTHING;
}

static enum top_act reverse(struct top_view *view)
{
    place_of(view)->reverse = !place_of(view)->reverse;
    return TOP_NOTHING;
}

static enum top_act show_table(struct top_view *view, enum top_table_id table)
{
    bool back = view->table == TOP_RANKS;
    if (back) {
        top_view_close(view);
    }
    view->table = table;
    return back ? TOP_BACK : TOP_NOTHING;
}

static enum top_act next_table(struct top_view *view, size_t steps)
{
    if (view->table == TOP_RANKS) {
        return TOP_NOTHING;
    }
    view->table = (enum top_table_id)(((size_t)view->table + steps) % TOP_RANKS);
    return TOP_NOTHING;
}

/* --- questions ------------------------------------------------------------------------------------------ */

/* The act of a letter in this table. */
static enum top_act act_of(enum top_table_id table, char letter)
{
    static const struct {
        char letter;
        enum top_act of_node, of_job;
    } letters[] = {{'c', TOP_NOTHING, TOP_CANCEL},
                   {'h', TOP_NOTHING, TOP_HOLD},
                   {'u', TOP_RESUME, TOP_RELEASE},
                   {'d', TOP_DRAIN, TOP_NOTHING}};
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++) {
        if (letters[i].letter == letter) {
            return table == TOP_NODES ? letters[i].of_node : letters[i].of_job;
        }
    }
    return TOP_NOTHING;
}

static const char *target_of(const struct top_view *view)
{
    return view->table == TOP_RANKS ? view->job : view->places[view->table].key;
}

static enum top_act ask(struct top_view *view, char letter)
{
    enum top_act act = act_of(view->table, letter);
    if (act != TOP_NOTHING && target_of(view)[0] != '\0') {
        view->asked = act;
        snprintf(view->target, sizeof view->target, "%s", target_of(view));
    }
    return TOP_NOTHING;
}

static enum top_act take_answer(struct top_view *view, const struct top_key *key)
{
    enum top_act act = view->asked;
    bool yes = key->kind == TOP_KEY_TEXT && (key->text[0] == 'y' || key->text[0] == 'Y');
    view->asked = TOP_NOTHING;
    if (!yes) {
        snprintf(view->message, sizeof view->message, "nothing was changed");
    }
    return yes ? act : TOP_NOTHING;
}

static enum top_act open_job(struct top_view *view)
{
    bool jobs = view->table == TOP_JOBS || view->table == TOP_QUEUE;
    snprintf(view->target, sizeof view->target, "%s", jobs ? target_of(view) : "");
    return view->target[0] != '\0' ? TOP_OPEN : TOP_NOTHING;
}

/* --- the filter ----------------------------------------------------------------------------------------- */

static void shorten(char *text)
{
    size_t characters = print_measure(text);
    text[characters > 0 ? print_cut(text, characters - 1) : 0] = '\0';
}

static enum top_act take_filter(struct top_view *view, const struct top_key *key)
{
    char *filter = place_of(view)->filter;
    switch (key->kind) {
    case TOP_KEY_TEXT:
        if (strlen(filter) + strlen(key->text) < TOP_FILTER_BYTES) {
            memcpy(filter + strlen(filter), key->text, strlen(key->text) + 1);
        }
        break;
    case TOP_KEY_BACKSPACE:
        shorten(filter);
        break;
    case TOP_KEY_ESCAPE:
        filter[0] = '\0';
        view->filtering = false;
        break;
    case TOP_KEY_ENTER:
        view->filtering = false;
        break;
    case TOP_KEY_UP:
    case TOP_KEY_DOWN:
    case TOP_KEY_LEFT:
    case TOP_KEY_RIGHT:
    case TOP_KEY_PAGE_UP:
    case TOP_KEY_PAGE_DOWN:
    case TOP_KEY_HOME:
    case TOP_KEY_END:
    case TOP_KEY_TAB:
    case TOP_KEY_BACK_TAB:
    case TOP_KEY_OTHER:
        break;
    }
    return TOP_NOTHING;
}

static enum top_act leave(struct top_view *view)
{
    if (place_of(view)->filter[0] != '\0') {
        place_of(view)->filter[0] = '\0';
        return TOP_NOTHING;
    }
    if (view->table == TOP_RANKS) {
        top_view_close(view);
        return TOP_BACK;
    }
    return TOP_NOTHING;
}

/* --- keys ----------------------------------------------------------------------------------------------- */

static enum top_act toggle_stream(struct top_view *view)
{
    if (view->table != TOP_RANKS) {
        return TOP_NOTHING;
    }
    view->stream = view->stream == STREAM_STDOUT ? STREAM_STDERR : STREAM_STDOUT;
    return TOP_REREAD;
}

static enum top_act take_letter(struct top_view *view, char letter)
{
    switch (letter) {
    case 'q':
        return TOP_QUIT;
    case '1':
        return show_table(view, TOP_NODES);
    case '2':
        return show_table(view, TOP_JOBS);
    case '3':
        return show_table(view, TOP_QUEUE);
    case 's':
    case '>':
        return sort_by(view, true);
    case '<':
        return sort_by(view, false);
    case 'r':
        return reverse(view);
    case 'j':
        return move(view, 1, 0);
    case 'k':
        return move(view, 0, 1);
    case 'e':
        return toggle_stream(view);
    case '/':
        view->filtering = true;
        return TOP_NOTHING;
    case '?':
        view->help = true;
        return TOP_NOTHING;
    default:
        return ask(view, letter);
    }
}

static enum top_act take_key(struct top_view *view, const struct top_key *key)
{
    switch (key->kind) {
    case TOP_KEY_TEXT:
        return take_letter(view, key->text[0]);
    case TOP_KEY_UP:
        return move(view, 0, 1);
    case TOP_KEY_DOWN:
        return move(view, 1, 0);
    case TOP_KEY_PAGE_UP:
        return move(view, 0, view->page);
    case TOP_KEY_PAGE_DOWN:
        return move(view, view->page, 0);
    case TOP_KEY_HOME:
        return select_row(view, 0);
    case TOP_KEY_END:
        return select_row(view, SIZE_MAX);
    case TOP_KEY_TAB:
        return next_table(view, 1);
    case TOP_KEY_BACK_TAB:
        return next_table(view, TOP_RANKS - 1);
    case TOP_KEY_ENTER:
        return open_job(view);
    case TOP_KEY_ESCAPE:
        return leave(view);
    case TOP_KEY_LEFT:
    case TOP_KEY_RIGHT:
    case TOP_KEY_BACKSPACE:
    case TOP_KEY_OTHER:
        break;
    }
    return TOP_NOTHING;
}

enum top_act top_view_key(struct top_view *view, const struct top_key *key)
{
    view->message[0] = '\0';
    if (view->asked != TOP_NOTHING) {
        return take_answer(view, key);
    }
    if (view->help) {
        view->help = false;
        return TOP_NOTHING;
    }
    return view->filtering ? take_filter(view, key) : take_key(view, key);
}
