/* SPDX-License-Identifier: Apache-2.0 */
/* The environment that the ranks of a job find, and the command they run. Pure. */
#ifndef AGENT_CONTRACT_H
#define AGENT_CONTRACT_H

#include <stdbool.h>

#include "proto/base/text.h"
#include "proto/spec/jobspec.h"
#include "proto/wire/messages.h"

struct contract {
    const struct order *order;
    const struct job_spec *spec;
    const char *node;   /* name */
    const char *url;    /* of the controller, as this node reaches it */
    const char *cacert; /* file of certificates that sign the controller's; NULL: the system's */
    const char *errors; /* folder for one error file a rank */
    const char *python; /* of jobs that name none: the agent's; NULL: python3 */
    const char *work;   /* folder where files and bundle are */
    /* Folder of the job's environment, and its Python, which is the job's then; NULL: it has none. */
    const char *environment, *environment_python;
    const char *socket; /* of the ranks */
    /* Of function jobs: folder of gpuctl_runner.py, file of the payload, zip of modules, folder of results.
     */
    const char *runner, *function, *modules, *results;
    bool slots;                  /* CPU slots, not GPUs */
    const char *visible_devices; /* of GPUs: their UUIDs, separated by commas */
    bool no_peer_access;         /* the GPUs cannot talk to each other directly, and NCCL must be told */
    /* What ranks inherit from the agent where the spec does not give it; each may be NULL. */
    const char *const *inherited; /* NAME=VALUE, ended by NULL */
};

/* Whether a variable of that name tells a rank who it is: no spec can set it. */
bool contract_owns(const char *name);

/* Whether some rank hosts a rendezvous on a port: gangs, and all of launch_mode=node. Its port is held on
 * node rank 0. */
bool contract_has_port(const struct contract *contract);

/* Whether a port is held on this node: that of the rendezvous, or with launch_mode=node the one that
 * CLUSTER_SPEC names for this node. */
bool contract_holds_port(const struct contract *contract);

/* Whether rank 0 is here and hosts the rendezvous of a function on the very socket that was held for it. */
bool contract_has_store(const struct contract *contract);

/* Whether the command is a Python with a program to run. */
bool contract_is_python(const struct contract *contract);

/* Appends argv, the variables of all ranks, and the section of each rank to a launch file. */
void contract_write(const struct contract *contract, struct text *launch);

#endif
