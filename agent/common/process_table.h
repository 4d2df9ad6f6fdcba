/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of this host, as /proc/PID/stat shows them, and who descends from whom. */
#ifndef AGENT_PROCESS_TABLE_H
#define AGENT_PROCESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
    pid_t pid, parent;
    char state;            /* as ps shows it: Z is a zombie */
    int64_t started_ticks; /* since the boot */
    int64_t cpu_ticks;     /* its own, and those of ended children that it waited for */
    int64_t pages;         /* resident memory */
    bool ours;             /* set by process_table_mark */
};

struct process_table {
    struct process *rows; /* owned; sorted by pid */
    size_t count, room;
};

/* Reads one process. proc is normally "/proc"; pid is a number or "self". False if it is gone. */
bool process_read(const char *proc, const char *pid, struct process *ret_process);

/* Reads all processes. False, with an empty table, if there are more than `most`. */
bool process_table_read(const char *proc, size_t most, struct process_table *ret_table);
void process_table_finish(struct process_table *table);

/* Adds one process unless it is gone. A table that was added to is sorted before anything is found in it. */
void process_table_add(struct process_table *table, const char *proc, const char *pid);
void process_table_sort(struct process_table *table);

/* NULL if it is not in the table. */
const struct process *process_table_find(const struct process_table *table, pid_t pid);

/* Marks the descendants of a process as ours, and not the process itself. */
void process_table_mark(struct process_table *table, pid_t ancestor);

#endif
