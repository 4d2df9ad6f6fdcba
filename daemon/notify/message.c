/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and signs what receivers get. The event is as it was stored; the job is as it is when the message is
 * sent. Members have the names that the API has. */
#include "daemon/notify/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/members.h"
#include "proto/wire/views.h"

#define SECRET_PREFIX "whsec_"

char *message_secret(const uint8_t random[HASH_BYTES])
{
    autofree char *base64 = text_to_base64(random, HASH_BYTES);
    return xprintf(SECRET_PREFIX "%s", base64);
}

void message_id(int64_t key, char out[MESSAGE_ID_BYTES])
{
    snprintf(out, MESSAGE_ID_BYTES, "msg_%" PRId64, key);
}

char *message_sign(const char *secret, const char *id, int64_t seconds, const struct text *body)
{
    autotext struct text content = {0};
    autofree uint8_t *key = NULL;
    uint8_t digest[HASH_BYTES];
    size_t length = 0;
    const char *base64 = secret + strlen(SECRET_PREFIX);
    if (!text_from_base64(base64, strlen(base64), &key, &length) || length != HASH_BYTES) {
        abort(); /* secrets are ours alone */
    }
    text_printf(&content, "%s.%" PRId64 ".", id, seconds);
    text_append_bytes(&content, body->bytes, body->length);
    hash_keyed(key, HASH_BYTES, content.bytes, content.length, digest);
    autofree char *signature = text_to_base64(digest, sizeof digest);
    return xprintf("v1,%s", signature);
}

/* --- the body ------------------------------------------------------------------------------------------- */

static void write_job(const struct job_record *job, const char *page, struct text *out)
{
    const struct job_life *life = &job->life;
    bool over = job_state_terminal(life->state);
    member_write_text(out, "{\"id\":", job->birth.id);
    member_write_text(out, ",\"name\":", job->birth.name);
    member_write_text(out, ",\"owner\":", job->birth.owner);
    member_write_text(out, ",\"project\":", job->birth.project);
    member_write_text(out, ",\"state\":", job_state_text(life->state));
    member_write_int(out, ",\"gpus\":", job->birth.gpus);
    member_write_text(out, ",\"array_id\":", job->birth.array_id);
    member_write_int_or_null(out, ",\"task\":", job->birth.task, -1);
    member_write_int_or_null(out, ",\"exit_code\":", over ? life->exit_code : -1, -1);
    member_write_int_or_null(out, ",\"failed_rank\":", life->failed_rank, -1);
    member_write_text(out, ",\"failed_node\":", life->failed_node);
    member_write_text(out, ",\"reason\":", life->reason);
    member_write_time(out, ",\"created_at\":", job->birth.created_ms);
    member_write_time(out, ",\"started_at\":", life->started_ms);
    member_write_time(out, ",\"ended_at\":", life->ended_ms);
    autofree char *url = page != NULL ? xprintf("%s/#/jobs/%s", page, job->birth.id) : NULL;
    member_write_text(out, ",\"url\":", url);
    text_append(out, "}");
}

static bool add_event(struct reader *reader, const struct delivery_row *delivery, const char *job_id,
                      struct text *out, bool *ret_found, struct err *err)
{
    autorows struct rows rows = reader_events(reader, delivery->job_key, delivery->seq - 1, 1, err);
    struct event_row row;
    *ret_found = rows_event(&rows, &row) && row.seq == delivery->seq;
    if (*ret_found) {
        const struct event_view view = {.job_id = job_id,
                                        .seq = row.seq,
                                        .at_ms = row.at_ms,
                                        .kind = row.kind,
                                        .attempt = row.attempt,
                                        .detail = row.detail};
        event_view_encode(&view, out);
    }
    return !rows.failed;
}

static void write_test(const struct delivery_row *row, struct text *out)
{
    member_write_time(out, "{\"job_id\":null,\"kind\":\"test\",\"at\":", row->created_ms);
    text_append(out, "},\"job\":null");
}

static bool write_of_job(struct reader *reader, const struct delivery_row *row, const char *page,
                         struct text *out, bool *ret_found, struct err *err)
{
    autorows struct rows rows = reader_job_by_key(reader, row->job_key, err);
    struct job_record job;
    *ret_found = rows_job(&rows, &job);
    if (!*ret_found) {
        return !rows.failed;
    }
    if (!add_event(reader, row, job.birth.id, out, ret_found, err)) {
        return false;
    }
    text_append(out, ",\"job\":");
    write_job(&job, page, out);
    return true;
}

bool message_body(struct reader *reader, const struct delivery_row *row, const char *page, struct text *out,
                  bool *ret_found, struct err *err)
{
    char id[MESSAGE_ID_BYTES];
    message_id(row->key, id);
    *ret_found = true;
    member_write_text(out, "{\"id\":", id);
    text_append(out, ",\"event\":");
    if (row->job_key == 0) {
        write_test(row, out);
    } else if (!write_of_job(reader, row, page, out, ret_found, err)) {
        return false;
    }
    text_append(out, "}");
    return true;
}
