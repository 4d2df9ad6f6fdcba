/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/metric_feed: pages and events. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http/logs/metric_feed.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "tests/unit/http/http_suites.h"
#include "tests/unit/http/metrics_rig.h"

#define POINTS 60

static const struct metric_filter all = {.ranks = 8, .rank = -1, .name = NULL};

/* Points 0 to 59 of ranks 0 to 7, the even ones "loss"; every tenth has progress and garbage before it. The
 * uploads have `size` bytes, wherever that cuts them. */
static void store_points(size_t size)
{
    const struct log_name *names[] = {&rig_metrics0, &rig_metrics4};
    struct text both[2] = {{0}};
    for (int i = 0; i < POINTS; i++) {
        struct text *text = &both[i % 8 / 4];
        if (i % 10 == 0) {
            text_printf(text, "{\"progress\": 0.5, \"rank\": %d, \"time\": 1}\ngarbage\n\n", i % 8);
        }
        text_printf(text, "{\"metric\": \"%s\", \"value\": %d, \"rank\": %d, \"time\": 1}\n",
                    i % 2 == 0 ? "loss" : "acc", i, i % 8);
    }
    for (size_t at = 0; at < both[0].length || at < both[1].length; at += size) {
        for (int i = 0; i < 2; i++) {
            if (at < both[i].length) {
                size_t left = both[i].length - at;
                rig_store(names[i], both[i].bytes + at, left < size ? left : size);
            }
        }
    }
    text_finish(&both[0]);
    text_finish(&both[1]);
}

/* One page from the cursor on, which is set to the next one, or to "" when there is none. */
static json_t *page_from(char cursor[LOG_ID_BYTES], const struct metric_filter *filter, int64_t limit)
{
    autotext struct text out = {0};
    struct log_reader *reader = rig_reader(cursor);
    int64_t left = limit;
    text_append(&out, "{\"metrics\":[");
    ck_assert(metric_page(reader, filter, &left, &out, cursor, &rig_err));
    text_append(&out, "]}");
    log_reader_close(reader);
    json_t *page = json_parse(out.bytes, out.length, &rig_err);
    ck_assert_msg(page != NULL, "%s", out.bytes);
    ck_assert_uint_eq(json_array_size(json_object_get(page, "metrics")), (size_t)(limit - left));
    ck_assert_int_ge(left, 0);
    return page;
}

/* A point was seen: of its node they come in order. */
static void see(const json_t *point, int seen[POINTS], int64_t last[2])
{
    int64_t value = json_integer_value(json_object_get(point, "value"));
    int64_t node = value % 8 / 4;
    ck_assert_int_gt(value, last[node]);
    ck_assert_int_eq(json_integer_value(json_object_get(point, "rank")), value % 8);
    last[node] = value;
    seen[value]++;
}

static int pages_until_end(const struct metric_filter *filter, int64_t limit, int seen[POINTS])
{
    char cursor[LOG_ID_BYTES] = "";
    int64_t last[2] = {-1, -1};
    int pages = 0;
    do {
        autojson json_t *page = page_from(cursor, filter, limit);
        size_t i;
        const json_t *point;
        json_array_foreach (json_object_get(page, "metrics"), i, point) {
            see(point, seen, last);
        }
        pages++;
    } while (cursor[0] != '\0');
    return pages;
}

START_TEST(pages_have_each_point_once_wherever_they_and_the_uploads_are_cut)
{
    store_points((size_t)_i);
    for (int64_t limit = 1; limit <= POINTS + 1; limit++) {
        int seen[POINTS] = {0};
        int pages = pages_until_end(&all, limit, seen);
        ck_assert_int_eq(pages, (POINTS + limit - 1) / limit);
        for (int i = 0; i < POINTS; i++) {
            ck_assert_int_eq(seen[i], 1);
        }
    }
}
END_TEST

START_TEST(filters_choose_by_the_rank_in_the_line_and_by_name)
{
    store_points(100);
    static const struct metric_filter filters[] = {
        {.ranks = 8, .rank = 5, .name = NULL},   {.ranks = 8, .rank = -1, .name = "loss"},
        {.ranks = 8, .rank = 2, .name = "loss"}, {.ranks = 8, .rank = 2, .name = "acc"},
        {.ranks = 8, .rank = -1, .name = "los"}, {.ranks = 3, .rank = -1, .name = NULL},
    };
    for (size_t f = 0; f < sizeof filters / sizeof *filters; f++) {
        int seen[POINTS] = {0};
        pages_until_end(&filters[f], 4, seen);
        for (int i = 0; i < POINTS; i++) {
            const char *name = i % 2 == 0 ? "loss" : "acc";
            bool wanted = (filters[f].rank < 0 || filters[f].rank == i % 8) && i % 8 < filters[f].ranks &&
                          (filters[f].name == NULL || strcmp(filters[f].name, name) == 0);
            ck_assert_int_eq(seen[i], wanted);
        }
    }
}
END_TEST

START_TEST(a_page_that_looked_at_enough_ends_and_says_where_to_go_on)
{
    const size_t enough = LIMIT_METRIC_PAGE_BYTES / METRIC_LINE_COST;
    autotext struct text lines = {0};
    for (size_t i = 0; i < 2 * enough; i++) {
        text_append(&lines, "\n");
    }
    text_append(&lines, "{\"metric\": \"m\", \"value\": 1, \"rank\": 0, \"time\": 1}\n");
    rig_store(&rig_metrics0, lines.bytes, lines.length);
    char cursor[LOG_ID_BYTES] = "";
    for (int pages = 1; pages <= 2; pages++) {
        autojson json_t *page = page_from(cursor, &all, 10);
        ck_assert_uint_eq(json_array_size(json_object_get(page, "metrics")), 0);
        ck_assert_str_ne(cursor, "");
    }
    autojson json_t *page = page_from(cursor, &all, 10);
    ck_assert_uint_eq(json_array_size(json_object_get(page, "metrics")), 1);
    ck_assert_str_eq(cursor, "");
}
END_TEST

START_TEST(a_stream_without_line_ends_does_not_hold_up_a_page)
{
    autofree char *bytes = xalloc(LIMIT_LOG_CHUNK_BYTES);
    memset(bytes, 'x', LIMIT_LOG_CHUNK_BYTES);
    for (int i = 0; i < 8; i++) {
        rig_store(&rig_metrics0, bytes, LIMIT_LOG_CHUNK_BYTES);
    }
    rig_store_text(&rig_metrics0, "\n{\"metric\": \"m\", \"value\": 1, \"rank\": 0, \"time\": 1}\n");
    char cursor[LOG_ID_BYTES] = "";
    autojson json_t *first = page_from(cursor, &all, 10);
    ck_assert_uint_eq(json_array_size(json_object_get(first, "metrics")), 0);
    ck_assert_str_ne(cursor, "");
    autojson json_t *second = page_from(cursor, &all, 10);
    ck_assert_uint_eq(json_array_size(json_object_get(second, "metrics")), 1);
    ck_assert_str_eq(cursor, "");
}
END_TEST

/* Events from an id on, count at most; the id is that of the last. Returns how many there were. */
static int read_events(char id[LOG_ID_BYTES], const struct metric_filter *filter, int count, int seen[POINTS],
                       int64_t last[2])
{
    struct log_reader *reader = rig_reader(id);
    struct metric_lines lines = {.budget = LIMIT_METRIC_TURN_BYTES};
    autotext struct text out = {0};
    bool found = true;
    while (metric_events(&lines, filter, "", &out)) {
        lines.at = 0;
        ck_assert(log_reader_next(reader, &found, &lines.piece, &rig_err));
        if (!found) {
            break;
        }
    }
    log_reader_close(reader);
    int events = 0;
    char kind[16];
    for (const char *at = out.bytes; at != NULL && *at != '\0' && events < count; events++) {
        ck_assert_int_eq(sscanf(at, "id: %63s\nevent: %15s\n", id, kind), 2);
        const char *data = strstr(at, "\ndata: ") + 7;
        at = strstr(data, "\n\n") + 2;
        autojson json_t *json = json_parse(data, (size_t)(at - data), &rig_err);
        ck_assert_ptr_nonnull(json);
        if (strcmp(kind, "metric") == 0) {
            see(json, seen, last);
        } else {
            ck_assert_str_eq(kind, "progress");
        }
    }
    return events;
}

START_TEST(an_event_stream_resumes_behind_any_event)
{
    store_points((size_t)_i);
    for (int count = 1; count < 8; count++) {
        int seen[POINTS] = {0}, events = 0, more;
        int64_t last[2] = {-1, -1};
        char id[LOG_ID_BYTES] = "";
        while ((more = read_events(id, &all, count, seen, last)) > 0) {
            events += more;
        }
        ck_assert_int_eq(events, POINTS + POINTS / 10);
        for (int i = 0; i < POINTS; i++) {
            ck_assert_int_eq(seen[i], 1);
        }
    }
}
END_TEST

START_TEST(events_of_one_name_come_without_progress)
{
    store_points(1000);
    static const struct metric_filter loss = {.ranks = 8, .rank = -1, .name = "loss"};
    int seen[POINTS] = {0};
    int64_t last[2] = {-1, -1};
    char id[LOG_ID_BYTES] = "";
    ck_assert_int_eq(read_events(id, &loss, 1000, seen, last), POINTS / 2);
}
END_TEST

START_TEST(a_turn_that_finds_nothing_ends)
{
    const size_t enough = LIMIT_METRIC_TURN_BYTES / METRIC_LINE_COST;
    autotext struct text text = {0}, out = {0};
    for (size_t i = 0; i < 2 * enough; i++) {
        text_append(&text, "\n");
    }
    struct metric_lines lines = {.piece = {.bytes = text.bytes, .length = text.length},
                                 .budget = LIMIT_METRIC_TURN_BYTES};
    ck_assert(!metric_events(&lines, &all, "", &out));
    ck_assert_uint_lt(lines.at, text.length);
    ck_assert_uint_eq(out.length, 0);
}
END_TEST

Suite *metrics_suite(void)
{
    Suite *suite = suite_create("metrics");
    TCase *cases = tcase_create("feed");
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, metrics_rig_open, metrics_rig_close);
    tcase_add_loop_test(cases, pages_have_each_point_once_wherever_they_and_the_uploads_are_cut, 17, 21);
    tcase_add_test(cases, filters_choose_by_the_rank_in_the_line_and_by_name);
    tcase_add_test(cases, a_page_that_looked_at_enough_ends_and_says_where_to_go_on);
    tcase_add_test(cases, a_stream_without_line_ends_does_not_hold_up_a_page);
    tcase_add_loop_test(cases, an_event_stream_resumes_behind_any_event, 52, 56);
    tcase_add_test(cases, events_of_one_name_come_without_progress);
    tcase_add_test(cases, a_turn_that_finds_nothing_ends);
    suite_add_tcase(suite, cases);
    return suite;
}
