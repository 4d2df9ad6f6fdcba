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

/* The reason to end an attempt. */
struct fault {
    enum cause cause;
    const struct member *member; /* the member on whose node it happened; NULL: none */
    bool stops_itself;           /* that node's shim has begun to stop without an order */
    bool witnessed;              /* an agent reported it; otherwise it was concluded from missing evidence */
    int64_t rank;                /* -1: none */
    int64_t code;
    const char *text; /* the whole sentence for people */
};

/* Reserves the shares for a waiting job. A gang on one node is started at once; one on several nodes is
 * prepared first. */
void attempt_create(struct core *core, struct job *job, const struct share *shares, size_t count,
                    int64_t estimate_ms);
/* A new attempt without members, in the hash but in no list yet. */
struct attempt *attempt_alloc(struct core *core, struct job *job, uint64_t attempt_id, int64_t number);
void attempt_free(struct attempt *attempt);
/* Lists the attempt among the live ones, by attempt id, or among the ended ones. */
void attempt_list_live(struct core *core, struct attempt *attempt);
void attempt_list_ended(struct core *core, struct attempt *attempt);

/* Notes that a member is prepared; the last one starts the gang. */
void attempt_note_prepared(struct core *core, struct attempt *attempt);
/* Notes that a member runs; the last one makes the job RUNNING. */
void attempt_note_running(struct core *core, struct attempt *attempt);

/* Stops the gang. If it is stopping already, the first fault stays. Exception: if a rank failed and another
 * node was gone before that, the node's fault counts as first, whichever became known first. */
void attempt_stop(struct core *core, struct attempt *attempt, const struct fault *fault);

/* Keeps the gang after a rank failed: its other ranks are ended, and its nodes stay as they are for the time
 * that the job has asked for, within its time limit. false: the job has not asked for it, or the fault is no
 * failure of a rank, or the gang is stopping. attempt_end_look ends that time; attempt_stop does so as well,
 * and the cause of the attempt stays the failure. text: why it ends. */
bool attempt_keep(struct core *core, struct attempt *attempt, const struct fault *fault);
/* Has the job's new time limit end the look. Under a longer one it lasts as long as the job has asked for,
 * from the failure. */
void attempt_move_look(struct core *core, struct attempt *attempt, int64_t old_limit_ms);
void attempt_end_look(struct core *core, struct attempt *attempt, const char *text);

/* Declares the member gone, on evidence. */
void attempt_lose(struct core *core, struct member *member, const char *text);

/* Ends the attempt if all its members have gone. */
void attempt_settle(struct core *core, struct attempt *attempt);

/* Ends a FLUSHING attempt without the log bytes that did not arrive in time. */
void attempt_give_up_logs(struct core *core, struct attempt *attempt);

#endif
