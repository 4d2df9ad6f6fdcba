/* SPDX-License-Identifier: Apache-2.0 */
/* What gpushim does before it starts anything: the port that it holds, and what it declines. */
#include "tests/unit/shim/shim_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/text.h"

static struct rig rig;

static void set_up(void)
{
    rig_begin(&rig);
}

static void tear_down(void)
{
    rig_end(&rig);
}

START_TEST(a_gangs_port_is_held_for_its_owner_until_the_end)
{
    int port = rig_free_ports(1);
    char prepared[32], running[32];
    snprintf(prepared, sizeof prepared, "prepared %d", port);
    rig_shell(&rig, "echo $MASTER_ADDR:$MASTER_PORT; read line < gate");
    rig_range(&rig, port, port);
    rig_field(&rig, "rank", "0");
    rig_field(&rig, "rank", "1");
    rig_gate(&rig, "gate");
    rig_assign(&rig);
    rig_send(&rig, "prepare");
    rig_expect_exactly(&rig, prepared);
    ck_assert_int_eq(rig_bind_port(port, false), -1);
    rig_send(&rig, "run 127.0.0.1 -");
    rig_expect(&rig, "running ");
    snprintf(running, sizeof running, " %d", port);
    ck_assert_ptr_nonnull(strstr(rig.heard, running));
    ck_assert_int_eq(rig_bind_port(port, false), -1);
    int owner = rig_bind_port(port, true);
    ck_assert_int_ge(owner, 0);
    close(owner);
    char expected[64];
    snprintf(expected, sizeof expected, "127.0.0.1:%d\n", port);
    free(rig_await(&rig, "1.stdout", expected));
    rig_send(&rig, "stop 20000 CANCELED");
    free(rig_finish(&rig));
    int after = rig_bind_port(port, false);
    ck_assert_int_ge(after, 0);
    close(after);
    rig_forget(&rig);
}
END_TEST

static int prepare_in(struct rig *one, int first, int last)
{
    rig_shell(one, "true");
    rig_range(one, first, last);
    rig_field(one, "rank", "0");
    rig_assign(one);
    rig_send(one, "prepare");
    return atoi(rig_expect(one, "prepared ") + strlen("prepared "));
}

START_TEST(two_shims_never_hold_one_port)
{
    struct rig second, third;
    int first = rig_free_ports(2);
    rig_begin(&second);
    rig_begin(&third);
    int held = prepare_in(&rig, first, first + 1) + prepare_in(&second, first, first + 1);
    ck_assert_int_eq(held, 2 * first + 1);

    char declined[64];
    snprintf(declined, sizeof declined, "declined no port free in %d-%d", first, first + 1);
    rig_shell(&third, "true");
    rig_range(&third, first, first + 1);
    rig_field(&third, "rank", "0");
    rig_assign(&third);
    rig_send(&third, "run - -");
    rig_expect_exactly(&third, declined);
    rig_forget(&third);
    rig_end(&third);
    rig_send(&second, "stop 0 CANCELED");
    rig_expect_exactly(&second, "exited");
    rig_forget(&second);
    rig_end(&second);
    rig_send(&rig, "stop 0 CANCELED");
    rig_expect_exactly(&rig, "exited");
    rig_forget(&rig);
}
END_TEST

START_TEST(a_port_that_somebody_listens_on_is_passed_over)
{
    int first = rig_free_ports(2);
    int other = rig_bind_port(first, true);
    ck_assert_int_eq(prepare_in(&rig, first, first + 1), first + 1);
    close(other);
    rig_send(&rig, "stop 0 CANCELED");
    rig_expect_exactly(&rig, "exited");
    rig_forget(&rig);
}
END_TEST

START_TEST(a_stop_before_the_start_leaves_a_record_without_ranks)
{
    rig_shell(&rig, "echo never");
    rig_field(&rig, "rank", "0");
    rig_assign(&rig);
    rig_send(&rig, "stop 5000 TIME_LIMIT");
    rig_expect_exactly(&rig, "exited");
    rig_send(&rig, "run - -"); /* crossed it on the way */
    autofree char *record = rig_read(&rig, "exit");
    static const char start[] = "cause TIME_LIMIT\nend\nepoch " RIG_ATTEMPT_ID "\nmoments 0 0 0 0 ";
    ck_assert_int_eq(strncmp(record, start, strlen(start)), 0);
    ck_assert_ptr_null(strstr(record, "rank"));
    rig_forget(&rig);
}
END_TEST

static void expect_declined(const char *text)
{
    char expected[512];
    snprintf(expected, sizeof expected, "declined %s", text);
    rig_assign(&rig);
    rig_send(&rig, "run - -");
    rig_expect_exactly(&rig, expected);
    rig_forget(&rig);
}

START_TEST(a_launch_file_without_a_command_is_declined)
{
    rig_field(&rig, "rank", "0");
    expect_declined("launch file: no arg");
}
END_TEST

START_TEST(a_launch_file_of_another_attempt_id_is_declined)
{
    rig_shell(&rig, "true");
    rig_field(&rig, "epoch", "5");
    rig_field(&rig, "rank", "0");
    expect_declined("launch file: epoch 5 in the folder of " RIG_ATTEMPT_ID);
}
END_TEST

START_TEST(a_launch_file_that_is_cut_off_is_declined)
{
    rig_shell(&rig, "true");
    rig_field(&rig, "rank", "0");
    rig.launch_size--;
    rig_assign(&rig);
    rig_expect(&rig, "declined launch file: ");
    rig_forget(&rig);
}
END_TEST

START_TEST(a_log_folder_that_is_not_there_is_declined)
{
    rig_shell(&rig, "true");
    rig_field(&rig, "logs", "/no/such/folder");
    rig_field(&rig, "rank", "0");
    expect_declined("exit record /no/such/folder/exit.new: No such file or directory");
}
END_TEST

START_TEST(a_cgroup_that_is_not_there_is_declined)
{
    rig_shell(&rig, "true");
    rig_field(&rig, "cgroup", "/no/such/cgroup");
    rig_field(&rig, "rank", "0");
    expect_declined("cgroup /no/such/cgroup: No such file or directory");
}
END_TEST

/* M1: the node's fault, not that of the job, which would fail with exit code 126. */
START_TEST(a_cgroup_that_no_process_can_enter_is_declined)
{
    autofree char *cgroup = xprintf("%s/cgroup", rig.root);
    autofree char *procs = xprintf("%s/cgroup.procs", cgroup);
    autofree char *expected = xprintf("cannot enter cgroup %s: No space left on device", cgroup);
    ck_assert_int_eq(mkdir(cgroup, 0700), 0);
    ck_assert_int_eq(symlink("/dev/full", procs), 0);
    rig_shell(&rig, "true");
    rig_field(&rig, "cgroup", cgroup);
    rig_field(&rig, "rank", "0");
    expect_declined(expected);
}
END_TEST

/* Whether nobody holds the lock. */
static bool lock_is_free(const char *path)
{
    int lock = open(path, O_RDWR | O_CLOEXEC);
    bool is_free = flock(lock, LOCK_EX | LOCK_NB) == 0;
    close(lock);
    return is_free;
}

START_TEST(the_environment_of_the_ranks_is_held_until_the_shim_ends)
{
    autofree char *path = xprintf("%s/environment.lock", rig.root);
    close(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    rig_shell(&rig, "true");
    rig_field(&rig, "hold", path);
    rig_field(&rig, "rank", "0");
    rig_assign(&rig);
    rig_send(&rig, "run - -");
    rig_expect(&rig, "running");
    rig_expect(&rig, "exited");
    ck_assert(!lock_is_free(path));
    rig_forget(&rig);
    ck_assert(lock_is_free(path));
}
END_TEST

START_TEST(an_environment_that_is_gone_is_declined)
{
    rig_shell(&rig, "true");
    rig_field(&rig, "hold", "/no/such/environment.lock");
    rig_field(&rig, "rank", "0");
    expect_declined(
        "an environment, an image or an input is gone: /no/such/environment.lock: No such file or directory");
}
END_TEST

START_TEST(an_environment_that_is_being_thrown_away_is_declined)
{
    autofree char *path = xprintf("%s/environment.lock", rig.root);
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(flock(lock, LOCK_EX), 0);
    rig_shell(&rig, "true");
    rig_field(&rig, "hold", path);
    rig_field(&rig, "rank", "0");
    rig_assign(&rig);
    rig_expect(&rig, "declined an environment, an image or an input is gone: ");
    rig_forget(&rig);
    close(lock);
}
END_TEST

START_TEST(a_start_after_the_lease_is_declined)
{
    rig_shell(&rig, "true");
    rig_field(&rig, "rank", "0");
    rig_assign(&rig);
    rig_send(&rig, "prepare");
    rig_expect_exactly(&rig, "prepared 0");
    rig_send(&rig, "lease 1 2");
    rig_send(&rig, "start - - -");
    rig_expect_exactly(&rig, "declined the lease ended before the start");
    rig_forget(&rig);
}
END_TEST

START_TEST(a_lease_that_ends_before_the_start_gives_the_port_back)
{
    int port = rig_free_ports(1);
    prepare_in(&rig, port, port);
    long long soon = clock_boot_ms() + 20;
    rig_send(&rig, "lease %lld %lld", soon, soon + 10);
    rig_expect_exactly(&rig, "declined the lease ended before the start");
    int fd = rig_bind_port(port, false);
    ck_assert_int_ge(fd, 0);
    close(fd);
    rig_forget(&rig);
}
END_TEST

static TCase *ready_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return tcase;
}

void rig_suite_ready(Suite *suite)
{
    TCase *port = ready_case(suite, "port");
    tcase_add_test(port, a_gangs_port_is_held_for_its_owner_until_the_end);
    tcase_add_test(port, two_shims_never_hold_one_port);
    tcase_add_test(port, a_port_that_somebody_listens_on_is_passed_over);
    TCase *declined = ready_case(suite, "declined");
    tcase_add_test(declined, a_stop_before_the_start_leaves_a_record_without_ranks);
    tcase_add_test(declined, a_launch_file_without_a_command_is_declined);
    tcase_add_test(declined, a_launch_file_of_another_attempt_id_is_declined);
    tcase_add_test(declined, a_launch_file_that_is_cut_off_is_declined);
    tcase_add_test(declined, a_log_folder_that_is_not_there_is_declined);
    tcase_add_test(declined, a_cgroup_that_is_not_there_is_declined);
    tcase_add_test(declined, a_cgroup_that_no_process_can_enter_is_declined);
    tcase_add_test(declined, the_environment_of_the_ranks_is_held_until_the_shim_ends);
    tcase_add_test(declined, an_environment_that_is_gone_is_declined);
    tcase_add_test(declined, an_environment_that_is_being_thrown_away_is_declined);
    tcase_add_test(declined, a_start_after_the_lease_is_declined);
    tcase_add_test(declined, a_lease_that_ends_before_the_start_gives_the_port_back);
}
