/* SPDX-License-Identifier: Apache-2.0 */
/* All parts of one run, which know each other through this. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "tests/sim/truth.h"
#include "tests/sim/wire.h"
#include "tests/sim/world.h"

#define SIM_HOSTS_MAX 12

struct controller;
struct host;
struct judge;
struct people;

struct sim {
    struct world world;
    struct wire *wire;
    struct truth *truth;
    struct controller *controller;
    struct host *hosts[SIM_HOSTS_MAX];
    size_t host_count;
    struct people *people;
    struct judge *judge;
};

/* A machine's CLOCK_BOOTTIME: it begins with the machine, and runs a little fast or slow. */
struct machine_clock {
    int64_t booted_ms; /* on the world's clock */
    int64_t first_ms;  /* what it showed then */
    int64_t permille;  /* 1000: runs as the world does */
};
static inline int64_t clock_at(const struct machine_clock *clock, int64_t world_ms)
{
    return clock->first_ms + (world_ms - clock->booted_ms) * clock->permille / 1000;
}
/* How long it takes, on the world's clock, until the clock shows this; 0 when it does. */
static inline int64_t clock_until(const struct machine_clock *clock, int64_t now_ms, int64_t shows_ms)
{
    int64_t left_ms = shows_ms - clock_at(clock, now_ms);
    return left_ms > 0 ? left_ms * 1000 / clock->permille + 1 : 0;
}

#endif
