/* SPDX-License-Identifier: Apache-2.0 */
/* One simulated run: its time, its chance, its agenda, its trace, and what was found wrong. Nothing in it
 * depends on anything but the seed. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/trace/chance.h"

/* Whatever can die counts its lives; what was arranged in an earlier life does not happen any more. */
typedef uint64_t lifetime;

struct appointment;
struct kept;

/* Points within what the product does in one go, at which something can happen that is rare in life. Each run
 * has some of them, and there they are common: X(NAME, permille of the times that a run which has it gets
 * there). */
#define RARE_POINTS(X)                                                                                       \
    X(BETWEEN_ACTIONS, 3)      /* an agent dies between two actions of one decision */                       \
    X(BEFORE_ANSWERS, 3)       /* the controller dies when it has committed and nobody knows it */           \
    X(BATCH_WITHOUT_WORK, 100) /* the controller schedules although nothing is due */                        \
    X(EXIT_HEARD_LATE, 100)    /* an exit record is there long before the agent hears of it */

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
    bool tracing;          /* the trace goes to stdout as well */
    bool healthy;          /* from now on nothing goes wrong */
    unsigned rare;         /* which points this run has, a bit each */
    int64_t faults;        /* that were made */
    int64_t checks;        /* of invariants that held */
    bool violated;
    char violation[512];        /* the first */
    struct appointment *agenda; /* a heap: the earliest first, equals in the order of arrangement */
    size_t count, room;
    uint64_t arranged;
    struct kept *kept;
};

void world_init(struct world *world, uint64_t seed, bool tracing);
void world_finish(struct world *world);

/* due(closure) in this many milliseconds, unless *owner has changed by then; owner NULL: in any case. */
void world_in(struct world *world, int64_t delay_ms, void (*due)(void *closure), void *closure,
              const lifetime *owner);
/* Does what is next, and moves the clock there. False when there is nothing before until_ms, or something is
 * violated; the clock is then at until_ms. */
bool world_step(struct world *world, int64_t until_ms);

/* A line of the trace. */
void world_note(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A fault was made: noted and counted. */
void world_fault(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* An invariant does not hold: its name, and what was seen. */
void world_violate(struct world *world, const char *invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Checks one: false when it does not hold. */
#define world_check(world, holds, ...)                                                                       \
    ((world)->checks++, (holds) || (world_violate(world, __VA_ARGS__), false))

/* first to last, both included. */
int64_t world_between(struct world *world, int64_t first, int64_t last);
/* Something goes wrong, with this chance in a thousand; never while the world is healthy. */
bool world_mishap(struct world *world, unsigned permille);
/* It happens at this point, now; never while the world is healthy. */
bool world_rare(struct world *world, enum rare point);
bool world_of(struct world *world, unsigned percent);
void world_bytes(struct world *world, void *bytes, size_t count);
int64_t world_wall_ms(const struct world *world);
/* Memory that lasts as long as the run, zeroed. */
void *world_keep(struct world *world, size_t size);

#endif
