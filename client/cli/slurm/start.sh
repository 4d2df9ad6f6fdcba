#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a batch script on one node of its job, with the variables that Slurm would set and with our srun and scontrol on the PATH:
#   start nodes=N gpus=N tasks=N [each=N] [signal=NAME] [to=batch] [directory=DIR] -- SCRIPT [ARGUMENT]...
# gpus, nodes and tasks are totals as they were asked for. Where the job got fewer nodes with more GPUs each, the nodes that were asked for
# are made up: the script then runs several times here, each time with its share of the GPUs.
set -u
folder=$PWD
nodes=1 gpus=1 tasks=1 each='' signal='' to='' directory=''

die() {
    echo "gpuctl: $*" >&2
    exit 1
}

while [[ $1 != -- ]]; do
    declare "$1"
    shift
done
script=$folder/$2
shift 2

((NNODES * NPROC_PER_NODE == (gpus > 0 ? gpus : 1))) ||
    die "$gpus GPUs cannot be shared out evenly by the nodes that were free; ask for whole nodes"
split=1
share=$((gpus > 0 ? gpus / nodes : 1)) # a job without GPUs is one process on one node
if ((NNODES < nodes && NPROC_PER_NODE % share == 0)); then
    split=$((NPROC_PER_NODE / share))
elif ((NNODES != nodes)); then
    ((NODE_RANK > 0)) || echo "gpuctl: runs on $NNODES nodes, not on the $nodes that were asked for" >&2
fi
((tasks != nodes)) || tasks=$((NNODES * split))
nodes=$((NNODES * split))
share=$((NPROC_PER_NODE / split))
((tasks % nodes == 0)) || die "$tasks tasks cannot be shared out evenly by $nodes nodes"

# The folder of a node of a cluster may not exist on another.
[[ -z $directory ]] || cd "$directory" || die "the job's working directory $directory is not there on node $GPUCTL_NODE"

id=$(printf %s "$GPUCTL_JOB_ID" | cksum)
list=$MASTER_ADDR
for ((i = 1; i < nodes; i++)); do
    list+=,node-$i
done
export SLURM_JOB_ID=${id%% *} SLURM_JOBID=${id%% *} SLURM_NNODES=$nodes SLURM_JOB_NUM_NODES=$nodes
export SLURM_JOB_NODELIST=$list SLURM_NODELIST=$list SLURM_SUBMIT_DIR=$PWD SLURM_RESTART_COUNT=$((GPUCTL_ATTEMPT - 1))
export SLURM_NTASKS=$tasks SLURM_NPROCS=$tasks
((gpus == 0)) || export SLURM_GPUS_ON_NODE=$share
if [[ -n ${GPUCTL_ARRAY_ID-} ]]; then
    id=$(printf %s "$GPUCTL_ARRAY_ID" | cksum)
    export SLURM_ARRAY_JOB_ID=${id%% *} SLURM_ARRAY_TASK_ID=$GPUCTL_ARRAY_TASK
fi
per=$((tasks / nodes))
export SLURM_TASKS_PER_NODE=$per
((nodes == 1)) || SLURM_TASKS_PER_NODE="$per(x$nodes)"
[[ -z $each ]] || export SLURM_GPUS_PER_TASK=$each
export PATH=$folder/.gpuctl/bin:$PATH
mkdir -p "$folder/.gpuctl/tasks"
export SLURM_GPUCTL_TASKS=$folder/.gpuctl/tasks SLURM_GPUCTL_SIGNAL=$signal

# Becomes one node: the i-th of those that are made up here.
enter() {
    local node=$((NODE_RANK * split + $1)) devices picked
    export SLURM_NODEID=$node SLURM_PROCID=$((node * per)) SLURM_LOCALID=0 SLURMD_NODENAME=node-$node
    ((node > 0)) || SLURMD_NODENAME=$MASTER_ADDR
    if ((split > 1)) && [[ -n $CUDA_VISIBLE_DEVICES ]]; then
        IFS=, read -ra devices <<<"$CUDA_VISIBLE_DEVICES"
        picked=("${devices[@]:$1 * share:share}")
        CUDA_VISIBLE_DEVICES=$(IFS=, && echo "${picked[*]}")
    fi
    SLURM_JOB_GPUS=$CUDA_VISIBLE_DEVICES
    export SLURM_JOB_GPUS CUDA_VISIBLE_DEVICES RANK=$node NODE_RANK=$node WORLD_SIZE=$nodes NNODES=$nodes NUM_NODES=$nodes
    export NPROC_PER_NODE=$share LOCAL_WORLD_SIZE=$share
}

if ((split == 1)) && [[ -z $signal ]]; then
    enter 0
    exec "$script" "$@"
fi

# The early signal comes to us alone; it is for the tasks, or with to=batch for the script.
pass_signal() {
    local task
    interrupted=yes
    if [[ $1 != "$signal" || $to == batch ]]; then
        kill -s "$1" "${started[@]}" 2>/dev/null
    else
        for task in "$folder"/.gpuctl/tasks/*; do
            [[ ! -e $task ]] || kill -s "$1" "${task##*/}" 2>/dev/null
        done
    fi
}

started=()
interrupted=
trap 'pass_signal TERM' TERM
[[ -z $signal ]] || trap "pass_signal $signal" "$signal"
for ((i = 0; i < split; i++)); do
    (
        trap - TERM ${signal:+"$signal"}
        enter "$i"
        exec "$script" "$@"
    ) &
    started+=($!)
done

# A shell that hears a signal while it waits may miss which of its processes ended: their exits are still known.
end_as_they_did() {
    local each
    for each in "${started[@]}"; do
        wait "$each" || exit
    done
    exit 0
}

# The first that fails ends the job: what it leaves behind is ended by gpuctl.
left=$split
while ((left > 0)); do
    interrupted=
    wait -n
    code=$?
    if [[ -n $interrupted ]]; then
        [[ -n $(jobs -rp) ]] || end_as_they_did
        continue
    fi
    ((code == 0)) || exit "$code"
    left=$((left - 1))
done
