/* SPDX-License-Identifier: Apache-2.0 */
/* Departures: when nodes go away, for good or for a while, and what that means for the work on them. */
#ifndef CORE_FLEET_DEPARTURE_H
#define CORE_FLEET_DEPARTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct core;
struct member;
struct node;

/* Learns from BOOT or TICK how the wall clock stands. */
void departure_set_clock(struct core *core, int64_t wall_ms);
/* What the core's clock shows at that time of the wall clock. */
int64_t departure_time(const struct core *core, int64_t wall_ms);

/* Works out anew when a node goes away: it came, or its pool changed. */
void departure_judge(struct core *core, struct node *node);
/* The same for all: a window was made, removed, or has begun or ended. */
void departure_judge_all(struct core *core);

/* The agent of a node that registers has said when it expires, 0 for never. That counts when the node comes
 * anew or the agent said something else before: else a person's word stands. */
void departure_take_word(struct core *core, struct node *node, int64_t expires_at_ms, bool anew);
/* A person says when a node expires, 0 for never. */
bool departure_expire(struct core *core, struct node *node, int64_t expires_at_ms, struct err *err);
/* The time of its expiry has come. */
bool departure_has_expired(const struct core *core, const struct node *node);

/* When the member's attempt is to be stopped because its node goes away; NEVER: it may end there, or is being
 * stopped already. */
int64_t departure_due_ms(const struct member *member);

/* Notes what becomes due, and, at a TICK, does what is due for nodes. */
void departure_note(struct core *core);
void departure_watch(struct core *core);

void departure_check(const struct core *core);

#endif
