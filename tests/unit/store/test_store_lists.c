/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of jobs by page and filter, and why a job waits. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

/* The keys that a filter gives, in order, each with a space. */
static void expect_keys(const struct job_filter *filter, const char *keys)
{
    autotext struct text read = {0};
    text_append(&read, "");
    ck_assert_msg(each_job(reader_jobs(rig.reader, filter, &rig.err), visit_job_key, &read), "%s",
                  rig.err.text);
    ck_assert_str_eq(read.bytes, keys);
}

/* Jobs 1..count, all alike. */
static void fill(int64_t count)
{
    struct change jobs[64];
    for (int64_t key = 1; key <= count;) {
        size_t n = 0;
        while (n < 64 && key <= count) {
            jobs[n++] = job_insert(key++);
        }
        rig_write(jobs, n);
    }
}

START_TEST(a_list_begins_with_the_newest_and_goes_on_before_a_key)
{
    fill(5);
    expect_keys(&(struct job_filter){.limit = 10}, "5 4 3 2 1 ");
    expect_keys(&(struct job_filter){.limit = 2}, "5 4 ");
    expect_keys(&(struct job_filter){.limit = 2, .before_key = 4}, "3 2 ");
    expect_keys(&(struct job_filter){.limit = 2, .before_key = 2}, "1 ");
    expect_keys(&(struct job_filter){.limit = 2, .before_key = 1}, "");
}
END_TEST

START_TEST(a_filter_lets_only_those_pass_that_fit_all_of_it)
{
    struct change other_owner = job_insert(2);
    struct change other_name = job_insert(3);
    struct change no_name = job_insert(4);
    struct change other_project = job_insert(5);
    other_owner.job.birth.owner = "bob";
    other_name.job.birth.name = "eval";
    no_name.job.birth.name = NULL;
    other_project.job.birth.project = "audio";
    rig_write(
        (struct change[]){job_insert(1), other_owner, other_name, no_name, other_project, job_insert(6)}, 6);
    expect_keys(&(struct job_filter){.limit = 9, .owner = "alice"}, "6 5 4 3 1 ");
    expect_keys(&(struct job_filter){.limit = 9, .owner = "carol"}, "");
    expect_keys(&(struct job_filter){.limit = 9, .name = "train"}, "6 5 2 1 ");
    expect_keys(&(struct job_filter){.limit = 9, .project = "vision"}, "6 4 3 2 1 ");
    expect_keys(&(struct job_filter){.limit = 9, .since_ms = 1005}, "6 5 ");
    expect_keys(&(struct job_filter){.limit = 9, .owner = "alice", .name = "train", .project = "vision"},
                "6 1 ");
    expect_keys(&(struct job_filter){.limit = 1, .owner = "alice", .name = "train", .before_key = 6}, "5 ");
}
END_TEST

static bool visit_task(const struct job_record *job, void *closure)
{
    text_printf(closure, "%lld of %s, %lld tasks; ", (long long)job->birth.task,
                job->birth.array_id != NULL ? job->birth.array_id : "none", (long long)job->array.tasks);
    return true;
}

START_TEST(tasks_are_listed_with_their_array_and_not_among_jobs)
{
    struct change task = job_insert(3), other = job_insert(4);
    struct change counts = {.kind = CHANGE_ARRAY_PUT, .array = {.whole = 2, .tasks = 9}};
    task.job.birth.array_key = other.job.birth.array_key = 2;
    task.job.birth.task = 0;
    other.job.birth.task = 1;
    rig_write((struct change[]){job_insert(1), job_insert(2), counts, task, other, job_insert(5)}, 6);
    expect_keys(&(struct job_filter){.limit = 9}, "5 2 1 ");
    expect_keys(&(struct job_filter){.limit = 9, .owner = "alice"}, "5 2 1 ");
    expect_keys(&(struct job_filter){.limit = 9, .states = 1u << JOB_QUEUED}, "5 2 1 ");
    expect_keys(&(struct job_filter){.limit = 9, .array_key = 2}, "4 3 ");
    expect_keys(&(struct job_filter){.limit = 9, .array_key = 2, .owner = "bob"}, "");
    expect_keys(&(struct job_filter){.limit = 1, .array_key = 2, .before_key = 4}, "3 ");
    expect_keys(&(struct job_filter){.limit = 9, .id_prefix = "job"}, "5 4 3 2 1 ");
    autotext struct text read = {0};
    const struct job_filter tasks = {.limit = 9, .array_key = 2}, all = {.limit = 9};
    ck_assert(each_job(reader_jobs(rig.reader, &tasks, &rig.err), visit_task, &read));
    ck_assert(each_job(reader_jobs(rig.reader, &all, &rig.err), visit_task, &read));
    autotext struct text expected = {0};
    text_printf(&expected, "1 of %s, 0 tasks; ", rig_id(2));
    text_printf(&expected, "0 of %s, 0 tasks; -1 of none, 0 tasks; ", rig_id(2));
    text_append(&expected, "-1 of none, 9 tasks; -1 of none, 0 tasks; ");
    ck_assert_str_eq(read.bytes, expected.bytes);
}
END_TEST

static struct change job_of(int64_t key, const char *owner, enum job_state state)
{
    struct change job = job_insert(key);
    job.job.birth.owner = owner;
    job.job.life.state = state;
    return job;
}

/* 1 of bob has run on a and then on b, 2 has run on both at once, 3 runs on a, 5 is a task of 4 that has run
 * on a, 6 on nothing, and 7 on b. */
static void fill_nodes(void)
{
    struct change task = job_of(5, "alice", JOB_FAILED);
    task.job.birth.array_key = 4;
    task.job.birth.task = 0;
    rig_write((struct change[]){job_of(1, "bob", JOB_SUCCEEDED),
                                attempt_insert(11, 1, 1),
                                member_insert(11, 0, "a", "0"),
                                {.kind = CHANGE_ATTEMPT_UPDATE,
                                 .attempt = {.attempt_id = 11, .state = ATTEMPT_ENDED}},
                                attempt_insert(12, 1, 2),
                                member_insert(12, 0, "b", "1"),
                                job_of(2, "alice", JOB_SUCCEEDED),
                                attempt_insert(21, 2, 1),
                                member_insert(21, 0, "b", "2"),
                                member_insert(21, 1, "a", "3,4"),
                                job_of(3, "alice", JOB_RUNNING),
                                attempt_insert(31, 3, 1),
                                member_insert(31, 0, "a", "5"),
                                job_of(4, "alice", JOB_QUEUED)},
              14);
    rig_write((struct change[]){task, attempt_insert(51, 5, 1), member_insert(51, 0, "a", "6"),
                                job_of(6, "alice", JOB_QUEUED), job_of(7, "alice", JOB_SUCCEEDED),
                                attempt_insert(71, 7, 1), member_insert(71, 0, "b", "7")},
              7);
}

START_TEST(the_jobs_of_a_node_are_those_that_were_placed_on_it_with_tasks)
{
    fill_nodes();
    const uint32_t live = 1u << JOB_RUNNING | 1u << JOB_QUEUED;
    expect_keys(&(struct job_filter){.limit = 9, .node = "a"}, "5 3 2 1 ");
    expect_keys(&(struct job_filter){.limit = 9, .node = "b"}, "7 2 1 ");
    expect_keys(&(struct job_filter){.limit = 9, .node = "c"}, "");
    expect_keys(&(struct job_filter){.limit = 2, .node = "a", .before_key = 5}, "3 2 ");
    expect_keys(&(struct job_filter){.limit = 9, .node = "a", .behind_key = 2}, "5 3 ");
    expect_keys(&(struct job_filter){.limit = 9, .node = "a", .owner = "alice"}, "5 3 2 ");
    expect_keys(&(struct job_filter){.limit = 9, .node = "a", .states = live}, "3 ");
    expect_keys(&(struct job_filter){.limit = 9, .node = "a", .states = 1u << JOB_FAILED}, "5 ");
    expect_keys(&(struct job_filter){.limit = 9, .node = "a", .since_ms = 1003}, "5 3 ");
    expect_keys(&(struct job_filter){.limit = 9, .node = "a", .array_key = 4}, "5 ");
    expect_keys(&(struct job_filter){.limit = 9, .node = "b", .array_key = 4}, "");
    expect_keys(&(struct job_filter){.limit = 9, .node = "b", .id_prefix = "jo"}, "7 2 1 ");
    expect_keys(&(struct job_filter){.limit = 9, .node = "b", .id_prefix = rig_id(2)}, "2 ");
    expect_keys(&(struct job_filter){.limit = 9, .node = "b", .id_prefix = rig_id(3)}, "");
    expect_keys(&(struct job_filter){.limit = 9, .states = live}, "6 4 3 "); /* without a node no tasks */
}
END_TEST

/* The number of the newest attempt of a job there, and its devices; "": none. */
static void expect_on_node(int64_t key, const char *node, const char *expected)
{
    struct attempt_row attempt;
    struct member_row member;
    char read[64] = "";
    autorows struct rows rows = reader_on_node(rig.reader, key, node, &rig.err);
    while (rows_on_node(&rows, &attempt, &member)) {
        ck_assert_str_eq(member.node, node);
        snprintf(read + strlen(read), sizeof read - strlen(read), "%lld: %s;", (long long)attempt.number,
                 member.devices);
    }
    ck_assert_msg(!rows.failed, "%s", rig.err.text);
    ck_assert_str_eq(read, expected);
}

START_TEST(the_newest_attempt_of_a_job_on_a_node_is_known_with_its_part_there)
{
    fill_nodes();
    expect_on_node(1, "a", "1: 0;");
    expect_on_node(1, "b", "2: 1;");
    expect_on_node(2, "a", "1: 3,4;");
    expect_on_node(6, "a", "");
    rig_write((struct change[]){{.kind = CHANGE_ATTEMPT_UPDATE,
                                 .attempt = {.attempt_id = 12, .state = ATTEMPT_ENDED}},
                                attempt_insert(13, 1, 3),
                                member_insert(13, 0, "a", "8")},
              3);
    expect_on_node(1, "a", "3: 8;");
    expect_on_node(1, "b", "2: 1;");
}
END_TEST

/* Job n + 1 is in state n. */
static void fill_states(void)
{
    for (enum job_state state = 0; state < JOB_STATE_COUNT; state++) {
        rig_write((struct change[]){job_insert(state + 1), job_update(state + 1, state)}, 2);
    }
}

START_TEST(every_set_of_states_lists_exactly_the_jobs_in_them)
{
    fill_states();
    for (uint32_t states = 1; states < 1u << JOB_STATE_COUNT; states++) {
        autotext struct text keys = {0};
        for (int state = JOB_STATE_COUNT - 1; state >= 0; state--) {
            if ((states & (1u << state)) != 0) {
                text_printf(&keys, "%d ", state + 1);
            }
        }
        expect_keys(&(struct job_filter){.limit = 100, .states = states}, keys.bytes);
        expect_keys(&(struct job_filter){.limit = 100, .states = states, .owner = "alice"}, keys.bytes);
        expect_keys(&(struct job_filter){.limit = 100, .states = states, .owner = "bob"}, "");
    }
}
END_TEST

START_TEST(a_job_that_ends_leaves_the_list_of_live_jobs)
{
    struct job_filter running = {.limit = 9, .states = 1u << JOB_RUNNING};
    fill(2);
    expect_keys(&running, "");
    rig_write_one(job_update(1, JOB_RUNNING));
    expect_keys(&running, "1 ");
    rig_write_one(job_update(1, JOB_SUCCEEDED));
    expect_keys(&running, "");
}
END_TEST

START_TEST(a_job_is_found_by_id_however_many_came_after_it)
{
    fill(3000); /* three parts of the index */
    static const int64_t keys[] = {1, 1023, 1024, 2047, 2048, 3000};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        autotext struct text read = {0};
        autotext struct text line = {0};
        bool found;
        ck_assert(one_job(reader_job(rig.reader, rig_id(keys[i]), &rig.err), visit_one_job, &read, &found));
        ck_assert(found);
        text_printf(&line, "%lld id %s ", (long long)keys[i], rig_id(keys[i]));
        ck_assert_int_eq(strncmp(read.bytes, line.bytes, line.length), 0);
    }
    bool found;
    ck_assert(one_job(reader_job(rig.reader, rig_id(3001), &rig.err), visit_one_job, NULL, &found));
    ck_assert(!found);
}
END_TEST

START_TEST(a_prefix_lists_the_ids_that_begin_with_it)
{
    fill(2100);
    char prefix[ID_LENGTH + 1];
    snprintf(prefix, sizeof prefix, "%.6s", rig_id(1500));
    expect_keys(&(struct job_filter){.limit = 9, .id_prefix = prefix}, "1500 ");
    expect_keys(&(struct job_filter){.limit = 9, .id_prefix = rig_id(7)}, "7 ");
    snprintf(prefix, sizeof prefix, "%.5s", rig_id(1024));
    expect_keys(&(struct job_filter){.limit = 3, .id_prefix = prefix}, "1055 1054 1053 ");
    expect_keys(&(struct job_filter){.limit = 3, .id_prefix = prefix, .before_key = 1026}, "1025 1024 ");
    expect_keys(&(struct job_filter){.limit = 3, .id_prefix = "job", .owner = "alice"}, "2100 2099 2098 ");
    expect_keys(&(struct job_filter){.limit = 3, .id_prefix = "joc"}, "");
    expect_keys(&(struct job_filter){.limit = 3, .id_prefix = "jo", .states = 1u << JOB_RUNNING}, "");
}
END_TEST

Suite *store_lists_suite(void)
{
    Suite *suite = suite_create("store-lists");
    TCase *cases = tcase_create("lists");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_add_test(cases, a_list_begins_with_the_newest_and_goes_on_before_a_key);
    tcase_add_test(cases, a_filter_lets_only_those_pass_that_fit_all_of_it);
    tcase_add_test(cases, tasks_are_listed_with_their_array_and_not_among_jobs);
    tcase_add_test(cases, the_jobs_of_a_node_are_those_that_were_placed_on_it_with_tasks);
    tcase_add_test(cases, the_newest_attempt_of_a_job_on_a_node_is_known_with_its_part_there);
    tcase_add_test(cases, every_set_of_states_lists_exactly_the_jobs_in_them);
    tcase_add_test(cases, a_job_that_ends_leaves_the_list_of_live_jobs);
    tcase_add_test(cases, a_job_is_found_by_id_however_many_came_after_it);
    tcase_add_test(cases, a_prefix_lists_the_ids_that_begin_with_it);
    suite_add_tcase(suite, cases);
    return suite;
}
