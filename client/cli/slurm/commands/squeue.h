/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of squeue. */
#ifndef CLI_SLURM_SQUEUE_H
#define CLI_SLURM_SQUEUE_H

#include "client/cli/slurm/commands/format.h"

extern const struct format_column squeue_columns[]; /* rows of job_rows.h */

#endif
