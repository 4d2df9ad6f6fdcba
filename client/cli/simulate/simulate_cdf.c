/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the distributions of completion times. It promises that each line is exact at each pixel, and that
 * lines differ in more than their colour. Jobs that could never run are left out. */
#include "client/cli/simulate/simulate.h"

#include <math.h>

#define HEIGHT       250
#define LEGEND_WIDTH 345
#define LEGEND_LINE  22

/* Marks of the time axis. */
static const struct mark {
    double seconds;
    const char *label;
} marks[] = {
    {1, "1 s"},
    {10, "10 s"},
    {60, "1 min"},
    {600, "10 min"},
    {3600, "1 h"},
    {21600, "6 h"},
    {86400, "1 day"},
    {864000, "10 days"},
    {8640000, "100 days"},
    {86400000, "1,000 days"},
    {864000000, "10,000 days"},
    {1e13, "300,000 years"},
};
#define LAST_MARK (sizeof marks / sizeof marks[0] - 1)

/* Colours that people tell apart whatever their eyes, and dashes for paper. By policy. */
static const struct stroke {
    const char *colour, *dashes;
} strokes[POLICY_COUNT] = {
    [POLICY_FIFO] = {"#0072b2", "none"}, [POLICY_EASY] = {"#d55e00", "9 3"},
    [POLICY_SJF] = {"#009e73", "3 3"},   [POLICY_SRTF] = {"#cc79a7", "12 3 3 3"},
    [POLICY_SRSF] = {"#b8860b", "6 6"},  [POLICY_DEFAULT] = {"#222222", "none"},
};

struct chart {
    int x, y, width;
    size_t low, high; /* marks at both ends */
};

/* Widens the axis so that it holds the times. */
static void hold(struct chart *chart, const int64_t *values, size_t count)
{
    double least_s = count > 0 ? (double)values[0] / 1000 : 0;
    double most_s = count > 0 ? (double)values[count - 1] / 1000 : 0;
    while (chart->low > 0 && (count == 0 || marks[chart->low].seconds > least_s)) {
        chart->low--;
    }
    while (chart->high < LAST_MARK && marks[chart->high].seconds < most_s) {
        chart->high++;
    }
}

static double seconds_at(const struct chart *chart, int pixel)
{
    double low = log(marks[chart->low].seconds), high = log(marks[chart->high].seconds);
    return exp(low + (high - low) * pixel / chart->width);
}

static double pixel_of(const struct chart *chart, double seconds)
{
    double low = log(marks[chart->low].seconds), high = log(marks[chart->high].seconds);
    return chart->x + (log(seconds) - low) / (high - low) * chart->width;
}

static void draw_line(const struct chart *chart, const int64_t *values, size_t count,
                      const struct stroke *stroke, struct text *out)
{
    size_t done = 0;
    text_printf(out,
                "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\" points=\"",
                stroke->colour, stroke->dashes);
    for (int pixel = 0; pixel <= chart->width; pixel++) {
        double limit_ms = seconds_at(chart, pixel) * 1000 * (1 + 1e-9);
        while (done < count && (double)values[done] <= limit_ms) {
            done++;
        }
        double share = count > 0 ? (double)done / (double)count : 0;
        text_printf(out, "%d,%.1f ", chart->x + pixel, chart->y + HEIGHT * (1 - share));
    }
    text_append(out, "\"/>\n");
}

static void draw_axes(const struct chart *chart, struct text *out)
{
    for (int percent = 0; percent <= 100; percent += 25) {
        int y = chart->y + HEIGHT * (100 - percent) / 100;
        text_printf(out,
                    "<path stroke=\"#ddd\" d=\"M%d %dh%d\"/>\n<text x=\"%d\" y=\"%d\" "
                    "text-anchor=\"end\">%d %%</text>\n",
                    chart->x, y, chart->width, chart->x - 6, y + 4, percent);
    }
    for (size_t i = chart->low; i <= chart->high; i++) {
        double x = pixel_of(chart, marks[i].seconds);
        text_printf(out,
                    "<path stroke=\"#ddd\" d=\"M%.1f %dv%d\"/>\n<text x=\"%.1f\" y=\"%d\" "
                    "text-anchor=\"middle\">%s</text>\n",
                    x, chart->y, HEIGHT, x, chart->y + HEIGHT + 18, marks[i].label);
    }
}

static void draw_name(const struct simulated *run, const struct stroke *stroke, int x, int y,
                      struct text *out)
{
    char median[32], last[32];
    text_from_duration_ms(llround(run->figures.p50_jct_s * 1000), median, sizeof median);
    text_from_duration_ms(llround(run->figures.p99_jct_s * 1000), last, sizeof last);
    text_printf(
        out,
        "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\" d=\"M%d %dh34\"/>\n"
        "<text x=\"%d\" y=\"%d\">%s: median %s, p99 %s</text>\n",
        stroke->colour, stroke->dashes, x, y - 4, x + 42, y, policy_text(run->options.policy), median, last);
}

void simulate_cdf(const struct simulated *runs, size_t count, int x, int y, int width, struct text *out)
{
    struct chart chart = {
        .x = x, .y = y + 20, .width = width - LEGEND_WIDTH - 40, .low = LAST_MARK - 1, .high = 1};
    for (size_t i = 0; i < count; i++) {
        hold(&chart, runs[i].figures.completions_ms, runs[i].figures.jobs);
    }
    chart.low = chart.low < chart.high ? chart.low : chart.high - 1;
    text_printf(out,
                "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">share of the jobs that were complete so long "
                "after their submission</text>\n",
                x, y + 8);
    draw_axes(&chart, out);
    for (size_t i = 0; i < count; i++) {
        const struct stroke *stroke = &strokes[runs[i].options.policy];
        draw_line(&chart, runs[i].figures.completions_ms, runs[i].figures.jobs, stroke, out);
        draw_name(&runs[i], stroke, x + chart.width + 30, chart.y + 20 + (int)i * LEGEND_LINE, out);
    }
}
