/* SPDX-License-Identifier: Apache-2.0 */
/* A writer that is killed at any instant: what it acknowledged is there, in order, and nothing is half there.
 * $GPUCTL_STORE_KILLS says how often, 100 times without. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

enum { KILLS_A_DATABASE = 100, JOBS_A_LIFE = RIG_KEYS / KILLS_A_DATABASE / 2 };

/* Commits a job, an event and a reply at a time, from a key on; tells each key through the pipe when its
 * commit has returned. */
static _Noreturn void write_until_killed(int64_t key, int acknowledge)
{
    struct err err;
    struct store *store = store_open(rig.path, &err);
    if (store == NULL) {
        _exit(1);
    }
    for (int64_t last = key + JOBS_A_LIFE; key < last; key++) {
        struct change reply = reply_insert(0, "{}");
        memcpy(reply.reply.scope, &key, sizeof key);
        const struct change changes[] = {
            job_insert(key),
            {.kind = CHANGE_EVENT_INSERT, .event = {.job_key = key, .seq = 1, .kind = EVENT_SUBMITTED}},
            reply,
        };
        if (!store_begin(store, &err) || !store_apply(store, changes, 3, &err) ||
            !store_commit(store, &err) || write(acknowledge, &key, sizeof key) != sizeof key ||
            !store_checkpoint(store, key % 7 == 0, &err)) {
            _exit(1);
        }
    }
    for (;;) {
        pause();
    }
}

/* Lets a child write and kills it after some acknowledgements and a random while; returns the last key
 * acknowledged. */
static int64_t live_and_die(int64_t key)
{
    int pipe_ends[2];
    ck_assert_int_eq(pipe(pipe_ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        close(pipe_ends[0]);
        write_until_killed(key, pipe_ends[1]);
    }
    close(pipe_ends[1]);
    int64_t acknowledged = key - 1;
    uint8_t chance[2];
    random_fill(chance, sizeof chance);
    for (int n = chance[0] % JOBS_A_LIFE; n >= 0; n--) {
        ck_assert_int_eq(read(pipe_ends[0], &acknowledged, sizeof acknowledged), sizeof acknowledged);
    }
    struct pollfd nobody = {.fd = -1};
    struct timespec while_ns = {.tv_nsec = chance[1] * 1000};
    ppoll(&nobody, 1, &while_ns, NULL); /* any instant within a commit */
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    while (read(pipe_ends[0], &acknowledged, sizeof acknowledged) == sizeof acknowledged) {
    }
    close(pipe_ends[0]);
    return acknowledged;
}

static bool count_event(const struct event_row *row, void *closure)
{
    ++*(int *)closure;
    return true;
}

/* Each job up to the last has its event and its reply, and nothing is beyond it. */
static void expect_whole(int64_t first, int64_t last)
{
    for (int64_t key = first; key <= last + 1; key++) {
        bool job, reply;
        int events = 0;
        struct stored_reply stored = {0};
        struct change scope = reply_insert(0, "{}");
        memcpy(scope.reply.scope, &key, sizeof key);
        autotext struct text text = {0};
        ck_assert(one_job(reader_job_by_key(rig.reader, key, &rig.err), visit_one_job, &text, &job));
        ck_assert(each_event(reader_events(rig.reader, key, 0, 10, &rig.err), count_event, &events));
        ck_assert(store_find_reply(rig.store, scope.reply.scope, &reply, &stored, &rig.err));
        free(stored.answer);
        ck_assert_int_eq(job, key <= last);
        ck_assert_int_eq(events, key <= last);
        ck_assert_int_eq(reply, key <= last);
    }
}

static void kill_again_and_again(void)
{
    int64_t last = 0;
    for (int i = 0; i < KILLS_A_DATABASE; i++) {
        rig_close();
        int64_t acknowledged = live_and_die(last + 1);
        rig_reopen();
        int64_t first = last + 1;
        last = store_next_job_key(rig.store) - 1;
        ck_assert_int_ge(last, acknowledged);
        ck_assert_int_le(last, acknowledged + 1); /* committed, but killed before it could say so */
        expect_whole(first, last);
        ck_assert_uint_eq(store_incarnation(rig.store), 3 + 2 * (uint32_t)i);
    }
}

static int databases(void)
{
    const char *kills = getenv("GPUCTL_STORE_KILLS");
    long wanted = kills == NULL ? 0 : strtol(kills, NULL, 10);
    return wanted < KILLS_A_DATABASE ? 1 : (int)(wanted / KILLS_A_DATABASE);
}

START_TEST(a_writer_that_is_killed_loses_nothing_that_it_acknowledged)
{
    for (int left = databases(); left > 0; left--) {
        kill_again_and_again();
        if (left > 1) {
            rig_end();
            rig_begin();
        }
    }
}
END_TEST

Suite *store_crash_suite(void)
{
    Suite *suite = suite_create("store-crash");
    TCase *cases = tcase_create("crash");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_set_timeout(cases, 120 * databases());
    tcase_add_test(cases, a_writer_that_is_killed_loses_nothing_that_it_acknowledged);
    suite_add_tcase(suite, cases);
    return suite;
}
