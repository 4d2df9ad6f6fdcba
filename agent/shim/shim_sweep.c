/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and signals processes. The shim is a subreaper, so every process that its ranks started is below it
 * in the tree of parents, however often it forked and in whatever session. One pass over /proc finds them
 * all. A signal goes through a pidfd, and only to a process that lived when the list was made: a later
 * process with the same number is a stranger. */
#include "agent/shim/shim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct process {
    pid_t pid, parent;
    bool ours;
};

struct process_table {
    struct process *rows;
    size_t count, room;
};

struct process_stat {
    char state;
    pid_t parent;
    int64_t started_ticks; /* since boot */
};

void pid_list_begin(struct pid_list *list)
{
    *list = (struct pid_list){.listed_ticks = shim_boot_ms() * sysconf(_SC_CLK_TCK) / 1000};
}

void pid_list_add(struct pid_list *list, pid_t pid)
{
    if (list->count == list->room) {
        list->room = list->room > 0 ? 2 * list->room : 64;
        list->pids = shim_resize(list->pids, list->room, sizeof *list->pids);
    }
    list->pids[list->count++] = pid;
}

void pid_list_finish(struct pid_list *list)
{
    free(list->pids);
    *list = (struct pid_list){0};
}

static bool stat_read(const char *pid, struct process_stat *ret_stat)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0) {
        return false;
    }
    text[length] = '\0';
    const char *rest = strrchr(text, ')'); /* the name before it may contain any character */
    return rest != NULL &&
           sscanf(rest + 1,
                  " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNd64,
                  &ret_stat->state, &ret_stat->parent, &ret_stat->started_ticks) == 3;
}

static int by_pid(const void *left, const void *right)
{
    const struct process *a = left, *b = right;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

static void table_read(struct process_table *table)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        struct process_stat stat;
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !stat_read(entry->d_name, &stat) ||
            stat.state == 'Z' || stat.state == 'X') {
            continue;
        }
        if (table->count == table->room) {
            table->room = table->room > 0 ? 2 * table->room : 256;
            table->rows = shim_resize(table->rows, table->room, sizeof *table->rows);
        }
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        table->rows[table->count++] = (struct process){.pid = pid, .parent = stat.parent};
    }
    if (proc != NULL) {
        closedir(proc);
    }
    if (table->count > 0) {
        qsort(table->rows, table->count, sizeof *table->rows, by_pid);
    }
}

static bool parent_ours(const struct process_table *table, pid_t parent)
{
    struct process key = {.pid = parent};
    const struct process *found = bsearch(&key, table->rows, table->count, sizeof key, by_pid);
    return found != NULL && found->ours;
}

/* Repeats until a pass marks nothing new: one or two passes, as most children have higher numbers than their
 * parents. */
static void table_mark(struct process_table *table, pid_t self)
{
    bool found = true;
    while (found) {
        found = false;
        for (size_t i = 0; i < table->count; i++) {
            struct process *row = &table->rows[i];
            if (!row->ours && (row->parent == self || parent_ours(table, row->parent))) {
                row->ours = true;
                found = true;
            }
        }
    }
}

void sweep_collect(struct pid_list *list)
{
    struct process_table table = {0};
    table_read(&table);
    table_mark(&table, getpid());
    for (size_t i = 0; i < table.count; i++) {
        if (table.rows[i].ours) {
            pid_list_add(list, table.rows[i].pid);
        }
    }
    free(table.rows);
}

void sweep_signal(const struct pid_list *list, int signal)
{
    for (size_t i = 0; i < list->count; i++) {
        int fd = (int)syscall(SYS_pidfd_open, list->pids[i], 0);
        if (fd < 0) {
            if (errno == ENOSYS || errno == EMFILE || errno == ENFILE) {
                kill(list->pids[i], signal);
            }
            continue;
        }
        char pid[16];
        struct process_stat stat;
        snprintf(pid, sizeof pid, "%d", (int)list->pids[i]);
        if (stat_read(pid, &stat) && stat.started_ticks <= list->listed_ticks) {
            syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
        }
        close(fd);
    }
}
