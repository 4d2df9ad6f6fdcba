/* SPDX-License-Identifier: Apache-2.0 */
/* Members: one node's part of an attempt. */
#ifndef CORE_LIFECYCLE_MEMBER_H
#define CORE_LIFECYCLE_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

struct attempt;
struct core;
struct member;
struct share;

/* The events of a member. */
enum member_event {
    MEMBER_EVENT_PREPARE,
    MEMBER_EVENT_DECLINE,
    MEMBER_EVENT_RUN,
    MEMBER_EVENT_EXIT,
    MEMBER_EVENT_FLUSH,
    MEMBER_EVENT_LOSE,
};

/* A new member; takes the devices of the share on its node. */
struct member *member_create(struct core *core, struct attempt *attempt, const struct share *share,
                             int64_t node_rank, int64_t first_rank);
void member_free(struct member *member);

/* Links the member of a live attempt to its node, by attempt id, and marks its devices as held. */
void member_settle_on(struct core *core, struct member *member);

/* Moves the member along its table. false: the table has no such transition, because the event came too late
 * or twice. */
bool member_fire(struct core *core, struct member *member, enum member_event event);

#endif
