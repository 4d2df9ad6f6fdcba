/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of one file: as programs see them now, and as they are kept after a loss of power. The two differ
 * by whole sectors. */
#ifndef SIM_CONTENT_H
#define SIM_CONTENT_H

#include <stddef.h>
#include <stdint.h>

#include "tests/trace/harness/chance.h"

enum { SECTOR_BYTES = 512 };

struct content {
    uint8_t *now, *kept; /* zero behind their sizes */
    size_t now_size, kept_size, room;
    uint8_t *marks;    /* an enum sector_mark for each sector in the room */
    uint32_t *touched; /* sectors with a mark, each once */
    size_t touched_count, touched_room;
};

void content_finish(struct content *content);

/* Reads existing bytes, and returns their number. */
size_t content_read(const struct content *content, void *bytes, size_t size, size_t offset);

/* chance: a sector that is written twice between two syncs may have reached the disk in between. */
void content_write(struct content *content, struct chance *chance, const void *bytes, size_t size,
                   size_t offset);
void content_truncate(struct content *content, size_t size);
void content_sync(struct content *content);
/* Leaves out the `last` sectors that were written last, as if they had been written after the sync. */
void content_sync_early(struct content *content, size_t last);

/* A sync that fails: each written sector is kept, waits for the next sync, or is dropped although programs
 * see it. Linux behaves like this, and its next sync then succeeds. */
void content_sync_in_part(struct content *content, struct chance *chance);

/* Each sector written since the last sync is old, new, or torn; the size lies between the old and the new. */
void content_lose_power(struct content *content, struct chance *chance);

/* Makes `content` equal to `from`, marks included. */
void content_assign(struct content *content, const struct content *from);

#endif
