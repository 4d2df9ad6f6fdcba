/* SPDX-License-Identifier: Apache-2.0 */
/* Departures: when nodes go away, for good or for a time, and the consequences for their work. */
#ifndef CORE_FLEET_DEPARTURE_H
#define CORE_FLEET_DEPARTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct core;
struct member;
struct node;

/* Sets the wall clock from BOOT or TICK. */
void departure_set_clock(struct core *core, int64_t wall_ms);
/* Converts a time of the wall clock to the core's clock. */
int64_t departure_time(const struct core *core, int64_t wall_ms);

/* Recalculates when a node goes away, because it registered or its pool changed. */
void departure_judge(struct core *core, struct node *node);
/* Recalculates this for all nodes, because a window was made or removed, or has begun or ended. */
void departure_judge_all(struct core *core);

/* Takes the expiry that the agent of a registering node reports, 0 for never. It applies if the node is new
 * or the agent reported a different one before; otherwise an expiry that a person set stays. */
void departure_take_word(struct core *core, struct node *node, int64_t expires_at_ms, bool anew);
/* Sets the expiry of a node for a person, 0 for never. */
bool departure_expire(struct core *core, struct node *node, int64_t expires_at_ms, struct err *err);
/* Lets the node expire now, because its agent is about to end. */
void departure_leave(struct core *core, struct node *node);
/* Whether the node has expired. */
bool departure_has_expired(const struct core *core, const struct node *node);

/* When to stop the member's attempt because its node goes away; NEVER: it may run to its end, or is stopping
 * already. */
int64_t departure_due_ms(const struct member *member);

/* Notes what becomes due, and, at a TICK, does what is due for nodes. */
void departure_note(struct core *core);
void departure_watch(struct core *core);

void departure_check(const struct core *core);

#endif
