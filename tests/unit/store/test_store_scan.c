/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of jobs whose filter no index serves: what a page costs, and that the pages together are the list. */
#include <string.h>

#include "daemon/store/reader/reader.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

enum { ARRAY_KEY = 1, MOST = 6000 };

/* Of three jobs, one was placed on the node. */
static bool was_placed(int64_t key)
{
    return key % 3 == 0;
}

/* Of five jobs, one is a task of the array, and one is of bob. Of four, three have ended. */
static struct change sample(int64_t key)
{
    struct change job = job_insert(key);
    job.job.birth.array_key = key % 5 == 0 ? ARRAY_KEY : 0;
    job.job.birth.task = key % 5 == 0 ? key : -1;
    job.job.birth.owner = key % 5 == 1 && key != ARRAY_KEY ? "bob" : "alice";
    job.job.birth.name = key % 700 == 3 ? "rare" : "train";
    job.job.birth.project = key % 2 == 0 && key % 5 != 0 ? "vision" : "audio"; /* that of the array */
    job.job.life.state = key % 4 != 0 && key != ARRAY_KEY ? JOB_SUCCEEDED : JOB_QUEUED;
    return job;
}

static void fill(int64_t from, int64_t to)
{
    struct change rows[3 * 64];
    for (int64_t key = from; key <= to;) {
        size_t n = 0;
        for (; n + 3 <= sizeof rows / sizeof *rows && key <= to; key++) {
            rows[n++] = sample(key);
            if (was_placed(key)) {
                rows[n++] = attempt_insert((uint64_t)key, key, 1);
                rows[n++] = member_insert((uint64_t)key, 0, "node", "0");
            }
        }
        rig_write(rows, n);
    }
}

/* Where the list goes on, 0: nowhere. Appends the keys of the page. */
static int64_t read_page(struct job_filter filter, struct text *keys)
{
    bool over;
    int64_t limit = filter.limit++, last = 0;
    ck_assert_msg(reader_jobs_bound(rig.reader, &filter, &over, &rig.err), "%s", rig.err.text);
    autorows struct rows rows = reader_jobs(rig.reader, &filter, &rig.err);
    struct job_record job;
    while (rows_job(&rows, &job)) {
        if (limit-- == 0) {
            return last;
        }
        last = job.birth.key;
        visit_job_key(&job, keys);
    }
    ck_assert(!rows.failed);
    return over ? 0 : filter.behind_key + 1;
}

#define STATE(name) (1u << JOB_##name)

static const struct job_filter filters[] = {
    {.limit = 40},
    {.limit = 40, .name = "none"},
    {.limit = 40, .name = "rare"},
    {.limit = 40, .owner = "bob"},
    {.limit = 40, .owner = "bob", .name = "none"},
    {.limit = 40, .owner = "carol"},
    {.limit = 40, .owner = "alice", .project = "audio", .states = STATE(SUCCEEDED)},
    {.limit = 40, .project = "none", .states = STATE(QUEUED)},
    {.limit = 40, .owner = "bob", .states = STATE(QUEUED)},
    {.limit = 40, .states = STATE(FAILED)},
    {.limit = 40, .states = STATE(SUCCEEDED) | STATE(QUEUED), .name = "rare"},
    {.limit = 40, .since_ms = 1000 + MOST + 10},
    {.limit = 40, .since_ms = 1000 + MOST / 2, .name = "rare"},
    {.limit = 40, .array_key = ARRAY_KEY},
    {.limit = 40, .array_key = ARRAY_KEY, .owner = "alice"},
    {.limit = 40, .array_key = ARRAY_KEY, .states = STATE(FAILED)},
    {.limit = 40, .node = "node"},
    {.limit = 40, .node = "nothing ran there"},
    {.limit = 40, .node = "node", .owner = "bob"},
    {.limit = 40, .node = "node", .owner = "carol"},
    {.limit = 40, .node = "node", .name = "none"},
    {.limit = 40, .node = "node", .since_ms = 1000 + MOST / 2, .name = "rare"},
    {.limit = 40, .node = "node", .states = STATE(QUEUED)},
    {.limit = 40, .node = "node", .states = STATE(FAILED)},
    {.limit = 40, .node = "node", .array_key = ARRAY_KEY},
    {.limit = 40, .node = "node", .id_prefix = "job"},
    {.limit = 40, .id_prefix = ""},
    {.limit = 40, .id_prefix = "j", .name = "none"},
    {.limit = 40, .id_prefix = "job", .owner = "bob"},
    {.limit = 40, .id_prefix = "jobz"},
    {.limit = 40, .id_prefix = "jobca", .states = STATE(QUEUED)},
};

/* --- cost ----------------------------------------------------------------------------------------------- */

/* Steps of SQLite's machine since the last call: a job that is looked at takes some 20, one that is listed
 * some 100. */
static int64_t steps_of_reader(void)
{
    int64_t steps = 0;
    for (int i = 0; i < SQL_COUNT; i++) {
        sqlite3_stmt *statement = rig.reader->connection.statements[i];
        steps += statement != NULL ? sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 1) : 0;
    }
    return steps;
}

/* The most steps that a page of the list takes. */
static int64_t most_steps(struct job_filter filter)
{
    autotext struct text keys = {0};
    int64_t most = 0;
    steps_of_reader();
    do {
        filter.before_key = read_page(filter, &keys);
        int64_t steps = steps_of_reader();
        most = steps > most ? steps : most;
    } while (filter.before_key != 0);
    return most;
}

START_TEST(no_page_of_a_list_looks_at_more_jobs_than_a_scan_may)
{
    fill(1, MOST);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        int64_t most = most_steps(filters[i]);
        int64_t allowed = filters[i].id_prefix == NULL
                              ? 30 * LIMIT_SCAN_ROWS + 100 * filters[i].limit
                              : 60 * (LIMIT_SCAN_ROWS + 1024); /* whole parts, which are sorted */
        ck_assert_msg(most < allowed, "filter %zu: %lld steps", i, (long long)most);
    }
}
END_TEST

START_TEST(a_list_ends_once_its_jobs_are_a_day_older_than_it_asks_for)
{
    autotext struct text keys = {0};
    fill(1, 2 * LIMIT_SCAN_ROWS);
    struct job_filter later = {.limit = 9, .since_ms = 1000 + MOST};
    struct job_filter much_later = {.limit = 9, .since_ms = 1000 + MOST + LIMIT_SINCE_SLACK_MS};
    ck_assert_int_ne(read_page(later, &keys), 0);
    ck_assert_int_eq(read_page(much_later, &keys), 0);
}
END_TEST

START_TEST(a_job_from_before_the_clock_was_set_back_is_found)
{
    autotext struct text keys = {0};
    struct change ahead = sample(2);
    ahead.job.birth.created_ms = 1000 + LIMIT_SINCE_SLACK_MS;
    rig_write((struct change[]){sample(ARRAY_KEY), ahead}, 2);
    fill(3, 2 * LIMIT_SCAN_ROWS);
    struct job_filter since = {.limit = 9, .since_ms = LIMIT_SINCE_SLACK_MS};
    while ((since.before_key = read_page(since, &keys)) != 0) {
    }
    ck_assert_str_eq(keys.bytes, "2 ");
}
END_TEST

/* --- pages together ------------------------------------------------------------------------------------- */

static bool fits(const struct job_filter *filter, int64_t key)
{
    struct change change = sample(key);
    const struct job_birth *birth = &change.job.birth;
    bool by_array = filter->array_key != 0
                        ? birth->array_key == filter->array_key
                        : filter->id_prefix != NULL || filter->node != NULL || birth->array_key == 0;
    return by_array && (filter->node == NULL || (was_placed(key) && strcmp(filter->node, "node") == 0)) &&
           (filter->owner == NULL || strcmp(birth->owner, filter->owner) == 0) &&
           (filter->name == NULL || strcmp(birth->name, filter->name) == 0) &&
           (filter->project == NULL || strcmp(birth->project, filter->project) == 0) &&
           (filter->states == 0 || (filter->states & (1u << change.job.life.state)) != 0) &&
           birth->created_ms >= filter->since_ms &&
           (filter->id_prefix == NULL ||
            strncmp(birth->id, filter->id_prefix, strlen(filter->id_prefix)) == 0);
}

static int64_t newest;
static bool removed[RIG_KEYS];

/* A job is submitted, and two are removed: one near the page, and one anywhere. */
static void change_jobs(int64_t before_key, int64_t page)
{
    const int64_t keys[] = {before_key > 300 ? before_key - 37 * (page % 8) : 2,
                            2 + page * 1009 % (newest - 2)};
    newest++;
    fill(newest, newest);
    for (size_t i = 0; i < 2; i++) {
        if (keys[i] != ARRAY_KEY && !removed[keys[i]]) {
            rig_write_one((struct change){.kind = CHANGE_JOB_DELETE, .job.life.key = keys[i]});
            removed[keys[i]] = true;
        }
    }
}

/* Goes through all pages while jobs come and go, and marks those that it sees. */
static void walk(struct job_filter filter, bool seen[RIG_KEYS])
{
    int64_t last = INT64_MAX;
    for (int64_t page = 0;; page++) {
        autotext struct text keys = {0};
        text_append(&keys, "");
        filter.before_key = read_page(filter, &keys);
        for (char *at = keys.bytes; *at != '\0'; at++) {
            int64_t key = strtoll(at, &at, 10);
            ck_assert_msg(key < last, "job %lld comes behind %lld", (long long)key, (long long)last);
            seen[last = key] = true;
        }
        if (filter.before_key == 0) {
            return;
        }
        change_jobs(filter.before_key, page);
    }
}

START_TEST(pages_list_each_job_once_while_jobs_come_and_go)
{
    newest = 2000;
    fill(1, newest);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        bool seen[RIG_KEYS] = {false}, removed_before[RIG_KEYS];
        int64_t newest_before = newest;
        memcpy(removed_before, removed, sizeof removed);
        walk(filters[i], seen);
        for (int64_t key = 1; key <= newest; key++) {
            bool stayed = key <= newest_before && !removed[key];
            bool never = !fits(&filters[i], key) || removed_before[key];
            ck_assert_msg(!seen[key] || !never, "filter %zu lists job %lld", i, (long long)key);
            ck_assert_msg(seen[key] || never || !stayed, "filter %zu misses job %lld", i, (long long)key);
        }
    }
}
END_TEST

Suite *store_scan_suite(void)
{
    Suite *suite = suite_create("store-scan");
    TCase *cases = tcase_create("scan");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_add_test(cases, no_page_of_a_list_looks_at_more_jobs_than_a_scan_may);
    tcase_add_test(cases, a_list_ends_once_its_jobs_are_a_day_older_than_it_asks_for);
    tcase_add_test(cases, a_job_from_before_the_clock_was_set_back_is_found);
    tcase_add_test(cases, pages_list_each_job_once_while_jobs_come_and_go);
    suite_add_tcase(suite, cases);
    return suite;
}
