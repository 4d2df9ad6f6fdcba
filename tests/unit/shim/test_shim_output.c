/* SPDX-License-Identifier: Apache-2.0 */
/* The output of ranks, from gpushim's pipes to its files: whole, apart, within its limit, and never in the
 * way of the job. */
#include "tests/unit/shim/shim_rig.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
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

START_TEST(ten_megabytes_arrive_whole)
{
    rig_shell(&rig, "seq 1 1500000; seq 1 1500000 >&2");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    autofree char *record = rig_finish(&rig);
    for (int which = 0; which < 2; which++) {
        autofree char *text = rig_read(&rig, which == 0 ? "0.stdout" : "0.stderr");
        char *at = text;
        long number = 1;
        while (strtol(at, &at, 10) == number && *at == '\n') {
            number++;
            at++;
        }
        ck_assert_int_eq(number, 1500001);
        ck_assert_int_eq(*at, '\0');
        struct rig_exit exit = rig_exit_of(record, 0);
        ck_assert_int_eq(which == 0 ? exit.out_bytes : exit.err_bytes, at - text);
    }
    rig_forget(&rig);
}
END_TEST

START_TEST(the_output_of_two_ranks_stays_apart)
{
    rig_shell(&rig, "i=0; while [ $i -lt 1000 ]; do echo $RANK; echo e$RANK >&2; i=$((i+1)); done");
    rig_field(&rig, "rank", "12");
    rig_field(&rig, "env", "RANK=12");
    rig_field(&rig, "rank", "34");
    rig_field(&rig, "env", "RANK=34");
    rig_start(&rig);
    free(rig_finish(&rig));
    static const struct {
        const char *name, *line;
    } streams[] = {
        {"12.stdout", "12\n"}, {"12.stderr", "e12\n"}, {"34.stdout", "34\n"}, {"34.stderr", "e34\n"}};
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        autofree char *text = rig_read(&rig, streams[i].name);
        size_t length = strlen(streams[i].line);
        ck_assert_uint_eq(strlen(text), 1000 * length);
        for (const char *at = text; *at != '\0'; at += length) {
            ck_assert_int_eq(strncmp(at, streams[i].line, length), 0);
        }
    }
    rig_forget(&rig);
}
END_TEST

START_TEST(growth_is_told_once_until_it_was_seen)
{
    rig_shell(&rig,
              "echo one; read line < gate1; echo two; read line < gate2; echo three; read line < gate3");
    rig_field(&rig, "rank", "0");
    rig_gate(&rig, "gate1");
    rig_gate(&rig, "gate2");
    rig_gate(&rig, "gate3");
    rig_assign(&rig);
    rig_send(&rig, "run - -");
    rig_expect(&rig, "running ");
    rig_expect_exactly(&rig, "output");
    rig_gate_pass(&rig, "gate1");
    rig_gate_pass(&rig, "gate2"); /* two is written */
    struct pollfd quiet = {.fd = rig.agent_socket, .events = POLLIN};
    ck_assert_int_eq(poll(&quiet, 1, 100), 0);
    rig_send(&rig, "seen");
    rig_expect_exactly(&rig, "output");
    rig_gate_pass(&rig, "gate3");
    rig_expect_exactly(&rig, "exited");
    rig_forget(&rig);
}
END_TEST

/* The limit of a stream in the next tests: its tail is an eighth. */
#define LIMIT_FIELD "1048576"
#define TAIL        ((MIB - STREAM_MARKS_BYTES) / STREAM_TAIL_PART)
#define HEAD        (MIB - STREAM_MARKS_BYTES - TAIL)
#define NOTICE      "[gpuctl: output is at its limit; its last 127 KiB follow when it has ended]\n"

/* Runs the script with that limit; its stdout, which the caller frees. */
static char *run_limited(const char *script)
{
    rig_shell(&rig, script);
    rig_field(&rig, "rank", "0");
    rig_field(&rig, "log_limit", LIMIT_FIELD);
    rig_start(&rig);
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "NONE");
    char *text = rig_read(&rig, "0.stdout");
    ck_assert_int_eq(rig_exit_of(record, 0).out_bytes, (long long)strlen(text));
    ck_assert_int_le((long long)strlen(text), MIB);
    ck_assert(!rig_has(&rig, "0.stdout.tail"));
    rig_forget(&rig);
    return text;
}

/* Lines of eight bytes, "1000000\n" and up: the text that they must be from a position, up to a length. */
static void assert_counts_on(const char *text, int64_t position, size_t length)
{
    char line[32];
    for (size_t i = 0; i < length; i++) {
        int64_t at = position + (int64_t)i;
        if (i == 0 || at % 8 == 0) {
            snprintf(line, sizeof line, "%lld\n", (long long)(1000000 + at / 8));
        }
        ck_assert_msg(text[i] == line[at % 8], "byte %lld is %d", (long long)at, text[i]);
    }
}

START_TEST(a_stream_above_its_limit_keeps_its_first_part_and_its_last)
{
    autofree char *text = run_limited("seq 1000000 1999999"); /* 8,000,000 bytes */
    char *notice = strstr(text, NOTICE), *marker, *end;
    ck_assert_ptr_nonnull(notice);
    ck_assert_int_eq(notice[-1], '\n');
    size_t first = (size_t)(notice - text) - (HEAD % 8 != 0); /* a line end was added to a broken line */
    ck_assert_uint_eq(first, HEAD);
    assert_counts_on(text, 0, HEAD);
    marker = notice + strlen(NOTICE);
    ck_assert_int_eq(strncmp(marker, "[gpuctl: ", 9), 0);
    int64_t dropped = strtoll(marker + 9, &end, 10);
    static const char reason[] = " bytes dropped: the limit of a stream is 1 MiB]\n";
    ck_assert_int_eq(strncmp(end, reason, strlen(reason)), 0);
    end += strlen(reason);
    int64_t begin = HEAD + dropped;
    ck_assert_int_eq(begin % 8, 0); /* at the start of a line */
    ck_assert_int_eq((long long)strlen(end), 8000000 - begin);
    ck_assert_int_gt((long long)strlen(end), TAIL - 16);
    assert_counts_on(end, begin, strlen(end));
}
END_TEST

START_TEST(a_stream_that_fits_into_first_part_and_tail_loses_nothing)
{
    autofree char *text = run_limited("seq 1000000 1120000"); /* 960,008 bytes: 42 KiB above the first part */
    char *notice = strstr(text, NOTICE);
    ck_assert_ptr_nonnull(notice);
    assert_counts_on(text, 0, HEAD);
    ck_assert_ptr_null(strstr(text, "dropped"));
    const char *rest = notice + strlen(NOTICE);
    assert_counts_on(rest, HEAD, 960008 - HEAD);
    ck_assert_uint_eq(strlen(rest), 960008 - HEAD);
}
END_TEST

START_TEST(a_flood_without_a_line_end_keeps_its_last_bytes)
{
    autofree char *text = run_limited("head -c 3000000 /dev/zero | tr '\\0' x; printf end");
    const char *tail = strstr(text, "is 1 MiB]\n");
    ck_assert_ptr_nonnull(tail);
    tail += strlen("is 1 MiB]\n");
    ck_assert_uint_eq(strspn(tail, "x"), TAIL - 3);
    ck_assert_str_eq(tail + TAIL - 3, "end");
    ck_assert_int_eq(strncmp(strstr(text, "[gpuctl: output"), NOTICE, strlen(NOTICE)), 0);
    long long dropped = atoll(strstr(text, NOTICE) + strlen(NOTICE "[gpuctl: "));
    ck_assert_int_eq(dropped, 3000003 - HEAD - TAIL);
}
END_TEST

START_TEST(without_a_limit_in_the_launch_file_a_gigabyte_is_the_limit)
{
    char path[128], text[128] = "";
    int64_t first = LIMIT_STREAM_BYTES - LIMIT_TAIL_BYTES - STREAM_MARKS_BYTES;
    snprintf(path, sizeof path, "%s/0.stdout", rig.logs);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(ftruncate(fd, first - 5), 0); /* a hole: as if so much had been written */
    rig_shell(&rig, "echo hello world");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    free(rig_finish(&rig));
    ssize_t length = pread(fd, text, sizeof text - 1, first - 5);
    ck_assert_int_gt(length, 0);
    ck_assert_str_eq(text, "hello\n[gpuctl: output is at its limit; its last 4096 KiB follow when it has "
                           "ended]\n world\n");
    close(fd);
    rig_forget(&rig);
}
END_TEST

/* Returns when the shim has taken all that is in the pipe of the rank's stdout; the rank is a shell that
 * holds still. */
static void await_drained(pid_t rank)
{
    char path[64];
    int waiting = 1;
    snprintf(path, sizeof path, "/proc/%d/fd/1", (int)rank);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    while (waiting > 0) {
        struct pollfd pipe = {.fd = fd, .events = POLLIN};
        waiting = poll(&pipe, 1, 0);
    }
    close(fd);
}

START_TEST(a_disk_that_refuses_does_not_hold_up_the_job_and_the_gap_is_marked)
{
    rig_shell(&rig, "echo $$ >&2; echo first; read line < gate1; echo second; read line < gate2; echo third");
    rig_field(&rig, "rank", "0");
    rig_gate(&rig, "gate1");
    rig_gate(&rig, "gate2");
    rig_start(&rig);
    free(rig_await(&rig, "0.stdout", "first\n"));
    autofree char *pid = rig_await(&rig, "0.stderr", "\n");
    rig_limit_file_size(&rig, 8);
    rig_gate_pass(&rig, "gate1");
    char path[128];
    snprintf(path, sizeof path, "%s/gate2", rig.root);
    int gate = open(path, O_WRONLY | O_CLOEXEC); /* the rank is there, so second is in the pipe */
    await_drained(atoi(pid));
    rig_limit_file_size(&rig, RLIM_INFINITY);
    close(gate);
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "NONE");
    autofree char *out = rig_read(&rig, "0.stdout");
    ck_assert_str_eq(out, "first\nse\n[gpuctl: 5 bytes dropped: File too large]\nthird\n");
    rig_forget(&rig);
}
END_TEST

START_TEST(a_record_that_the_disk_refuses_is_tried_again_before_the_end_is_told)
{
    rig_shell(&rig, "read line < gate");
    rig_field(&rig, "rank", "0");
    rig_gate(&rig, "gate");
    rig_start(&rig);
    rig_limit_file_size(&rig, 0);
    rig_gate_pass(&rig, "gate");
    rig_logs_error(&rig, "exit: File too large");
    struct pollfd quiet = {.fd = rig.agent_socket, .events = POLLIN};
    ck_assert_int_eq(poll(&quiet, 1, 0), 0);
    rig_limit_file_size(&rig, RLIM_INFINITY);
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "NONE");
    rig_forget(&rig);
}
END_TEST

void rig_suite_output(Suite *suite)
{
    TCase *tcase = tcase_create("output");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, ten_megabytes_arrive_whole);
    tcase_add_test(tcase, the_output_of_two_ranks_stays_apart);
    tcase_add_test(tcase, growth_is_told_once_until_it_was_seen);
    tcase_add_test(tcase, a_stream_above_its_limit_keeps_its_first_part_and_its_last);
    tcase_add_test(tcase, a_stream_that_fits_into_first_part_and_tail_loses_nothing);
    tcase_add_test(tcase, a_flood_without_a_line_end_keeps_its_last_bytes);
    tcase_add_test(tcase, without_a_limit_in_the_launch_file_a_gigabyte_is_the_limit);
    tcase_add_test(tcase, a_disk_that_refuses_does_not_hold_up_the_job_and_the_gap_is_marked);
    tcase_add_test(tcase, a_record_that_the_disk_refuses_is_tried_again_before_the_end_is_told);
    suite_add_tcase(suite, tcase);
}
