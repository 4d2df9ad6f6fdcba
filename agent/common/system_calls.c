/* SPDX-License-Identifier: Apache-2.0 */
/* Refuses jobs the system calls by which a user without rights reaches parts of the kernel that no job needs:
 * there most weaknesses are found that make a user root. All others stay: PyTorch, NCCL, MPI, Ray and
 * debuggers of one's own processes live with it, new system calls of later kernels, too. A program that makes
 * namespaces of its own, such as Apptainer or bubblewrap, does not: an agent can be told to leave the list
 * out (--seccomp off).
 * The filter is a program for the kernel (classic BPF). Calls with a check of arguments come first, because
 * CUDA makes many ioctls. The others are searched for by halves: the kernel tries the filter with every
 * number, to remember which calls it always allows, and a plain list takes 0.1 ms more. */
#include "agent/common/system_calls.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "name the architecture, whose system calls have their flags in the first argument"
#endif

#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif
#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

#define NEW_BY_CLONE                                                                                         \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |            \
     CLONE_NEWNET)
#define NEW_BY_UNSHARE (NEW_BY_CLONE | CLONE_NEWTIME)
/* gdb asks for the first; the others are what uname says. */
#define HARMLESS_PERSONALITY (ADDR_NO_RANDOMIZE | UNAME26 | PER_LINUX32)
#define ASK_PERSONALITY      0xffffffff

/* Of the 64 bits of an argument the lower ones, which is all that the kernel takes of flags and requests. */
#define LOAD(field)           BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define AND(bits)             BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (bits))
#define END(action)           BPF_STMT(BPF_RET | BPF_K, (action))
#define FAIL(error)           END(SECCOMP_RET_ERRNO | (error))
#define ALLOW                 END(SECCOMP_RET_ALLOW)
#define IS(value, yes, no)    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no)) /* rows to skip */
#define HAS(bits, yes, no)    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), (yes), (no))
#define LEAST(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (value), (yes), (no))

/* Rows: a call fails with EPERM if its first argument has one of these flags, else it is allowed. */
#define NOT_WITH_FLAGS(call, flags) IS((call), 0, 4), LOAD(args[0]), HAS((flags), 0, 1), FAIL(EPERM), ALLOW

static const struct sock_filter by_arguments[] = {
    LOAD(arch),
    IS(ARCHITECTURE, 1, 0),
    END(SECCOMP_RET_KILL_PROCESS), /* a program for another processor, such as one of 32 bits */
    LOAD(nr),
#ifdef __X32_SYSCALL_BIT
    LEAST(__X32_SYSCALL_BIT, 0, 2),
    IS(UINT32_MAX, 1, 0), /* a debugger has the kernel skip the call */
    FAIL(EPERM),
#endif
    /* what puts words into a terminal, as if somebody had typed them */
    IS(SYS_ioctl, 0, 5),
    LOAD(args[1]),
    IS(TIOCSTI, 1, 0),
    IS(TIOCLINUX, 0, 1),
    FAIL(EPERM),
    ALLOW,
    /* namespaces; libc starts processes and threads by clone where there is no clone3, whose flags lie in
     * memory that a filter cannot see */
    NOT_WITH_FLAGS(SYS_clone, NEW_BY_CLONE),
    IS(SYS_clone3, 0, 1),
    FAIL(ENOSYS),
    NOT_WITH_FLAGS(SYS_unshare, NEW_BY_UNSHARE),
    IS(SYS_personality, 0, 6),
    LOAD(args[0]),
    IS(ASK_PERSONALITY, 2, 0),
    AND(~HARMLESS_PERSONALITY),
    IS(0, 0, 1),
    ALLOW,
    FAIL(EPERM),
};

static const int refused[] = {
    /* large parts of the kernel that are for administrators and their tools */
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    /* namespaces, mounts, roots and files by their numbers */
    SYS_setns,
    SYS_mount,
    SYS_umount2,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_open_tree,
    SYS_open_tree_attr,
    SYS_mount_setattr,
    SYS_pivot_root,
    SYS_chroot,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    /* what only root may do anyway */
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_quotactl,
    SYS_quotactl_fd,
    SYS_acct,
    SYS_swapon,
    SYS_swapoff,
    SYS_reboot,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_vhangup,
    SYS_syslog, /* what the kernel says of the processes of others */
    /* what no kernel of today needs */
    SYS_lookup_dcookie,
    SYS_nfsservctl,
#ifdef __x86_64__
    SYS_ioperm,
    SYS_iopl,
    SYS_modify_ldt,
    SYS_uselib,
    SYS_ustat,
    SYS_sysfs,
    SYS__sysctl,
    SYS_create_module,
    SYS_query_module,
    SYS_get_kernel_syms,
    SYS_getpmsg,
    SYS_putpmsg,
    SYS_afs_syscall,
    SYS_tuxcall,
    SYS_security,
    SYS_vserver,
    SYS_epoll_ctl_old,
    SYS_epoll_wait_old,
#endif
};

#define ROWS   (sizeof by_arguments / sizeof by_arguments[0])
#define CALLS  (sizeof refused / sizeof refused[0])
#define LINEAR 4 /* so few numbers are compared one by one */

static void sort(int numbers[CALLS])
{
    for (size_t i = 1; i < CALLS; i++) {
        for (size_t j = i; j > 0 && numbers[j - 1] > numbers[j]; j--) {
            int larger = numbers[j - 1];
            numbers[j - 1] = numbers[j];
            numbers[j] = larger;
        }
    }
}

/* Returns the end of the rows that it writes. The last of some that are compared one by one skips to the
 * answer if it is not the one. */
static struct sock_filter *search(struct sock_filter *row, const int *numbers, size_t count)
{
    if (count > LINEAR) {
        struct sock_filter *choice = row;
        row = search(row + 1, numbers, count / 2);
        *choice = (struct sock_filter)LEAST((uint32_t)numbers[count / 2], (uint8_t)(row - choice - 1), 0);
        return search(row, numbers + count / 2, count - count / 2);
    }
    for (size_t i = 0; i < count; i++) {
        *row++ = (struct sock_filter)IS((uint32_t)numbers[i], 0, i + 1 == count);
    }
    return row;
}

/* Both answers stand once, at the end: what is shorter is translated sooner. */
static struct sock_filter *answer(struct sock_filter *first, struct sock_filter *row)
{
    for (struct sock_filter *at = first; at < row; at++) {
        if (BPF_OP(at->code) == BPF_JEQ) {
            at->jt = (uint8_t)(row - at);
            at->jf = (uint8_t)(at->jf != 0 ? row - at - 1 : 0);
        }
    }
    *row++ = (struct sock_filter)ALLOW;
    *row++ = (struct sock_filter)FAIL(EPERM);
    return row;
}

bool system_calls_can_limit(void)
{
    const uint32_t actions[] = {SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS};
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &actions[0]) == 0 &&
           syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &actions[1]) == 0;
}

/* Older kernels would make the job's own branches and loads slower, too (SPEC_ALLOW): they are as guarded as
 * those of any user. */
bool system_calls_limit(void)
{
    struct sock_filter filter[ROWS + 2 * CALLS], *end = filter + ROWS;
    int numbers[CALLS];
    memcpy(filter, by_arguments, sizeof by_arguments);
    memcpy(numbers, refused, sizeof refused);
    sort(numbers);
    end = answer(end, search(end, numbers, CALLS));
    const struct sock_fprog program = {.len = (unsigned short)(end - filter), .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) == 0;
}
