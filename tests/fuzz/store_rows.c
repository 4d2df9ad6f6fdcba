/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a store with a few rows of each table, in such states that a start loads some and leaves others, and
 * reads them by the queries of the controller. The lists of rows.h say how a row is written out. */
#include "tests/fuzz/store_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/database/tables.h"
#include "proto/base/cleanup.h"
#include "tests/fuzz/fuzz.h"

enum { JOBS = 8, MOST_ROWS = 100, NOW_MS = 1800000 };

/* --- writing -------------------------------------------------------------------------------------------- */

static const uint8_t blob_hash[32] = {7};
static const char spec[] = "{\"gpus\": 2, \"command\": [\"true\"]}";
static const char array_spec[] = "{\"gpus\": 1, \"command\": [\"true\"], \"array\": {\"tasks\": 3}}";
static char long_spec[6000]; /* on overflow pages */

static bool write_changes(struct store *store, const struct change *changes, size_t count, struct err *err)
{
    return store_begin(store, err) && store_apply(store, changes, count, err) && store_commit(store, err);
}

static const char *id_of(int64_t key)
{
    static char ids[JOBS + 1][ID_LENGTH + 1];
    snprintf(ids[key], sizeof ids[key], "%caaaaaaaaaaaaaaa", (char)('a' + key));
    return ids[key];
}

static const char *spec_of(int64_t key)
{
    memset(long_spec, ' ', sizeof long_spec - 1);
    memcpy(long_spec, spec, sizeof spec - 1);
    return key == JOBS / 2 ? long_spec : key == 1 ? array_spec : spec;
}

static bool write_job(struct store *store, int64_t key, struct err *err)
{
    const uint64_t attempt_id = (uint64_t)1 << 32 | (uint64_t)key;
    const bool ended = key % 4 == 3;
    const struct job_life life = {.key = key,
                                  .state = ended          ? JOB_SUCCEEDED
                                           : key % 2 == 0 ? JOB_RUNNING
                                                          : JOB_QUEUED,
                                  .seq = 2,
                                  .attempt = key % 2 == 0 || ended,
                                  .pool = "default",
                                  .exit_code = ended ? 0 : -1,
                                  .failed_rank = -1,
                                  .cause = CAUSE_NONE};
    const struct job_birth birth = {.key = key,
                                    .array_key = key == 2 ? 1 : 0,
                                    .task = key == 2 ? 0 : -1,
                                    .id = id_of(key),
                                    .owner = "alice",
                                    .name = "train",
                                    .project = "vision",
                                    .gpus = 2,
                                    .gpu_type = "A10",
                                    .created_ms = 1000 + key,
                                    .shown = "{}",
                                    .spec = spec_of(key),
                                    .spec_length = strlen(spec_of(key))};
    const struct change changes[] = {
        {.kind = CHANGE_JOB_INSERT, .job = {.birth = birth, .life = life}},
        {.kind = CHANGE_EVENT_INSERT,
         .event = {.job_key = key, .seq = 1, .at_ms = key, .kind = EVENT_SUBMITTED}},
        {.kind = CHANGE_EVENT_INSERT,
         .event = {.job_key = key, .seq = 2, .at_ms = key, .kind = EVENT_STARTED, .detail = "{\"a\": 1}"}},
        {.kind = CHANGE_REPLY_INSERT,
         .reply = {.scope = {(uint8_t)key},
                   .body = {1},
                   .job_key = key,
                   .status = 201,
                   .at_ms = key,
                   .answer = "{}",
                   .answer_length = 2}},
        {.kind = CHANGE_ATTEMPT_INSERT,
         .attempt = {.attempt_id = attempt_id,
                     .job_key = key,
                     .number = 1,
                     .pool = "default",
                     .gpu_type = "A10",
                     .created_ms = key,
                     .state = ended ? ATTEMPT_ENDED : ATTEMPT_STARTED,
                     .master_address = "10.0.0.1",
                     .master_port = 20000,
                     .failed_rank = -1,
                     .timing = {1, 2, 3, 4, 5}}},
        {.kind = CHANGE_MEMBER_INSERT,
         .member = {.attempt_id = attempt_id,
                    .node = "gpu-1",
                    .devices = "0,1",
                    .local_ranks = 2,
                    .state = ended ? MEMBER_FLUSHED : MEMBER_RUNNING,
                    .start = "warm",
                    .marks = "[]"}},
        {.kind = CHANGE_RANK_PUT, .rank = {.attempt_id = attempt_id, .out_bytes = 3}},
        {.kind = CHANGE_RESULT_PUT,
         .result =
             {.attempt_id = attempt_id, .kind = RESULT_VALUE, .size = 5, .hash = blob_hash, .json = "1"}},
    };
    const size_t count = sizeof changes / sizeof changes[0];
    return write_changes(store, changes, life.attempt > 0 ? count : 4, err);
}

/* One of each of the other tables. */
static bool write_others(struct store *store, int64_t number, struct err *err)
{
    char name[16];
    snprintf(name, sizeof name, "one-%d", (int)number);
    const struct change changes[] = {
        {.kind = CHANGE_BLOB_PUT, .blob = {.hash = {7}, .size = 5, .bytes = "value", .created_ms = number}},
        {.kind = CHANGE_NODE_PUT,
         .node = {.name = number == 1 ? "gpu-1" : "gpu-2",
                  .devices = "[{\"index\":0,\"type\":\"A10\"},{\"index\":1,\"type\":\"A10\"}]",
                  .labels = "{\"zone\":\"a\"}",
                  .boot_id = "boot",
                  .agent_id = "agent",
                  .host_id = "host",
                  .version = "1",
                  .address = "10.0.0.2",
                  .pool = "default",
                  .state = NODE_READY,
                  .registered_ms = 1}},
        {.kind = CHANGE_WINDOW_INSERT,
         .window = {.id = name, .nodes = "gpu-1", .from_ms = 1, .until_ms = 2, .owner = "admin"}},
        {.kind = CHANGE_HISTORY_PUT,
         .history = {.project = "vision", .owner = "alice", .name = "train", .gpus = number, .count = 1}},
        {.kind = CHANGE_USAGE_PUT, .usage = {.owner = name, .gpu_ms = 0.5}},
        {.kind = CHANGE_HOUR_ADD,
         .hour = {.hour_ms = 3600000 * number,
                  .project = "vision",
                  .owner = "alice",
                  .pool = "default",
                  .gpu_type = "A10",
                  .attempts = 1,
                  .gpu_ms = 2}},
        {.kind = CHANGE_LIMITS_PUT,
         .limits = {.kind = ACCOUNT_USER, .name = name, .limits = "{\"gpus\": 4}"}},
        {.kind = CHANGE_TOKEN_INSERT,
         .token = {.id = name, .role = ROLE_USER, .owner = "alice", .created_ms = 1, .secret = {3}}},
        {.kind = CHANGE_JOIN_INSERT,
         .join = {.id = name, .owner = "admin", .created_ms = 1, .expires_ms = INT64_MAX, .secret = {4}}},
        {.kind = CHANGE_USE_PUT, .use = {.job_key = number, .hash = "07"}},
        {.kind = CHANGE_UPLOAD_PUT, .upload = {.owner = name, .hash = "08", .size = 1, .at_ms = 1}},
        {.kind = CHANGE_LOST_PUT, .lost = {.attempt_id = (uint64_t)number, .node = "gpu-1", .job_id = name}},
        {.kind = CHANGE_WEBHOOK_PUT,
         .webhook = {.id = name,
                     .owner = "alice",
                     .name = name,
                     .secret = "whsec_",
                     .url = "https://example.org/",
                     .kinds = "succeeded,failed",
                     .enabled = true}},
        {.kind = CHANGE_DELIVERY_INSERT,
         .delivery = {.key = number, .webhook = name, .job_key = number, .seq = 1, .created_ms = 1}},
        {.kind = CHANGE_SCHEDULE_INSERT,
         .schedule = {.id = name,
                      .owner = "alice",
                      .name = name,
                      .project = "default",
                      .spec = "{}",
                      .cron = "0 3 * * *",
                      .time_zone = "UTC",
                      .next_ms = number}},
        {.kind = CHANGE_SCHEDULE_USE_PUT, .schedule_use = {.schedule = name, .hash = "09"}},
        {.kind = CHANGE_SECRET_PUT,
         .secret = {.owner = "alice",
                    .project = "",
                    .name = name,
                    .set_by = "alice",
                    .sealed_size = 3,
                    .sealed = "abc"}},
        {.kind = CHANGE_AUDIT_INSERT,
         .audit = {.at_ms = 1,
                   .owner = "alice",
                   .address = "::1",
                   .method = "POST",
                   .path = "/v1/jobs",
                   .status = 201}},
        {.kind = CHANGE_DEPENDENCY_INSERT,
         .dependency = {.job_key = number + 4, .on_key = number, .kind = DEPENDENCY_AFTEROK}},
    };
    return write_changes(store, changes, sizeof changes / sizeof changes[0], err);
}

bool store_rows_write(struct store *store, bool first, struct err *err)
{
    const struct change array = {.kind = CHANGE_ARRAY_PUT,
                                 .array = {.whole = 1, .tasks = 3, .placed = 1, .running = 1}};
    bool ok = true;
    for (int64_t key = first ? 1 : JOBS / 2 + 1; ok && key <= (first ? JOBS / 2 : JOBS); key++) {
        ok = write_job(store, key, err) && (key != 1 || write_changes(store, &array, 1, err));
    }
    return ok && write_others(store, first ? 1 : 2, err);
}

/* --- rows as text --------------------------------------------------------------------------------------- */

#define WORD_CASE(type) case COLUMN_##type:
#define FIELD(type)     (*(type const *)field)

static void print_bytes(struct text *out, const void *bytes, size_t length)
{
    text_append(out, bytes != NULL ? " =" : " none");
    if (bytes != NULL) {
        text_append_bytes(out, bytes, length);
    }
}

static void print_column(struct text *out, const struct column *column, const char *row)
{
    const void *field = row + column->offset;
    const char *text;
    switch (column->type) {
    case COLUMN_NUMBER:
    case COLUMN_KEY64:
    case COLUMN_TASK:
        text_printf(out, " %" PRId64, FIELD(int64_t));
        break;
    case COLUMN_REAL:
        text_printf(out, " %g", FIELD(double));
        break;
    case COLUMN_FLAG:
        text_printf(out, " %d", FIELD(bool));
        break;
    case COLUMN_TEXT:
    case COLUMN_NAME:
        text = FIELD(const char *);
        print_bytes(out, text, text != NULL ? strlen(text) : 0);
        break;
    case COLUMN_LONG_TEXT:
        print_bytes(out, FIELD(const char *), *(const size_t *)(row + column->offset + sizeof(char *)));
        break;
    case COLUMN_BYTES:
        print_bytes(out, FIELD(const void *), (size_t) * (const int64_t *)(row + column[-1].offset));
        break;
    case COLUMN_HASH:
        print_bytes(out, FIELD(const uint8_t *), 32);
        break;
    case COLUMN_DIGEST:
    case COLUMN_MOMENTS:
        print_bytes(out, field, column->size);
        break;
        TABLE_WORDS(WORD_CASE)
        text_printf(out, " %s", table_word(column->type, FIELD(unsigned)));
    }
}

static void print(struct text *out, enum table_id table, const void *row)
{
    text_append(out, tables[table].name);
    for (int i = 0; i < tables[table].count; i++) {
        print_column(out, &tables[table].columns[i], row);
    }
    text_append(out, "\n");
}

/* --- live rows ------------------------------------------------------------------------------------------ */

#define SEE(table, noun)                                                                                     \
    static bool see_##noun(const struct noun##_row *row, void *closure, struct err *err)                     \
    {                                                                                                        \
        print(closure, TABLE_##table, row);                                                                  \
        return true;                                                                                         \
    }
SEE(history, history)
SEE(limits, limits)
SEE(usage, usage)
SEE(nodes, node)
SEE(windows, window)
SEE(webhooks, webhook)
SEE(deliveries, delivery)
SEE(arrays, array)
SEE(dependencies, dependency)
SEE(attempts, attempt)
SEE(members, member)

static void print_job(struct text *out, const struct job_birth *birth, const struct job_life *life)
{
    const struct job_row row = {*birth, *life};
    print(out, TABLE_jobs, &row);
    print_bytes(out, birth->spec, birth->spec_length);
}

static bool see_job(const struct job_birth *birth, const struct job_life *life, void *closure,
                    struct err *err)
{
    print_job(closure, birth, life);
    return true;
}

static bool read_live(struct store *store, struct text *out, struct err *err)
{
    const struct store_visitor visitor = {.history = see_history,
                                          .limits = see_limits,
                                          .usage = see_usage,
                                          .node = see_node,
                                          .window = see_window,
                                          .webhook = see_webhook,
                                          .delivery = see_delivery,
                                          .job = see_job,
                                          .array = see_array,
                                          .dependency = see_dependency,
                                          .attempt = see_attempt,
                                          .member = see_member,
                                          .closure = out};
    return store_load_live(store, &visitor, err);
}

static bool read_replies(struct store *store, struct text *out, struct err *err)
{
    bool ok = true;
    for (int key = 1; ok && key <= JOBS; key++) {
        const uint8_t scope[32] = {(uint8_t)key};
        struct stored_reply reply = {0};
        bool found;
        ok = store_find_reply(store, scope, &found, &reply, err);
        if (ok && found) {
            print_bytes(out, reply.answer, reply.answer_length);
        }
        free(reply.answer);
    }
    return ok;
}

/* --- the queries of people ------------------------------------------------------------------------------ */

/* Reads all rows of a query whose rows are of one table. */
#define EACH(noun, table, row_type, print_it)                                                                \
    static bool each_##noun(struct rows asked, struct text *out)                                             \
    {                                                                                                        \
        autorows struct rows rows = asked;                                                                   \
        struct row_type row;                                                                                 \
        while (rows_##noun(&rows, &row)) {                                                                   \
            print_it;                                                                                        \
        }                                                                                                    \
        return !rows.failed;                                                                                 \
    }
#define EACH_ROW(noun, table) EACH(noun, table, noun##_row, print(out, TABLE_##table, &row))
EACH(job, jobs, job_record, print_job(out, &row.birth, &row.life))
EACH(use, hours, use_record, print(out, TABLE_hours, &row.row))
EACH_ROW(event, events)
EACH_ROW(attempt, attempts)
EACH_ROW(member, members)
EACH_ROW(rank, ranks)
EACH_ROW(window, windows)
EACH_ROW(token, tokens)
EACH_ROW(join, joins)
EACH_ROW(blob, blobs)
EACH_ROW(upload, uploads)
EACH_ROW(audit, audit)
EACH_ROW(removal, removals)
EACH_ROW(secret, secrets)
EACH_ROW(schedule, schedules)
EACH_ROW(webhook, webhooks)
EACH_ROW(limits, limits)

static void print_text(struct text *out, const char *text)
{
    print_bytes(out, text, text != NULL ? strlen(text) : 0);
}

EACH(dependency_with_job, dependencies, dependency_record, print_text(out, row.id))
EACH(allocation, nodes, allocation, {
    print_text(out, row.job_id);
    print_text(out, row.node);
    print_text(out, row.devices);
    print_text(out, row.owner);
    print_text(out, row.project);
})
EACH(delivery, deliveries, delivery_record, {
    print(out, TABLE_deliveries, &row.row);
    print_text(out, row.job_id);
    print_text(out, row.kind);
})
EACH(blob_use, blobs, blob_use, text_printf(out, " %" PRId64 " %d", row.number, row.unused))

static bool each_result(struct rows asked, struct text *out)
{
    autorows struct rows rows = asked;
    struct result_row row;
    const void *bytes;
    while (rows_result(&rows, &row, &bytes)) {
        print(out, TABLE_results, &row);
        print_bytes(out, bytes, (size_t)row.size);
    }
    return !rows.failed;
}

static bool each_node(struct rows asked, struct text *out)
{
    autorows struct rows rows = asked;
    struct node_row row;
    struct node_used used;
    while (rows_node(&rows, &row, &used)) {
        print(out, TABLE_nodes, &row);
        text_printf(out, " %" PRId64, used.gpus);
    }
    return !rows.failed;
}

static bool each_next_delivery(struct rows asked, struct text *out)
{
    autorows struct rows rows = asked;
    struct delivery_row row;
    struct webhook_row webhook;
    while (rows_next_delivery(&rows, &row, &webhook)) {
        print(out, TABLE_deliveries, &row);
        print(out, TABLE_webhooks, &webhook);
    }
    return !rows.failed;
}

static bool each_lost(struct rows asked, struct text *out)
{
    autorows struct rows rows = asked;
    struct lost_row row;
    int64_t key;
    while (rows_lost(&rows, &key, &row)) {
        print(out, TABLE_lost, &row);
    }
    return !rows.failed;
}

static bool read_job(struct reader *reader, int64_t key, struct text *out, struct err *err)
{
    const uint64_t attempt_id = (uint64_t)1 << 32 | (uint64_t)key;
    struct attempt_record record;
    bool found;
    char *name = NULL;
    bool ok = each_job(reader_job(reader, id_of(key), err), out) &&
              each_job(reader_job_by_key(reader, key, err), out) &&
              each_event(reader_events(reader, key, 0, MOST_ROWS, err), out) &&
              each_dependency_with_job(reader_dependencies(reader, key, err), out) &&
              each_attempt(reader_attempts(reader, key, ALL_ATTEMPTS, err), out) &&
              each_member(reader_members(reader, attempt_id, err), out) &&
              each_rank(reader_ranks(reader, attempt_id, err), out) &&
              each_result(reader_results(reader, attempt_id, -1, MOST_ROWS, err), out) &&
              reader_attempt_record(reader, attempt_id, &found, &record, err) &&
              reader_job_name(reader, id_of(key), &name, err);
    print_text(out, name);
    free(name);
    return ok;
}

static bool read_lists(struct reader *reader, struct text *out, struct err *err)
{
    const struct job_filter all = {.limit = MOST_ROWS}, on_node = {.node = "gpu-1", .limit = MOST_ROWS};
    const struct use_question use = {.until_ms = INT64_MAX, .step_ms = INT64_MAX, .by_owner = true};
    const struct audit_filter audit = {.before_seq = INT64_MAX, .limit = MOST_ROWS};
    struct file_use file_use;
    int64_t number;
    free(reader_node_gpus(reader, "gpu-1"));
    return each_job(reader_jobs(reader, &all, err), out) &&
           each_job(reader_jobs(reader, &on_node, err), out) &&
           each_node(reader_nodes(reader, "", ALL_ROWS, err), out) &&
           each_allocation(reader_allocations(reader, 0, -1, MOST_ROWS, err), out) &&
           each_window(reader_windows(reader, err), out) &&
           each_token(reader_tokens(reader, "", ALL_ROWS, err), out) &&
           each_join(reader_join(reader, "one-1", err), out) &&
           each_blob(reader_blob(reader, blob_hash, err), out) &&
           each_upload(reader_uploads(reader, 0, MOST_ROWS, err), out) &&
           each_use(reader_use(reader, &use, err), out) &&
           each_audit(reader_audit(reader, &audit, err), out) &&
           each_blob_use(reader_blob_uses(reader, 0, MOST_ROWS, NOW_MS, err), out) &&
           each_removal(reader_removals(reader, MOST_ROWS, err), out) &&
           each_secret(reader_all_secrets(reader, err), out) &&
           each_schedule(reader_schedules(reader, NULL, "", MOST_ROWS, err), out) &&
           each_schedule(reader_due_schedules(reader, MOST_ROWS, err), out) &&
           each_webhook(reader_webhooks(reader, NULL, "", MOST_ROWS, err), out) &&
           each_delivery(reader_deliveries(reader, "one-1", INT64_MAX, NULL, MOST_ROWS, err), out) &&
           each_next_delivery(reader_next_deliveries(reader, err), out) &&
           each_limits(reader_limits(reader, err), out) &&
           each_lost(reader_lost(reader, 0, MOST_ROWS, err), out) &&
           reader_oldest_waiting(reader, &number, err) && reader_file_use(reader, &file_use, err);
}

bool store_rows_read(struct store *store, struct reader *reader, struct text *out, struct err *err)
{
    bool ok = read_live(store, out, err) && read_replies(store, out, err);
    for (int64_t key = 1; ok && key <= JOBS; key++) {
        ok = read_job(reader, key, out, err);
    }
    return ok && read_lists(reader, out, err);
}
