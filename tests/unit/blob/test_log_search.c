/* SPDX-License-Identifier: Apache-2.0 */
/* Searches of output: all lines once whatever the cuts, and patterns that anybody may have written. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/blob/log_pattern.h"
#include "daemon/blob/log_search.h"
#include "daemon/blob/worker.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/limits_controller.h"

#define JOB   "abcdefghijklmnop"
#define RANKS 3

static char folder[64];
static struct worker *worker;
static struct logs *logs;
static struct err err;
static unsigned seed;

static void set_up(void)
{
    snprintf(folder, sizeof folder, "/tmp/gpuctl-search-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    worker = worker_open(&err);
    logs = logs_open(folder, folder, LIMIT_STREAM_BYTES, worker, &err);
    ck_assert_ptr_nonnull(logs);
    seed = 7;
}

static void tear_down(void)
{
    int64_t bytes;
    worker_close(worker);
    ck_assert(logs_remove(logs, JOB, false, &bytes, &err));
    logs_close(logs);
    autofree char *part = xprintf("%s/ab", folder);
    remove(part);
    ck_assert_int_eq(remove(folder), 0);
}

/* rand is the same on every machine only by itself. */
static unsigned dice(unsigned sides)
{
    seed = seed * 1103515245 + 12345;
    return (seed >> 16) % sides;
}

static void say(int64_t rank, const struct text *text, size_t from, size_t length)
{
    const struct log_name name = {JOB, 1, rank, STREAM_STDOUT};
    int64_t received, durable;
    ck_assert_msg(
        logs_append(logs, &name, (int64_t)from, text->bytes + from, length, &received, &durable, &err), "%s",
        err.text);
}

/* --- lines ---------------------------------------------------------------------------------------------- */

struct found {
    struct text text; /* "rank offset length\n" of each match */
    int64_t room;     /* matches of a page */
};

static bool take(void *closure, const struct log_match *match)
{
    struct found *found = closure;
    text_printf(&found->text, "%lld %lld %zu\n", (long long)match->rank, (long long)match->offset,
                match->length);
    return --found->room > 0;
}

/* All pages of a search, each of which stops after so many matches. */
static void search_all(struct log_pattern *pattern, int64_t rank, int64_t limit, struct found *found)
{
    struct log_search_end end = {.more = true};
    while (end.more) {
        const struct log_search search = {.logs = logs,
                                          .job_id = JOB,
                                          .attempt = 1,
                                          .rank = rank,
                                          .stream = STREAM_COUNT,
                                          .record = end.record,
                                          .offset = end.offset,
                                          .records = log_search_records(logs, JOB, 1),
                                          .pattern = pattern};
        found->room = limit;
        ck_assert(log_search_run(&search, take, found, &end, &err));
    }
}

static bool is_end(const struct text *text, size_t at)
{
    return text->bytes[at] == '\n' || text->bytes[at] == '\r';
}

/* What a search of one rank should find, line by line. */
static void expect(const struct text *text, int64_t rank, const char *word, struct text *out)
{
    for (size_t at = 0; at < text->length;) {
        size_t end = at;
        while (end < text->length && end - at < LIMIT_SEARCH_LINE_BYTES && !is_end(text, end)) {
            end++;
        }
        if (memmem(text->bytes + at, end - at, word, strlen(word)) != NULL) {
            text_printf(out, "%lld %zu %zu\n", (long long)rank, at, end - at);
        }
        at = end;
        if (at < text->length && is_end(text, at)) {
            at += text->bytes[at] == '\r' && at + 1 < text->length && text->bytes[at + 1] == '\n' ? 2 : 1;
        }
    }
}

static void write_some(struct text *text)
{
    static const char *const pieces[] = {"needle", "x",  "\n",   "\r",           "\r\n",
                                         "need",   "le", "\n\n", "a needle here"};
    for (int i = 0; i < 300; i++) {
        const char *piece = pieces[dice(sizeof pieces / sizeof *pieces)];
        text_append(text, piece);
        if (dice(40) == 0) {
            for (unsigned many = 4000 + dice(200) + 4096 * dice(3); many > 0; many--) {
                text_append(text, "y");
            }
        }
    }
}

/* Ranks in turn, a piece of any length at a time. */
static void say_all(const struct text *texts)
{
    static const size_t sizes[] = {1, 2, 3, 50, 4096, 9000};
    size_t said[RANKS] = {0};
    for (int left = RANKS; left > 0;) {
        unsigned rank = dice(RANKS);
        size_t rest = texts[rank].length - said[rank], length = sizes[dice(6)];
        length = length < rest ? length : rest;
        if (length > 0) {
            say(rank, &texts[rank], said[rank], length);
            said[rank] += length;
            left -= said[rank] == texts[rank].length;
        }
    }
}

START_TEST(pages_have_every_line_once_however_the_output_was_cut)
{
    seed = (unsigned)_i + 1;
    struct text texts[RANKS] = {0};
    struct log_pattern *pattern = log_pattern_create("needle", _i % 2 == 1, false, &err);
    for (int i = 0; i < RANKS; i++) {
        write_some(&texts[i]);
    }
    say_all(texts);
    for (int rank = 0; rank < RANKS; rank++) {
        autotext struct text expected = {0};
        expect(&texts[rank], rank, "needle", &expected);
        for (int64_t limit = 1; limit < 1000; limit *= 9) {
            struct found found = {0};
            search_all(pattern, rank, limit, &found);
            ck_assert_str_eq(found.text.bytes, expected.bytes);
            text_finish(&found.text);
        }
    }
    struct found one = {0}, many = {0};
    search_all(pattern, -1, 1, &one);
    search_all(pattern, -1, 1000, &many);
    ck_assert_str_eq(one.text.bytes, many.text.bytes);
    text_finish(&one.text);
    text_finish(&many.text);
    log_pattern_destroy(pattern);
    for (int i = 0; i < RANKS; i++) {
        text_finish(&texts[i]);
    }
}
END_TEST

START_TEST(a_search_of_nothing_and_from_anywhere_ends)
{
    struct text text = {0};
    struct log_pattern *pattern = log_pattern_create("needle", false, false, &err);
    struct found found = {0};
    search_all(pattern, -1, 10, &found);
    ck_assert_uint_eq(found.text.length, 0);
    text_append(&text, "needle\nneedle");
    say(0, &text, 0, text.length);
    for (int64_t record = 0; record < 3; record++) {
        for (int64_t offset = 0; offset < 30; offset++) {
            struct log_search_end end;
            const struct log_search search = {.logs = logs,
                                              .job_id = JOB,
                                              .attempt = 1,
                                              .rank = -1,
                                              .stream = STREAM_COUNT,
                                              .record = record,
                                              .offset = offset,
                                              .records = 1,
                                              .pattern = pattern};
            found.room = 10;
            ck_assert(log_search_run(&search, take, &found, &end, &err) && !end.more && found.room >= 8);
        }
    }
    text_finish(&text);
    text_finish(&found.text);
    log_pattern_destroy(pattern);
}
END_TEST

/* --- patterns ------------------------------------------------------------------------------------------- */

START_TEST(an_expression_of_any_characters_is_taken_or_refused)
{
    static const char characters[] = "ab{}[]()*+?|\\^$.,0123459-:=";
    for (int i = 0; i < 20000; i++) {
        char text[24];
        size_t length = 1 + dice(20);
        for (size_t at = 0; at < length; at++) {
            text[at] = characters[dice(sizeof characters - 1)];
        }
        text[length] = '\0';
        struct log_pattern *pattern = log_pattern_create(text, true, dice(2) == 0, &err);
        if (pattern != NULL) {
            log_pattern_finds(pattern, "abba{1}[b]09", 12);
            log_pattern_destroy(pattern);
        } else {
            ck_assert_int_eq(err.code, ERR_FIELD);
        }
    }
}
END_TEST

START_TEST(a_text_is_found_whatever_it_means_in_an_expression)
{
    static const char special[] = "a\\b^c$d.e[f]g|h(i)j*k+l?m{n}";
    for (int ignore_case = 0; ignore_case < 2; ignore_case++) {
        struct log_pattern *pattern = log_pattern_create(special, false, ignore_case == 1, &err);
        ck_assert(log_pattern_finds(pattern, special, strlen(special)));
        ck_assert(!log_pattern_finds(pattern, "abcdefghijklmn", 14));
        log_pattern_destroy(pattern);
    }
}
END_TEST

START_TEST(a_line_with_a_nul_is_searched_to_its_end)
{
    struct log_pattern *pattern = log_pattern_create("b$", true, false, &err);
    ck_assert(log_pattern_finds(pattern, "a\0b", 3));
    ck_assert(!log_pattern_finds(pattern, "b\0a", 3));
    log_pattern_destroy(pattern);
}
END_TEST

/* Repetitions that the library writes out: it would take all memory for some of these. */
START_TEST(an_expression_whose_repetitions_multiply_is_refused)
{
    static const struct {
        const char *text;
        bool refused;
    } rows[] = {
        {"a++++++++++++++++++++++++++++++++++++++++++", true},
        {"a+++", true},
        {"(a?)+", true},
        {"a{2}{3}{4}", true},
        {"a{90}{90}", true},
        {"a{90}b{90}c{90}", false},
        {"e.*?r +?x", false},
        {"((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+", true},
        {"((a{90}){90}){90}", true},
        {"(a{2,}b){700}", true},
        {"a{2049}", true},
        {"[+]{2000}[]+]+[[:alpha:]]{60}", true},
        {"a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+q+r+s+t+u+v+w+x+y+z+", false},
        {"(a|b)+ (c|d)* [0-9]{1,3}\\.[0-9]{1,3}\\+\\+\\+\\+\\+\\+\\+\\+\\+\\+\\+\\+", false},
        {"x{1,400}y{1,400}", false},
        {"(((((a?)*)?)*)?){50}b", true},
        {"((((((((a*)*)*)*)*)*)*)*)*", true},
        {"(a*b*|c)+", true},
        {"(|a)*", true},
        {"(^|a)+", true},
        {"(a{0,2}){2}", true},
        {"(a*b|c+)*d?(e|f)?g*", false},
        {"(\\+*a)+ {0,3}x", false},
        {"((((((((a?)?)?)?)?)?)?)?)?", false},
        {"[+++++++++++++++++]", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct log_pattern *pattern = log_pattern_create(rows[i].text, true, false, &err);
        ck_assert_msg((pattern == NULL) == rows[i].refused, "%s: %s", rows[i].text, err.text);
        ck_assert(pattern != NULL || strstr(err.text, "q repeats ") == err.text);
        log_pattern_destroy(pattern);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log_search");
    TCase *tests = tcase_create("searches");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, pages_have_every_line_once_however_the_output_was_cut, 0, 20);
    tcase_add_test(tests, a_search_of_nothing_and_from_anywhere_ends);
    suite_add_tcase(suite, tests);
    TCase *patterns = tcase_create("patterns");
    tcase_add_test(patterns, an_expression_of_any_characters_is_taken_or_refused);
    tcase_add_test(patterns, a_text_is_found_whatever_it_means_in_an_expression);
    tcase_add_test(patterns, a_line_with_a_nul_is_searched_to_its_end);
    tcase_add_test(patterns, an_expression_whose_repetitions_multiply_is_refused);
    suite_add_tcase(suite, patterns);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
