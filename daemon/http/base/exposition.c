/* SPDX-License-Identifier: Apache-2.0 */
/* Text of metrics. A histogram's sample of a bucket counts all that is no larger, so counts are added up; the
 * last one is the count of all. */
#include "daemon/http/base/exposition.h"

#include <inttypes.h>

void exposition_metric(struct text *out, const char *name, const char *type, const char *help)
{
    text_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void begin(struct text *out, const char *name, const char *ending, const char *labels)
{
    text_printf(out, *labels != '\0' ? "%s%s{%s} " : "%s%s ", name, ending, labels);
}

void exposition_sample(struct text *out, const char *name, const char *labels, int64_t value)
{
    begin(out, name, "", labels);
    text_printf(out, "%" PRId64 "\n", value);
}

static void append_seconds(struct text *out, uint64_t us)
{
    text_printf(out, "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);
}

static void bucket(struct text *out, const char *name, const char *labels, int number, uint64_t count)
{
    text_printf(out, "%s_bucket{%s%sle=\"", name, labels, *labels != '\0' ? "," : "");
    if (number < HISTOGRAM_BUCKETS) {
        append_seconds(out, (uint64_t)histogram_bounds_us[number]);
    } else {
        text_append(out, "+Inf");
    }
    text_printf(out, "\"} %" PRIu64 "\n", count);
}

void exposition_histogram(struct text *out, const char *name, const char *labels,
                          const struct histogram *histogram)
{
    uint64_t count = 0;
    for (int i = 0; i <= HISTOGRAM_BUCKETS; i++) {
        count += atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);
        bucket(out, name, labels, i, count);
    }
    begin(out, name, "_sum", labels);
    append_seconds(out, atomic_load_explicit(&histogram->sum_us, memory_order_relaxed));
    text_append(out, "\n");
    begin(out, name, "_count", labels);
    text_printf(out, "%" PRIu64 "\n", count);
}
