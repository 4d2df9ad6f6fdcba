/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli: batch scripts for Slurm, and the job specs that they amount to. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cli/slurm/batch.h"
#include "client/cli/slurm/slurm_values.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec.h"
#include "proto/limits.h"
#include "tests/unit/cli/cli_suites.h"

/* --- values --- */

static void assert_time(const char *text, int64_t seconds)
{
    int64_t ms = -1;
    ck_assert_msg(slurm_time(text, &ms), "%s", text);
    ck_assert_msg(ms == seconds * 1000, "%s is %lld ms", text, (long long)ms);
}

START_TEST(times_are_read_in_all_their_forms)
{
    assert_time("90", 5400);
    assert_time("90:30", 5430);
    assert_time("1:02:03", 3723);
    assert_time("2-3", 2 * 86400 + 3 * 3600);
    assert_time("2-3:04", 2 * 86400 + 3 * 3600 + 240);
    assert_time("2-03:04:05", 2 * 86400 + 3 * 3600 + 245);
    assert_time("0", 0);
    assert_time("UNLIMITED", 0);
    assert_time("infinite", 0);
    const char *wrong[] = {"", "2h", "1:2:3:4", "-1", "1-", "-", "1:", ":1", "1.5", " 1", "1-2-3"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!slurm_time(wrong[i], &(int64_t){0}), "\"%s\"", wrong[i]);
    }
}
END_TEST

static void assert_gres(const char *text, const char *type, int64_t count)
{
    struct slurm_gpus gpus;
    ck_assert_msg(slurm_gres(text, &gpus), "%s", text);
    ck_assert_str_eq(gpus.type, type);
    ck_assert_int_eq(gpus.count, count);
}

START_TEST(gres_names_gpus_with_type_and_number)
{
    assert_gres("gpu", "", 1);
    assert_gres("gpu:4", "", 4);
    assert_gres("gpu:a100", "a100", 1);
    assert_gres("gpu:a100:2", "a100", 2);
    const char *wrong[] = {"", "gpus:1", "license:1", "gpu:", "gpu:a100:", "gpu:a100:x", "gpu:1,license:1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!slurm_gres(wrong[i], &(struct slurm_gpus){0}), "\"%s\"", wrong[i]);
    }
}
END_TEST

START_TEST(signals_are_read_with_their_time_and_their_receiver)
{
    struct slurm_signal signal;
    ck_assert(slurm_signal("B:USR1@120", &signal));
    ck_assert_str_eq(signal.name, "USR1");
    ck_assert(signal.to_batch && signal.before_ms == 120000);
    ck_assert(slurm_signal("SIGTERM", &signal));
    ck_assert_str_eq(signal.name, "TERM");
    ck_assert(!signal.to_batch && signal.before_ms == 60000);
    ck_assert(slurm_signal("10@5", &signal));
    ck_assert(!slurm_signal("NOSUCH@5", &signal));
    ck_assert(!slurm_signal("USR1@x", &signal));
    ck_assert(!slurm_signal("", &signal));
}
END_TEST

static void assert_words(const char *line, const char *expected)
{
    autotext struct text got = {0};
    text_append(&got, "");
    for (char *word; slurm_word(&line, &word) && word != NULL; free(word)) {
        text_printf(&got, "<%s>", word);
    }
    ck_assert_str_eq(got.bytes, expected);
}

START_TEST(words_of_a_directive_are_split_as_by_a_shell)
{
    assert_words(" --a  b\tc ", "<--a><b><c>");
    assert_words("--name=\"two words\" 'it''s' x\\ y \"a\\\"b\"", "<--name=two words><its><x y><a\"b>");
    assert_words("-N 2 # two nodes", "<-N><2>");
    assert_words("a#b ''", "<a#b><>");
    assert_words("# all of it", "");
    const char *open = "--name=\"x";
    ck_assert(!slurm_word(&open, &(char *){0}));
}
END_TEST

/* --- scripts --- */

static const struct batch_options no_options;

static struct batch parse(const char *text, const struct batch_options *given)
{
    struct batch batch;
    struct err err;
    ck_assert_msg(batch_parse("s.sh", text, strlen(text), given, &batch, &err), "%s", err.text);
    return batch;
}

START_TEST(directives_are_read_up_to_the_first_command)
{
    struct batch batch = parse("#!/bin/bash\n"
                               "# comment\n"
                               "##SBATCH -N 9\n"
                               "#SBATCHED\n"
                               "\n"
                               "#SBATCH -N2 --ntasks=4 # both\n"
                               "#SBATCH\t--exclusive=user\n"
                               "  # indented\n"
                               "echo hello\n"
                               "#SBATCH --gpus=7\n",
                               &no_options);
    ck_assert_str_eq(batch.options.nodes, "2");
    ck_assert_str_eq(batch.options.ntasks, "4");
    ck_assert(batch.options.exclusive);
    ck_assert_ptr_null(batch.options.gpus);
    batch_finish(&batch);
}
END_TEST

START_TEST(the_command_line_wins_over_directives)
{
    struct batch_options given = {.nodes = "3", .no_requeue = true};
    struct batch batch = parse("#!/bin/sh\n#SBATCH -N 2 -t 5 --requeue\n", &given);
    ck_assert_str_eq(batch.options.nodes, "3");
    ck_assert_str_eq(batch.options.time, "5");
    ck_assert(batch.options.no_requeue && !batch.options.requeue);
    batch_finish(&batch);
}
END_TEST

static void assert_script_refused(const char *text, const char *message)
{
    struct batch batch;
    struct err err;
    ck_assert(!batch_parse("s.sh", text, strlen(text), &no_options, &batch, &err));
    ck_assert_int_eq(err.code, ERR_USAGE);
    ck_assert_str_eq(err.text, message);
    ck_assert_str_ne(err.hint, "");
}

START_TEST(wrong_scripts_are_refused_with_their_line)
{
    assert_script_refused("echo x\n", "s.sh:1: a batch script must begin with #! and its interpreter");
    assert_script_refused("#!/bin/sh\n\n#SBATCH --ntask 2\n",
                          "s.sh:3: unknown option --ntask; did you mean --ntasks?");
    assert_script_refused("#!/bin/sh\n#SBATCH --nodes\n", "s.sh:2: --nodes needs a value");
    assert_script_refused("#!/bin/sh\n#SBATCH -N 2 stray\n", "s.sh:2: \"stray\" is no option");
    assert_script_refused("#!/bin/sh\n#SBATCH -J \"x\n", "s.sh:2: a quote is not closed");
    assert_script_refused("#!/bin/sh\r\n#SBATCH -N 2\r\n", "s.sh: the lines end as they do in DOS");
}
END_TEST

/* --- sizes --- */

static void assert_size(const struct batch_options *options, int64_t nodes, int64_t gpus, int64_t tasks,
                        const char *type)
{
    struct batch_size size;
    struct notes notes = {0};
    struct err err;
    ck_assert_msg(batch_measure(options, &size, &notes, &err), "%s", err.text);
    notes_finish(&notes);
    ck_assert_msg(size.nodes == nodes && size.gpus == gpus && size.tasks == tasks,
                  "%lld nodes %lld gpus %lld tasks", (long long)size.nodes, (long long)size.gpus,
                  (long long)size.tasks);
    ck_assert_str_eq(size.type, type);
}

START_TEST(sizes_follow_from_any_way_to_say_them)
{
    assert_size(&(struct batch_options){0}, 1, 0, 1, "");
    assert_size(&(struct batch_options){.ntasks = "4"}, 1, 0, 4, "");
    assert_size(&(struct batch_options){.gres = "gpu:a100:0"}, 1, 0, 1, "");
    assert_size(&(struct batch_options){.gpus = "0", .gpus_per_task = "0", .ntasks = "4"}, 1, 0, 4, "");
    assert_size(&(struct batch_options){.gpus = "4"}, 1, 4, 1, "");
    assert_size(&(struct batch_options){.nodes = "2", .gres = "gpu:a100:8"}, 2, 16, 2, "a100");
    assert_size(&(struct batch_options){.nodes = "2", .ntasks_per_node = "8", .gpus_per_task = "h100:1"}, 2,
                16, 16, "h100");
    assert_size(&(struct batch_options){.gpus = "16", .gpus_per_node = "8"}, 2, 16, 2, "");
    assert_size(&(struct batch_options){.ntasks = "16", .ntasks_per_node = "8", .gpus_per_node = "8"}, 2, 16,
                16, "");
    assert_size(&(struct batch_options){.gpus = "8", .gpus_per_task = "2"}, 1, 8, 4, "");
    assert_size(&(struct batch_options){.nodes = "2", .ntasks = "4"}, 2, 4, 4, ""); /* slots */
    assert_size(&(struct batch_options){.nodes = "2-4", .gpus = "2"}, 2, 2, 2, "");
}
END_TEST

static void assert_size_refused(const struct batch_options *options, const char *field, const char *message)
{
    struct batch_size size;
    struct notes notes = {0};
    struct err err;
    ck_assert(!batch_measure(options, &size, &notes, &err));
    notes_finish(&notes);
    ck_assert_str_eq(err.field, field);
    ck_assert_str_eq(err.text, message);
}

START_TEST(sizes_that_contradict_each_other_are_refused_by_name)
{
    assert_size_refused(&(struct batch_options){.nodes = "2", .gpus = "4", .gres = "gpu:1"}, "gres",
                        "--gpus and --gres contradict each other: 4 GPUs and 2 in all");
    assert_size_refused(&(struct batch_options){.gpus = "a100:1", .gres = "gpu:h100:1"}, "gres",
                        "--gres asks for the type h100, another option for a100");
    assert_size_refused(&(struct batch_options){.nodes = "2", .gpus = "3"}, "gpus",
                        "3 GPUs cannot be shared out evenly by 2 nodes");
    assert_size_refused(&(struct batch_options){.nodes = "2", .gpus = "2", .ntasks = "3"}, "ntasks",
                        "3 tasks cannot be shared out evenly by 2 nodes");
    assert_size_refused(&(struct batch_options){.gpus = "0", .gres = "gpu:1"}, "gres",
                        "--gpus and --gres contradict each other: 0 GPUs and 1 in all");
    assert_size_refused(&(struct batch_options){.nodes = "2", .gpus = "0"}, "nodes",
                        "--nodes: a job without GPUs has one node, not 2");
    assert_size_refused(&(struct batch_options){.nodes = "many"}, "nodes",
                        "--nodes must be a number from 1 on, not \"many\"");
    assert_size_refused(&(struct batch_options){.gres = "license:2"}, "gres",
                        "--gres must be gpu[:TYPE]:N, not \"license:2\"");
}
END_TEST

/* --- specs --- */

/* The spec without the contents of its files, which are their own tests; notes joined by lines. */
static json_t *spec_of(const char *script, const char *here, char **notes_text)
{
    char *arguments[] = {(char[]){"--lr"}, (char[]){"1"}};
    struct batch batch = parse(script, &no_options);
    struct notes notes = {0};
    struct err err;
    json_t *spec = batch_spec(&batch, arguments, 2, here, false, &notes, &err);
    ck_assert_msg(spec != NULL, "%s", err.text);
    struct job_spec decoded;
    bool good = job_spec_decode(json_deep_copy(spec), LIMIT_LEASE_MIN_MS, &decoded, &err);
    ck_assert_msg(good, "the controller would refuse it: %s", err.text);
    job_spec_finish(&decoded);
    autotext struct text text = {0};
    text_append(&text, "");
    for (size_t i = 0; i < notes.count; i++) {
        text_printf(&text, "%s\n", notes.items[i]);
    }
    *notes_text = text_take(&text);
    notes_finish(&notes);
    batch_finish(&batch);
    size_t count = json_array_size(json_object_get(spec, "files"));
    const json_t *last = json_array_get(json_object_get(spec, "files"), count - 1);
    ck_assert_str_eq(json_string_value(json_object_get(last, "text")), script);
    json_object_del(spec, "files");
    return spec;
}

static void assert_spec(const char *script, const char *here, const char *expected, const char *notes)
{
    autofree char *said = NULL;
    autojson json_t *spec = spec_of(script, here, &said);
    autofree char *text = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
    ck_assert_str_eq(text, expected);
    ck_assert_str_eq(said, notes);
}

START_TEST(a_script_becomes_a_job_that_runs_it_on_every_node)
{
    assert_spec(
        "#!/bin/bash\n#SBATCH -J train -N 2 --gres=gpu:a100:4 --ntasks-per-node=4 -t 1:00:00\n"
        "#SBATCH -p big -A team --no-requeue -D /data --export=A=1,B=x=y\nsrun python train.py\n",
        NULL,
        "{\"command\":[\"bash\",\".gpuctl/start\",\"nodes=2\",\"gpus=8\",\"tasks=8\",\"directory=/"
        "data\",\"--\","
        "\".gpuctl/batch/s.sh\",\"--lr\",\"1\"],"
        "\"env\":{\"A\":\"1\",\"B\":\"x=y\",\"SLURM_GPUS\":\"8\",\"SLURM_JOB_ACCOUNT\":\"team\","
        "\"SLURM_JOB_NAME\":\"train\",\"SLURM_JOB_PARTITION\":\"big\",\"SLURM_NTASKS_PER_NODE\":\"4\"},"
        "\"gpu_type\":\"a100\",\"gpus\":8,\"infra_retries\":0,\"launch_mode\":\"node\",\"name\":\"train\","
        "\"pool\":\"big\",\"project\":\"team\",\"time_limit_s\":3600}",
        "the script runs on each of the 2 nodes, and srun starts the tasks of that node\n");
}
END_TEST

START_TEST(what_means_something_else_here_is_noted)
{
    assert_spec(
        "#!/bin/sh\n#SBATCH --mem=0 --hint=nomultithread -c 8 -o out-%j --job-name=\"a b\" --gpus=1 --time=0 "
        "--gpus-per-task=1\n",
        "/home/me",
        "{\"command\":[\"bash\",\".gpuctl/start\",\"nodes=1\",\"gpus=1\",\"tasks=1\",\"each=1\","
        "\"directory=/home/me\",\"--\",\".gpuctl/batch/s.sh\",\"--lr\",\"1\"],\"cpus\":8,"
        "\"env\":{\"SLURM_CPUS_PER_TASK\":\"8\",\"SLURM_GPUS\":\"1\",\"SLURM_JOB_NAME\":\"a b\"},"
        "\"gpus\":1,\"launch_mode\":\"node\",\"name\":\"a-b\"}",
        "--hint is left out: CPUs are what the nodes say they have\n"
        "--mem is left out: all memory of a node cannot be asked for\n"
        "--job-name: the job is named a-b\n"
        "--output: output is kept by the controller, see gpuctl logs; files are written with --wait\n");
}
END_TEST

START_TEST(a_signal_before_the_limit_is_the_early_signal_of_the_job)
{
    autofree char *said = NULL;
    autojson json_t *spec = spec_of("#!/bin/sh\n#SBATCH -t 10 --signal=B:10@120\n", "/x", &said);
    ck_assert_int_eq(json_integer_value(json_object_get(spec, "time_limit_s")), 600);
    ck_assert_ptr_null(json_object_get(spec, "grace_s"));
    autofree char *early = json_text(json_object_get(spec, "early_signal"));
    ck_assert_str_eq(early, "{\"signal\":\"USR1\",\"before_s\":120}");
    autofree char *command = json_text(json_object_get(spec, "command"));
    ck_assert_ptr_nonnull(strstr(command, "\"signal=USR1\",\"to=batch\""));
}
END_TEST

static void assert_member(const char *options, const char *member, const char *expected)
{
    autofree char *script = xprintf("#!/bin/sh\n#SBATCH %s\n", options);
    autofree char *said = NULL;
    autojson json_t *spec = spec_of(script, "/x", &said);
    const json_t *value = json_object_get(spec, member);
    ck_assert_msg(value != NULL, "%s: no %s", options, member);
    autofree char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    ck_assert_str_eq(text, expected);
}

/* What the job asks for in total, in CPUs and MiB; -1: nothing, the default is the controller's. */
static void assert_amounts(const char *options, int64_t gpus, int64_t cpus, int64_t mib)
{
    autofree char *script = xprintf("#!/bin/sh\n#SBATCH %s\n", options);
    autofree char *said = NULL;
    autojson json_t *spec = spec_of(script, "/x", &said);
    ck_assert_msg(json_integer_value(json_object_get(spec, "gpus")) == gpus, "%s", options);
    int64_t got_cpus = -1, got_bytes = -MIB;
    json_unpack(spec, "{s?I, s?I}", "cpus", &got_cpus, "memory", &got_bytes);
    ck_assert_msg(got_cpus == cpus && got_bytes == mib * MIB, "%s: %lld CPUs, %lld bytes", options,
                  (long long)got_cpus, (long long)got_bytes);
}

START_TEST(cpus_and_memory_are_totals_over_nodes_tasks_and_gpus)
{
    assert_amounts("-N 2 --gres=gpu:4 --mem=100", 8, -1, 200); /* of each node, in MiB */
    assert_amounts("-N 2 --gres=gpu:4 --ntasks-per-node=4 -c 6 --mem=8G", 8, 48, 16384);
    assert_amounts("--gpus=4 --cpus-per-gpu=12 --mem-per-gpu=64GB", 4, 48, 4 * 65536);
    assert_amounts("-N 2 --gpus=4 --ntasks=4 -c 3 --mem-per-cpu=2g", 4, 12, 12 * 2048);
    assert_amounts("--gpus=2 --ntasks=2 --mem-per-cpu=4G", 2, -1, 8192); /* Slurm's default: one a task */
    assert_amounts("--gpus=2 -n 2 -c 8 --cpus-per-gpu=8", 2, 16, -1);
    assert_amounts("--mem=8192K", 0, -1, 8);
    /* without GPUs */
    assert_amounts("-n 1", 0, -1, -1);
    assert_amounts("-n 4", 0, 4, -1);
    assert_amounts("-c 16 --mem=64G", 0, 16, 65536);
    assert_amounts("-n 4 -c 2 --mem-per-cpu=1G", 0, 8, 8192);
    assert_amounts("--gres=gpu:0 -c 2", 0, 2, -1);
    assert_amounts("-N 2 -n 4 -c 2 --mem=1G", 4, 8, 2048); /* slots */
}
END_TEST

START_TEST(amounts_that_have_no_meaning_without_gpus_are_noted)
{
    autofree char *said = NULL;
    autojson json_t *spec = spec_of("#!/bin/sh\n#SBATCH --cpus-per-gpu=4 --mem-per-gpu=1G\n", "/x", &said);
    ck_assert_str_eq(said, "--cpus-per-gpu is left out: no GPU is asked for\n"
                           "--mem-per-gpu is left out: no GPU is asked for\n");
    ck_assert(json_object_get(spec, "cpus") == NULL && json_object_get(spec, "memory") == NULL);
}
END_TEST

#define ONE "aaaaaaaaaaaaaaaa"
#define TWO "bbbbbbbbbbbbbbbb"

START_TEST(when_and_where_a_script_may_run_is_said_in_the_words_of_a_job)
{
    assert_member("-d afterok:" ONE ":" TWO, "after",
                  "[{\"job\":\"" ONE "\",\"when\":\"afterok\"},{\"job\":\"" TWO "\",\"when\":\"afterok\"}]");
    assert_member("--dependency=after:" ONE ",afterany:" TWO, "after",
                  "[{\"job\":\"" ONE "\",\"when\":\"after\"},{\"job\":\"" TWO "\",\"when\":\"afterany\"}]");
    assert_member("-H", "hold", "true");
    assert_member("-x node1,node2", "exclude", "[\"node1\",\"node2\"]");
    assert_member("-C \"zone=a|b&disk!=hdd\"", "constraints",
                  "{\"disk\":{\"not\":[\"hdd\"]},\"zone\":{\"in\":[\"a\",\"b\"]}}");
    assert_member("--nice=100", "priority", "-100");
    assert_member("--nice=-5000", "priority", "1000");
    assert_member("--priority=7", "priority", "7");
}
END_TEST

static void assert_spec_refused(const char *options, const char *field, const char *message)
{
    autofree char *script = xprintf("#!/bin/sh\n#SBATCH %s\n", options);
    struct batch batch = parse(script, &no_options);
    struct notes notes = {0};
    struct err err;
    ck_assert_ptr_null(batch_spec(&batch, NULL, 0, NULL, false, &notes, &err));
    notes_finish(&notes);
    ck_assert_str_eq(err.field, field);
    ck_assert_str_eq(err.text, message);
    ck_assert_str_ne(err.hint, "");
    batch_finish(&batch);
}

static int64_t begin_of(const char *text, int64_t now_ms)
{
    int64_t at_ms;
    ck_assert_msg(slurm_begin(text, now_ms, &at_ms), "%s", text);
    return at_ms;
}

START_TEST(a_time_to_begin_is_read_as_slurm_writes_it)
{
    const int64_t now_ms = 1764000000000, day_ms = 86400000; /* 2025-11-24T16:00Z */
    setenv("TZ", "UTC", 1);
    tzset();
    ck_assert_int_eq(begin_of("now", now_ms), now_ms);
    ck_assert_int_eq(begin_of("now+90", now_ms), now_ms + 90000);
    ck_assert_int_eq(begin_of("now+1hour", now_ms), now_ms + 3600000);
    ck_assert_int_eq(begin_of("now+2weeks", now_ms), now_ms + 14 * day_ms);
    ck_assert_int_eq(begin_of("2025-11-24T16:00:01", now_ms), now_ms + 1000);
    ck_assert_int_eq(begin_of("2025-11-25", now_ms), now_ms + 8 * 3600000);
    ck_assert_int_eq(begin_of("16:30", now_ms), now_ms + 1800000);
    ck_assert_int_eq(begin_of("15:00:30", now_ms), now_ms + day_ms - 3570000);
    setenv("TZ", "UTC-1", 1); /* an hour ahead */
    tzset();
    ck_assert_int_eq(begin_of("18:00", now_ms), now_ms + 3600000);
    const char *wrong[] = {"",      "now+",    "now+x",      "now-1", "now+1fortnight",
                           "25:00", "16:30pm", "2025-13-01", "+1hour"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!slurm_begin(wrong[i], now_ms, &(int64_t){0}), "\"%s\"", wrong[i]);
    }
}
END_TEST

static void assert_array(const char *option, const char *wanted)
{
    autofree char *script = xprintf("#!/bin/sh\n#SBATCH %s\n", option);
    struct batch batch = parse(script, &no_options);
    struct notes notes = {0};
    struct err err;
    autojson json_t *spec = batch_spec(&batch, NULL, 0, "/x", true, &notes, &err);
    autojson json_t *array = json_loads(wanted, 0, NULL);
    ck_assert_ptr_nonnull(array);
    ck_assert_msg(json_equal(json_object_get(spec, "array"), array), "%s", option);
    notes_finish(&notes);
    batch_finish(&batch);
}

START_TEST(indexes_of_an_array_are_the_numbers_of_its_tasks)
{
    assert_array("-a 0-3", "{\"tasks\": 4}");
    assert_array("--array=0", "{\"tasks\": 1}");
    assert_array("--array=0-15%4", "{\"tasks\": 16, \"parallel\": 4}");
    assert_array("--array=1-3", "{\"tasks\": 4, \"only\": \"1-3\"}");
    assert_array("--array=9,5-7,1,6", "{\"tasks\": 10, \"only\": \"1,5-7,9\"}");
    assert_array("--array=1-7:2%2", "{\"tasks\": 8, \"only\": \"1,3,5,7\", \"parallel\": 2}");
    assert_array("--array=0-4:2,1,3", "{\"tasks\": 5}");
}
END_TEST

START_TEST(what_cannot_be_honoured_is_refused_with_its_remedy)
{
    assert_spec_refused("-w node1", "nodelist", "--nodelist is not supported");
    const char *indexes[] = {"", "x", "1-", "3-1", "1,,2", "1:2", "1-9:0", "1-3%0", "-1", "1000000"};
    for (size_t i = 0; i < sizeof indexes / sizeof indexes[0]; i++) {
        autofree char *option = xprintf("--array=\"%s\"", indexes[i]);
        autofree char *message =
            xprintf("--array \"%s\" has no list of indexes from 0 to 999999", indexes[i]);
        assert_spec_refused(option, "array", message);
    }
    assert_spec_refused("-a 0-9999:2", "array", "--array has more than 4096 ranges of indexes");
    assert_spec_refused("-b noon", "begin", "--begin \"noon\" is no time");
    const char *wrong[] = {"afternotok:1", "singleton",           "afterok",
                           "afterok:",     "afterok:1?afterok:2", "after:1+5"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        autofree char *option = xprintf("-d %s", wrong[i]);
        autofree char *message = xprintf("--dependency \"%s\" is not supported", wrong[i]);
        assert_spec_refused(option, "dependency", message);
    }
    assert_spec_refused("-x node[1-4]", "exclude",
                        "--exclude \"node[1-4]\": ranges and files of nodes are not supported");
    assert_spec_refused("-C intel", "constraint", "--constraint \"intel\" is not supported");
    assert_spec_refused("-C zone=a|disk=ssd", "constraint",
                        "--constraint \"zone=a|disk=ssd\" is not supported");
    assert_spec_refused("--nice=very", "nice", "--nice \"very\" is no number");
    assert_spec_refused("--priority=5000", "priority", "--priority must be from -1000 to 1000, not \"5000\"");
    assert_spec_refused("--nice=1 --priority=1", "priority", "--nice and --priority contradict each other");
    assert_spec_refused("--signal=XCPU@60", "signal",
                        "--signal XCPU@60: the signal must be one of USR1 USR2 TERM INT HUP CONT URG");
    assert_spec_refused("-c many", "cpus-per-task", "--cpus-per-task \"many\" is no amount");
    assert_spec_refused("--mem=much", "mem", "--mem \"much\" is no amount");
    assert_spec_refused("-n 65536 -c 1048576 --mem-per-cpu=1024T", "mem-per-cpu",
                        "--mem-per-cpu \"1024T\" is no amount");
    assert_spec_refused("--gpus=2 -c 4 --cpus-per-gpu=4", "cpus-per-gpu",
                        "--cpus-per-task and --cpus-per-gpu contradict each other");
    assert_spec_refused("--gpus=2 --mem=4G --mem-per-gpu=4G", "mem-per-gpu",
                        "--mem and --mem-per-gpu contradict each other");
    assert_spec_refused("-t soon", "time", "--time \"soon\" is no time");
    assert_spec_refused("--signal=X", "signal", "--signal must be [B:]SIGNAL[@SECONDS], not \"X\"");
    assert_spec_refused("-t 1 --signal=TERM@60", "signal",
                        "--signal comes before the job starts: --time is no longer");
    assert_spec_refused("--export=GPUCTL_TEST_NOT_SET", "export",
                        "--export GPUCTL_TEST_NOT_SET: there is no such variable here");
    assert_spec_refused("-p \"a b\"", "partition", "--partition must be a name of 1 to 63 characters");
}
END_TEST

START_TEST(what_would_be_refused_is_noted_where_the_person_says_so)
{
    struct batch batch = parse("#!/bin/sh\n#SBATCH -w node1\n", &no_options);
    struct notes notes = {0};
    struct err err;
    autojson json_t *spec = batch_spec(&batch, NULL, 0, "/x", true, &notes, &err);
    ck_assert_ptr_nonnull(spec);
    ck_assert_ptr_nonnull(strstr(notes.items[0], "--nodelist is left out"));
    notes_finish(&notes);
    batch_finish(&batch);
}
END_TEST

START_TEST(patterns_of_output_files_name_the_job)
{
    struct err err;
    autofree char *path = batch_output_path("logs/%x-%j.%%", "abc", "train", &err);
    ck_assert_str_eq(path, "logs/train-abc.%");
    ck_assert_ptr_null(batch_output_path("%N", "abc", "train", &err));
    ck_assert_ptr_null(batch_output_path("end%", "abc", "train", &err));
}
END_TEST

Suite *cli_batch_suite(void)
{
    Suite *suite = suite_create("cli batch");
    TCase *tests = tcase_create("batch");
    tcase_add_test(tests, times_are_read_in_all_their_forms);
    tcase_add_test(tests, gres_names_gpus_with_type_and_number);
    tcase_add_test(tests, signals_are_read_with_their_time_and_their_receiver);
    tcase_add_test(tests, words_of_a_directive_are_split_as_by_a_shell);
    tcase_add_test(tests, directives_are_read_up_to_the_first_command);
    tcase_add_test(tests, the_command_line_wins_over_directives);
    tcase_add_test(tests, wrong_scripts_are_refused_with_their_line);
    tcase_add_test(tests, sizes_follow_from_any_way_to_say_them);
    tcase_add_test(tests, sizes_that_contradict_each_other_are_refused_by_name);
    tcase_add_test(tests, a_script_becomes_a_job_that_runs_it_on_every_node);
    tcase_add_test(tests, what_means_something_else_here_is_noted);
    tcase_add_test(tests, a_signal_before_the_limit_is_the_early_signal_of_the_job);
    tcase_add_test(tests, when_and_where_a_script_may_run_is_said_in_the_words_of_a_job);
    tcase_add_test(tests, cpus_and_memory_are_totals_over_nodes_tasks_and_gpus);
    tcase_add_test(tests, amounts_that_have_no_meaning_without_gpus_are_noted);
    tcase_add_test(tests, a_time_to_begin_is_read_as_slurm_writes_it);
    tcase_add_test(tests, indexes_of_an_array_are_the_numbers_of_its_tasks);
    tcase_add_test(tests, what_cannot_be_honoured_is_refused_with_its_remedy);
    tcase_add_test(tests, what_would_be_refused_is_noted_where_the_person_says_so);
    tcase_add_test(tests, patterns_of_output_files_name_the_job);
    suite_add_tcase(suite, tests);
    return suite;
}
