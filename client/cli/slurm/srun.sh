#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# srun inside of a batch script that runs on gpuctl. The script runs on every node, and there this starts the tasks of that node; where none
# are to run it ends at once. What is understood is in the options below; other options are refused, and those that mean nothing here are
# left out with a note. A task that fails ends the other tasks of its node, and with its exit code this ends.
set -u

die() {
    echo "srun (gpuctl): $*" >&2
    exit 2
}

left_out() {
    ((SLURM_NODEID > 0)) || echo "srun (gpuctl): $1 means nothing here and is left out" >&2
}

set_variables() {
    local piece
    IFS=, read -ra pieces <<<"$1"
    for piece in "${pieces[@]}"; do
        case $piece in
        *=*) export "${piece?}" ;;
        ALL) ;;
        *) left_out "--export=$piece" ;;
        esac
    done
}

nodes='' tasks='' per='' each=${SLURM_GPUS_PER_TASK:-} where=''
# One option with its value; fails where it takes none.
take() {
    case $1 in
    -N | --nodes) nodes=${2%%-*} ;;
    -n | --ntasks) tasks=$2 ;;
    --ntasks-per-node) per=$2 ;;
    --gpus-per-task) each=${2##*:} ;;
    -w | --nodelist) where=$2 ;;
    -D | --chdir) cd "$2" || exit 1 ;;
    --export) set_variables "$2" ;;
    -c | --cpus-per-task | -G | --gpus | --gpus-per-node | --gres | --mem | --mem-per-gpu | --mem-per-cpu | --cpu-bind | --gpu-bind | --mpi | -t | \
        --time | -p | --partition | -A | --account | -J | --job-name | -m | --distribution | --hint | --threads-per-core | -o | --output | -e | \
        --error | -W | --wait | --network | --qos) left_out "$1" ;;
    *) return 1 ;;
    esac
}

while (($# > 0)); do
    case $1 in
    --)
        shift
        break
        ;;
    -l | --label)
        left_out "$1"
        shift
        ;;
    -u | --unbuffered | --exclusive | --exclusive=* | --overlap | --exact | -Q | --quiet | -v | --verbose | -K* | --kill-on-bad-exit*)
        shift
        ;;
    --*=*)
        take "${1%%=*}" "${1#*=}" || die "${1%%=*} is not understood"
        shift
        ;;
    -[!-]?*)
        take "${1:0:2}" "${1:2}" || die "${1:0:2} is not understood"
        shift
        ;;
    -*)
        (($# > 1)) || die "$1 needs a value, or is not understood"
        take "$1" "$2" || die "$1 is not understood"
        shift 2
        ;;
    *) break ;;
    esac
done
(($# > 0)) || die "name the command"
for number in "$nodes" "$tasks" "$per" "$each"; do
    [[ $number =~ ^([1-9][0-9]*)?$ ]] || die "\"$number\" is not a count"
done

# How many tasks on how many nodes, and which of them are ours.
if [[ -n $where ]]; then
    [[ $where == *[,[]* ]] && die "--nodelist takes one node here"
    nodes=1
fi
nodes=${nodes:-$SLURM_NNODES}
((nodes <= SLURM_NNODES)) || die "$nodes nodes are more than the job's $SLURM_NNODES"
if [[ -z $tasks && -n $per ]]; then
    tasks=$((per * nodes))
elif [[ -z $tasks ]]; then
    tasks=$((SLURM_NTASKS / SLURM_NNODES * nodes))
fi
((nodes <= tasks)) || nodes=$tasks
if ((nodes == 1 && SLURM_NNODES > 1)) && [[ $1 == hostname ]]; then # asked for on all nodes, about the first
    [[ -n $where && $where != "${SLURM_JOB_NODELIST%%,*}" ]] && die "only the address of the first node is known"
    echo "$MASTER_ADDR"
    exit 0
fi
index=$SLURM_NODEID
if [[ -n $where ]]; then
    [[ $where == "$SLURMD_NODENAME" ]] || exit 0
    index=0
fi
((index < nodes)) || exit 0
base=$((tasks / nodes))
extra=$((tasks % nodes))
here=$((base + (index < extra)))
first=$((index * base + (index < extra ? index : extra)))

# Becomes one task. With one task a GPU, and without GPUs, torch's own variables tell it the same.
enter() {
    local devices picked
    export SLURM_PROCID=$((first + $1)) SLURM_LOCALID=$1 SLURM_NTASKS=$tasks SLURM_NPROCS=$tasks SLURM_NODEID=$index
    export SLURM_NNODES=$nodes SLURM_STEP_NUM_TASKS=$tasks SLURM_STEP_NUM_NODES=$nodes SLURM_STEP_NODELIST=$SLURM_JOB_NODELIST
    if ((here == ${SLURM_GPUS_ON_NODE:-here})); then
        export RANK=$SLURM_PROCID WORLD_SIZE=$tasks LOCAL_RANK=$1 LOCAL_WORLD_SIZE=$here
    fi
    if [[ -n $each && -n $CUDA_VISIBLE_DEVICES ]]; then
        IFS=, read -ra devices <<<"$CUDA_VISIBLE_DEVICES"
        picked=("${devices[@]:$1 * each:each}")
        CUDA_VISIBLE_DEVICES=$(IFS=, && echo "${picked[*]}")
        export CUDA_VISIBLE_DEVICES
    fi
}

if ((here == 1)) && [[ -z $SLURM_GPUCTL_SIGNAL ]]; then
    enter 0
    exec "$@"
fi

started=()
interrupted=
end_tasks() {
    interrupted=yes
    kill "${started[@]}" 2>/dev/null
}
trap end_tasks TERM
for ((i = 0; i < here; i++)); do
    (
        trap - TERM
        enter "$i"
        exec "$@"
    ) <&0 &
    started+=($!)
    : >"$SLURM_GPUCTL_TASKS/$!"
done
forget_tasks() {
    (cd "$SLURM_GPUCTL_TASKS" && rm -f "${started[@]}")
}
trap forget_tasks EXIT

left=$here
worst=0
while ((left > 0)); do
    interrupted=
    wait -n
    code=$?
    if [[ -n $interrupted ]]; then
        [[ -n $(jobs -rp) ]] || exit $((worst > 0 ? worst : 143))
        continue
    fi
    left=$((left - 1))
    if ((code != 0 && worst == 0)); then
        worst=$code
        kill "${started[@]}" 2>/dev/null
    fi
done
exit "$worst"
