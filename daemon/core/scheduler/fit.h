/* SPDX-License-Identifier: Apache-2.0 */
/* Fits: which devices a resource request could get. */
#ifndef CORE_SCHEDULER_FIT_H
#define CORE_SCHEDULER_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/fleet/staging.h"
#include "proto/states.h"

struct core;
struct partition;
struct job;
struct node;
struct capacity;
struct resource_request;

/* What is reserved for earlier jobs. */
struct reservations {
    bool trial;                  /* only to see what would come of it: nothing is promised */
    const struct job **whose;    /* by index of the partition: for which job, the last one; NULL: for none */
    uint8_t *partitions, *nodes; /* by index, 1: all of it */
    /* A reservation in a partition, by its index. Only gangs that end before it may have more than the node
     * capacities can spare; 0: there is none. */
    int64_t *until_ms;
    bool borrow;   /* those who are entitled have had their turn */
    uint8_t *firm; /* it was put off already: run times that are only guessed count for nothing */
};

/* Which devices of a node count. */
enum view {
    VIEW_REGISTERED, /* all */
    VIEW_WORKING,    /* those of nodes that take work, without those that cannot be had */
    VIEW_FREE,       /* those that a job can have now */
    VIEW_FUTURE,     /* those that are free at the time that prospect.c looks at */
    VIEW_STAYING,    /* all of those that do not leave soon */
};

struct search {
    struct core *core;
    const struct resource_request *request;
    enum pool_kind kind; /* where use_reserved = auto leads */
    enum view view;
    const struct reservations *reservations; /* NULL: nothing */
    const struct job *job;                   /* whose accounts' limits count; NULL: none do */
    int64_t end_ms, sure_ms; /* when the gang will have ended: as guessed; by its time limit */
    const struct environment
        *environment; /* what nodes must have ready, as far as readiness says; NULL: nothing */
    enum readiness readiness;
    bool borrow;      /* what the job would only have borrowed counts, too */
    int64_t lasts_ms; /* how long the job is expected to be there, its grace included; NEVER: unknown */
    int64_t grace_ms; /* the least that it needs there */
    bool departing;   /* of unknown length, and no nodes but those that leave soon could ever hold it */
    bool strict;      /* nodes that the resource request avoids count as not there */
};
struct search fit_search(struct core *core, const struct resource_request *request, enum view view,
                         const struct reservations *reservations);

/* How long the job is expected to run, NEVER where nobody knows, and the grace that it has to end: from now
 * on the search finds nodes that work and do not leave before. To be called last. */
void fit_expect(struct search *search, int64_t runs_ms, int64_t grace_ms);

/* Whether the node stays for as long as the job is expected to be there. */
bool fit_lasts(const struct search *search, const struct node *node);

/* Whether the resource request names the partition's pool, kind and type, or leaves them open, and
 * use_reserved = auto leads there. */
bool fit_allowed(const struct search *search, const struct partition *partition);
/* How many devices of the node capacity the search may count on. */
int64_t fit_offer(const struct search *search, const struct capacity *capacity);

/* Whether limits and quotas of the job's accounts have room there. */
bool fit_granted(const struct search *search, const struct partition *partition);

/* The same, and it is not reserved; where VIEW_FUTURE shows, not from then on either. */
bool fit_open(const struct search *search, const struct partition *partition);

/* The gang would run for longer than a reservation in the partition waits. */
bool fit_outlasts(const struct search *search, const struct partition *partition);

/* The largest gang that the partition could hold. */
int64_t fit_largest(const struct search *search, const struct partition *partition);

/* Whether it could hold the whole gang. */
bool fit_could_hold(const struct search *search, const struct partition *partition);

/* A way to place a gang. */
struct fit {
    struct share *shares; /* by node rank; the caller frees them */
    size_t count;
    int64_t growth; /* of fragments on its nodes */
    int64_t left;   /* devices left over there */
};

/* The best way to place the resource request on what the view shows, with what is reserved left out. false:
 * there is none, and shares is NULL. A gang that spreads waits for more nodes to get ready: a fit on fewer is
 * none.
 */
bool fit_find(const struct search *search, struct fit *ret_fit);

#endif
