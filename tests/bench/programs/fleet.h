/* SPDX-License-Identifier: Apache-2.0 */
/* A fleet of simulated agents in one process: they register, keep a poll parked, send heartbeats, and answer
 * orders as agents do whose ranks end at once. */
#ifndef BENCH_FLEET_H
#define BENCH_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fleet;

/* What has happened so far. */
struct fleet_counts {
    size_t registered; /* nodes whose registration was taken */
    size_t parked;     /* nodes whose poll was answered on the connection that they have, and is out again */
    size_t told;       /* nodes that were told to end: they ask no more */
    size_t running;    /* attempts that are told to run, and have not ended */
    uint64_t ended;    /* attempts whose exit was taken */
    uint64_t heartbeats; /* that were answered */
    uint64_t polls;      /* likewise */
    uint64_t lost;       /* polls whose connection broke or was refused */
};

/* The token is borrowed. Ends the program on failure, here and below. */
struct fleet *fleet_create(int port, const char *token, bool tls, size_t nodes, int64_t slots);
void fleet_destroy(struct fleet *fleet);

void fleet_register(struct fleet *fleet);

/* All that are not parked poll, the last of them after spread_ms; those that were told to end begin anew. */
void fleet_park(struct fleet *fleet, int64_t spread_ms);

/* From now on ranks run until fleet_exit ends them. */
void fleet_hold(struct fleet *fleet);

/* Ends so many attempts, each on another node, and one after the other: the next one once the exit was taken
 * and an order has come to any node. */
void fleet_exit(struct fleet *fleet, size_t count);
/* How many are left to do. */
size_t fleet_exits_left(const struct fleet *fleet);
/* Of those that are done: microseconds from the report until it was taken, and until the order had come, in
 * order of size. */
struct fleet_exits {
    size_t count;
    const int64_t *taken_us, *placed_us;
};
struct fleet_exits fleet_exits(struct fleet *fleet);

/* Does what there is to do, with a wait of at most 5 ms; true: there is something to read on stdin. */
bool fleet_run(struct fleet *fleet);

const struct fleet_counts *fleet_counts(const struct fleet *fleet);

#endif
