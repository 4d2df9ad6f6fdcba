/* SPDX-License-Identifier: Apache-2.0 */
/* The least that a durable start of a job costs on this machine: what rows hold their own times against. */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include <stdint.h>

#define FLOOR_RANKS_MOST 8

struct floor;

/* When the parts of one floor were done, in microseconds of the boot clock. */
struct floor_times {
    int64_t begin_us;
    int64_t answered_us; /* the first exchange */
    int64_t synced_us;
    int64_t ordered_us; /* the exchange with the slowest node */
    int64_t stamped_us; /* the first instruction of the slowest rank */
};

/* Makes a file in `folder` for its log. Each rank is one process of `stamp`, which writes its time to the
 * FIFO that `fifo_path` names and the caller has open as `fifo`. Ends the program when something fails. */
struct floor *floor_create(const char *folder, const char *stamp, const char *fifo_path, int fifo, int ranks);
/* One exchange over loopback; one fdatasync of an appended page; for each rank, all at a time, one exchange
 * with a node of its own and one process. */
struct floor_times floor_take(struct floor *floor);

#endif
