/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a simulation. Each column of pixels shows the highest value in its time, so no peak is lost however
 * long the trace. All rows have the same axes, so policies can be compared. simulate_cdf.c draws the
 * distributions. */
#include "client/cli/simulate/simulate.h"

#include <math.h>
#include <string.h>

#include "client/cli/charts/scale.h"
#include "proto/base/cleanup.h"

#define COLUMNS      440 /* of a panel */
#define LEFT         60
#define PANEL_GAP    80
#define PANEL_HEIGHT 110
#define ROW_GAP      44
#define TOP          70
#define WIDTH        (LEFT + 2 * COLUMNS + PANEL_GAP + 30)
#define TIME_MARKS   6

struct panel {
    int64_t values[COLUMNS];
};

/* The axes that all rows share. */
struct axes {
    int64_t first_ms, last_ms;
    int64_t gpus, queued; /* the most */
    double unit_ms;
    const char *unit;
};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* --- axes --- */

static void choose_unit(struct axes *axes)
{
    static const struct {
        double ms;
        const char *name;
    } units[] = {{86400e3, "days"}, {3600e3, "hours"}, {60e3, "minutes"}, {1e3, "seconds"}};
    size_t i = 0;
    while (i < 3 && (double)(axes->last_ms - axes->first_ms) < 2 * units[i].ms) {
        i++;
    }
    axes->unit_ms = units[i].ms;
    axes->unit = units[i].name;
}

static struct axes make_axes(const struct trace *trace, const struct fleet *fleet,
                             const struct simulated *runs, size_t count)
{
    struct axes axes = {.first_ms = trace->jobs[0].submit_ms, .gpus = fleet_gpus(fleet), .queued = 1};
    axes.last_ms = axes.first_ms + 1;
    for (size_t i = 0; i < count; i++) {
        const struct outcome *outcome = &runs[i].outcome;
        for (size_t j = 0; j < outcome->moment_count; j++) {
            axes.last_ms = larger(axes.last_ms, outcome->moments[j].at_ms);
            axes.queued = larger(axes.queued, outcome->moments[j].queued_jobs);
        }
    }
    choose_unit(&axes);
    return axes;
}

/* Lines at round times; with their names below where they are wanted. */
static void draw_times(const struct axes *axes, int x, int y, bool named, struct text *out)
{
    double span = (double)(axes->last_ms - axes->first_ms) / axes->unit_ms;
    struct scale scale = scale_make(0, span, TIME_MARKS);
    for (int i = 0; i < scale.marks && scale_mark(&scale, i) <= span; i++) {
        char label[32];
        double at = x + scale_mark(&scale, i) / span * COLUMNS;
        scale_label(&scale, scale_mark(&scale, i), label);
        text_printf(out, "<path stroke=\"#ddd\" d=\"M%.1f %dv%d\"/>\n", at, y, PANEL_HEIGHT);
        if (named) {
            text_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s%s%s</text>\n", at,
                        y + PANEL_HEIGHT + 16, label, i == 0 ? " " : "", i == 0 ? axes->unit : "");
        }
    }
}

/* --- panels --- */

static size_t column_of(const struct axes *axes, int64_t at_ms)
{
    double share = (double)(at_ms - axes->first_ms) / (double)(axes->last_ms - axes->first_ms);
    return (size_t)(share * (COLUMNS - 1));
}

/* A moment counts in its column, and in those up to the next moment. */
static void fill(const struct outcome *outcome, const struct axes *axes, struct panel *used,
                 struct panel *queued)
{
    const struct cluster_moment *moments = outcome->moments;
    for (size_t i = 0; i < outcome->moment_count; i++) {
        bool last = i + 1 == outcome->moment_count;
        size_t until = column_of(axes, last ? moments[i].at_ms : moments[i + 1].at_ms);
        for (size_t column = column_of(axes, moments[i].at_ms); column <= until; column++) {
            used->values[column] = larger(used->values[column], moments[i].used_gpus);
            queued->values[column] = larger(queued->values[column], moments[i].queued_jobs);
        }
    }
}

/* top is the value at the upper edge. */
static void draw_panel(const struct panel *panel, int64_t top, const char *colour, int x, int y,
                       struct text *out)
{
    text_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%lld</text>\n", x - 6, y + 10,
                (long long)top);
    text_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">0</text>\n", x - 6, y + PANEL_HEIGHT);
    text_printf(out,
                "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#999\"/>\n"
                "<path fill=\"%s\" d=\"M%d %d",
                x, y, COLUMNS, PANEL_HEIGHT, colour, x, y + PANEL_HEIGHT);
    for (int i = 0; i < COLUMNS; i++) {
        double share = (double)panel->values[i] / (double)larger(top, 1);
        text_printf(out, "V%.1fH%d", y + PANEL_HEIGHT * (1 - share), x + i + 1);
    }
    text_printf(out, "V%dZ\"/>\n", y + PANEL_HEIGHT);
}

static void draw_row(const struct axes *axes, const struct simulated *run, int y, bool last, struct text *out)
{
    struct panel used = {0}, queued = {0};
    int right = LEFT + COLUMNS + PANEL_GAP;
    char average[32];
    text_from_duration_ms(llround(run->figures.avg_jct_s * 1000), average, sizeof average);
    fill(&run->outcome, axes, &used, &queued);
    text_printf(out,
                "<text x=\"%d\" y=\"%d\"><tspan font-weight=\"bold\">%s</tspan>: %.1f %% used, completion in "
                "%s on average</text>\n",
                LEFT, y - 8, policy_text(run->options.policy), 100 * run->figures.utilization, average);
    draw_times(axes, LEFT, y, last, out);
    draw_times(axes, right, y, last, out);
    draw_panel(&used, axes->gpus, "#3b7dd8", LEFT, y, out);
    draw_panel(&queued, axes->queued, "#c8702a", right, y, out);
}

void simulate_plot(const struct trace *trace, const struct fleet *fleet, const struct simulated *runs,
                   size_t count, struct text *out)
{
    struct axes axes = make_axes(trace, fleet, runs, count);
    int below = TOP + (int)count * (PANEL_HEIGHT + ROW_GAP) + 20;
    text_printf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
                "font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
                "<text x=\"%d\" y=\"28\" font-weight=\"bold\">GPUs in use</text>\n"
                "<text x=\"%d\" y=\"28\" font-weight=\"bold\">jobs that wait</text>\n",
                WIDTH, below + SIMULATE_CDF_HEIGHT, LEFT, LEFT + COLUMNS + PANEL_GAP);
    for (size_t i = 0; i < count; i++) {
        draw_row(&axes, &runs[i], TOP + (int)i * (PANEL_HEIGHT + ROW_GAP), i + 1 == count, out);
    }
    simulate_cdf(runs, count, LEFT, below, WIDTH - LEFT, out);
    text_append(out, "</svg>\n");
}
