/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a file, before and after its last sync. A sector without a mark is the same in both. Only
 * the given chance decides about the result of a loss of power. disk.c handles names, counts and failures. */
#include "tests/sim/disk/content.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/text/text.h"

/* DROPPED: a sync failed and lost the change, though programs still see it. */
enum sector_mark { SECTOR_CLEAN, SECTOR_WRITTEN, SECTOR_DROPPED };

enum { SMALLEST_ROOM = 64 * 1024 };

void content_finish(struct content *content)
{
    free(content->now);
    free(content->kept);
    free(content->marks);
    free(content->touched);
    *content = (struct content){0};
}

static uint8_t *resized(uint8_t *bytes, size_t old_room, size_t room)
{
    bytes = xrealloc(bytes, room);
    memset(bytes + old_room, 0, room - old_room);
    return bytes;
}

static void make_room(struct content *content, size_t size)
{
    if (size <= content->room) {
        return;
    }
    size_t room = content->room > 0 ? content->room : SMALLEST_ROOM;
    while (room < size) {
        room *= 2;
    }
    content->now = resized(content->now, content->room, room);
    content->kept = resized(content->kept, content->room, room);
    content->marks = resized(content->marks, content->room / SECTOR_BYTES, room / SECTOR_BYTES);
    content->room = room;
}

static void mark(struct content *content, size_t sector)
{
    if (content->marks[sector] == SECTOR_CLEAN) {
        if (content->touched_count == content->touched_room) {
            content->touched_room = content->touched_room > 0 ? 2 * content->touched_room : 256;
            content->touched = xrealloc(content->touched, content->touched_room * sizeof *content->touched);
        }
        content->touched[content->touched_count++] = (uint32_t)sector;
    }
    content->marks[sector] = SECTOR_WRITTEN;
}

static void keep_sector(struct content *content, size_t sector)
{
    memcpy(content->kept + sector * SECTOR_BYTES, content->now + sector * SECTOR_BYTES, SECTOR_BYTES);
}

static void forget_sector(struct content *content, size_t sector)
{
    memcpy(content->now + sector * SECTOR_BYTES, content->kept + sector * SECTOR_BYTES, SECTOR_BYTES);
}

size_t content_read(const struct content *content, void *bytes, size_t size, size_t offset)
{
    size_t there = offset < content->now_size ? content->now_size - offset : 0;
    size_t count = there < size ? there : size;
    if (count > 0) {
        memcpy(bytes, content->now + offset, count);
    }
    return count;
}

void content_write(struct content *content, struct chance *chance, const void *bytes, size_t size,
                   size_t offset)
{
    if (size == 0) {
        return;
    }
    make_room(content, offset + size);
    for (size_t sector = offset / SECTOR_BYTES; sector <= (offset + size - 1) / SECTOR_BYTES; sector++) {
        if (content->marks[sector] == SECTOR_WRITTEN && chance_of(chance, 50)) {
            keep_sector(content, sector);
        }
        mark(content, sector);
    }
    memcpy(content->now + offset, bytes, size);
    if (offset + size > content->now_size) {
        content->now_size = offset + size;
    }
}

void content_truncate(struct content *content, size_t size)
{
    if (size >= content->now_size) {
        make_room(content, size);
        content->now_size = size;
        return;
    }
    for (size_t sector = size / SECTOR_BYTES; sector <= (content->now_size - 1) / SECTOR_BYTES; sector++) {
        mark(content, sector);
    }
    memset(content->now + size, 0, content->now_size - size);
    content->now_size = size;
}

void content_sync_early(struct content *content, size_t last)
{
    size_t left = 0;
    for (size_t i = 0; i < content->touched_count; i++) {
        uint32_t sector = content->touched[i];
        if (content->marks[sector] == SECTOR_DROPPED || i + last >= content->touched_count) {
            content->touched[left++] = sector;
        } else {
            keep_sector(content, sector);
            content->marks[sector] = SECTOR_CLEAN;
        }
    }
    content->touched_count = left;
    content->kept_size = content->now_size;
}

void content_sync(struct content *content)
{
    content_sync_early(content, 0);
}

void content_sync_in_part(struct content *content, struct chance *chance)
{
    for (size_t i = 0; i < content->touched_count; i++) {
        uint32_t sector = content->touched[i];
        uint64_t fate = chance_below(chance, 3);
        if (fate == 0 && content->marks[sector] == SECTOR_WRITTEN) {
            keep_sector(content, sector); /* and stays marked: keeping it twice changes nothing */
        } else if (fate == 1) {
            content->marks[sector] = SECTOR_DROPPED;
        }
    }
    if (chance_of(chance, 50) && content->now_size > content->kept_size) {
        content->kept_size = content->now_size;
    }
}

/* The end of the used bytes; all bytes behind it are zero. */
static size_t used_end(const struct content *content)
{
    size_t end = content->now_size > content->kept_size ? content->now_size : content->kept_size;
    for (size_t i = 0; i < content->touched_count;
         i++) { /* after a truncation, marks may lie behind both ends */
        size_t behind = ((size_t)content->touched[i] + 1) * SECTOR_BYTES;
        end = behind > end ? behind : end;
    }
    return end;
}

/* Chooses a size between the two: one of them, or any in between. */
static size_t lose_size(const struct content *content, struct chance *chance)
{
    size_t small = content->now_size < content->kept_size ? content->now_size : content->kept_size;
    size_t large = content->now_size < content->kept_size ? content->kept_size : content->now_size;
    switch (chance_below(chance, 3)) {
    case 0:
        return small;
    case 1:
        return large;
    default:
        return small + (size_t)chance_below(chance, large - small + 1);
    }
}

static void tear_sector(struct content *content, struct chance *chance, size_t sector)
{
    size_t at = (size_t)chance_below(chance, SECTOR_BYTES);
    uint8_t *now = content->now + sector * SECTOR_BYTES, *kept = content->kept + sector * SECTOR_BYTES;
    if (chance_of(chance, 50)) { /* the beginning is new */
        memcpy(now + at, kept + at, SECTOR_BYTES - at);
    } else {
        memcpy(now, kept, at);
    }
    memcpy(kept, now, SECTOR_BYTES);
}

/* The character of one loss of power: losses that spare or take nearly all sectors are as likely as those in
 * between. */
struct mood {
    unsigned percent_new, percent_torn;
};

static void lose_sector(struct content *content, struct chance *chance, size_t sector, struct mood mood)
{
    if (content->marks[sector] == SECTOR_DROPPED) {
        forget_sector(content, sector);
    } else if (chance_of(chance, mood.percent_torn)) {
        tear_sector(content, chance, sector);
    } else if (chance_of(chance, mood.percent_new)) {
        keep_sector(content, sector);
    } else {
        forget_sector(content, sector);
    }
    content->marks[sector] = SECTOR_CLEAN;
}

static void cut(uint8_t *bytes, size_t size, size_t end)
{
    if (end > size) {
        memset(bytes + size, 0, end - size);
    }
}

void content_lose_power(struct content *content, struct chance *chance)
{
    size_t end = used_end(content);
    size_t size = lose_size(content, chance);
    struct mood mood = {.percent_new = 25 * (unsigned)chance_below(chance, 5),
                        .percent_torn = 5 * (unsigned)chance_below(chance, 3)};
    for (size_t i = 0; i < content->touched_count; i++) {
        lose_sector(content, chance, content->touched[i], mood);
    }
    content->touched_count = 0;
    cut(content->now, size, end);
    cut(content->kept, size, end);
    content->now_size = content->kept_size = size;
}

/* Copies a buffer to another with the same room; both are zero behind their ends. */
static void assign_bytes(uint8_t *to, size_t to_end, const uint8_t *from, size_t from_end)
{
    if (from_end > 0) {
        memcpy(to, from, from_end);
    }
    cut(to, from_end, to_end);
}

void content_assign(struct content *content, const struct content *from)
{
    size_t end = used_end(from), old_end = used_end(content);
    make_room(content, end);
    for (size_t i = 0; i < content->touched_count; i++) {
        content->marks[content->touched[i]] = SECTOR_CLEAN;
    }
    content->touched_count = 0;
    for (size_t i = 0; i < from->touched_count; i++) {
        mark(content, from->touched[i]);
        content->marks[from->touched[i]] = from->marks[from->touched[i]];
    }
    assign_bytes(content->now, old_end, from->now, end);
    assign_bytes(content->kept, old_end, from->kept, end);
    content->now_size = from->now_size;
    content->kept_size = from->kept_size;
}
