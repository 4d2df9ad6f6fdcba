/* SPDX-License-Identifier: Apache-2.0 */
/* Collects ended processes. Ranks are collected in the order in which they ended, however late the shim
 * looks: in a gang the end of one rank soon ends others, and only the first explains why. wait() alone would
 * return them in the order of their birth. The kernel lists pidfds in an epoll as they become readable, which
 * happens before a process can be waited for. shim_attempt.c decides what an end means. */
#include "agent/shim/shim.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENDS_A_LOOK 64

static void unfollow(struct rank *rank)
{
    if (rank->pidfd >= 0) {
        close(rank->pidfd); /* closing removes it from the epoll, too: no one else has it */
        rank->pidfd = -1;
    }
}

/* Where the kernel has no pidfds (before 5.3), ranks that end together are collected in the order of
 * wait(). */
void reap_follow(struct shim *shim, size_t index)
{
    struct rank *rank = &shim->ranks[index];
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = index};
    if (rank->state != RANK_LIVE) {
        return;
    }
    shim->deaths = shim->deaths >= 0 ? shim->deaths : epoll_create1(EPOLL_CLOEXEC);
    rank->pidfd = (int)syscall(SYS_pidfd_open, rank->pid, 0);
    if (rank->pidfd >= 0 && epoll_ctl(shim->deaths, EPOLL_CTL_ADD, rank->pidfd, &event) != 0) {
        unfollow(rank);
    }
}

static void rank_ended(struct shim *shim, struct rank *rank, int status)
{
    unfollow(rank);
    rank->state = RANK_EXITED;
    rank->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    rank->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    rank->wall_ms = clock_wall_ms();
    rank->place = ++shim->ended_count;
    rank->by_us = shim->ladder != LADDER_NONE && rank != &shim->ranks[shim->failed];
}

static struct rank *live_rank(struct shim *shim, pid_t pid)
{
    for (size_t i = 0; i < shim->launch.rank_count; i++) {
        if (shim->ranks[i].state == RANK_LIVE && shim->ranks[i].pid == pid) {
            return &shim->ranks[i];
        }
    }
    return NULL;
}

/* False: no rank has ended since the last look. */
static bool ranks_look(struct shim *shim)
{
    struct epoll_event events[ENDS_A_LOOK];
    int count = shim->deaths >= 0 ? epoll_wait(shim->deaths, events, ENDS_A_LOOK, 0) : 0;
    for (int i = 0; i < count; i++) {
        struct rank *rank = &shim->ranks[events[i].data.u64];
        int status;
        if (waitpid(rank->pid, &status, WNOHANG) == rank->pid) {
            rank_ended(shim, rank, status);
        }
    }
    return count > 0;
}

/* Looks at one ended child without reaping it. 0: none has ended; -1: there are no children. */
static pid_t peek(void)
{
    siginfo_t info = {0};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 ? info.si_pid : -1;
}

bool reap_ended(struct shim *shim)
{
    pid_t pid;
    while ((pid = peek()) > 0) {
        struct rank *rank = live_rank(shim, pid);
        int status;
        if (rank != NULL && rank->pidfd >= 0 && ranks_look(shim)) {
            continue;
        }
        if (waitpid(pid, &status, WNOHANG) == pid) {
            if (rank != NULL) {
                rank_ended(shim, rank, status);
            } else {
                command_ended(shim, pid, status);
                attempt_container(shim, pid, status);
            }
        }
    }
    return pid == 0;
}

const struct rank *reap_at(const struct shim *shim, size_t place)
{
    for (size_t i = 0; i < shim->launch.rank_count; i++) {
        if (shim->ranks[i].state == RANK_EXITED && shim->ranks[i].place == place) {
            return &shim->ranks[i];
        }
    }
    return NULL;
}
