/* SPDX-License-Identifier: Apache-2.0 */
/* What a controller that was put back from a backup does not know: nodes tell what they have run since, and
 * what of it is in no database is kept, logged and listed. It promises that nothing is run, stopped or
 * changed because of it: whether a lost job is to run again is for its owner to say. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/ask.h"
#include "daemon/http/parts.h"
#include "daemon/http/resources.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/json.h"
#include "proto/base/log.h"
#include "proto/limits.h"
#include "proto/wire/messages.h"

/* --- told by nodes -------------------------------------------------------------------------------------- */

struct telling {
    struct ask ask;
    struct journal_message message;
    struct change *changes; /* owned: those of its entries that are not known */
};

static void telling_finish(struct ask *ask)
{
    struct telling *telling = (struct telling *)ask;
    journal_message_finish(&telling->message);
    free(telling->changes);
}

static int render_told(const struct writer_request *writer, const struct step *step, struct text *out)
{
    text_printf(out, "{\"unknown\":%zu}", writer->record_count);
    return 200;
}

static void note_job(const struct job_record *job, void *closure)
{
}

/* Adds the entry to the changes when its attempt id is in no row. */
static bool take_entry(struct telling *telling, struct reader *reader, const struct journal_entry *entry,
                       struct err *err)
{
    bool found, known;
    struct attempt_record attempt_id;
    if (!reader_attempt_record(reader, entry->attempt_id, &found, &attempt_id, err) ||
        (!found && !reader_job(reader, entry->job_id, note_job, NULL, &known, err))) {
        return false;
    }
    if (!found) {
        telling->changes[telling->ask.writer.record_count++] =
            (struct change){.kind = CHANGE_LOST_PUT,
                            .lost = {.attempt_id = entry->attempt_id,
                                     .node = telling->message.node,
                                     .job_id = entry->job_id,
                                     .known = known,
                                     .began_ms = entry->began_ms,
                                     .ended_ms = entry->ended_ms,
                                     .code = entry->code}};
    }
    return true;
}

static bool take_entries(struct telling *telling, struct reader *reader, struct err *err)
{
    const struct journal_message *message = &telling->message;
    telling->changes = xzalloc((message->entry_count + 1) * sizeof *telling->changes);
    telling->ask.writer.kind = WRITER_RECORD;
    telling->ask.writer.records = telling->changes;
    bool ok = true;
    for (size_t i = 0; ok && i < message->entry_count; i++) {
        ok = take_entry(telling, reader, &message->entries[i], err);
    }
    return ok;
}

static void log_lost(const struct telling *telling)
{
    for (size_t i = 0; i < telling->ask.writer.record_count; i++) {
        const struct lost_row *row = &telling->changes[i].lost;
        log_warning("attempt lost", "job=%s attempt_id=%llu node=%s job_known=%d", row->job_id,
                    (unsigned long long)row->attempt_id, row->node, row->known);
    }
}

void lost_tell(struct request *request)
{
    struct server *server = request->server;
    struct err err;
    struct journal_message message;
    if (!journal_message_decode(give(request->json), &message, &err)) {
        request_fail(request, &err);
        return;
    }
    struct telling *telling = ask_create(request, sizeof *telling, render_told);
    telling->message = message;
    telling->ask.finish = telling_finish;
    if (!identity_acts_for(request->who, message.node, &err)) {
        request_fail(request, &err);
        ask_destroy(&telling->ask);
    } else if (!outbox_knows(server->outbox, message.node, message.boot_id, NULL)) {
        request_fail_with(request, ERR_NOT_FOUND, "node %.64s is not registered with this boot id",
                          message.node);
        ask_destroy(&telling->ask);
    } else if (!take_entries(telling, server->reader, &err)) {
        request_fail(request, &err);
        ask_destroy(&telling->ask);
    } else if (telling->ask.writer.record_count == 0) {
        request_reply_literal(request, 200, "{\"unknown\":0}");
        ask_destroy(&telling->ask);
    } else {
        log_lost(telling);
        ask_writer(&telling->ask);
    }
}

/* --- shown to people ------------------------------------------------------------------------------------ */

struct listing {
    struct text json;
    int64_t count, last_key;
};

static void write_time(struct text *out, const char *name, int64_t wall_ms)
{
    char text[32];
    clock_format_wall(wall_ms, text, sizeof text);
    text_printf(out, wall_ms != 0 ? ",\"%s\":\"%s\"" : ",\"%s\":null", name, text);
}

static bool list_lost(int64_t key, const struct lost_row *row, void *closure)
{
    struct listing *listing = closure;
    if (listing->count == LIMIT_LIST_ROWS) {
        listing->count++;
        return false;
    }
    struct text *out = &listing->json;
    text_append(out, listing->count++ > 0 ? "," : "");
    text_append(out, "{\"job\":");
    text_json_string(out, row->job_id, strlen(row->job_id));
    text_append(out, ",\"node\":");
    text_json_string(out, row->node, strlen(row->node));
    text_printf(out, ",\"epoch\":\"%llu\",\"job_known\":%s", (unsigned long long)row->attempt_id,
                row->known ? "true" : "false");
    write_time(out, "began_at", row->began_ms);
    write_time(out, "ended_at", row->ended_ms);
    if (row->code >= 0) {
        text_printf(out, ",\"exit_code\":%lld}", (long long)row->code);
    } else {
        text_append(out, ",\"exit_code\":null}");
    }
    listing->last_key = key;
    return true;
}

void lost_list(struct request *request)
{
    struct err err;
    struct listing listing = {0};
    int64_t after = 0;
    if (!query_int(request->query, "cursor", 0, INT64_MAX, &after, &err)) {
        request_fail(request, &err);
        return;
    }
    text_append(&listing.json, "{\"lost\":[");
    if (!reader_lost(request->server->reader, after, LIMIT_LIST_ROWS + 1, list_lost, &listing, &err)) {
        text_finish(&listing.json);
        request_fail(request, &err);
        return;
    }
    if (listing.count > LIMIT_LIST_ROWS) {
        text_printf(&listing.json, "],\"next\":\"%lld\"}", (long long)listing.last_key);
    } else {
        text_append(&listing.json, "],\"next\":null}");
    }
    request_reply_json(request, 200, &listing.json);
}
