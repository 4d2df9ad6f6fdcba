/* SPDX-License-Identifier: Apache-2.0 */
/* What the controller reads of requests beside JSON, of what ranks write, and of the tz database. */
#include <jansson.h>
#include <string.h>

#include "daemon/blob/log_pattern.h"
#include "daemon/blob/metric_line.h"
#include "daemon/calendar/cron.h"
#include "daemon/http/request/head.h"
#include "daemon/http/request/query.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "tests/fuzz/fuzz.h"

/* The first line is the expression, the rest a line to look in. */
bool fuzz_log_pattern(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    const uint8_t *end = size > 1 ? memchr(bytes + 1, '\n', size - 1) : NULL;
    if (end == NULL) {
        return false;
    }
    autofree char *text = fuzz_text(bytes + 1, (size_t)(end - bytes) - 1);
    size_t rest = size - (size_t)(end - bytes) - 1;
    size_t length = rest < LIMIT_SEARCH_LINE_BYTES ? rest : LIMIT_SEARCH_LINE_BYTES;
    autofree char *line = fuzz_text(end + 1, length);
    struct log_pattern *pattern = log_pattern_create(text, bytes[0] & 1, bytes[0] & 2, &err);
    if (pattern == NULL) {
        FUZZ_REFUSED(err);
        return false;
    }
    bool found = log_pattern_finds(pattern, line, length);
    FUZZ_MUST((bytes[0] & 3) != 0 || found == (memmem(line, length, text, strlen(text)) != NULL));
    log_pattern_destroy(pattern);
    return true;
}

bool fuzz_metric_line(const uint8_t *bytes, size_t size)
{
    struct metric_line line, again;
    if (!metric_line_read((const char *)bytes, size, &line)) {
        return false;
    }
    autotext struct text out = {0};
    metric_line_encode(&line, &out);
    FUZZ_MUST(memchr(out.bytes, '\n', out.length) == NULL);
    autojson json_t *shown = json_loadb(out.bytes, out.length, 0, NULL);
    FUZZ_MUST(json_is_object(shown));
    FUZZ_MUST(metric_line_read((const char *)bytes, size, &again));
    metric_line_finish(&again);
    metric_line_finish(&line);
    return true;
}

bool fuzz_query(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct query query;
    int64_t number = 7, ms = 7;
    autofree char *text = fuzz_text(bytes, size);
    if (!query_parse(text, "*", &query, &err)) {
        FUZZ_REFUSED(err);
        return false;
    }
    bool taken = query_int(&query, "limit", 1, 1000, &number, &err);
    FUZZ_MUST(!taken || (number >= 1 && number <= 1000));
    taken = query_duration(&query, "for", 1000000, &ms, &err) && taken;
    FUZZ_MUST(ms <= 1000000);
    taken = query_moment(&query, "since", &ms, &err) && taken;
    return taken;
}

/* The library gives the parts of a head as texts in the buffer where it received them: the separators have
 * become NULs. */
bool fuzz_head(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct head head;
    autofree char *buffer = fuzz_text(bytes, size);
    const char *parts[32] = {0};
    size_t count = 0;
    for (size_t i = 0; i < size; i++) {
        bool begins = i == 0 || buffer[i - 1] == '\0';
        if (begins && buffer[i] != '\0' && count < 32) {
            parts[count++] = &buffer[i];
        }
    }
    if (count < 3) {
        return false;
    }
    head_begin(&head, parts[0], parts[1], strlen(parts[1]), parts[2]);
    for (size_t i = 3; i + 1 < count; i += 2) {
        head_header(&head, parts[i], parts[i + 1] + strspn(parts[i + 1], " \t"));
    }
    if (!head_end(&head, size, &err)) {
        FUZZ_REFUSED(err);
        return false;
    }
    return true;
}

/* --- cron expressions, and files of the tz database ----------------------------------------------------- */

#define NOW_MS  1800000000000LL
#define MOMENTS 5

/* Moments follow each other. */
static void walk(const struct cron *cron, const struct zone *zone)
{
    int64_t at_ms = NOW_MS;
    for (int i = 0; i < MOMENTS && at_ms != INT64_MAX; i++) {
        int64_t next_ms = cron_next_ms(cron, zone, at_ms);
        FUZZ_MUST(next_ms > at_ms);
        at_ms = next_ms;
    }
}

bool fuzz_cron(const uint8_t *bytes, size_t size)
{
    static struct zone *zone;
    struct err err = {0};
    struct cron cron;
    autofree char *text = fuzz_text(bytes, size);
    if (!cron_read(text, &cron, &err)) {
        FUZZ_REFUSED(err);
        FUZZ_MUST(strcmp(err.field, "cron") == 0);
        return false;
    }
    FUZZ_MUST(cron.minutes != 0 && cron.hours != 0 && cron.days != 0 && cron.months != 0 &&
              cron.weekdays != 0);
    if (zone == NULL) {
        zone = zone_open("UTC", &err);
    }
    walk(&cron, zone);
    return true;
}

bool fuzz_zone(const uint8_t *bytes, size_t size)
{
    struct err err;
    struct cron cron;
    autozone struct zone *zone = zone_decode(bytes, size);
    if (zone == NULL) {
        return false;
    }
    for (int64_t at_s = -NOW_MS / 1000; at_s < 4 * (NOW_MS / 1000); at_s += 12345678) {
        struct zone_span span = zone_span_at(zone, at_s);
        FUZZ_MUST(span.begin <= at_s && at_s < span.end);
    }
    FUZZ_MUST(cron_read("30 2 * * *", &cron, &err));
    walk(&cron, zone);
    return true;
}
