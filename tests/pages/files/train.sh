#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#SBATCH --job-name=train
#SBATCH --nodes=1
#SBATCH --gpus-per-node=2
#SBATCH --time=10:00
srun python -c 'import os; print("task", os.environ["SLURM_PROCID"])'
