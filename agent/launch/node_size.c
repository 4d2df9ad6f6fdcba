/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out how many CPUs and how much memory jobs may have: those of the machine, or what the cgroups leave
 * that hold the agent, as in a container, or what a job of Slurm has that holds it. It asks once, at the
 * start. cgroup.c limits what each job takes of it. */
#include "agent/launch/node_size.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/common/cgroup_tree.h"
#include "agent/launch/cgroup.h"
#include "agent/slurm/slurm_job.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"

#define SYSTEM_PART 16 /* of the memory: this one stays for the system */

static int64_t cpus_of_process(void)
{
    int64_t count = sysconf(_SC_NPROCESSORS_ONLN);
    int most = (int)sysconf(_SC_NPROCESSORS_CONF);
    cpu_set_t *set = CPU_ALLOC(most);
    size_t size = CPU_ALLOC_SIZE(most);
    if (set != NULL && sched_getaffinity(0, size, set) == 0) {
        count = CPU_COUNT_S(size, set);
    }
    CPU_FREE(set);
    return count > 0 ? count : 1;
}

/* "200000 100000": so many microseconds in each such period; "max 100000": no limit. */
static int64_t quota_of(const char *folder)
{
    autofree char *path = xprintf("%s/cpu.max", folder);
    autofree char *text = NULL;
    long long quota, period;
    if (!file_read(path, 64, &text, NULL, NULL) || sscanf(text, "%lld %lld", &quota, &period) != 2 ||
        quota <= 0 || period <= 0) {
        return 0;
    }
    return quota * 1000 / period;
}

/* 0: no limit. */
static void limit(int64_t millicpus, int64_t memory_bytes, struct node_size *size)
{
    if (millicpus > 0 && millicpus < size->millicpus) {
        size->millicpus = millicpus;
    }
    if (memory_bytes > 0 && memory_bytes < size->memory_bytes) {
        size->memory_bytes = memory_bytes;
    }
}

static void within(const char *folder, struct node_size *size)
{
    autoclose int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    limit(quota_of(folder), fd >= 0 ? cgroup_counter(fd, "memory.max", "") : 0, size);
}

void node_size_within(const char *mount, const char *own, struct node_size *size)
{
    autofree char *folder = xstrdup(own);
    size_t top = strlen(mount);
    while (strlen(folder) >= top && strncmp(folder, mount, top) == 0) {
        within(folder, size);
        char *slash = strrchr(folder, '/');
        if (slash == NULL) {
            return;
        }
        *slash = '\0';
    }
}

void node_size_find(int64_t cpus, int64_t memory_bytes, struct node_size *ret_size)
{
    int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    *ret_size = (struct node_size){.millicpus = cpus_of_process() * 1000, .memory_bytes = memory};
    autofree char *mount = NULL, *own = NULL;
    if (cgroup_own(&mount, &own)) {
        node_size_within(mount, own, ret_size);
    }
    struct slurm_job job;
    slurm_job_read(&job);
    limit(job.cpus * 1000, job.memory_bytes, ret_size);
    ret_size->memory_bytes -= ret_size->memory_bytes / SYSTEM_PART;
    if (cpus > 0) {
        ret_size->millicpus = cpus * 1000;
    }
    if (memory_bytes > 0) {
        ret_size->memory_bytes = memory_bytes;
    }
}
