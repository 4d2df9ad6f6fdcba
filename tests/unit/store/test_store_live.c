/* SPDX-License-Identifier: Apache-2.0 */
/* What the core is given at a start, and what readers see while the writer goes on. */
#include <pthread.h>
#include <string.h>

#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

static bool load_history(const struct history_row *row, void *closure, struct err *err)
{
    text_printf(closure, "history %s %s %s %lld %d: %lld %lld %lld %lld\n", row->project, row->owner,
                row->name, (long long)row->gpus, row->limited, (long long)row->count, (long long)row->ran_ms,
                (long long)row->limit_ms, (long long)row->error_percent);
    return true;
}

static bool load_usage(const struct usage_row *row, void *closure, struct err *err)
{
    text_printf(closure, "usage %s %s: %.17g, %.17g at %lld\n", row->project != NULL ? row->project : "-",
                row->owner != NULL ? row->owner : "-", row->gpu_ms, row->spent_ms, (long long)row->at_ms);
    return true;
}

static bool load_limits(const struct limits_row *row, void *closure, struct err *err)
{
    text_printf(closure, "limits %s %s: %s\n", account_kind_text(row->kind), row->name, row->limits);
    return true;
}

static bool load_node(const struct node_row *row, void *closure, struct err *err)
{
    return visit_node(row, &(struct node_used){0}, closure);
}

static bool load_window(const struct window_row *row, void *closure, struct err *err)
{
    text_printf(closure, "window %s of %s %s %lld-%lld %d %s by %s at %lld\n", row->id,
                row->nodes != NULL ? row->nodes : "-", row->pool != NULL ? row->pool : "-",
                (long long)row->from_ms, (long long)row->until_ms, row->hard,
                row->reason != NULL ? row->reason : "-", row->owner, (long long)row->created_ms);
    return true;
}

static bool see_window(const struct window_row *row, void *closure)
{
    return load_window(row, closure, NULL);
}

static bool load_job(const struct job_birth *birth, const struct job_life *life, void *closure,
                     struct err *err)
{
    print_job(closure, birth, life);
    return true;
}

static bool load_dependency(const struct dependency_row *row, void *closure, struct err *err)
{
    text_printf(closure, "%lld follows %lld: %s\n", (long long)row->job_key, (long long)row->on_key,
                dependency_text(row->kind));
    return true;
}

static bool load_array(const struct array_row *row, void *closure, struct err *err)
{
    text_printf(closure,
                "array %lld: %lld at most %lld, placed %lld running %lld ended %lld %lld %lld worst %lld\n",
                (long long)row->whole, (long long)row->tasks, (long long)row->parallel,
                (long long)row->placed, (long long)row->running, (long long)row->succeeded,
                (long long)row->failed, (long long)row->canceled, (long long)row->worst_code);
    return true;
}

static bool load_attempt(const struct attempt_row *row, void *closure, struct err *err)
{
    return visit_attempt(row, closure);
}

static bool load_member(const struct member_row *row, void *closure, struct err *err)
{
    return visit_member(row, closure);
}

static const struct store_visitor to_text = {.history = load_history,
                                             .limits = load_limits,
                                             .usage = load_usage,
                                             .node = load_node,
                                             .window = load_window,
                                             .job = load_job,
                                             .array = load_array,
                                             .dependency = load_dependency,
                                             .attempt = load_attempt,
                                             .member = load_member};

static void expect_live(const struct text *expected)
{
    autotext struct text loaded = {0};
    struct store_visitor visitor = to_text;
    visitor.closure = &loaded;
    ck_assert_msg(store_load_live(rig.store, &visitor, &rig.err), "%s", rig.err.text);
    ck_assert_str_eq(loaded.bytes, expected->bytes);
}

START_TEST(a_start_loads_nodes_then_live_jobs_by_key_then_newest_attempts_then_their_members)
{
    struct change first = job_insert(3);
    struct change second = job_insert(5);
    struct change done = job_insert(4);
    done.job.life.state = JOB_SUCCEEDED;
    first.job.life.attempt = 2;
    second.job.life.attempt = 1;
    struct change old = attempt_insert(10, 3, 1);
    struct change newest = attempt_insert(11, 3, 2);
    struct change other = attempt_insert(9, 5, 1);
    old.attempt.state = ATTEMPT_ENDED;
    struct change member = member_insert(11, 0, "gpu-1", "0");
    struct change next_member = member_insert(11, 1, "gpu-2", "0");
    struct change other_member = member_insert(9, 0, "gpu-1", "1");
    struct change a = node_put("gpu-1");
    struct change b = node_put("gpu-2");
    rig_write((struct change[]){second, other, other_member, done, attempt_insert(12, 4, 1),
                                member_insert(12, 0, "gpu-1", "2"), first, old,
                                member_insert(10, 0, "gpu-1", "3"), newest, next_member, member, b, a},
              14);
    autotext struct text expected = {0};
    visit_node(&a.node, &(struct node_used){0}, &expected);
    visit_node(&b.node, &(struct node_used){0}, &expected);
    print_job(&expected, &first.job.birth, &first.job.life);
    print_job(&expected, &second.job.birth, &second.job.life);
    visit_attempt(&newest.attempt, &expected);
    visit_attempt(&other.attempt, &expected);
    visit_member(&member.member, &expected);
    visit_member(&next_member.member, &expected);
    visit_member(&other_member.member, &expected);
    rig_reopen();
    expect_live(&expected);
}
END_TEST

START_TEST(a_start_loads_how_far_arrays_are_and_tasks_with_the_spec_of_their_array)
{
    struct change array = job_insert(3), task = job_insert(4), plain = job_insert(5);
    struct change counts = {.kind = CHANGE_ARRAY_PUT,
                            .array = {.whole = 3, .tasks = 20, .parallel = 4, .placed = 1, .running = 1}};
    task.job.birth.array_key = 3;
    task.job.birth.task = 7;
    task.job.birth.owner = task.job.birth.name = task.job.birth.project = task.job.birth.spec = NULL;
    rig_write((struct change[]){array, counts, task, plain}, 4);
    counts.array = (struct array_row){.whole = 3,
                                      .tasks = 20,
                                      .parallel = 4,
                                      .placed = 9,
                                      .running = 3,
                                      .succeeded = 1,
                                      .failed = 2,
                                      .canceled = 3,
                                      .worst_code = 137};
    rig_write_one(counts);
    autotext struct text expected = {0};
    struct change as_read = job_insert(4);
    as_read.job.birth.array_key = 3;
    as_read.job.birth.task = 7;
    print_job(&expected, &array.job.birth, &array.job.life);
    print_job(&expected, &as_read.job.birth, &as_read.job.life);
    print_job(&expected, &plain.job.birth, &plain.job.life);
    text_append(&expected, "array 3: 20 at most 4, placed 9 running 3 ended 1 2 3 worst 137\n");
    rig_reopen();
    expect_live(&expected);
    ck_assert_int_eq(store_next_job_key(rig.store), 6);
}
END_TEST

static struct change event_insert(int64_t job_key, int64_t seq, enum event_kind kind, int64_t at_ms)
{
    return (struct change){.kind = CHANGE_EVENT_INSERT,
                           .event = {.job_key = job_key, .seq = seq, .kind = kind, .at_ms = at_ms}};
}

static bool load_look(const struct job_birth *birth, const struct job_life *life, void *closure,
                      struct err *err)
{
    text_printf(closure, "job %lld kept since %lld\n", (long long)birth->key, (long long)life->kept_since_ms);
    return true;
}

START_TEST(a_start_loads_since_when_the_newest_attempt_is_kept)
{
    struct change kept = job_insert(1), again = job_insert(2), released = job_insert(3);
    released.job.life.kept_until_ms = 0;
    rig_write((struct change[]){kept, again, released, event_insert(1, 1, EVENT_KEPT, 10),
                                event_insert(1, 2, EVENT_CHANGED, 11), event_insert(2, 1, EVENT_KEPT, 12),
                                event_insert(2, 2, EVENT_KEPT, 13), event_insert(3, 1, EVENT_KEPT, 14)},
              8);
    rig_reopen();
    autotext struct text loaded = {0};
    struct store_visitor visitor = to_text;
    visitor.job = load_look;
    visitor.closure = &loaded;
    ck_assert(store_load_live(rig.store, &visitor, &rig.err));
    ck_assert_str_eq(loaded.bytes, "job 1 kept since 10\njob 2 kept since 13\njob 3 kept since 0\n");
}
END_TEST

static struct change dependency_insert(int64_t job_key, int64_t on_key, enum dependency kind)
{
    return (struct change){.kind = CHANGE_DEPENDENCY_INSERT,
                           .dependency = {.job_key = job_key, .on_key = on_key, .kind = kind}};
}

static bool print_dependency(const struct dependency_record *record, void *closure)
{
    text_printf(closure, "%lld %s %s %s %d\n", (long long)record->row.job_key,
                dependency_text(record->row.kind), record->id, job_state_text(record->state),
                record->started);
    return true;
}

START_TEST(a_start_loads_what_live_jobs_dependency_and_readers_see_how_that_stands)
{
    struct change first = job_insert(1), second = job_insert(2), third = job_insert(3), done = job_insert(4);
    first.job.life.state = JOB_FAILED;
    first.job.life.started_ms = 0;
    second.job.life.state = JOB_RUNNING;
    second.job.life.started_ms = 7;
    third.job.life.state = JOB_BLOCKED;
    done.job.life.state = JOB_CANCELED;
    rig_write((struct change[]){first, second, third, dependency_insert(3, 2, DEPENDENCY_AFTEROK),
                                dependency_insert(3, 1, DEPENDENCY_AFTERANY), done,
                                dependency_insert(4, 2, DEPENDENCY_AFTER)},
              7);
    autotext struct text expected = {0};
    print_job(&expected, &second.job.birth, &second.job.life);
    print_job(&expected, &third.job.birth, &third.job.life);
    text_append(&expected, "3 follows 1: afterany\n3 follows 2: afterok\n");
    rig_reopen();
    expect_live(&expected);
    autotext struct text seen = {0};
    text_clear(&expected);
    text_printf(&expected, "3 afterany %s FAILED 0\n3 afterok %s RUNNING 1\n", first.job.birth.id,
                second.job.birth.id);
    ck_assert(each_dependency(reader_dependencies(rig.reader, 3, &rig.err), print_dependency, &seen));
    ck_assert_str_eq(seen.bytes, expected.bytes);
}
END_TEST

START_TEST(a_start_loads_what_was_learned_of_run_times_and_what_was_used)
{
    struct change first = {.kind = CHANGE_HISTORY_PUT,
                           .history = {.project = "vision",
                                       .owner = "anna",
                                       .name = "train-",
                                       .gpus = 8,
                                       .limited = true,
                                       .count = 1,
                                       .ran_ms = 5,
                                       .limit_ms = 10}};
    struct change again = first;
    again.history.count = 2;
    again.history.ran_ms = 9;
    again.history.limit_ms = 20;
    again.history.error_percent = 30;
    struct change unlimited = first;
    unlimited.history.limited = false;
    unlimited.history.limit_ms = 0;
    rig_write(
        (struct change[]){
            first,
            unlimited,
            again,
            {.kind = CHANGE_USAGE_PUT, .usage = {.project = "vision", .gpu_ms = 0.5, .at_ms = 7}},
            {.kind = CHANGE_USAGE_PUT, .usage = {.owner = "anna", .gpu_ms = 1e9, .spent_ms = 6, .at_ms = 8}},
            {.kind = CHANGE_USAGE_PUT, .usage = {.project = "vision", .gpu_ms = 0.25, .at_ms = 9}}},
        6);
    autotext struct text expected = {0};
    load_history(&again.history, &expected, NULL);
    load_history(&unlimited.history, &expected, NULL);
    text_append(&expected, "usage - anna: 1000000000, 6 at 8\nusage vision -: 0.25, 0 at 9\n");
    rig_reopen();
    expect_live(&expected);
}
END_TEST

static struct change limits_put(enum account_kind kind, const char *name, const char *limits)
{
    return (struct change){.kind = CHANGE_LIMITS_PUT,
                           .limits = {.kind = kind, .name = name, .limits = limits}};
}

START_TEST(limits_are_kept_until_they_are_taken_away_and_use_until_it_is_forgotten)
{
    rig_write(
        (struct change[]){
            limits_put(ACCOUNT_USER, "anna", "{\"weight\":2}"),
            limits_put(ACCOUNT_PROJECT, "anna", "{}"),
            limits_put(ACCOUNT_POOL, "default", "{\"lend\":true}"),
            limits_put(ACCOUNT_USER, "anna", "{\"weight\":3}"),
            {.kind = CHANGE_LIMITS_DELETE, .limits = {.kind = ACCOUNT_PROJECT, .name = "anna"}},
            {.kind = CHANGE_USAGE_PUT, .usage = {.project = "a", .owner = "anna", .gpu_ms = 5, .at_ms = 1}},
            {.kind = CHANGE_USAGE_PUT, .usage = {.project = "b", .owner = "anna", .gpu_ms = 6, .at_ms = 2}},
            {.kind = CHANGE_USAGE_DELETE, .usage = {.project = "a", .owner = "anna"}},
            {.kind = CHANGE_USAGE_DELETE, .usage = {.project = "never"}}},
        9);
    autotext struct text expected = {0};
    text_append(&expected, "limits pool default: {\"lend\":true}\nlimits user anna: {\"weight\":3}\n"
                           "usage b anna: 6, 0 at 2\n");
    rig_reopen();
    expect_live(&expected);
    struct change absent = {.kind = CHANGE_LIMITS_DELETE, .limits = {.kind = ACCOUNT_USER, .name = "bert"}};
    ck_assert(store_begin(rig.store, &rig.err));
    ck_assert(!store_apply(rig.store, &absent, 1, &rig.err));
}
END_TEST

START_TEST(a_start_loads_windows_by_their_beginning_without_those_that_are_gone)
{
    const struct window_row late = {
        .id = "a", .nodes = "gpu-1,gpu-2", .from_ms = 9, .until_ms = 10, .hard = true, .owner = "anna"};
    const struct window_row early = {.id = "b",
                                     .pool = "big",
                                     .from_ms = 5,
                                     .until_ms = 20,
                                     .reason = "fan",
                                     .owner = "bob",
                                     .created_ms = 3};
    const struct window_row gone = {.id = "c", .from_ms = 1, .until_ms = 2, .owner = "bob"};
    rig_write((struct change[]){{.kind = CHANGE_WINDOW_INSERT, .window = late},
                                {.kind = CHANGE_WINDOW_INSERT, .window = gone},
                                {.kind = CHANGE_WINDOW_INSERT, .window = early},
                                {.kind = CHANGE_WINDOW_DELETE, .window = {.id = "c"}}},
              4);
    autotext struct text expected = {0};
    load_window(&early, &expected, NULL);
    load_window(&late, &expected, NULL);
    rig_reopen();
    expect_live(&expected);
    autotext struct text seen = {0};
    ck_assert(each_window(reader_windows(rig.reader, &rig.err), see_window, &seen));
    ck_assert_str_eq(seen.bytes, expected.bytes);
}
END_TEST

static bool refuse_job(const struct job_birth *birth, const struct job_life *life, void *closure,
                       struct err *err)
{
    return err_set(err, ERR_INTERNAL, "no job %s", birth->id);
}

START_TEST(a_visitor_that_refuses_a_row_ends_the_load_with_its_error)
{
    rig_write((struct change[]){job_insert(1), node_put("gpu-1")}, 2);
    autotext struct text loaded = {0};
    struct store_visitor visitor = to_text;
    visitor.job = refuse_job;
    visitor.closure = &loaded;
    ck_assert(!store_load_live(rig.store, &visitor, &rig.err));
    ck_assert_ptr_nonnull(strstr(rig.err.text, rig_id(1)));
}
END_TEST

START_TEST(readers_see_a_transaction_when_it_is_committed_and_not_before)
{
    struct change job = job_insert(1);
    bool found;
    ck_assert(store_begin(rig.store, &rig.err));
    ck_assert(store_apply(rig.store, &job, 1, &rig.err));
    ck_assert(one_job(reader_job_by_key(rig.reader, 1, &rig.err), visit_one_job, NULL, &found));
    ck_assert(!found);
    ck_assert(store_commit(rig.store, &rig.err));
    autotext struct text read = {0};
    ck_assert(one_job(reader_job_by_key(rig.reader, 1, &rig.err), visit_one_job, &read, &found));
    ck_assert(found);
}
END_TEST

/* What one reader saw of the growing list. */
struct watch {
    int64_t newest;   /* of the last list */
    int64_t previous; /* key within the list */
    bool gap;
};

static bool watch_job(const struct job_record *job, void *closure)
{
    struct watch *watch = closure;
    if (watch->previous == 0) {
        watch->gap |= job->birth.key < watch->newest;
        watch->newest = job->birth.key;
    } else {
        watch->gap |= job->birth.key != watch->previous - 1;
    }
    watch->previous = job->birth.key;
    return true;
}

enum { WATCHED_JOBS = 2000 };

/* Lists until all jobs are there; the newest never goes back, and no list has a gap. */
static void *watch_list(void *closure)
{
    struct watch *watch = closure;
    struct err err;
    struct reader *reader = reader_open(rig.path, &err);
    struct job_filter filter = {.limit = 200};
    bool ok = reader != NULL;
    while (ok && watch->newest < WATCHED_JOBS) {
        watch->previous = 0;
        ok = each_job(reader_jobs(reader, &filter, &err), watch_job, watch);
    }
    reader_close(reader);
    return ok ? watch : NULL;
}

START_TEST(two_readers_see_whole_transactions_in_order_while_the_writer_writes)
{
    struct watch watches[2] = {{0}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, watch_list, &watches[i]), 0);
    }
    for (int64_t key = 1; key <= WATCHED_JOBS; key += 4) {
        rig_write(
            (struct change[]){job_insert(key), job_insert(key + 1), job_insert(key + 2), job_insert(key + 3)},
            4);
        ck_assert_msg(store_checkpoint(rig.store, key % 64 == 1, &rig.err), "%s", rig.err.text);
    }
    for (int i = 0; i < 2; i++) {
        void *result;
        ck_assert_int_eq(pthread_join(threads[i], &result), 0);
        ck_assert_ptr_nonnull(result);
        ck_assert(!watches[i].gap);
    }
}
END_TEST

Suite *store_live_suite(void)
{
    Suite *suite = suite_create("store-live");
    TCase *cases = tcase_create("live");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, a_start_loads_nodes_then_live_jobs_by_key_then_newest_attempts_then_their_members);
    tcase_add_test(cases, a_start_loads_how_far_arrays_are_and_tasks_with_the_spec_of_their_array);
    tcase_add_test(cases, a_start_loads_since_when_the_newest_attempt_is_kept);
    tcase_add_test(cases, a_start_loads_what_live_jobs_dependency_and_readers_see_how_that_stands);
    tcase_add_test(cases, a_start_loads_what_was_learned_of_run_times_and_what_was_used);
    tcase_add_test(cases, limits_are_kept_until_they_are_taken_away_and_use_until_it_is_forgotten);
    tcase_add_test(cases, a_start_loads_windows_by_their_beginning_without_those_that_are_gone);
    tcase_add_test(cases, a_visitor_that_refuses_a_row_ends_the_load_with_its_error);
    tcase_add_test(cases, readers_see_a_transaction_when_it_is_committed_and_not_before);
    tcase_add_test(cases, two_readers_see_whole_transactions_in_order_while_the_writer_writes);
    suite_add_tcase(suite, cases);
    return suite;
}
