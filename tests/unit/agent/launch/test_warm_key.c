/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/warm_key: which launch files one forkserver can stand for. */
#include <stdlib.h>
#include <string.h>

#include "agent/launch/warm_key.h"
#include "proto/base/cleanup.h"
#include "tests/unit/agent/agent_suites.h"

#define PYTHON "/usr/bin/python3"

/* A launch file of two ranks that run as a user, 0: the agent's, with one supplementary group, 0: none; and
 * one more variable for both, NULL: none. */
static struct warm_key user_key_of(int64_t uid, int64_t group, const char *python, const char *variable,
                                   int attempt_id)
{
    autotext struct text launch = {0};
    struct warm_key key;
    autofree char *logs = xprintf("/state/attempts/%d", attempt_id);
    autofree char *own = xprintf("GPUCTL_EPOCH=%d", attempt_id);
    launch_put(&launch, "epoch", "7");
    launch_put(&launch, "cwd", "/tmp");
    launch_put(&launch, "logs", logs);
    launch_put(&launch, "arg", python);
    launch_put(&launch, "arg", "train.py");
    if (uid > 0) {
        launch_put_int(&launch, "uid", uid);
        launch_put_int(&launch, "gid", 500);
    }
    if (group > 0) {
        launch_put_int(&launch, "group", group);
    }
    launch_put(&launch, "env", "PATH=/usr/bin");
    launch_put(&launch, "env", own);
    if (variable != NULL) {
        launch_put(&launch, "env", variable);
    }
    for (int rank = 0; rank < 2; rank++) {
        autofree char *number = xprintf("RANK=%d", rank);
        launch_put_int(&launch, "rank", rank);
        launch_put(&launch, "env", number);
    }
    size_t length = launch.length;
    struct launch parsed;
    ck_assert(launch_parse(text_take(&launch), length, &parsed, NULL));
    warm_key_make(&parsed, &key);
    launch_finish(&parsed);
    return key;
}

static struct warm_key key_of(const char *python, const char *variable, int attempt_id)
{
    return user_key_of(0, 0, python, variable, attempt_id);
}

static bool has(const struct warm_key *key, const char *variable)
{
    bool found = false;
    for (size_t i = 0; i < key->variable_count; i++) {
        found = found || strcmp(key->variables[i], variable) == 0;
    }
    return found;
}

static bool alike(const char *one, int one_attempt_id, const char *other, int other_attempt_id)
{
    struct warm_key first = key_of(PYTHON, one, one_attempt_id),
                    second = key_of(PYTHON, other, other_attempt_id);
    bool equal = strcmp(first.hash, second.hash) == 0;
    warm_key_finish(&first);
    warm_key_finish(&second);
    return equal;
}

START_TEST(it_has_the_interpreter_the_variables_and_the_number_of_ranks)
{
    struct warm_key key = key_of(PYTHON, "OMP_NUM_THREADS=1", 7);
    ck_assert_str_eq(key.python, PYTHON);
    ck_assert_uint_eq(key.ranks, 2);
    ck_assert_uint_eq(key.variable_count, 2);
    ck_assert(has(&key, "PATH=/usr/bin") && has(&key, "OMP_NUM_THREADS=1"));
    ck_assert_ptr_null(key.variables[2]);
    warm_key_finish(&key);
}
END_TEST

START_TEST(who_a_rank_is_makes_no_other_kind)
{
    ck_assert(alike(NULL, 7, NULL, 8));
    static const char *const identities[][2] = {
        {"MASTER_PORT=1", "MASTER_PORT=2"},
        {"JAX_COORDINATOR_ADDRESS=a:1", "JAX_COORDINATOR_ADDRESS=b:1"},
        {"JAX_LOCAL_DEVICE_IDS=0", NULL},
        {"CUDA_VISIBLE_DEVICES=0,1", "CUDA_VISIBLE_DEVICES=2"},
        {"TORCHELASTIC_RESTART_COUNT=0", "TORCHELASTIC_RESTART_COUNT=1"},
        {"MLFLOW_RUN_ID=a", "MLFLOW_RUN_ID=b"},
        {"TRACEPARENT=a", "TRACEPARENT=b"},
        {"TRACESTATE=a", NULL},
        {"GPUCTL_ARRAY_TASK=1", NULL},
    };
    for (size_t i = 0; i < sizeof identities / sizeof identities[0]; i++) {
        ck_assert_msg(alike(identities[i][0], 7, identities[i][1], 8), "%s", identities[i][0]);
    }
}
END_TEST

START_TEST(all_else_does)
{
    static const char *const others[][2] = {
        {"OMP_NUM_THREADS=1", "OMP_NUM_THREADS=2"},
        {"RANKS=1", "RANKS=2"},
        {"MY_RANK=1", "MY_RANK=2"},
        {"PYTHONPATH=/a", "PYTHONPATH=/b"},
        {"PYTHONHASHSEED=0", NULL},
        {"CUDA_VISIBLE_DEVICES_MORE=1", NULL},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert_msg(!alike(others[i][0], 7, others[i][1], 7), "%s", others[i][0]);
    }
    struct warm_key one = key_of("/a/python", NULL, 7), other = key_of("/b/python", NULL, 7);
    ck_assert_str_ne(one.hash, other.hash);
    warm_key_finish(&one);
    warm_key_finish(&other);
}
END_TEST

START_TEST(the_folders_of_a_bundle_are_the_attempts_own)
{
    ck_assert(
        alike("PYTHONPATH=/state/attempts/7/work:/lib", 7, "PYTHONPATH=/state/attempts/8/work:/lib", 8));
    ck_assert(!alike("PYTHONPATH=/state/attempts/7/work", 7, "PYTHONPATH=/state/attempts/7/work", 8));
}
END_TEST

START_TEST(a_user_is_never_served_by_what_is_of_another)
{
    const int64_t users[][2] = {{0, 0}, {1000, 0}, {1001, 0}, {1000, 7}, {1000, 8}};
    struct warm_key keys[5];
    for (size_t i = 0; i < 5; i++) {
        keys[i] = user_key_of(users[i][0], users[i][1], PYTHON, NULL, 1);
    }
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < i; j++) {
            ck_assert_str_ne(keys[i].hash, keys[j].hash);
        }
    }
    ck_assert_int_eq(keys[0].uid, -1);
    ck_assert_int_eq(keys[3].uid, 1000);
    ck_assert_int_eq(keys[3].gid, 500);
    ck_assert_uint_eq(keys[3].group_count, 1);
    ck_assert_uint_eq(keys[3].groups[0], 7);
    for (size_t i = 0; i < 5; i++) {
        warm_key_finish(&keys[i]);
    }
}
END_TEST

Suite *warm_key_suite(void)
{
    Suite *suite = suite_create("warm_key");
    TCase *tests = tcase_create("keys");
    tcase_add_test(tests, it_has_the_interpreter_the_variables_and_the_number_of_ranks);
    tcase_add_test(tests, who_a_rank_is_makes_no_other_kind);
    tcase_add_test(tests, all_else_does);
    tcase_add_test(tests, the_folders_of_a_bundle_are_the_attempts_own);
    tcase_add_test(tests, a_user_is_never_served_by_what_is_of_another);
    suite_add_tcase(suite, tests);
    return suite;
}
