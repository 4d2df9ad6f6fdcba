/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers which jobs had new events, the last LIMIT_EVENT_RING times. Adding costs a copy of some numbers;
 * the events themselves are read from the database when a stream first wants them, once for all streams. */
#include "daemon/http/events/event_ring.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits_controller.h"
#include "proto/wire/views.h"

struct slot {
    int64_t job_key, before_seq, seq;
    char id[ID_LENGTH + 1];
    bool read;         /* the next two are known */
    char *owner;       /* owned; NULL: the job is gone */
    struct text lines; /* of its events */
};

struct event_ring {
    struct slot *slots; /* allocated with the first one */
    int64_t next;
};

struct event_ring *event_ring_create(void)
{
    struct event_ring *ring = xzalloc(sizeof *ring);
    ring->next = 1;
    return ring;
}

static void slot_clear(struct slot *slot)
{
    free(slot->owner);
    text_finish(&slot->lines);
    *slot = (struct slot){0};
}

void event_ring_destroy(struct event_ring *ring)
{
    if (ring == NULL) {
        return;
    }
    for (size_t i = 0; ring->slots != NULL && i < LIMIT_EVENT_RING; i++) {
        slot_clear(&ring->slots[i]);
    }
    free(ring->slots);
    free(ring);
}

static struct slot *slot_of(const struct event_ring *ring, int64_t number)
{
    return &ring->slots[number % LIMIT_EVENT_RING];
}

void event_ring_add(struct event_ring *ring, const struct job_touch *touched, size_t count)
{
    if (ring->slots == NULL) {
        ring->slots = xzalloc(LIMIT_EVENT_RING * sizeof *ring->slots);
    }
    for (size_t i = 0; i < count; i++) {
        if (touched[i].seq > touched[i].before_seq) {
            struct slot *slot = slot_of(ring, ring->next++);
            slot_clear(slot);
            slot->job_key = touched[i].key;
            slot->before_seq = touched[i].before_seq;
            slot->seq = touched[i].seq;
            memcpy(slot->id, touched[i].id, sizeof slot->id);
        }
    }
}

int64_t event_ring_oldest(const struct event_ring *ring)
{
    return ring->next > LIMIT_EVENT_RING ? ring->next - LIMIT_EVENT_RING : 1;
}

int64_t event_ring_next(const struct event_ring *ring)
{
    return ring->next;
}

static bool read_owner(struct slot *slot, struct reader *reader, struct err *err)
{
    autorows struct rows rows = reader_job_by_key(reader, slot->job_key, err);
    struct job_record job;
    if (rows_job(&rows, &job)) {
        slot->owner = xstrdup(job.birth.owner);
    }
    return !rows.failed;
}

static bool read_lines(struct slot *slot, struct reader *reader, struct err *err)
{
    autorows struct rows rows =
        reader_events(reader, slot->job_key, slot->before_seq, slot->seq - slot->before_seq, err);
    struct event_row row;
    while (rows_event(&rows, &row)) {
        const struct event_view view = {.job_id = slot->id,
                                        .seq = row.seq,
                                        .at_ms = row.at_ms,
                                        .kind = row.kind,
                                        .attempt = row.attempt,
                                        .detail = row.detail};
        text_printf(&slot->lines, "%s ", event_kind_text(row.kind));
        event_view_encode(&view, &slot->lines);
        text_append(&slot->lines, "\n");
    }
    return !rows.failed;
}

bool event_ring_read(struct event_ring *ring, int64_t number, struct reader *reader, const char **ret_owner,
                     const struct text **ret_lines, struct err *err)
{
    assert(number >= event_ring_oldest(ring) && number < ring->next);
    struct slot *slot = slot_of(ring, number);
    if (!slot->read) {
        text_clear(&slot->lines);
        free(slot->owner);
        slot->owner = NULL;
        slot->read = read_owner(slot, reader, err) && (slot->owner == NULL || read_lines(slot, reader, err));
    }
    *ret_owner = slot->owner;
    *ret_lines = &slot->lines;
    return slot->read;
}
