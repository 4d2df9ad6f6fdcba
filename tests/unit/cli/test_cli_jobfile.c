/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli: job files of both forms, and the job specs that they amount to. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cli/bundle/attach.h"
#include "client/cli/spec/jobfile.h"
#include "client/cli/spec/launcher.h"
#include "client/cli/jobs/submit.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "tests/unit/cli/cli_suites.h"

static char *path_of(const char *name)
{
    return xprintf("%s/%s", cli_folder, name);
}

static bool read_text(const char *text, bool ignore, struct jobfile *file, struct err *err)
{
    autofree char *path = path_of("job.yaml");
    cli_write_file("job.yaml", text);
    return jobfile_read(path, ignore, file, err);
}

/* The whole way that `run -f` and `convert` go. */
static void assert_spec(const char *text, const char *expected)
{
    struct spec_options options = {0};
    struct call call = {0};
    struct jobfile file;
    struct err err;
    option_rows_default(spec_rows, &options);
    ck_assert_msg(read_text(text, false, &file, &err), "%s", err.text);
    autojson json_t *spec = submit_spec(NULL, &file, &options, &call, NULL, &err);
    ck_assert_msg(spec != NULL, "%s", err.text);
    autofree char *got = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
    ck_assert_str_eq(got, expected);
    jobfile_finish(&file);
}

static void assert_refused(const char *text, const char *message, const char *hint)
{
    struct jobfile file = {0};
    struct err err = {0};
    bool good = read_text(text, false, &file, &err) && jobfile_check(&file, file.spec, &err);
    ck_assert(!good);
    jobfile_finish(&file);
    autofree char *place = xprintf("%s/job.yaml:%s", cli_folder, message);
    ck_assert_str_eq(err.text, place);
    ck_assert_str_eq(err.hint, hint);
}

/* --- our own form --- */

START_TEST(fields_are_taken_as_they_are)
{
    assert_spec(
        "gpus: 2\ngpu_type: H100\ncommand: [python, train.py, --epochs, 3, --lr, 1e-4]\n"
        "launch_mode: node\nretries: 2\nlabels: {team: x, run: 07}\n",
        "{\"command\":[\"python\",\"train.py\",\"--epochs\",\"3\",\"--lr\",\"1e-4\"],\"gpu_type\":\"H100\","
        "\"gpus\":2,\"labels\":{\"run\":\"07\",\"team\":\"x\"},\"launch_mode\":\"node\",\"retries\":2}");
}
END_TEST

START_TEST(a_command_may_be_a_text_and_times_may_be_durations)
{
    assert_spec(
        "command: |\n  set -e\n  echo hi\ntime_limit: 2h\ngrace: 500ms\nlease: 120\nkeep_on_failure: 1h\n"
        "early_signal: USR1@90s\n",
        "{\"command\":[\"bash\",\"-c\",\"set -e\\necho "
        "hi\\n\"],\"early_signal\":{\"before_s\":90,\"signal\":\"USR1\"},"
        "\"gpus\":1,\"grace_s\":0.5,\"keep_on_failure_s\":3600,\"lease_s\":120,"
        "\"time_limit_s\":7200}");
}
END_TEST

START_TEST(torchrun_runs_once_a_node_where_nothing_else_is_said)
{
    static const char *const launchers[] = {"torchrun x.py", "/opt/env/bin/torchrun --nproc-per-node 2 x.py",
                                            "python3 -m torch.distributed.run x.py",
                                            "  torchrun x.py\n  true"};
    static const char *const others[] = {
        "python x.py",           "echo torchrun", "python -m torch.utils.collect_env",
        "true\n  torchrun x.py", "python",        "torchrunner"};
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        autojson json_t *script = json_pack("[s,s,s]", "bash", "-c", launchers[i]);
        ck_assert_msg(launcher_is_torchrun(script), "%s", launchers[i]);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        autojson json_t *script = json_pack("[s,s,s]", "bash", "-c", others[i]);
        ck_assert_msg(!launcher_is_torchrun(script), "%s", others[i]);
    }
    ck_assert(!launcher_is_torchrun(NULL));
    autojson json_t *numbers = json_pack("[i,s,i]", 1, "-m", 3);
    ck_assert(!launcher_is_torchrun(numbers));
    assert_spec("command: [torchrun, x.py]\n",
                "{\"command\":[\"torchrun\",\"x.py\"],\"gpus\":1,\"launch_mode\":\"node\"}");
    assert_spec("command: [torchrun, x.py]\nlaunch_mode: process\n",
                "{\"command\":[\"torchrun\",\"x.py\"],\"gpus\":1,\"launch_mode\":\"process\"}");
}
END_TEST

START_TEST(files_are_named_from_the_job_file)
{
    cli_write_file("data.txt", "content\n");
    assert_spec("command: [cat]\nfiles:\n  - source: data.txt\n  - {source: ./data.txt, path: in/other, "
                "executable: true}\n",
                "{\"command\":[\"cat\"],\"files\":[{\"path\":\"data.txt\",\"text\":\"content\\n\"},"
                "{\"executable\":true,\"path\":\"in/other\",\"text\":\"content\\n\"}],\"gpus\":1}");
}
END_TEST

START_TEST(packages_and_folders_are_named_from_the_job_file)
{
    autofree char *code = path_of("code");
    autofree char *source = path_of("code/src");
    mkdir(code, 0755);
    mkdir(source, 0755);
    cli_write_file("code/src/a.py", "a");
    cli_write_file("r.txt", "numpy==2.1.0 # why\n");
    autofree char *expected =
        xprintf("{\"bundle\":{\"python_path\":[\"src\"],\"source\":\"%s\"},\"command\":[\"a\"],"
                "\"environment\":{\"python\":\"3.10\",\"requirements\":[\"numpy==2.1.0\"]},\"gpus\":1}",
                code);
    assert_spec("command: [a]\nenvironment: {file: r.txt, python: 3.10}\n"
                "bundle: {source: code, python_path: [src]}\n",
                expected);
    assert_spec("command: [a]\nenvironment: {requirements: [-r r.txt], python: 3.10}\n"
                "bundle: {source: ./code, python_path: [./src/]}\n",
                expected);
}
END_TEST

/* With what is only seen when the job is sent. */
static void assert_not_filled(const char *text, const char *message)
{
    struct spec_options options = {.priority = SPEC_NO_PRIORITY};
    struct call call = {0};
    struct jobfile file = {0};
    struct err err = {0};
    bool good = read_text(text, false, &file, &err);
    autojson json_t *spec = good ? submit_spec(NULL, &file, &options, &call, NULL, &err) : NULL;
    ck_assert(spec == NULL);
    autofree char *place = xprintf("%s/job.yaml:%s", cli_folder, message);
    ck_assert_msg(strncmp(err.text, place, strlen(place)) == 0, "%s", err.text);
    jobfile_finish(&file);
}

START_TEST(what_is_wrong_with_packages_and_folders_is_told_with_its_line)
{
    assert_not_filled("command: [a]\nenvironment:\n  requirements:\n  - numpy\n  - -e .\n",
                      "5: environment.requirements[1]: \"-e .\" is an editable installation");
    assert_not_filled("command: [a]\nenvironment:\n  file: none.txt\n", "3: cannot open ");
    assert_not_filled("command: [a]\nenvironment:\n  python: 3\n  requirements: []\n",
                      "3: environment.python must be");
    assert_not_filled("command: [a]\nenvironment: {file: a, requirements: []}\n", "2: environment.file says");
    assert_not_filled("command: [a]\nbundle:\n  source: none\n", "3: cannot send the folder ");
    assert_not_filled("command: [a]\nbundle:\n  source: .\n  python_path: [../x]\n",
                      "4: the Python path \"../x\" is no folder inside of ");
    assert_not_filled("command: [a]\nbundle:\n  source: .\n  sauce: x\n", "4: bundle.sauce is not a known");
    assert_not_filled("experiment_name: x\ncompute: {accelerator_type: GPU_1xA10, num_accelerators: 1}\n"
                      "command: x\ncode_source: {root_path: none}\n",
                      "4: cannot send the folder ");
    assert_not_filled("experiment_name: x\ncompute: {accelerator_type: GPU_1xA10, num_accelerators: 1}\n"
                      "command: x\nenvironment:\n  dependencies: [a, ./b]\n",
                      "5: environment.dependencies[1]: \"./b\" is a file");
}
END_TEST

START_TEST(wrong_fields_are_refused_with_their_line)
{
    assert_refused("gpus: 1\ncomand: x\n", "2: comand is not a known field", "did you mean command?");
    assert_refused("command: [a]\ngpus: two\n", "2: gpus must be a whole number from 0 to 65536", "");
    assert_refused("command: [a]\ngpus: 1\nenv:\n  A: 1\n  RANK: 1\n", "5: env.RANK is set by gpuctl itself",
                   "leave it out");
    assert_refused("command: [a]\ntime_limit: soon\n",
                   "2: time_limit must be a duration such as 90s, 15m or 2h", "");
    assert_refused("time_limit: 1\ntime_limit_s: 1\n", "1: time_limit and time_limit_s say the same",
                   "leave one of them out");
    assert_refused("- a\n", "1: a job file must be a map of fields",
                   "write \"command: python train.py\" for instance");
}
END_TEST

START_TEST(a_file_that_is_not_there_is_named_with_its_line)
{
    struct jobfile file;
    struct err err;
    ck_assert(read_text("command: [a]\nfiles:\n- source: x\n", false, &file, &err));
    ck_assert(!attach_sources(NULL, file.folder, file.spec, &err));
    ck_assert_str_eq(err.field, "files[0].source");
    ck_assert(!jobfile_place(&file, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "job.yaml:3: files[0].source: cannot send "));
    jobfile_finish(&file);
}
END_TEST

/* --- the form of air --- */

#define AIR "experiment_name: first\ncompute: {accelerator_type: GPU_8xH100, num_accelerators: 16}\n"

START_TEST(air_files_become_jobs_of_one_process_a_node)
{
    assert_spec(AIR "command: torchrun train.py\nmax_retries: 3\ntimeout_minutes: 90\n"
                    "environment: {env_variables: {LR: 1e-3, DEBUG: true}}\n",
                "{\"command\":[\"bash\",\"-c\",\"export WORLD_SIZE=$((NNODES * LOCAL_WORLD_SIZE)) "
                "CODE_SOURCE_PATH=$PWD\\ntorchrun train.py\"],"
                "\"env\":{\"DEBUG\":\"true\",\"LR\":\"1e-3\",\"MLFLOW_EXPERIMENT_NAME\":\"first\"},"
                "\"gpu_type\":\"H100\",\"gpus\":16,\"launch_mode\":\"node\",\"name\":\"first\",\"retries\":3,"
                "\"time_limit_s\":5400}");
    assert_spec(
        AIR "command: x\nenvironment: {docker_image: {url: 'a/b:1'}}\n",
        "{\"command\":[\"bash\",\"-c\",\"export WORLD_SIZE=$((NNODES * LOCAL_WORLD_SIZE)) "
        "CODE_SOURCE_PATH=$PWD\\nx\"],\"env\":{\"MLFLOW_EXPERIMENT_NAME\":\"first\"},"
        "\"gpu_type\":\"H100\",\"gpus\":16,\"image\":\"a/b:1\",\"launch_mode\":\"node\",\"name\":\"first\"}");
    assert_spec(
        "experiment_name: /Users/me/second try\nmlflow_run_name: run 1\n"
        "compute: {accelerator_type: GPU_1xA10, num_accelerators: 4, pool_id: big, priority_class: "
        "CRITICAL}\n"
        "command: x\nparameters: {lr: 0.5}\n",
        "{\"command\":[\"bash\",\"-c\",\"export WORLD_SIZE=$((NNODES * LOCAL_WORLD_SIZE)) "
        "CODE_SOURCE_PATH=$PWD\\nx\"],"
        "\"env\":{\"MLFLOW_EXPERIMENT_NAME\":\"/Users/me/second "
        "try\",\"PARAMETERS_FILE\":\"parameters.json\"},"
        "\"files\":[{\"path\":\"parameters.json\",\"text\":\"{\\n  \\\"lr\\\": 0.5\\n}\"}],"
        "\"gpu_type\":\"A10\",\"gpus\":4,\"launch_mode\":\"node\",\"name\":\"run-1\",\"pool\":\"big\","
        "\"priority\":100}");
}
END_TEST

START_TEST(code_of_an_air_file_becomes_a_bundle_and_its_dependencies_an_environment)
{
    autofree char *code = path_of("code");
    mkdir(code, 0755);
    cli_write_file("code/a.py", "a");
    cli_write_file("more.txt", "torch # pinned elsewhere\n");
    autofree char *expected = xprintf(
        "{\"bundle\":{\"source\":\"%s\"},\"command\":[\"bash\",\"-c\",\"export WORLD_SIZE=$((NNODES * "
        "LOCAL_WORLD_SIZE)) "
        "CODE_SOURCE_PATH=$PWD\\nx\"],\"env\":{\"MLFLOW_EXPERIMENT_NAME\":\"first\"},"
        "\"environment\":{\"requirements\":[\"numpy==2.1.0\",\"torch\"]},"
        "\"gpu_type\":\"H100\",\"gpus\":16,\"launch_mode\":\"node\",\"name\":\"first\"}",
        code);
    assert_spec(AIR "command: x\nenvironment: {dependencies: [numpy==2.1.0, -r more.txt]}\n"
                    "code_source: {type: snapshot, snapshot: {root_path: code}}\n",
                expected);
}
END_TEST

START_TEST(what_air_has_and_we_have_not_is_refused_with_its_remedy)
{
    assert_refused(AIR "command: x\nenvironment:\n  docker_image: {tag: a}\n",
                   "5: environment.docker_image.tag is not a known field", "leave it out");
    assert_refused(AIR "command: x\nenvironment:\n  secrets: {A: b/c}\n",
                   "5: environment.secrets is not supported",
                   "store each with `gpuctl secret set NAME`, ask for it with --secret NAME, and leave it "
                   "out with --ignore-unsupported");
    assert_refused(AIR "command: x\ncode_source:\n  root_path: .\n  git: {branch: main}\n",
                   "6: code_source.git is not supported",
                   "check the code out, and name its folder as root_path");
    struct jobfile file;
    struct err err;
    ck_assert(read_text(AIR "command: x\nusage_policy_name: y\n", true, &file, &err));
    ck_assert_uint_eq(file.notes.count, 1);
    ck_assert_str_eq(file.notes.items[0], "usage_policy_name is left out; name a project with --project");
    jobfile_finish(&file);
}
END_TEST

START_TEST(wrong_air_files_are_refused_with_their_line)
{
    assert_refused(AIR, "1: command is missing", "");
    assert_refused(AIR "command: x\nmax_retry: 1\n", "4: max_retry is not a known field",
                   "did you mean max_retries?");
    assert_refused("experiment_name: x\ncommand: x\ncompute:\n  num_acelerators: 1\n",
                   "4: compute.num_acelerators is not a known field", "did you mean num_accelerators?");
    assert_refused("experiment_name: x\ncommand: x\ncompute:\n  accelerator_type: H100\n",
                   "4: compute.accelerator_type must name the GPUs of a node and their type",
                   "GPU_1xA10, GPU_1xH100 or GPU_8xH100 for instance");
    assert_refused(
        "experiment_name: x\ncommand: x\ncompute:\n  accelerator_type: GPU_8xH100\n  num_accelerators: 4\n",
        "5: compute.num_accelerators is no multiple of the 8 GPUs of a node", "ask for whole nodes");
    assert_refused(
        "experiment_name: x\ncommand: x\ncompute: {accelerator_type: GPU_1xA10, num_accelerators: 1, "
        "priority_class: NORMAL}\n",
        "3: compute.priority_class needs compute.pool_id", "name the pool, or leave it out");
    assert_refused(AIR "command: x\ntimeout_minutes: 0\n",
                   "4: timeout_minutes must be a whole number from 1 to 527040", "");
}
END_TEST

Suite *cli_jobfile_suite(void)
{
    Suite *suite = suite_create("cli job files");
    TCase *tests = tcase_create("jobfile");
    tcase_add_checked_fixture(tests, cli_make_folder, cli_remove_folder);
    tcase_add_test(tests, fields_are_taken_as_they_are);
    tcase_add_test(tests, a_command_may_be_a_text_and_times_may_be_durations);
    tcase_add_test(tests, files_are_named_from_the_job_file);
    tcase_add_test(tests, torchrun_runs_once_a_node_where_nothing_else_is_said);
    tcase_add_test(tests, wrong_fields_are_refused_with_their_line);
    tcase_add_test(tests, a_file_that_is_not_there_is_named_with_its_line);
    tcase_add_test(tests, air_files_become_jobs_of_one_process_a_node);
    tcase_add_test(tests, code_of_an_air_file_becomes_a_bundle_and_its_dependencies_an_environment);
    tcase_add_test(tests, packages_and_folders_are_named_from_the_job_file);
    tcase_add_test(tests, what_is_wrong_with_packages_and_folders_is_told_with_its_line);
    tcase_add_test(tests, what_air_has_and_we_have_not_is_refused_with_its_remedy);
    tcase_add_test(tests, wrong_air_files_are_refused_with_their_line);
    suite_add_tcase(suite, tests);
    return suite;
}
