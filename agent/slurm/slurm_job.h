/* SPDX-License-Identifier: Apache-2.0 */
/* The job of Slurm that the agent runs in, as its environment describes it. */
#ifndef AGENT_SLURM_JOB_H
#define AGENT_SLURM_JOB_H

#include <stdint.h>

/* Texts are borrowed from the environment; NULL and 0: Slurm does not say. */
struct slurm_job {
    const char *id;   /* NULL: the agent runs in no job, and all else is empty, too */
    const char *node; /* Slurm's name of this node */
    const char *gpus; /* what the job has of the node's GPUs, as in CUDA_VISIBLE_DEVICES */
    int64_t end_ms;   /* wall clock: when the job reaches its time limit */
    int64_t cpus;     /* what the job has of this node, as is the next */
    int64_t memory_bytes;
};

void slurm_job_read(struct slurm_job *ret_job);

#endif
