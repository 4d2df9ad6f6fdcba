#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scontrol inside of a batch script that runs on gpuctl: `scontrol show hostnames [LIST]`, one name a line. The first is the address at
# which all nodes reach the first node; the others only name their node to srun.
if [[ "${1:-} ${2:-}" == "show hostnames" || "${1:-} ${2:-}" == "show hostname" ]]; then
    tr ',' '\n' <<<"${3:-$SLURM_JOB_NODELIST}"
    exit 0
fi
echo "scontrol (gpuctl): only \"show hostnames\" is understood; gpuctl get $GPUCTL_JOB_ID tells more" >&2
exit 2
