/* SPDX-License-Identifier: Apache-2.0 */
/* The database under test, sample rows, and the text of rows. */
#include "tests/unit/store/store_rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/database/pages.h"
#include "proto/base/files/files.h"

struct rig rig;

static void open_both(void)
{
    rig.store = store_open(rig.path, &rig.err);
    ck_assert_msg(rig.store != NULL, "%s", rig.err.text);
    rig.reader = reader_open(rig.path, &rig.err);
    ck_assert_msg(rig.reader != NULL, "%s", rig.err.text);
}

void rig_begin(void)
{
    rig = (struct rig){0};
    snprintf(rig.folder, sizeof rig.folder, "/tmp/unit-store-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(rig.folder));
    snprintf(rig.path, sizeof rig.path, "%s/db", rig.folder);
    open_both();
}

void rig_close(void)
{
    reader_close(rig.reader);
    store_close(rig.store);
    rig.reader = NULL;
    rig.store = NULL;
}

void rig_end(void)
{
    rig_close();
    ck_assert(file_remove_tree(rig.folder, &rig.err));
}

void rig_reopen(void)
{
    rig_close();
    open_both();
}

void rig_meddle(const char *sql)
{
    sqlite3 *db;
    char *error = NULL;
    struct pages *pages = pages_create(NULL);
    ck_assert_int_eq(
        sqlite3_open_v2(rig.path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, pages_name(pages)),
        SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &error) == SQLITE_OK, "%s: %s", sql, error);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    pages_destroy(pages);
}

void rig_write(const struct change *changes, size_t count)
{
    ck_assert_msg(store_begin(rig.store, &rig.err) && store_apply(rig.store, changes, count, &rig.err) &&
                      store_commit(rig.store, &rig.err),
                  "%s", rig.err.text);
}

void rig_write_one(struct change change)
{
    rig_write(&change, 1);
}

const char *rig_id(int64_t key)
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
    static char ids[RIG_KEYS][ID_LENGTH + 1];
    char *id = ids[key];
    memset(id, 'a', ID_LENGTH);
    memcpy(id, "job", 3);
    for (int i = 5; i >= 3; i--, key /= 32) {
        id[i] = alphabet[key % 32];
    }
    return id;
}

struct change job_insert(int64_t key)
{
    struct change change = {.kind = CHANGE_JOB_INSERT};
    change.job.birth = (struct job_birth){.key = key,
                                          .id = rig_id(key),
                                          .owner = "alice",
                                          .name = "train",
                                          .program = "train.py",
                                          .labels = "{\"phase\":\"2\"}",
                                          .retry_of = "aaaaaaaaaaaaaaaa",
                                          .project = "vision",
                                          .spec = "{\"gpus\": 2}",
                                          .spec_length = 11,
                                          .gpus = 2,
                                          .gpu_type = "A10",
                                          .created_ms = 1000 + key,
                                          .task = -1};
    change.job.life = (struct job_life){.key = key,
                                        .state = JOB_QUEUED,
                                        .seq = 3,
                                        .attempt = 4,
                                        .user_failures = 5,
                                        .infra_failures = 6,
                                        .pool = "default",
                                        .started_ms = 7,
                                        .ended_ms = 8,
                                        .exit_code = 9,
                                        .failed_rank = 10,
                                        .failed_node = "gpu-7",
                                        .cause = CAUSE_DECLINED,
                                        .reason = "because",
                                        .priority = 21,
                                        .time_limit_ms = 22,
                                        .ran_ms = 23,
                                        .idle_since_ms = 24,
                                        .kept_until_ms = 25};
    return change;
}

struct change job_update(int64_t key, enum job_state state)
{
    struct change change = {.kind = CHANGE_JOB_UPDATE};
    change.job.life = (struct job_life){
        .key = key, .state = state, .exit_code = -1, .failed_rank = -1, .cause = CAUSE_NONE};
    return change;
}

struct change attempt_insert(uint64_t attempt_id, int64_t job_key, int64_t number)
{
    struct change change = {.kind = CHANGE_ATTEMPT_INSERT};
    change.attempt = (struct attempt_row){.attempt_id = attempt_id,
                                          .job_key = job_key,
                                          .number = number,
                                          .state = ATTEMPT_STARTED,
                                          .cause = CAUSE_PORT_TAKEN,
                                          .cause_text = "port 20000",
                                          .claim = CLAIM_BORROWED,
                                          .pool = "default",
                                          .gpu_type = "H100",
                                          .master_address = "10.0.0.1",
                                          .master_port = 20000,
                                          .created_ms = 11,
                                          .started_ms = 12,
                                          .ended_ms = 13,
                                          .failed_rank = 14,
                                          .failed_code = 15,
                                          .warned_ms = 16,
                                          .checkpoint_ms = 17,
                                          .timing = {51, 52, 53, 54, 55}};
    return change;
}

struct change member_insert(uint64_t attempt_id, int64_t node_rank, const char *node, const char *devices)
{
    struct change change = {.kind = CHANGE_MEMBER_INSERT};
    change.member = (struct member_row){.attempt_id = attempt_id,
                                        .node_rank = node_rank,
                                        .node = node,
                                        .first_rank = 16,
                                        .local_ranks = 17,
                                        .devices = devices,
                                        .isolated = node_rank == 1,
                                        .state = MEMBER_PREPARED,
                                        .timing = {61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71},
                                        .start = "warm"};
    return change;
}

struct change node_put(const char *name)
{
    struct change change = {.kind = CHANGE_NODE_PUT};
    change.node = (struct node_row){
        .name = name,
        .boot_id = "boot",
        .host_id = "host",
        .version = "0.1.0",
        .address = "10.0.0.2",
        .pool = "gold",
        .pool_kind = POOL_RESERVED,
        .state = NODE_READY,
        .reason = "new",
        .isolation = ISOLATION_CGROUP2,
        .slots = false,
        .devices = "[{\"index\":0,\"type\":\"A10\"},{\"index\":1,\"type\":\"A10\"},"
                   "{\"index\":2,\"type\":\"H100\"},{\"index\":3,\"type\":\"H100\"}]",
        .registered_ms = 18,
        .heard_ms = 17,
        .expires_at_ms = 19,
        .agent_expires_at_ms = 20,
        .agent_id = "agent",
    };
    return change;
}

struct change reply_insert(uint8_t scope, const char *answer)
{
    struct change change = {.kind = CHANGE_REPLY_INSERT};
    change.reply = (struct reply_row){
        .job_key = 19, .status = 201, .answer = answer, .answer_length = strlen(answer), .at_ms = 20};
    memset(change.reply.scope, scope, sizeof change.reply.scope);
    memset(change.reply.body, scope ^ 0xff, sizeof change.reply.body);
    return change;
}

/* --- text ----------------------------------------------------------------------------------------------- */

static const char *or_null(const char *text)
{
    return text == NULL ? "null" : text;
}

void print_job(struct text *out, const struct job_birth *birth, const struct job_life *life)
{
    text_printf(out, "%" PRId64 " id %s owner %s name %s project %s gpus %" PRId64 " type %s at %" PRId64,
                birth->key, birth->id, birth->owner, or_null(birth->name), birth->project, birth->gpus,
                or_null(birth->gpu_type), birth->created_ms);
    text_printf(out, " spec %.*s", (int)birth->spec_length, or_null(birth->spec));
    text_printf(
        out,
        " %s seq %" PRId64 " attempt %" PRId64 " failures %" PRId64 " %" PRId64 " pool %s started %" PRId64
        " ended %" PRId64 " code %" PRId64 " failed %" PRId64 " on %s cause %s reason %s priority %" PRId64
        " limit %" PRId64 " ran %" PRId64 " idle %" PRId64 " task %" PRId64 " of %" PRId64 "\n",
        job_state_text(life->state), life->seq, life->attempt, life->user_failures, life->infra_failures,
        or_null(life->pool), life->started_ms, life->ended_ms, life->exit_code, life->failed_rank,
        or_null(life->failed_node), cause_text(life->cause), or_null(life->reason), life->priority,
        life->time_limit_ms, life->ran_ms, life->idle_since_ms, birth->task, birth->array_key);
}

void visit_one_job(const struct job_record *job, void *closure)
{
    print_job(closure, &job->birth, &job->life);
}

bool visit_job(const struct job_record *job, void *closure)
{
    print_job(closure, &job->birth, &job->life);
    return true;
}

bool visit_job_key(const struct job_record *job, void *closure)
{
    text_printf(closure, "%" PRId64 " ", job->birth.key);
    return true;
}

bool visit_event(const struct event_row *row, void *closure)
{
    text_printf(closure, "%" PRId64 " seq %" PRId64 " at %" PRId64 " %s attempt %" PRId64 " %s\n",
                row->job_key, row->seq, row->at_ms, event_kind_text(row->kind), row->attempt,
                or_null(row->detail));
    return true;
}

bool visit_attempt(const struct attempt_row *row, void *closure)
{
    text_printf(closure,
                "%" PRIu64 " job %" PRId64 " number %" PRId64 " %s cause %s %s pool %s master %s %" PRId64
                " created %" PRId64 " started %" PRId64 " ended %" PRId64 " failed %" PRId64 " %" PRId64
                " claim %s type %s warned %" PRId64 " saved %" PRId64 " moments %" PRId64 " %" PRId64
                " %" PRId64 " %" PRId64 " %" PRId64 "\n",
                row->attempt_id, row->job_key, row->number, attempt_state_text(row->state),
                cause_text(row->cause), or_null(row->cause_text), row->pool, or_null(row->master_address),
                row->master_port, row->created_ms, row->started_ms, row->ended_ms, row->failed_rank,
                row->failed_code, claim_text(row->claim), or_null(row->gpu_type), row->warned_ms,
                row->checkpoint_ms, row->timing.received_us, row->timing.queued_us, row->timing.placed_us,
                row->timing.started_us, row->timing.settled_us);
    return true;
}

bool visit_member(const struct member_row *row, void *closure)
{
    const struct member_timing *timing = &row->timing;
    text_printf(closure, "%" PRIu64 " %" PRId64 " on %s ranks %" PRId64 " %" PRId64 " devices %s %s%s",
                row->attempt_id, row->node_rank, row->node, row->first_rank, row->local_ranks, row->devices,
                row->isolated ? "isolated " : "", member_state_text(row->state));
    text_printf(closure,
                " moments %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
                " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " start %s marks %s\n",
                timing->queued_us, timing->started_us, timing->ordered_us, timing->told_us, timing->ready_us,
                timing->heard_us, timing->prepared_us, timing->begun_us, timing->running_us,
                timing->output_us, timing->ended_us, or_null(row->start), or_null(row->marks));
    return true;
}

bool visit_rank(const struct rank_row *row, void *closure)
{
    text_printf(closure,
                "%" PRIu64 " %" PRId64 " code %" PRId64 " signal %" PRId64 " at %" PRId64 " bytes %" PRId64
                " %" PRId64 "\n",
                row->attempt_id, row->rank, row->code, row->signal, row->at_ms, row->out_bytes,
                row->err_bytes);
    return true;
}

bool visit_result(const struct result_row *row, const void *bytes, void *closure)
{
    char hash[65] = "null";
    if (row->hash != NULL) {
        text_to_hex(row->hash, 32, hash);
    }
    text_printf(closure, "%" PRIu64 " %" PRId64 " %s size %" PRId64 " %s json %s bytes %.*s\n",
                row->attempt_id, row->rank, result_kind_text(row->kind), row->size, hash, or_null(row->json),
                bytes == NULL ? 4 : (int)row->size, (const char *)(bytes == NULL ? "file" : bytes));
    return true;
}

bool visit_node(const struct node_row *row, const struct node_used *used, void *closure)
{
    text_printf(closure,
                "%s boot %s agent %s host %s version %s at %s pool %s %s %s %s isolation %s slots %d devices "
                "%s since "
                "%" PRId64 " heard %" PRId64 " until %" PRId64 " or %" PRId64 " has %" PRId64 " %" PRId64
                " used %" PRId64 " %" PRId64 " %" PRId64 "\n",
                row->name, row->boot_id, row->agent_id, row->host_id, row->version, row->address, row->pool,
                pool_kind_text(row->pool_kind), node_state_text(row->state), or_null(row->reason),
                isolation_text(row->isolation), row->slots, row->devices, row->registered_ms, row->heard_ms,
                row->expires_at_ms, row->agent_expires_at_ms, row->millicpus, row->memory_bytes, used->gpus,
                used->millicpus, used->memory_bytes);
    return true;
}

bool visit_token(const struct token_row *row, void *closure)
{
    char secret[65];
    text_to_hex(row->secret, sizeof row->secret, secret);
    text_printf(closure, "%s %s %s %s created %" PRId64 " expires %" PRId64 " revoked %d of %s %s %s %s\n",
                row->id, secret, role_text(row->role), row->owner, row->created_ms, row->expires_ms,
                row->revoked, or_null(row->node), or_null(row->project), or_null(row->subject),
                or_null(row->groups));
    return true;
}

void visit_blob(const struct blob_row *row, void *closure)
{
    char hash[65];
    text_to_hex(row->hash, sizeof row->hash, hash);
    text_printf(closure, "%s size %" PRId64 " at %" PRId64 " %.*s\n", hash, row->size, row->created_ms,
                row->bytes == NULL ? 4 : (int)row->size,
                (const char *)(row->bytes == NULL ? "file" : row->bytes));
}
