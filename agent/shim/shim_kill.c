/* SPDX-License-Identifier: Apache-2.0 */
/* The kill ladder: TERM to the ranks, their grace, KILL to everything. Where the ranks asked for a signal on
 * which they save their work, that signal comes first, with the full grace; TERM then has the short grace of
 * a failed gang. TERM goes to the whole process group of a rank, because a shell around a program would not
 * pass it on. CONT follows, because a stopped process would not handle TERM. The rank's own signal goes only
 * to its main process, because it would end most programs that a rank has started. KILL goes to the cgroup
 * and to every descendant. It is repeated at growing intervals until attempt_children finds no process. No
 * call makes the ladder wait longer. */
#include "agent/shim/shim.h"

#include <signal.h>

static void ranks_signal(const struct shim *shim, int number)
{
    for (size_t i = 0; i < shim->launch.rank_count; i++) {
        if (shim->ranks[i].state == RANK_LIVE) { /* not reaped, so its PID cannot have been reused */
            kill(-shim->ranks[i].pid, number);
        }
    }
}

void kill_warn(const struct shim *shim, int signal)
{
    for (size_t i = 0; i < shim->launch.rank_count; i++) {
        if (shim->ranks[i].state == RANK_LIVE) {
            kill(shim->ranks[i].pid, signal);
        }
    }
}

static void everything_signal(struct shim *shim, int number)
{
    struct pid_list list;
    pid_list_begin(&list);
    cgroup_collect(shim, &list);
    sweep_collect(&list);
    sweep_signal(&list, number);
    if (number == SIGTERM) {
        sweep_signal(&list, SIGCONT);
    }
    pid_list_finish(&list);
}

static void tick_begin(struct shim *shim)
{
    shim->tick_pause_ms = SHIM_SWEEP_MS;
    shim->tick_ms = clock_boot_ms() + shim->tick_pause_ms;
}

static void kill_everything(struct shim *shim)
{
    cgroup_kill(shim);
    everything_signal(shim, SIGKILL);
}

void kill_now(struct shim *shim)
{
    if (shim->ladder == LADDER_KILL) {
        return;
    }
    shim->ladder = LADDER_KILL;
    kill_everything(shim);
    tick_begin(shim);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void kill_within(struct shim *shim, int64_t grace_ms)
{
    shim->kill_ms = earlier(shim->kill_ms, clock_boot_ms() + grace_ms);
}

static void ranks_term(struct shim *shim)
{
    shim->ladder = LADDER_TERM;
    checkpoint_forget(shim);
    ranks_signal(shim, SIGTERM);
    ranks_signal(shim, SIGCONT);
}

void kill_begin(struct shim *shim, int64_t grace_ms)
{
    if (shim->ladder == LADDER_KILL) {
        return;
    }
    if (shim->ladder == LADDER_NONE) {
        shim->kill_ms = SHIM_NEVER;
    }
    if (shim->ladder == LADDER_NONE || shim->ladder == LADDER_SIGNAL) {
        ranks_term(shim);
    }
    kill_within(shim, grace_ms);
}

void kill_softly(struct shim *shim, int64_t grace_ms, int signal)
{
    if (shim->ladder == LADDER_NONE) {
        shim->ladder = LADDER_SIGNAL;
        shim->term_ms = shim->kill_ms = SHIM_NEVER;
        checkpoint_forget(shim);
        kill_warn(shim, signal);
    }
    if (shim->ladder == LADDER_SIGNAL) {
        shim->term_ms = earlier(shim->term_ms, clock_boot_ms() + grace_ms);
        kill_within(shim, grace_ms + shim->launch.failed_grace_ms);
    } else {
        kill_begin(shim, grace_ms);
    }
}

void kill_hurry(struct shim *shim)
{
    if (shim->ladder == LADDER_SIGNAL) {
        kill_begin(shim, shim->launch.failed_grace_ms);
    } else if (shim->ladder == LADDER_TERM) {
        kill_now(shim);
    }
}

void kill_leftovers(struct shim *shim)
{
    if (shim->ladder == LADDER_LEFTOVERS || shim->ladder == LADDER_KILL) {
        return;
    }
    if (shim->ladder == LADDER_NONE) {
        shim->kill_ms = SHIM_NEVER;
    }
    shim->ladder = LADDER_LEFTOVERS;
    kill_within(shim, shim->launch.failed_grace_ms);
    everything_signal(shim, SIGTERM);
    tick_begin(shim);
}

int64_t kill_due_ms(const struct shim *shim)
{
    switch (shim->ladder) {
    case LADDER_NONE:
        return shim->lease_kill_ms;
    case LADDER_SIGNAL:
        return earlier(shim->term_ms, earlier(shim->kill_ms, shim->lease_kill_ms));
    case LADDER_TERM:
        return earlier(shim->kill_ms, shim->lease_kill_ms);
    case LADDER_LEFTOVERS:
        return earlier(shim->tick_ms, earlier(shim->kill_ms, shim->lease_kill_ms));
    case LADDER_KILL:
        return shim->tick_ms;
    }
    return SHIM_NEVER;
}

static void tick(struct shim *shim, int64_t now_ms)
{
    if (now_ms < shim->tick_ms) {
        return;
    }
    if (shim->ladder == LADDER_KILL) {
        kill_everything(shim);
    }
    shim->tick_pause_ms = earlier(2 * shim->tick_pause_ms, SHIM_SWEEP_MAX_MS);
    shim->tick_ms = now_ms + shim->tick_pause_ms;
    attempt_children(shim); /* other processes in the cgroup send no SIGCHLD */
}

void kill_clock(struct shim *shim, int64_t now_ms)
{
    bool waits = shim->ladder != LADDER_NONE && shim->ladder != LADDER_KILL;
    if (shim->ladder == LADDER_SIGNAL && shim->term_ms <= now_ms) {
        kill_hurry(shim);
    }
    if (shim->lease_kill_ms <= now_ms || (waits && shim->kill_ms <= now_ms)) {
        kill_now(shim);
    }
    if (shim->ladder == LADDER_LEFTOVERS || shim->ladder == LADDER_KILL) {
        tick(shim, now_ms);
    }
}
