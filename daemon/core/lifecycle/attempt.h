/* SPDX-License-Identifier: Apache-2.0 */
/* An attempt: one gang, from the reservation of its devices until they are free again. */
#ifndef CORE_LIFECYCLE_ATTEMPT_H
#define CORE_LIFECYCLE_ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/states.h"

struct attempt;
struct core;
struct job;
struct member;
struct share;

/* Why an attempt is to end. */
struct fault {
    enum cause cause;
    const struct member *member; /* on whose node it happened; NULL: on none */
    bool stops_itself;           /* that node's shim has begun to stop without being told */
    bool witnessed;              /* somebody says so; else it was concluded from what is missing */
    int64_t rank;                /* -1: none */
    int64_t code;
    const char *text; /* the whole sentence for people */
};

/* Reserves the shares for a waiting job. A gang on one node is started at once, one on several is to be
 * prepared. */
void attempt_create(struct core *core, struct job *job, const struct share *shares, size_t count,
                    int64_t estimate_ms);
/* An attempt without members that nothing lists yet, but for the hash. */
struct attempt *attempt_alloc(struct core *core, struct job *job, uint64_t attempt_id, int64_t number);
void attempt_free(struct attempt *attempt);
/* Lists it among the live ones, by attempt id, or among the ended ones. */
void attempt_list_live(struct core *core, struct attempt *attempt);
void attempt_list_ended(struct core *core, struct attempt *attempt);

/* A member has been prepared; the last one starts the gang. */
void attempt_note_prepared(struct core *core, struct attempt *attempt);
/* A member runs; the last one makes the job RUNNING. */
void attempt_note_running(struct core *core, struct attempt *attempt);

/* Stops the gang, unless it is stopping already: the first fault is the one that counts. Of a rank that
 * failed and a node that was gone by then, the node was first, whatever came to be known first. */
void attempt_stop(struct core *core, struct attempt *attempt, const struct fault *fault);

/* Evidence says that this member is gone. */
void attempt_lose(struct core *core, struct member *member, const char *text);

/* Some members may have gone: ends the attempt when all have. */
void attempt_settle(struct core *core, struct attempt *attempt);

/* Log bytes did not come in time: ends a FLUSHING attempt without them. */
void attempt_give_up_logs(struct core *core, struct attempt *attempt);

#endif
