/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/contract for jobs that are functions: what is started, and what its ranks find. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "tests/unit/agent/agent_suites.h"
#include "tests/unit/agent/launch/contract_rig.h"

#define FUNCTION "'function':{'inline':'Z3B1Y3RsLWZ1bmN0aW9uIDEgcHl0aG9uPTMuMTEKLg=='}"

START_TEST(one_rank_of_a_function_on_each_node_is_to_have_the_node_measured)
{
    struct written *written = written_begin("{'gpus':4," FUNCTION "}");
    written_track(written);
    assert_rank(2, "GPUCTL_SYSTEM_METRICS", "1");
    assert_none(3, "GPUCTL_SYSTEM_METRICS");
    written_end(written);
    written = written_begin("{'gpus':4," FUNCTION ",'launch_mode':'node'}");
    written_track(written);
    assert_rank(1, "GPUCTL_SYSTEM_METRICS", "1");
    written_end(written);
    written = written_begin("{'gpus':4,'command':['x']}");
    written_track(written);
    assert_none(2, "GPUCTL_SYSTEM_METRICS");
    written_end(written);
    written = written_begin("{'gpus':4," FUNCTION ",'env':{'MLFLOW_TRACKING_URI':'http://mine'}}");
    written_track(written);
    assert_none(2, "GPUCTL_SYSTEM_METRICS");
    written_end(written);
}
END_TEST

/* The launch file as text: a key and its value a line, without what the tests above have of every job. */
static char *launch_text(const struct written *written)
{
    static const char *const known[] = {"env=WORLD", "env=LOCAL",  "env=GROUP", "env=ROLE",  "env=NODE",
                                        "env=TORCH", "env=NNODES", "env=NUM",   "env=NPROC", "env=CLUSTER",
                                        "env=CUDA",  "env=OMP",    "env=RANK",  "pattern="};
    struct text text = {0};
    const char *last = written->launch.bytes + written->launch.length;
    for (const char *key = written->launch.bytes; key < last;) {
        const char *value = key + strlen(key) + 1;
        autofree char *line = xprintf("%s=%s", key, value);
        bool old = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
            old = old || strncmp(line, known[i], strlen(known[i])) == 0;
        }
        if (!old || strstr(line, "ERROR_FILE") != NULL) {
            text_printf(&text, "%s\n", line);
        }
        key = value + strlen(value) + 1;
    }
    return text_take(&text);
}

#define ARGUMENTS                                                                                            \
    "arg=python3\n"                                                                                          \
    "arg=-c\n"                                                                                               \
    "arg=import sys; sys.path.insert(0, sys.argv[1]); import gpuctl_runner; gpuctl_runner.main()\n"          \
    "arg=/state/runner/0123456789abcdef\n"
#define WHO(node_rank)                                                                                       \
    "env=GPUCTL_JOB_ID=jjjjjjjjjjjjjjjj\n"                                                                   \
    "env=GPUCTL_ATTEMPT=2\n"                                                                                 \
    "env=GPUCTL_EPOCH=4294967297\n"                                                                          \
    "env=GPUCTL_NODE=alpha\n"                                                                                \
    "env=GPUCTL_NODE_RANK=" #node_rank "\n"                                                                  \
    "env=GPUCTL_NODES=2\n"                                                                                   \
    "env=GPUCTL_SOCKET=/run/5/rank.sock\n"                                                                   \
    "env=GPUCTL_CHECKPOINT_DIR=/state/checkpoint\n"                                                          \
    "env=GPUCTL_WATCH=/state/runner/0123456789abcdef\n"
#define PLACES                                                                                               \
    "env=GPUCTL_FUNCTION=/state/function\n"                                                                  \
    "env=GPUCTL_RESULT_DIR=/state/results\n"

#define GANG       "env=GPUCTL_WORLD_SIZE=4\n"
#define NOTE(rank) "env=GPUCTL_NOTE_FILE=/state/errors/" #rank ".note\n"

static void assert_launch(struct written *written, const char *expected)
{
    contract_write(&written->contract, &written->launch);
    autofree char *actual = launch_text(written);
    ck_assert_str_eq(actual, expected);
    written_end(written);
}

START_TEST(a_function_is_run_by_the_runner)
{
    assert_launch(written_begin("{'gpus':4," FUNCTION "}"), ARGUMENTS WHO(1) PLACES GANG
                  "rank=2\n"
                  "env=GPUCTL_RANK=2\n"
                  "env=GPUCTL_OUTPUT_DIR=/state/2.files\n"
                  "env=JAX_LOCAL_DEVICE_IDS=0\n"
                  "env=TORCHELASTIC_ERROR_FILE=/state/errors/2.json\n" NOTE(
                      2) "rank=3\n"
                         "env=GPUCTL_RANK=3\n"
                         "env=GPUCTL_OUTPUT_DIR=/state/3.files\n"
                         "env=JAX_LOCAL_DEVICE_IDS=1\n"
                         "env=TORCHELASTIC_ERROR_FILE=/state/errors/3.json\n" NOTE(3));
}
END_TEST

START_TEST(rank_0_of_a_function_gets_the_socket_of_the_store)
{
    struct written *written = written_begin("{'gpus':4," FUNCTION "}");
    written->order.node_rank = 0;
    written->order.first_rank = 0;
    ck_assert(contract_has_store(&written->contract));
    assert_launch(written, ARGUMENTS "store_rank=0\n" WHO(0) PLACES GANG
                  "rank=0\n"
                  "env=GPUCTL_RANK=0\n"
                  "env=GPUCTL_OUTPUT_DIR=/state/0.files\n"
                  "env=JAX_LOCAL_DEVICE_IDS=0\n"
                  "env=TORCHELASTIC_ERROR_FILE=/state/errors/0.json\n" NOTE(
                      0) "env=GPUCTL_STORE_FD=3\n"
                         "rank=1\n"
                         "env=GPUCTL_RANK=1\n"
                         "env=GPUCTL_OUTPUT_DIR=/state/1.files\n"
                         "env=JAX_LOCAL_DEVICE_IDS=1\n"
                         "env=TORCHELASTIC_ERROR_FILE=/state/errors/1.json\n" NOTE(1));
}
END_TEST

START_TEST(a_function_in_node_mode_is_one_process_with_an_error_file)
{
    struct written *written = written_begin("{'gpus':4,'launch_mode':'node'," FUNCTION "}");
    written->order.gang = false;
    written->order.node_rank = 0;
    assert_launch(written, ARGUMENTS WHO(0) PLACES "env=GPUCTL_RANK=0\n"
                                                   "env=PET_NNODES=2\n"
                                                   "env=PET_NODE_RANK=0\n"
                                                   "env=PET_NPROC_PER_NODE=2\n"
                                                   "torchrun=1\n"
                                                   "rank=0\n"
                                                   "env=GPUCTL_OUTPUT_DIR=/state/0.files\n"
                                                   "env=TORCHELASTIC_ERROR_FILE=/state/errors/0.json\n");
}
END_TEST

START_TEST(only_rank_0_of_a_function_gang_hosts_a_store)
{
    struct written *written = written_begin("{'gpus':4," FUNCTION "}");
    ck_assert(!contract_has_store(&written->contract)); /* the second node */
    written->order.node_rank = 0;
    written->order.gang = false; /* one rank */
    ck_assert(!contract_has_store(&written->contract));
    written_end(written);
    written = written_begin("{'gpus':4,'command':['true']}");
    written->order.node_rank = 0;
    ck_assert(!contract_has_store(&written->contract));
    written_end(written);
}
END_TEST

START_TEST(a_function_finds_its_modules_and_python)
{
    struct written *written =
        written_begin("{'gpus':4,'python':'/venv/bin/python','env':{'PYTHONUNBUFFERED':'1'}," FUNCTION "}");
    written->spec.function.modules = "its hash";
    written->contract.python = "/agents/python";
    contract_write(&written->contract, &written->launch);
    ck_assert_str_eq(written_argument(written), "/venv/bin/python");
    assert_all("GPUCTL_MODULES", "/state/modules.zip");
    assert_all("PYTHONUNBUFFERED", "1");
    written_end(written);
}
END_TEST

START_TEST(a_command_finds_the_socket_and_nothing_of_functions)
{
    struct written *written = written_begin("{'gpus':4,'command':['true'],'env':{}}");
    written_smuggle(written, "GPUCTL_SOCKET");
    written_smuggle(written, "GPUCTL_FUNCTION");
    written_smuggle(written, "GPUCTL_MODULES");
    written_smuggle(written, "GPUCTL_RESULT_DIR");
    written_smuggle(written, "GPUCTL_STORE_FD");
    written->order.node_rank = 0;
    contract_write(&written->contract, &written->launch);
    assert_all("GPUCTL_SOCKET", "/run/5/rank.sock");
    assert_none(-1, "GPUCTL_FUNCTION");
    assert_none(-1, "GPUCTL_MODULES");
    assert_none(-1, "GPUCTL_RESULT_DIR");
    assert_none(-1, "GPUCTL_STORE_FD");
    written_end(written);
}
END_TEST

Suite *contract_function_suite(void)
{
    Suite *suite = suite_create("contract of functions");
    TCase *tcase = tcase_create("contract of functions");
    tcase_add_test(tcase, one_rank_of_a_function_on_each_node_is_to_have_the_node_measured);
    tcase_add_test(tcase, a_function_is_run_by_the_runner);
    tcase_add_test(tcase, rank_0_of_a_function_gets_the_socket_of_the_store);
    tcase_add_test(tcase, a_function_in_node_mode_is_one_process_with_an_error_file);
    tcase_add_test(tcase, only_rank_0_of_a_function_gang_hosts_a_store);
    tcase_add_test(tcase, a_function_finds_its_modules_and_python);
    tcase_add_test(tcase, a_command_finds_the_socket_and_nothing_of_functions);
    suite_add_tcase(suite, tcase);
    return suite;
}
