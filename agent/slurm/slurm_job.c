/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what Slurm tells the processes of a job in their environment. A value that is missing, is no number
 * or is 0 counts as not said: Slurm writes 0 for a job that has the whole memory of its nodes. */
#include "agent/slurm/slurm_job.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/text/text.h"
#include "proto/limits.h"

#define NO_GPUS "NoDevFiles" /* what some versions write where a job has no GPU */

static const char *text_of(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? text : NULL;
}

static int64_t number_of(const char *name, int64_t most)
{
    const char *text = text_of(name);
    int64_t number;
    return text != NULL && text_to_int(text, 0, most, &number) ? number : 0;
}

static int64_t memory_of(int64_t cpus)
{
    const int64_t most_mib = LIMIT_MEMORY_BYTES / MIB;
    int64_t node_mib = number_of("SLURM_MEM_PER_NODE", most_mib);
    int64_t mib = node_mib > 0 ? node_mib : number_of("SLURM_MEM_PER_CPU", most_mib) * cpus;
    return (mib < most_mib ? mib : most_mib) * MIB;
}

void slurm_job_read(struct slurm_job *ret_job)
{
    *ret_job = (struct slurm_job){.id = text_of("SLURM_JOB_ID")};
    if (ret_job->id == NULL) {
        return;
    }
    const char *gpus = text_of("CUDA_VISIBLE_DEVICES");
    ret_job->gpus = gpus != NULL && strcmp(gpus, NO_GPUS) != 0 ? gpus : NULL;
    ret_job->node = text_of("SLURMD_NODENAME");
    ret_job->end_ms = number_of("SLURM_JOB_END_TIME", LIMIT_WALL_MS / 1000) * 1000;
    ret_job->cpus = number_of("SLURM_CPUS_ON_NODE", LIMIT_CPUS);
    ret_job->memory_bytes = memory_of(ret_job->cpus);
}
