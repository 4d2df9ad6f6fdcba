/* SPDX-License-Identifier: Apache-2.0 */
/* The environment and the command of a job's ranks. Pure. */
#ifndef AGENT_CONTRACT_H
#define AGENT_CONTRACT_H

#include <stdbool.h>

#include "proto/base/text/text.h"
#include "proto/spec/jobspec.h"
#include "proto/wire/messages.h"

struct contract {
    const struct order *order;
    const struct job_spec *spec;
    const char *node;        /* name */
    const char *url;         /* of the controller, as seen from this node */
    const char *cacert;      /* file of certificates that sign the controller's; NULL: the system's */
    const char *logs;        /* the attempt's folder on disk */
    const char *run;         /* its run folder */
    const char *checkpoint;  /* its folder for checkpoints on a volume; NULL: it is the one below logs */
    const char *python;      /* the agent's, for jobs that name none; NULL: python3 */
    const char *runner;      /* folder of gpuctl_runner.py */
    const char *environment; /* folder of the job's environment, whose Python the job then uses; NULL: none */
    const char *image;       /* container image whose files and Python the ranks have; NULL: the node's */
    bool slots;              /* CPU slots instead of GPUs */
    const char *visible_devices; /* for GPUs: their UUIDs, separated by commas */
    bool no_peer_access;         /* the GPUs cannot access each other directly, and NCCL must be told */
    /* Variables of the agent that ranks inherit unless the spec sets them; may be NULL. */
    const char *const *inherited; /* NAME=VALUE, ended by NULL */
};

/* Whether a variable of this name tells a rank who it is, so that no spec can set it. */
bool contract_owns(const char *name);

/* Whether a rank hosts a rendezvous on a port: in gangs, and always with launch_mode=node. Node rank 0 holds
 * the port. */
bool contract_has_port(const struct contract *contract);

/* Whether a port is held on this node: that of the rendezvous, or with launch_mode=node the one that
 * CLUSTER_SPEC names for this node. */
bool contract_holds_port(const struct contract *contract);

/* Whether rank 0 is here and hosts the rendezvous of a function on the held socket itself. */
bool contract_has_store(const struct contract *contract);

/* The name of the folder, in that of the attempt, for files that a rank keeps; the caller frees it. */
char *contract_kept_folder(int64_t rank);

/* Whether the command runs a program with a Python. */
bool contract_is_python(const struct contract *contract);

/* Appends argv, the variables of all ranks, and the section of each rank to a launch file. */
void contract_write(const struct contract *contract, struct text *launch);

#endif
