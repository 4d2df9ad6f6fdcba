/* SPDX-License-Identifier: Apache-2.0 */
/* Time, chance and the agenda of one run. Appointments happen in the order of their times, and at equal times
 * in the order of their arrangement. Two runs of one seed have the same trace. The other files of this folder
 * define the events. */
#include "tests/sim/world/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/text/text.h"

#define WALL_AT_START_MS 1790000000000LL
#define FNV_BASIS        14695981039346656037ULL
#define FNV_PRIME        1099511628211ULL

struct appointment {
    int64_t at_ms;
    uint64_t order;
    void (*due)(void *closure);
    void *closure;
    const lifetime *owner;
    lifetime lived;
};

void world_init(struct world *world, uint64_t seed, bool tracing)
{
    *world = (struct world){.seed = seed, .tracing = tracing, .hash = FNV_BASIS};
    world->chance.state = seed * 0x9e3779b97f4a7c15ULL + 1;
    for (int i = 0; i < 8; i++) {
        chance_below(&world->chance, 2); /* close seeds begin alike */
    }
    world->rare = (unsigned)chance_below(&world->chance, 1U << RARE_COUNT);
}

struct kept {
    struct kept *next;
    char bytes[];
};

void *world_keep(struct world *world, size_t size)
{
    struct kept *kept = xzalloc(sizeof *kept + size);
    kept->next = world->kept;
    world->kept = kept;
    return kept->bytes;
}

void world_finish(struct world *world)
{
    while (world->kept != NULL) {
        struct kept *next = world->kept->next;
        free(world->kept);
        world->kept = next;
    }
    free(world->agenda);
    *world = (struct world){0};
}

/* --- the agenda ----------------------------------------------------------------------------------------- */

static bool earlier(const struct appointment *a, const struct appointment *b)
{
    return a->at_ms < b->at_ms || (a->at_ms == b->at_ms && a->order < b->order);
}

static void swap(struct appointment *a, struct appointment *b)
{
    struct appointment kept = *a;
    *a = *b;
    *b = kept;
}

static void rise(struct world *world, size_t at)
{
    while (at > 0 && earlier(&world->agenda[at], &world->agenda[(at - 1) / 2])) {
        swap(&world->agenda[at], &world->agenda[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static void sink(struct world *world)
{
    size_t at = 0;
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < world->count; child++) {
            least = earlier(&world->agenda[child], &world->agenda[least]) ? child : least;
        }
        if (least == at) {
            return;
        }
        swap(&world->agenda[at], &world->agenda[least]);
        at = least;
    }
}

void world_in(struct world *world, int64_t delay_ms, void (*due)(void *closure), void *closure,
              const lifetime *owner)
{
    if (world->count == world->room) {
        world->room = world->room ? 2 * world->room : 1024;
        world->agenda = xrealloc(world->agenda, world->room * sizeof *world->agenda);
    }
    world->agenda[world->count] = (struct appointment){.at_ms = world->now_ms + (delay_ms > 0 ? delay_ms : 0),
                                                       .order = world->arranged++,
                                                       .due = due,
                                                       .closure = closure,
                                                       .owner = owner,
                                                       .lived = owner != NULL ? *owner : 0};
    rise(world, world->count++);
}

bool world_step(struct world *world, int64_t until_ms)
{
    if (world->violated || world->count == 0 || world->agenda[0].at_ms > until_ms) {
        world->now_ms = world->violated ? world->now_ms : until_ms;
        return false;
    }
    struct appointment next = world->agenda[0];
    world->agenda[0] = world->agenda[--world->count];
    sink(world);
    world->now_ms = next.at_ms;
    if (next.owner == NULL || *next.owner == next.lived) {
        next.due(next.closure);
    }
    return true;
}

/* --- the trace ------------------------------------------------------------------------------------------ */

static void put_line(struct world *world, const char *mark, const char *format, va_list arguments)
{
    char line[512];
    int length = vsnprintf(line, sizeof line, format, arguments);
    length = length < (int)sizeof line ? length : (int)sizeof line - 1;
    uint64_t hash = (world->hash ^ (uint64_t)world->now_ms) * FNV_PRIME;
    for (int i = 0; i < length; i++) {
        hash = (hash ^ (uint8_t)line[i]) * FNV_PRIME;
    }
    world->hash = hash;
    if (world->tracing) {
        printf("%9.3f %s%s\n", (double)world->now_ms / 1000, mark, line);
    }
}

void world_note(struct world *world, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_line(world, "", format, arguments);
    va_end(arguments);
}

void world_fault(struct world *world, const char *format, ...)
{
    va_list arguments;
    world->faults++;
    va_start(arguments, format);
    put_line(world, "! ", format, arguments);
    va_end(arguments);
}

void world_violate(struct world *world, const char *invariant, const char *format, ...)
{
    char what[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (!world->violated) {
        world->violated = true;
        snprintf(world->violation, sizeof world->violation, "%s at %.3f s: %s", invariant,
                 (double)world->now_ms / 1000, what);
    }
    world_note(world, "VIOLATED %s: %s", invariant, what);
}

/* --- chance --------------------------------------------------------------------------------------------- */

int64_t world_between(struct world *world, int64_t first, int64_t last)
{
    return first + (int64_t)chance_below(&world->chance, (uint64_t)(last - first + 1));
}

bool world_mishap(struct world *world, unsigned permille)
{
    return chance_below(&world->chance, 1000) < permille && !world->healthy;
}

bool world_rare(struct world *world, enum rare point)
{
#define AS_PERMILLE(name, permille) [RARE_##name] = permille,
    static const unsigned permilles[] = {RARE_POINTS(AS_PERMILLE)};
#undef AS_PERMILLE
    return (world->rare >> point & 1) != 0 && world_mishap(world, permilles[point]);
}

bool world_of(struct world *world, unsigned percent)
{
    return chance_of(&world->chance, percent);
}

void world_bytes(struct world *world, void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ((uint8_t *)bytes)[i] = (uint8_t)chance_below(&world->chance, 256);
    }
}

int64_t world_wall_ms(const struct world *world)
{
    return WALL_AT_START_MS + world->now_ms + world->wall_shift_ms;
}
