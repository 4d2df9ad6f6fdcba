/* SPDX-License-Identifier: Apache-2.0 */
/* Compares placements on a full cluster. A seed chooses nodes and jobs in the proportions of a production
 * cluster. Both ways of placement see the same nodes and jobs. A job that finds no node is dropped, so that
 * it keeps nothing from the next. */
#include "tests/trace/harness/fill.h"

#include <check.h>
#include <stdio.h>

#include "tests/trace/harness/cluster.h"

#define NODES      1000
#define ASKED      130 /* percent */
#define NODE_BYTES 32

struct fill {
    uint64_t random;
    int64_t idle[NODES];
    int64_t gpus; /* of all nodes */
};

/* xorshift64: 0 to below. */
static int64_t draw(struct fill *fill, int64_t below)
{
    fill->random ^= fill->random << 13;
    fill->random ^= fill->random >> 7;
    fill->random ^= fill->random << 17;
    return (int64_t)((fill->random >> 11) % (uint64_t)below);
}

static int64_t draw_one(struct fill *fill, const int64_t *sizes)
{
    int64_t count = 0;
    while (sizes[count] != 0) {
        count++;
    }
    return sizes[draw(fill, count)];
}

static struct fill begin(uint64_t seed, const int64_t *nodes)
{
    struct fill fill = {.random = seed * UINT64_C(0x9e3779b97f4a7c15)};
    for (int i = 0; i < NODES; i++) {
        fill.idle[i] = draw_one(&fill, nodes);
        fill.gpus += fill.idle[i];
    }
    return fill;
}

/* --- best fit ------------------------------------------------------------------------------------------- */

static bool take_tightest(struct fill *fill, int64_t gpus)
{
    int best = -1;
    for (int i = 0; i < NODES; i++) {
        if (fill->idle[i] >= gpus && (best < 0 || fill->idle[i] < fill->idle[best])) {
            best = i;
        }
    }
    if (best >= 0) {
        fill->idle[best] -= gpus;
    }
    return best >= 0;
}

/* --- the core ------------------------------------------------------------------------------------------- */

/* All nodes are of one host and jobs are bound to it, which keeps each on one node. */
static struct cluster *open_nodes(const struct fill *fill)
{
    struct cluster *cluster = cluster_open();
    cluster->large = true;
    core_trace(cluster->core, NULL);
    for (int i = 0; i < NODES; i++) {
        char name[NODE_BYTES];
        snprintf(name, sizeof name, "n%04d", i);
        ck_assert_int_eq(node(cluster, name, .gpus = fill->idle[i], .host = "host"), ERR_NONE);
    }
    return cluster;
}

static bool take_as_core(struct cluster *cluster, int64_t number, int64_t gpus)
{
    char id[NODE_BYTES];
    snprintf(id, sizeof id, "j%lld", (long long)number);
    ck_assert_int_eq(submit(cluster, id, .gpus = gpus, .local = "host"), ERR_NONE);
    if (cluster->step.job.state != JOB_QUEUED) {
        return true;
    }
    cancel(cluster, id);
    return false;
}

double fill_share(uint64_t seed, const int64_t *nodes, const int64_t *jobs, enum fill_way way)
{
    struct fill fill = begin(seed, nodes);
    struct cluster *cluster = way == FILL_CORE ? open_nodes(&fill) : NULL;
    int64_t taken = 0, asked = 0;
    for (int64_t number = 0; asked < fill.gpus * ASKED / 100; number++) {
        int64_t gpus = draw_one(&fill, jobs);
        bool fits = cluster != NULL ? take_as_core(cluster, number, gpus) : take_tightest(&fill, gpus);
        asked += gpus;
        taken += fits ? gpus : 0;
    }
    if (cluster != NULL) {
        core_check(cluster->core);
        cluster_close(cluster);
    }
    return (double)taken / (double)fill.gpus;
}
