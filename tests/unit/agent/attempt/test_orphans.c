/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/remains: whose processes are killed when there is no cgroup to know them by. And of the last
 * steps of an attempt: killing what remains, waiting for its GPUs. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/attempt/attempt.h"
#include "agent/attempt/orphans.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "tests/unit/agent/agent_suites.h"

#define ATTEMPT_ID 4294967297ULL

static char folder[] = "/tmp/gpuctl-remains-XXXXXX";
static char *ours, *theirs;

static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ours = xprintf("%s/ours", folder);
    theirs = xprintf("%s/theirs", folder);
    ck_assert_int_eq(mkdir(ours, 0700) | mkdir(theirs, 0700), 0);
}

static void teardown(void)
{
    rmdir(ours);
    rmdir(theirs);
    rmdir(folder);
    free(ours);
    free(theirs);
}

/* A process that lives until it is killed, with what a rank of the attempt would have in its environment. */
static pid_t start(unsigned long long attempt_id, const char *run)
{
    autofree char *attempt_id_variable = xprintf("GPUCTL_EPOCH=%llu", attempt_id);
    autofree char *socket_variable = xprintf("GPUCTL_SOCKET=%s/rank.sock", run);
    char *const variables[] = {attempt_id_variable, socket_variable, NULL};
    int executed[2];
    char unread;
    ck_assert_int_eq(pipe2(executed, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        execle("/bin/sleep", "sleep", "600", NULL, variables);
        _exit(127);
    }
    close(executed[1]);
    ck_assert_int_eq(read(executed[0], &unread, 1), 0); /* the end of file: exec has worked */
    close(executed[0]);
    return pid;
}

static bool lives(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == 0;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

START_TEST(what_names_attempt_id_and_run_folder_is_killed_and_nothing_else)
{
    autofree char *spelled = xprintf("%s/../ours", theirs);
    pid_t rank = start(ATTEMPT_ID, ours), same = start(ATTEMPT_ID, spelled);
    pid_t later = start(ATTEMPT_ID + 1, ours), other_cluster = start(ATTEMPT_ID, theirs);
    ck_assert(!orphans_kill(NULL, ATTEMPT_ID, ours));
    ck_assert_int_eq(waitpid(rank, NULL, 0), rank);
    ck_assert_int_eq(waitpid(same, NULL, 0), same);
    ck_assert(orphans_kill(NULL, ATTEMPT_ID, ours));
    ck_assert(lives(later));
    ck_assert(lives(other_cluster));
    end(later);
    end(other_cluster);
}
END_TEST

/* The listing, the pidfd and the environment need a descriptor each, the last two at the same time. */
START_TEST(what_there_is_no_descriptor_to_look_at_is_not_taken_for_gone)
{
    struct rlimit files;
    int first = dup(0);
    close(first);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    for (int more = 0; more <= 2; more++) {
        files.rlim_cur = (rlim_t)(first + more);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
        ck_assert_int_eq(orphans_kill(NULL, ATTEMPT_ID, ours), more == 2);
    }
}
END_TEST

/* --- the last steps ------------------------------------------------------------------------------------- */

static struct agent_context context;
static int cleared;

static void heard(void *closure, uint64_t attempt_id, enum reconciler_news news)
{
    cleared += news == NEWS_CLEARED;
    if (cleared > 1) {
        loop_end(context.loop);
    }
}

static struct attempt *begin_attempt(void)
{
    context = (struct agent_context){.loop = loop_create(), .heard = heard};
    context.config.run = folder;
    context.config.state = folder;
    cleared = 0;
    return attempt_create(&context, ATTEMPT_ID);
}

static void end_attempt(struct attempt *attempt)
{
    attempt_destroy(attempt);
    loop_destroy(context.loop);
}

/* Its array id once pointed into a reply that was freed. */
START_TEST(an_order_outlives_the_reply_that_brought_it)
{
    struct attempt *attempt = begin_attempt();
    const int64_t devices[] = {3};
    struct order order = {.attempt_id = ATTEMPT_ID,
                          .phase = ORDER_RUN,
                          .job_id = "jjjjjjjjjjjjjjjj",
                          .array_id = "bbbbbbbbbbbbbbbb",
                          .tracking_token = "token",
                          .tasks = 2,
                          .devices = devices,
                          .device_count = 1,
                          .spec = json_object()};
    struct poll_reply reply = {.orders = &order, .order_count = 1}, decoded;
    ck_assert(poll_reply_decode(poll_reply_encode(&reply), &decoded, NULL));
    json_decref(order.spec);
    attempt_order(attempt, &decoded.orders[0]);
    poll_reply_finish(&decoded);
    ck_assert_str_eq(attempt->order.array_id, "bbbbbbbbbbbbbbbb");
    ck_assert_str_eq(attempt->order.tracking_token, "token");
    ck_assert_int_eq(attempt->order.devices[0], 3);
    attempt_order(attempt, &(struct order){.phase = ORDER_STOP}); /* which brings no spec */
    ck_assert(json_is_object(attempt->order.spec));
    end_attempt(attempt);
}
END_TEST

static void enough(void *closure)
{
    loop_end(context.loop);
}

/* M12: it waits for a shim that does not end when that says that all is over; its record cannot be read. */
START_TEST(an_attempt_that_ends_in_the_middle_of_a_stop_is_cleared_once)
{
    struct attempt *attempt = begin_attempt();
    struct loop_timer end = {.due = enough};
    attempt->phase = PHASE_SHIM;
    attempt_stop(attempt, 60000, CAUSE_CANCELED, EARLY_NONE);
    ck_assert(attempt->timer.on);
    attempt_over(attempt, CAUSE_SHIM_LOST, "the exit record could not be read");
    attempt_clear(attempt);
    loop_arm(context.loop, &end, 0);
    loop_run(context.loop);
    ck_assert_int_eq(cleared, 1);
    end_attempt(attempt);
}
END_TEST

/* M13: a process that sleeps in a driver stays for hours. */
START_TEST(what_does_not_go_is_looked_for_ever_less_often)
{
    struct attempt *attempt = begin_attempt();
    autofree char *process = xprintf("%s/file", ours);
    close(open(process, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    attempt->cgroup = xstrdup(ours); /* which cannot be removed with something in it */
    attempt_salvage(attempt);
    int64_t before = 0;
    for (int look = 0; look < 12; look++) {
        ck_assert(attempt->timer.on);
        ck_assert(attempt->orphans_pace_ms > before || attempt->orphans_pace_ms == 1000);
        before = attempt->orphans_pace_ms;
        loop_disarm(context.loop, &attempt->timer);
        attempt->timer.due(attempt);
    }
    ck_assert_int_eq(before, 1000);
    unlink(process);
    end_attempt(attempt);
}
END_TEST

Suite *orphans_suite(void)
{
    Suite *suite = suite_create("remains");
    TCase *tests = tcase_create("remains");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, what_names_attempt_id_and_run_folder_is_killed_and_nothing_else);
    tcase_add_test(tests, what_there_is_no_descriptor_to_look_at_is_not_taken_for_gone);
    tcase_add_test(tests, an_order_outlives_the_reply_that_brought_it);
    tcase_add_test(tests, an_attempt_that_ends_in_the_middle_of_a_stop_is_cleared_once);
    tcase_add_test(tests, what_does_not_go_is_looked_for_ever_less_often);
    suite_add_tcase(suite, tests);
    return suite;
}
