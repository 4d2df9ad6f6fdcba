/* SPDX-License-Identifier: Apache-2.0 */
/* One gpushim that serves one attempt after another: nothing of an attempt gets into the next one. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "tests/unit/shim/shim_rig.h"

#define NEXT   "4294967298"
#define THIRD  "4294967299"
#define FOURTH "4294967300"

static struct rig rig;

static void set_up(void)
{
    rig_begin(&rig);
}

static void tear_down(void)
{
    rig_end(&rig);
}

/* An attempt of one rank, and its record. */
static char *through(const char *script)
{
    rig_shell(&rig, script);
    rig_field(&rig, "rank", "0");
    rig_assign(&rig);
    rig_send(&rig, "run - -");
    rig_expect(&rig, "running ");
    return rig_finish(&rig);
}

/* One whose shim is found by its socket. */
static void through_another_agent(void)
{
    rig_shell(&rig, "exit 0");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    rig_connect(&rig);
    rig_expect(&rig, "running ");
    free(rig_finish(&rig));
}

static void has_epoch(const char *record, const char *attempt_id)
{
    autofree char *line = xprintf("\nend\nepoch %s\n", attempt_id);
    ck_assert_msg(strstr(record, line) != NULL, "%s is not that of:\n%s", attempt_id, record);
}

START_TEST(the_end_of_an_attempt_is_not_that_of_the_next)
{
    rig_gate(&rig, "gate");
    rig_shell(&rig, "trap '' USR1 USR2 TERM; echo deaf; read line <gate");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    free(rig_await(&rig, "0.stdout", "deaf\n"));
    rig_send(&rig, "warn USR1");
    rig_send(&rig, "soften USR2");
    rig_send(&rig, "stop 10 TIME_LIMIT");
    autofree char *stopped = rig_finish(&rig);
    rig_cause_is(stopped, "TIME_LIMIT");
    has_epoch(stopped, RIG_ATTEMPT_ID);

    rig_reuse(&rig, NEXT);
    rig_shell(&rig, "echo failed; exit 3");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    rig_expect(&rig, "failed 0 3 0 ");
    autofree char *failed = rig_finish(&rig);
    rig_cause_is(failed, "RANK_FAILED rank 0 exited with code 3");
    has_epoch(failed, NEXT);
    ck_assert_int_eq(rig_exit_of(failed, 0).by_us, 0);
    ck_assert_int_eq(rig_exit_of(failed, 0).out_bytes, 7);

    rig_reuse(&rig, THIRD);
    autofree char *well = through("exit 0");
    rig_cause_is(well, "NONE");
    has_epoch(well, THIRD);
    ck_assert_int_eq(rig_exit_of(well, 0).out_bytes, 0);
    rig_forget(&rig);
}
END_TEST

/* Between two attempts it is again where it waits for the first: its socket and number are there. */
START_TEST(a_shim_without_an_attempt_is_at_home)
{
    autofree char *number = xprintf("%s/" SHIM_PID_FILE, rig.home);
    autofree char *listener = xprintf("%s/" SHIM_SOCKET_FILE, rig.home);
    autofree char *cwd = xprintf("/proc/%d/cwd", (int)rig.shim);
    char place[128] = "";
    free(through("exit 0"));
    rig_reuse(&rig, NEXT);
    ck_assert_int_gt(readlink(cwd, place, sizeof place - 1), 0);
    ck_assert_str_eq(place, rig.home);
    ck_assert_int_eq(access(number, F_OK), 0);
    ck_assert_int_eq(access(listener, F_OK), 0);
    through_another_agent();
    rig_forget(&rig);
}
END_TEST

START_TEST(a_shim_needs_no_home)
{
    struct err err;
    rig_end(&rig);
    rig_begin_without_home(&rig);
    free(through("exit 0"));
    rig_reuse(&rig, NEXT);
    ck_assert(file_make_directories(rig.home, 0700, &err)); /* from the next attempt on */
    through_another_agent();
    rig_reuse(&rig, THIRD);
    free(through("exit 0"));
    rig_forget(&rig);
}
END_TEST

/* Of an agent that has restarted, and started it again elsewhere. */
START_TEST(a_folder_of_another_shim_is_left_alone)
{
    int status;
    struct err err;
    autofree char *number = xprintf("%s/" SHIM_PID_FILE, rig.run);
    autofree char *listener = xprintf("%s/" SHIM_SOCKET_FILE, rig.run);
    autofree char *bytes = NULL;
    ck_assert(file_replace(_i == 0 ? number : listener, "other", 5, 0600, &err));
    rig_shell(&rig, "exit 0");
    rig_field(&rig, "rank", "0");
    rig_assign(&rig);
    ck_assert_int_eq(waitpid(rig.shim, &status, 0), rig.shim);
    ck_assert_int_eq(WEXITSTATUS(status), 1);
    ck_assert(file_read(_i == 0 ? number : listener, 16, &bytes, NULL, &err));
    ck_assert_str_eq(bytes, "other");
    ck_assert_int_ne(access(_i == 0 ? listener : number, F_OK), 0);
    ck_assert_int_ne(access(rig.home, F_OK), 0);
}
END_TEST

START_TEST(a_lease_ends_with_its_attempt)
{
    rig_shell(&rig, "sleep 1000");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    rig_send(&rig, "lease 1 2");
    autofree char *lost = rig_finish(&rig);
    rig_cause_is(lost, "NODE_LOST the lease ended");
    rig_reuse(&rig, NEXT);
    autofree char *record = through("exit 0");
    rig_cause_is(record, "NONE");
    rig_forget(&rig);
}
END_TEST

START_TEST(a_new_agent_hears_nothing_of_an_earlier_attempt)
{
    rig_shell(&rig, "exit 7");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    rig_expect(&rig, "failed 0 7 0 ");
    free(rig_finish(&rig));
    rig_reuse(&rig, NEXT);
    rig_gate(&rig, "gate");
    rig_shell(&rig, "read line <gate");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    rig_connect(&rig);
    rig_expect(&rig, "running ");
    rig_gate_pass(&rig, "gate");
    rig_expect_exactly(&rig, "exited");
    rig_forget(&rig);
}
END_TEST

static size_t open_descriptors(pid_t pid)
{
    autofree char *path = xprintf("/proc/%d/fd", (int)pid);
    DIR *listing = opendir(path);
    size_t count = 0;
    ck_assert_ptr_nonnull(listing);
    while (readdir(listing) != NULL) {
        count++;
    }
    closedir(listing);
    return count;
}

/* Two ranks, a port, a lock, output, metrics, a failure. */
static void use_everything(int port)
{
    autofree char *lock = xprintf("%s/lock", rig.root);
    fclose(fopen(lock, "w"));
    rig_field(&rig, "hold", lock);
    rig_fake_rank(&rig);
    rig_range(&rig, port, port);
    rig_shell(&rig, "echo $RANK; $FAKE_RANK lines 3; exit $RANK");
    rig_field(&rig, "rank", "0");
    rig_field(&rig, "env", "RANK=0");
    rig_field(&rig, "rank", "1");
    rig_field(&rig, "env", "RANK=1");
    rig_assign(&rig);
    rig_send(&rig, "prepare");
    rig_expect(&rig, "prepared ");
    rig_send(&rig, "run 127.0.0.1 -");
    rig_expect(&rig, "running ");
    rig_expect(&rig, "failed 1 1 0 ");
    free(rig_finish(&rig));
}

START_TEST(no_descriptor_stays_from_an_attempt)
{
    int port = rig_free_ports(1);
    use_everything(port);
    rig_reuse(&rig, NEXT);
    size_t count = open_descriptors(rig.shim);
    use_everything(port);
    rig_reuse(&rig, THIRD);
    ck_assert_uint_eq(open_descriptors(rig.shim), count);
    use_everything(port);
    rig_reuse(&rig, FOURTH);
    ck_assert_uint_eq(open_descriptors(rig.shim), count);
    free(through("exit 0"));
    rig_forget(&rig);
}
END_TEST

START_TEST(an_idle_shim_ends_with_its_agent)
{
    int status;
    free(through("exit 0"));
    rig_reuse(&rig, NEXT);
    close(rig.agent_socket);
    rig.agent_socket = -1;
    ck_assert_int_eq(waitpid(rig.shim, &status, 0), rig.shim);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(an_attempt_that_lives_is_not_given_up)
{
    rig_gate(&rig, "gate");
    rig_shell(&rig, "read line <gate");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    rig_send(&rig, "reuse");
    rig_gate_pass(&rig, "gate");
    rig_expect_exactly(&rig, "exited");
    rig_forget(&rig);
}
END_TEST

START_TEST(a_shim_that_declined_ends)
{
    int status;
    rig_assign(&rig);
    rig_expect(&rig, "declined ");
    rig_send(&rig, "reuse");
    ck_assert_int_eq(waitpid(rig.shim, &status, 0), rig.shim);
    ck_assert_int_eq(status, 0);
}
END_TEST

void rig_suite_reuse(Suite *suite)
{
    TCase *tcase = tcase_create("reuse");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_shim_without_an_attempt_is_at_home);
    tcase_add_test(tcase, a_shim_needs_no_home);
    tcase_add_loop_test(tcase, a_folder_of_another_shim_is_left_alone, 0, 2);
    tcase_add_test(tcase, the_end_of_an_attempt_is_not_that_of_the_next);
    tcase_add_test(tcase, a_lease_ends_with_its_attempt);
    tcase_add_test(tcase, a_new_agent_hears_nothing_of_an_earlier_attempt);
    tcase_add_test(tcase, no_descriptor_stays_from_an_attempt);
    tcase_add_test(tcase, an_idle_shim_ends_with_its_agent);
    tcase_add_test(tcase, an_attempt_that_lives_is_not_given_up);
    tcase_add_test(tcase, a_shim_that_declined_ends);
    suite_add_tcase(suite, tcase);
}
