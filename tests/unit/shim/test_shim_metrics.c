/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks send to gpushim's rank.sock, from the socket to its file: all of it, in order, to the last
 * moment, and never in the way of the job. */
#include "tests/unit/shim/shim_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
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

/* One rank, number 5, that ends when its gate is passed; here the test itself sends. */
static void start_gated(void)
{
    rig_shell(&rig, "read line < gate");
    rig_field(&rig, "rank", "5");
    rig_gate(&rig, "gate");
    rig_start(&rig);
}

static void post_bytes(const char *bytes, size_t length)
{
    int fd = rig_rank_socket(&rig);
    ck_assert_int_eq(send(fd, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
    close(fd);
}

static void post(const char *text)
{
    post_bytes(text, strlen(text));
}

static void finish_gated(void)
{
    rig_gate_pass(&rig, "gate");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "NONE");
}

static void holds(const char *name, const char *expected)
{
    autofree char *text = rig_read(&rig, name);
    ck_assert_str_eq(text, expected);
}

/* The lines of the ranks are all there, each rank's in the order of its values. */
static void lines_are(const char *text, const int *ranks, size_t rank_count, long count)
{
    long next[2] = {0};
    while (*text != '\0') {
        long value;
        int rank, end = 0;
        ck_assert_int_eq(
            sscanf(text, "{\"metric\": \"loss\", \"value\": %ld, \"rank\": %d}%n", &value, &rank, &end), 2);
        ck_assert_int_eq(text[end], '\n');
        text += end + 1;
        size_t which = rank_count > 1 && rank == ranks[1] ? 1 : 0;
        ck_assert_int_eq(rank, ranks[which]);
        ck_assert_int_eq(value, next[which]);
        next[which]++;
    }
    for (size_t i = 0; i < rank_count; i++) {
        ck_assert_int_eq(next[i], count);
    }
}

START_TEST(the_metrics_of_two_ranks_arrive_whole_and_in_order)
{
    rig_fake_rank(&rig);
    rig_shell(&rig, "exec $FAKE_RANK lines 3000");
    rig_field(&rig, "rank", "12");
    rig_field(&rig, "env", "RANK=12");
    rig_field(&rig, "rank", "34");
    rig_field(&rig, "env", "RANK=34");
    rig_start(&rig);
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "NONE");
    autofree char *text = rig_read(&rig, "12.metrics");
    lines_are(text, (int[]){12, 34}, 2, 3000);
    ck_assert(!rig_has(&rig, "34.metrics"));
    rig_forget(&rig);
}
END_TEST

START_TEST(fifty_thousand_messages_beside_flooding_output_all_arrive)
{
    rig_fake_rank(&rig);
    rig_shell(&rig, "seq 1 1500000 & $FAKE_RANK lines 50000 && wait");
    rig_field(&rig, "rank", "0");
    rig_field(&rig, "env", "RANK=0");
    rig_start(&rig);
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "NONE");
    autofree char *text = rig_read(&rig, "0.metrics");
    lines_are(text, (int[]){0}, 1, 50000);
    autofree char *out = rig_read(&rig, "0.stdout");
    ck_assert_uint_eq(strlen(out), 10888896); /* the digits of 1 to 1500000 and their newlines */
    rig_forget(&rig);
}
END_TEST

static void await_end(pid_t pid)
{
    struct pollfd end = {.fd = pidfd_open(pid, 0), .events = POLLIN};
    ck_assert_int_ge(end.fd, 0);
    ck_assert_int_eq(poll(&end, 1, 30000), 1);
    close(end.fd);
}

/* The shim stands still until both ranks have ended, and hears of an end before it hears of the metrics. */
START_TEST(what_a_rank_says_last_is_stored_before_its_end_is_told)
{
    int status;
    rig_fake_rank(&rig);
    rig_shell(&rig, "echo $$; read line < gate$RANK; test $RANK = 0 || exec $FAKE_RANK lines 8");
    rig_field(&rig, "rank", "0");
    rig_field(&rig, "env", "RANK=0");
    rig_field(&rig, "rank", "1");
    rig_field(&rig, "env", "RANK=1");
    rig_gate(&rig, "gate0");
    rig_gate(&rig, "gate1");
    rig_start(&rig);
    autofree char *first = rig_await(&rig, "0.stdout", "\n");
    autofree char *second = rig_await(&rig, "1.stdout", "\n");
    kill(rig.shim, SIGSTOP);
    ck_assert_int_eq(waitpid(rig.shim, &status, WUNTRACED), rig.shim);
    rig_gate_pass(&rig, "gate0");
    await_end(atoi(first));
    rig_gate_pass(&rig, "gate1");
    await_end(atoi(second));
    kill(rig.shim, SIGCONT);
    free(rig_finish(&rig));
    autofree char *text = rig_read(&rig, "0.metrics");
    lines_are(text, (int[]){1}, 1, 8);
    rig_forget(&rig);
}
END_TEST

START_TEST(a_message_gets_its_newline_where_it_has_none)
{
    start_gated();
    post("a");
    post("b\n");
    post("c\nd");
    finish_gated();
    holds("5.metrics", "a\nb\nc\nd\n");
    rig_forget(&rig);
}
END_TEST

START_TEST(empty_and_too_large_messages_are_dropped_and_the_largest_is_stored)
{
    static char large[LIMIT_RANK_MESSAGE_BYTES + 2];
    memset(large, 'x', LIMIT_RANK_MESSAGE_BYTES + 1);
    start_gated();
    post_bytes(large, LIMIT_RANK_MESSAGE_BYTES + 1);
    post("");
    post("next\n");
    post_bytes(large, LIMIT_RANK_MESSAGE_BYTES);
    post("last\n");
    finish_gated();
    rig_logs_error(&rig, "drops a message of 65537 bytes");
    autofree char *text = rig_read(&rig, "5.metrics");
    ck_assert_uint_eq(strlen(text), strlen("next\n") + LIMIT_RANK_MESSAGE_BYTES + strlen("\nlast\n"));
    ck_assert_int_eq(strncmp(text, "next\nx", 6), 0);
    ck_assert_str_eq(text + strlen("next\n") + LIMIT_RANK_MESSAGE_BYTES, "\nlast\n");
    rig_forget(&rig);
}
END_TEST

START_TEST(metrics_are_told_as_output_is)
{
    start_gated();
    post("one\n");
    rig_expect_exactly(&rig, "output");
    holds("5.metrics", "one\n");
    rig_send(&rig, "seen");
    post("two\n");
    rig_expect_exactly(&rig, "output");
    holds("5.metrics", "one\ntwo\n");
    finish_gated();
    rig_forget(&rig);
}
END_TEST

START_TEST(the_end_of_the_agent_holds_up_no_metrics)
{
    start_gated();
    close(rig.agent_socket);
    rig.agent_socket = -1;
    for (int i = 0; i < 1000; i++) { /* more than the kernel queues */
        post("while nobody was there\n");
    }
    rig_connect(&rig);
    rig_expect(&rig, "running ");
    post("again\n");
    free(rig_await(&rig, "5.metrics", "again\n"));
    finish_gated();
    autofree char *text = rig_read(&rig, "5.metrics");
    ck_assert_uint_eq(strlen(text), 1000 * strlen("while nobody was there\n") + strlen("again\n"));
    rig_forget(&rig);
}
END_TEST

START_TEST(without_metrics_there_is_no_file)
{
    start_gated();
    finish_gated();
    ck_assert(!rig_has(&rig, "5.metrics"));
    rig_forget(&rig);
}
END_TEST

START_TEST(the_socket_is_there_before_the_start_and_for_its_owner_only)
{
    char path[160];
    struct stat info;
    rig_shell(&rig, "true");
    rig_field(&rig, "rank", "0");
    rig_assign(&rig);
    rig_send(&rig, "prepare");
    rig_expect_exactly(&rig, "prepared 0");
    snprintf(path, sizeof path, "%s/" SHIM_RANK_SOCKET, rig.run);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_mode, S_IFSOCK | 0600);
    rig_send(&rig, "stop 0 CANCELED");
    rig_expect(&rig, "exited");
    rig_forget(&rig);
}
END_TEST

static _Noreturn void flood(const char *line)
{
    int fd = rig_rank_socket(&rig);
    while (send(fd, line, strlen(line), MSG_NOSIGNAL) > 0) {
    }
    _exit(errno == EPIPE || errno == ECONNREFUSED ? 0 : 1);
}

#define STRANGERS 3

START_TEST(strangers_that_flood_do_not_hold_up_the_end_and_can_send_no_more_after_it)
{
    int status;
    pid_t strangers[STRANGERS];
    static const char *const lines[STRANGERS] = {"stranger\n", "another\n", "a third\n"};
    start_gated();
    for (size_t i = 0; i < STRANGERS; i++) {
        strangers[i] = fork();
        if (strangers[i] == 0) {
            flood(lines[i]);
        }
    }
    for (size_t i = 0; i < STRANGERS; i++) {
        free(rig_await(&rig, "5.metrics", lines[i]));
    }
    finish_gated();
    for (size_t i = 0; i < STRANGERS; i++) {
        ck_assert_int_eq(waitpid(strangers[i], &status, 0), strangers[i]);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_int_eq(rig_rank_socket(&rig), -1);
    rig_forget(&rig);
}
END_TEST

START_TEST(a_disk_that_refuses_metrics_does_not_hold_up_the_job_and_the_gap_is_marked)
{
    start_gated();
    post("first\n");
    rig_expect_exactly(&rig, "output");
    rig_send(&rig, "seen");
    rig_limit_file_size(&rig, 8);
    post("second\n");
    rig_expect_exactly(&rig, "output");
    rig_limit_file_size(&rig, RLIM_INFINITY);
    post("third\n");
    finish_gated();
    holds("5.metrics", "first\nse\n[gpuctl: 5 bytes dropped: File too large]\nthird\n");
    rig_forget(&rig);
}
END_TEST

START_TEST(metrics_whose_file_cannot_be_made_are_counted_and_the_next_try_says_so)
{
    char aside[160];
    snprintf(aside, sizeof aside, "%s-aside", rig.logs);
    start_gated();
    ck_assert_int_eq(rename(rig.logs, aside), 0);
    post("nowhere\n");
    for (int i = 0; i < 2000; i++) { /* more than a queue and a batch: the first batch is done */
        post("");
    }
    ck_assert_int_eq(rename(aside, rig.logs), 0);
    post("somewhere\n");
    finish_gated();
    holds("5.metrics", "[gpuctl: 8 bytes dropped: No such file or directory]\nsomewhere\n");
    rig_forget(&rig);
}
END_TEST

START_TEST(metrics_at_the_limit_of_a_stream_end_with_a_line_that_says_so)
{
    char path[160], text[128] = "";
    snprintf(path, sizeof path, "%s/5.metrics", rig.logs);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int64_t most = LIMIT_STREAM_BYTES - STREAM_MARKS_BYTES;
    ck_assert_int_eq(ftruncate(fd, most - 5), 0); /* a hole: as if so much had been written */
    start_gated();
    post("hello world\n");
    finish_gated();
    ck_assert_int_gt(pread(fd, text, sizeof text - 1, most - 5), 0);
    ck_assert_str_eq(text, "hello\n[gpuctl: 7 bytes dropped: the limit of a stream is 1024 MiB]\n");
    close(fd);
    rig_forget(&rig);
}
END_TEST

void rig_suite_metrics(Suite *suite)
{
    TCase *tcase = tcase_create("metrics");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, the_metrics_of_two_ranks_arrive_whole_and_in_order);
    tcase_add_test(tcase, fifty_thousand_messages_beside_flooding_output_all_arrive);
    tcase_add_test(tcase, what_a_rank_says_last_is_stored_before_its_end_is_told);
    tcase_add_test(tcase, a_message_gets_its_newline_where_it_has_none);
    tcase_add_test(tcase, empty_and_too_large_messages_are_dropped_and_the_largest_is_stored);
    tcase_add_test(tcase, metrics_are_told_as_output_is);
    tcase_add_test(tcase, the_end_of_the_agent_holds_up_no_metrics);
    tcase_add_test(tcase, without_metrics_there_is_no_file);
    tcase_add_test(tcase, the_socket_is_there_before_the_start_and_for_its_owner_only);
    tcase_add_test(tcase, strangers_that_flood_do_not_hold_up_the_end_and_can_send_no_more_after_it);
    tcase_add_test(tcase, a_disk_that_refuses_metrics_does_not_hold_up_the_job_and_the_gap_is_marked);
    tcase_add_test(tcase, metrics_whose_file_cannot_be_made_are_counted_and_the_next_try_says_so);
    tcase_add_test(tcase, metrics_at_the_limit_of_a_stream_end_with_a_line_that_says_so);
    suite_add_tcase(suite, tcase);
}
