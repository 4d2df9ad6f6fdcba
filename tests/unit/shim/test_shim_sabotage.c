/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks do to the folder of their attempt, which they can reach: the record of their end is written all
 * the same, and nothing that they put there is followed or waited for. And what the kernel did to them for
 * want of memory. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
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

/* The rank does that in the log folder, and exits with 7; the record of it. */
static char *record_after(const char *what)
{
    autofree char *script = xprintf("cd logs && { %s; }; exit 7", what);
    rig_shell(&rig, script);
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    rig_expect(&rig, "failed 0 7 0 ");
    return rig_finish(&rig);
}

static const char *const acts[] = {
    "mkdir exit; touch exit/full",
    "mkfifo exit",
    "ln -s /etc/passwd exit",
    "rm exit.new; mkdir exit.new; touch exit.new/full",
    "rm exit.new; mkfifo exit.new",
    "rm exit.new; ln -s ../target exit.new",
    "printf 'cause NONE\\nend\\n' >forged; mv forged exit.new",
    "rm -rf ../logs",
    "mv ../logs ../elsewhere",
};
#define ACT_COUNT ((int)(sizeof acts / sizeof acts[0]))

START_TEST(the_record_is_written_whatever_ranks_put_in_its_place)
{
    autofree char *record = record_after(acts[_i]);
    autofree char *target = xprintf("%s/target", rig.root);
    rig_cause_is(record, "RANK_FAILED rank 0 exited with code 7");
    ck_assert_int_eq(rig_exit_of(record, 0).code, 7);
    ck_assert_int_ne(access(target, F_OK), 0);
    rig_forget(&rig);
}
END_TEST

/* The folder is gone when the shim syncs the record, which it does without a word of the agent. */
START_TEST(a_record_that_could_not_be_synced_is_written_anew)
{
    autofree char *aside = xprintf("%s/aside", rig.root);
    rig_shell(&rig, "exit 7");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    rig_expect(&rig, "failed 0 7 0 ");
    free(rig_finish(&rig));
    ck_assert_int_eq(rename(rig.logs, aside), 0);
    rig_logs_error(&rig, "exit record");
    while (!rig_has(&rig, "exit")) {
        sched_yield();
    }
    autofree char *record = rig_read(&rig, "exit");
    ck_assert_int_eq(rig_exit_of(record, 0).code, 7);
    rig_forget(&rig);
}
END_TEST

START_TEST(metrics_are_not_written_through_a_link)
{
    autofree char *target = xprintf("%s/target", rig.root);
    rig_fake_rank(&rig);
    free(record_after("ln -s ../target 0.metrics; RANK=0 $FAKE_RANK lines 3"));
    ck_assert_int_ne(access(target, F_OK), 0);
    rig_forget(&rig);
}
END_TEST

/* A folder that looks like a cgroup to the shim, with a counter that the test owns. */
static void fake_cgroup(void)
{
    autofree char *folder = xprintf("%s/group", rig.root);
    autofree char *script = xprintf("mkdir %s && cd %s && : >cgroup.procs && "
                                    "printf 'low 0\noom 0\noom_kill 0\n' >memory.events && "
                                    "echo 'max 0' >pids.events",
                                    folder, folder);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    rig_field(&rig, "cgroup", folder);
}

#define ONE_MORE    "echo 'oom_kill 1' >group/memory.events; "
#define ANEW(count) "rm group/memory.events; echo 'oom_kill " count "' >group/memory.events; "

static const struct {
    const char *script, *cause;
} ends[] = {
    {ONE_MORE "kill -9 $$", "OUT_OF_MEMORY rank 0 was killed by signal 9 (Killed), out of memory"},
    {ONE_MORE "exit 3", "OUT_OF_MEMORY rank 0 exited with code 3, out of memory"},
    {ONE_MORE "exit 0", "NONE"},
    {"kill -9 $$", "RANK_FAILED rank 0 was killed by signal 9 (Killed)"},
    /* M1: the next agent turns the controllers on anew, and brings a counter that begins at zero */
    {ANEW("1") "kill -9 $$", "OUT_OF_MEMORY rank 0 was killed by signal 9 (Killed), out of memory"},
    {ANEW("0") "kill -9 $$", "RANK_FAILED rank 0 was killed by signal 9 (Killed)"},
    {"echo 'max 7' >group/pids.events; exit 2",
     "RANK_FAILED rank 0 exited with code 2; the job had as many processes as it may have"},
    {ONE_MORE "echo 'max 7' >group/pids.events; exit 2",
     "OUT_OF_MEMORY rank 0 exited with code 2, out of memory"},
};

START_TEST(an_end_for_want_of_memory_or_processes_is_told_from_one_by_a_person)
{
    fake_cgroup();
    rig_shell(&rig, ends[_i].script);
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    if (strcmp(ends[_i].cause, "NONE") != 0) {
        rig_expect(&rig, "failed 0 ");
    }
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, ends[_i].cause);
    rig_forget(&rig);
}
END_TEST

void rig_suite_sabotage(Suite *suite)
{
    TCase *cases = tcase_create("sabotage");
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_loop_test(cases, the_record_is_written_whatever_ranks_put_in_its_place, 0, ACT_COUNT);
    tcase_add_test(cases, a_record_that_could_not_be_synced_is_written_anew);
    tcase_add_test(cases, metrics_are_not_written_through_a_link);
    tcase_add_loop_test(cases, an_end_for_want_of_memory_or_processes_is_told_from_one_by_a_person, 0,
                        (int)(sizeof ends / sizeof ends[0]));
    suite_add_tcase(suite, cases);
}
