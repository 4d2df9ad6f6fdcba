/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/contract: which variables each rank finds, in both launch modes, and who wins when two say
 * one name. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "tests/unit/agent/agent_suites.h"
#include "tests/unit/agent/launch/contract_rig.h"

START_TEST(ranks_are_told_where_to_track)
{
    struct written *written = written_begin("{'gpus':4,'command':['x']}");
    written->contract.cacert = "/ca.pem";
    written_track(written);
    assert_all("MLFLOW_TRACKING_URI", "http://c:1");
    assert_all("MLFLOW_TRACKING_TOKEN", "gcr_1");
    assert_all("MLFLOW_TRACKING_SERVER_CERT_PATH", "/ca.pem");
    assert_all("MLFLOW_RUN_ID", "0f");
    assert_all("GPUCTL_RUN_ID", "0f");
    assert_all("MLFLOW_SYSTEM_METRICS_NODE_ID", "alpha");
    written_end(written);
}
END_TEST

START_TEST(what_a_job_names_for_tracking_is_left_to_it)
{
    struct written *written =
        written_begin("{'gpus':4,'command':['x'],'env':{'MLFLOW_TRACKING_URI':'http://mine'}}");
    written_track(written);
    assert_all("MLFLOW_TRACKING_URI", "http://mine");
    assert_none(-1, "MLFLOW_TRACKING_TOKEN");
    assert_none(-1, "MLFLOW_RUN_ID");
    assert_none(-1, "MLFLOW_SYSTEM_METRICS_NODE_ID");
    written_end(written);
    written = written_begin("{'gpus':4,'command':['x'],'env':{'MLFLOW_RUN_ID':'mine'}}");
    written_track(written);
    assert_all("MLFLOW_TRACKING_URI", "http://c:1");
    assert_all("MLFLOW_RUN_ID", "mine");
    assert_none(-1, "GPUCTL_RUN_ID");
    written_end(written);
    written = written_begin(
        "{'gpus':4,'command':['x'],'env':{'MLFLOW_EXPERIMENT_ID':'3','MLFLOW_TRACKING_USERNAME':'u'}}");
    written_track(written);
    assert_all("MLFLOW_EXPERIMENT_ID", "3");
    assert_all("MLFLOW_RUN_ID", written->order.tracking_run_id);
    assert_none(-1, "MLFLOW_TRACKING_TOKEN");
    written_end(written);
}
END_TEST

/* P8: not even the node's own. */
START_TEST(a_variable_that_is_null_is_not_there)
{
    struct written *written =
        written_begin("{'gpus':4,'command':['x'],'env':{'ACCELERATE_USE_CPU':null,'HOME':null,'A':'b'}}");
    static const char *const inherited[] = {"HOME=/root", "USER=ada", NULL};
    written->contract.inherited = inherited;
    written->contract.visible_devices = NULL;
    contract_write(&written->contract, &written->launch);
    assert_none(-1, "ACCELERATE_USE_CPU");
    assert_none(-1, "HOME");
    assert_all("USER", "ada");
    assert_all("A", "b");
    written_end(written);
}
END_TEST

static const struct {
    const char *command, *first;
} commands[] = {
    {"['accelerate','launch','--num_processes','2','x.py']", "--num_processes"},
    {"['accelerate-launch','x.py']", "x.py"},
    {"['python3','-m','accelerate.commands.launch','x.py']", "x.py"},
    {"['accelerate','config']", NULL},
    {"['python','-m','torch.distributed.run','x.py']", NULL},
    {"['accelerate']", NULL},
};

static const char *argument_after(const char *argument)
{
    const char *key = argument + strlen(argument) + 1;
    return strcmp(key, "arg") == 0 ? key + strlen(key) + 1 : NULL;
}

/* P4: in each rank it would make a world of its own. */
START_TEST(accelerate_launch_is_a_program_of_ours)
{
    autofree char *spec = xprintf("{'gpus':4,'command':%s}", commands[_i].command);
    struct written *written = written_begin(spec);
    contract_write(&written->contract, &written->launch);
    const char *first = written_argument(written), *second = argument_after(first);
    if (commands[_i].first != NULL) {
        ck_assert_str_eq(second, "/state/runner/0123456789abcdef/gpuctl_accelerate.py");
        ck_assert_str_eq(argument_after(second), commands[_i].first);
    } else {
        ck_assert(second == NULL || strstr(second, "gpuctl_accelerate") == NULL);
    }
    written_end(written);
}
END_TEST

START_TEST(a_task_is_told_its_number_and_its_values)
{
    struct written *written =
        written_begin("{'gpus':4,'command':['x'],'sweep':{'lr':[0.1,0.2],'Batch_size':[32,64]}}");
    written->order.array_id = "bbbbbbbbbbbbbbbb";
    written->order.task = 3;
    written->order.tasks = 4;
    contract_write(&written->contract, &written->launch);
    assert_all("GPUCTL_ARRAY_ID", "bbbbbbbbbbbbbbbb");
    assert_all("GPUCTL_ARRAY_TASK", "3");
    assert_all("GPUCTL_ARRAY_TASKS", "4");
    assert_all("GPUCTL_SWEEP_LR", "0.2");
    assert_all("GPUCTL_SWEEP_BATCH_SIZE", "64");
    written_end(written);
    written = written_begin("{'gpus':4,'command':['x']}");
    contract_write(&written->contract, &written->launch);
    assert_none(-1, "GPUCTL_ARRAY_TASK");
    written_end(written);
}
END_TEST

START_TEST(an_order_without_tracking_tells_nothing_of_it)
{
    struct written *written = written_begin("{'gpus':4,'command':['x']}");
    contract_write(&written->contract, &written->launch);
    assert_none(-1, "MLFLOW_TRACKING_URI");
    written_end(written);
}
END_TEST

START_TEST(ranks_find_torchruns_variables)
{
    struct written *written = written_begin("{'gpus':4,'command':['true'],'retries':3}");
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
    assert_rank(3, "JAX_LOCAL_DEVICE_IDS", "1");
    assert_rank(3, "TORCHELASTIC_ERROR_FILE", "/state/errors/3.json");
    assert_none(-1, "NNODES");
    written_end(written);
}
END_TEST

START_TEST(ranks_find_who_they_are_for_gpuctl)
{
    struct written *written = written_begin("{'gpus':4,'command':['true']}");
    contract_write(&written->contract, &written->launch);
    assert_all("GPUCTL_JOB_ID", "jjjjjjjjjjjjjjjj");
    assert_all("GPUCTL_ATTEMPT", "2");
    assert_all("GPUCTL_EPOCH", "4294967297");
    assert_all("GPUCTL_NODE", "alpha");
    assert_all("GPUCTL_NODE_RANK", "1");
    assert_rank(3, "GPUCTL_RANK", "3");
    assert_rank(3, "GPUCTL_OUTPUT_DIR", "/state/3.files");
    written_end(written);
}
END_TEST

START_TEST(every_rank_sees_all_gpus_of_its_node)
{
    struct written *written = written_begin("{'gpus':4,'command':['true']}");
    contract_write(&written->contract, &written->launch);
    assert_all("CUDA_VISIBLE_DEVICES", "GPU-b,GPU-d"); /* G3: it had numbers */
    assert_all("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    assert_none(-1, "ACCELERATE_USE_CPU");
    assert_none(-1, "NCCL_P2P_DISABLE");
    written_end(written);
}
END_TEST

START_TEST(ranks_on_slots_see_no_gpu_and_accelerate_knows)
{
    struct written *written = written_begin("{'gpus':4,'command':['true']}");
    written->contract.slots = true;
    contract_write(&written->contract, &written->launch);
    assert_all("CUDA_VISIBLE_DEVICES", "");
    assert_all("ACCELERATE_USE_CPU", "true");
    assert_none(2, "JAX_LOCAL_DEVICE_IDS");
    written_end(written);
}
END_TEST

START_TEST(cards_without_peer_access_tell_nccl)
{
    struct written *written = written_begin("{'gpus':4,'command':['true'],'env':{'NCCL_IB_DISABLE':'0'}}");
    written->contract.no_peer_access = true;
    contract_write(&written->contract, &written->launch);
    assert_all("NCCL_P2P_DISABLE", "1");
    assert_all("NCCL_IB_DISABLE", "0");
    written_end(written);
}
END_TEST

START_TEST(one_rank_a_node_keeps_its_threads)
{
    struct written *written = written_begin("{'gpus':4,'command':['true']}");
    contract_write(&written->contract, &written->launch);
    assert_all("OMP_NUM_THREADS", "1");
    written_end(written);
    written = written_begin("{'gpus':4,'command':['true']}");
    written->order.local_ranks = 1;
    contract_write(&written->contract, &written->launch);
    assert_none(-1, "OMP_NUM_THREADS");
    written_end(written);
}
END_TEST

START_TEST(the_spec_wins_over_defaults_and_over_the_agent)
{
    const char *const inherited[] = {"PATH=/usr/bin", "HOME=/root", NULL};
    struct written *written = written_begin("{'gpus':4,'command':['true'],'env':{'PATH':'/"
                                            "mine','OMP_NUM_THREADS':'8','PYTHONUNBUFFERED':'0','A':'b'}}");
    written->contract.inherited = inherited;
    contract_write(&written->contract, &written->launch);
    assert_all("PATH", "/mine");
    assert_all("HOME", "/root");
    assert_all("OMP_NUM_THREADS", "8");
    assert_all("PYTHONUNBUFFERED", "0");
    assert_all("A", "b");
    written_end(written);
}
END_TEST

/* The controller refuses such specs; an agent does not rely on it. */
START_TEST(the_spec_cannot_say_who_a_rank_is)
{
    struct written *written = written_begin("{'gpus':4,'command':['true'],'env':{}}");
    written_smuggle(written, "RANK");
    written_smuggle(written, "WORLD_SIZE");
    written_smuggle(written, "MASTER_PORT");
    written_smuggle(written, "TORCHELASTIC_RUN_ID");
    written_smuggle(written, "GPUCTL_EPOCH");
    written_smuggle(written, "CUDA_VISIBLE_DEVICES");
    contract_write(&written->contract, &written->launch);
    assert_all("WORLD_SIZE", "4");
    assert_all("TORCHELASTIC_RUN_ID", "jjjjjjjjjjjjjjjj");
    assert_all("GPUCTL_EPOCH", "4294967297");
    assert_all("CUDA_VISIBLE_DEVICES", "GPU-b,GPU-d"); /* G3: it had numbers */
    assert_none(-1, "RANK");
    assert_none(-1, "MASTER_PORT");
    assert_rank(2, "RANK", "2");
    written_end(written);
}
END_TEST

START_TEST(a_rank_alone_has_no_port_but_may_make_a_group_of_one)
{
    struct written *written = written_begin("{'gpus':1,'command':['true']}");
    written->order.gang = false;
    ck_assert(!contract_has_port(&written->contract));
    contract_write(&written->contract, &written->launch);
    assert_all("MASTER_ADDR", "127.0.0.1");
    assert_all("MASTER_PORT", "0");
    written_end(written);
}
END_TEST

START_TEST(a_gang_gets_its_master_at_the_start)
{
    struct written *written = written_begin("{'gpus':4,'command':['true']}");
    ck_assert(contract_has_port(&written->contract));
    contract_write(&written->contract, &written->launch);
    assert_none(-1, "MASTER_ADDR");
    assert_none(-1, "MASTER_PORT");
    written_end(written);
}
END_TEST

/* The value of the key of that number that is not a variable; NULL when it is not there. */
static const char *field_at(const struct written *written, const char *name, size_t number)
{
    const char *last = written->launch.bytes + written->launch.length;
    for (const char *key = written->launch.bytes; key < last;) {
        const char *value = key + strlen(key) + 1;
        if (strcmp(key, name) == 0 && number-- == 0) {
            return value;
        }
        key = value + strlen(value) + 1;
    }
    return NULL;
}

static const char *field(const struct written *written, const char *name)
{
    return field_at(written, name, 0);
}

static const char *pattern(const struct written *written, size_t number)
{
    return field_at(written, "pattern", number);
}

START_TEST(node_mode_starts_one_process_that_is_not_launched_already)
{
    struct written *written = written_begin("{'gpus':4,'command':['true'],'launch_mode':'node'}");
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
    ck_assert_str_eq(pattern(written, 0),
                     "CLUSTER_SPEC={\"cluster\":{\"master\":[\"@0\"],\"worker\":[\"@1\"]},\"environment\":"
                     "\"cloud\",\"task\":{\"type\":\"worker\",\"index\":0},\"job\":\"jjjjjjjjjjjjjjjj\"}");
    ck_assert_str_eq(pattern(written, 1),
                     "TF_CONFIG={\"cluster\":{\"chief\":[\"@0\"],\"worker\":[\"@1\"]},\"task\":"
                     "{\"type\":\"worker\",\"index\":0}}");
    assert_none(-1, "LOCAL_RANK");
    assert_none(1, "LOCAL_RANK");
    assert_none(-1, "TORCHELASTIC_RUN_ID");
    assert_none(-1, "GPUCTL_WORLD_SIZE"); /* by which gpuctl_watch.py knows that it has a world to watch */
    written_end(written);
}
END_TEST

START_TEST(a_tf_config_of_the_spec_is_left_alone)
{
    struct written *written =
        written_begin("{'gpus':4,'command':['x'],'launch_mode':'node','env':{'TF_CONFIG':'{}'}}");
    contract_write(&written->contract, &written->launch);
    assert_all("TF_CONFIG", "{}");
    ck_assert(pattern(written, 0) != NULL && pattern(written, 1) == NULL);
    ck_assert(contract_holds_port(&written->contract)); /* each node that CLUSTER_SPEC names */
    written_end(written);
    written = written_begin("{'gpus':4,'command':['x']}");
    ck_assert(!contract_holds_port(&written->contract));
    written_end(written);
}
END_TEST

START_TEST(torchrun_in_node_mode_needs_no_options)
{
    struct written *written = written_begin("{'gpus':4,'command':['torchrun'],'launch_mode':'node'}");
    contract_write(&written->contract, &written->launch);
    assert_all("PET_NNODES", "2");
    assert_all("PET_NODE_RANK", "1");
    assert_all("PET_NPROC_PER_NODE", "2");
    ck_assert_str_eq(field(written, "torchrun"), "1"); /* the shim gives it the master */
    written_end(written);
    written = written_begin(
        "{'gpus':4,'command':['torchrun'],'launch_mode':'node','env':{'PET_NPROC_PER_NODE':'1'}}");
    contract_write(&written->contract, &written->launch);
    assert_all("PET_NPROC_PER_NODE", "1");
    written_end(written);
}
END_TEST

START_TEST(a_torchrun_that_a_rank_starts_is_not_told_of_the_gang)
{
    struct written *written = written_begin("{'gpus':4,'command':['true']}");
    contract_write(&written->contract, &written->launch);
    assert_none(-1, "PET_NNODES");
    assert_none(-1, "PET_NODE_RANK");
    assert_none(-1, "PET_NPROC_PER_NODE");
    ck_assert_ptr_null(field(written, "torchrun"));
    written_end(written);
}
END_TEST

/* PATH=/usr/local/bin:/usr/bin of the agent as the ranks find it */
static void assert_path(const char *members, const char *agents_python, const char *expected)
{
    const char *const inherited[] = {"PATH=/usr/local/bin:/usr/bin", NULL};
    struct written *written = written_begin(members);
    written->contract.inherited = inherited;
    written->contract.python = agents_python;
    contract_write(&written->contract, &written->launch);
    assert_all("PATH", expected);
    written_end(written);
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
    contract_write(&written->contract, &written->launch);
}

START_TEST(a_job_with_an_environment_finds_its_python_and_programs_first)
{
    static const char *const inherited[] = {"PATH=/usr/bin:/bin", NULL};
    struct written *written = written_begin("{" ENVIRONMENT_JOB "}");
    written->contract.inherited = inherited;
    take_environment(written);
    ck_assert_str_eq(written_argument(written), "/state/environments/e/bin/python");
    assert_all("VIRTUAL_ENV", "/state/environments/e");
    assert_all("PATH", "/state/environments/e/bin:/usr/bin:/bin");
    assert_none(-1, "PYTHONPATH");
    written_end(written);
    written = written_begin("{" ENVIRONMENT_JOB ",'env':{'PATH':'/their/bin','VIRTUAL_ENV':'/their'}}");
    written->contract.inherited = inherited;
    take_environment(written);
    assert_all("VIRTUAL_ENV", "/state/environments/e");
    assert_all("PATH", "/state/environments/e/bin:/their/bin");
    written_end(written);
}
END_TEST

START_TEST(a_job_without_an_environment_keeps_the_variables_that_it_names)
{
    struct written *written =
        written_begin("{'gpus':4,'command':['x'],'env':{'PATH':'/p','VIRTUAL_ENV':'/v','PYTHONPATH':'/y'}}");
    contract_write(&written->contract, &written->launch);
    assert_all("PATH", "/p");
    assert_all("VIRTUAL_ENV", "/v");
    assert_all("PYTHONPATH", "/y");
    written_end(written);
}
END_TEST

#define BLOB          "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define BUNDLE_FOLDER "/state/work"

START_TEST(a_bundle_is_imported_from_before_what_the_job_names)
{
    struct written *written = written_begin("{'gpus':4,'command':['x'],'bundle':{'blob':'" BLOB "'}}");
    contract_write(&written->contract, &written->launch);
    assert_all("PYTHONPATH", BUNDLE_FOLDER);
    written_end(written);
    written =
        written_begin("{'gpus':4,'function':{'blob':'" BLOB "'},'bundle':{'blob':'" BLOB
                      "','python_path':['src','.','a/b']},'env':{'PYTHONPATH':'/own:/more'},'workdir':'/w'}");
    contract_write(&written->contract, &written->launch);
    assert_all("PYTHONPATH", BUNDLE_FOLDER ":" BUNDLE_FOLDER "/src:" BUNDLE_FOLDER "/a/b:/own:/more");
    written_end(written);
}
END_TEST

START_TEST(python_is_the_specs_then_the_agents_then_the_paths)
{
    struct written *written =
        written_begin("{'gpus':4,'command':['python','-c','1'],'python':'/venv/bin/python'}");
    written->contract.python = "/agents/python";
    contract_write(&written->contract, &written->launch);
    ck_assert_str_eq(written_argument(written), "/venv/bin/python");
    written_end(written);
    written = written_begin("{'gpus':4,'command':['python3','-c','1']}");
    written->contract.python = "/agents/python";
    contract_write(&written->contract, &written->launch);
    ck_assert_str_eq(written_argument(written), "/agents/python");
    written_end(written);
    written = written_begin("{'gpus':4,'command':['python','-c','1']}");
    contract_write(&written->contract, &written->launch);
    ck_assert_str_eq(written_argument(written), "python3");
    written_end(written);
    written = written_begin("{'gpus':4,'command':['python3.12','python']}");
    written->contract.python = "/agents/python";
    contract_write(&written->contract, &written->launch);
    ck_assert_str_eq(written_argument(written), "python3.12");
    written_end(written);
}
END_TEST

Suite *contract_suite(void)
{
    Suite *suite = suite_create("contract");
    TCase *tcase = tcase_create("contract");
    tcase_add_test(tcase, ranks_are_told_where_to_track);
    tcase_add_test(tcase, what_a_job_names_for_tracking_is_left_to_it);
    tcase_add_test(tcase, a_variable_that_is_null_is_not_there);
    tcase_add_loop_test(tcase, accelerate_launch_is_a_program_of_ours, 0,
                        sizeof commands / sizeof commands[0]);
    tcase_add_test(tcase, a_task_is_told_its_number_and_its_values);
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
    tcase_add_test(tcase, a_tf_config_of_the_spec_is_left_alone);
    tcase_add_test(tcase, a_torchrun_that_a_rank_starts_is_not_told_of_the_gang);
    tcase_add_test(tcase, programs_of_the_jobs_python_are_on_the_path);
    tcase_add_test(tcase, python_is_the_specs_then_the_agents_then_the_paths);
    tcase_add_test(tcase, a_job_with_an_environment_finds_its_python_and_programs_first);
    tcase_add_test(tcase, a_job_without_an_environment_keeps_the_variables_that_it_names);
    tcase_add_test(tcase, a_bundle_is_imported_from_before_what_the_job_names);
    suite_add_tcase(suite, tcase);
    return suite;
}
