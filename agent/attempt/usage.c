/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what an attempt uses. A cgroup counts its CPU time, and memory where the memory controller is on.
 * What the cgroup does not count is summed over the descendants of the shim. Such a sum counts memory that
 * processes share once for each of them, and a process that ended counts through the parent that waited for
 * it. */
#include "agent/attempt/usage.h"

#include <fcntl.h>
#include <unistd.h>

#include "agent/common/cgroup_tree.h"
#include "agent/common/process_table.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"

/* Memory without files that nobody has used of late: the kernel keeps them as long as nobody else needs the
 * room. */
static int64_t read_memory(int cgroup)
{
    int64_t all = cgroup_counter(cgroup, "memory.current", "");
    int64_t idle = cgroup_counter(cgroup, "memory.stat", "inactive_file ");
    return all < 0 || idle <= 0 ? all : idle < all ? all - idle : 0;
}

static struct usage sum_descendants(const struct usage_source *source)
{
    struct process_table table;
    int64_t ticks = 0, pages = 0;
    bool any = false;
    if (source->shim <= 0 || !process_table_read(source->proc, LIMIT_SAMPLE_PROCESSES, &table)) {
        return (struct usage){-1, -1};
    }
    process_table_mark(&table, source->shim);
    for (size_t i = 0; i < table.count; i++) {
        const struct process *process = &table.rows[i];
        any = any || process->ours;
        ticks += process->ours ? process->cpu_ticks : 0;
        pages += process->ours ? process->pages : 0;
    }
    process_table_finish(&table);
    return any ? (struct usage){.cpu_us = ticks * 1000000 / sysconf(_SC_CLK_TCK),
                                .memory_bytes = pages * sysconf(_SC_PAGESIZE)}
               : (struct usage){-1, -1};
}

struct usage usage_read(const struct usage_source *source)
{
    struct usage usage = {-1, -1};
    autoclose int cgroup =
        source->cgroup != NULL ? open(source->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (cgroup >= 0) {
        usage.cpu_us = cgroup_counter(cgroup, "cpu.stat", "usage_usec ");
        usage.memory_bytes = read_memory(cgroup);
    }
    if (usage.cpu_us < 0 || usage.memory_bytes < 0) {
        struct usage sum = sum_descendants(source);
        usage.cpu_us = usage.cpu_us >= 0 ? usage.cpu_us : sum.cpu_us;
        usage.memory_bytes = usage.memory_bytes >= 0 ? usage.memory_bytes : sum.memory_bytes;
    }
    return usage;
}
