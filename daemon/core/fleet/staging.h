/* SPDX-License-Identifier: Apache-2.0 */
/* Staging: the environments of jobs, and the nodes that have them. A copy is an environment on one node. */
#ifndef CORE_FLEET_STAGING_H
#define CORE_FLEET_STAGING_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct environment_spec;
struct node;
struct environment;
struct text;

/* How ready a node must be for an environment. */
enum readiness {
    READINESS_READY,
    READINESS_COMING,   /* or staging was ordered */
    READINESS_KNOWN,    /* or it was ready, and is asked whether it still is */
    READINESS_POSSIBLE, /* or staging can be ordered: it has not failed lately */
    READINESS_EVER,     /* or staging will be possible again without a change */
};

/* staging_join and staging_leave count the job classes with the environment. An environment without job
 * classes is remembered for a while with its ready nodes; nodes that are staging it are told to stop. NULL:
 * no environment. */
struct environment *staging_join(struct core *core, const struct environment_spec *spec);
void staging_leave(struct core *core, struct environment *environment);

/* A job came that needs the environment: what may have changed since nodes were ready for it is looked at
 * again. */
void staging_renew(struct core *core, struct environment *environment);

const char *staging_key(const struct environment *environment);

/* Whether a node has this readiness. environment NULL: always. */
bool staging_allows(const struct environment *environment, const struct node *node, enum readiness readiness);

bool staging_has_free_devices(const struct node *node);
/* Whether a node with free devices is ready for the environment, or, for READINESS_COMING, has the order. */
bool staging_has_free(const struct environment *environment, enum readiness readiness);
/* The devices of the nodes that are ready for the environment, held or not. */
int64_t staging_ready_devices(const struct environment *environment);
/* What nodes stage next may have changed for the environments of the node, and for jobs that no node can
 * stage for. */
void staging_node_changed(struct core *core, const struct node *node);

/* The change of an environment in core->changed_environments is taken into account. */
void staging_take_change(struct core *core, struct environment *environment);

/* Orders a node to stage the environment, unless it is ready or has the order. */
void staging_order(struct core *core, struct environment *environment, struct node *node);

/* Whether some node has the order and has not answered. */
bool staging_is_coming(const struct environment *environment);
/* Appends the names of these nodes as a JSON array. */
void staging_list_coming(const struct environment *environment, struct text *out);
/* Appends their names for people: "n1, n2". */
void staging_say_coming(const struct environment *environment, struct text *out);
/* Why a node failed to stage the environment, such as "node n1: no space left", in the step's memory; NULL:
 * none has failed. */
const char *staging_last_failure(struct core *core, const struct environment *environment);

/* Notes a node's report that it is not ready after all. */
void staging_doubt(struct core *core, struct environment *environment, const struct node *node);
/* Forgets all copies of the node. */
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
/* Ends holds of the node's copies that are over. */
void staging_watch(struct core *core, struct node *node);

/* Before the core ends: staging_clear_copies removes all copies; then, without job classes, staging_clear
 * removes all environments. */
void staging_clear_copies(struct core *core);
void staging_clear(struct core *core);

/* Checks the invariants of staging. */
void staging_check(const struct core *core);

#endif
