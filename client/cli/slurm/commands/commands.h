/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that gpuctl stands in for when it is called by their names: sbatch, srun, squeue, scancel,
 * sinfo and sacct. Each is a verb with the options of Slurm's command. */
#ifndef CLI_SLURM_COMMANDS_H
#define CLI_SLURM_COMMANDS_H

#include "client/cli/frame/verb.h"
#include "proto/base/err.h"

#define EXIT_OF_SLURM 1 /* of its commands, when anything is wrong */

extern const struct verb command_squeue, command_scancel, command_sinfo, command_srun, command_sacct;

/* The command that a program of this path is, "/usr/bin/squeue" for instance; NULL: none of them. */
const struct verb *slurm_command(const char *program);

/* "squeue: error: ..." on stderr, and the remedy. */
void slurm_print_error(const char *command, const struct err *err);

#endif
