/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a simulation is drawn. Each column of pixels shows the most that was reached in its time, so that
 * no peak is lost however long the trace. */
#include "client/cli/simulate_plot.h"

#include "proto/base/cleanup.h"

#define COLUMNS      960
#define LEFT         70
#define PANEL_HEIGHT 180
#define PANEL_GAP    60
#define TOP          40
#define DAY_S        86400.0

struct panel {
    const char *title;
    int64_t values[COLUMNS];
    int64_t top; /* of the scale */
};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static size_t column_of(int64_t at_ms, int64_t first_ms, int64_t last_ms)
{
    double share = (double)(at_ms - first_ms) / (double)larger(last_ms - first_ms, 1);
    size_t column = (size_t)(share * (COLUMNS - 1));
    return column < COLUMNS ? column : COLUMNS - 1;
}

/* A moment counts in its column, and in those up to the next moment. */
static void fill(const struct outcome *outcome, struct panel *used, struct panel *queued)
{
    const struct moment *moments = outcome->moments;
    int64_t first_ms = moments[0].at_ms, last_ms = moments[outcome->moment_count - 1].at_ms;
    for (size_t i = 0; i < outcome->moment_count; i++) {
        int64_t until_ms = i + 1 < outcome->moment_count ? moments[i + 1].at_ms : last_ms;
        size_t last = column_of(until_ms, first_ms, last_ms);
        for (size_t column = column_of(moments[i].at_ms, first_ms, last_ms); column <= last; column++) {
            used->values[column] = larger(used->values[column], moments[i].used_gpus);
            queued->values[column] = larger(queued->values[column], moments[i].queued_jobs);
        }
        queued->top = larger(queued->top, moments[i].queued_jobs);
    }
}

static void draw_panel(const struct panel *panel, int y, struct text *out)
{
    text_printf(out, "<text x=\"%d\" y=\"%d\">%s</text>\n", LEFT, y - 8, panel->title);
    text_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%lld</text>\n", LEFT - 6, y + 10,
                (long long)panel->top);
    text_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">0</text>\n", LEFT - 6, y + PANEL_HEIGHT);
    text_printf(out,
                "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#999\"/>\n"
                "<path fill=\"#3b7dd8\" d=\"M%d %d",
                LEFT, y, COLUMNS, PANEL_HEIGHT, LEFT, y + PANEL_HEIGHT);
    for (int i = 0; i < COLUMNS; i++) {
        double share = (double)panel->values[i] / (double)larger(panel->top, 1);
        text_printf(out, "V%.1fH%d", y + PANEL_HEIGHT * (1 - share), LEFT + i + 1);
    }
    text_printf(out, "V%dZ\"/>\n", y + PANEL_HEIGHT);
}

void simulate_plot(const struct trace *trace, const struct fleet *fleet, const struct outcome *outcome,
                   struct text *out)
{
    struct panel used = {.title = "GPUs in use", .top = fleet_gpus(fleet)};
    struct panel queued = {.title = "jobs that wait"};
    if (outcome->moment_count > 0) {
        fill(outcome, &used, &queued);
    }
    int second = TOP + PANEL_HEIGHT + PANEL_GAP, height = second + PANEL_HEIGHT + PANEL_GAP;
    text_printf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
                "font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                LEFT + COLUMNS + 20, height);
    draw_panel(&used, TOP, out);
    draw_panel(&queued, second, out);
    int64_t span_ms = outcome->moment_count > 0
                          ? outcome->moments[outcome->moment_count - 1].at_ms - trace->jobs[0].submit_ms
                          : 0;
    text_printf(out, "<text x=\"%d\" y=\"%d\">0</text>\n", LEFT, height - 36);
    text_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.1f days</text>\n</svg>\n", LEFT + COLUMNS,
                height - 36, (double)span_ms / 1000 / DAY_S);
}
