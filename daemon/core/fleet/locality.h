/* SPDX-License-Identifier: Apache-2.0 */
/* Data locality: which nodes have the parts of environments that take long to stage, whatever else of the
 * environment changes. */
#ifndef CORE_FLEET_LOCALITY_H
#define CORE_FLEET_LOCALITY_H

#include <stdbool.h>
#include <stddef.h>

struct core;
struct environment;
struct node;

/* Gives a new environment its parts; keys: as of environment_spec, or NULL. A part without environments is
 * remembered for a while with its nodes. */
void locality_join(struct core *core, struct environment *environment, const char *keys);
void locality_leave(struct core *core, struct environment *environment);

/* Notes that the node has all parts of the environment. */
void locality_note(const struct environment *environment, struct node *node);
/* Forgets what the node has. */
void locality_forget_node(struct core *core, struct node *node);

/* How many parts of the environment the node has. */
size_t locality_count(const struct environment *environment, const struct node *node);
/* Whether some node has a part of the environment; NULL: no. */
bool locality_is_known(const struct environment *environment);

/* Before the core ends, without environments: removes all parts. */
void locality_clear(struct core *core);

/* Checks the invariants of parts and their holders. */
void locality_check(const struct core *core);

#endif
