/* SPDX-License-Identifier: Apache-2.0 */
/* Fits: the devices that a resource request could get. */
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

#define NODE_RESERVED   1
#define NODE_COUNTED_ON 2

/* The reservations of earlier jobs. */
struct reservations {
    bool trial;               /* for a question only: promises nothing */
    int64_t staged;           /* devices of earlier jobs whose environments come to free nodes */
    const struct job **whose; /* by index of the partition: the last job with a reservation; NULL: none */
    uint8_t *partitions;      /* by index; 1: reserved completely */
    uint8_t *nodes; /* by index; NODE_RESERVED completely, NODE_COUNTED_ON for its CPUs and memory */
    /* Start of a reservation in a partition, by its index; 0: none. Only gangs that end before it may take
     * more than the node capacities can spare. */
    int64_t *until_ms;
    bool borrow;   /* entitled jobs have been considered, and borrowing ones may follow */
    uint8_t *firm; /* the reservation was put off already: only time limits count, not estimates */
};

/* The devices of a node that count. */
enum view {
    VIEW_REGISTERED, /* all */
    VIEW_WORKING,    /* devices of nodes that take work, without unavailable ones */
    VIEW_FREE,       /* devices that a job can have now */
    VIEW_FUTURE,     /* those that are free at the time that prospect.c looks at */
    VIEW_STAYING,    /* devices that do not leave soon */
};

struct search {
    struct core *core;
    const struct resource_request *request;
    enum pool_kind kind; /* the kind that use_reserved = auto selects */
    enum view view;
    const struct reservations *reservations; /* NULL: none */
    const struct job *job;                   /* whose account limits apply; NULL: none */
    int64_t end_ms, sure_ms;                 /* when the gang will have ended: estimated; by its time limit */
    const struct environment *environment; /* that nodes must have, as far as readiness demands; NULL: none */
    enum readiness readiness;
    bool borrow;      /* devices that the job could only borrow count, too */
    int64_t lasts_ms; /* expected stay of the job, including its grace; NEVER: unknown */
    int64_t grace_ms; /* the shortest stay that the job needs */
    bool locality;    /* of nodes that are equal otherwise, those with parts of the environment come first */
    bool departing;   /* its length is unknown, and only nodes that leave soon could ever hold it */
    bool strict;      /* nodes that the resource request avoids are excluded */
    bool boundless;   /* as if CPUs and memory had no end */
};
struct search fit_search(struct core *core, const struct resource_request *request, enum view view,
                         const struct reservations *reservations);

/* Sets the expected run time of the job (NEVER: unknown) and its grace. From then on the search finds only
 * working nodes that do not leave before the job's end. Call it last. */
void fit_expect(struct search *search, int64_t runs_ms, int64_t grace_ms);

/* Whether the node stays for the job's expected stay. */
bool fit_lasts(const struct search *search, const struct node *node);

/* Whether the resource request names the partition's pool, kind and type, or leaves them open, and
 * use_reserved = auto leads there. */
bool fit_allowed(const struct search *search, const struct partition *partition);
/* How many parts of the environment the node has; 0 if the search is not for locality. */
int64_t fit_held(const struct search *search, const struct node *node);
/* How many devices of the node capacity the search may use. */
int64_t fit_offer(const struct search *search, const struct capacity *capacity);

/* Whether limits and quotas of the job's accounts have room in the partition. */
bool fit_granted(const struct search *search, const struct partition *partition);

/* Like fit_granted, and the partition is not reserved; with VIEW_FUTURE, not reserved from that time on
 * either. */
bool fit_open(const struct search *search, const struct partition *partition);

/* Whether the gang would run beyond the start of a reservation in the partition. */
bool fit_outlasts(const struct search *search, const struct partition *partition);

/* The largest gang that the partition could hold. */
int64_t fit_largest(const struct search *search, const struct partition *partition);

/* Whether the partition could hold the whole gang. */
bool fit_could_hold(const struct search *search, const struct partition *partition);

/* A possible placement of a gang. */
struct fit {
    struct share *shares; /* by node rank; the caller frees them */
    size_t count;
    int64_t growth; /* of fragments on its nodes */
    int64_t left;   /* devices left over on its nodes */
    int64_t held;   /* parts of the environment on its nodes, if the search is for locality */
};

/* Finds the best placement of the resource request on the devices of the view, without reserved ones. false:
 * there is none, and shares is NULL. A gang with placement spread waits for more nodes to become ready: a fit
 * on fewer nodes does not count. */
bool fit_find(const struct search *search, struct fit *ret_fit);

#endif
