/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/contract: which variables each rank finds, in both launch modes, and who wins when two say
 * one name. */
#include <stdlib.h>
#include <string.h>

#include "agent/contract.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "tests/unit/agent_suites.h"

static const int64_t two_devices[] = {1, 3};

/* A launch file, and the contract that it was written from. */
struct written {
    struct order order;
    struct job_spec spec;
    struct contract contract;
    struct text launch;
};

static void spec_from(struct job_spec *spec, const char *members)
{
    struct err err = {0};
    autofree char *text = strdup(members);
    for (char *at = text; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    json_t *json = json_parse(text, strlen(text), &err);
    ck_assert_msg(json != NULL, "%s", err.text);
    ck_assert_msg(job_spec_decode(json, 0, spec, &err), "%s", err.text);
}

/* Second of two nodes with two ranks each. */
static struct written *begin(const char *members)
{
    struct written *written = calloc(1, sizeof *written);
    spec_from(&written->spec, members);
    written->order = (struct order){.epoch = 4294967297,
                                    .phase = ORDER_PREPARE,
                                    .job_id = "jjjjjjjjjjjjjjjj",
                                    .attempt = 2,
                                    .node_rank = 1,
                                    .nodes = 2,
                                    .first_rank = 2,
                                    .local_ranks = 2,
                                    .world = 4,
                                    .devices = two_devices,
                                    .device_count = 2,
                                    .gang = true};
    written->contract = (struct contract){.order = &written->order,
                                          .spec = &written->spec,
                                          .node = "alpha",
                                          .errors = "/state/errors",
                                          .socket = "/run/5/rank.sock",
                                          .runner = "/state/runner/0123456789abcdef",
                                          .function = "/state/function",
                                          .results = "/state/results"};
    return written;
}

static void end(struct written *written)
{
    job_spec_finish(&written->spec);
    text_finish(&written->launch);
    free(written);
}

/* The value of a variable in the section of a rank (-1: those of all ranks); NULL when it is not there. Fails
 * when it is there twice. */
static const char *variable(const struct written *written, int64_t rank, const char *name)
{
    const char *found = NULL;
    int64_t section = -1;
    const char *last = written->launch.bytes + written->launch.length;
    for (const char *key = written->launch.bytes; key < last;) {
        const char *value = key + strlen(key) + 1;
        if (strcmp(key, "rank") == 0) {
            section = strtoll(value, NULL, 10);
        }
        size_t length = strlen(name);
        if (strcmp(key, "env") == 0 && section == rank && strncmp(value, name, length) == 0 &&
            value[length] == '=') {
            ck_assert_msg(found == NULL, "%s is there twice", name);
            found = value + length + 1;
        }
        key = value + strlen(value) + 1;
    }
    return found;
}

static void assert_variable_at(const struct written *written, int64_t rank, const char *name,
                               const char *expected, int line)
{
    const char *actual = variable(written, rank, name);
    ck_assert_msg(actual != NULL, "line %d: %s is missing", line, name);
    ck_assert_msg(strcmp(actual, expected) == 0, "line %d: %s is \"%s\", not \"%s\"", line, name, actual,
                  expected);
}
#define assert_all(name, expected)        assert_variable_at(written, -1, name, expected, __LINE__)
#define assert_rank(rank, name, expected) assert_variable_at(written, rank, name, expected, __LINE__)
#define assert_none(rank, name)           ck_assert_ptr_null(variable(written, rank, name))

static const char *first_argument(const struct written *written)
{
    ck_assert_str_eq(written->launch.bytes, "arg");
    return written->launch.bytes + strlen("arg") + 1;
}

static void track(struct written *written)
{
    written->order.tracking_token = "gcr_1";
    written->order.tracking_run_id = "0f";
    written->contract.url = "http://c:1";
    contract_write(&written->contract, &written->launch);
}

START_TEST(ranks_are_told_where_to_track)
{
    struct written *written = begin("{'gpus':4,'command':['x']}");
    written->contract.cacert = "/ca.pem";
    track(written);
    assert_all("MLFLOW_TRACKING_URI", "http://c:1");
    assert_all("MLFLOW_TRACKING_TOKEN", "gcr_1");
    assert_all("MLFLOW_TRACKING_SERVER_CERT_PATH", "/ca.pem");
    assert_all("MLFLOW_RUN_ID", "0f");
    assert_all("GPUCTL_RUN_ID", "0f");
    assert_all("MLFLOW_SYSTEM_METRICS_NODE_ID", "alpha");
    end(written);
}
END_TEST

START_TEST(what_a_job_names_for_tracking_is_left_to_it)
{
    struct written *written = begin("{'gpus':4,'command':['x'],'env':{'MLFLOW_TRACKING_URI':'http://mine'}}");
    track(written);
    assert_all("MLFLOW_TRACKING_URI", "http://mine");
    assert_none(-1, "MLFLOW_TRACKING_TOKEN");
    assert_none(-1, "MLFLOW_RUN_ID");
    assert_none(-1, "MLFLOW_SYSTEM_METRICS_NODE_ID");
    end(written);
    written = begin("{'gpus':4,'command':['x'],'env':{'MLFLOW_RUN_ID':'mine'}}");
    track(written);
    assert_all("MLFLOW_TRACKING_URI", "http://c:1");
    assert_all("MLFLOW_RUN_ID", "mine");
    assert_none(-1, "GPUCTL_RUN_ID");
    end(written);
    written =
        begin("{'gpus':4,'command':['x'],'env':{'MLFLOW_EXPERIMENT_ID':'3','MLFLOW_TRACKING_USERNAME':'u'}}");
    track(written);
    assert_none(-1, "MLFLOW_RUN_ID");
    assert_none(-1, "MLFLOW_TRACKING_TOKEN");
    end(written);
}
END_TEST

START_TEST(an_order_without_tracking_tells_nothing_of_it)
{
    struct written *written = begin("{'gpus':4,'command':['x']}");
    contract_write(&written->contract, &written->launch);
    assert_none(-1, "MLFLOW_TRACKING_URI");
    end(written);
}
END_TEST

START_TEST(ranks_find_torchruns_variables)
{
    struct written *written = begin("{'gpus':4,'command':['true'],'retries':3}");
    contract_write(&written->contract, &written->launch);
    assert_all("WORLD_SIZE", "4");
    assert_all("LOCAL_WORLD_SIZE", "2");
    assert_all("GROUP_RANK", "1");
    assert_all("GROUP_WORLD_SIZE", "2");
    assert_all("NODE_RANK", "1");
    assert_all("ROLE_NAME", "default");
    assert_all("ROLE_WORLD_SIZE", "4");
    assert_all("TORCHELASTIC_RUN_ID", "jjjjjjjjjjjjjjjj");
    assert_all("TORCHELASTIC_USE_AGENT_STORE", "False");
    assert_all("TORCHELASTIC_RESTART_COUNT", "1");
    assert_all("TORCHELASTIC_MAX_RESTARTS", "3");
    assert_all("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
    assert_all("PYTHONUNBUFFERED", "1");
    assert_rank(2, "RANK", "2");
    assert_rank(2, "LOCAL_RANK", "0");
    assert_rank(3, "RANK", "3");
    assert_rank(3, "LOCAL_RANK", "1");
    assert_rank(3, "ROLE_RANK", "3");
    assert_rank(3, "TORCHELASTIC_ERROR_FILE", "/state/errors/3.json");
    assert_none(-1, "NNODES");
    end(written);
}
END_TEST

START_TEST(ranks_find_who_they_are_for_gpuctl)
{
    struct written *written = begin("{'gpus':4,'command':['true']}");
    contract_write(&written->contract, &written->launch);
    assert_all("GPUCTL_JOB_ID", "jjjjjjjjjjjjjjjj");
    assert_all("GPUCTL_ATTEMPT", "2");
    assert_all("GPUCTL_EPOCH", "4294967297");
    assert_all("GPUCTL_NODE", "alpha");
    assert_all("GPUCTL_NODE_RANK", "1");
    assert_rank(3, "GPUCTL_RANK", "3");
    end(written);
}
END_TEST

START_TEST(every_rank_sees_all_gpus_of_its_node)
{
    struct written *written = begin("{'gpus':4,'command':['true']}");
    contract_write(&written->contract, &written->launch);
    assert_all("CUDA_VISIBLE_DEVICES", "1,3");
    assert_all("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    assert_none(-1, "ACCELERATE_USE_CPU");
    assert_none(-1, "NCCL_P2P_DISABLE");
    end(written);
}
END_TEST

START_TEST(ranks_on_slots_see_no_gpu_and_accelerate_knows)
{
    struct written *written = begin("{'gpus':4,'command':['true']}");
    written->contract.slots = true;
    contract_write(&written->contract, &written->launch);
    assert_all("CUDA_VISIBLE_DEVICES", "");
    assert_all("ACCELERATE_USE_CPU", "true");
    end(written);
}
END_TEST

START_TEST(cards_without_peer_access_tell_nccl)
{
    struct written *written = begin("{'gpus':4,'command':['true'],'env':{'NCCL_IB_DISABLE':'0'}}");
    written->contract.no_peer_access = true;
    contract_write(&written->contract, &written->launch);
    assert_all("NCCL_P2P_DISABLE", "1");
    assert_all("NCCL_IB_DISABLE", "0");
    end(written);
}
END_TEST

START_TEST(one_rank_a_node_keeps_its_threads)
{
    struct written *written = begin("{'gpus':4,'command':['true']}");
    contract_write(&written->contract, &written->launch);
    assert_all("OMP_NUM_THREADS", "1");
    end(written);
    written = begin("{'gpus':4,'command':['true']}");
    written->order.local_ranks = 1;
    contract_write(&written->contract, &written->launch);
    assert_none(-1, "OMP_NUM_THREADS");
    end(written);
}
END_TEST

START_TEST(the_spec_wins_over_defaults_and_over_the_agent)
{
    const char *const inherited[] = {"PATH=/usr/bin", "HOME=/root", NULL};
    struct written *written = begin("{'gpus':4,'command':['true'],'env':{'PATH':'/"
                                    "mine','OMP_NUM_THREADS':'8','PYTHONUNBUFFERED':'0','A':'b'}}");
    written->contract.inherited = inherited;
    contract_write(&written->contract, &written->launch);
    assert_all("PATH", "/mine");
    assert_all("HOME", "/root");
    assert_all("OMP_NUM_THREADS", "8");
    assert_all("PYTHONUNBUFFERED", "0");
    assert_all("A", "b");
    end(written);
}
END_TEST

/* The controller refuses such specs; an agent does not rely on it. */
static void smuggle(struct written *written, const char *name)
{
    json_object_set_new(json_object_get(written->spec.json, "env"), name, json_string("smuggled"));
}

START_TEST(the_spec_cannot_say_who_a_rank_is)
{
    struct written *written = begin("{'gpus':4,'command':['true'],'env':{}}");
    smuggle(written, "RANK");
    smuggle(written, "WORLD_SIZE");
    smuggle(written, "MASTER_PORT");
    smuggle(written, "TORCHELASTIC_RUN_ID");
    smuggle(written, "GPUCTL_EPOCH");
    smuggle(written, "CUDA_VISIBLE_DEVICES");
    contract_write(&written->contract, &written->launch);
    assert_all("WORLD_SIZE", "4");
    assert_all("TORCHELASTIC_RUN_ID", "jjjjjjjjjjjjjjjj");
    assert_all("GPUCTL_EPOCH", "4294967297");
    assert_all("CUDA_VISIBLE_DEVICES", "1,3");
    assert_none(-1, "RANK");
    assert_none(-1, "MASTER_PORT");
    assert_rank(2, "RANK", "2");
    end(written);
}
END_TEST

START_TEST(a_rank_alone_has_no_port_but_may_make_a_group_of_one)
{
    struct written *written = begin("{'gpus':1,'command':['true']}");
    written->order.gang = false;
    ck_assert(!contract_has_port(&written->contract));
    contract_write(&written->contract, &written->launch);
    assert_all("MASTER_ADDR", "127.0.0.1");
    assert_all("MASTER_PORT", "0");
    end(written);
}
END_TEST

START_TEST(a_gang_gets_its_master_at_the_start)
{
    struct written *written = begin("{'gpus':4,'command':['true']}");
    ck_assert(contract_has_port(&written->contract));
    contract_write(&written->contract, &written->launch);
    assert_none(-1, "MASTER_ADDR");
    assert_none(-1, "MASTER_PORT");
    end(written);
}
END_TEST

START_TEST(node_mode_starts_one_process_that_is_not_launched_already)
{
    struct written *written = begin("{'gpus':4,'command':['true'],'launch_mode':'node'}");
    written->order.gang = false;
    written->order.first_rank = 1;
    written->order.local_ranks = 1;
    written->order.world = 2;
    ck_assert(contract_has_port(&written->contract));
    contract_write(&written->contract, &written->launch);
    assert_all("WORLD_SIZE", "2");
    assert_all("RANK", "1");
    assert_all("NODE_RANK", "1");
    assert_all("NNODES", "2");
    assert_all("NUM_NODES", "2");
    assert_all("NPROC_PER_NODE", "2");
    assert_all("LOCAL_WORLD_SIZE", "2");
    assert_all("CLUSTER_SPEC",
               "{\"cluster\":{\"master\":[\"node-0\"],\"worker\":[\"node-1\"]},\"environment\":\"cloud\","
               "\"task\":{\"type\":\"worker\",\"index\":0},\"job\":\"jjjjjjjjjjjjjjjj\"}");
    assert_none(-1, "LOCAL_RANK");
    assert_none(1, "LOCAL_RANK");
    assert_none(-1, "TORCHELASTIC_RUN_ID");
    end(written);
}
END_TEST

/* The value of a key that is not a variable; NULL when it is not there. */
static const char *field(const struct written *written, const char *name)
{
    const char *last = written->launch.bytes + written->launch.length;
    for (const char *key = written->launch.bytes; key < last;) {
        const char *value = key + strlen(key) + 1;
        if (strcmp(key, name) == 0) {
            return value;
        }
        key = value + strlen(value) + 1;
    }
    return NULL;
}

START_TEST(torchrun_in_node_mode_needs_no_options)
{
    struct written *written = begin("{'gpus':4,'command':['torchrun'],'launch_mode':'node'}");
    contract_write(&written->contract, &written->launch);
    assert_all("PET_NNODES", "2");
    assert_all("PET_NODE_RANK", "1");
    assert_all("PET_NPROC_PER_NODE", "2");
    ck_assert_str_eq(field(written, "torchrun"), "1"); /* the shim gives it the master */
    end(written);
    written =
        begin("{'gpus':4,'command':['torchrun'],'launch_mode':'node','env':{'PET_NPROC_PER_NODE':'1'}}");
    contract_write(&written->contract, &written->launch);
    assert_all("PET_NPROC_PER_NODE", "1");
    end(written);
}
END_TEST

START_TEST(a_torchrun_that_a_rank_starts_is_not_told_of_the_gang)
{
    struct written *written = begin("{'gpus':4,'command':['true']}");
    contract_write(&written->contract, &written->launch);
    assert_none(-1, "PET_NNODES");
    assert_none(-1, "PET_NODE_RANK");
    assert_none(-1, "PET_NPROC_PER_NODE");
    ck_assert_ptr_null(field(written, "torchrun"));
    end(written);
}
END_TEST

/* PATH=/usr/local/bin:/usr/bin of the agent as the ranks find it */
static void assert_path(const char *members, const char *agents_python, const char *expected)
{
    const char *const inherited[] = {"PATH=/usr/local/bin:/usr/bin", NULL};
    struct written *written = begin(members);
    written->contract.inherited = inherited;
    written->contract.python = agents_python;
    contract_write(&written->contract, &written->launch);
    assert_all("PATH", expected);
    end(written);
}

START_TEST(programs_of_the_jobs_python_are_on_the_path)
{
    const char *plain = "{'gpus':4,'command':['torchrun']}";
    assert_path(plain, "/venv/bin/python", "/venv/bin:/usr/local/bin:/usr/bin");
    assert_path("{'gpus':4,'command':['torchrun'],'python':'/mine/bin/python'}", "/venv/bin/python",
                "/mine/bin:/usr/local/bin:/usr/bin");
    assert_path(plain, "/usr/bin/python3", "/usr/local/bin:/usr/bin");
    assert_path(plain, "/usr/local/bin/python3", "/usr/local/bin:/usr/bin");
    assert_path(plain, "/usr/python3", "/usr:/usr/local/bin:/usr/bin");
    assert_path(plain, "/python3", "/usr/local/bin:/usr/bin");
    assert_path(plain, "python3.12", "/usr/local/bin:/usr/bin");
    assert_path(plain, NULL, "/usr/local/bin:/usr/bin");
    assert_path("{'gpus':4,'command':['torchrun'],'env':{'PATH':'/my'}}", "/venv/bin/python", "/my");
}
END_TEST

#define ENVIRONMENT_JOB                                                                                      \
    "'gpus':4,'command':['python','x.py'],'python':'/opt/py/bin/"                                            \
    "python','environment':{'requirements':['a']}"

static void take_environment(struct written *written)
{
    written->contract.environment = "/state/environments/e";
    written->contract.environment_python = "/state/environments/e/bin/python";
    contract_write(&written->contract, &written->launch);
}

START_TEST(a_job_with_an_environment_finds_its_python_and_programs_first)
{
    static const char *const inherited[] = {"PATH=/usr/bin:/bin", NULL};
    struct written *written = begin("{" ENVIRONMENT_JOB "}");
    written->contract.inherited = inherited;
    take_environment(written);
    ck_assert_str_eq(first_argument(written), "/state/environments/e/bin/python");
    assert_all("VIRTUAL_ENV", "/state/environments/e");
    assert_all("PATH", "/state/environments/e/bin:/usr/bin:/bin");
    assert_none(-1, "PYTHONPATH");
    end(written);
    written = begin("{" ENVIRONMENT_JOB ",'env':{'PATH':'/their/bin','VIRTUAL_ENV':'/their'}}");
    written->contract.inherited = inherited;
    take_environment(written);
    assert_all("VIRTUAL_ENV", "/state/environments/e");
    assert_all("PATH", "/state/environments/e/bin:/their/bin");
    end(written);
}
END_TEST

START_TEST(a_job_without_an_environment_keeps_the_variables_that_it_names)
{
    struct written *written =
        begin("{'gpus':4,'command':['x'],'env':{'PATH':'/p','VIRTUAL_ENV':'/v','PYTHONPATH':'/y'}}");
    contract_write(&written->contract, &written->launch);
    assert_all("PATH", "/p");
    assert_all("VIRTUAL_ENV", "/v");
    assert_all("PYTHONPATH", "/y");
    end(written);
}
END_TEST

#define BLOB "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

START_TEST(a_bundle_is_imported_from_before_what_the_job_names)
{
    struct written *written = begin("{'gpus':4,'command':['x'],'bundle':{'blob':'" BLOB "'}}");
    written->contract.work = "/state/5/folder";
    contract_write(&written->contract, &written->launch);
    assert_all("PYTHONPATH", "/state/5/folder");
    end(written);
    written = begin("{'gpus':4,'function':{'blob':'" BLOB "'},'bundle':{'blob':'" BLOB
                    "','python_path':['src','.','a/b']},'env':{'PYTHONPATH':'/own:/more'},'workdir':'/w'}");
    written->contract.work = "/state/5/folder";
    contract_write(&written->contract, &written->launch);
    assert_all("PYTHONPATH", "/state/5/folder:/state/5/folder/src:/state/5/folder/a/b:/own:/more");
    end(written);
}
END_TEST

START_TEST(python_is_the_specs_then_the_agents_then_the_paths)
{
    struct written *written = begin("{'gpus':4,'command':['python','-c','1'],'python':'/venv/bin/python'}");
    written->contract.python = "/agents/python";
    contract_write(&written->contract, &written->launch);
    ck_assert_str_eq(first_argument(written), "/venv/bin/python");
    end(written);
    written = begin("{'gpus':4,'command':['python3','-c','1']}");
    written->contract.python = "/agents/python";
    contract_write(&written->contract, &written->launch);
    ck_assert_str_eq(first_argument(written), "/agents/python");
    end(written);
    written = begin("{'gpus':4,'command':['python','-c','1']}");
    contract_write(&written->contract, &written->launch);
    ck_assert_str_eq(first_argument(written), "python3");
    end(written);
    written = begin("{'gpus':4,'command':['python3.12','python']}");
    written->contract.python = "/agents/python";
    contract_write(&written->contract, &written->launch);
    ck_assert_str_eq(first_argument(written), "python3.12");
    end(written);
}
END_TEST

/* --- functions ----------------------------------------------------------------------------------- */

#define FUNCTION "'function':{'inline':'Z3B1Y3RsLWZ1bmN0aW9uIDEgcHl0aG9uPTMuMTEKLg=='}"

START_TEST(one_rank_of_a_function_on_each_node_is_to_have_the_node_measured)
{
    struct written *written = begin("{'gpus':4," FUNCTION "}");
    track(written);
    assert_rank(2, "GPUCTL_SYSTEM_METRICS", "1");
    assert_none(3, "GPUCTL_SYSTEM_METRICS");
    end(written);
    written = begin("{'gpus':4," FUNCTION ",'launch_mode':'node'}");
    track(written);
    assert_rank(1, "GPUCTL_SYSTEM_METRICS", "1");
    end(written);
    written = begin("{'gpus':4,'command':['x']}");
    track(written);
    assert_none(2, "GPUCTL_SYSTEM_METRICS");
    end(written);
    written = begin("{'gpus':4," FUNCTION ",'env':{'MLFLOW_TRACKING_URI':'http://mine'}}");
    track(written);
    assert_none(2, "GPUCTL_SYSTEM_METRICS");
    end(written);
}
END_TEST

/* The launch file as text: a key and its value a line, without what the tests above have of every job. */
static char *launch_text(const struct written *written)
{
    static const char *const known[] = {"env=WORLD", "env=LOCAL",  "env=GROUP", "env=ROLE",  "env=NODE",
                                        "env=TORCH", "env=NNODES", "env=NUM",   "env=NPROC", "env=CLUSTER",
                                        "env=CUDA",  "env=OMP",    "env=RANK"};
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
    "env=GPUCTL_SOCKET=/run/5/rank.sock\n"
#define PLACES                                                                                               \
    "env=GPUCTL_FUNCTION=/state/function\n"                                                                  \
    "env=GPUCTL_RESULT_DIR=/state/results\n"

static void assert_launch(struct written *written, const char *expected)
{
    contract_write(&written->contract, &written->launch);
    autofree char *actual = launch_text(written);
    ck_assert_str_eq(actual, expected);
    end(written);
}

START_TEST(a_function_is_run_by_the_runner)
{
    assert_launch(begin("{'gpus':4," FUNCTION "}"),
                  ARGUMENTS WHO(1) PLACES "rank=2\n"
                                          "env=GPUCTL_RANK=2\n"
                                          "env=TORCHELASTIC_ERROR_FILE=/state/errors/2.json\n"
                                          "rank=3\n"
                                          "env=GPUCTL_RANK=3\n"
                                          "env=TORCHELASTIC_ERROR_FILE=/state/errors/3.json\n");
}
END_TEST

START_TEST(rank_0_of_a_function_gets_the_socket_of_the_store)
{
    struct written *written = begin("{'gpus':4," FUNCTION "}");
    written->order.node_rank = 0;
    written->order.first_rank = 0;
    ck_assert(contract_has_store(&written->contract));
    assert_launch(written, ARGUMENTS "store_rank=0\n" WHO(0) PLACES
                  "rank=0\n"
                  "env=GPUCTL_RANK=0\n"
                  "env=TORCHELASTIC_ERROR_FILE=/state/errors/0.json\n"
                  "env=GPUCTL_STORE_FD=3\n"
                  "rank=1\n"
                  "env=GPUCTL_RANK=1\n"
                  "env=TORCHELASTIC_ERROR_FILE=/state/errors/1.json\n");
}
END_TEST

START_TEST(a_function_in_node_mode_is_one_process_with_an_error_file)
{
    struct written *written = begin("{'gpus':4,'launch_mode':'node'," FUNCTION "}");
    written->order.gang = false;
    written->order.node_rank = 0;
    assert_launch(written, ARGUMENTS WHO(0) PLACES "env=GPUCTL_RANK=0\n"
                                                   "env=PET_NNODES=2\n"
                                                   "env=PET_NODE_RANK=0\n"
                                                   "env=PET_NPROC_PER_NODE=2\n"
                                                   "torchrun=1\n"
                                                   "rank=0\n"
                                                   "env=TORCHELASTIC_ERROR_FILE=/state/errors/0.json\n");
}
END_TEST

START_TEST(only_rank_0_of_a_function_gang_hosts_a_store)
{
    struct written *written = begin("{'gpus':4," FUNCTION "}");
    ck_assert(!contract_has_store(&written->contract)); /* the second node */
    written->order.node_rank = 0;
    written->order.gang = false; /* one rank */
    ck_assert(!contract_has_store(&written->contract));
    end(written);
    written = begin("{'gpus':4,'command':['true']}");
    written->order.node_rank = 0;
    ck_assert(!contract_has_store(&written->contract));
    end(written);
}
END_TEST

START_TEST(a_function_finds_its_modules_and_python)
{
    struct written *written =
        begin("{'gpus':4,'python':'/venv/bin/python','env':{'PYTHONUNBUFFERED':'1'}," FUNCTION "}");
    written->contract.modules = "/state/modules.zip";
    written->contract.python = "/agents/python";
    contract_write(&written->contract, &written->launch);
    ck_assert_str_eq(first_argument(written), "/venv/bin/python");
    assert_all("GPUCTL_MODULES", "/state/modules.zip");
    assert_all("PYTHONUNBUFFERED", "1");
    end(written);
}
END_TEST

START_TEST(a_command_finds_the_socket_and_nothing_of_functions)
{
    struct written *written = begin("{'gpus':4,'command':['true'],'env':{}}");
    smuggle(written, "GPUCTL_SOCKET");
    smuggle(written, "GPUCTL_FUNCTION");
    smuggle(written, "GPUCTL_MODULES");
    smuggle(written, "GPUCTL_RESULT_DIR");
    smuggle(written, "GPUCTL_STORE_FD");
    written->order.node_rank = 0;
    contract_write(&written->contract, &written->launch);
    assert_all("GPUCTL_SOCKET", "/run/5/rank.sock");
    assert_none(-1, "GPUCTL_FUNCTION");
    assert_none(-1, "GPUCTL_MODULES");
    assert_none(-1, "GPUCTL_RESULT_DIR");
    assert_none(-1, "GPUCTL_STORE_FD");
    end(written);
}
END_TEST

Suite *contract_suite(void)
{
    Suite *suite = suite_create("contract");
    TCase *tcase = tcase_create("contract");
    tcase_add_test(tcase, ranks_are_told_where_to_track);
    tcase_add_test(tcase, one_rank_of_a_function_on_each_node_is_to_have_the_node_measured);
    tcase_add_test(tcase, what_a_job_names_for_tracking_is_left_to_it);
    tcase_add_test(tcase, an_order_without_tracking_tells_nothing_of_it);
    tcase_add_test(tcase, ranks_find_torchruns_variables);
    tcase_add_test(tcase, ranks_find_who_they_are_for_gpuctl);
    tcase_add_test(tcase, every_rank_sees_all_gpus_of_its_node);
    tcase_add_test(tcase, ranks_on_slots_see_no_gpu_and_accelerate_knows);
    tcase_add_test(tcase, cards_without_peer_access_tell_nccl);
    tcase_add_test(tcase, one_rank_a_node_keeps_its_threads);
    tcase_add_test(tcase, the_spec_wins_over_defaults_and_over_the_agent);
    tcase_add_test(tcase, the_spec_cannot_say_who_a_rank_is);
    tcase_add_test(tcase, a_rank_alone_has_no_port_but_may_make_a_group_of_one);
    tcase_add_test(tcase, a_gang_gets_its_master_at_the_start);
    tcase_add_test(tcase, node_mode_starts_one_process_that_is_not_launched_already);
    tcase_add_test(tcase, torchrun_in_node_mode_needs_no_options);
    tcase_add_test(tcase, a_torchrun_that_a_rank_starts_is_not_told_of_the_gang);
    tcase_add_test(tcase, programs_of_the_jobs_python_are_on_the_path);
    tcase_add_test(tcase, python_is_the_specs_then_the_agents_then_the_paths);
    tcase_add_test(tcase, a_function_is_run_by_the_runner);
    tcase_add_test(tcase, a_job_with_an_environment_finds_its_python_and_programs_first);
    tcase_add_test(tcase, a_job_without_an_environment_keeps_the_variables_that_it_names);
    tcase_add_test(tcase, a_bundle_is_imported_from_before_what_the_job_names);
    tcase_add_test(tcase, rank_0_of_a_function_gets_the_socket_of_the_store);
    tcase_add_test(tcase, a_function_in_node_mode_is_one_process_with_an_error_file);
    tcase_add_test(tcase, only_rank_0_of_a_function_gang_hosts_a_store);
    tcase_add_test(tcase, a_function_finds_its_modules_and_python);
    tcase_add_test(tcase, a_command_finds_the_socket_and_nothing_of_functions);
    suite_add_tcase(suite, tcase);
    return suite;
}
