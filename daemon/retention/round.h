/* SPDX-License-Identifier: Apache-2.0 */
/* A round of retention, and its pace, which its parts share. */
#ifndef RETENTION_ROUND_H
#define RETENTION_ROUND_H

#include <time.h>

#include "daemon/retention/retention.h"
#include "proto/limits.h"

struct round {
    const struct retention_config *config;
    bool dry;
    bool store_away; /* what has objects stays until the next round */
    int64_t wall_ms, elapsed_ms;
    size_t pieces;   /* of removals in one transaction */
    size_t pages;    /* of the file, likewise */
    int64_t took_us; /* by the last transaction, without its wait for others */
    struct reader *reader;
    struct retention_rules rules;
    struct retention_report *report;
    struct err *err;
};

static inline bool round_stopped(const struct round *round)
{
    return !round->config->go_on(round->config->closure);
}

/* After a transaction that took so long: leaves others alone for several times as long. */
static inline void round_rest(struct round *round, int64_t took_us)
{
    round->took_us = took_us;
    const int64_t wanted_us = RETENTION_REST * took_us;
    const int64_t us = wanted_us < LIMIT_RETENTION_REST_US ? wanted_us : LIMIT_RETENTION_REST_US;
    const struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

/* How many pieces the next transaction has, at most `most`. */
static inline void round_choose_pace(const struct round *round, size_t most, size_t *pieces)
{
    if (round->took_us > RETENTION_PIECES_US && *pieces > 1) {
        *pieces /= 2;
    } else if (round->took_us < RETENTION_PIECES_US / 2 && *pieces < most) {
        ++*pieces;
    }
}

/* Whether so much of a database is free that it is given back. */
static inline bool round_is_bloated(int64_t bytes, int64_t free_bytes)
{
    return free_bytes > bytes / RETENTION_FREE_SHARE;
}

#endif
