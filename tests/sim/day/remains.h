/* SPDX-License-Identifier: Apache-2.0 */
/* What attempts and nodes leave besides the controller's state: output, metrics, runs and samples. */
#ifndef SIM_DAY_REMAINS_H
#define SIM_DAY_REMAINS_H

#include "daemon/blob/sample_ring.h"
#include "tests/sim/day/day.h"
#include "tests/sim/day/nodes.h"

struct remains *remains_create(struct day *day);
void remains_destroy(struct remains *remains);

/* What the ranks of the piece have said by now; sets the sizes in it. Called once. */
void remains_output(struct remains *remains, struct piece *piece);
/* The metrics and the run of an attempt, as they are by now. Called once; over: it has ended. */
void remains_run(struct remains *remains, const struct run *run, bool over);
/* A sample of a node. */
void remains_sample(struct remains *remains, const char *node, const struct ring_gpu *gpus, size_t count,
                    double cpu_percent, int64_t memory_bytes);

#endif
