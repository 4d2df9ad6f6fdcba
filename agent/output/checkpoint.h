/* SPDX-License-Identifier: Apache-2.0 */
/* Takes checkpoints of running attempts: ships what $GPUCTL_CHECKPOINT_DIR holds to the controller. */
#ifndef AGENT_CHECKPOINT_H
#define AGENT_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/controller_client.h"
#include "agent/base/loop.h"
#include "agent/output/record.h"

/* The part that all attempts share. still_ms: a folder that has not changed for so long is taken. */
struct checkpoints;
struct checkpoints *checkpoints_create(const char *node, int64_t still_ms,
                                       struct controller_client *controller, struct loop *loop);
void checkpoints_destroy(struct checkpoints *checkpoints);
/* Reads one piece; true while there is more to read. */
bool checkpoints_step(struct checkpoints *checkpoints);

/* The folder of one attempt. */
struct checkpoint;

/* ended is called once, after checkpoint_end. */
struct checkpoint *checkpoint_create(struct checkpoints *checkpoints, uint64_t attempt_id, const char *folder,
                                     void (*ended)(void *closure), void *closure);
void checkpoint_destroy(struct checkpoint *checkpoint); /* NULL is allowed */

/* Its attempt runs on several nodes. */
void checkpoint_of_gang(struct checkpoint *checkpoint);
/* All ranks of the node have acknowledged the checkpoint of this step. */
void checkpoint_acknowledged(struct checkpoint *checkpoint, int64_t step);
/* No process of the attempt is left: takes what the folder has now, unless a rank may have been killed while
 * it wrote there. Calls ended when all that is to be taken has been taken, within CHECKPOINT_END_MS; perhaps
 * before it returns. */
void checkpoint_end(struct checkpoint *checkpoint, const struct record *record);
/* Nobody waits for it any more. */
void checkpoint_cut(struct checkpoint *checkpoint);

#endif
