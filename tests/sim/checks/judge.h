/* SPDX-License-Identifier: Apache-2.0 */
/* Checks invariants from outside the core: compares the controller's answers and its store with the answers
 * that people got and with the processes that really ran. */
#ifndef SIM_JUDGE_H
#define SIM_JUDGE_H

#include "daemon/writer/writer.h"
#include "tests/sim/world/sim.h"

struct judge;

/* The controller has started: its store must fit the earlier observations. */
void judge_booted(struct sim *sim, struct reader *reader, uint32_t incarnation);
/* A batch of the writer was published: jobs moved along edges of their graph, and only free devices were
 * granted. */
void judge_committed(struct sim *sim, struct reader *reader, const struct writer_news *news);
/* From now on the controller knows this limit of the limited project, for each type; -1: none. */
void judge_limit(struct sim *sim, int64_t gpus);
/* The limited project now holds this many devices of a type (index into host_types). */
void judge_held(struct sim *sim, size_t type, int64_t gpus);
/* The removal of a job is about to be asked for. */
void judge_removal_asked(struct sim *sim, const struct job_record *job);
/* Its removal is acknowledged; or, if that is not known, may have happened. */
void judge_removed(struct sim *sim, const char *id, bool known);
/* Compares everything that is stored with everything that is known. */
void judge_audit(struct sim *sim, struct reader *reader);
/* Some time after the last fault: all work has ended, and nothing is left anywhere. */
void judge_rest(struct sim *sim, struct reader *reader);

struct judge *judge_create(void);
void judge_destroy(struct judge *judge);

#endif
