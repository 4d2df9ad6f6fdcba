/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli: event streams, the output of ranks, tables. */
#include <stdlib.h>
#include <string.h>

#include "client/cli/show/event.h"
#include "client/cli/common/follow.h"
#include "client/cli/show/output.h"
#include "client/cli/show/print.h"
#include "client/cli/transport/sse.h"
#include "client/cli/show/terminal.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_client.h"
#include "tests/unit/cli/cli_suites.h"

/* --- event streams --- */

/* Feeds the stream in pieces of that size and writes what comes out. */
static char *read_events(const char *stream, size_t piece, char **ret_last_id)
{
    struct sse sse = {0};
    struct text seen = {0};
    size_t length = strlen(stream);
    for (size_t at = 0; at < length; at += piece) {
        struct sse_event event;
        sse_feed(&sse, stream + at, length - at < piece ? length - at : piece);
        while (sse_next(&sse, &event)) {
            ck_assert_uint_eq(strlen(event.data), event.data_length);
            text_printf(&seen, "%s:%s|", event.name, event.data);
        }
    }
    *ret_last_id = xstrdup(sse.id.bytes != NULL ? sse.id.bytes : "");
    sse_finish(&sse);
    return text_take(&seen);
}

START_TEST(events_come_whole_however_the_bytes_are_cut)
{
    const char *stream = ": heartbeat\n\nid: 1\ndata: one\n\ndata: two\ndata:lines\r\nid: 2\r\n\r\nevent: "
                         "end\ndata: {}\n\nid: 3\ndata: half";
    for (size_t piece = 1; piece <= strlen(stream); piece++) {
        autofree char *last_id = NULL;
        autofree char *seen = read_events(stream, piece, &last_id);
        ck_assert_str_eq(seen, "message:one|message:two\nlines|end:{}|");
        ck_assert_str_eq(last_id, "2");
    }
}
END_TEST

START_TEST(a_new_connection_forgets_the_half_event_and_keeps_the_id)
{
    struct sse sse = {0};
    struct sse_event event;
    const char *first = "id: 7\ndata: a\n\nid: 8\nevent: x\ndata: ha";
    const char *second = "data: b\n\n";
    sse_feed(&sse, first, strlen(first));
    ck_assert(sse_next(&sse, &event));
    ck_assert(!sse_next(&sse, &event));
    sse_restart(&sse);
    ck_assert_uint_eq(sse_waiting(&sse), 0);
    sse_feed(&sse, second, strlen(second));
    ck_assert(sse_next(&sse, &event));
    ck_assert_str_eq(event.data, "b");
    ck_assert_str_eq(event.name, "message");
    ck_assert_str_eq(sse.id.bytes, "7");
    sse_finish(&sse);
}
END_TEST

/* --- output of ranks --- */

struct shown {
    char *out, *errors;
    size_t out_length, errors_length;
    FILE *files[2];
    struct output *output;
};

static void show(struct shown *shown, int64_t tail)
{
    shown->files[0] = open_memstream(&shown->out, &shown->out_length);
    shown->files[1] = open_memstream(&shown->errors, &shown->errors_length);
    shown->output = output_create(shown->files[0], shown->files[1], tail);
}

static void put(struct shown *shown, int64_t rank, enum stream stream, const char *text)
{
    output_write(shown->output, rank, stream, NULL, text, strlen(text));
}

static void assert_shown(struct shown *shown, const char *out, const char *errors)
{
    output_destroy(shown->output);
    fclose(shown->files[0]);
    fclose(shown->files[1]);
    ck_assert_str_eq(shown->out, out);
    ck_assert_str_eq(shown->errors, errors);
    free(shown->out);
    free(shown->errors);
}

START_TEST(one_rank_passes_byte_by_byte)
{
    struct shown shown;
    show(&shown, -1);
    put(&shown, 0, STREAM_STDOUT, "no end\r");
    put(&shown, 0, STREAM_STDERR, "oops\n");
    put(&shown, 0, STREAM_STDOUT, "of line");
    assert_shown(&shown, "no end\rof line", "oops\n");
}
END_TEST

START_TEST(lines_of_many_ranks_stay_whole_and_say_whose_they_are)
{
    struct shown shown;
    show(&shown, -1);
    output_prefix(shown.output);
    put(&shown, 0, STREAM_STDOUT, "be");
    put(&shown, 1, STREAM_STDOUT, "other\nhalf");
    put(&shown, 0, STREAM_STDERR, "bad\n");
    put(&shown, 0, STREAM_STDOUT, "gun\nnext\n\n");
    assert_shown(&shown, "[1] other\n[0] begun\n[0] next\n[0] \n[1] half\n", "[0] bad\n");
}
END_TEST

START_TEST(a_line_without_end_is_shown_when_it_gets_too_long)
{
    struct shown shown;
    autofree char *much = xzalloc(CLIENT_LINE_BYTES + 1);
    memset(much, 'x', CLIENT_LINE_BYTES);
    show(&shown, -1);
    output_prefix(shown.output);
    put(&shown, 3, STREAM_STDOUT, much);
    put(&shown, 3, STREAM_STDOUT, "y\n");
    autofree char *expected = xprintf("[3] %s\n[3] y\n", much);
    assert_shown(&shown, expected, "");
}
END_TEST

START_TEST(a_tail_keeps_the_last_lines_and_then_everything)
{
    struct shown shown;
    show(&shown, 2);
    put(&shown, 0, STREAM_STDOUT, "1\n2\n3\n");
    put(&shown, 0, STREAM_STDERR, "4\n");
    output_release(shown.output);
    put(&shown, 0, STREAM_STDOUT, "5\n");
    assert_shown(&shown, "3\n5\n", "4\n");
    show(&shown, 0);
    put(&shown, 0, STREAM_STDOUT, "1\n");
    assert_shown(&shown, "", "");
}
END_TEST

START_TEST(log_events_are_checked)
{
    struct shown shown;
    struct err err;
    const char *good = "{\"rank\":0,\"stream\":\"stderr\",\"offset\":0,\"text\":\"hi\\n\"}";
    const char *no_text = "{\"rank\":0,\"stream\":\"stderr\"}";
    const char *no_stream = "{\"rank\":0,\"stream\":\"stdin\",\"text\":\"\"}";
    const char *no_output = "{\"rank\":0,\"stream\":\"metrics\",\"text\":\"x\"}";
    show(&shown, -1);
    ck_assert(output_write_event(shown.output, good, strlen(good), &err));
    ck_assert(!output_write_event(shown.output, no_text, strlen(no_text), &err));
    ck_assert(!output_write_event(shown.output, no_stream, strlen(no_stream), &err));
    ck_assert(!output_write_event(shown.output, no_output, strlen(no_output), &err));
    ck_assert(!output_write_event(shown.output, "x", 1, &err));
    assert_shown(&shown, "", "hi\n");
}
END_TEST

/* --- tables --- */

static const struct column columns[] = {
    {.title = "ID"}, {.title = "OWNER", .wide = true}, {.title = "STATE"}, {.title = "WHY"}};

static void assert_grid(const struct grid *grid, bool wide, size_t width, bool colour, const char *expected)
{
    autotext struct text out = {0};
    grid_print(grid, wide, width, colour, &out);
    ck_assert_str_eq(out.bytes, expected);
}

START_TEST(columns_are_aligned_and_wide_ones_are_hidden)
{
    autogrid struct grid *grid = grid_create(columns, 4);
    const char *cells[] = {"a", "me", "RUNNING", NULL, "bcd", "you", "X", "because"};
    for (size_t i = 0; i < 8; i++) {
        grid_add(grid, cells[i]);
    }
    assert_grid(grid, false, 0, false, "ID   STATE    WHY\na    RUNNING  -\nbcd  X        because\n");
    assert_grid(grid, true, 0, false,
                "ID   OWNER  STATE    WHY\na    me     RUNNING  -\nbcd  you    X        because\n");
    assert_grid(grid, false, 16, false, "ID   STATE    WH\na    RUNNING  -\nbcd  X        be\n");
    assert_grid(grid, false, 0, true,
                "ID   STATE    WHY\na    \033[36mRUNNING\033[0m  -\nbcd  X        because\n");
}
END_TEST

START_TEST(what_others_wrote_cannot_steer_the_terminal)
{
    static const struct column one[] = {{.title = "T"}, {.title = "U"}};
    autogrid struct grid *grid = grid_create(one, 2);
    grid_add(grid, "\033[2Jx\n\xc2\x9b"
                   "1m");
    grid_add(grid, "h\xc3\xa9");
    assert_grid(grid, false, 0, false, "T           U\n?[2Jx ??1m  h\xc3\xa9\n");
}
END_TEST

START_TEST(json_is_one_document_and_jsonl_a_line_each)
{
    autojson json_t *items = json_pack("[{s:i},{s:i}]", "a", 1, "a", 2);
    autotext struct text json = {0};
    autotext struct text lines = {0};
    print_list(FORMAT_JSON, "jobs", items, &json);
    print_list(FORMAT_JSONL, "jobs", items, &lines);
    ck_assert_str_eq(json.bytes, "{\"jobs\":[{\"a\":1},{\"a\":2}]}\n");
    ck_assert_str_eq(lines.bytes, "{\"a\":1}\n{\"a\":2}\n");
}
END_TEST

START_TEST(details_of_events_are_readable)
{
    autotext struct text out = {0};
    event_detail("{\"nodes\":[\"a\",\"b\"],\"attempt\":2,\"reason\":\"lost\"}", &out);
    ck_assert_str_eq(out.bytes, "nodes a b, attempt 2, reason lost");
    text_clear(&out);
    event_detail(NULL, &out);
    ck_assert_uint_eq(out.length, 0);
}
END_TEST

/* --- why a job waits --- */

START_TEST(a_reason_whose_figures_alone_changed_is_no_news)
{
    ck_assert(
        follow_is_alike("node n1 builds: Installing torch (34 s)", "node n1 builds: Installing torch (9 s)"));
    ck_assert(follow_is_alike("", ""));
    ck_assert(!follow_is_alike("Installing torch (34 s)", "Installing numpy (34 s)"));
    ck_assert(!follow_is_alike("Installing torch (34 s)", "Installing torch (s)"));
    ck_assert(!follow_is_alike("Installing torch", "Installing torch 2"));
    ck_assert(!follow_is_alike("12 MiB of 30", "12 MiB of"));
    ck_assert(follow_waits(JOB_QUEUED) && follow_waits(JOB_STAGING) && !follow_waits(JOB_RUNNING));
}
END_TEST

/* --- terminals --- */

static char *cleaned(const char *bytes, size_t length, size_t piece)
{
    struct terminal terminal = {0};
    struct text out = {0};
    for (size_t at = 0; at < length; at += piece) {
        terminal_clean(&terminal, bytes + at, length - at < piece ? length - at : piece, &out);
    }
    terminal_finish(&terminal, &out);
    return text_take(&out);
}

/* A18 */
START_TEST(what_others_wrote_colours_a_terminal_and_does_not_steer_it)
{
    static const char *const cases[][2] = {
        {"plain\ttext\n", "plain\ttext\n"},
        {"\033[1;38:5:9mred\033[0m\033[m", "\033[1;38:5:9mred\033[0m\033[m"},
        {"10 %\r20 %\033[K\b.", "10 %\r20 %\033[K\b."},
        {"\303\251\342\202\254\360\237\230\200 \302\240", "\303\251\342\202\254\360\237\230\200 \302\240"},
        {"\033]0;title\a", "^[]0;title^G"},
        {"\033]52;c;c2VjcmV0\033\\", "^[]52;c;c2VjcmV0^[\\"},
        {"\033[2J\033[1;1H\033[?1049h\033[6n", "^[[2J^[[1;1H^[[?1049h^[[6n"},
        {"\033c\033P1\033\033[1mx", "^[c^[P1^[\033[1mx"},
        {"\016\177\v", "^N^?^K"},
        {"\302\233"
         "2J",
         "?2J"},
        {"\233"
         "2J\200",
         "?2J?"},
        {"\033[1", "^[[1"},
        {"\033", "^["},
        {"\302x\302", "?x?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t piece = 1; piece < 40; piece++) {
            autofree char *clean = cleaned(cases[i][0], strlen(cases[i][0]), piece);
            ck_assert_str_eq(clean, cases[i][1]);
        }
    }
    char many[200] = "\033[";
    memset(many + 2, '1', 150);
    autofree char *shown = cleaned(many, strlen(many), 200);
    ck_assert_uint_eq(strlen(shown), strlen(many) + 1);
    ck_assert_int_eq(strncmp(shown, "^[[11", 5), 0);
}
END_TEST

Suite *cli_output_suite(void)
{
    Suite *suite = suite_create("cli output");
    TCase *tests = tcase_create("output");
    tcase_add_test(tests, events_come_whole_however_the_bytes_are_cut);
    tcase_add_test(tests, what_others_wrote_colours_a_terminal_and_does_not_steer_it);
    tcase_add_test(tests, a_new_connection_forgets_the_half_event_and_keeps_the_id);
    tcase_add_test(tests, one_rank_passes_byte_by_byte);
    tcase_add_test(tests, lines_of_many_ranks_stay_whole_and_say_whose_they_are);
    tcase_add_test(tests, a_line_without_end_is_shown_when_it_gets_too_long);
    tcase_add_test(tests, a_tail_keeps_the_last_lines_and_then_everything);
    tcase_add_test(tests, log_events_are_checked);
    tcase_add_test(tests, columns_are_aligned_and_wide_ones_are_hidden);
    tcase_add_test(tests, what_others_wrote_cannot_steer_the_terminal);
    tcase_add_test(tests, json_is_one_document_and_jsonl_a_line_each);
    tcase_add_test(tests, details_of_events_are_readable);
    tcase_add_test(tests, a_reason_whose_figures_alone_changed_is_no_news);
    suite_add_tcase(suite, tests);
    return suite;
}
