/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold, from outside of the core: it compares what the controller says and stores with what people
 * were told and what really ran. */
#ifndef SIM_JUDGE_H
#define SIM_JUDGE_H

#include "daemon/writer.h"
#include "tests/sim/sim.h"

struct judge;

/* The controller has come up: what it stores fits what is remembered. */
void judge_booted(struct sim *sim, struct reader *reader, uint32_t incarnation);
/* A batch of the writer was published: jobs moved along edges of their graph, nothing was granted that is not
 * free. */
void judge_committed(struct sim *sim, struct reader *reader, const struct writer_news *news);
/* The limit of a project, of each type, is known to the controller from now on; -1: it has none. */
void judge_limit(struct sim *sim, int64_t gpus);
/* So many devices of a type (index into host_types) are held by it now. */
void judge_held(struct sim *sim, size_t type, int64_t gpus);
/* Everything that is stored, against everything that is known. */
void judge_audit(struct sim *sim, struct reader *reader);
/* Some time after the last fault: all work has ended, nothing is left anywhere. */
void judge_rest(struct sim *sim, struct reader *reader);

struct judge *judge_create(void);
void judge_destroy(struct judge *judge);

#endif
