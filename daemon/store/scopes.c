/* SPDX-License-Identifier: Apache-2.0 */
/* The index of replies by scope: hash tables in memory, filled at the start and by every reply since. In the
 * database this index would write one page of its own for each submission, which halves their rate at 10,000
 * replies and more. It costs 21 to 43 bytes a reply. There are two generations. When the newer one is a
 * promised time old, the older one is forgotten as a whole. So nothing is searched or deleted one by one, and
 * a reply is found for one to two promised times. Time counts while the controller runs: the wall clock may
 * jump, and would forget too early. A key is given for every reply whose scope begins with the
 * same 64 bits; store.c compares the whole scope. */
#include "daemon/store/scopes.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/text/text.h"
#include "proto/limits.h"

struct scopes_entry {
    uint64_t beginning; /* of the scope, which is a hash: as good as random */
    int64_t key;        /* 0: nothing here */
};

enum { FIRST_ROOM = 256 };

static uint64_t beginning_of(const uint8_t scope[32])
{
    uint64_t beginning;
    memcpy(&beginning, scope, sizeof beginning);
    return beginning;
}

void scopes_finish(struct scopes *scopes)
{
    free(scopes->newer.entries);
    free(scopes->older.entries);
    *scopes = (struct scopes){0};
}

static void put(struct scopes_generation *generation, struct scopes_entry entry)
{
    size_t at = entry.beginning & (generation->room - 1);
    while (generation->entries[at].key != 0) {
        at = (at + 1) & (generation->room - 1);
    }
    generation->entries[at] = entry;
}

static void grow(struct scopes_generation *generation)
{
    struct scopes_generation old = *generation;
    generation->room = old.room == 0 ? FIRST_ROOM : 2 * old.room;
    generation->entries = xzalloc(generation->room * sizeof *generation->entries);
    for (size_t i = 0; i < old.room; i++) {
        if (old.entries[i].key != 0) {
            put(generation, old.entries[i]);
        }
    }
    free(old.entries);
}

static void add(struct scopes_generation *generation, const uint8_t scope[32], int64_t key)
{
    if (generation->count + 1 > generation->room / 4 * 3) {
        grow(generation);
    }
    put(generation, (struct scopes_entry){beginning_of(scope), key});
    generation->count++;
}

void scopes_add(struct scopes *scopes, const uint8_t scope[32], int64_t key)
{
    if (key > scopes->forgotten_key) {
        add(key > scopes->mark_key ? &scopes->newer : &scopes->older, scope, key);
    }
}

bool scopes_age(struct scopes *scopes, int64_t elapsed_ms, int64_t last_key)
{
    scopes->age_ms += elapsed_ms;
    if (scopes->age_ms < IDEMPOTENCY_KEPT_MS) {
        return false;
    }
    free(scopes->older.entries);
    scopes->older = scopes->newer;
    scopes->newer = (struct scopes_generation){0};
    scopes->forgotten_key = scopes->mark_key;
    scopes->mark_key = last_key;
    scopes->age_ms = 0;
    return true;
}

static int64_t next(const struct scopes_generation *generation, uint64_t beginning, size_t *cursor)
{
    while (*cursor < generation->room) {
        const struct scopes_entry *entry =
            &generation->entries[(beginning + *cursor) & (generation->room - 1)];
        if (entry->key == 0) {
            *cursor = generation->room;
            return 0;
        }
        ++*cursor;
        if (entry->beginning == beginning) {
            return entry->key;
        }
    }
    return 0;
}

int64_t scopes_next(const struct scopes *scopes, const uint8_t scope[32], struct scopes_cursor *cursor)
{
    uint64_t beginning = beginning_of(scope);
    int64_t key = next(&scopes->newer, beginning, &cursor->newer);
    return key != 0 ? key : next(&scopes->older, beginning, &cursor->older);
}
