/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of rows: the only place that knows columns by position, one function a kind of row. It
 * promises that every column of the statement was read, and that words are values of their lists. The order
 * of columns is that of the lists in sql.h. */
#include "daemon/store/columns.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "daemon/store/connection.h"

/* A row that is being read, column by column. */
struct row {
    sqlite3_stmt *statement;
    int next;
    const char *unknown; /* the first word that is in no list */
};

static int64_t read_int(struct row *row)
{
    return sqlite3_column_int64(row->statement, row->next++);
}

/* none for NULL. */
static int64_t read_int_or(struct row *row, int64_t none)
{
    bool there = sqlite3_column_type(row->statement, row->next) != SQLITE_NULL;
    int64_t value = read_int(row);
    return there ? value : none;
}

static double read_real(struct row *row)
{
    return sqlite3_column_double(row->statement, row->next++);
}

static const char *read_text(struct row *row)
{
    return connection_text(row->statement, row->next++);
}

static const char *read_text_of(struct row *row, size_t *ret_length)
{
    const char *text = read_text(row);
    *ret_length = (size_t)sqlite3_column_bytes(row->statement, row->next - 1);
    return text;
}

/* NULL for NULL. */
static const void *read_blob(struct row *row)
{
    int column = row->next++;
    const void *bytes = connection_blob(row->statement, column);
    bool empty = bytes == NULL && sqlite3_column_type(row->statement, column) == SQLITE_BLOB;
    return empty ? "" : bytes; /* SQLite gives no pointer to no bytes */
}

/* NULL for NULL, where a row may have none. */
static const uint8_t *read_digest_or_null(struct row *row)
{
    const void *digest = read_blob(row);
    if (digest != NULL && sqlite3_column_bytes(row->statement, row->next - 1) != 32) {
        row->unknown = "(a digest of another size)";
    }
    return digest;
}

static void read_digest(struct row *row, uint8_t ret_digest[32])
{
    const uint8_t *digest = read_digest_or_null(row);
    if (digest == NULL) {
        row->unknown = "(no digest)";
    } else if (row->unknown == NULL) {
        memcpy(ret_digest, digest, 32);
    }
}

/* So many numbers in one column; all are 0 for NULL. */
static void read_numbers(struct row *row, int64_t *ret_numbers, size_t count)
{
    const uint8_t *packed = read_blob(row);
    size_t size = (size_t)sqlite3_column_bytes(row->statement, row->next - 1);
    memset(ret_numbers, 0, count * sizeof *ret_numbers);
    if (packed != NULL && size != count * sizeof *ret_numbers) {
        row->unknown = "(moments of another number)";
        return;
    }
    for (size_t i = 0; packed != NULL && i < count; i++) {
        uint64_t number;
        memcpy(&number, packed + i * sizeof number, sizeof number);
        ret_numbers[i] = (int64_t)le64toh(number);
    }
}

/* Reads a column whose words are those of one enum. */
#define DEFINE_READ(type)                                                                                    \
    static enum type read_##type(struct row *row)                                                            \
    {                                                                                                        \
        enum type value = (enum type)0;                                                                      \
        const char *word = read_text(row);                                                                   \
        if (word == NULL || !type##_from_text(word, &value)) {                                               \
            row->unknown = word == NULL ? "(null)" : word;                                                   \
        }                                                                                                    \
        return value;                                                                                        \
    }
DEFINE_READ(job_state)
DEFINE_READ(attempt_state)
DEFINE_READ(member_state)
DEFINE_READ(node_state)
DEFINE_READ(cause)
DEFINE_READ(event_kind)
DEFINE_READ(pool_kind)
DEFINE_READ(isolation)
DEFINE_READ(role)
DEFINE_READ(result_kind)
DEFINE_READ(claim)
DEFINE_READ(account_kind)
DEFINE_READ(dependency)

static bool read_end(const struct row *row, struct err *err)
{
    assert(row->next == sqlite3_column_count(row->statement));
    return row->unknown == NULL ||
           err_set(err, ERR_INTERNAL, "the database holds \"%s\", which this program does not know",
                   row->unknown);
}

static void read_job(struct row *row, struct job_record *job)
{
    *job = (struct job_record){0};
    struct job_birth *birth = &job->birth;
    birth->key = job->life.key = read_int(row);
    birth->id = read_text(row);
    birth->owner = read_text(row);
    birth->name = read_text(row);
    birth->project = read_text(row);
    birth->gpus = read_int(row);
    birth->gpu_type = read_text(row);
    birth->created_ms = read_int(row);
    struct job_life *life = &job->life;
    life->state = read_job_state(row);
    life->seq = read_int(row);
    life->attempt = read_int(row);
    life->user_failures = read_int(row);
    life->infra_failures = read_int(row);
    life->pool = read_text(row);
    life->started_ms = read_int(row);
    life->ended_ms = read_int(row);
    life->exit_code = read_int(row);
    life->failed_rank = read_int(row);
    life->failed_node = read_text(row);
    life->cause = read_cause(row);
    life->reason = read_text(row);
    life->priority = read_int(row);
    life->time_limit_ms = read_int(row);
    life->ran_ms = read_int(row);
    birth->array_key = read_int(row);
    birth->task = read_int_or(row, -1);
}

/* Of a job that is none, tasks is 0. */
static void read_array(struct row *row, struct array_row *array)
{
    array->job_key = read_int(row);
    array->tasks = read_int(row);
    array->parallel = read_int(row);
    array->placed = read_int(row);
    array->running = read_int(row);
    array->succeeded = read_int(row);
    array->failed = read_int(row);
    array->canceled = read_int(row);
    array->worst_code = read_int(row);
}

bool columns_array(sqlite3_stmt *statement, struct array_row *ret_array, struct err *err)
{
    struct row row = {statement, 0, NULL};
    read_array(&row, ret_array);
    return read_end(&row, err);
}

bool columns_shown(sqlite3_stmt *statement, bool with_spec, struct job_record *ret_job, struct err *err)
{
    struct row row = {statement, 0, NULL};
    read_job(&row, ret_job);
    ret_job->birth.array_id = read_text(&row);
    read_array(&row, &ret_job->array);
    if (with_spec) {
        ret_job->birth.spec = read_text_of(&row, &ret_job->birth.spec_length);
    }
    return read_end(&row, err);
}

bool columns_live_job(sqlite3_stmt *statement, struct job_record *ret_job, struct err *err)
{
    struct row row = {statement, 0, NULL};
    read_job(&row, ret_job);
    ret_job->birth.spec = read_text_of(&row, &ret_job->birth.spec_length);
    ret_job->life.event_ms = read_int(&row);
    return read_end(&row, err);
}

bool columns_event(sqlite3_stmt *statement, struct event_row *ret_event, struct err *err)
{
    struct row row = {statement, 0, NULL};
    ret_event->job_key = read_int(&row);
    ret_event->seq = read_int(&row);
    ret_event->at_ms = read_int(&row);
    ret_event->kind = read_event_kind(&row);
    ret_event->attempt = read_int(&row);
    ret_event->detail = read_text(&row);
    return read_end(&row, err);
}

static void read_edge(struct row *row, struct dependency_row *dependency)
{
    dependency->job_key = read_int(row);
    dependency->on_key = read_int(row);
    dependency->kind = read_dependency(row);
}

bool columns_dependency(sqlite3_stmt *statement, struct dependency_row *ret_dependency, struct err *err)
{
    struct row row = {statement, 0, NULL};
    read_edge(&row, ret_dependency);
    return read_end(&row, err);
}

bool columns_dependency_with_job(sqlite3_stmt *statement, struct dependency_record *ret_dependency,
                                 struct err *err)
{
    struct row row = {statement, 0, NULL};
    read_edge(&row, &ret_dependency->row);
    ret_dependency->id = read_text(&row);
    ret_dependency->state = read_job_state(&row);
    ret_dependency->started = read_int(&row) != 0;
    return read_end(&row, err);
}

static void read_attempt_timing(struct row *row, struct attempt_timing *timing)
{
    int64_t numbers[STORE_ATTEMPT_TIMING_BYTES / sizeof(int64_t)];
    read_numbers(row, numbers, sizeof numbers / sizeof numbers[0]);
    *timing = (struct attempt_timing){.received_us = numbers[0],
                                      .queued_us = numbers[1],
                                      .placed_us = numbers[2],
                                      .started_us = numbers[3],
                                      .settled_us = numbers[4]};
}

bool columns_attempt(sqlite3_stmt *statement, struct attempt_row *ret_attempt, struct err *err)
{
    struct row row = {statement, 0, NULL};
    ret_attempt->epoch = (uint64_t)read_int(&row);
    ret_attempt->job_key = read_int(&row);
    ret_attempt->number = read_int(&row);
    ret_attempt->pool = read_text(&row);
    ret_attempt->created_ms = read_int(&row);
    ret_attempt->state = read_attempt_state(&row);
    ret_attempt->cause = read_cause(&row);
    ret_attempt->cause_text = read_text(&row);
    ret_attempt->master_address = read_text(&row);
    ret_attempt->master_port = read_int(&row);
    ret_attempt->started_ms = read_int(&row);
    ret_attempt->ended_ms = read_int(&row);
    ret_attempt->failed_rank = read_int(&row);
    ret_attempt->failed_code = read_int(&row);
    ret_attempt->claim = read_claim(&row);
    ret_attempt->warned_ms = read_int(&row);
    ret_attempt->checkpoint_ms = read_int(&row);
    ret_attempt->gpu_type = read_text(&row);
    read_attempt_timing(&row, &ret_attempt->timing);
    return read_end(&row, err);
}

static void read_member_timing(struct row *row, struct member_timing *timing)
{
    int64_t numbers[STORE_MEMBER_TIMING_BYTES / sizeof(int64_t)];
    read_numbers(row, numbers, sizeof numbers / sizeof numbers[0]);
    *timing = (struct member_timing){.queued_us = numbers[0],
                                     .started_us = numbers[1],
                                     .ordered_us = numbers[2],
                                     .told_us = numbers[3],
                                     .ready_us = numbers[4],
                                     .heard_us = numbers[5],
                                     .prepared_us = numbers[6],
                                     .begun_us = numbers[7],
                                     .running_us = numbers[8],
                                     .output_us = numbers[9],
                                     .ended_us = numbers[10]};
    timing->start = read_text(row);
    timing->marks = read_text(row);
}

bool columns_member(sqlite3_stmt *statement, struct member_row *ret_member, struct err *err)
{
    struct row row = {statement, 0, NULL};
    ret_member->epoch = (uint64_t)read_int(&row);
    ret_member->node_rank = read_int(&row);
    ret_member->node = read_text(&row);
    ret_member->first_rank = read_int(&row);
    ret_member->local_ranks = read_int(&row);
    ret_member->devices = read_text(&row);
    ret_member->state = read_member_state(&row);
    read_member_timing(&row, &ret_member->timing);
    return read_end(&row, err);
}

bool columns_rank(sqlite3_stmt *statement, struct rank_row *ret_rank, struct err *err)
{
    struct row row = {statement, 0, NULL};
    ret_rank->epoch = (uint64_t)read_int(&row);
    ret_rank->rank = read_int(&row);
    ret_rank->code = read_int(&row);
    ret_rank->signal = read_int(&row);
    ret_rank->at_ms = read_int(&row);
    ret_rank->out_bytes = read_int(&row);
    ret_rank->err_bytes = read_int(&row);
    return read_end(&row, err);
}

bool columns_result(sqlite3_stmt *statement, struct result_row *ret_result, const void **ret_bytes,
                    struct err *err)
{
    struct row row = {statement, 0, NULL};
    ret_result->epoch = (uint64_t)read_int(&row);
    ret_result->rank = read_int(&row);
    ret_result->kind = read_result_kind(&row);
    ret_result->size = read_int(&row);
    ret_result->hash = read_digest_or_null(&row);
    ret_result->json = read_text(&row);
    *ret_bytes = read_blob(&row);
    return read_end(&row, err);
}

bool columns_epoch(sqlite3_stmt *statement, struct epoch_record *ret_epoch, struct err *err)
{
    struct row row = {statement, 0, NULL};
    const char *id = read_text(&row);
    size_t length = strlen(id);
    if (length >= sizeof ret_epoch->job_id) {
        return err_set(err, ERR_INTERNAL, "the database holds the job id \"%s\", which is too long", id);
    }
    memcpy(ret_epoch->job_id, id, length + 1);
    ret_epoch->job_key = read_int(&row);
    ret_epoch->number = read_int(&row);
    ret_epoch->state = read_attempt_state(&row);
    return read_end(&row, err);
}

static void read_node(struct row *row, struct node_row *node)
{
    node->name = read_text(row);
    node->boot_id = read_text(row);
    node->host_id = read_text(row);
    node->version = read_text(row);
    node->address = read_text(row);
    node->pool = read_text(row);
    node->pool_kind = read_pool_kind(row);
    node->state = read_node_state(row);
    node->reason = read_text(row);
    node->isolation = read_isolation(row);
    node->slots = read_int(row) != 0;
    node->devices = read_text(row);
    node->registered_ms = read_int(row);
    node->labels = read_text(row);
    node->expires_at_ms = read_int(row);
    node->agent_expires_at_ms = read_int(row);
    node->agent_id = read_text(row);
}

bool columns_node(sqlite3_stmt *statement, struct node_row *ret_node, struct err *err)
{
    struct row row = {statement, 0, NULL};
    read_node(&row, ret_node);
    return read_end(&row, err);
}

bool columns_node_with_use(sqlite3_stmt *statement, struct node_row *ret_node, int64_t *ret_used,
                           struct err *err)
{
    struct row row = {statement, 0, NULL};
    read_node(&row, ret_node);
    *ret_used = read_int(&row);
    return read_end(&row, err);
}

bool columns_window(sqlite3_stmt *statement, struct window_row *ret_window, struct err *err)
{
    struct row row = {statement, 0, NULL};
    ret_window->id = read_text(&row);
    ret_window->nodes = read_text(&row);
    ret_window->pool = read_text(&row);
    ret_window->from_ms = read_int(&row);
    ret_window->until_ms = read_int(&row);
    ret_window->hard = read_int(&row) != 0;
    ret_window->reason = read_text(&row);
    ret_window->owner = read_text(&row);
    ret_window->created_ms = read_int(&row);
    return read_end(&row, err);
}

bool columns_history(sqlite3_stmt *statement, struct history_row *ret_history, struct err *err)
{
    struct row row = {statement, 0, NULL};
    ret_history->project = read_text(&row);
    ret_history->owner = read_text(&row);
    ret_history->name = read_text(&row);
    ret_history->gpus = read_int(&row);
    ret_history->limited = read_int(&row) != 0;
    ret_history->count = read_int(&row);
    ret_history->ran_ms = read_int(&row);
    ret_history->limit_ms = read_int(&row);
    ret_history->error_percent = read_int(&row);
    return read_end(&row, err);
}

bool columns_usage(sqlite3_stmt *statement, struct usage_row *ret_usage, struct err *err)
{
    struct row row = {statement, 0, NULL};
    const char *project = read_text(&row), *owner = read_text(&row);
    ret_usage->project = project[0] != '\0' ? project : NULL;
    ret_usage->owner = owner[0] != '\0' ? owner : NULL;
    ret_usage->gpu_ms = read_real(&row);
    ret_usage->spent_ms = read_real(&row);
    ret_usage->at_ms = read_int(&row);
    return read_end(&row, err);
}

bool columns_limits(sqlite3_stmt *statement, struct limits_row *ret_limits, struct err *err)
{
    struct row row = {statement, 0, NULL};
    ret_limits->kind = read_account_kind(&row);
    ret_limits->name = read_text(&row);
    ret_limits->limits = read_text(&row);
    return read_end(&row, err);
}

bool columns_token(sqlite3_stmt *statement, struct token_row *ret_token, struct err *err)
{
    struct row row = {statement, 0, NULL};
    ret_token->id = read_text(&row);
    read_digest(&row, ret_token->secret);
    ret_token->role = read_role(&row);
    ret_token->owner = read_text(&row);
    ret_token->created_ms = read_int(&row);
    ret_token->expires_ms = read_int(&row);
    ret_token->revoked = read_int(&row) != 0;
    ret_token->node = read_text(&row);
    return read_end(&row, err);
}

bool columns_join(sqlite3_stmt *statement, struct join_row *ret_join, struct err *err)
{
    struct row row = {statement, 0, NULL};
    ret_join->id = read_text(&row);
    read_digest(&row, ret_join->secret);
    ret_join->pool = read_text(&row);
    ret_join->reserved = read_int(&row) != 0;
    ret_join->owner = read_text(&row);
    ret_join->created_ms = read_int(&row);
    ret_join->expires_ms = read_int(&row);
    ret_join->node = read_text(&row);
    ret_join->token = read_text(&row);
    return read_end(&row, err);
}

bool columns_blob(sqlite3_stmt *statement, struct blob_row *ret_blob, struct err *err)
{
    struct row row = {statement, 0, NULL};
    read_digest(&row, ret_blob->hash);
    ret_blob->size = read_int(&row);
    ret_blob->bytes = read_blob(&row);
    ret_blob->created_ms = read_int(&row);
    return read_end(&row, err);
}

bool columns_lost(sqlite3_stmt *statement, int64_t *ret_key, struct lost_row *ret_lost, struct err *err)
{
    struct row row = {statement, 0, NULL};
    *ret_key = read_int(&row);
    ret_lost->epoch = (uint64_t)read_int(&row);
    ret_lost->node = read_text(&row);
    ret_lost->job_id = read_text(&row);
    ret_lost->known = read_int(&row) != 0;
    ret_lost->began_ms = read_int(&row);
    ret_lost->ended_ms = read_int(&row);
    ret_lost->code = read_int(&row);
    return read_end(&row, err);
}

bool columns_facts(sqlite3_stmt *statement, struct queue_facts *ret_facts, struct err *err)
{
    struct row row = {statement, 0, NULL};
    ret_facts->ahead = read_int(&row);
    ret_facts->registered = read_int(&row);
    ret_facts->used = read_int(&row);
    ret_facts->drained = read_int(&row);
    return read_end(&row, err);
}

bool columns_scope(sqlite3_stmt *statement, int64_t *ret_key, uint8_t ret_scope[32], struct err *err)
{
    struct row row = {statement, 0, NULL};
    *ret_key = read_int(&row);
    read_digest(&row, ret_scope);
    return read_end(&row, err);
}

bool columns_reply(sqlite3_stmt *statement, struct reply_row *ret_reply, struct err *err)
{
    struct row row = {statement, 0, NULL};
    read_digest(&row, ret_reply->scope);
    read_digest(&row, ret_reply->body);
    ret_reply->status = read_int(&row);
    ret_reply->answer = read_text_of(&row, &ret_reply->answer_length);
    return read_end(&row, err);
}
