/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/writer/questions: who answers, what the state keeps, and what becomes of a question whose
 * process fails. The test is the writer's thread. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/writer/questions.h"
#include "daemon/writer/writer.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/limits_controller.h"
#include "tests/unit/http/http_suites.h"

#define LONG_MS  60000 /* longer than any test */
#define SHORT_MS 100

static struct core *core;
static struct questions *questions;
static const struct job_spec spec = {.gpus = 1, .remote = true, .lease_ms = LIMIT_LEASE_MIN_MS};

/* What the thread of the questions told. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;
static int answered_count, ready_count;

static void note_ready(void *closure)
{
    pthread_mutex_lock(&lock);
    ready_count++;
    pthread_cond_signal(&told);
    pthread_mutex_unlock(&lock);
}

static void note_answered(void *closure, struct writer_request *request)
{
    pthread_mutex_lock(&lock);
    answered_count++;
    pthread_cond_signal(&told);
    pthread_mutex_unlock(&lock);
}

static void await(const int *count, int wanted)
{
    pthread_mutex_lock(&lock);
    while (*count < wanted) {
        pthread_cond_wait(&told, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static void open_with(int64_t limit_ms)
{
    const struct questions_config config = {
        .limit_ms = limit_ms, .ready = note_ready, .answered = note_answered};
    struct err err;
    questions = questions_open(&config, &err);
    ck_assert_ptr_nonnull(questions);
}

static struct moment moment_now(void)
{
    return (struct moment){.boot_ms = clock_boot_ms(), .wall_ms = 5000};
}

static void setup(void)
{
    struct step step;
    answered_count = ready_count = 0;
    core = core_create(&(struct core_config){
        .incarnation = 1, .next_job_key = 1, .heartbeat_ms = HEARTBEAT_MS, .policy = POLICY_DEFAULT});
    core_step(core, &(struct input){.kind = INPUT_BOOT, .wall_ms = 1000}, 1000, &step);
    step_finish(&step);
    open_with(LONG_MS);
}

static void teardown(void)
{
    questions_close(questions);
    core_destroy(core);
}

/* --- questions ------------------------------------------------------------------------------------------ */

static int render_answer(const struct writer_request *request, const struct step *step, struct text *out)
{
    text_append(out, step->answer);
    return 200;
}

static int render_pid(const struct writer_request *request, const struct step *step, struct text *out)
{
    text_printf(out, "%ld", (long)getpid());
    return 200;
}

static int render_open_files(const struct writer_request *request, const struct step *step, struct text *out)
{
    text_printf(out, "%d", write(*(const int *)request->asker, "x", 1) == 1);
    return 200;
}

static int render_and_hang(const struct writer_request *request, const struct step *step, struct text *out)
{
    while (pause() < 0) {
    }
    return 200;
}

static int render_and_die(const struct writer_request *request, const struct step *step, struct text *out)
{
    kill(getpid(), SIGKILL);
    return 200;
}

static struct writer_request plan(int (*render)(const struct writer_request *request, const struct step *step,
                                                struct text *out))
{
    return (struct writer_request){
        .input = {.kind = INPUT_ASK, .ask = {.kind = ASK_PLAN, .owner = "ann", .spec = &spec}},
        .render = render};
}

static void add(struct writer_request *request)
{
    ck_assert(questions_add(questions, request));
}

/* The state of a thread of this process: 'R' while it computes. */
static char state_of(const char *thread)
{
    autofree char *path = xprintf("/proc/self/task/%s/stat", thread), *text = NULL;
    const char *end = file_read(path, 4096, &text, NULL, NULL) ? strrchr(text, ')') : NULL;
    return end != NULL ? end[2] : 'X'; /* it has ended */
}

/* The copy of a process has the locks of the address sanitizer's allocator as they were, also those that
 * other threads held, and would wait for them for ever: these threads must sleep. The C library sees to its
 * own. */
static void await_sleep(void)
{
    autofree char *own = xprintf("%d", (int)gettid());
    bool awake = true;
    while (awake) {
        autonames struct file_names threads;
        ck_assert(file_list("/proc/self/task", &threads, NULL));
        awake = false;
        for (size_t i = 0; i < threads.count; i++) {
            awake = awake || (strcmp(threads.items[i], own) != 0 && state_of(threads.items[i]) == 'R');
        }
    }
}

/* As soon as it may, the writer's thread starts a process. */
static void start(void)
{
    await_sleep();
    int64_t due_ms = questions_due_ms(questions);
    ck_assert_int_ne(due_ms, INT64_MAX);
    struct moment now = moment_now();
    now.boot_ms = due_ms > now.boot_ms ? due_ms : now.boot_ms;
    questions_start(questions, core, now);
}

static void assert_answered(struct writer_request *request, const char *part)
{
    ck_assert_msg(request->status == 200, "%s", request->error.text);
    ck_assert_ptr_nonnull(request->answer.bytes);
    ck_assert_msg(strstr(request->answer.bytes, part) != NULL, "%s", request->answer.bytes);
    text_finish(&request->answer);
}

static void assert_refused(const struct writer_request *request, const char *part)
{
    ck_assert_int_eq(request->status, 0);
    ck_assert_int_eq(request->error.code, ERR_UNAVAILABLE);
    ck_assert_msg(strstr(request->error.text, part) != NULL, "%s", request->error.text);
}

/* --- tests ---------------------------------------------------------------------------------------------- */

START_TEST(a_copy_of_the_process_answers)
{
    char own[32];
    struct writer_request first = plan(render_answer), second = plan(render_pid);
    snprintf(own, sizeof own, "%ld", (long)getpid());
    add(&first);
    add(&second);
    start();
    await(&answered_count, 2);
    ck_assert_str_ne(second.answer.bytes, own);
    assert_answered(&first, "\"as_of\":\"1970-01-01T00:00:05");
    assert_answered(&second, "");
}
END_TEST

START_TEST(an_error_comes_with_its_text)
{
    struct writer_request request = {
        .input = {.kind = INPUT_ASK, .ask = {.kind = ASK_EXPLAIN, .id = "aaaaaaaaaaaaaaaa"}},
        .render = render_answer};
    add(&request);
    start();
    await(&answered_count, 1);
    ck_assert_int_eq(request.status, 0);
    ck_assert_int_eq(request.error.code, ERR_NOT_FOUND);
    ck_assert(strstr(request.error.text, "aaaaaaaaaaaaaaaa") != NULL);
    text_finish(&request.answer);
}
END_TEST

START_TEST(files_of_the_controller_are_closed_in_it)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    struct writer_request request = plan(render_open_files);
    request.asker = &ends[1];
    add(&request);
    start();
    await(&answered_count, 1);
    assert_answered(&request, "0");
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(the_next_copy_waits_for_the_last_and_for_its_turn)
{
    struct writer_request first = plan(render_answer), second = plan(render_answer);
    ck_assert_int_eq(questions_due_ms(questions), INT64_MAX);
    add(&first);
    ck_assert_int_le(questions_due_ms(questions), clock_boot_ms());
    int64_t now_ms = moment_now().boot_ms;
    start();
    add(&second);
    await(&answered_count, 1);
    await(&ready_count, 1);
    ck_assert_int_gt(questions_due_ms(questions), now_ms); /* a copy takes time, and the next is later */
    questions_start(questions, core, (struct moment){.boot_ms = now_ms});
    ck_assert_int_ne(questions_due_ms(questions), INT64_MAX); /* it was too early */
    start();
    await(&answered_count, 2);
    assert_answered(&first, "\"admitted\":");
    assert_answered(&second, "\"admitted\":");
}
END_TEST

/* The first of three kills its process twice. */
START_TEST(a_question_that_ends_its_process_costs_the_others_nothing)
{
    struct writer_request bad = plan(render_and_die), good = plan(render_answer), other = plan(render_answer);
    add(&bad);
    add(&good);
    add(&other);
    start();
    await(&ready_count, 1);
    ck_assert_int_eq(answered_count, 0); /* it gets another process */
    start();
    await(&ready_count, 2);
    start();
    await(&answered_count, 3);
    assert_refused(&bad, "took too long, or ended");
    assert_answered(&good, "\"admitted\":");
    assert_answered(&other, "\"admitted\":");
}
END_TEST

START_TEST(a_question_that_takes_too_long_is_given_up)
{
    questions_close(questions);
    open_with(SHORT_MS);
    struct writer_request slow = plan(render_and_hang);
    add(&slow);
    start();
    await(&ready_count, 1);
    start();
    await(&answered_count, 1);
    assert_refused(&slow, "took too long, or ended");
}
END_TEST

START_TEST(a_controller_that_ends_refuses_what_waits_and_what_is_asked)
{
    struct writer_request asked = plan(render_and_hang), waiting = plan(render_answer);
    add(&asked);
    start();
    add(&waiting);
    questions_end(questions);
    await(&answered_count, 2);
    assert_refused(&asked, "the controller is ending");
    assert_refused(&waiting, "the controller is ending");
    ck_assert(!questions_add(questions, &waiting));
    ck_assert_int_eq(questions_due_ms(questions), INT64_MAX);
}
END_TEST

START_TEST(so_many_may_wait_and_no_more)
{
    static struct writer_request requests[LIMIT_QUESTIONS + 1];
    for (size_t i = 0; i < LIMIT_QUESTIONS; i++) {
        requests[i] = plan(render_answer);
        add(&requests[i]);
    }
    ck_assert(!questions_add(questions, &requests[LIMIT_QUESTIONS]));
    start();
    await(&answered_count, LIMIT_QUESTIONS_AT_ONCE);
    await(&ready_count, 1);
    ck_assert_int_eq(answered_count, LIMIT_QUESTIONS_AT_ONCE);
    for (size_t i = 0; i < LIMIT_QUESTIONS_AT_ONCE; i++) {
        assert_answered(&requests[i], "\"admitted\":");
    }
}
END_TEST

Suite *questions_suite(void)
{
    Suite *suite = suite_create("questions");
    TCase *cases = tcase_create("questions");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_copy_of_the_process_answers);
    tcase_add_test(cases, an_error_comes_with_its_text);
    tcase_add_test(cases, files_of_the_controller_are_closed_in_it);
    tcase_add_test(cases, the_next_copy_waits_for_the_last_and_for_its_turn);
    tcase_add_test(cases, a_question_that_ends_its_process_costs_the_others_nothing);
    tcase_add_test(cases, a_question_that_takes_too_long_is_given_up);
    tcase_add_test(cases, a_controller_that_ends_refuses_what_waits_and_what_is_asked);
    tcase_add_test(cases, so_many_may_wait_and_no_more);
    suite_add_tcase(suite, cases);
    return suite;
}
