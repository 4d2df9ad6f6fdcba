/* SPDX-License-Identifier: Apache-2.0 */
/* What a core takes from rows that no cluster of these tests would leave: more of them than it keeps, in
 * another order, or from an earlier release. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/quota/account_state.h"
#include "daemon/core/lifecycle/array.h"
#include "daemon/core/queue/history.h"
#include "daemon/core/core.h"
#include "daemon/core/model/state.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/spec/tasks.h"
#include "tests/trace/suites.h"

static void cleanup_core(struct core **core)
{
    core_destroy(*core);
}
#define autocore __attribute__((cleanup(cleanup_core)))

static struct core *create(int64_t share_half_life_ms)
{
    return core_create(&(struct core_config){.incarnation = 2,
                                             .next_job_key = 100,
                                             .heartbeat_ms = HEARTBEAT_MS,
                                             .policy = POLICY_DEFAULT,
                                             .share_half_life_ms = share_half_life_ms});
}

static void boot(struct core *core, int64_t wall_ms, struct step *step)
{
    core_step(core, &(struct input){.kind = INPUT_BOOT, .wall_ms = wall_ms}, 0, step);
    ck_assert(step->ok);
    core_check(core);
}

static void load_user(struct core *core, const char *owner, int64_t at_ms)
{
    core_load_usage(core, &(struct usage_row){.owner = owner, .gpu_ms = (double)HOUR_MS, .at_ms = at_ms});
}

static void load_node(struct core *core, const char *name)
{
    core_load_node(core, &(struct node_row){
                             .name = name,
                             .boot_id = "boot",
                             .host_id = name,
                             .version = "0.1.0",
                             .address = "10.0.0.1",
                             .pool = "default",
                             .state = NODE_READY,
                             .devices = "[{\"index\":0,\"uuid\":\"u\",\"type\":\"A10\",\"memory_bytes\":1},"
                                        "{\"index\":1,\"uuid\":\"v\",\"type\":\"A10\",\"memory_bytes\":1}]"});
}

static void load_job(struct core *core, const char *id, const char *owner, enum job_state state, int64_t gpus)
{
    const struct job_spec spec = {.gpus = gpus, .remote = true, .lease_ms = 60000};
    const struct job_birth birth = {
        .key = 1, .id = id, .owner = owner, .project = "default", .gpus = gpus, .task = TASK_NONE};
    const struct job_life life = {.key = 1,
                                  .state = state,
                                  .seq = 1,
                                  .attempt = job_state_terminal(state) || state == JOB_HELD ? 0 : 1,
                                  .exit_code = -1,
                                  .failed_rank = -1};
    core_load_job(core, &birth, &life, &spec, NULL);
}

/* --- attempts ------------------------------------------------------------------------------------------- */

START_TEST(members_are_put_in_order_and_an_old_attempt_learns_its_type)
{
    autocore struct core *core = create(0);
    struct step step;
    const uint64_t attempt_id = 1ULL << 32 | 1;
    load_node(core, "a");
    load_node(core, "b");
    load_job(core, "aaaa", "alice", JOB_RUNNING, 4);
    core_load_attempt(core, &(struct attempt_row){.attempt_id = attempt_id,
                                                  .job_key = 1,
                                                  .number = 1,
                                                  .state = ATTEMPT_STARTED,
                                                  .claim = CLAIM_ENTITLED,
                                                  .pool = "default",
                                                  .master_address = "10.0.0.1",
                                                  .created_ms = 1,
                                                  .started_ms = 1,
                                                  .failed_rank = -1});
    for (int64_t rank = 1; rank >= 0; rank--) {
        core_load_member(core, &(struct member_row){.attempt_id = attempt_id,
                                                    .node_rank = rank,
                                                    .node = rank == 0 ? "a" : "b",
                                                    .first_rank = 2 * rank,
                                                    .local_ranks = 2,
                                                    .devices = "0,1",
                                                    .state = MEMBER_RUNNING});
    }
    boot(core, 1000, &step);
    step_finish(&step);
    const struct attempt *attempt = core->attempts;
    ck_assert_str_eq(attempt->gpu_type, "A10");
    ck_assert_uint_eq(attempt->member_count, 2);
    ck_assert_str_eq(attempt->members[0]->node->name, "a");
    ck_assert_str_eq(attempt->members[1]->node->name, "b");
    struct node_orders *orders = core_orders(core, "b");
    ck_assert_uint_eq(orders->count, 1);
    ck_assert_int_eq(orders->items[0].order.node_rank, 1);
    node_orders_destroy(orders);
}
END_TEST

/* --- what was used -------------------------------------------------------------------------------------- */

START_TEST(of_more_accounts_than_are_kept_those_longest_idle_are_forgotten)
{
    autocore struct core *core = create(0);
    struct step step;
    char owner[32];
    for (int i = 0; i < LIMIT_ACCOUNTS_KEPT + 2; i++) {
        snprintf(owner, sizeof owner, "user%d", i);
        load_user(core, owner, i + 1);
    }
    load_user(core, "zoe", LIMIT_ACCOUNTS_KEPT + 100);
    load_job(core, "aaaa", "zoe", JOB_HELD, 1);
    boot(core, 1000, &step);
    size_t dropped = 0;
    for (size_t i = 0; i < step.change_count; i++) {
        if (step.changes[i].kind == CHANGE_USAGE_DELETE) {
            snprintf(owner, sizeof owner, "user%zu", dropped++);
            ck_assert_str_eq(step.changes[i].usage.owner, owner);
        }
    }
    ck_assert_uint_eq(dropped, 2);
    ck_assert_ptr_null(account_find(core, NULL, "user1"));
    ck_assert_ptr_nonnull(account_find(core, NULL, "user2"));
    step_finish(&step);
}
END_TEST

static double used_after_an_hour(int64_t share_half_life_ms)
{
    autocore struct core *core = create(share_half_life_ms);
    struct step step;
    load_user(core, "alice", 1000);
    boot(core, 1000 + HOUR_MS, &step);
    step_finish(&step);
    const struct input input = {.kind = INPUT_ACCOUNTS,
                                .wall_ms = 1000 + HOUR_MS,
                                .accounts = {.name = "alice", .kind = ACCOUNT_USER}};
    core_step(core, &input, 0, &step);
    autojson json_t *answer = json_parse(step.answer, strlen(step.answer), NULL);
    double used = json_number_value(json_object_get(answer, "used_gpu_hours"));
    step_finish(&step);
    return used;
}

START_TEST(past_use_fades_as_fast_as_was_set)
{
    ck_assert_double_eq_tol(used_after_an_hour(HOUR_MS), 0.5, 0.001);
    ck_assert_double_eq_tol(used_after_an_hour(HOUR_MS / 2), 0.25, 0.001);
    ck_assert_double_gt(used_after_an_hour(0), 0.9);
}
END_TEST

/* In seconds, of a project among twenty; the first has used almost everything, the last next to nothing. */
static double delay_of(struct core *core, const char *project)
{
    struct step step;
    const struct input input = {
        .kind = INPUT_ACCOUNTS, .wall_ms = 1000, .accounts = {.name = project, .kind = ACCOUNT_PROJECT}};
    core_step(core, &input, 0, &step);
    ck_assert(step.ok);
    autojson json_t *answer = json_parse(step.answer, strlen(step.answer), NULL);
    double delay_s = json_number_value(json_object_get(answer, "delay_s"));
    step_finish(&step);
    return delay_s;
}

START_TEST(a_share_moves_a_job_by_a_bounded_time)
{
    autocore struct core *core = create(0);
    struct step step;
    char project[32];
    for (int i = 0; i < 20; i++) {
        snprintf(project, sizeof project, "work%02d", i);
        core_load_usage(core, &(struct usage_row){.project = project,
                                                  .gpu_ms = i == 0    ? 1e12
                                                            : i == 19 ? 1e5
                                                                      : 1e6,
                                                  .at_ms = 900});
    }
    boot(core, 1000, &step);
    step_finish(&step);
    ck_assert_double_gt(delay_of(core, "work00"), 0);
    ck_assert_double_eq_tol(delay_of(core, "work19"), -delay_of(core, "work00"), 0.002);
    ck_assert_double_eq_tol(delay_of(core, "work05"), delay_of(core, "work19"), 0.002);
}
END_TEST

/* --- what was learned ----------------------------------------------------------------------------------- */

static void load_runs(struct core *core, const char *name, int64_t count, int64_t ran_ms, int64_t limit_ms)
{
    core_load_history(core, &(struct history_row){.project = "default",
                                                  .owner = "alice",
                                                  .name = name,
                                                  .gpus = 1,
                                                  .limited = limit_ms > 0,
                                                  .count = count,
                                                  .ran_ms = ran_ms,
                                                  .limit_ms = limit_ms});
}

static int64_t estimate(struct core *core, const char *name, int64_t limit_ms)
{
    const struct job_spec spec = {.gpus = 1, .name = name, .time_limit_ms = limit_ms};
    struct pattern *pattern = history_join(core, &spec, "alice", limit_ms > 0);
    int64_t estimate_ms = history_estimate_ms(core, pattern, limit_ms);
    history_leave(core, pattern);
    return estimate_ms;
}

START_TEST(estimates_stay_within_what_a_job_may_run)
{
    autocore struct core *core = create(0);
    load_runs(core, "long", 1000, 1000 * 4 * LIMIT_TIME_MS, 0);
    ck_assert_int_eq(estimate(core, "long", 0), LIMIT_TIME_MS);
    load_runs(core, "brief", 1000000, 1, 1000000 * HOUR_MS);
    ck_assert_int_eq(estimate(core, "brief", 1), 1);
    ck_assert_int_le(estimate(core, "brief", HOUR_MS), HOUR_MS / 100);
}
END_TEST

/* Whether runs that were short are remembered of their own kind, when there are so many kinds already. */
static bool learns_apart(int kinds)
{
    autocore struct core *core = create(0);
    char name[32];
    for (int i = 0; i < kinds; i++) {
        snprintf(name, sizeof name, "job%dx", i);
        load_runs(core, name, 1, HOUR_MS, 0);
    }
    load_runs(core, "late", 1000, 1000, 0);
    return estimate(core, "late", 0) < estimate(core, "other", 0);
}

START_TEST(kinds_of_jobs_beyond_the_limit_are_reckoned_with_all_others)
{
    ck_assert(learns_apart(100));
    ck_assert(!learns_apart(LIMIT_PATTERNS));
}
END_TEST

static bool learned(const struct step *step)
{
    for (size_t i = 0; i < step->change_count; i++) {
        if (step->changes[i].kind == CHANGE_HISTORY_PUT) {
            return true;
        }
    }
    return false;
}

static void submit_job(struct core *core, const char *id, const char *name, int64_t gpus)
{
    struct step step;
    const struct job_spec spec = {.gpus = gpus, .remote = true, .lease_ms = 60000, .name = name};
    const struct input input = {
        .kind = INPUT_SUBMIT,
        .wall_ms = 1000,
        .submit = {.id = id, .owner = "alice", .spec = &spec, .body = "{}", .body_length = 2}};
    core_step(core, &input, 0, &step);
    ck_assert(step.ok);
    step_finish(&step);
}

START_TEST(a_job_without_a_kind_of_its_own_is_explained_and_teaches_nothing)
{
    for (int full = 0; full <= 1; full++) {
        autocore struct core *core = create(0);
        struct step step;
        char name[32];
        load_node(core, "a");
        for (int i = 0; full && i < LIMIT_PATTERNS; i++) {
            snprintf(name, sizeof name, "job%dx", i);
            load_runs(core, name, 1, HOUR_MS, 0);
        }
        boot(core, 1000, &step);
        step_finish(&step);
        submit_job(core, "runs", "late", 1);
        submit_job(core, "wait", "late", 2);
        const struct input ask = {
            .kind = INPUT_ASK, .wall_ms = 1000, .ask = {.kind = ASK_EXPLAIN, .id = "wait"}};
        core_step(core, &ask, 0, &step);
        ck_assert(step.ok && strstr(step.answer, "with 1 GPU instead of 2 it would start now") != NULL);
        step_finish(&step);
        struct rank_exit exit = {.rank = 0};
        const struct report_message report = {.kind = REPORT_EXITED,
                                              .node = "a",
                                              .boot_id = "boot",
                                              .attempt_id = core->attempts->attempt_id,
                                              .ranks = &exit,
                                              .rank_count = 1,
                                              .flushed = true};
        core_step(core, &(struct input){.kind = INPUT_REPORT, .wall_ms = 2000, .report = &report}, 1000,
                  &step);
        ck_assert(step.ok);
        ck_assert_int_eq(learned(&step), !full);
        step_finish(&step);
    }
}
END_TEST

/* --- nodes ---------------------------------------------------------------------------------------------- */

START_TEST(a_node_that_was_drained_without_a_reason_stays_so_when_it_is_to_expire)
{
    autocore struct core *core = create(0);
    struct step step;
    core_load_node(core, &(struct node_row){.name = "a",
                                            .boot_id = "boot",
                                            .host_id = "a",
                                            .version = "0.1.0",
                                            .address = "10.0.0.1",
                                            .pool = "default",
                                            .state = NODE_DRAINED,
                                            .devices = "[]"});
    boot(core, 1000, &step);
    step_finish(&step);
    const struct input input = {
        .kind = INPUT_NODE,
        .wall_ms = 1000,
        .node = {.name = "a", .action = NODE_ACTION_EXPIRE, .by = "root", .expires_at_ms = HOUR_MS}};
    core_step(core, &input, 0, &step);
    ck_assert(step.ok);
    ck_assert_int_eq(core->nodes[0]->state, NODE_DRAINED);
    step_finish(&step);
}
END_TEST

Suite *loaded_suite(void)
{
    Suite *suite = suite_create("loaded");
    TCase *tests = tcase_create("loaded");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, members_are_put_in_order_and_an_old_attempt_learns_its_type);
    tcase_add_test(tests, of_more_accounts_than_are_kept_those_longest_idle_are_forgotten);
    tcase_add_test(tests, past_use_fades_as_fast_as_was_set);
    tcase_add_test(tests, a_share_moves_a_job_by_a_bounded_time);
    tcase_add_test(tests, estimates_stay_within_what_a_job_may_run);
    tcase_add_test(tests, kinds_of_jobs_beyond_the_limit_are_reckoned_with_all_others);
    tcase_add_test(tests, a_job_without_a_kind_of_its_own_is_explained_and_teaches_nothing);
    tcase_add_test(tests, a_node_that_was_drained_without_a_reason_stays_so_when_it_is_to_expire);
    suite_add_tcase(suite, tests);
    return suite;
}
