/* SPDX-License-Identifier: Apache-2.0 */
/* What gpushim notes of the time of a start, behind the end of the exit record: moments in their order, and
 * those that ranks have named. */
#include "tests/unit/shim/shim_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"

static struct rig rig;

static void set_up(void)
{
    rig_begin(&rig);
}

static void tear_down(void)
{
    rig_end(&rig);
}

struct moments {
    long long prepared, begun, running, output, gone;
};

static struct moments moments_of(const char *record)
{
    struct moments at;
    const char *line = strstr(record, "\nend\nepoch " RIG_ATTEMPT_ID "\nmoments ");
    ck_assert_msg(line != NULL, "no moments behind the end of:\n%s", record);
    ck_assert_int_eq(sscanf(line, "\nend\nepoch %*s\nmoments %lld %lld %lld %lld %lld\n", &at.prepared,
                            &at.begun, &at.running, &at.output, &at.gone),
                     5);
    return at;
}

/* The lines of marks, without their times, which must be in order. */
static char *marks_of(const char *record, int64_t from_us, int64_t to_us)
{
    struct text text = {0};
    for (const char *at = record; (at = strstr(at, "\nmark ")) != NULL; at++) {
        int rank, length;
        long long at_us;
        ck_assert_int_eq(sscanf(at, "\nmark %d %lld %n", &rank, &at_us, &length), 2);
        ck_assert(at_us >= from_us && at_us <= to_us);
        from_us = at_us;
        text_printf(&text, "%d %.*s|", rank, (int)strcspn(at + length, "\n"), at + length);
    }
    return text_take(&text);
}

static void say(const char *line)
{
    int fd = rig_rank_socket(&rig);
    ck_assert_int_eq(send(fd, line, strlen(line), MSG_NOSIGNAL), (ssize_t)strlen(line));
    close(fd);
}

static void start_ranks(int count)
{
    rig_shell(&rig, "echo ready; while :; do sleep 1000 & wait; done");
    for (int i = 0; i < count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        rig_field(&rig, "rank", number);
    }
    rig_start(&rig);
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.stdout", i);
        free(rig_await(&rig, name, "ready"));
    }
}

static char *end_ranks(void)
{
    rig_send(&rig, "stop 0 CANCELED");
    return rig_finish(&rig);
}

START_TEST(moments_of_a_start_dependency_one_another)
{
    int64_t before_us = clock_boot_us();
    start_ranks(2);
    autofree char *record = end_ranks();
    struct moments at = moments_of(record);
    ck_assert_int_eq(at.prepared, 0);
    ck_assert(before_us < at.begun && at.begun < at.running && at.running <= at.output &&
              at.output < at.gone);
    ck_assert(at.gone < clock_boot_us());
    ck_assert_ptr_null(strstr(record, "mark"));
    rig_forget(&rig);
}
END_TEST

START_TEST(ranks_that_say_nothing_have_no_first_output)
{
    rig_shell(&rig, "exit 0");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    autofree char *record = rig_finish(&rig);
    struct moments at = moments_of(record);
    ck_assert_int_eq(at.output, 0);
    ck_assert(at.running < at.gone);
    rig_forget(&rig);
}
END_TEST

START_TEST(the_first_moment_of_each_mark_counts)
{
    int64_t before_us = clock_boot_us();
    start_ranks(2);
    say("{\"mark\": \"imported\", \"rank\": 1}\n");
    say("{\"rank\": 0, \"time\": 1.5, \"mark\": \"first all-reduce\"}\n{\"mark\": \"imported\", \"rank\": "
        "0}\n");
    say("{\"mark\": \"x\", \"rank\": 1}");
    autofree char *record = end_ranks();
    autofree char *marks = marks_of(record, before_us, clock_boot_us());
    ck_assert_str_eq(marks, "1 imported|0 first all-reduce|1 x|");
    rig_forget(&rig);
}
END_TEST

static const char *const no_marks[] = {
    "{\"mark\": \"\", \"rank\": 0}\n",
    "{\"mark\": 7, \"rank\": 0}\n",
    "{\"mark\": {\"mark\": \"inner\"}, \"rank\": 0}\n",
    "{\"mark\": \"of no rank here\", \"rank\": 2}\n",
    "{\"mark\": \"of none\"}\n",
    "{\"mark\": \"a \\\"quote\", \"rank\": 0}\n",
    "{\"mark\": \"umlaut \xc3\xa4\", \"rank\": 0}\n",
    "{\"mark\": \"tab\\t\", \"rank\": 0}\n",
    "{\"mark\": \"12345678901234567890123456789012345678901\", \"rank\": 0}\n",
    "{\"rank\": 0, \"mark\": \"not closed}\n",
    "[{\"mark\": \"inside\", \"rank\": 0}]\n",
    "\"mark\"\n",
};

START_TEST(what_is_no_mark_is_none)
{
    start_ranks(2);
    say(no_marks[_i]);
    say("{\"mark\": \"good\", \"rank\": 0}\n");
    autofree char *record = end_ranks();
    autofree char *marks = marks_of(record, 0, INT64_MAX);
    ck_assert_str_eq(marks, "0 good|");
    rig_forget(&rig);
}
END_TEST

START_TEST(no_more_marks_are_kept_than_have_room)
{
    start_ranks(1);
    for (int i = 0; i < 2 * LIMIT_MARKS; i++) {
        char line[128];
        snprintf(line, sizeof line, "{\"mark\": \"%d: 45678901234567890123456789012345\", \"rank\": %d}\n",
                 10 + i, i == 0 ? LIMIT_GPUS + 1 : i);
        say(line);
    }
    autofree char *record = end_ranks();
    autofree char *marks = marks_of(record, 0, INT64_MAX);
    ck_assert_ptr_nonnull(strstr(marks, "0 10: ")); /* such a rank there is none: it is that of the node */
    ck_assert_ptr_nonnull(strstr(marks, "7 17: ")); /* a process that the node's only rank has started */
    ck_assert_ptr_null(strstr(marks, "18: "));
    rig_forget(&rig);
}
END_TEST

void rig_suite_timing(Suite *suite)
{
    TCase *tcase = tcase_create("timing");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, moments_of_a_start_dependency_one_another);
    tcase_add_test(tcase, ranks_that_say_nothing_have_no_first_output);
    tcase_add_test(tcase, the_first_moment_of_each_mark_counts);
    tcase_add_loop_test(tcase, what_is_no_mark_is_none, 0, (int)(sizeof no_marks / sizeof no_marks[0]));
    tcase_add_test(tcase, no_more_marks_are_kept_than_have_room);
    suite_add_tcase(suite, tcase);
}
