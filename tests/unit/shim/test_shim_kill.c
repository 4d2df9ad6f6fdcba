/* SPDX-License-Identifier: Apache-2.0 */
/* How gpushim ends an attempt: gangs of which one fails, the ladder, what ranks leave behind, cgroups, the
 * lease, and its own death. */
#include "tests/unit/shim/shim_rig.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define STUBBORN "trap '' TERM; echo ready; exec sleep 1000"

/* A child that left its session and its parent, ignores TERM and keeps the rank's stdout. */
#define LEFT_BEHIND "setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' &"

static struct rig rig;

static void set_up(void)
{
    rig_begin(&rig);
}

static void tear_down(void)
{
    rig_end(&rig);
}

static void start_one(const char *script)
{
    rig_shell(&rig, script);
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
}

/* Every number in the file was a process, and is none now. */
static int all_gone(const char *name)
{
    autofree char *text = rig_read(&rig, name);
    int count = 0, length = 0, pid;
    for (const char *at = text; sscanf(at, "%d\n%n", &pid, &length) == 1; at += length) {
        rig_gone(pid);
        count++;
    }
    return count;
}

START_TEST(one_failed_rank_ends_the_gang)
{
    rig_shell(&rig, "test $RANK = 1 && exit 3; exec sleep 1000");
    rig_field(&rig, "rank", "0");
    rig_field(&rig, "env", "RANK=0");
    rig_field(&rig, "rank", "1");
    rig_field(&rig, "env", "RANK=1");
    rig_field(&rig, "rank", "2");
    rig_field(&rig, "env", "RANK=2");
    rig_start(&rig);
    rig_expect(&rig, "failed 1 3 0 ");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "RANK_FAILED rank 1 exited with code 3");
    ck_assert_int_eq(rig_exit_of(record, 1).by_us, 0);
    ck_assert_int_eq(rig_exit_of(record, 0).signal, SIGTERM);
    ck_assert_int_eq(rig_exit_of(record, 0).code, 128 + SIGTERM);
    ck_assert_int_eq(rig_exit_of(record, 0).by_us, 1);
    ck_assert_int_eq(rig_exit_of(record, 2).by_us, 1);
    rig_forget(&rig);
}
END_TEST

/* Returns when the process has ended, though nobody has waited for it yet. */
static void kill_and_see(pid_t pid, int number)
{
    autoclose int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    ck_assert_int_ge(pidfd, 0);
    ck_assert_int_eq(kill(pid, number), 0);
    ck_assert_int_eq(poll(&end, 1, 30000), 1);
}

static pid_t pid_said(const char *name)
{
    autofree char *text = rig_await(&rig, name, "\n");
    return (pid_t)strtol(text, NULL, 10);
}

/* wait() would give them in the order of their birth. */
START_TEST(the_rank_that_ended_first_is_named_however_late_the_shim_looks)
{
    int status;
    rig_shell(&rig, "echo $$; exec sleep 1000");
    rig_field(&rig, "rank", "4");
    rig_field(&rig, "rank", "5");
    rig_field(&rig, "rank", "6");
    rig_start(&rig);
    pid_t first = pid_said("6.stdout"), second = pid_said("4.stdout"), third = pid_said("5.stdout");
    ck_assert_int_eq(kill(rig.shim, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(rig.shim, &status, WUNTRACED), rig.shim);
    kill_and_see(first, SIGSEGV);
    kill_and_see(second, SIGKILL);
    kill_and_see(third, SIGKILL);
    ck_assert_int_eq(kill(rig.shim, SIGCONT), 0);
    rig_expect(&rig, "failed 6 139 11 ");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "RANK_FAILED rank 6 was killed by signal 11 (Segmentation fault)");
    ck_assert_int_eq(strncmp(record, "rank 6 ", strlen("rank 6 ")), 0);
    ck_assert(strstr(record, "rank 5 ") > strstr(record, "rank 4 "));
    rig_forget(&rig);
}
END_TEST

START_TEST(a_failed_exec_of_one_rank_ends_those_before_it)
{
    rig_field(&rig, "arg", "sleep");
    rig_field(&rig, "arg", "1000");
    rig_field(&rig, "rank", "0");
    rig_field(&rig, "rank", "1");
    rig_field(&rig, "env", "PATH=/nowhere");
    rig_field(&rig, "rank", "2");
    rig_assign(&rig);
    rig_send(&rig, "run - -");
    rig_expect(&rig, "failed 1 127 0 ");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "EXEC_FAILED command not found: sleep");
    ck_assert_int_eq(rig_exit_of(record, 0).signal, SIGTERM);
    ck_assert_int_eq(rig_exit_of(record, 0).by_us, 1);
    ck_assert_int_eq(rig_exit_of(record, 1).by_us, 0);
    ck_assert_ptr_null(strstr(record, "rank 2"));
    rig_forget(&rig);
}
END_TEST

START_TEST(a_stop_ends_a_rank_that_takes_the_hint_at_once)
{
    start_one("echo ready; exec sleep 1000");
    free(rig_await(&rig, "0.stdout", "ready"));
    rig_send(&rig, "stop 3600000 CANCELED");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "CANCELED");
    ck_assert_int_eq(rig_exit_of(record, 0).signal, SIGTERM);
    ck_assert_int_eq(rig_exit_of(record, 0).by_us, 1);
    rig_forget(&rig);
}
END_TEST

START_TEST(a_rank_that_ignores_the_hint_is_killed_after_its_grace)
{
    start_one(STUBBORN);
    free(rig_await(&rig, "0.stdout", "ready"));
    int64_t asked_ms = clock_boot_ms();
    rig_send(&rig, "stop 150 CANCELED");
    autofree char *record = rig_finish(&rig);
    ck_assert_int_ge(clock_boot_ms() - asked_ms, 150);
    ck_assert_int_eq(rig_exit_of(record, 0).signal, SIGKILL);
    ck_assert_int_eq(rig_exit_of(record, 0).by_us, 1);
    rig_forget(&rig);
}
END_TEST

START_TEST(a_second_stop_shortens_the_grace_and_a_third_does_not_lengthen_it)
{
    start_one(STUBBORN);
    free(rig_await(&rig, "0.stdout", "ready"));
    rig_send(&rig, "stop 3600000 CANCELED");
    rig_send(&rig, "stop 50 TIME_LIMIT");
    rig_send(&rig, "stop 3600000 TIME_LIMIT");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "CANCELED");
    ck_assert_int_eq(rig_exit_of(record, 0).signal, SIGKILL);
    rig_forget(&rig);
}
END_TEST

START_TEST(a_stopped_rank_takes_the_hint)
{
    start_one("trap 'echo bye; exit 0' TERM; echo $$; while :; do sleep 1000 & wait; done");
    autofree char *pid = rig_await(&rig, "0.stdout", "\n");
    kill(atoi(pid), SIGSTOP);
    rig_send(&rig, "stop 3600000 CANCELED");
    autofree char *record = rig_finish(&rig);
    ck_assert_int_eq(rig_exit_of(record, 0).code, 0);
    autofree char *out = rig_read(&rig, "0.stdout");
    ck_assert_ptr_nonnull(strstr(out, "bye"));
    rig_forget(&rig);
}
END_TEST

START_TEST(the_hint_reaches_the_program_that_a_shell_waits_for)
{
    start_one("trap : TERM; sh -c 'echo ready; exec sleep 1000'; exit 0");
    free(rig_await(&rig, "0.stdout", "ready"));
    rig_send(&rig, "stop 3600000 CANCELED");
    autofree char *record = rig_finish(&rig);
    ck_assert_int_eq(rig_exit_of(record, 0).code, 0);
    rig_forget(&rig);
}
END_TEST

START_TEST(what_a_rank_left_behind_is_killed_before_the_end_is_told)
{
    rig_gate(&rig, "gate");
    start_one(LEFT_BEHIND " read line < gate");
    free(rig_await(&rig, "0.stdout", "\n"));
    rig_gate_pass(&rig, "gate");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "NONE");
    ck_assert_int_eq(rig_exit_of(record, 0).by_us, 0);
    ck_assert_int_eq(all_gone("0.stdout"), 1);
    rig_forget(&rig);
}
END_TEST

START_TEST(a_storm_of_200_stubborn_orphans_is_swept_away)
{
    rig_gate(&rig, "gate");
    start_one("i=0; while [ $i -lt 200 ]; do " LEFT_BEHIND " i=$((i+1)); done; read line < gate; exit 0");
    rig_gate_pass(&rig, "gate");
    free(rig_finish(&rig));
    ck_assert_int_ge(all_gone("0.stdout"), 1);
    rig_forget(&rig);
}
END_TEST

START_TEST(children_of_children_get_the_hint_whoever_their_parent_is)
{
    rig_gate(&rig, "gate");
    rig_field(&rig, "env",
              "INNER=trap 'echo asked >&2; exit 0' TERM; echo $$; sleep 1000 & echo inner; wait");
    start_one("setsid sh -c 'trap : TERM; echo $$; sh -c \"$INNER\"; trap \"\" TERM; exec sleep 1000' & "
              "read line < gate");
    free(rig_await(&rig, "0.stdout", "inner"));
    rig_gate_pass(&rig, "gate");
    free(rig_finish(&rig));
    autofree char *asked = rig_read(&rig, "0.stderr");
    ck_assert_str_eq(asked, "asked\n");
    ck_assert_int_eq(all_gone("0.stdout"), 2);
    rig_forget(&rig);
}
END_TEST

/* A rank in a cgroup, with an orphan, a folder of the job's own where it may make one, and the end of them
 * all. */
START_TEST(a_cgroup_holds_all_and_is_removed)
{
    if (!rig_cgroup(&rig)) {
        close(rig.agent_socket); /* no such cgroups on this host, or not for us */
        rig.agent_socket = -1;
        return;
    }
    char own[160];
    snprintf(own, sizeof own, "OWN=%s/own", rig.cgroup);
    rig_field(&rig, "env", own);
    rig_gate(&rig, "gate");
    start_one("cat /proc/self/cgroup >&2; mkdir $OWN && (" LEFT_BEHIND ") && echo $$ > $OWN/cgroup.procs;"
              "read line < gate");
    free(rig_await(&rig, "0.stdout", "\n"));
    rig_gate_pass(&rig, "gate");
    free(rig_finish(&rig));
    autofree char *groups = rig_read(&rig, "0.stderr");
    ck_assert_msg(strstr(groups, strrchr(rig.cgroup, '/')) != NULL, "%s", groups);
    ck_assert_int_eq(all_gone("0.stdout"), 1);
    rig_forget(&rig);
}
END_TEST

/* A process that is in the cgroup but not below the shim. */
START_TEST(a_stranger_in_the_cgroup_is_killed_too)
{
    if (!rig_cgroup(&rig)) {
        close(rig.agent_socket);
        rig.agent_socket = -1;
        return;
    }
    int status;
    pid_t stranger = fork();
    if (stranger == 0) {
        char path[160], pid[16];
        snprintf(path, sizeof path, "%s/cgroup.procs", rig.cgroup);
        snprintf(pid, sizeof pid, "%d", (int)getpid());
        execl("/bin/sh", "sh", "-c", "trap '' TERM; echo $1 > $0 && kill -STOP $$; exec sleep 1000", path,
              pid, (char *)NULL);
        _exit(1);
    }
    ck_assert_int_eq(waitpid(stranger, &status, WUNTRACED), stranger);
    ck_assert(WIFSTOPPED(status));
    start_one("exit 0");
    free(rig_finish(&rig));
    ck_assert_int_eq(waitpid(stranger, &status, 0), stranger);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    rig_forget(&rig);
}
END_TEST

START_TEST(the_lease_asks_and_then_kills)
{
    start_one("trap 'echo asked' TERM; echo ready; while :; do sleep 1000 & wait; done");
    free(rig_await(&rig, "0.stdout", "ready"));
    long long now = clock_boot_ms();
    rig_send(&rig, "lease %lld %lld", now + 50, now + 3600000);
    free(rig_await(&rig, "0.stdout", "asked"));
    now = clock_boot_ms();
    rig_send(&rig, "lease %lld %lld", now, now + 200);
    autofree char *record = rig_finish(&rig);
    ck_assert_int_ge(clock_boot_ms(), now + 200);
    rig_cause_is(record, "NODE_LOST the lease ended");
    ck_assert_int_eq(rig_exit_of(record, 0).signal, SIGKILL);
    ck_assert_int_eq(rig_exit_of(record, 0).by_us, 1);
    rig_forget(&rig);
}
END_TEST

START_TEST(a_later_lease_replaces_the_earlier)
{
    rig_gate(&rig, "gate");
    start_one("read line < gate");
    long long now = clock_boot_ms();
    rig_send(&rig, "lease %lld %lld", now + 1000, now + 1000);
    rig_send(&rig, "lease %lld %lld", now + 3600000, now + 3600000);
    struct pollfd quiet = {.fd = rig.agent_socket, .events = POLLIN};
    ck_assert_int_eq(poll(&quiet, 1, 1100), 0); /* the time of the first goes by */
    rig_gate_pass(&rig, "gate");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "NONE");
    rig_forget(&rig);
}
END_TEST

START_TEST(ranks_die_with_the_shim)
{
    int status;
    start_one("echo $$; " STUBBORN);
    autofree char *out = rig_await(&rig, "0.stdout", "ready");
    struct pollfd rank = {.fd = (int)syscall(SYS_pidfd_open, atoi(out), 0), .events = POLLIN};
    ck_assert_int_ge(rank.fd, 0);
    kill(rig.shim, SIGKILL);
    ck_assert_int_eq(waitpid(rig.shim, &status, 0), rig.shim);
    ck_assert_int_eq(poll(&rank, 1, 30000), 1);
    close(rank.fd);
}
END_TEST

static TCase *kill_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return tcase;
}

void rig_suite_kill(Suite *suite)
{
    TCase *ladder = kill_case(suite, "ladder");
    tcase_add_test(ladder, one_failed_rank_ends_the_gang);
    tcase_add_test(ladder, the_rank_that_ended_first_is_named_however_late_the_shim_looks);
    tcase_add_test(ladder, a_failed_exec_of_one_rank_ends_those_before_it);
    tcase_add_test(ladder, a_stop_ends_a_rank_that_takes_the_hint_at_once);
    tcase_add_test(ladder, a_rank_that_ignores_the_hint_is_killed_after_its_grace);
    tcase_add_test(ladder, a_second_stop_shortens_the_grace_and_a_third_does_not_lengthen_it);
    tcase_add_test(ladder, a_stopped_rank_takes_the_hint);
    tcase_add_test(ladder, the_hint_reaches_the_program_that_a_shell_waits_for);
    TCase *sweep = kill_case(suite, "sweep");
    tcase_add_test(sweep, what_a_rank_left_behind_is_killed_before_the_end_is_told);
    tcase_add_test(sweep, a_storm_of_200_stubborn_orphans_is_swept_away);
    tcase_add_test(sweep, children_of_children_get_the_hint_whoever_their_parent_is);
    TCase *cgroup = kill_case(suite, "cgroup");
    tcase_add_test(cgroup, a_cgroup_holds_all_and_is_removed);
    tcase_add_test(cgroup, a_stranger_in_the_cgroup_is_killed_too);
    TCase *lease = kill_case(suite, "lease");
    tcase_add_test(lease, the_lease_asks_and_then_kills);
    tcase_add_test(lease, a_later_lease_replaces_the_earlier);
    tcase_add_test(lease, ranks_die_with_the_shim);
}
