/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that do the agent's slow work: whom their end takes along. */
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/children.h"
#include "proto/base/text/text.h"
#include "tests/unit/agent/agent_suites.h"

static struct loop *loop;
static struct children *children;
static int ended;

static void set_up(void)
{
    loop = loop_create();
    children = children_create(loop);
    ended = -1;
}

static void tear_down(void)
{
    children_destroy(children);
    loop_destroy(loop);
}

static void done(void *closure, int status, const char *said)
{
    ended = status;
    loop_end(loop);
}

static struct child *run(const char *script)
{
    struct err err = {0};
    const char *const arguments[] = {"/bin/sh", "-c", script, NULL};
    const char *const variables[] = {NULL};
    struct child *child = child_start(
        children,
        &(struct child_call){
            .arguments = arguments, .variables = variables, .input = -1, .extra = -1, .done = done},
        &err);
    ck_assert_msg(child != NULL, "%s", err.text);
    return child;
}

static void wait_for_end(pid_t pid)
{
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

/* A process that leads a group of that number and says when it does, and again when it is asked; 0 where only
 * the kernel may choose numbers. */
static pid_t stranger(pid_t number, int socket)
{
    struct clone_args arguments = {
        .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&number, .set_tid_size = 1};
    pid_t pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
    if (pid == 0) {
        char word = 0;
        setpgid(0, 0);
        while (write(socket, &word, 1) == 1 && read(socket, &word, 1) == 1) {
        }
        _exit(0);
    }
    return pid > 0 ? pid : 0;
}

static bool answers(int socket)
{
    char word;
    return read(socket, &word, 1) == 1;
}

/* M13: its number was free from the moment it was waited for. */
START_TEST(the_end_of_a_child_does_not_kill_who_has_its_number_now)
{
    struct child *child = run("exit 3");
    pid_t pid = child_pid(child);
    wait_for_end(pid);
    children_reap(children);
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pid_t other = stranger(pid, ends[1]);
    close(ends[1]);
    if (other == 0) {
        return; /* not root */
    }
    ck_assert(answers(ends[0]));
    loop_run(loop);
    ck_assert_int_eq(WEXITSTATUS(ended), 3);
    ck_assert(write(ends[0], "", 1) == 1 && answers(ends[0]));
    close(ends[0]);
    kill(other, SIGKILL);
    ck_assert_int_eq(waitpid(other, NULL, 0), other);
}
END_TEST

START_TEST(the_end_of_a_child_takes_along_what_it_left)
{
    int ends[2];
    char unread;
    ck_assert_int_eq(pipe(ends), 0); /* inherited: its end shows when the last process is gone */
    struct child *child = run("sleep 600 & exit 0");
    close(ends[1]);
    wait_for_end(child_pid(child));
    children_reap(children);
    ck_assert_int_eq(read(ends[0], &unread, 1), 0);
    loop_run(loop);
    ck_assert_int_eq(ended, 0);
    close(ends[0]);
}
END_TEST

Suite *children_suite(void)
{
    Suite *suite = suite_create("children");
    TCase *cases = tcase_create("children");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, the_end_of_a_child_does_not_kill_who_has_its_number_now);
    tcase_add_test(cases, the_end_of_a_child_takes_along_what_it_left);
    suite_add_tcase(suite, cases);
    return suite;
}
