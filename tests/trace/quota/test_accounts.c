/* SPDX-License-Identifier: Apache-2.0 */
/* What projects and users may use, what they borrow, and what they have used. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/quota/account.h"
#include "daemon/core/quota/decay.h"
#include "daemon/core/model/state.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_controller.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/harness/explain_rig.h"
#include "tests/trace/suites.h"

static struct job *job_of(const struct cluster *c, const char *id)
{
    struct job *job;
    HASH_FIND(by_id, c->core->jobs_by_id, id, strlen(id), job);
    ck_assert_ptr_nonnull(job);
    return job;
}

static void expect_claim(const struct cluster *c, const char *id, enum claim claim)
{
    ck_assert_str_eq(claim_text(rows_attempt(c->rows, rows_attempt_id(c->rows, id))->claim),
                     claim_text(claim));
    ck_assert_int_eq(job_of(c, id)->attempt->claim, claim);
}

static double number(struct cluster *c, enum account_kind kind, const char *name, const char *member)
{
    const char *text = account_text(c, kind, name, NULL);
    autojson json_t *json = json_parse(text, strlen(text), NULL);
    const json_t *value = json_object_get(json, member);
    ck_assert_msg(json_is_number(value), "%s", text);
    return json_number_value(value);
}

/* --- limits --------------------------------------------------------------------------------------------- */

START_TEST(a_job_over_the_cap_of_its_project_waits_and_says_why_and_holds_up_nobody)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4);
    limit(c, ACCOUNT_PROJECT, "vision", "{\"max_gpus\":{\"A10\":2}}");
    submit(c, "aaaa", .gpus = 2, .project = "vision");
    quiet(c);
    submit(c, "bbbb", .gpus = 1, .project = "vision");
    expect(c, "[    0] job bbbb is submitted: 1 of any type\n"
              "[    0] job bbbb waits: project vision uses 2 of 2 A10\n");
    submit(c, "cccc", .gpus = 2, .project = "speech");
    expect_job(c, "cccc", JOB_PLACED);
    exited(c, "aaaa", "a", 0);
    expect_job(c, "bbbb", JOB_PLACED);
}
END_TEST

START_TEST(a_user_has_limits_over_all_projects)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4);
    limit(c, ACCOUNT_USER, "anna", "{\"max_running_jobs\":1,\"max_gpus\":{\"*\":3}}");
    submit(c, "aaaa", .owner = "anna", .project = "vision");
    quiet(c);
    submit(c, "bbbb", .gpus = 3, .owner = "anna", .project = "speech");
    expect(c, "[    0] job bbbb is submitted: 3 of any type\n"
              "[    0] job bbbb waits: user anna uses 1 of 1 running jobs\n");
    limit(c, ACCOUNT_USER, "anna", "{\"max_gpus\":{\"*\":3}}");
    expect(c, "[    0] user anna has {\"max_gpus\":{\"*\":3}}\n");
    expect_job(c, "bbbb", JOB_QUEUED);
    limit(c, ACCOUNT_USER, "anna", "{\"max_gpus\":{\"*\":4}}");
    expect_job(c, "bbbb", JOB_PLACED);
}
END_TEST

START_TEST(what_limits_never_allow_is_refused_at_once)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4);
    node(c, "h", .gpus = 4, .type = "H100");
    limit(c, ACCOUNT_PROJECT, "vision", "{\"max_gpus\":{\"a10\":2}}");
    ck_assert_int_eq(submit(c, "aaaa", .gpus = 3, .type = "A10", .project = "vision"), ERR_LIMIT);
    expect_field(c, "gpus");
    ck_assert_str_eq(c->step.err.text, "the job needs 3 GPUs, and project vision may use 2 A10 at once");
    ck_assert_uint_eq(rows_usage_count(c->rows), 0);
    ck_assert_int_eq(submit(c, "bbbb", .gpus = 3, .project = "vision"), ERR_NONE);
    expect_job(c, "bbbb", JOB_PLACED); /* H100 do */
    limit(c, ACCOUNT_PROJECT, "vision", "{\"max_gpus\":{\"*\":2}}");
    ck_assert_int_eq(submit(c, "cccc", .gpus = 3, .project = "vision"), ERR_LIMIT);
    limit(c, ACCOUNT_USER, "anna", "{\"max_running_jobs\":0}");
    ck_assert_int_eq(submit(c, "dddd", .owner = "anna"), ERR_LIMIT);
}
END_TEST

START_TEST(one_more_than_may_wait_is_refused)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    limit(c, ACCOUNT_PROJECT, "vision", "{\"max_queued_jobs\":2}");
    submit(c, "aaaa", .project = "vision");
    submit(c, "bbbb", .project = "vision");
    submit(c, "cccc", .project = "vision");
    ck_assert_int_eq(submit(c, "dddd", .project = "vision"), ERR_LIMIT);
    expect_field(c, "project");
    ck_assert_int_eq(submit(c, "eeee", .project = "speech"), ERR_NONE);
    cancel(c, "bbbb");
    ck_assert_int_eq(submit(c, "dddd", .project = "vision"), ERR_NONE);
}
END_TEST

START_TEST(hours_of_a_period_used_up_let_jobs_wait_for_the_next_period)
{
    autocluster struct cluster *c = cluster_open();
    c->wall_ms = 1000 * HOUR_MS;
    cluster_restart(c);
    node(c, "a", .gpus = 2);
    limit(c, ACCOUNT_PROJECT, "vision", "{\"gpu_hours\":{\"hours\":1,\"period_s\":3600}}");
    submit(c, "aaaa", .gpus = 2, .project = "vision");
    advance_beating(c, 40 * MINUTE_MS, "a");
    exited(c, "aaaa", "a", 0);
    quiet(c);
    submit(c, "bbbb", .project = "vision");
    expect(c, "[2400000] job bbbb is submitted: 1 of any type\n"
              "[2400000] job bbbb waits: project vision uses 80 of 60 GPU minutes\n");
    cluster_restart(c);
    advance_beating(c, 20 * MINUTE_MS - 1, "a");
    expect_job(c, "bbbb", JOB_QUEUED);
    advance(c, 1);
    expect_job(c, "bbbb", JOB_PLACED);
}
END_TEST

START_TEST(hours_count_from_the_setting_of_their_limit)
{
    autocluster struct cluster *c = cluster_open();
    c->wall_ms = 1000 * HOUR_MS;
    cluster_restart(c);
    node(c, "a", .gpus = 2);
    submit(c, "aaaa", .gpus = 2, .project = "vision");
    advance_beating(c, 40 * MINUTE_MS, "a");
    limit(c, ACCOUNT_PROJECT, "vision", "{\"gpu_hours\":{\"hours\":1,\"period_s\":36000}}");
    advance_beating(c, 20 * MINUTE_MS, "a");
    ck_assert(fabs(number(c, ACCOUNT_PROJECT, "vision", "period_gpu_hours") - 2.0 / 3) < 0.001);
    cluster_restart(c);
    ck_assert(fabs(number(c, ACCOUNT_PROJECT, "vision", "period_gpu_hours") - 2.0 / 3) < 0.001);
}
END_TEST

/* --- quotas --------------------------------------------------------------------------------------------- */

START_TEST(without_a_quota_nobody_has_borrowed)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4);
    node(c, "h", .gpus = 4, .type = "H100");
    limit(c, ACCOUNT_PROJECT, "vision", "{\"quota\":{\"H100\":4}}");
    submit(c, "aaaa", .gpus = 4, .type = "A10", .project = "speech");
    expect_claim(c, "aaaa", CLAIM_ENTITLED);
    submit(c, "bbbb", .gpus = 4, .type = "H100", .project = "speech");
    expect_claim(c, "bbbb", CLAIM_BORROWED);
}
END_TEST

START_TEST(what_is_beyond_the_quota_is_borrowed_and_rises_when_there_is_room)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 8);
    limit(c, ACCOUNT_PROJECT, "vision", "{\"quota\":{\"A10\":4}}");
    submit(c, "aaaa", .gpus = 2, .project = "vision");
    submit(c, "wide", .gpus = 3, .project = "vision");
    submit(c, "bbbb", .gpus = 2, .project = "vision");
    submit(c, "cccc", .gpus = 1, .project = "vision");
    expect_claim(c, "aaaa", CLAIM_ENTITLED);
    expect_claim(c, "wide", CLAIM_BORROWED);
    expect_claim(c, "bbbb", CLAIM_ENTITLED);
    expect_claim(c, "cccc", CLAIM_BORROWED);
    cluster_restart(c);
    quiet(c);
    exited(c, "bbbb", "a", 0);
    expect_claim(c, "wide", CLAIM_BORROWED); /* 2 and 3 are more than 4 */
    expect_claim(c, "cccc", CLAIM_ENTITLED);
    exited(c, "aaaa", "a", 0);
    expect_claim(c, "wide", CLAIM_ENTITLED);
    ck_assert_ptr_nonnull(strstr(c->trace.bytes, "attempt wide/1 is entitled now\n"));
}
END_TEST

START_TEST(an_attempt_that_is_being_stopped_does_not_rise)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 8);
    limit(c, ACCOUNT_PROJECT, "vision", "{\"quota\":{\"A10\":2}}");
    submit(c, "aaaa", .gpus = 2, .project = "vision");
    submit(c, "bbbb", .gpus = 2, .project = "vision");
    submit(c, "cccc", .gpus = 2, .project = "vision");
    cancel(c, "bbbb");
    exited(c, "aaaa", "a", 0);
    expect_claim(c, "bbbb", CLAIM_BORROWED);
    expect_claim(c, "cccc", CLAIM_ENTITLED);
}
END_TEST

START_TEST(a_quota_below_what_is_used_needs_force_and_makes_the_youngest_borrowers)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 8);
    limit(c, ACCOUNT_PROJECT, "vision", "{\"quota\":{\"A10\":6}}");
    submit(c, "aaaa", .gpus = 2, .project = "vision");
    submit(c, "bbbb", .gpus = 2, .project = "vision");
    submit(c, "cccc", .gpus = 2, .project = "vision");
    ck_assert_int_eq(limit(c, ACCOUNT_PROJECT, "vision", "{\"quota\":{\"A10\":4}}"), ERR_CONFLICT);
    expect_field(c, "quota");
    ck_assert_str_eq(c->step.err.text, "project vision uses 6 A10 as entitled, and would be entitled to 4");
    ck_assert_int_eq(limit_forced(c, ACCOUNT_PROJECT, "vision", "{\"quota\":{\"A10\":4}}"), ERR_NONE);
    expect_claim(c, "bbbb", CLAIM_ENTITLED);
    expect_claim(c, "cccc", CLAIM_BORROWED);
    expect_job(c, "cccc", JOB_PLACED);
    limit(c, ACCOUNT_PROJECT, "vision", NULL);
    expect_claim(c, "cccc", CLAIM_ENTITLED);
}
END_TEST

START_TEST(the_first_quota_on_a_type_takes_from_others_only_by_force)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 8);
    submit(c, "aaaa", .gpus = 2, .project = "speech");
    ck_assert_int_eq(limit(c, ACCOUNT_PROJECT, "vision", "{\"quota\":{\"A10\":4}}"), ERR_CONFLICT);
    ck_assert_str_eq(c->step.err.text, "project speech uses 2 A10 as entitled, and would be entitled to 0");
    expect_claim(c, "aaaa", CLAIM_ENTITLED);
    ck_assert_int_eq(limit_forced(c, ACCOUNT_PROJECT, "vision", "{\"quota\":{\"A10\":4}}"), ERR_NONE);
    expect_claim(c, "aaaa", CLAIM_BORROWED);
    ck_assert_int_eq(limit(c, ACCOUNT_PROJECT, "vision", NULL), ERR_NONE);
    expect_claim(c, "aaaa", CLAIM_ENTITLED);
    ck_assert_int_eq(limit(c, ACCOUNT_PROJECT, "vision", NULL), ERR_NOT_FOUND);
}
END_TEST

START_TEST(a_pool_takes_only_nodes_that_run_jobs_as_their_owners)
{
    static const char isolated[] = "{\"isolation\":\"user\"}";
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .pool = "walls", .labels = "isolation=user zone=a");
    node(c, "b", .pool = "plain", .labels = "isolation=none");
    ck_assert_int_eq(limit(c, ACCOUNT_POOL, "plain", isolated), ERR_CONFLICT);
    ck_assert_str_eq(c->step.err.text, "node b in pool plain does not run jobs as the users of their owners");
    ck_assert_int_eq(limit(c, ACCOUNT_POOL, "walls", isolated), ERR_NONE);
    cluster_restart(c);
    ck_assert_int_eq(node(c, "c", .pool = "walls"), ERR_CONFLICT);
    ck_assert_str_eq(c->step.err.field, "pool");
    ck_assert_int_eq(node(c, "a", .pool = "walls"), ERR_CONFLICT);
    ck_assert_int_eq(node(c, "d", .pool = "walls", .labels = "isolation=user"), ERR_NONE);
    ck_assert_int_eq(limit(c, ACCOUNT_POOL, "walls", "{}"), ERR_NONE);
    ck_assert_int_eq(node(c, "c", .pool = "walls"), ERR_NONE);
}
END_TEST

START_TEST(only_reserved_pools_that_are_there_lend)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .pool = "plain");
    node(c, "r", .pool = "kept", .reserved = true);
    ck_assert_int_eq(limit(c, ACCOUNT_POOL, "plain", "{\"lend\":true}"), ERR_FIELD);
    ck_assert_int_eq(limit(c, ACCOUNT_POOL, "none", "{\"lend\":true}"), ERR_NOT_FOUND);
    ck_assert_int_eq(limit(c, ACCOUNT_POOL, "kept", "{\"lend\":true}"), ERR_NONE);
    ck_assert(account_pool_lends(c->core, "kept") && !account_pool_lends(c->core, "plain"));
    cluster_restart(c);
    ck_assert(account_pool_lends(c->core, "kept"));
    cluster_step(c, &(struct input){.kind = INPUT_POOLS});
    ck_assert_str_eq(
        c->step.answer,
        "{\"pools\":[{\"name\":\"kept\",\"kind\":\"reserved\",\"lend\":true,\"isolation\":null,\"types\":[{"
        "\"gpu_"
        "type\":\"A10\",\"gpus\":1,\"free\":1}]},{\"name\":\"plain\",\"kind\":\"on-demand\","
        "\"lend\":false,\"isolation\":null,\"types\":[{\"gpu_type\":\"A10\",\"gpus\":1,\"free\":1}]}]}");
    limit(c, ACCOUNT_POOL, "kept", "{\"lend\":false}");
    ck_assert(!account_pool_lends(c->core, "kept"));
}
END_TEST

/* --- shares --------------------------------------------------------------------------------------------- */

START_TEST(powers_of_a_half_and_logarithms_are_those_of_the_library)
{
    const int64_t half_life = DEFAULT_SHARE_HALF_LIFE_MS;
    for (int64_t elapsed = 0; elapsed < 70 * half_life; elapsed = elapsed * 3 / 2 + 1) {
        double rest = exp2(-(double)elapsed / (double)half_life);
        double gathered = 8 * (double)half_life / log(2) * (1 - rest);
        ck_assert(fabs((double)decay_rest(1LL << 52, elapsed, half_life) - rest * 0x1p52) <= 16);
        ck_assert(fabs((double)decay_gathered(8, elapsed, half_life) - gathered) <= 1 + gathered * 1e-9);
    }
    ck_assert_int_eq(decay_rest(1000, half_life, half_life), 500);
    ck_assert_int_eq(decay_gathered(4, 1000, half_life), 4000);
    for (int64_t value = 1; value < INT64_MAX / 3; value = value * 3 / 2 + 1) {
        double error = (double)decay_log2(value) / DECAY_LOG_ONE - log2((double)value);
        ck_assert(fabs(error) < 1e-6);
    }
    ck_assert_int_eq(decay_log2(8), 3LL * DECAY_LOG_ONE);
}
END_TEST

START_TEST(use_counts_while_a_gang_runs_and_halves_with_time)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4);
    submit(c, "aaaa", .gpus = 4, .project = "vision", .owner = "anna");
    advance_beating(c, HOUR_MS, "a");
    ck_assert(fabs(number(c, ACCOUNT_PROJECT, "vision", "used_gpu_hours") - 4) < 0.02);
    ck_assert(fabs(number(c, ACCOUNT_USER, "anna", "used_gpu_hours") - 4) < 0.02);
    exited(c, "aaaa", "a", 0);
    drain(c, "a");
    fence(c, "a");
    advance(c, DEFAULT_SHARE_HALF_LIFE_MS);
    ck_assert(fabs(number(c, ACCOUNT_PROJECT, "vision", "used_gpu_hours") - 2) < 0.01);
    ck_assert_uint_eq(rows_usage_count(c->rows), 3);
}
END_TEST

START_TEST(who_used_more_than_its_share_waits_longer)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4);
    submit(c, "aaaa", .gpus = 4, .project = "vision", .owner = "anna");
    ck_assert_int_eq(account_delay_ms(c->core, job_of(c, "aaaa")), 0);
    advance_beating(c, 10 * HOUR_MS, "a");
    submit(c, "v", .gpus = 4, .project = "vision", .owner = "anna");
    ck_assert_int_eq(account_delay_ms(c->core, job_of(c, "v")), 0); /* alone */
    submit(c, "s", .gpus = 4, .project = "speech", .owner = "bert");
    int64_t more = account_delay_ms(c->core, job_of(c, "v"));
    int64_t less = account_delay_ms(c->core, job_of(c, "s"));
    ck_assert_int_gt(more, 55 * MINUTE_MS); /* 40 of 41 GPU hours, of a share of a half */
    ck_assert_int_le(more, 60 * MINUTE_MS);
    ck_assert_int_eq(less, -3 * HOUR_MS);
    limit(c, ACCOUNT_PROJECT, "vision", "{\"weight\":100}");
    ck_assert_int_lt(account_delay_ms(c->core, job_of(c, "v")), MINUTE_MS);
    limit(c, ACCOUNT_PROJECT, "vision", NULL);
    exited(c, "aaaa", "a", 0);
    advance_beating(c, MINUTE_MS + 7, "a");
    more = account_delay_ms(c->core, job_of(c, "v"));
    less = account_delay_ms(c->core, job_of(c, "s"));
    ck_assert_int_gt(more, 55 * MINUTE_MS);
    cluster_restart(c);
    ck_assert_int_eq(account_delay_ms(c->core, job_of(c, "v")), more);
    ck_assert_int_eq(account_delay_ms(c->core, job_of(c, "s")), less);
}
END_TEST

START_TEST(users_of_one_project_share_it_at_half_the_delay)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4);
    submit(c, "aaaa", .gpus = 4, .owner = "anna");
    advance_beating(c, 10 * HOUR_MS, "a");
    submit(c, "next", .owner = "anna");
    submit(c, "bbbb", .owner = "bert");
    int64_t anna = account_delay_ms(c->core, job_of(c, "next"));
    ck_assert_int_gt(anna, 27 * MINUTE_MS);
    ck_assert_int_le(anna, 30 * MINUTE_MS);
    ck_assert_int_eq(account_delay_ms(c->core, job_of(c, "bbbb")), -HOUR_MS - HOUR_MS / 2);
}
END_TEST

START_TEST(a_moment_of_use_is_no_ground_for_a_delay)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 1);
    submit(c, "aaaa", .project = "vision");
    advance(c, 1000);
    exited(c, "aaaa", "a", 0);
    advance(c, 10000);
    submit(c, "bbbb", .project = "vision");
    submit(c, "cccc", .project = "speech");
    ck_assert_int_lt(llabs(account_delay_ms(c->core, job_of(c, "bbbb"))), MINUTE_MS);
    ck_assert_int_lt(llabs(account_delay_ms(c->core, job_of(c, "cccc"))), MINUTE_MS);
}
END_TEST

START_TEST(use_does_not_go_by_the_wall_clock)
{
    autocluster struct cluster *c = cluster_open();
    c->wall_ms = 1000 * HOUR_MS;
    cluster_restart(c);
    node(c, "a", .gpus = 1);
    submit(c, "aaaa", .project = "vision");
    c->wall_ms = 10 * HOUR_MS;
    advance(c, 1000);
    exited(c, "aaaa", "a", 0);
    c->wall_ms = 1001 * HOUR_MS;
    submit(c, "bbbb", .project = "vision");
    ck_assert(number(c, ACCOUNT_PROJECT, "vision", "used_gpu_hours") < 0.001);
}
END_TEST

START_TEST(a_wall_clock_that_is_set_charges_nobody)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 1);
    submit(c, "aaaa", .project = "vision");
    running(c, "aaaa", "a");
    advance_beating(c, 20 * MINUTE_MS, "a");
    c->wall_ms += 10LL * 365 * 24 * HOUR_MS;
    advance_beating(c, 20 * MINUTE_MS, "a");
    exited(c, "aaaa", "a", 0);
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->ran_ms, 40 * MINUTE_MS);
    ck_assert(fabs(number(c, ACCOUNT_PROJECT, "vision", "used_gpu_hours") - 2.0 / 3) < 0.01);
}
END_TEST

START_TEST(a_wall_clock_that_is_set_leaves_the_order_of_submission)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 1);
    submit(c, "aaaa");
    submit(c, "bbbb", .time_limit_ms = HOUR_MS);
    c->wall_ms -= 10LL * 365 * 24 * HOUR_MS;
    advance_beating(c, 40 * MINUTE_MS, "a");
    submit(c, "cccc", .time_limit_ms = HOUR_MS - 2 * MINUTE_MS); /* due a little later than bbbb */
    c->wall_ms += 20LL * 365 * 24 * HOUR_MS;
    exited(c, "aaaa", "a", 0);
    expect_job(c, "bbbb", JOB_PLACED);
    expect_job(c, "cccc", JOB_QUEUED);
}
END_TEST

/* --- who sees what, and how long ------------------------------------------------------------------------ */

START_TEST(a_user_sees_its_own_account_and_itself_in_its_projects)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4);
    submit(c, "aaaa", .gpus = 2, .project = "vision", .owner = "anna");
    submit(c, "bbbb", .project = "vision", .owner = "bert");
    ck_assert_ptr_nonnull(strstr(account_text(c, ACCOUNT_PROJECT, "vision", "anna"), "\"gpus\":3"));
    ck_assert_ptr_null(strstr(account_text(c, ACCOUNT_PROJECT, "vision", "anna"), "bert"));
    ck_assert_ptr_nonnull(strstr(account_text(c, ACCOUNT_PROJECT, "vision", NULL), "bert"));
    ck_assert_ptr_null(account_text(c, ACCOUNT_PROJECT, "vision", "clara"));
    ck_assert_int_eq(c->step.err.code, ERR_NOT_FOUND);
    ck_assert_ptr_null(account_text(c, ACCOUNT_USER, "bert", "anna"));
    const char *all = account_text(c, ACCOUNT_PROJECT, NULL, "anna");
    ck_assert_ptr_nonnull(strstr(all, "\"kind\":\"user\",\"name\":\"anna\""));
    ck_assert_ptr_null(strstr(all, "bert"));
}
END_TEST

START_TEST(pages_go_on_where_the_last_one_ended)
{
    autocluster struct cluster *c = cluster_open();
    c->large = true;
    node(c, "a");
    char name[16];
    for (int i = 0; i < LIMIT_ACCOUNT_ROWS + 5; i++) {
        snprintf(name, sizeof name, "p%04d", i);
        ck_assert_int_eq(limit(c, ACCOUNT_PROJECT, name, "{}"), ERR_NONE);
    }
    struct input input = {.kind = INPUT_ACCOUNTS, .accounts = {.after = "project/p0199"}};
    const char *first = account_text(c, ACCOUNT_PROJECT, NULL, NULL);
    ck_assert_ptr_nonnull(strstr(first, "],\"next\":\"project/p0199\"}"));
    cluster_step(c, &input);
    ck_assert_ptr_null(strstr(c->step.answer, "p0199"));
    ck_assert_ptr_nonnull(strstr(c->step.answer, "p0200"));
    ck_assert_ptr_nonnull(strstr(c->step.answer, "],\"next\":null}"));
    core_check(c->core);
}
END_TEST

START_TEST(a_bounded_number_of_accounts_is_remembered_for_its_use)
{
    autocluster struct cluster *c = cluster_open();
    c->large = true;
    core_trace(c->core, NULL);
    node(c, "a");
    char name[16];
    for (int i = 0; i < LIMIT_ACCOUNTS_KEPT / 2 + 10; i++) {
        snprintf(name, sizeof name, "p%d", i);
        ck_assert_int_eq(submit(c, name, .project = name, .owner = name), ERR_NONE);
        heartbeat(c, "a");
        advance(c, 10);
        ck_assert_int_eq(exited(c, name, "a", 0), ERR_NONE);
    }
    ck_assert_ptr_nonnull(account_text(c, ACCOUNT_PROJECT, name, NULL));
    cluster_restart(c);
    core_check(c->core);
    ck_assert_ptr_nonnull(account_text(c, ACCOUNT_PROJECT, name, NULL));
    for (int i = 0; i < LIMIT_ACCOUNTS_KEPT; i++) {
        snprintf(name, sizeof name, "q%d", i);
        submit(c, name, .project = "q", .owner = name);
        heartbeat(c, "a");
        advance(c, 10);
        ck_assert_int_eq(exited(c, name, "a", 0), ERR_NONE);
    }
    ck_assert_ptr_null(account_text(c, ACCOUNT_PROJECT, "p1", NULL));
    ck_assert_uint_le(rows_usage_count(c->rows), 2 * LIMIT_ACCOUNTS_KEPT + 2);
    core_check(c->core);
}
END_TEST

START_TEST(a_project_may_be_kept_to_some_pools)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .pool = "open");
    node(c, "b", .pool = "dear");
    node(c, "r", .pool = "mine", .reserved = true, .type = "H100");
    ck_assert_int_eq(limit(c, ACCOUNT_PROJECT, "vision", "{\"pools\":[\"open\"]}"), ERR_NONE);
    submit(c, "aaaa", .project = "vision", .type = "A10");
    expect_orders(c, "a", "run aaaa/1 rank 0-0 of 1 on 0\n");
    submit(c, "wait", .project = "vision", .type = "A10");
    expect_job(c, "wait", JOB_QUEUED); /* b is free, and not for it */
    expect_reason(c, "wait", "NODES_BUSY",
                  "waits for 1 A10: 0 are free, 1 more when job aaaa ends, which is expected to end in 1 h");
    ck_assert_int_eq(submit(c, "dear", .project = "vision", .pool = "dear"), ERR_LIMIT);
    expect_field(c, "pool");
    ck_assert_int_eq(submit(c, "kept", .project = "vision", .type = "H100"),
                     ERR_LIMIT); /* leads to the reserved one */
    submit(c, "else", .type = "A10");
    expect_orders(c, "b", "run else/1 rank 0-0 of 1 on 0\n");
    limit(c, ACCOUNT_PROJECT, "vision", "{\"pools\":[\"gone\"]}");
    expect_reason(c, "wait", "LIMIT", "project vision has only these pools: gone");
    limit(c, ACCOUNT_PROJECT, "vision", "{\"pools\":null}");
    exited(c, "else", "b", 0);
    expect_job(c, "wait", JOB_PLACED);
}
END_TEST

Suite *account_suite(void)
{
    Suite *suite = suite_create("accounts");
    TCase *tests = tcase_create("accounts");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_project_may_be_kept_to_some_pools);
    tcase_add_test(tests, a_job_over_the_cap_of_its_project_waits_and_says_why_and_holds_up_nobody);
    tcase_add_test(tests, a_user_has_limits_over_all_projects);
    tcase_add_test(tests, what_limits_never_allow_is_refused_at_once);
    tcase_add_test(tests, one_more_than_may_wait_is_refused);
    tcase_add_test(tests, hours_of_a_period_used_up_let_jobs_wait_for_the_next_period);
    tcase_add_test(tests, hours_count_from_the_setting_of_their_limit);
    tcase_add_test(tests, without_a_quota_nobody_has_borrowed);
    tcase_add_test(tests, what_is_beyond_the_quota_is_borrowed_and_rises_when_there_is_room);
    tcase_add_test(tests, an_attempt_that_is_being_stopped_does_not_rise);
    tcase_add_test(tests, a_quota_below_what_is_used_needs_force_and_makes_the_youngest_borrowers);
    tcase_add_test(tests, the_first_quota_on_a_type_takes_from_others_only_by_force);
    tcase_add_test(tests, a_pool_takes_only_nodes_that_run_jobs_as_their_owners);
    tcase_add_test(tests, only_reserved_pools_that_are_there_lend);
    tcase_add_test(tests, powers_of_a_half_and_logarithms_are_those_of_the_library);
    tcase_add_test(tests, use_counts_while_a_gang_runs_and_halves_with_time);
    tcase_add_test(tests, who_used_more_than_its_share_waits_longer);
    tcase_add_test(tests, users_of_one_project_share_it_at_half_the_delay);
    tcase_add_test(tests, a_moment_of_use_is_no_ground_for_a_delay);
    tcase_add_test(tests, use_does_not_go_by_the_wall_clock);
    tcase_add_test(tests, a_wall_clock_that_is_set_charges_nobody);
    tcase_add_test(tests, a_wall_clock_that_is_set_leaves_the_order_of_submission);
    tcase_add_test(tests, a_user_sees_its_own_account_and_itself_in_its_projects);
    tcase_add_test(tests, pages_go_on_where_the_last_one_ended);
    suite_add_tcase(suite, tests);
    TCase *large = tcase_create("large");
    tcase_set_tags(large, "large");
    tcase_set_timeout(large, 60);
    tcase_add_test(large, a_bounded_number_of_accounts_is_remembered_for_its_use);
    suite_add_tcase(suite, large);
    return suite;
}
