/* SPDX-License-Identifier: Apache-2.0 */
/* One simulated run: its time, its chance, its agenda, its trace, and its first violation. Everything depends
 * only on the seed. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/trace/harness/chance.h"

/* Each mortal part counts its lives; appointments from an earlier life are cancelled. */
typedef uint64_t lifetime;

struct appointment;
struct kept;

/* Points within one uninterrupted action of the product where a rare event can happen. Each run enables some
 * of them, and makes them common: X(NAME, permille of the passes in a run that enables it). */
#define RARE_POINTS(X)                                                                                       \
    X(BETWEEN_ACTIONS, 3)      /* an agent dies between two actions of one decision */                       \
    X(BEFORE_ANSWERS, 3)       /* the controller dies after a commit that nobody knows of */                 \
    X(BATCH_WITHOUT_WORK, 100) /* the controller schedules although nothing is due */                        \
    X(EXIT_HEARD_LATE, 100)    /* an exit record exists long before the agent hears of it */                 \
    X(RECORD_NOT_SYNCED, 20)   /* a machine loses power before an exit record is on its disk */

enum rare {
#define AS_RARE(name, permille) RARE_##name,
    RARE_POINTS(AS_RARE)
#undef AS_RARE
        RARE_COUNT
};

struct world {
    uint64_t seed;
    struct chance chance;
    int64_t now_ms;
    int64_t wall_shift_ms; /* of the wall clock, which people set */
    uint64_t hash;         /* of the trace: equal for equal runs */
    bool tracing;          /* the trace also goes to stdout */
    bool healthy;          /* no more faults from now on */
    unsigned rare;         /* the enabled points, a bit each */
    int64_t faults;        /* faults so far */
    int64_t checks;        /* checked invariants */
    bool violated;
    char violation[512];        /* the first violation */
    struct appointment *agenda; /* a heap: the earliest first, equal times in the order of arrangement */
    size_t count, room;
    uint64_t arranged;
    struct kept *kept;
};

void world_init(struct world *world, uint64_t seed, bool tracing);
void world_finish(struct world *world);

/* Calls due(closure) in this many milliseconds, unless *owner has changed by then; owner NULL: in any
 * case. */
void world_in(struct world *world, int64_t delay_ms, void (*due)(void *closure), void *closure,
              const lifetime *owner);
/* Does the next appointment, and moves the clock to it. False when there is none before until_ms (the clock
 * is then at until_ms), or an invariant is violated. */
bool world_step(struct world *world, int64_t until_ms);

/* Writes a line of the trace. */
void world_note(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Notes and counts a fault. */
void world_fault(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reports a violated invariant: its name, and the observation. */
void world_violate(struct world *world, const char *invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Checks an invariant; false when it does not hold. */
#define world_check(world, holds, ...)                                                                       \
    ((world)->checks++, (holds) || (world_violate(world, __VA_ARGS__), false))

/* A number from first to last, both included. */
int64_t world_between(struct world *world, int64_t first, int64_t last);
/* Whether a fault happens now, with this chance in a thousand; never while the world is healthy. */
bool world_mishap(struct world *world, unsigned permille);
/* Whether the rare event at this point happens now; never while the world is healthy. */
bool world_rare(struct world *world, enum rare point);
bool world_of(struct world *world, unsigned percent);
void world_bytes(struct world *world, void *bytes, size_t count);
int64_t world_wall_ms(const struct world *world);
/* Zeroed memory that lasts as long as the run. */
void *world_keep(struct world *world, size_t size);

#endif
