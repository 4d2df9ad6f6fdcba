/* SPDX-License-Identifier: Apache-2.0 */
/* Staging: what jobs need on their nodes, and which nodes have it. An environment is
 * one such set; a copy is the environment on one node. */
#ifndef CORE_FLEET_STAGING_H
#define CORE_FLEET_STAGING_H

#include <stdbool.h>

struct core;
struct environment_spec;
struct node;
struct environment;
struct text;

/* How far a node must be. */
enum readiness {
    READINESS_READY,
    READINESS_COMING,   /* or it has been told */
    READINESS_POSSIBLE, /* or it can be told: it did not fail lately */
    READINESS_EVER,     /* or it will be possible again by itself */
};

/* A job class more, or less, has the environment. One without job classes is remembered for a while with what
 * is ready, and its nodes are told to stop. NULL: nothing is needed. */
struct environment *staging_join(struct core *core, const struct environment_spec *spec);
void staging_leave(struct core *core, struct environment *environment);

const char *staging_key(const struct environment *environment);

/* Whether a node is that far. environment NULL: it always is. */
bool staging_allows(const struct environment *environment, const struct node *node, enum readiness readiness);

/* Tells a node to get ready, if it is not ready or told. */
void staging_order(struct core *core, struct environment *environment, struct node *node);

/* Some node was told and has not answered. */
bool staging_is_coming(const struct environment *environment);
/* Appends their names, as a JSON array. */
void staging_list_coming(const struct environment *environment, struct text *out);
/* The same for people: "n1, n2". */
void staging_say_coming(const struct environment *environment, struct text *out);
/* Why a node cannot get ready, "node n1: no space left", for the step; NULL: none has failed. */
const char *staging_last_failure(struct core *core, const struct environment *environment);

/* The node says that it is not ready after all. */
void staging_doubt(struct core *core, struct environment *environment, const struct node *node);
/* Nothing that was known of the node counts any more. */
void staging_forget_node(struct core *core, struct node *node);

/* A node could not get ready; by_user: no node could. The text lives as long as the step. */
struct staging_failure {
    struct environment *environment;
    const char *text;
    bool by_user;
};
/* What a node says of one of its copies. true: it failed, which the jobs that wait for it have to be told. */
struct staging_message;
bool staging_take(struct core *core, struct node *node, const struct staging_message *message,
                  struct staging_failure *ret_failure);
/* Time has passed: holds of the node's copies end. */
void staging_watch(struct core *core, struct node *node);

/* Before the core goes: no copy is left; then, when the job classes are gone: no environment is left. */
void staging_clear_copies(struct core *core);
void staging_clear(struct core *core);

/* What must hold. */
void staging_check(const struct core *core);

#endif
