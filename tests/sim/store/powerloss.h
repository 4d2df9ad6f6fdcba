/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of the power-loss test. Each counts its work and the violations, and reports violations on
 * stderr. */
#ifndef SIM_POWERLOSS_H
#define SIM_POWERLOSS_H

#include <stdbool.h>
#include <stdint.h>

struct tally {
    uint64_t seed; /* of all chance: a failing seed fails again */
    int64_t images, error_points, violations;
};

void tally_violation(struct tally *tally, const char *what, int64_t where);

/* Runs scripts with kills, losses of power, restarts and checkpoints. Opens images of the disk at every sync,
 * and at other operations by chance, until there are this many. */
void powerloss_images(struct tally *tally, int64_t images);

/* Runs openings, transactions and checkpoints with an error at each operation and each read in turn: I/O
 * errors and a full disk, once and lasting. stride: only every stride-th operation. */
void powerloss_errors(struct tally *tally, int64_t stride);

#endif
