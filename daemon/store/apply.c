/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the writing of rows: one function a kind of change. It promises that an insert makes a row and an
 * update finds one; when not, the change is a defect and the transaction fails. Nothing is interpreted, and
 * nothing is committed here. */
#include "daemon/store/store.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/handle.h"

/* Runs a statement that must touch exactly one row. */
static bool touch_one(struct store *store, enum sql sql, struct err *err)
{
    if (!connection_run(&store->connection, sql, err)) {
        return false;
    }
    return sqlite3_changes(store->connection.db) == 1 ||
           err_set(err, ERR_INTERNAL, "a row that shall change is not in the database");
}

/* The columns of a job that change, in the order of SQL_INSERT_JOB and SQL_UPDATE_JOB. */
static void bind_life(struct binder *to, const struct job_life *life)
{
    bind_text(to, job_state_text(life->state));
    bind_int(to, life->seq);
    bind_int(to, life->attempt);
    bind_int(to, life->user_failures);
    bind_int(to, life->infra_failures);
    bind_text(to, life->pool);
    bind_int(to, life->started_ms);
    bind_int(to, life->ended_ms);
    bind_int(to, life->exit_code);
    bind_int(to, life->failed_rank);
    bind_text(to, life->failed_node);
    bind_text(to, cause_text(life->cause));
    bind_text(to, life->reason);
    bind_int(to, life->priority);
    bind_int(to, life->time_limit_ms);
    bind_int(to, life->ran_ms);
}

static void note_key(struct store *store, int64_t key)
{
    if (key >= store->next_job_key) {
        store->next_job_key = key + 1;
    }
}

/* What is its array's is copied from there. */
static bool insert_task(struct store *store, const struct job_birth *birth, const struct job_life *life,
                        struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_INSERT_TASK);
    bind_int(&to, birth->key);
    bind_text(&to, birth->id);
    bind_int(&to, birth->created_ms);
    bind_int(&to, birth->array_key);
    bind_int(&to, birth->task);
    bind_life(&to, life);
    note_key(store, birth->key);
    return touch_one(store, SQL_INSERT_TASK, err);
}

static bool put_array(struct store *store, const struct array_row *array, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_PUT_ARRAY);
    bind_int(&to, array->job_key);
    bind_int(&to, array->tasks);
    bind_int(&to, array->parallel);
    bind_int(&to, array->placed);
    bind_int(&to, array->running);
    bind_int(&to, array->succeeded);
    bind_int(&to, array->failed);
    bind_int(&to, array->canceled);
    bind_int(&to, array->worst_code);
    return touch_one(store, SQL_PUT_ARRAY, err);
}

static bool insert_job(struct store *store, const struct job_birth *birth, const struct job_life *life,
                       struct err *err)
{
    assert(birth->key == life->key);
    if (birth->array_key != 0) {
        return insert_task(store, birth, life, err);
    }
    struct binder to = binder_begin(&store->connection, SQL_INSERT_JOB);
    bind_int(&to, birth->key);
    bind_text(&to, birth->id);
    bind_text(&to, birth->owner);
    bind_text(&to, birth->name);
    bind_text(&to, birth->project);
    bind_int(&to, birth->gpus);
    bind_text(&to, birth->gpu_type);
    bind_int(&to, birth->created_ms);
    bind_life(&to, life);
    struct binder spec = binder_begin(&store->connection, SQL_INSERT_SPEC);
    bind_int(&spec, birth->key);
    bind_text(&spec, birth->shown);
    bind_bytes_as_text(&spec, birth->spec, birth->spec_length);
    if (!touch_one(store, SQL_INSERT_JOB, err) || !touch_one(store, SQL_INSERT_SPEC, err)) {
        return false;
    }
    note_key(store, birth->key);
    return true;
}

static bool update_job(struct store *store, const struct job_life *life, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_UPDATE_JOB);
    bind_int(&to, life->key);
    bind_life(&to, life);
    return touch_one(store, SQL_UPDATE_JOB, err);
}

static bool insert_event(struct store *store, const struct event_row *event, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_INSERT_EVENT);
    bind_int(&to, event->job_key);
    bind_int(&to, event->seq);
    bind_int(&to, event->at_ms);
    bind_text(&to, event_kind_text(event->kind));
    bind_int(&to, event->attempt);
    bind_text(&to, event->detail);
    return touch_one(store, SQL_INSERT_EVENT, err);
}

static bool insert_dependency(struct store *store, const struct dependency_row *dependency, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_INSERT_DEPENDENCY);
    bind_int(&to, dependency->job_key);
    bind_int(&to, dependency->on_key);
    bind_text(&to, dependency_text(dependency->kind));
    return touch_one(store, SQL_INSERT_DEPENDENCY, err);
}

/* The numbers of a row that are read and written together: of one size from the first write on, so that no
 * update moves a row. packed lives until the statement has run. */
static void bind_numbers(struct binder *to, const int64_t *numbers, size_t count, uint8_t *packed)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t number = htole64((uint64_t)numbers[i]);
        memcpy(packed + i * sizeof number, &number, sizeof number);
    }
    bind_blob(to, packed, count * sizeof *numbers);
}

static void bind_attempt_timing(struct binder *to, const struct attempt_timing *timing,
                                uint8_t packed[STORE_ATTEMPT_TIMING_BYTES])
{
    const int64_t numbers[] = {timing->received_us, timing->queued_us, timing->placed_us, timing->started_us,
                               timing->settled_us};
    static_assert(sizeof numbers == STORE_ATTEMPT_TIMING_BYTES, "as columns.c reads it");
    bind_numbers(to, numbers, sizeof numbers / sizeof numbers[0], packed);
}

/* The columns of an attempt that change, in the order of SQL_INSERT_ATTEMPT and SQL_UPDATE_ATTEMPT. */
static void bind_progress(struct binder *to, const struct attempt_row *attempt,
                          uint8_t timing[STORE_ATTEMPT_TIMING_BYTES])
{
    bind_text(to, attempt_state_text(attempt->state));
    bind_text(to, cause_text(attempt->cause));
    bind_text(to, attempt->cause_text);
    bind_text(to, attempt->master_address);
    bind_int(to, attempt->master_port);
    bind_int(to, attempt->started_ms);
    bind_int(to, attempt->ended_ms);
    bind_int(to, attempt->failed_rank);
    bind_int(to, attempt->failed_code);
    bind_text(to, claim_text(attempt->claim));
    bind_int(to, attempt->warned_ms);
    bind_int(to, attempt->checkpoint_ms);
    bind_attempt_timing(to, &attempt->timing, timing);
}

static bool insert_attempt(struct store *store, const struct attempt_row *attempt, struct err *err)
{
    uint8_t timing[STORE_ATTEMPT_TIMING_BYTES];
    struct binder to = binder_begin(&store->connection, SQL_INSERT_ATTEMPT);
    bind_int(&to, (int64_t)attempt->epoch);
    bind_int(&to, attempt->job_key);
    bind_int(&to, attempt->number);
    bind_text(&to, attempt->pool);
    bind_text(&to, attempt->gpu_type);
    bind_int(&to, attempt->created_ms);
    bind_progress(&to, attempt, timing);
    return touch_one(store, SQL_INSERT_ATTEMPT, err);
}

static bool update_attempt(struct store *store, const struct attempt_row *attempt, struct err *err)
{
    uint8_t timing[STORE_ATTEMPT_TIMING_BYTES];
    struct binder to = binder_begin(&store->connection, SQL_UPDATE_ATTEMPT);
    bind_int(&to, (int64_t)attempt->epoch);
    bind_progress(&to, attempt, timing);
    return touch_one(store, SQL_UPDATE_ATTEMPT, err);
}

static void bind_member_timing(struct binder *to, const struct member_timing *timing,
                               uint8_t packed[STORE_MEMBER_TIMING_BYTES])
{
    const int64_t numbers[] = {timing->queued_us,  timing->started_us, timing->ordered_us,  timing->told_us,
                               timing->ready_us,   timing->heard_us,   timing->prepared_us, timing->begun_us,
                               timing->running_us, timing->output_us,  timing->ended_us};
    static_assert(sizeof numbers == STORE_MEMBER_TIMING_BYTES, "as columns.c reads it");
    bind_numbers(to, numbers, sizeof numbers / sizeof numbers[0], packed);
    bind_text(to, timing->start);
    bind_text(to, timing->marks);
}

static bool insert_member(struct store *store, const struct member_row *member, struct err *err)
{
    uint8_t timing[STORE_MEMBER_TIMING_BYTES];
    struct binder to = binder_begin(&store->connection, SQL_INSERT_MEMBER);
    bind_int(&to, (int64_t)member->epoch);
    bind_int(&to, member->node_rank);
    bind_text(&to, member->node);
    bind_int(&to, member->first_rank);
    bind_int(&to, member->local_ranks);
    bind_text(&to, member->devices);
    bind_text(&to, member_state_text(member->state));
    bind_member_timing(&to, &member->timing, timing);
    return touch_one(store, SQL_INSERT_MEMBER, err);
}

static bool update_member(struct store *store, const struct member_row *member, struct err *err)
{
    uint8_t timing[STORE_MEMBER_TIMING_BYTES];
    struct binder to = binder_begin(&store->connection, SQL_UPDATE_MEMBER);
    bind_int(&to, (int64_t)member->epoch);
    bind_int(&to, member->node_rank);
    bind_text(&to, member_state_text(member->state));
    bind_member_timing(&to, &member->timing, timing);
    return touch_one(store, SQL_UPDATE_MEMBER, err);
}

static bool put_rank(struct store *store, const struct rank_row *rank, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_PUT_RANK);
    bind_int(&to, (int64_t)rank->epoch);
    bind_int(&to, rank->rank);
    bind_int(&to, rank->code);
    bind_int(&to, rank->signal);
    bind_int(&to, rank->at_ms);
    bind_int(&to, rank->out_bytes);
    bind_int(&to, rank->err_bytes);
    return touch_one(store, SQL_PUT_RANK, err);
}

static bool put_result(struct store *store, const struct result_row *result, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_PUT_RESULT);
    bind_int(&to, (int64_t)result->epoch);
    bind_int(&to, result->rank);
    bind_text(&to, result_kind_text(result->kind));
    bind_int(&to, result->size);
    bind_blob(&to, result->hash, result->hash == NULL ? 0 : 32);
    bind_text(&to, result->json);
    return touch_one(store, SQL_PUT_RESULT, err);
}

static bool put_node(struct store *store, const struct node_row *node, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_PUT_NODE);
    bind_text(&to, node->name);
    bind_text(&to, node->boot_id);
    bind_text(&to, node->host_id);
    bind_text(&to, node->version);
    bind_text(&to, node->address);
    bind_text(&to, node->pool);
    bind_text(&to, pool_kind_text(node->pool_kind));
    bind_text(&to, node_state_text(node->state));
    bind_text(&to, node->reason);
    bind_text(&to, isolation_text(node->isolation));
    bind_int(&to, node->slots);
    bind_text(&to, node->devices);
    bind_int(&to, node->registered_ms);
    bind_text(&to, node->labels);
    bind_int(&to, node->expires_at_ms);
    bind_int(&to, node->agent_expires_at_ms);
    bind_text(&to, node->agent_id != NULL ? node->agent_id : "");
    return touch_one(store, SQL_PUT_NODE, err);
}

/* One key, one answer: whoever inserts has looked before, so a second one is a defect. */
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
    struct binder to = binder_begin(&store->connection, SQL_INSERT_REPLY);
    bind_int(&to, store->last_reply_key + 1);
    bind_blob(&to, reply->scope, sizeof reply->scope);
    bind_blob(&to, reply->body, sizeof reply->body);
    bind_int(&to, reply->job_key);
    bind_int(&to, reply->status);
    bind_int(&to, reply->at_ms);
    bind_bytes_as_text(&to, reply->answer, reply->answer_length);
    if (!touch_one(store, SQL_INSERT_REPLY, err)) {
        return false;
    }
    store->last_reply_key++;
    scopes_add(&store->scopes, reply->scope, store->last_reply_key);
    return true;
}

static bool insert_token(struct store *store, const struct token_row *token, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_INSERT_TOKEN);
    bind_text(&to, token->id);
    bind_blob(&to, token->secret, sizeof token->secret);
    bind_text(&to, role_text(token->role));
    bind_text(&to, token->owner);
    bind_int(&to, token->created_ms);
    bind_int(&to, token->expires_ms);
    bind_int(&to, token->revoked);
    bind_text(&to, token->node);
    return touch_one(store, SQL_INSERT_TOKEN, err);
}

static bool insert_join(struct store *store, const struct join_row *join, struct err *err)
{
    struct binder old = binder_begin(&store->connection, SQL_DELETE_OLD_JOINS);
    bind_int(&old, join->created_ms - JOIN_KEPT_MS);
    if (!connection_run(&store->connection, SQL_DELETE_OLD_JOINS, err)) {
        return false;
    }
    struct binder to = binder_begin(&store->connection, SQL_INSERT_JOIN);
    bind_text(&to, join->id);
    bind_blob(&to, join->secret, sizeof join->secret);
    bind_text(&to, join->pool);
    bind_int(&to, join->reserved);
    bind_text(&to, join->owner);
    bind_int(&to, join->created_ms);
    bind_int(&to, join->expires_ms);
    return touch_one(store, SQL_INSERT_JOIN, err);
}

static bool use_join(struct store *store, const struct join_row *join, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_USE_JOIN);
    bind_text(&to, join->id);
    bind_text(&to, join->node);
    bind_text(&to, join->token);
    return touch_one(store, SQL_USE_JOIN, err);
}

static bool delete_node(struct store *store, const struct node_row *node, struct err *err)
{
    struct binder tokens = binder_begin(&store->connection, SQL_REVOKE_TOKENS_OF_NODE);
    bind_text(&tokens, node->name);
    if (!connection_run(&store->connection, SQL_REVOKE_TOKENS_OF_NODE, err)) {
        return false;
    }
    struct binder to = binder_begin(&store->connection, SQL_DELETE_NODE);
    bind_text(&to, node->name);
    return touch_one(store, SQL_DELETE_NODE, err);
}

static bool revoke_token(struct store *store, const struct token_row *token, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_REVOKE_TOKEN);
    bind_text(&to, token->id);
    return touch_one(store, SQL_REVOKE_TOKEN, err);
}

static bool put_blob(struct store *store, const struct blob_row *blob, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_PUT_BLOB);
    bind_blob(&to, blob->hash, sizeof blob->hash);
    bind_int(&to, blob->size);
    bind_blob(&to, blob->bytes, blob->bytes == NULL ? 0 : (size_t)blob->size);
    bind_int(&to, blob->created_ms);
    return connection_run(&store->connection, SQL_PUT_BLOB, err); /* a row that is there stays */
}

static bool put_history(struct store *store, const struct history_row *history, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_PUT_HISTORY);
    bind_text(&to, history->project);
    bind_text(&to, history->owner);
    bind_text(&to, history->name);
    bind_int(&to, history->gpus);
    bind_int(&to, history->limited);
    bind_int(&to, history->count);
    bind_int(&to, history->ran_ms);
    bind_int(&to, history->limit_ms);
    bind_int(&to, history->error_percent);
    return touch_one(store, SQL_PUT_HISTORY, err);
}

static void bind_user(struct binder *to, const struct usage_row *usage)
{
    bind_text(to, usage->project != NULL ? usage->project : "");
    bind_text(to, usage->owner != NULL ? usage->owner : "");
}

static bool put_usage(struct store *store, const struct usage_row *usage, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_PUT_USAGE);
    bind_user(&to, usage);
    bind_real(&to, usage->gpu_ms);
    bind_real(&to, usage->spent_ms);
    bind_int(&to, usage->at_ms);
    return touch_one(store, SQL_PUT_USAGE, err);
}

static bool delete_usage(struct store *store, const struct usage_row *usage, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_DELETE_USAGE);
    bind_user(&to, usage);
    return connection_run(&store->connection, SQL_DELETE_USAGE, err); /* what was never used has no row */
}

static bool put_limits(struct store *store, const struct limits_row *limits, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_PUT_LIMITS);
    bind_text(&to, account_kind_text(limits->kind));
    bind_text(&to, limits->name);
    bind_text(&to, limits->limits);
    return touch_one(store, SQL_PUT_LIMITS, err);
}

static bool delete_limits(struct store *store, const struct limits_row *limits, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_DELETE_LIMITS);
    bind_text(&to, account_kind_text(limits->kind));
    bind_text(&to, limits->name);
    return touch_one(store, SQL_DELETE_LIMITS, err);
}

static bool insert_window(struct store *store, const struct window_row *window, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_INSERT_WINDOW);
    bind_text(&to, window->id);
    bind_text(&to, window->nodes);
    bind_text(&to, window->pool);
    bind_int(&to, window->from_ms);
    bind_int(&to, window->until_ms);
    bind_int(&to, window->hard);
    bind_text(&to, window->reason);
    bind_text(&to, window->owner);
    bind_int(&to, window->created_ms);
    return touch_one(store, SQL_INSERT_WINDOW, err);
}

static bool delete_window(struct store *store, const struct window_row *window, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_DELETE_WINDOW);
    bind_text(&to, window->id);
    return touch_one(store, SQL_DELETE_WINDOW, err);
}

static bool put_lost(struct store *store, const struct lost_row *lost, struct err *err)
{
    struct binder to = binder_begin(&store->connection, SQL_PUT_LOST);
    bind_int(&to, (int64_t)lost->epoch);
    bind_text(&to, lost->node);
    bind_text(&to, lost->job_id);
    bind_int(&to, lost->known);
    bind_int(&to, lost->began_ms);
    bind_int(&to, lost->ended_ms);
    bind_int(&to, lost->code);
    bind_int(&to, LIMIT_LOST_ROWS);
    return connection_run(&store->connection, SQL_PUT_LOST, err); /* none above the limit */
}

static bool apply(struct store *store, const struct change *change, struct err *err)
{
    switch (change->kind) {
    case CHANGE_JOB_INSERT:
        return insert_job(store, &change->job.birth, &change->job.life, err);
    case CHANGE_JOB_UPDATE:
        return update_job(store, &change->job.life, err);
    case CHANGE_ARRAY_PUT:
        return put_array(store, &change->array, err);
    case CHANGE_EVENT_INSERT:
        return insert_event(store, &change->event, err);
    case CHANGE_DEPENDENCY_INSERT:
        return insert_dependency(store, &change->dependency, err);
    case CHANGE_ATTEMPT_INSERT:
        return insert_attempt(store, &change->attempt, err);
    case CHANGE_ATTEMPT_UPDATE:
        return update_attempt(store, &change->attempt, err);
    case CHANGE_MEMBER_INSERT:
        return insert_member(store, &change->member, err);
    case CHANGE_MEMBER_UPDATE:
        return update_member(store, &change->member, err);
    case CHANGE_RANK_PUT:
        return put_rank(store, &change->rank, err);
    case CHANGE_RESULT_PUT:
        return put_result(store, &change->result, err);
    case CHANGE_NODE_PUT:
        return put_node(store, &change->node, err);
    case CHANGE_REPLY_INSERT:
        return insert_reply(store, &change->reply, err);
    case CHANGE_TOKEN_INSERT:
        return insert_token(store, &change->token, err);
    case CHANGE_TOKEN_REVOKE:
        return revoke_token(store, &change->token, err);
    case CHANGE_JOIN_INSERT:
        return insert_join(store, &change->join, err);
    case CHANGE_JOIN_USE:
        return use_join(store, &change->join, err);
    case CHANGE_NODE_DELETE:
        return delete_node(store, &change->node, err);
    case CHANGE_BLOB_PUT:
        return put_blob(store, &change->blob, err);
    case CHANGE_HISTORY_PUT:
        return put_history(store, &change->history, err);
    case CHANGE_USAGE_PUT:
        return put_usage(store, &change->usage, err);
    case CHANGE_USAGE_DELETE:
        return delete_usage(store, &change->usage, err);
    case CHANGE_LIMITS_PUT:
        return put_limits(store, &change->limits, err);
    case CHANGE_LIMITS_DELETE:
        return delete_limits(store, &change->limits, err);
    case CHANGE_WINDOW_INSERT:
        return insert_window(store, &change->window, err);
    case CHANGE_WINDOW_DELETE:
        return delete_window(store, &change->window, err);
    case CHANGE_LOST_PUT:
        return put_lost(store, &change->lost, err);
    }
    return err_set(err, ERR_INTERNAL, "a change of a kind that does not exist");
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
