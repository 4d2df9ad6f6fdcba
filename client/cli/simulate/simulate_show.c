/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the figures of simulations as a table or as JSON. figures.h says what they mean. */
#include "client/cli/simulate/simulate.h"

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

static void show_seconds(const json_t *run, const char *member, struct text *out)
{
    text_printf(out, "%.0f s", json_number_value(json_object_get(run, member)));
}

static void show_share(const json_t *run, const char *member, struct text *out)
{
    text_printf(out, "%.1f %%", 100 * json_number_value(json_object_get(run, member)));
}

static const struct column columns[] = {COLUMN("POLICY", "policy", cell_plain),
                                        COLUMN("JOBS", "jobs", cell_plain),
                                        COLUMN("AVG JCT", "avg_jct_s", show_seconds),
                                        WIDE_COLUMN("P50 JCT", "p50_jct_s", show_seconds),
                                        COLUMN("P99 JCT", "p99_jct_s", show_seconds),
                                        COLUMN("AVG WAIT", "avg_wait_s", show_seconds),
                                        WIDE_COLUMN("P50 WAIT", "p50_wait_s", show_seconds),
                                        WIDE_COLUMN("P90 WAIT", "p90_wait_s", show_seconds),
                                        COLUMN("P99 WAIT", "p99_wait_s", show_seconds),
                                        COLUMN("UTILIZATION", "utilization", show_share),
                                        COLUMN("MAKESPAN", "makespan_s", show_seconds),
                                        COLUMN("PREEMPTIONS", "preemptions", cell_plain)};

void simulate_show(enum print_format format, const struct simulated *runs, size_t count, struct text *out)
{
    autojson json_t *documents = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(documents, figures_json(&runs[i].figures, &runs[i].options));
    }
    if (format == FORMAT_JSON && count > 1) {
        print_json(documents, out);
    } else if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        print_list(FORMAT_JSONL, NULL, documents, out);
    } else {
        grid_show(columns, sizeof columns / sizeof columns[0], documents, format == FORMAT_WIDE,
                  print_width(), false, out);
    }
}
