/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts that gpushim keeps after a rank failed: what can be done in them, and what ends them. */
#include "tests/unit/shim/shim_rig.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/common/fd_message.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

static struct rig rig;

static void set_up(void)
{
    rig_begin(&rig);
}

static void tear_down(void)
{
    rig_end(&rig);
}

/* One rank whose failure is to be looked at. */
static void start_one(const char *script)
{
    rig_shell(&rig, script);
    rig_field(&rig, "keep", "1");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
}

/* Asks for a command beside the rank; the caller closes the socket on which the answer comes. */
static int exec_asked(int rank, const char *script)
{
    int pair[2];
    char order[32], words[256];
    autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int given[3] = {null, null, null};
    size_t length = 0;
    const char *const keys[] = {"sh", "-c", script};
    for (size_t i = 0; i < 3; i++) {
        length += (size_t)snprintf(words + length, sizeof words - length, "arg%c%s", 0, keys[i]) + 1;
    }
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    snprintf(order, sizeof order, "exec %d", rank);
    ck_assert(fd_message_send(pair[0], words, length, given, 3, 0));
    ck_assert(fd_message_send(rig.agent_socket, order, strlen(order), &pair[1], 1, 0));
    close(pair[1]);
    return pair[0];
}

static void take_answer(int socket, char *answer, size_t room)
{
    ssize_t length = recv(socket, answer, room - 1, 0);
    ck_assert_int_gt(length, 0);
    answer[length] = '\0';
}

static void expect_answer(int socket, const char *start)
{
    char answer[512];
    take_answer(socket, answer, sizeof answer);
    ck_assert_msg(strncmp(answer, start, strlen(start)) == 0, "%s, not %s", answer, start);
}

static void expect_exec(int rank, const char *script, const char *answer)
{
    autoclose int socket = exec_asked(rank, script);
    expect_answer(socket, answer);
}

/* Returns when commands may be started: all ranks are gone. */
static void await_kept(int rank)
{
    char answer[512];
    do {
        autoclose int socket = exec_asked(rank, "true");
        take_answer(socket, answer, sizeof answer);
    } while (strstr(answer, "is about to end") != NULL);
    ck_assert_str_eq(answer, "exited 0 0");
}

START_TEST(commands_find_what_a_failed_rank_has_left_until_the_stop)
{
    bool counted = rig_cgroup(&rig);
    start_one("echo left > found; exit 3");
    rig_expect(&rig, "failed 0 3 0 ");
    expect_exec(0, "test \"$(cat found)\" = left && exit 7", "exited 7 0");
    expect_exec(0, counted ? "grep -q gpuctl-test /proc/self/cgroup" : "true", "exited 0 0");
    expect_exec(1, "true", "failed 0 rank 1 ");
    ck_assert(!rig_has(&rig, "exit"));
    rig_send(&rig, "stop 5000 RANK_FAILED");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "RANK_FAILED rank 0 exited with code 3");
    ck_assert_int_eq(rig_exit_of(record, 0).code, 3);
    ck_assert_int_eq(rig_exit_of(record, 0).by_us, 0);
    rig_forget(&rig);
}
END_TEST

START_TEST(other_ranks_are_ended_before_and_what_they_left_is_kept_too)
{
    rig_shell(&rig, "echo $RANK > found.$RANK; test $RANK = 1 && exit 3; exec sleep 1000");
    rig_field(&rig, "keep", "1");
    rig_field(&rig, "rank", "0");
    rig_field(&rig, "env", "RANK=0");
    rig_field(&rig, "rank", "1");
    rig_field(&rig, "env", "RANK=1");
    rig_start(&rig);
    rig_expect(&rig, "failed 1 3 0 ");
    await_kept(0);
    rig_gone(rig.pids[0]);
    expect_exec(0, "exit $(cat found.$RANK)", "exited 0 0");
    rig_send(&rig, "stop 5000 CANCELED");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "RANK_FAILED rank 1 exited with code 3");
    ck_assert_int_eq(rig_exit_of(record, 0).by_us, 1);
    rig_forget(&rig);
}
END_TEST

START_TEST(a_failure_on_another_node_ends_the_ranks_and_keeps_the_rest)
{
    start_one("trap 'echo ended > found; exit 1' TERM; echo ready; while :; do sleep 0.01; done");
    free(rig_await(&rig, "0.stdout", "ready"));
    rig_send(&rig, "keep 5000");
    rig_send(&rig, "keep 5000");
    await_kept(0);
    expect_exec(0, "test \"$(cat found)\" = ended", "exited 0 0");
    rig_send(&rig, "stop 5000 RANK_FAILED");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "RANK_FAILED");
    ck_assert_int_eq(rig_exit_of(record, 0).by_us, 1);
    rig_forget(&rig);
}
END_TEST

START_TEST(a_new_agent_hears_of_the_failure_and_finds_the_attempt_kept)
{
    start_one("exit 3");
    rig_expect(&rig, "failed 0 3 0 ");
    rig_connect(&rig);
    rig_expect(&rig, "running ");
    rig_expect(&rig, "failed 0 3 0 ");
    rig_send(&rig, "keep 5000"); /* the controller says so to all nodes of the gang */
    expect_exec(0, "exit 7", "exited 7 0");
    rig_send(&rig, "stop 5000 RANK_FAILED");
    free(rig_finish(&rig));
    rig_forget(&rig);
}
END_TEST

START_TEST(the_stop_kills_what_people_have_started)
{
    start_one("exit 3");
    rig_expect(&rig, "failed 0 3 0 ");
    autoclose int socket = exec_asked(0, "setsid sh -c 'trap \"\" TERM; sleep 1000' & trap '' TERM; "
                                         "echo $$ > pid; wait");
    expect_exec(0, "until test -s pid; do sleep 0.01; done", "exited 0 0");
    rig_send(&rig, "stop 600000 RANK_FAILED");
    expect_answer(socket, "exited 137 9 ends");
    free(rig_finish(&rig));
    rig_forget(&rig);
}
END_TEST

START_TEST(the_end_of_the_lease_ends_it)
{
    start_one("exit 3");
    rig_expect(&rig, "failed 0 3 0 ");
    rig_send(&rig, "lease %" PRId64 " %" PRId64, clock_boot_ms() + 100, clock_boot_ms() + 200);
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "RANK_FAILED rank 0 exited with code 3");
    rig_forget(&rig);
}
END_TEST

START_TEST(what_was_told_to_stop_before_is_not_kept)
{
    start_one("trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done");
    free(rig_await(&rig, "0.stdout", "ready"));
    rig_send(&rig, "stop 5000 CANCELED");
    rig_send(&rig, "keep 5000");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "CANCELED");
    rig_forget(&rig);
}
END_TEST

START_TEST(a_rank_that_could_not_be_started_is_not_kept)
{
    rig_field(&rig, "arg", "no-such-program");
    rig_field(&rig, "keep", "1");
    rig_field(&rig, "rank", "0");
    rig_assign(&rig);
    rig_send(&rig, "run - -");
    rig_expect(&rig, "failed 0 127 0 ");
    free(rig_finish(&rig));
    rig_forget(&rig);
}
END_TEST

void rig_suite_kept(Suite *suite)
{
    TCase *kept = tcase_create("kept");
    tcase_add_checked_fixture(kept, set_up, tear_down);
    tcase_set_timeout(kept, 60);
    tcase_add_test(kept, commands_find_what_a_failed_rank_has_left_until_the_stop);
    tcase_add_test(kept, other_ranks_are_ended_before_and_what_they_left_is_kept_too);
    tcase_add_test(kept, a_failure_on_another_node_ends_the_ranks_and_keeps_the_rest);
    tcase_add_test(kept, a_new_agent_hears_of_the_failure_and_finds_the_attempt_kept);
    tcase_add_test(kept, the_stop_kills_what_people_have_started);
    tcase_add_test(kept, the_end_of_the_lease_ends_it);
    tcase_add_test(kept, what_was_told_to_stop_before_is_not_kept);
    tcase_add_test(kept, a_rank_that_could_not_be_started_is_not_kept);
    suite_add_tcase(suite, kept);
}
