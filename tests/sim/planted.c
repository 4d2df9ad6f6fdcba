/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the wrong variant, and implements variants that sit between the files of the product: the linker
 * makes callers of f call __wrap_f, and __real_f is f. Without a variant every function behaves as in the
 * product. */
#include "tests/sim/planted.h"

#include <stddef.h>
#include <string.h>

#include "agent/reconciler/reconciler.h"
#include "daemon/core/quota/account.h"
#include "daemon/core/core.h"
#include "daemon/core/fleet/node.h"
#include "daemon/core/inputs/remove.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/store/store.h"
#include "daemon/store/database/wal.h"
#include "proto/base/text/text.h"

#define BOOT_SHIFT_MS 300000 /* longer than any lease here */

static enum planted now = PLANTED_NONE;
static uint64_t times;
static int64_t ahead_ms; /* by how much the wall clock was ahead in the step before */

void planted_set(enum planted planted)
{
    now = planted;
}

bool planted_is(enum planted planted)
{
    return now == planted;
}

void planted_begin(void)
{
    times = 0;
    ahead_ms = 0;
}

static bool every(enum planted planted, uint64_t count)
{
    return now == planted && ++times % count == 0;
}

const char *planted_name(enum planted planted)
{
#define AS_NAME(name, ...) #name,
    static const char *const names[] = {PLANTED(AS_NAME)};
    return names[planted];
}

const char *planted_what(enum planted planted)
{
#define AS_WHAT(name, what) what,
    static const char *const whats[] = {PLANTED(AS_WHAT)};
    return whats[planted];
}

/* --- the store ------------------------------------------------------------------------------------------ */

#define WRAPPED(type, name, ...)                                                                             \
    type __real_##name(__VA_ARGS__);                                                                         \
    type __wrap_##name(__VA_ARGS__);                                                                         \
    type __wrap_##name(__VA_ARGS__)

static bool rank_file_open; /* a transaction is open */

WRAPPED(bool, store_begin, struct store *store, struct err *err)
{
    bool open = rank_file_open;
    rank_file_open = false;
    return open || __real_store_begin(store, err);
}

WRAPPED(bool, store_commit, struct store *store, struct err *err)
{
    rank_file_open = every(PLANTED_COMMIT_LATE, 2);
    return rank_file_open || __real_store_commit(store, err);
}

WRAPPED(bool, store_checkpoint, struct store *store, bool idle, struct err *err)
{
    return rank_file_open || __real_store_checkpoint(store, idle, err);
}

WRAPPED(void, store_close, struct store *store)
{
    rank_file_open = false;
    __real_store_close(store);
}

static bool is_dropped(const struct change *change)
{
    switch (change->kind) {
    case CHANGE_EVENT_INSERT:
        return every(PLANTED_EVENT_LOST, 50);
    case CHANGE_RESULT_PUT:
        return every(PLANTED_RESULT_LOST, 20);
    case CHANGE_ATTEMPT_UPDATE:
        return every(PLANTED_ATTEMPT_LOST, 30);
    case CHANGE_JOB_UPDATE:
        return every(PLANTED_JOB_LOST, 50);
    case CHANGE_JOB_DELETE:
        return every(PLANTED_REMOVAL_LOST, 5);
    case CHANGE_JOB_INSERT:
    case CHANGE_ARRAY_PUT:
    case CHANGE_DEPENDENCY_INSERT:
    case CHANGE_ATTEMPT_INSERT:
    case CHANGE_MEMBER_INSERT:
    case CHANGE_MEMBER_UPDATE:
    case CHANGE_RANK_PUT:
    case CHANGE_NODE_PUT:
    case CHANGE_REPLY_INSERT:
    case CHANGE_TOKEN_INSERT:
    case CHANGE_TOKEN_REVOKE:
    case CHANGE_TOKEN_END:
    case CHANGE_TOKEN_USE:
    case CHANGE_TOKENS_RETIRE:
    case CHANGE_AUDIT_INSERT:
    case CHANGE_AUDIT_TRIM:
    case CHANGE_JOIN_INSERT:
    case CHANGE_JOIN_USE:
    case CHANGE_NODE_DELETE:
    case CHANGE_BLOB_PUT:
    case CHANGE_HISTORY_PUT:
    case CHANGE_USAGE_PUT:
    case CHANGE_USAGE_DELETE:
    case CHANGE_HOUR_ADD:
    case CHANGE_HOURS_TRIM:
    case CHANGE_SECRET_PUT:
    case CHANGE_SECRET_SEAL:
    case CHANGE_SECRET_DELETE:
    case CHANGE_SCHEDULE_INSERT:
    case CHANGE_SCHEDULE_UPDATE:
    case CHANGE_SCHEDULE_RUN:
    case CHANGE_SCHEDULE_DELETE:
    case CHANGE_SCHEDULE_USE_PUT:
    case CHANGE_WEBHOOK_PUT:
    case CHANGE_WEBHOOK_DELETE:
    case CHANGE_DELIVERY_INSERT:
    case CHANGE_DELIVERY_UPDATE:
    case CHANGE_DELIVERIES_GIVE_UP:
    case CHANGE_DELIVERIES_TRIM:
    case CHANGE_LIMITS_PUT:
    case CHANGE_LIMITS_DELETE:
    case CHANGE_WINDOW_INSERT:
    case CHANGE_WINDOW_DELETE:
    case CHANGE_LOST_PUT:
    case CHANGE_BLOB_DELETE:
    case CHANGE_USE_PUT:
    case CHANGE_REMOVAL_PIECE:
    case CHANGE_REPLIES_AGE:
    case CHANGE_REPLIES_TRIM:
    case CHANGE_UPLOAD_PUT:
    case CHANGE_UPLOADS_TRIM:
    case CHANGE_SHRINK:
        return false;
    }
    return false;
}

WRAPPED(bool, store_apply, struct store *store, const struct change *changes, size_t count, struct err *err)
{
    for (size_t i = 0; i < count && now != PLANTED_NONE; i++) {
        if (is_dropped(&changes[i])) {
            return __real_store_apply(store, changes, i, err) &&
                   __real_store_apply(store, changes + i + 1, count - i - 1, err);
        }
    }
    return __real_store_apply(store, changes, count, err);
}

WRAPPED(bool, store_find_reply, struct store *store, const uint8_t scope[32], bool *ret_found,
        struct stored_reply *ret_reply, struct err *err)
{
    if (now == PLANTED_REPLIES_FORGOTTEN) {
        *ret_found = false;
        return true;
    }
    return __real_store_find_reply(store, scope, ret_found, ret_reply, err);
}

WRAPPED(uint32_t, store_incarnation, const struct store *store)
{
    return now == PLANTED_SAME_INCARNATION ? 1 : __real_store_incarnation(store);
}

WRAPPED(bool, wal_renew, struct connection *connection, struct err *err)
{
    return now == PLANTED_WAL_NOT_RENEWED || __real_wal_renew(connection, err);
}

/* --- the core ------------------------------------------------------------------------------------------- */

WRAPPED(void, core_load_job, struct core *core, const struct job_birth *birth, const struct job_life *life,
        const struct job_spec *spec, const struct environment_spec *environment)
{
    struct job_life wrong = *life;
    wrong.event_ms = now == PLANTED_TIME_GOES_BACK ? birth->created_ms : life->event_ms;
    __real_core_load_job(core, birth, &wrong, spec, environment);
}

/* The first attempt on the node; 0: none. */
static uint64_t attempt_id_on(struct core *core, const char *node)
{
    struct node_orders *orders = core_orders(core, node);
    uint64_t attempt_id = orders != NULL && orders->count > 0 ? orders->items[0].order.attempt_id : 0;
    node_orders_destroy(orders);
    return attempt_id;
}

static void spoil_report(struct core *core, struct report_message *report)
{
    uint64_t attempt_id = now == PLANTED_NO_ATTEMPT_ID_CHECK ? attempt_id_on(core, report->node) : 0;
    report->attempt_id = attempt_id != 0 ? attempt_id : report->attempt_id;
    for (size_t i = 0;
         i < report->rank_count && now == PLANTED_CODES_IGNORED && report->kind == REPORT_EXITED; i++) {
        report->ranks[i].code = 0;
        report->cause = CAUSE_NONE;
    }
}

static int64_t spoil_time(const struct input *input, int64_t now_ms)
{
    if (now == PLANTED_WALL_CLOCK) {
        ahead_ms = input->wall_ms - now_ms;
        return input->wall_ms;
    }
    return now == PLANTED_BOOT_RENEWS_NOTHING && input->kind != INPUT_BOOT ? now_ms + BOOT_SHIFT_MS : now_ms;
}

__typeof__(core_step) __real_core_step, __wrap_core_step;

void __wrap_core_step(struct core *core, const struct input *input, int64_t now_ms, struct step *ret_step)
{
    struct input wrong = *input;
    struct report_message report;
    struct job_spec spec;
    if (now != PLANTED_NONE && input->kind == INPUT_REPORT) {
        report = *input->report;
        spoil_report(core, &report);
        wrong.report = &report;
    }
    if (now == PLANTED_EARLY_REASSIGN && input->kind == INPUT_SUBMIT) {
        spec = *input->submit.spec;
        spec.lease_ms /= 2;
        wrong.submit.spec = &spec;
    }
    __real_core_step(core, &wrong, spoil_time(input, now_ms), ret_step);
}

WRAPPED(int64_t, core_deadline, const struct core *core)
{
    int64_t deadline_ms = __real_core_deadline(core);
    return now == PLANTED_WALL_CLOCK && deadline_ms != INT64_MAX ? deadline_ms - ahead_ms : deadline_ms;
}

WRAPPED(struct node_orders *, core_orders, const struct core *core, const char *node)
{
    struct node_orders *orders = __real_core_orders(core, node);
    for (size_t i = 0; orders != NULL && i < orders->count; i++) {
        struct order *order = &orders->items[i].order;
        order->lease_ms *= now == PLANTED_EARLY_REASSIGN ? 2 : 1;
        if (now == PLANTED_START_UNPREPARED && order->phase == ORDER_PREPARE) {
            order->phase = ORDER_RUN;
        }
    }
    return orders;
}

WRAPPED(void, node_release, struct core *core, struct member *member)
{
    if (now == PLANTED_DOUBLE_RELEASE) {
        __real_node_release(core, member);
    }
    __real_node_release(core, member);
}

WRAPPED(bool, account_may_run, const struct core *core, const struct job *job,
        const struct partition *partition, struct account_limit *ret_limit)
{
    return now == PLANTED_QUOTA_IGNORED || __real_account_may_run(core, job, partition, ret_limit);
}

WRAPPED(void, turn_pass_begin, struct core *core)
{
    if (now != PLANTED_CHANGE_MISSED) {
        __real_turn_pass_begin(core);
    }
}

WRAPPED(void, turn_open, struct core *core, bool all, const struct queue_entry *from)
{
    const struct queue_entry last = {.priority = INT64_MIN};
    __real_turn_open(core, all, from != NULL && now == PLANTED_REST_FORGOTTEN ? &last : from);
}

WRAPPED(bool, turn_is_spent, const struct core *core)
{
    return now == PLANTED_SPENT_EARLY ? !core->turns.all : __real_turn_is_spent(core);
}

WRAPPED(bool, remove_jobs, struct core *core, const struct input *input, struct err *err)
{
    for (size_t i = 0; now == PLANTED_LIVE_REMOVED && i < input->remove.count; i++) {
        record_job_gone(core, input->remove.keys[i]);
    }
    return now == PLANTED_LIVE_REMOVED || __real_remove_jobs(core, input, err);
}

/* --- the agent ------------------------------------------------------------------------------------------ */

WRAPPED(void, reconciler_polled, struct reconciler *reconciler, const struct poll_reply *reply)
{
    struct poll_reply wrong = *reply;
    size_t entry = 0;
    if (now != PLANTED_UNLISTED_LIVES) {
        __real_reconciler_polled(reconciler, reply);
        return;
    }
    struct node_attempt *list = reconciler_list(reconciler, &entry);
    wrong.live = xzalloc((reply->live_count + entry + 1) * sizeof *wrong.live);
    for (size_t i = 0; i < reply->live_count; i++) {
        wrong.live[i] = reply->live[i];
    }
    for (size_t i = 0; i < entry; i++) {
        wrong.live[wrong.live_count++] = list[i].attempt_id;
    }
    __real_reconciler_polled(reconciler, &wrong);
    free(wrong.live);
    free(list);
}

WRAPPED(void, reconciler_heartbeat_done, struct reconciler *reconciler, int64_t number,
        const struct heartbeat_reply *reply, int64_t sent_ms)
{
    struct heartbeat_reply wrong = {0};
    if (reply != NULL) {
        wrong = *reply;
        wrong.fenced_count = now == PLANTED_UNLISTED_LIVES ? 0 : reply->fenced_count;
    }
    __real_reconciler_heartbeat_done(reconciler, number, reply != NULL ? &wrong : NULL, sent_ms);
}

WRAPPED(void, reconciler_heard, struct reconciler *reconciler, uint64_t attempt_id, enum reconciler_news news)
{
    if (!(news == NEWS_EXITED && every(PLANTED_EXIT_MISSED, 10))) {
        __real_reconciler_heard(reconciler, attempt_id, news);
    }
}
