/* SPDX-License-Identifier: Apache-2.0 */
/* Indexes replies by scope: a hash table in memory, filled at the start and by every reply since. An index in
 * the database would write one page of its own for each submission, which halves their rate at 10,000 replies
 * and more. The table costs 21 to 43 bytes a reply. It names every reply whose scope begins with the same 64
 * bits; store.c compares the whole scopes. */
#include "daemon/store/scopes.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/text.h"

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
    free(scopes->entries);
    *scopes = (struct scopes){0};
}

static void put(struct scopes *scopes, struct scopes_entry entry)
{
    size_t at = entry.beginning & (scopes->room - 1);
    while (scopes->entries[at].key != 0) {
        at = (at + 1) & (scopes->room - 1);
    }
    scopes->entries[at] = entry;
}

static void grow(struct scopes *scopes)
{
    struct scopes old = *scopes;
    scopes->room = old.room == 0 ? FIRST_ROOM : 2 * old.room;
    scopes->entries = xzalloc(scopes->room * sizeof *scopes->entries);
    for (size_t i = 0; i < old.room; i++) {
        if (old.entries[i].key != 0) {
            put(scopes, old.entries[i]);
        }
    }
    free(old.entries);
}

void scopes_add(struct scopes *scopes, const uint8_t scope[32], int64_t key)
{
    if (scopes->count + 1 > scopes->room / 4 * 3) {
        grow(scopes);
    }
    put(scopes, (struct scopes_entry){beginning_of(scope), key});
    scopes->count++;
}

int64_t scopes_next(const struct scopes *scopes, const uint8_t scope[32], size_t *cursor)
{
    uint64_t beginning = beginning_of(scope);
    while (*cursor < scopes->room) {
        const struct scopes_entry *entry = &scopes->entries[(beginning + *cursor) & (scopes->room - 1)];
        if (entry->key == 0) {
            return 0;
        }
        ++*cursor;
        if (entry->beginning == beginning) {
            return entry->key;
        }
    }
    return 0;
}
