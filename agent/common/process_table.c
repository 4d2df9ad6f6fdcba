/* SPDX-License-Identifier: Apache-2.0 */
/* Reads processes from /proc. Only the file `stat` of a process is read: other files may wait for its memory.
 * The shim finds by it what its ranks have started, in whatever session: it is a subreaper, so all of that
 * stays below it in the tree of parents. */
#include "agent/common/process_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

#define STAT_BYTES  1024
#define FIRST_ROOM  256
#define STAT_FIELDS 8

bool process_read(const char *proc, const char *pid, struct process *ret_process)
{
    autofree char *path = xprintf("%s/%s/stat", proc, pid);
    autoclose int file = open(path, O_RDONLY | O_CLOEXEC);
    char text[STAT_BYTES];
    ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    struct process process = {0};
    int64_t own_user, own_system, user, system; /* of itself, and of children that ended */
    if (length <= 0) {
        return false;
    }
    text[length] = '\0';
    const char *rest = strrchr(text, ')'); /* the name before it may contain any character */
    if (rest == NULL || sscanf(rest + 1,
                               " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNd64 " %" SCNd64 " %" SCNd64
                               " %" SCNd64 " %*d %*d %*d %*d %" SCNd64 " %*u %" SCNd64,
                               &process.state, &process.parent, &own_user, &own_system, &user, &system,
                               &process.started_ticks, &process.pages) != STAT_FIELDS) {
        return false;
    }
    process.pid = (pid_t)strtol(text, NULL, 10);
    process.cpu_ticks = own_user + own_system + user + system;
    *ret_process = process;
    return true;
}

static int by_pid(const void *left, const void *right)
{
    const struct process *a = left, *b = right;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

void process_table_add(struct process_table *table, const char *proc, const char *pid)
{
    struct process process;
    if (process_read(proc, pid, &process)) {
        XGROW(table->rows, table->count, table->room, FIRST_ROOM);
        table->rows[table->count++] = process;
    }
}

void process_table_sort(struct process_table *table)
{
    if (table->count > 0) {
        qsort(table->rows, table->count, sizeof *table->rows, by_pid);
    }
}

const struct process *process_table_find(const struct process_table *table, pid_t pid)
{
    const struct process key = {.pid = pid};
    return table->count > 0 ? bsearch(&key, table->rows, table->count, sizeof key, by_pid) : NULL;
}

bool process_table_read(const char *proc, size_t most, struct process_table *ret_table)
{
    struct process_table table = {0};
    DIR *listing = opendir(proc);
    for (const struct dirent *entry;
         table.count <= most && listing != NULL && (entry = readdir(listing)) != NULL;) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') {
            process_table_add(&table, proc, entry->d_name);
        }
    }
    bool fits = table.count <= most;
    if (listing != NULL) {
        closedir(listing);
    }
    if (!fits) {
        process_table_finish(&table);
    }
    process_table_sort(&table);
    *ret_table = table;
    return fits;
}

void process_table_finish(struct process_table *table)
{
    free(table->rows);
    *table = (struct process_table){0};
}

static bool has_our_parent(const struct process_table *table, pid_t ancestor, const struct process *process)
{
    if (process->parent == ancestor) {
        return true;
    }
    const struct process *parent = process_table_find(table, process->parent);
    return parent != NULL && parent->ours;
}

/* Repeats until a pass marks nothing new: two or three passes, as most children have higher numbers than
 * their parents. */
void process_table_mark(struct process_table *table, pid_t ancestor)
{
    bool found = table->count > 0;
    while (found) {
        found = false;
        for (size_t i = 0; i < table->count; i++) {
            struct process *process = &table->rows[i];
            if (!process->ours && has_our_parent(table, ancestor, process)) {
                process->ours = found = true;
            }
        }
    }
}
