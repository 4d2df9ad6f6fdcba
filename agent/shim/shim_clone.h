/* SPDX-License-Identifier: Apache-2.0 */
/* The system call clone3, with CLONE_SHARES as the flag for a child that shares the caller's memory and
 * stack. It is made in the caller's own frame, because such a child must not return from a function of its
 * parent. A sanitizer keeps records of the stack, which a child that never returns would leave wrong: there,
 * and on other processors, the child gets a copy. */
#ifndef AGENT_SHIM_CLONE_H
#define AGENT_SHIM_CLONE_H

#include <errno.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__) && !defined(WITH_SANITIZER)
#define CLONE_SHARES CLONE_VM
/* As the kernel returns it: the child's number, 0 in the child, or a negative errno. */
static inline __attribute__((always_inline)) long clone_now(const struct clone_args *arguments)
{
    long result = SYS_clone3;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(arguments), "S"(sizeof *arguments)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__) && !defined(WITH_SANITIZER)
#define CLONE_SHARES CLONE_VM
static inline __attribute__((always_inline)) long clone_now(const struct clone_args *arguments)
{
    register long number __asm__("x8") = SYS_clone3;
    register long result __asm__("x0") = (long)arguments;
    register long size __asm__("x1") = (long)sizeof *arguments;
    __asm__ volatile("svc 0" : "+r"(result) : "r"(number), "r"(size) : "memory");
    return result;
}
#else
#define CLONE_SHARES 0
static inline long clone_now(const struct clone_args *arguments)
{
    long result = syscall(SYS_clone3, arguments, sizeof *arguments);
    return result < 0 ? -errno : result;
}
#endif

#endif
