/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the tables of `gpuctl get --timing`. It promises that rows are in order of time, and that a row
 * whose moment is not known stands where it belongs. The bars of one attempt have one scale, the longest
 * step of the start; waiting for GPUs and running may take hours, and are cut to it. */
#include "client/cli/show/timing.h"

#include <stdio.h>
#include <string.h>

#include "client/cli/show/print.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

#define BAR_WIDTH   24
#define SHOWN_MARKS 64 /* names: a node keeps LIMIT_MARKS */

/* A moment of an attempt, in the order in which they mostly happen. */
static const struct kind {
    const char *member, *label, *meaning;
    bool of_gangs; /* over several nodes */
    bool of_ends;
    bool unscaled; /* what leads to it is no part of the start */
} kinds[] = {
    {"received_ms", "received", "the request was complete", false, false, true},
    {"queued_ms", "queued", "the submission was on disk", false, false, false},
    {"placed_ms", "placed", "the job got its GPUs", false, false, true},
    {"ordered_ms", "ordered", "the order left, to the last node", false, false, false},
    {"prepared_ms", "prepared", "the last node said that it is prepared", true, false, false},
    {"started_ms", "started", "the start was on disk", false, false, false},
    {"told_ms", "told", "the start left, to the last node", true, false, false},
    {"begun_ms", "begun", "the last supervisor was ordered to start its ranks", false, false, false},
    {"ranks_started_ms", "ranks started", "the last rank was started", false, false, false},
    {"running_ms", "running", "the last node had said so", false, false, false},
    {"first_output_ms", "first output", "the first byte of any rank", false, false, false},
    {"ended_ms", "ended", "the last process was gone", false, true, true},
    {"settled_ms", "settled", "the controller had all of it", false, true, true},
    {"visible_ms", "results visible", "the end was on disk", false, true, true},
};

struct row {
    const char *label, *meaning, *where;
    double at_ms; /* since the submission; below 0: not known */
    double order; /* by which it stands */
    bool unscaled;
    bool mark;
};

struct rows {
    struct row items[sizeof kinds / sizeof kinds[0] + SHOWN_MARKS];
    size_t count;
};

/* --- rows ----------------------------------------------------------------------------------------------- */

static double moment_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : -1;
}

static void add_row(struct rows *rows, const struct row *row)
{
    if (rows->count < sizeof rows->items / sizeof rows->items[0]) {
        struct row *added = &rows->items[rows->count++];
        double before = 0;
        for (const struct row *at = rows->items; at < added; at++) {
            before = at->order > before ? at->order : before;
        }
        *added = *row;
        added->order = row->at_ms >= 0 ? row->at_ms : before;
    }
}

/* The row of a mark: NULL for one of a name that was not met before. */
static struct row *find_mark(struct rows *rows, const char *name)
{
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->items[i].mark && strcmp(rows->items[i].label, name) == 0) {
            return &rows->items[i];
        }
    }
    return NULL;
}

/* Of a name that several nodes know the last counts: they are in order of time. */
static void add_marks(struct rows *rows, const json_t *attempt)
{
    size_t i;
    const json_t *mark;
    json_array_foreach (json_object_get(attempt, "marks"), i, mark) {
        const char *name = json_string_of(mark, "name");
        const struct row row = {.label = name,
                                .meaning = "named by a rank, on the last node",
                                .where = json_string_of(mark, "node"),
                                .at_ms = moment_of(mark, "at_ms"),
                                .order = moment_of(mark, "at_ms"),
                                .mark = true};
        struct row *known = name != NULL ? find_mark(rows, name) : NULL;
        if (known != NULL) {
            *known = row;
        } else if (name != NULL) {
            add_row(rows, &row);
        }
    }
}

/* The node on which a moment came last, or the first output first; NULL: there is but one, or none knows. */
static const char *node_of(const json_t *attempt, const char *member, double at_ms)
{
    size_t i;
    const json_t *node, *nodes = json_object_get(attempt, "nodes");
    json_array_foreach (nodes, i, node) {
        if (at_ms >= 0 && moment_of(node, member) == at_ms) {
            return json_string_of(node, "node");
        }
    }
    return NULL;
}

static void add_moments(struct rows *rows, const json_t *attempt)
{
    const json_t *moments = json_object_get(attempt, "moments");
    const char *state = json_string_of(attempt, "state");
    bool gang = json_array_size(json_object_get(attempt, "nodes")) > 1;
    bool ended = state != NULL && strcmp(state, "ENDED") == 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const struct kind *kind = &kinds[i];
        double at_ms = moment_of(moments, kind->member);
        if (at_ms >= 0 || ((gang || !kind->of_gangs) && (ended || !kind->of_ends))) {
            add_row(rows, &(struct row){.label = kind->label,
                                        .meaning = kind->meaning,
                                        .where = node_of(attempt, kind->member, at_ms),
                                        .at_ms = at_ms,
                                        .unscaled = kind->unscaled});
        }
    }
}

/* Rows of one moment keep their order; there are few. */
static void sort_rows(struct rows *rows)
{
    for (size_t i = 1; i < rows->count; i++) {
        const struct row row = rows->items[i];
        size_t at = i;
        while (at > 0 && rows->items[at - 1].order > row.order) {
            rows->items[at] = rows->items[at - 1];
            at--;
        }
        rows->items[at] = row;
    }
}

/* --- cells ---------------------------------------------------------------------------------------------- */

/* "0.412 ms" with all digits, or as people count what takes longer; "-" for less than nothing. */
static void print_duration(double ms, char out[32])
{
    if (ms < 0) {
        snprintf(out, 32, "-");
    } else if (ms < 10000) {
        snprintf(out, 32, "%.3f ms", ms);
    } else {
        text_from_duration_ms((int64_t)ms, out, 32);
    }
}

static void add_duration(struct grid *grid, double ms)
{
    char text[32];
    print_duration(ms, text);
    grid_addf(grid, "%12s", text);
}

/* At least a dot for what took any time at all. */
static void add_bar(struct grid *grid, double took_ms, double scale_ms)
{
    char bar[BAR_WIDTH + 1] = " ";
    if (took_ms > 0 && scale_ms > 0) {
        double share = took_ms / scale_ms * BAR_WIDTH;
        bool cut = took_ms > scale_ms;
        size_t length = cut ? BAR_WIDTH : (size_t)(share + 0.5);
        memset(bar, '#', length);
        bar[length] = '\0';
        if (cut) {
            bar[BAR_WIDTH - 1] = '>';
        } else if (length == 0) {
            strcpy(bar, ".");
        }
    }
    grid_add(grid, bar);
}

/* How long it was since the row before that is known; below 0: not known. */
static double took(const struct rows *rows, size_t at)
{
    for (size_t before = at; before > 0 && rows->items[at].at_ms >= 0; before--) {
        if (rows->items[before - 1].at_ms >= 0) {
            return rows->items[at].at_ms - rows->items[before - 1].at_ms;
        }
    }
    return -1;
}

static double scale_of(const struct rows *rows)
{
    double most_ms = 0;
    for (size_t i = 0; i < rows->count; i++) {
        double took_ms = took(rows, i);
        if (!rows->items[i].unscaled && took_ms > most_ms) {
            most_ms = took_ms;
        }
    }
    return most_ms;
}

/* --- tables --------------------------------------------------------------------------------------------- */

static const struct column moment_columns[] = {{.title = "MOMENT"},       {.title = "          AT"},
                                               {.title = "        TOOK"}, {.title = ""},
                                               {.title = "NODE"},         {.title = "MEANING", .wide = true}};

static void print_moments(const json_t *attempt, bool wide, struct text *out)
{
    struct rows rows = {.count = 0};
    autogrid struct grid *grid =
        grid_create(moment_columns, sizeof moment_columns / sizeof moment_columns[0]);
    add_moments(&rows, attempt);
    add_marks(&rows, attempt);
    sort_rows(&rows);
    double scale_ms = scale_of(&rows);
    for (size_t i = 0; i < rows.count; i++) {
        const struct row *row = &rows.items[i];
        grid_add(grid, row->label);
        add_duration(grid, row->at_ms);
        add_duration(grid, took(&rows, i));
        add_bar(grid, took(&rows, i), scale_ms);
        grid_add(grid, row->where != NULL ? row->where : " ");
        grid_add(grid, row->meaning);
    }
    grid_print(grid, wide, 0, false, out);
}

static void show_moment(const json_t *node, const char *member, struct text *out)
{
    char text[32];
    print_duration(moment_of(node, member), text);
    text_printf(out, "%12s", text);
}

static const struct column node_columns[] = {COLUMN("NODE", "node", cell_plain),
                                             COLUMN("     ORDERED", "ordered_ms", show_moment),
                                             COLUMN("    PREPARED", "prepared_ms", show_moment),
                                             COLUMN("RANKS STARTED", "ranks_started_ms", show_moment),
                                             COLUMN("FIRST OUTPUT", "first_output_ms", show_moment),
                                             COLUMN("       ENDED", "ended_ms", show_moment),
                                             COLUMN("START", "start", cell_plain)};

static void print_nodes(const json_t *attempt, struct text *out)
{
    text_append(out, "\n");
    grid_show(node_columns, sizeof node_columns / sizeof node_columns[0], json_object_get(attempt, "nodes"),
              false, 0, false, out);
}

static void print_safely(struct text *out, const json_t *text)
{
    autofree char *copy = xstrdup(json_is_string(text) ? json_string_value(text) : "?");
    print_disarm(copy);
    text_append(out, copy);
}

void timing_print(const json_t *answer, bool wide, struct text *out)
{
    size_t i;
    const json_t *attempt, *attempts = json_object_get(answer, "attempts");
    text_append(out, "job ");
    print_safely(out, json_object_get(answer, "id"));
    text_append(out, ", submitted ");
    print_safely(out, json_object_get(answer, "submitted_at"));
    text_append(out, "\n");
    if (json_array_size(attempts) == 0) {
        text_append(out, json_is_integer(json_object_get(answer, "tasks"))
                             ? "an array has no attempts of its own; its tasks have: ID.0, ID.1 and so on\n"
                             : "no attempt yet; gpuctl explain says why it waits\n");
    }
    json_array_foreach (attempts, i, attempt) {
        text_printf(out, "\nattempt %lld, ",
                    (long long)json_integer_value(json_object_get(attempt, "attempt")));
        print_safely(out, json_object_get(attempt, "state"));
        text_append(out, "\n");
        print_moments(attempt, wide, out);
        print_nodes(attempt, out);
    }
}
