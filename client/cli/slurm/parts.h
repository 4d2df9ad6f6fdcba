/* SPDX-License-Identifier: Apache-2.0 */
/* The files that travel with a batch script: the program that starts it on a node, and the srun and scontrol
 * that it finds there. Their sources are the files of the same names. */
#ifndef CLI_SLURM_PARTS_H
#define CLI_SLURM_PARTS_H

#include <stddef.h>

extern const unsigned char slurm_start[], slurm_srun[], slurm_scontrol[];
extern const size_t slurm_start_length, slurm_srun_length, slurm_scontrol_length;

#endif
