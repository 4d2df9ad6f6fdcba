/* SPDX-License-Identifier: Apache-2.0 */
/* Text of metrics. The two formats differ in the family names of counters, and in their end. A histogram's
 * sample of a bucket counts all that is no larger, so counts are added up; the last one is the count of all.
 */
#include "daemon/http/base/exposition.h"

#include <inttypes.h>
#include <string.h>

#define TOTAL "_total"

const char *exposition_type(const struct exposition *out)
{
    return out->open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                             : "text/plain; version=0.0.4; charset=utf-8";
}

void exposition_label(struct text *labels, const char *name, const char *value)
{
    text_append(labels, labels->length > 0 ? "," : "");
    text_append(labels, name);
    text_append(labels, "=\"");
    for (const char *at = value; *at != '\0';) {
        size_t plain = strcspn(at, "\\\"\n");
        text_append_bytes(labels, at, plain);
        at += plain;
        if (*at != '\0') {
            text_append(labels, *at == '\n' ? "\\n" : *at == '"' ? "\\\"" : "\\\\");
            at++;
        }
    }
    text_append(labels, "\"");
}

/* OpenMetrics names the family of a counter without the ending of its samples. */
void exposition_metric(struct exposition *out, const char *name, const char *type, const char *help)
{
    size_t length = strlen(name);
    if (out->open_metrics && strcmp(type, "counter") == 0) {
        length -= strlen(TOTAL);
    }
    text_printf(&out->text, "# HELP %.*s %s\n# TYPE %.*s %s\n", (int)length, name, help, (int)length, name,
                type);
}

static void begin(struct text *out, const char *name, const char *ending, const char *labels)
{
    text_append(out, name);
    text_append(out, ending);
    if (*labels != '\0') {
        text_append(out, "{");
        text_append(out, labels);
        text_append(out, "}");
    }
    text_append(out, " ");
}

void exposition_sample(struct exposition *out, const char *name, const char *labels, int64_t value)
{
    begin(&out->text, name, "", labels);
    text_append_int(&out->text, value);
    text_append(&out->text, "\n");
}

void exposition_thousandths(struct exposition *out, const char *name, const char *labels, int64_t value)
{
    const char digits[] = {'.', (char)('0' + value / 100 % 10), (char)('0' + value / 10 % 10),
                           (char)('0' + value % 10), '\n'};
    begin(&out->text, name, "", labels);
    text_append_int(&out->text, value / 1000);
    text_append_bytes(&out->text, digits, sizeof digits);
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

void exposition_histogram(struct exposition *page, const char *name, const char *labels,
                          const struct histogram *histogram)
{
    struct text *out = &page->text;
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

void exposition_end(struct exposition *out)
{
    if (out->open_metrics) {
        text_append(&out->text, "# EOF\n");
    }
}
