/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of an attempt, or of a rank, use: CPU time, memory, and what they read from disks and
 * write to them, from its cgroup where that counts them, else summed over its processes. */
#ifndef AGENT_USAGE_H
#define AGENT_USAGE_H

#include <stdint.h>
#include <sys/types.h>

/* -1: not known. */
struct usage {
    int64_t cpu_us; /* since its start */
    int64_t
        memory_bytes; /* of a cgroup without what the kernel would drop at once, as Kubernetes counts it */
    int64_t io_read_bytes, io_written_bytes; /* of disks, since its start; not what the page cache answered */
};
#define USAGE_UNKNOWN ((struct usage){-1, -1, -1, -1})

/* Whose usage. */
struct usage_source {
    const char *proc;   /* "/proc" */
    const char *sys;    /* "/sys" */
    const char *cgroup; /* NULL: none */
    pid_t shim;         /* its descendants are counted, and not the shim itself */
};

/* Reads files of the kernel alone, none of which waits for a process. */
struct usage usage_read(const struct usage_source *source);

/* What each of these processes, the ranks, uses with its descendants. */
void usage_read_ranks(const struct usage_source *source, const pid_t *ranks, size_t count,
                      struct usage *ret_usages);

#endif
