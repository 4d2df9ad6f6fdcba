/* SPDX-License-Identifier: Apache-2.0 */
/* All parts of one run; each part finds the others through this struct. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "tests/sim/world/truth.h"
#include "tests/sim/world/wire.h"
#include "tests/sim/world/world.h"

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

/* A machine's CLOCK_BOOTTIME: it starts with the machine, and runs a little fast or slow. */
struct machine_clock {
    int64_t booted_ms; /* on the world's clock */
    int64_t first_ms;  /* its value at that time */
    int64_t permille;  /* 1000: as fast as the world's clock */
};
static inline int64_t clock_at(const struct machine_clock *clock, int64_t world_ms)
{
    return clock->first_ms + (world_ms - clock->booted_ms) * clock->permille / 1000;
}
/* The time on the world's clock until the machine's clock shows shows_ms; 0 if that is past. */
static inline int64_t clock_until(const struct machine_clock *clock, int64_t now_ms, int64_t shows_ms)
{
    int64_t left_ms = shows_ms - clock_at(clock, now_ms);
    return left_ms > 0 ? left_ms * 1000 / clock->permille + 1 : 0;
}

#endif
