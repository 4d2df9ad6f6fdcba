/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and signals processes. A signal goes through a pidfd, and only to a process that lived when the list
 * was made: a later process with the same number is a stranger. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/common/process_table.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/text.h"

#define PROC       "/proc"
#define FIRST_ROOM 64

void pid_list_begin(struct pid_list *list)
{
    *list = (struct pid_list){.listed_ticks = clock_boot_ms() * sysconf(_SC_CLK_TCK) / 1000};
}

void pid_list_add(struct pid_list *list, pid_t pid)
{
    XGROW(list->pids, list->count, list->room, FIRST_ROOM);
    list->pids[list->count++] = pid;
}

void pid_list_finish(struct pid_list *list)
{
    free(list->pids);
    *list = (struct pid_list){0};
}

void sweep_collect(struct pid_list *list)
{
    struct process_table table;
    process_table_read(PROC, SIZE_MAX, &table);
    process_table_mark(&table, getpid());
    for (size_t i = 0; i < table.count; i++) {
        const struct process *process = &table.rows[i];
        if (process->ours && process->state != 'Z' && process->state != 'X') {
            pid_list_add(list, process->pid);
        }
    }
    process_table_finish(&table);
}

static void signal_one(pid_t pid, int64_t listed_ticks, int signal)
{
    char name[16];
    struct process process;
    autoclose int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) {
        if (errno == ENOSYS || errno == EMFILE || errno == ENFILE) {
            kill(pid, signal);
        }
        return;
    }
    snprintf(name, sizeof name, "%d", (int)pid);
    if (process_read(PROC, name, &process) && process.started_ticks <= listed_ticks) {
        syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
    }
}

void sweep_signal(const struct pid_list *list, int signal)
{
    for (size_t i = 0; i < list->count; i++) {
        signal_one(list->pids[i], list->listed_ticks, signal);
    }
}
