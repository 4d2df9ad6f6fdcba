/* SPDX-License-Identifier: Apache-2.0 */
/* Takes in and lists the attempts that a controller lost when it was restored from a backup: nodes report
 * the attempts that they have run since. Attempts that no database has are kept, logged and listed.
 * Nothing is run, stopped or changed because of them: their owner decides whether a lost job runs again. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/ask.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/state.h"
#include "daemon/http/orders/outbox.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/log.h"
#include "proto/limits.h"
#include "proto/members.h"
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

static bool job_known(struct reader *reader, const char *id, bool *ret_known, struct err *err)
{
    autorows struct rows rows = reader_job(reader, id, err);
    struct job_record job;
    *ret_known = rows_job(&rows, &job);
    return !rows.failed;
}

/* Adds the entry to the changes when its attempt id is in no row. */
static bool take_entry(struct telling *telling, struct reader *reader, const struct journal_entry *entry,
                       struct err *err)
{
    bool found, known;
    struct attempt_record attempt_id;
    if (!reader_attempt_record(reader, entry->attempt_id, &found, &attempt_id, err) ||
        (!found && !job_known(reader, entry->job_id, &known, err))) {
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

bool lost_tell(struct request *request, struct err *err)
{
    struct server *server = request->server;
    autoask struct telling *telling = ask_create(request, sizeof *telling, render_told);
    const struct journal_message *message = &telling->message;
    telling->ask.finish = telling_finish;
    if (!journal_message_decode(give(request->json), &telling->message, err) ||
        !identity_acts_for(request->who, message->node, err)) {
        return false;
    }
    if (!outbox_knows(server->outbox, message->node, message->boot_id, NULL)) {
        return err_set(err, ERR_NOT_FOUND, "node %.64s is not registered with this boot id", message->node);
    }
    if (!take_entries(telling, server->reader, err)) {
        return false;
    }
    if (telling->ask.writer.record_count == 0) {
        return request_reply_literal(request, 200, "{\"unknown\":0}");
    }
    log_lost(telling);
    return ask_writer(give(telling), err);
}

/* --- shown to people ------------------------------------------------------------------------------------ */

static void write_lost(const struct lost_row *row, struct text *out)
{
    member_write_text(out, "{\"job\":", row->job_id);
    member_write_text(out, ",\"node\":", row->node);
    text_printf(out, ",\"epoch\":\"%llu\"", (unsigned long long)row->attempt_id);
    member_write_bool(out, ",\"job_known\":", row->known);
    member_write_time(out, ",\"began_at\":", row->began_ms);
    member_write_time(out, ",\"ended_at\":", row->ended_ms);
    member_write_int_or_null(out, ",\"exit_code\":", row->code >= 0 ? row->code : -1, -1);
    text_append(out, "}");
}

/* One row more than a page has tells whether there is a next one. */
static bool write_page(struct reader *reader, int64_t after, struct text *out, struct err *err)
{
    autorows struct rows rows = reader_lost(reader, after, LIMIT_LIST_ROWS + 1, err);
    struct lost_row row;
    int64_t key, count = 0;
    text_append(out, "{\"lost\":[");
    while (rows_lost(&rows, &key, &row) && count++ < LIMIT_LIST_ROWS) {
        member_separate(out);
        write_lost(&row, out);
        after = key;
    }
    text_printf(out, count > LIMIT_LIST_ROWS ? "],\"next\":\"%lld\"}" : "],\"next\":null}", (long long)after);
    return !rows.failed;
}

bool lost_list(struct request *request, struct err *err)
{
    autotext struct text json = {0};
    int64_t after = 0;
    return query_int(request->query, "cursor", 0, INT64_MAX, &after, err) &&
           write_page(request->server->reader, after, &json, err) && request_reply_json(request, 200, &json);
}
