/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of what an attempt uses. Version 2 of cgroups counts CPU time in each cgroup, and memory
 * where its controller is on. Elsewhere the processes are counted one by one: those that the attempt's cgroup
 * lists, or without one the descendants of its shim. Such a sum counts memory that processes share once for
 * each of them, and a process that ended counts through the parent that waited for it. Of a process only
 * /proc/PID/stat is read: other files of a process may wait for its memory. */
#include "agent/attempt/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#define FILE_BYTES (64 * KIB) /* memory.stat has 1.5 KiB */

/* --- files of a cgroup ---------------------------------------------------------------------------------- */

static char *read_file(const char *folder, const char *name)
{
    autofree char *path = xprintf("%s/%s", folder, name);
    char *text = NULL;
    return file_read(path, FILE_BYTES, &text, NULL, NULL) ? text : NULL;
}

/* The number behind the key at the start of a line; -1 where there is none. */
static int64_t read_counter(const char *folder, const char *name, const char *key)
{
    autofree char *text = read_file(folder, name);
    size_t length = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0'; line += *line == '\n') {
        if (strncmp(line, key, length) == 0) {
            return strtoll(line + length, NULL, 10);
        }
        line += strcspn(line, "\n");
    }
    return -1;
}

/* What the kernel keeps of files that nobody has used of late is not the job's need. */
static int64_t read_memory(const char *folder)
{
    int64_t all = read_counter(folder, "memory.current", "");
    int64_t idle = read_counter(folder, "memory.stat", "inactive_file ");
    return all < 0 || idle <= 0 ? all : idle < all ? all - idle : 0;
}

/* --- processes ------------------------------------------------------------------------------------------ */

struct process {
    pid_t pid, parent;
    int64_t cpu_ticks, pages;
    bool ours;
};

struct processes {
    struct process *items; /* owned */
    size_t count, room;
    int64_t left; /* processes and folders that may still be looked at */
};

static bool read_process(const char *proc, pid_t pid, struct process *ret_process)
{
    int64_t own_user, own_system, user, system; /* of itself, and of children that ended */
    autofree char *path = xprintf("%s/%d/stat", proc, (int)pid);
    autofree char *text = NULL;
    struct process process = {.pid = pid};
    if (!file_read(path, FILE_BYTES, &text, NULL, NULL)) {
        return false;
    }
    const char *rest = strrchr(text, ')'); /* the name before it may hold anything */
    if (rest == NULL ||
        sscanf(rest + 1,
               " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
               " %*d %*d %*d %*d %*u %*u %" SCNd64,
               &process.parent, &own_user, &own_system, &user, &system, &process.pages) != 6) {
        return false;
    }
    process.cpu_ticks = own_user + own_system + user + system;
    *ret_process = process;
    return true;
}

static void add_process(const char *proc, pid_t pid, struct processes *processes)
{
    struct process process;
    if (processes->left-- > 0 && read_process(proc, pid, &process)) {
        if (processes->count == processes->room) {
            processes->room = processes->room > 0 ? 2 * processes->room : 64;
            processes->items = xrealloc(processes->items, processes->room * sizeof *processes->items);
        }
        processes->items[processes->count++] = process;
    }
}

/* Those of a cgroup and of what the job made below it. */
static void list_cgroup(const struct usage_source *source, int folder, int depth, struct processes *processes)
{
    int fd = openat(folder, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    autofclose FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    int pid;
    while (file != NULL && processes->left > 0 && fscanf(file, "%d", &pid) == 1) {
        add_process(source->proc, pid, processes);
    }
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = again >= 0 ? fdopendir(again) : NULL;
    for (struct dirent *entry;
         listing != NULL && processes->left > 0 && (entry = readdir(listing)) != NULL;) {
        bool goes_down = entry->d_type == DT_DIR && entry->d_name[0] != '.' && depth < LIMIT_CGROUP_DEPTH;
        autoclose int below =
            goes_down ? openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (below >= 0) {
            processes->left--;
            list_cgroup(source, below, depth + 1, processes);
        }
    }
    if (listing != NULL) {
        closedir(listing);
    }
}

static int by_pid(const void *left, const void *right)
{
    const struct process *a = left, *b = right;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

static bool has_our_parent(const struct processes *processes, pid_t shim, const struct process *process)
{
    const struct process key = {.pid = process->parent};
    if (process->parent == shim) {
        return true;
    }
    const struct process *parent = bsearch(&key, processes->items, processes->count, sizeof key, by_pid);
    return parent != NULL && parent->ours;
}

/* A child mostly has a larger number than its parent, so that two or three turns find all. */
static void mark_descendants(struct processes *processes, pid_t shim)
{
    bool found = processes->count > 0;
    if (found) {
        qsort(processes->items, processes->count, sizeof *processes->items, by_pid);
    }
    while (found) {
        found = false;
        for (size_t i = 0; i < processes->count; i++) {
            struct process *process = &processes->items[i];
            if (!process->ours && has_our_parent(processes, shim, process)) {
                process->ours = found = true;
            }
        }
    }
}

static void list_descendants(const struct usage_source *source, struct processes *processes)
{
    autonames struct file_names names = {0};
    file_list(source->proc, &names, NULL);
    for (size_t i = 0; i < names.count && processes->left > 0; i++) {
        int64_t pid;
        if (text_to_int(names.items[i], 1, INT32_MAX, &pid)) {
            add_process(source->proc, (pid_t)pid, processes);
        }
    }
    mark_descendants(processes, source->shim);
}

static void mark_all(struct processes *processes)
{
    for (size_t i = 0; i < processes->count; i++) {
        processes->items[i].ours = true;
    }
}

static void list_processes(const struct usage_source *source, struct processes *processes)
{
    autoclose int folder =
        source->cgroup != NULL ? open(source->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (folder >= 0) {
        list_cgroup(source, folder, 0, processes);
        mark_all(processes);
    } else if (source->cgroup == NULL && source->shim > 0) {
        list_descendants(source, processes);
    }
}

static struct usage sum_processes(const struct usage_source *source)
{
    struct processes processes = {.left = LIMIT_SAMPLE_PROCESSES};
    int64_t ticks = 0, pages = 0;
    bool any = false;
    list_processes(source, &processes);
    for (size_t i = 0; i < processes.count; i++) {
        const struct process *process = &processes.items[i];
        any = any || process->ours;
        ticks += process->ours ? process->cpu_ticks : 0;
        pages += process->ours ? process->pages : 0;
    }
    free(processes.items);
    return any && processes.left > 0 ? (struct usage){.cpu_us = ticks * 1000000 / sysconf(_SC_CLK_TCK),
                                                      .memory_bytes = pages * sysconf(_SC_PAGESIZE)}
                                     : (struct usage){-1, -1};
}

/* --- both ----------------------------------------------------------------------------------------------- */

struct usage usage_read(const struct usage_source *source)
{
    struct usage usage = {-1, -1};
    if (source->cgroup != NULL && source->cgroup_version == 2) {
        usage.cpu_us = read_counter(source->cgroup, "cpu.stat", "usage_usec ");
        usage.memory_bytes = read_memory(source->cgroup);
    }
    if (usage.cpu_us < 0 || usage.memory_bytes < 0) {
        struct usage sum = sum_processes(source);
        usage.cpu_us = usage.cpu_us >= 0 ? usage.cpu_us : sum.cpu_us;
        usage.memory_bytes = usage.memory_bytes >= 0 ? usage.memory_bytes : sum.memory_bytes;
    }
    return usage;
}
