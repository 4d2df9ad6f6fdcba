/* SPDX-License-Identifier: Apache-2.0 */
/* Writes rows: one statement for most kinds of change, and one for several rows of submissions. An insert
 * makes a row and an update finds one; otherwise the change is a defect and the transaction fails. Nothing is
 * committed here. */
#include "daemon/store/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/handle.h"
#include "daemon/store/query.h"
#include "proto/limits_controller.h"
#include "proto/wire/audit.h"

/* How a kind of change is written: the columns of its row with one of the roles are parameters. */
static const struct write {
    enum sql sql;
    enum table_id table;
    unsigned roles;
    bool may_miss; /* it need not touch a row */
} writes[] = {
    [CHANGE_JOB_UPDATE] = {SQL_UPDATE_JOB, TABLE_jobs, ROLE_KEY | ROLE_LIFE, false},
    [CHANGE_ARRAY_PUT] = {SQL_PUT_ARRAY, TABLE_arrays, ROLE_ALL, false},
    [CHANGE_DEPENDENCY_INSERT] = {SQL_INSERT_DEPENDENCY, TABLE_dependencies, ROLE_ALL, false},
    [CHANGE_ATTEMPT_INSERT] = {SQL_INSERT_ATTEMPT, TABLE_attempts, ROLE_ALL, false},
    [CHANGE_ATTEMPT_UPDATE] = {SQL_UPDATE_ATTEMPT, TABLE_attempts, ROLE_KEY | ROLE_LIFE, false},
    [CHANGE_MEMBER_INSERT] = {SQL_INSERT_MEMBER, TABLE_members, ROLE_ALL, false},
    [CHANGE_MEMBER_UPDATE] = {SQL_UPDATE_MEMBER, TABLE_members, ROLE_KEY | ROLE_LIFE, false},
    [CHANGE_RANK_PUT] = {SQL_PUT_RANK, TABLE_ranks, ROLE_ALL, false},
    [CHANGE_RESULT_PUT] = {SQL_PUT_RESULT, TABLE_results, ROLE_ALL, false},
    [CHANGE_NODE_PUT] = {SQL_PUT_NODE, TABLE_nodes, ROLE_ALL, false},
    [CHANGE_NODE_DELETE] = {SQL_DELETE_NODE, TABLE_nodes, ROLE_KEY, false},
    [CHANGE_TOKEN_INSERT] = {SQL_INSERT_TOKEN, TABLE_tokens, ROLE_ALL, false},
    [CHANGE_TOKEN_REVOKE] = {SQL_REVOKE_TOKEN, TABLE_tokens, ROLE_KEY, false},
    [CHANGE_TOKEN_END] = {0},
    [CHANGE_TOKEN_USE] = {0},
    [CHANGE_TOKENS_RETIRE] = {0},
    [CHANGE_JOIN_INSERT] = {SQL_INSERT_JOIN, TABLE_joins, ROLE_ALL, false},
    [CHANGE_JOIN_USE] = {SQL_USE_JOIN, TABLE_joins, ROLE_KEY | ROLE_LIFE, false},
    [CHANGE_BLOB_PUT] = {SQL_PUT_BLOB, TABLE_blobs, ROLE_ALL, true},       /* a row that is there stays */
    [CHANGE_BLOB_DELETE] = {SQL_DELETE_BLOB, TABLE_blobs, ROLE_ALL, true}, /* one that is used stays */
    [CHANGE_USE_PUT] = {SQL_PUT_USE, TABLE_uses, ROLE_ALL, true},          /* a spec may name one twice */
    [CHANGE_UPLOAD_PUT] = {SQL_PUT_UPLOAD, TABLE_uploads, ROLE_ALL, false},
    [CHANGE_HISTORY_PUT] = {SQL_PUT_HISTORY, TABLE_history, ROLE_ALL, false},
    [CHANGE_USAGE_PUT] = {SQL_PUT_USAGE, TABLE_usage, ROLE_ALL, false},
    [CHANGE_USAGE_DELETE] = {SQL_DELETE_USAGE, TABLE_usage, ROLE_KEY, true}, /* never used: no row */
    [CHANGE_HOUR_ADD] = {SQL_ADD_HOUR, TABLE_hours, ROLE_ALL, false},
    [CHANGE_LIMITS_PUT] = {SQL_PUT_LIMITS, TABLE_limits, ROLE_ALL, false},
    [CHANGE_LIMITS_DELETE] = {SQL_DELETE_LIMITS, TABLE_limits, ROLE_KEY, false},
    [CHANGE_WINDOW_INSERT] = {SQL_INSERT_WINDOW, TABLE_windows, ROLE_ALL, false},
    [CHANGE_WINDOW_DELETE] = {SQL_DELETE_WINDOW, TABLE_windows, ROLE_KEY, false},
    [CHANGE_WEBHOOK_PUT] = {SQL_PUT_WEBHOOK, TABLE_webhooks, ROLE_ALL, false},
    [CHANGE_WEBHOOK_DELETE] = {SQL_DELETE_WEBHOOK, TABLE_webhooks, ROLE_KEY, false},
    [CHANGE_SECRET_PUT] = {SQL_PUT_SECRET, TABLE_secrets, ROLE_ALL, false},
    [CHANGE_SECRET_SEAL] = {SQL_UPDATE_SECRET, TABLE_secrets, ROLE_KEY | ROLE_LIFE, true},
    [CHANGE_SECRET_DELETE] = {SQL_DELETE_SECRET, TABLE_secrets, ROLE_KEY, true},
    [CHANGE_SCHEDULE_INSERT] = {SQL_INSERT_SCHEDULE, TABLE_schedules, ROLE_ALL, false},
    [CHANGE_SCHEDULE_UPDATE] = {SQL_UPDATE_SCHEDULE, TABLE_schedules, ROLE_KEY | ROLE_LIFE, true},
    [CHANGE_SCHEDULE_RUN] = {0},
    [CHANGE_SCHEDULE_DELETE] = {SQL_DELETE_SCHEDULE, TABLE_schedules, ROLE_KEY, true},
    [CHANGE_SCHEDULE_USE_PUT] = {SQL_PUT_SCHEDULE_USE, TABLE_schedule_uses, ROLE_ALL, true}, /* twice */
    [CHANGE_DELIVERY_INSERT] = {SQL_INSERT_DELIVERY, TABLE_deliveries, ROLE_ALL, false},
    [CHANGE_DELIVERY_UPDATE] = {SQL_UPDATE_DELIVERY, TABLE_deliveries, ROLE_KEY | ROLE_LIFE, true},
    [CHANGE_AUDIT_INSERT] = {SQL_INSERT_AUDIT, TABLE_audit, ROLE_ALL, false},
    [CHANGE_DELIVERIES_TRIM] = {0},
    [CHANGE_LOST_PUT] = {SQL_PUT_LOST, TABLE_lost, ROLE_ALL, true}, /* none above the limit */
};

static bool run(struct query *query, bool may_miss, struct err *err)
{
    int changed;
    return query_run(query, &changed, err) &&
           (changed == 1 || may_miss ||
            err_set(err, ERR_INTERNAL, "a row that shall change is not in the database"));
}

/* The row's statement. */
static bool write_row(struct store *store, const struct write *write, const void *row, struct err *err)
{
    struct query query = query_begin(&store->connection, write->sql);
    query_bind_row(&query, write->table, row, write->roles);
    return run(&query, write->may_miss, err);
}

static void note_key(struct store *store, int64_t key)
{
    if (key >= store->next_job_key) {
        store->next_job_key = key + 1;
    }
}

/* A task copies the columns that it shares with its array, and has no spec of its own. */
static bool insert_job(struct store *store, const struct job_row *job, struct err *err)
{
    static const struct write task = {SQL_INSERT_TASK, TABLE_jobs, ROLE_ALL & ~ROLE_SHARED, false};
    const struct job_birth *birth = &job->birth;
    assert(birth->key == job->life.key);
    note_key(store, birth->key);
    store->job_index.credit += JOB_INDEX_PACE;
    if (birth->array_key != 0) {
        return gather_flush(&store->gather, &store->connection, err) && write_row(store, &task, job, err);
    }
    const struct spec_row spec = {
        .job_key = birth->key, .shown = birth->shown, .spec = birth->spec, .spec_length = birth->spec_length};
    return gather_add(&store->gather, &store->connection, GATHER_JOB, job, err) &&
           gather_add(&store->gather, &store->connection, GATHER_SPEC, &spec, err);
}

/* One key has one answer: the writer looks before it inserts, so a second answer is a defect. */
static bool expect_no_reply(struct store *store, const uint8_t scope[32], struct err *err)
{
    bool found;
    struct stored_reply earlier = {0};
    bool ok = store_find_reply(store, scope, &found, &earlier, err);
    free(earlier.answer);
    return ok && (!found || err_set(err, ERR_INTERNAL, "a second reply under one Idempotency-Key"));
}

static bool insert_reply(struct store *store, const struct reply_row *reply, struct err *err)
{
    if (!expect_no_reply(store, reply->scope, err)) {
        return false;
    }
    struct reply_row row = *reply;
    row.key = store->last_reply_key + 1;
    if (!gather_add(&store->gather, &store->connection, GATHER_REPLY, &row, err)) {
        return false;
    }
    store->last_reply_key++;
    scopes_add(&store->scopes, reply->scope, store->last_reply_key);
    return true;
}

/* Appends to the chain. */
static bool insert_audit(struct store *store, const struct audit_row *audit, struct err *err)
{
    struct audit_row row = *audit;
    row.seq = store->audit_seq + 1;
    const struct audit_view view = store_audit_view(&row);
    audit_hash(store->audit_hash, &view, row.hash);
    if (!gather_add(&store->gather, &store->connection, GATHER_AUDIT, &row, err)) {
        return false;
    }
    store->audit_seq = row.seq;
    memcpy(store->audit_hash, row.hash, sizeof row.hash);
    return true;
}

static bool trim_audit(struct store *store, const struct audit_row *bound, struct err *err)
{
    struct query query = query_begin(&store->connection, SQL_TRIM_AUDIT);
    query_bind_number(&query, bound->at_ms);
    query_bind_number(&query, RETENTION_STEP_BLOBS);
    query_bind_number(&query, bound->seq);
    return query_run(&query, NULL, err);
}

static bool delete_old_joins(struct store *store, int64_t now_ms, struct err *err)
{
    struct query query = query_begin(&store->connection, SQL_DELETE_OLD_JOINS);
    query_bind_number(&query, now_ms - JOIN_KEPT_MS);
    return query_run(&query, NULL, err);
}

static bool end_token(struct store *store, const struct token_row *token, struct err *err)
{
    struct query query = query_begin(&store->connection, SQL_END_TOKEN);
    query_bind_number(&query, token->expires_ms);
    query_bind_text(&query, token->id);
    return run(&query, false, err);
}

/* The newest token of a login stays, so that it is known whose name it is. */
static bool delete_ended_logins(struct store *store, const struct token_row *token, struct err *err)
{
    if (token->subject == NULL) {
        return true;
    }
    struct query query = query_begin(&store->connection, SQL_DELETE_ENDED_LOGINS);
    query_bind_text(&query, token->subject);
    query_bind_number(&query, token->created_ms);
    return query_run(&query, NULL, err);
}

static bool use_token(struct store *store, const struct token_row *token, struct err *err)
{
    struct query query = query_begin(&store->connection, SQL_USE_TOKEN);
    query_bind_number(&query, token->used_ms);
    query_bind_text(&query, token->id);
    return run(&query, false, err);
}

static bool retire_tokens(struct store *store, const struct token_row *token, struct err *err)
{
    struct query query = query_begin(&store->connection, SQL_RETIRE_TOKENS);
    query_bind_text(&query, token->node);
    query_bind_text(&query, token->id);
    return query_run(&query, NULL, err);
}

static bool revoke_tokens_of(struct store *store, const char *node, struct err *err)
{
    struct query query = query_begin(&store->connection, SQL_REVOKE_TOKENS_OF_NODE);
    query_bind_text(&query, node);
    return query_run(&query, NULL, err);
}

static bool delete_upload(struct store *store, const struct use_row *use, struct err *err)
{
    struct query query = query_begin(&store->connection, SQL_DELETE_UPLOAD);
    query_bind_number(&query, use->job_key);
    query_bind_text(&query, use->hash);
    return query_run(&query, NULL, err);
}

static bool put_lost(struct store *store, const struct lost_row *lost, struct err *err)
{
    struct query query = query_begin(&store->connection, SQL_PUT_LOST);
    query_bind_row(&query, TABLE_lost, lost, ROLE_ALL);
    query_bind_number(&query, LIMIT_LOST_ROWS);
    return run(&query, writes[CHANGE_LOST_PUT].may_miss, err);
}

/* The job is the newest of the node, or has one more attempt there. */
static bool put_node_job(struct store *store, const struct member_row *member, struct err *err)
{
    struct query query = query_begin(&store->connection, SQL_PUT_NODE_JOB);
    query_bind_text(&query, member->node);
    query_bind_number(&query, member->node_rank);
    query_bind_number(&query, (int64_t)member->attempt_id);
    return run(&query, false, err);
}

/* Runs a statement whose parameters are a key and, unless it is 0, a bound. */
static bool run_for(struct store *store, enum sql sql, int64_t key, int64_t bound, int *ret_changed,
                    struct err *err)
{
    struct query query = query_begin(&store->connection, sql);
    query_bind_number(&query, key);
    if (bound > 0) {
        query_bind_number(&query, bound);
    }
    return query_run(&query, ret_changed, err);
}

static bool run_each(struct store *store, const enum sql *statements, size_t count, int64_t key,
                     int64_t bound, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!run_for(store, statements[i], key, bound, NULL, err)) {
            return false;
        }
    }
    return true;
}

/* Deletes the rows by which a job is found. The rest of its rows is left to its removal. A job that is gone
 * already stays so. */
static bool delete_job(struct store *store, int64_t key, struct err *err)
{
    static const enum sql statements[] = {SQL_DELETE_SPEC,         SQL_DELETE_ARRAY, SQL_DELETE_USES,
                                          SQL_DELETE_DEPENDENCIES, SQL_NOTE_REMOVED, SQL_DELETE_JOB_ID,
                                          SQL_DELETE_JOB};
    int changed;
    return run_for(store, SQL_INSERT_REMOVAL, key, 0, &changed, err) &&
           (changed == 0 ||
            run_each(store, statements, sizeof statements / sizeof statements[0], key, 0, err));
}

static bool put_number(struct store *store, const char *name, int64_t value, struct err *err)
{
    struct query query = query_begin(&store->connection, SQL_PUT_META);
    query_bind_number(&query, value);
    query_bind_text(&query, name);
    return run(&query, false, err);
}

static bool age_replies(struct store *store, int64_t elapsed_ms, struct err *err)
{
    struct scopes *scopes = &store->scopes;
    bool moved = scopes_age(scopes, elapsed_ms, store->last_reply_key);
    return put_number(store, "replies_age_ms", scopes->age_ms, err) &&
           (!moved || (put_number(store, "replies_mark", scopes->mark_key, err) &&
                       put_number(store, "replies_forgotten", scopes->forgotten_key, err)));
}

/* First answers that may still be given again stay. */
static bool trim_replies(struct store *store, int64_t key, struct err *err)
{
    int64_t forgotten = store->scopes.forgotten_key;
    return run_for(store, SQL_TRIM_REPLIES, key < forgotten ? key : forgotten, 0, NULL, err);
}

/* Tasks of an array are removed like jobs: each gets a removal of its own. */
static bool remove_piece(struct store *store, int64_t key, struct err *err)
{
    static const enum sql parts[] = {SQL_DELETE_RESULTS, SQL_DELETE_RANKS,    SQL_DELETE_NODE_JOBS,
                                     SQL_DELETE_MEMBERS, SQL_DELETE_ATTEMPTS, SQL_DELETE_EVENTS,
                                     SQL_REMOVE_TASKS,   SQL_DELETE_TASK_IDS, SQL_DELETE_TASKS};
    return run_each(store, parts, sizeof parts / sizeof parts[0], key, RETENTION_PIECE_ROWS, err) &&
           run_for(store, SQL_DELETE_REMOVAL, key, 0, NULL, err);
}

/* Each step of the statement puts the last page of the file in the place of a free one. */
static bool shrink(struct store *store, int64_t pages, struct err *err)
{
    autoquery struct query query = query_begin(&store->connection, SQL_SHRINK);
    while (pages > 0 && query_step(&query, err)) {
        pages--;
    }
    return !query.failed;
}

static bool delete_deliveries(struct store *store, const char *webhook, struct err *err)
{
    struct query query = query_begin(&store->connection, SQL_DELETE_DELIVERIES);
    query_bind_text(&query, webhook);
    return query_run(&query, NULL, err);
}

static bool delete_schedule_uses(struct store *store, const char *schedule, struct err *err)
{
    struct query query = query_begin(&store->connection, SQL_DELETE_SCHEDULE_USES);
    query_bind_text(&query, schedule);
    return query_run(&query, NULL, err);
}

static bool run_schedule(struct store *store, const struct schedule_row *row, struct err *err)
{
    struct query query = query_begin(&store->connection, SQL_RUN_SCHEDULE);
    query_bind_text(&query, row->id);
    query_bind_number(&query, row->due_ms);
    query_bind_number(&query, row->ran_ms);
    query_bind_text(&query, schedule_outcome_text(row->outcome));
    query_bind_text(&query, row->job);
    query_bind_text(&query, row->error);
    query_bind_number(&query, row->paused);
    query_bind_text(&query, row->reason);
    query_bind_number(&query, row->next_ms);
    return query_run(&query, NULL, err);
}

/* Those who are members of a later project of that name must not get them. */
static bool delete_secrets(struct store *store, const struct limits_row *limits, struct err *err)
{
    if (limits->kind != ACCOUNT_PROJECT) {
        return true;
    }
    struct query query = query_begin(&store->connection, SQL_DELETE_SECRETS_OF_PROJECT);
    query_bind_text(&query, limits->name);
    return query_run(&query, NULL, err);
}

static bool give_up_deliveries(struct store *store, const struct delivery_row *row, struct err *err)
{
    struct query query = query_begin(&store->connection, SQL_GIVE_UP_DELIVERIES);
    query_bind_text(&query, row->webhook);
    query_bind_number(&query, row->key);
    query_bind_text(&query, row->error);
    return query_run(&query, NULL, err);
}

/* Writes the row, and the other rows that change with it. */
static bool apply(struct store *store, const struct change *change, struct err *err)
{
    if ((size_t)change->kind >= sizeof writes / sizeof writes[0]) {
        return err_set(err, ERR_INTERNAL, "a change of a kind that does not exist");
    }
    if (change->kind == CHANGE_JOB_INSERT) {
        return insert_job(store, &change->job, err);
    }
    if (change->kind == CHANGE_REPLY_INSERT) {
        return insert_reply(store, &change->reply, err);
    }
    if (change->kind == CHANGE_EVENT_INSERT) {
        return gather_add(&store->gather, &store->connection, GATHER_EVENT, &change->event, err);
    }
    if (change->kind == CHANGE_AUDIT_INSERT) {
        return insert_audit(store, &change->audit, err);
    }
    if (!gather_flush(&store->gather, &store->connection, err)) {
        return false;
    }
    if (change->kind == CHANGE_LOST_PUT) {
        return put_lost(store, &change->lost, err);
    }
    if (change->kind == CHANGE_JOB_DELETE) {
        return delete_job(store, change->job.life.key, err);
    }
    if (change->kind == CHANGE_REPLIES_TRIM) {
        return trim_replies(store, change->reply.key, err);
    }
    if (change->kind == CHANGE_REPLIES_AGE) {
        return age_replies(store, change->reply.at_ms, err);
    }
    if (change->kind == CHANGE_UPLOADS_TRIM) {
        return run_for(store, SQL_TRIM_UPLOADS, change->upload.at_ms, RETENTION_STEP_BLOBS, NULL, err);
    }
    if (change->kind == CHANGE_HOURS_TRIM) {
        return run_for(store, SQL_TRIM_HOURS, change->hour.hour_ms, 0, NULL, err);
    }
    if (change->kind == CHANGE_DELIVERIES_GIVE_UP) {
        return give_up_deliveries(store, &change->delivery, err);
    }
    if (change->kind == CHANGE_DELIVERIES_TRIM) {
        return run_for(store, SQL_TRIM_DELIVERIES, change->delivery.created_ms, RETENTION_STEP_BLOBS, NULL,
                       err);
    }
    if (change->kind == CHANGE_SCHEDULE_RUN) {
        return run_schedule(store, &change->schedule, err);
    }
    if (change->kind == CHANGE_TOKEN_END) {
        return end_token(store, &change->token, err);
    }
    if (change->kind == CHANGE_TOKEN_USE) {
        return use_token(store, &change->token, err);
    }
    if (change->kind == CHANGE_TOKENS_RETIRE) {
        return retire_tokens(store, &change->token, err);
    }
    if (change->kind == CHANGE_AUDIT_TRIM) {
        return trim_audit(store, &change->audit, err);
    }
    if (change->kind == CHANGE_SHRINK) {
        return shrink(store, change->pages, err);
    }
    if (change->kind == CHANGE_REMOVAL_PIECE) {
        return remove_piece(store, change->removal.job_key, err);
    }
    return (change->kind != CHANGE_JOIN_INSERT || delete_old_joins(store, change->join.created_ms, err)) &&
           (change->kind != CHANGE_TOKEN_INSERT || delete_ended_logins(store, &change->token, err)) &&
           (change->kind != CHANGE_USE_PUT || delete_upload(store, &change->use, err)) &&
           (change->kind != CHANGE_MEMBER_INSERT || put_node_job(store, &change->member, err)) &&
           (change->kind != CHANGE_WEBHOOK_DELETE || delete_deliveries(store, change->webhook.id, err)) &&
           (change->kind != CHANGE_SCHEDULE_DELETE ||
            delete_schedule_uses(store, change->schedule.id, err)) &&
           (change->kind != CHANGE_LIMITS_DELETE || delete_secrets(store, &change->limits, err)) &&
           (change->kind != CHANGE_NODE_DELETE || revoke_tokens_of(store, change->node.name, err)) &&
           write_row(store, &writes[change->kind], &change->job, err);
}

bool store_apply(struct store *store, const struct change *changes, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!apply(store, &changes[i], err)) {
            return false;
        }
    }
    return true;
}
