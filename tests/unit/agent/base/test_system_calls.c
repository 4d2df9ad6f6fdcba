/* SPDX-License-Identifier: Apache-2.0 */
/* What jobs are refused, and what they are not, each in a process of its own that has the list. */
#include <errno.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/common/system_calls.h"
#include "tests/unit/agent/agent_suites.h"

#define CALL(name) #name, SYS_##name
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

/* Arguments with which the kernel would say something else, or would do it. */
static const struct {
    const char *name;
    long number;
    unsigned long first, second;
    int error;
} refused[] = {
    {CALL(keyctl), KEYCTL_GET_KEYRING_ID, (unsigned long)KEY_SPEC_USER_KEYRING, EPERM},
    {CALL(add_key), 0, 0, EPERM},
    {CALL(request_key), 0, 0, EPERM},
    {CALL(bpf), 0, 0, EPERM},
    {CALL(perf_event_open), 0, 0, EPERM},
    {CALL(userfaultfd), 1, 0, EPERM},
    {CALL(io_uring_setup), 1, 0, EPERM},
    {CALL(io_uring_enter), 0, 0, EPERM},
    {CALL(io_uring_register), 0, 0, EPERM},
    {CALL(kexec_load), 0, 0, EPERM},
    {CALL(kexec_file_load), 0, 0, EPERM},
    {CALL(init_module), 0, 0, EPERM},
    {CALL(finit_module), 0, 0, EPERM},
    {CALL(delete_module), 0, 0, EPERM},
    {CALL(mount), 0, 0, EPERM},
    {CALL(umount2), 0, 0, EPERM},
    {CALL(move_mount), 0, 0, EPERM},
    {CALL(fsopen), 0, 0, EPERM},
    {CALL(fsconfig), 0, 0, EPERM},
    {CALL(fsmount), 0, 0, EPERM},
    {CALL(fspick), 0, 0, EPERM},
    {CALL(open_tree), 0, 0, EPERM},
    {CALL(open_tree_attr), 0, 0, EPERM},
    {CALL(mount_setattr), 0, 0, EPERM},
    {CALL(pivot_root), 0, 0, EPERM},
    {CALL(chroot), 0, 0, EPERM},
    {CALL(setns), 0, 0, EPERM},
    {CALL(name_to_handle_at), 0, 0, EPERM},
    {CALL(open_by_handle_at), 0, 0, EPERM},
    {CALL(quotactl), 0, 0, EPERM},
    {CALL(quotactl_fd), 0, 0, EPERM},
    {CALL(acct), 0, 0, EPERM},
    {CALL(swapon), 0, 0, EPERM},
    {CALL(swapoff), 0, 0, EPERM},
    {CALL(reboot), 0, 0, EPERM},
    {CALL(settimeofday), 1, 0, EPERM},
    {CALL(clock_settime), 0, 0, EPERM},
    {CALL(sethostname), 0, 0, EPERM},
    {CALL(setdomainname), 0, 0, EPERM},
    {CALL(syslog), 10, 0, EPERM},
    {CALL(lookup_dcookie), 0, 0, EPERM},
    {CALL(unshare), CLONE_NEWUSER, 0, EPERM},
    {CALL(unshare), CLONE_NEWTIME, 0, EPERM},
    {CALL(unshare), CLONE_NEWNS | CLONE_FILES, 0, EPERM},
    {CALL(clone), CLONE_NEWUSER | SIGCHLD, 0, EPERM},
    {CALL(clone), CLONE_NEWPID | SIGCHLD, 0, EPERM},
    {CALL(clone3), 0, 0, ENOSYS},
    {CALL(ioctl), (unsigned long)-1, TIOCSTI, EPERM},
    {CALL(ioctl), (unsigned long)-1, 0x541C /* TIOCLINUX */, EPERM},
    {CALL(ioctl), (unsigned long)-1, TIOCSTI | 1UL << 32, EPERM}, /* of which the kernel takes half */
    {CALL(personality), READ_IMPLIES_EXEC, 0, EPERM},
    {CALL(personality), 0x0001 /* that of System V */, 0, EPERM},
#ifdef __x86_64__
    {CALL(modify_ldt), 0, 0, EPERM},
    {CALL(iopl), 0, 0, EPERM},
    {CALL(ioperm), 0, 0, EPERM},
    {CALL(uselib), 0, 0, EPERM},
    {"getpid of x32", SYS_getpid | 0x40000000, 0, 0, EPERM},
#endif
};

/* Runs in a process with the list; returns what waitpid says of it. */
static int limited(int (*act)(int at), int at)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(system_calls_limit() ? act(at) : 99);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static int make_call(int at)
{
    long result = syscall(refused[at].number, refused[at].first, refused[at].second, 0L, 0L, 0L);
    return result == -1 ? errno : 98;
}

START_TEST(a_job_is_refused_what_is_for_administrators)
{
    ck_assert_msg(limited(make_call, _i) == refused[_i].error << 8, "%s", refused[_i].name);
}
END_TEST

#ifdef __x86_64__
/* getpid as programs of 32 bits ask for it. */
static int call_as_i386(int at)
{
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
    return 0;
}

START_TEST(a_program_for_another_processor_ends)
{
    int status = limited(call_as_i386, 0);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}
END_TEST
#endif

static void *nothing(void *closure)
{
    return closure;
}

static int start_a_thread(int at)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0;
}

static int start_a_process(int at)
{
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/true", "true", (char *)NULL);
    }
    return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}

/* As gdb and py-spy do. */
static int debug_a_process(int at)
{
    int status, found = 0, value = 7;
    pid_t pid = fork();
    if (pid == 0) {
        personality(ADDR_NO_RANDOMIZE);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(personality(0xffffffff) == ADDR_NO_RANDOMIZE ? 0 : 1);
    }
    struct iovec here = {&found, sizeof found}, there = {&value, sizeof value};
    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
        process_vm_readv(pid, &here, 1, &there, 1, 0) != sizeof found || found != 7 ||
        ptrace(PTRACE_CONT, pid, NULL, NULL) != 0) {
        return 1;
    }
    return waitpid(pid, &status, 0) != pid || status != 0;
}

static int share_less_with_threads(int at)
{
    return unshare(CLONE_FILES | CLONE_FS) != 0;
}

static int ask_a_pipe(int at)
{
    int ends[2], waiting = -1;
    return pipe(ends) != 0 || ioctl(ends[0], FIONREAD, &waiting) != 0 || waiting != 0;
}

static int talk(int at)
{
    int pair[2];
    char byte = 0;
    return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || write(pair[0], "x", 1) != 1 ||
           read(pair[1], &byte, 1) != 1 || byte != 'x' || socket(AF_INET, SOCK_STREAM, 0) < 0;
}

static int share_memory(int at)
{
    int file = memfd_create("shared", 0);
    return file < 0 || ftruncate(file, 4096) != 0 ||
           mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED ||
           mlock(&file, sizeof file) != 0;
}

static int limit_it_again(int at)
{
    return !system_calls_limit();
}

static int (*const allowed[])(int at) = {
    start_a_thread, start_a_process, debug_a_process, share_less_with_threads, ask_a_pipe,
    talk,           share_memory,    limit_it_again};

START_TEST(a_job_may_do_what_programs_do)
{
    ck_assert_int_eq(limited(allowed[_i], 0), 0);
}
END_TEST

Suite *system_calls_suite(void)
{
    Suite *suite = suite_create("system calls");
    TCase *tcase = tcase_create("system calls");
    if (!system_calls_can_limit()) {
        return suite;
    }
    tcase_add_loop_test(tcase, a_job_is_refused_what_is_for_administrators, 0,
                        sizeof refused / sizeof refused[0]);
#ifdef __x86_64__
    tcase_add_test(tcase, a_program_for_another_processor_ends);
#endif
    tcase_add_loop_test(tcase, a_job_may_do_what_programs_do, 0, sizeof allowed / sizeof allowed[0]);
    suite_add_tcase(suite, tcase);
    return suite;
}
