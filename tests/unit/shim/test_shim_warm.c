/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of gpushim's `breed`: the program that makes warm workers is started as the launch file says, and a
 * shim whose program fails says so and serves attempts as ever. What becomes of workers is tested end to end.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "tests/unit/shim/shim_rig.h"

static struct rig rig;

static void set_up(void)
{
    rig_begin(&rig);
}

static void tear_down(void)
{
    rig_end(&rig);
}

/* Has the shim start a script. The launch file of the attempt stays empty. */
static void breed(const char *script)
{
    struct err err;
    const struct rig before = rig;
    autofree char *folder = xprintf("%s/warm", rig.root);
    autofree char *path = xprintf("%s/" SHIM_LAUNCH_FILE, folder);
    rig_shell(&rig, script);
    rig_field(&rig, "rank", "0");
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert(file_replace(path, rig.launch, rig.launch_size, 0600, &err));
    memcpy(rig.launch, before.launch, sizeof rig.launch);
    rig.launch_size = before.launch_size;
    rig_send(&rig, "breed %s", folder);
}

/* The shim serves an attempt, whatever became of its workers. */
static void serves(void)
{
    rig_shell(&rig, "true");
    rig_field(&rig, "rank", "0");
    rig_assign(&rig);
    rig_send(&rig, "run - -");
    rig_expect(&rig, "running ");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "NONE");
    rig_forget(&rig);
}

START_TEST(the_program_has_one_descriptor_more_than_a_rank)
{
    breed("{ readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2; readlink /proc/self/fd/3; ls "
          "/proc/self/fd | wc -l; } | sed 's/[0-9]*\\]//' > made");
    rig_expect_exactly(&rig, "warm 0 0");
    autofree char *path = xprintf("%s/made", rig.root);
    autofree char *said = NULL;
    ck_assert(file_read(path, 4096, &said, NULL, NULL));
    ck_assert_str_eq(said, "/dev/null\npipe:[\n/dev/null\nsocket:[\n5\n");
    serves();
}
END_TEST

START_TEST(a_program_that_fails_leaves_a_shim_that_serves)
{
    breed("exit 7");
    rig_expect_exactly(&rig, "warm 0 0");
    serves();
}
END_TEST

START_TEST(what_cannot_be_started_is_named)
{
    rig_send(&rig, "breed %s/nowhere", rig.root);
    autofree char *text = xprintf("unfit %s/nowhere: No such file or directory", rig.root);
    rig_expect_exactly(&rig, text);
    rig_send(&rig, "breed %s", rig.root);
    rig_expect_exactly(&rig, "unfit launch file: No such file or directory");
    serves();
}
END_TEST

START_TEST(a_program_that_still_runs_ends_with_the_start_of_an_attempt)
{
    breed("exec sleep 600");
    serves();
}
END_TEST

START_TEST(what_waits_ends_with_the_shim)
{
    autofree char *path = xprintf("%s/pid", rig.root);
    autofree char *said = NULL;
    int status;
    rig_gate(&rig, "gate");
    breed("sleep 600 & echo $! > pid; read line < gate; exec sleep 600");
    rig_gate_pass(&rig, "gate");
    ck_assert(file_read(path, 64, &said, NULL, NULL));
    struct pollfd left = {.fd = (int)syscall(SYS_pidfd_open, atoi(said), 0), .events = POLLIN};
    ck_assert_int_ge(left.fd, 0);
    close(rig.agent_socket);
    rig.agent_socket = -1;
    ck_assert_int_eq(waitpid(rig.shim, &status, 0), rig.shim);
    ck_assert_int_eq(poll(&left, 1, 30000), 1);
    close(left.fd);
}
END_TEST

void rig_suite_warm(Suite *suite)
{
    TCase *tcase = tcase_create("warm");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, the_program_has_one_descriptor_more_than_a_rank);
    tcase_add_test(tcase, a_program_that_fails_leaves_a_shim_that_serves);
    tcase_add_test(tcase, what_cannot_be_started_is_named);
    tcase_add_test(tcase, a_program_that_still_runs_ends_with_the_start_of_an_attempt);
    tcase_add_test(tcase, what_waits_ends_with_the_shim);
    suite_add_tcase(suite, tcase);
}
