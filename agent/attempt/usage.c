/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what an attempt uses. A cgroup counts its CPU time, and memory and disks where their controllers are
 * on. What the cgroup does not count is summed over the descendants of the shim. Such a sum counts memory
 * that processes share once for each of them, and a process that ended counts through the parent that waited
 * for it. */
#include "agent/attempt/usage.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/common/cgroup_tree.h"
#include "agent/common/process_table.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

#define IO_LINE_BYTES 1024 /* some 150 bytes, and what later kernels add */
#define PID_BYTES     12

/* Memory without files that nobody has used of late: the kernel keeps them as long as nobody else needs the
 * room. */
static int64_t read_memory(int cgroup)
{
    int64_t all = cgroup_counter(cgroup, "memory.current", "");
    int64_t idle = cgroup_counter(cgroup, "memory.stat", "inactive_file ");
    return all < 0 || idle <= 0 ? all : idle < all ? all - idle : 0;
}

/* Whether a disk is made of others, as a logical volume is: these count the same bytes again. */
static bool is_stacked(const char *sys, unsigned major, unsigned minor)
{
    autofree char *path = xprintf("%s/dev/block/%u:%u/slaves", sys, major, minor);
    autonames struct file_names names = {0};
    return file_list(path, &names, NULL) && names.count > 0;
}

/* Lines "8:0 rbytes=1 wbytes=2 rios=...". The file is there where the io controller is on. */
static void read_io(int cgroup, const char *sys, struct usage *usage)
{
    int fd = openat(cgroup, "io.stat", O_RDONLY | O_CLOEXEC);
    autofclose FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    char line[IO_LINE_BYTES];
    if (file == NULL) {
        return;
    }
    usage->io_read_bytes = usage->io_written_bytes = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned major, minor;
        long long read, written;
        if (sscanf(line, "%u:%u rbytes=%lld wbytes=%lld", &major, &minor, &read, &written) == 4 &&
            !is_stacked(sys, major, minor)) {
            usage->io_read_bytes += read;
            usage->io_written_bytes += written;
        }
    }
}

/* --- processes ------------------------------------------------------------------------------------------ */

static int64_t known(int64_t first, int64_t second)
{
    return first >= 0 ? first : second;
}

/* A process of another user cannot be read, and counts nothing. */
static void add_io(const char *proc, pid_t pid, struct usage *sum)
{
    autofree char *path = xprintf("%s/%d", proc, (int)pid);
    autoclose int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int64_t read = folder >= 0 ? cgroup_counter(folder, "io", "read_bytes: ") : -1;
    int64_t written = folder >= 0 ? cgroup_counter(folder, "io", "write_bytes: ") : -1;
    if (read >= 0 && written >= 0) {
        sum->io_read_bytes = known(sum->io_read_bytes, 0) + read;
        sum->io_written_bytes = known(sum->io_written_bytes, 0) + written;
    }
}

static void add(const char *proc, const struct process *process, struct usage *sum)
{
    sum->cpu_us = known(sum->cpu_us, 0) + process->cpu_ticks * 1000000 / sysconf(_SC_CLK_TCK);
    sum->memory_bytes = known(sum->memory_bytes, 0) + process->pages * sysconf(_SC_PAGESIZE);
    add_io(proc, process->pid, sum);
}

static struct usage sum_descendants(const struct usage_source *source)
{
    struct process_table table;
    struct usage sum = USAGE_UNKNOWN;
    if (source->shim <= 0 || !process_table_read(source->proc, LIMIT_SAMPLE_PROCESSES, &table)) {
        return sum;
    }
    process_table_mark(&table, source->shim);
    for (size_t i = 0; i < table.count; i++) {
        if (table.rows[i].ours) {
            add(source->proc, &table.rows[i], &sum);
        }
    }
    process_table_finish(&table);
    return sum;
}

/* --- the attempt ---------------------------------------------------------------------------------------- */

struct usage usage_read(const struct usage_source *source)
{
    struct usage usage = USAGE_UNKNOWN;
    autoclose int cgroup =
        source->cgroup != NULL ? open(source->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (cgroup >= 0) {
        usage.cpu_us = cgroup_counter(cgroup, "cpu.stat", "usage_usec ");
        usage.memory_bytes = read_memory(cgroup);
        read_io(cgroup, source->sys, &usage);
    }
    if (usage.cpu_us < 0 || usage.memory_bytes < 0 || usage.io_read_bytes < 0) {
        struct usage sum = sum_descendants(source);
        usage = (struct usage){.cpu_us = known(usage.cpu_us, sum.cpu_us),
                               .memory_bytes = known(usage.memory_bytes, sum.memory_bytes),
                               .io_read_bytes = known(usage.io_read_bytes, sum.io_read_bytes),
                               .io_written_bytes = known(usage.io_written_bytes, sum.io_written_bytes)};
    }
    return usage;
}

/* --- ranks ---------------------------------------------------------------------------------------------- */

struct members {
    const char *proc;
    struct process_table table;
};

static void add_member(void *closure, pid_t pid)
{
    struct members *members = closure;
    char name[PID_BYTES];
    snprintf(name, sizeof name, "%d", (int)pid);
    if (members->table.count <= LIMIT_SAMPLE_PROCESSES) {
        process_table_add(&members->table, members->proc, name);
    }
}

/* The processes of the cgroup, or all of the host: the other processes of the host need not be read where
 * the attempt has a cgroup. Of too many none. */
static struct process_table read_processes(const struct usage_source *source)
{
    struct members members = {.proc = source->proc};
    autoclose int cgroup =
        source->cgroup != NULL ? open(source->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (cgroup >= 0) {
        cgroup_tree_each(cgroup, add_member, &members);
        process_table_sort(&members.table);
        if (members.table.count > LIMIT_SAMPLE_PROCESSES) {
            process_table_finish(&members.table);
        }
    } else {
        process_table_read(source->proc, LIMIT_SAMPLE_PROCESSES, &members.table);
    }
    return members.table;
}

/* The rank that the process is or descends from; count: none. A table that was not read in one moment may
 * have a circle. */
static size_t rank_of(const struct process_table *table, const struct process *process, const pid_t *ranks,
                      size_t count)
{
    for (size_t steps = 0; process != NULL && steps < table->count; steps++) {
        for (size_t i = 0; i < count; i++) {
            if (ranks[i] == process->pid) {
                return i;
            }
        }
        process = process_table_find(table, process->parent);
    }
    return count;
}

void usage_read_ranks(const struct usage_source *source, const pid_t *ranks, size_t count,
                      struct usage *ret_usages)
{
    struct process_table table = read_processes(source);
    for (size_t i = 0; i < count; i++) {
        ret_usages[i] = USAGE_UNKNOWN;
    }
    for (size_t i = 0; i < table.count; i++) {
        size_t rank = rank_of(&table, &table.rows[i], ranks, count);
        if (rank < count) {
            add(source->proc, &table.rows[i], &ret_usages[rank]);
        }
    }
    process_table_finish(&table);
}
