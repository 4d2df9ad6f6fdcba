/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes the attempts that a node reports to a controller that was restored from a backup.
 * Decoded entries have valid ids and attempt ids. The controller decides what follows from them. */
#include <stdlib.h>

#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"
#include "proto/members.h"
#include "proto/wire/messages.h"

static json_t *encode_entry(const struct journal_entry *entry)
{
    json_t *json = json_object();
    member_put_int(json, "epoch", (int64_t)entry->attempt_id);
    member_put_text(json, "job_id", entry->job_id);
    member_put_int(json, "began_ms", entry->began_ms);
    if (entry->ended_ms > 0) {
        member_put_int(json, "ended_ms", entry->ended_ms);
    }
    if (entry->code >= 0) {
        member_put_int(json, "code", entry->code);
    }
    return json;
}

static bool decode_entry(const json_t *json, struct journal_entry *entry, struct err *err)
{
    entry->code = -1;
    if (!member_need_attempt_id(json, "epoch", &entry->attempt_id, err) ||
        !json_need_text(json, "job_id", &entry->job_id, err) ||
        !json_need_int(json, "began_ms", 0, INT64_MAX, &entry->began_ms, err) ||
        !json_read_int(json, "ended_ms", 0, INT64_MAX, &entry->ended_ms, err) ||
        !json_read_int(json, "code", 0, INT32_MAX, &entry->code, err)) {
        return false;
    }
    return text_is_id(entry->job_id) ||
           err_field(err, ERR_FIELD, "job_id", NULL, "job_id is not the id of a job");
}

json_t *journal_message_encode(const struct journal_message *message)
{
    json_t *json = json_object();
    json_t *entries = json_array();
    for (size_t i = 0; i < message->entry_count; i++) {
        json_array_append_new(entries, encode_entry(&message->entries[i]));
    }
    member_put_text(json, "node", message->node);
    member_put_text(json, "boot_id", message->boot_id);
    member_put(json, "entries", entries);
    return json;
}

static bool decode_entries(const json_t *json, struct journal_message *message, struct err *err)
{
    json_t *array;
    if (!member_read_array(json, "entries", LIMIT_JOURNAL_ENTRIES, &array, err)) {
        return false;
    }
    message->entry_count = json_array_size(array);
    message->entries = xzalloc(message->entry_count * sizeof *message->entries);
    for (size_t i = 0; i < message->entry_count; i++) {
        if (!decode_entry(json_array_get(array, i), &message->entries[i], err)) {
            return member_err_inside(err, "entries", i);
        }
    }
    return true;
}

bool journal_message_decode(json_t *json, struct journal_message *ret_message, struct err *err)
{
    struct journal_message message = {.json = json};
    bool good = member_holder(json, err) && json_need_text(json, "node", &message.node, err) &&
                json_need_text(json, "boot_id", &message.boot_id, err) && decode_entries(json, &message, err);
    if (!good) {
        journal_message_finish(&message);
        return false;
    }
    *ret_message = message;
    return true;
}

void journal_message_finish(struct journal_message *message)
{
    free(message->entries);
    json_decref(message->json);
    *message = (struct journal_message){0};
}
