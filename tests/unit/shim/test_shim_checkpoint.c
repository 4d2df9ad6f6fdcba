/* SPDX-License-Identifier: Apache-2.0 */
/* How gpushim asks ranks to save their work, and what they gain by saying that they have: the warning, the
 * soft beginning of a stop, and acknowledged checkpoints. */
#include "tests/unit/shim/shim_rig.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define HOUR  "3600000"
#define WAITS "echo $$ ready; while :; do sleep 1000 & wait; done"
/* Tells of every signal, and ends by none of them but KILL. */
#define TELLS "trap 'echo saving' USR1; trap 'echo alive' USR2; trap 'echo asked' TERM; " WAITS
#define SAVED "{\"checkpoint\": {\"step\": 7}, \"rank\": 0}\n"

static struct rig rig;

static void set_up(void)
{
    rig_begin(&rig);
}

static void tear_down(void)
{
    rig_end(&rig);
}

/* The number of rank 0. */
static pid_t start_ranks(const char *script, int count)
{
    rig_shell(&rig, script);
    for (int i = 0; i < count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        rig_field(&rig, "rank", number);
    }
    rig_start(&rig);
    for (int i = 1; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.stdout", i);
        free(rig_await(&rig, name, "ready"));
    }
    autofree char *said = rig_await(&rig, "0.stdout", "ready");
    return atoi(said);
}

static void say(const char *line)
{
    int fd = rig_rank_socket(&rig);
    ck_assert_int_eq(send(fd, line, strlen(line), MSG_NOSIGNAL), (ssize_t)strlen(line));
    close(fd);
}

/* The shim has read all that was said so far, and has let the rank live. */
static void lives_on(pid_t rank)
{
    static int times;
    char mark[32];
    snprintf(mark, sizeof mark, "{\"mark\": %d}\n", ++times);
    say(mark);
    free(rig_await(&rig, "0.metrics", mark));
    kill(rank, SIGUSR2);
    free(rig_await(&rig, "0.stdout", "alive"));
}

static int count_of(const char *text, const char *word)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word)) {
        count++;
    }
    return count;
}

START_TEST(a_warning_reaches_the_main_process_alone_and_once)
{
    start_ranks("sh -c 'trap \"echo child\" USR1; trap \"echo here\" USR2; " WAITS "' >&2 & " TELLS, 1);
    autofree char *child = rig_await(&rig, "0.stderr", "ready");
    rig_send(&rig, "warn USR1");
    free(rig_await(&rig, "0.stdout", "saving"));
    rig_send(&rig, "warn USR1");
    kill(atoi(child), SIGUSR2); /* a shell does what it hears in the order of the numbers */
    autofree char *said = rig_await(&rig, "0.stderr", "here");
    ck_assert_ptr_null(strstr(said, "child"));
    rig_send(&rig, "stop 50 TIME_LIMIT");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "TIME_LIMIT");
    autofree char *out = rig_read(&rig, "0.stdout");
    ck_assert_int_eq(count_of(out, "saving"), 1);
    rig_forget(&rig);
}
END_TEST

START_TEST(a_new_agent_does_not_repeat_a_warning)
{
    pid_t rank = start_ranks(TELLS, 1);
    rig_send(&rig, "warn USR1");
    free(rig_await(&rig, "0.stdout", "saving"));
    rig_connect(&rig);
    rig_expect(&rig, "running ");
    rig_send(&rig, "warn USR1");
    lives_on(rank);
    rig_send(&rig, "stop 0 CANCELED");
    free(rig_finish(&rig));
    autofree char *out = rig_read(&rig, "0.stdout");
    ck_assert_int_eq(count_of(out, "saving"), 1);
    rig_forget(&rig);
}
END_TEST

START_TEST(a_rank_that_ends_with_0_after_its_warning_has_gone_well)
{
    start_ranks("trap 'exit 0' USR1; " WAITS, 1);
    rig_send(&rig, "warn USR1");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "NONE");
    ck_assert_ptr_null(strstr(record, "checkpoint"));
    rig_forget(&rig);
}
END_TEST

START_TEST(a_signal_that_is_not_on_the_list_is_sent_to_nobody)
{
    start_ranks(TELLS, 1);
    rig_send(&rig, "warn KILL");
    rig_logs_error(&rig, "ignores the message warn KILL");
    rig_send(&rig, "warn USR1");
    free(rig_await(&rig, "0.stdout", "saving"));
    rig_send(&rig, "stop 0 CANCELED");
    free(rig_finish(&rig));
    rig_forget(&rig);
}
END_TEST

START_TEST(a_stop_with_a_pre_stop_signal_sends_it_then_term_then_kill)
{
    start_ranks(TELLS, 1);
    int64_t asked_ms = clock_boot_ms();
    rig_send(&rig, "soften USR1");
    rig_send(&rig, "stop 2000 PREEMPTED");
    free(rig_await(&rig, "0.stdout", "saving\n"));
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "PREEMPTED");
    ck_assert_int_ge(clock_boot_ms() - asked_ms, 2000);
    autofree char *out = rig_read(&rig, "0.stdout");
    ck_assert_ptr_nonnull(strstr(out, "saving\nasked\n"));
    ck_assert_int_eq(rig_exit_of(record, 0).signal, SIGKILL);
    ck_assert_int_eq(rig_exit_of(record, 0).by_us, 1);
    rig_forget(&rig);
}
END_TEST

START_TEST(a_repeated_stop_sends_the_pre_stop_signal_once)
{
    start_ranks(TELLS, 1);
    for (int i = 0; i < 2; i++) {
        rig_send(&rig, "soften USR1");
        rig_send(&rig, "stop " HOUR " PREEMPTED");
        free(rig_await(&rig, "0.stdout", "saving\n"));
    }
    say(SAVED);
    free(rig_finish(&rig));
    autofree char *out = rig_read(&rig, "0.stdout");
    ck_assert_int_eq(count_of(out, "saving"), 1);
    rig_forget(&rig);
}
END_TEST

START_TEST(a_hard_stop_overtakes_a_soft_one)
{
    start_ranks(TELLS, 1);
    rig_send(&rig, "soften USR1");
    rig_send(&rig, "stop " HOUR " PREEMPTED");
    free(rig_await(&rig, "0.stdout", "saving\n"));
    rig_send(&rig, "stop 0 NODE_LOST");
    autofree char *record = rig_finish(&rig);
    ck_assert_int_eq(rig_exit_of(record, 0).signal, SIGKILL);
    rig_forget(&rig);
}
END_TEST

START_TEST(a_checkpoint_after_the_signal_brings_term_at_once)
{
    start_ranks("trap 'echo saving' USR1; trap 'echo asked; exit 0' TERM; " WAITS, 1);
    rig_send(&rig, "soften USR1");
    rig_send(&rig, "stop " HOUR " PREEMPTED");
    free(rig_await(&rig, "0.stdout", "saving\n"));
    say(SAVED);
    autofree char *record = rig_finish(&rig);
    autofree char *out = rig_read(&rig, "0.stdout");
    ck_assert_ptr_nonnull(strstr(out, "saving\nasked\n"));
    ck_assert_int_eq(rig_exit_of(record, 0).code, 0);
    rig_forget(&rig);
}
END_TEST

START_TEST(a_checkpoint_after_term_brings_kill_at_once_and_is_recorded)
{
    start_ranks(TELLS, 1);
    rig_send(&rig, "stop " HOUR " CANCELED");
    free(rig_await(&rig, "0.stdout", "asked\n"));
    int64_t said_ms = clock_wall_ms();
    say(SAVED);
    autofree char *record = rig_finish(&rig);
    ck_assert_int_eq(rig_exit_of(record, 0).signal, SIGKILL);
    const char *line = strstr(record, "\ncheckpoint ");
    ck_assert_ptr_nonnull(line);
    ck_assert_int_ge(strtoll(line + strlen("\ncheckpoint "), NULL, 10), said_ms);
    rig_forget(&rig);
}
END_TEST

START_TEST(a_checkpoint_before_the_signal_saves_nobody_from_waiting)
{
    pid_t rank = start_ranks(TELLS, 1);
    say(SAVED);
    rig_send(&rig, "stop " HOUR " CANCELED");
    free(rig_await(&rig, "0.stdout", "asked\n"));
    lives_on(rank);
    say(SAVED);
    free(rig_finish(&rig));
    rig_forget(&rig);
}
END_TEST

START_TEST(a_checkpoint_ends_nothing_that_goes_on)
{
    pid_t rank = start_ranks(TELLS, 1);
    rig_send(&rig, "warn USR1");
    free(rig_await(&rig, "0.stdout", "saving\n"));
    say(SAVED);
    lives_on(rank);
    rig_send(&rig, "stop 0 TIME_LIMIT");
    autofree char *record = rig_finish(&rig);
    ck_assert_ptr_nonnull(strstr(record, "\ncheckpoint "));
    ck_assert_int_eq(rig.step, 7);
    rig_forget(&rig);
}
END_TEST

START_TEST(all_ranks_that_run_must_have_saved)
{
    pid_t rank = start_ranks(TELLS, 3);
    rig_send(&rig, "stop " HOUR " CANCELED");
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.stdout", i);
        free(rig_await(&rig, name, "asked\n"));
    }
    say(SAVED "{\"rank\":1,\"checkpoint\":true}\n");
    lives_on(rank);
    autofree char *other = rig_read(&rig, "2.stdout");
    kill(atoi(other), SIGKILL); /* now all that are left have */
    autofree char *record = rig_finish(&rig);
    ck_assert_int_eq(rig_exit_of(record, 0).signal, SIGKILL);
    rig_forget(&rig);
}
END_TEST

START_TEST(a_launcher_has_saved_when_all_its_processes_have)
{
    pid_t rank = start_ranks(TELLS, 1);
    rig_send(&rig, "stop " HOUR " CANCELED");
    free(rig_await(&rig, "0.stdout", "asked\n"));
    say("{\"checkpoint\": {}, \"local_rank\": 0, \"local_world_size\": 2, \"rank\": 4}\n");
    say("{\"checkpoint\": {}, \"local_rank\": 0, \"local_world_size\": 2, \"rank\": 4}\n");
    lives_on(rank);
    say("{\"checkpoint\": {}, \"local_rank\": 1, \"local_world_size\": 2, \"rank\": 5}\n");
    free(rig_finish(&rig));
    rig_forget(&rig);
}
END_TEST

static const char *const no_checkpoints[] = {
    "{\"metric\": \"checkpoint\", \"value\": 1, \"rank\": 0}\n",
    "{\"text\": \"\\\"checkpoint\\\": 1\", \"rank\": 0}\n",
    "{\"progress\": {\"checkpoint\": 1}, \"rank\": 0}\n",
    "{\"checkpoint\": {}, \"rank\": 9}\n",
    "{\"checkpoint\": {\"rank\": 0}}\n",
    "{\"checkpoint\": {}, \"rank\": \"0\"}\n",
    "{\"checkpoint\": {}, \"rank\": 99999999999999999999999999}\n",
    "\"checkpoint\": 1\n",
    "{\"checkpoint\"\n",
    "{\"checkpoint",
    "\"checkpoint\"",
    "{\"\\",
};

START_TEST(what_is_no_checkpoint_of_a_rank_here_is_none)
{
    pid_t rank = start_ranks(TELLS, 2);
    rig_send(&rig, "stop " HOUR " CANCELED");
    free(rig_await(&rig, "0.stdout", "asked\n"));
    free(rig_await(&rig, "1.stdout", "asked\n"));
    say("{\"checkpoint\": {}, \"rank\": 1}\n");
    say(no_checkpoints[_i]);
    lives_on(rank);
    say(SAVED);
    free(rig_finish(&rig));
    rig_forget(&rig);
}
END_TEST

void rig_suite_checkpoint(Suite *suite)
{
    TCase *tcase = tcase_create("checkpoint");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_warning_reaches_the_main_process_alone_and_once);
    tcase_add_test(tcase, a_new_agent_does_not_repeat_a_warning);
    tcase_add_test(tcase, a_rank_that_ends_with_0_after_its_warning_has_gone_well);
    tcase_add_test(tcase, a_signal_that_is_not_on_the_list_is_sent_to_nobody);
    tcase_add_test(tcase, a_stop_with_a_pre_stop_signal_sends_it_then_term_then_kill);
    tcase_add_test(tcase, a_repeated_stop_sends_the_pre_stop_signal_once);
    tcase_add_test(tcase, a_hard_stop_overtakes_a_soft_one);
    tcase_add_test(tcase, a_checkpoint_after_the_signal_brings_term_at_once);
    tcase_add_test(tcase, a_checkpoint_after_term_brings_kill_at_once_and_is_recorded);
    tcase_add_test(tcase, a_checkpoint_before_the_signal_saves_nobody_from_waiting);
    tcase_add_test(tcase, a_checkpoint_ends_nothing_that_goes_on);
    tcase_add_test(tcase, all_ranks_that_run_must_have_saved);
    tcase_add_test(tcase, a_launcher_has_saved_when_all_its_processes_have);
    tcase_add_loop_test(tcase, what_is_no_checkpoint_of_a_rank_here_is_none, 0,
                        (int)(sizeof no_checkpoints / sizeof no_checkpoints[0]));
    suite_add_tcase(suite, tcase);
}
