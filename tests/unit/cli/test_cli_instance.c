/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli: the choice of the controller, and the processes of an embedded one. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/transport/api.h"
#include "client/cli/transport/context.h"
#include "client/cli/controller/daemons.h"
#include "client/cli/transport/instance.h"
#include "client/cli/transport/process.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "tests/unit/cli/cli_suites.h"

/* --- the controller --- */

static void assert_context(const struct common *common, enum err_code code, const char *url)
{
    struct context context;
    struct err err = {0};
    if (!context_load(common, &context, &err)) {
        ck_assert_msg(err.code == code, "%s", err.text);
        ck_assert_str_ne(err.hint, "");
        return;
    }
    ck_assert_int_eq(code, ERR_NONE);
    ck_assert_str_eq(context.url, url);
    ck_assert_str_eq(context.token, "secret");
    ck_assert(!context.embedded);
    context_finish(&context);
}

START_TEST(a_flag_beats_the_environment_beats_the_file)
{
    autofree char *gpuctl = xprintf("%s/gpuctl", cli_folder);
    ck_assert_int_eq(mkdir(gpuctl, 0700), 0);
    autofree char *token = xprintf("%s/token", cli_folder);
    autofree char *config = xprintf("url = http://127.0.0.1:1/\ntoken-file = %s\n", token);
    cli_write_file("token", "secret\n");
    cli_write_file("gpuctl/config", config);
    assert_context(&(struct common){0}, ERR_NONE, "http://127.0.0.1:1");
    setenv("GPUCTL_URL", "http://localhost:2", 1);
    assert_context(&(struct common){0}, ERR_NONE, "http://localhost:2");
    assert_context(&(struct common){.url = "http://[::1]:3"}, ERR_NONE, "http://[::1]:3");
    assert_context(&(struct common){.url = "http://[::1]:3", .token_file = "/nowhere"}, ERR_UNAUTHENTICATED,
                   NULL);
}
END_TEST

START_TEST(a_token_does_not_travel_in_the_clear)
{
    autofree char *token = xprintf("%s/token", cli_folder);
    cli_write_file("token", "secret\n");
    struct common common = {.token_file = token};
    const char *wrong[] = {"http://gpu.example.org",
                           "http://127.0.0.1.example.org",
                           "http://10.0.0.1:80",
                           "ftp://127.0.0.1",
                           "127.0.0.1:80",
                           "http://127.0.0.1@example.org",
                           "https://"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        common.url = wrong[i];
        assert_context(&common, ERR_USAGE, NULL);
    }
    common.url = "https://gpu.example.org:7070";
    assert_context(&common, ERR_NONE, "https://gpu.example.org:7070");
    common.url = "http://gpu.example.org";
    common.insecure_plain_http = true;
    assert_context(&common, ERR_NONE, "http://gpu.example.org");
}
END_TEST

START_TEST(without_any_controller_the_remedy_is_named)
{
    assert_context(&(struct common){0}, ERR_UNREACHABLE, NULL);
}
END_TEST

START_TEST(queries_and_paths_are_escaped)
{
    autotext struct text path = {0};
    text_append(&path, "/v1/jobs");
    api_query(&path, "name", NULL);
    api_query(&path, "name", "a b&c=\xc3\xa9");
    api_query(&path, "state", "QUEUED,RUNNING");
    api_part(&path, "/.-_~");
    ck_assert_str_eq(path.bytes, "/v1/jobs?name=a%20b%26c%3D%C3%A9&state=QUEUED%2CRUNNING%2F.-_~");
}
END_TEST

/* --- the embedded instance --- */

START_TEST(devices_are_divided_without_rest)
{
    for (int64_t count = 1; count < 20; count++) {
        for (int64_t nodes = 1; nodes <= count; nodes++) {
            int64_t next = 0, first, size;
            for (int64_t i = 0; i < nodes; i++) {
                daemons_divide(count, nodes, i, &first, &size);
                ck_assert_int_eq(first, next);
                ck_assert_int_ge(size, count / nodes);
                ck_assert_int_le(size, count / nodes + 1);
                next = first + size;
            }
            ck_assert_int_eq(next, count);
        }
    }
}
END_TEST

static char *join(struct text_list words)
{
    struct text joined = {0};
    for (size_t i = 1; words.items[i] != NULL; i++) {
        text_printf(&joined, "%s%s", i > 1 ? " " : "", words.items[i]);
    }
    text_list_finish(&words);
    return text_take(&joined);
}

START_TEST(nodes_are_started_with_their_own_folders_and_devices)
{
    char *devices[] = {(char[]){"0"}, (char[]){"1"}, (char[]){"2"}};
    struct start_options options = {.nodes = 2, .gpu_type = "A10", .idle_exit_ms = 1500};
    struct daemons daemons = {.state = "/s",
                              .options = &options,
                              .run = (char[]){"/r"},
                              .agent = (char[]){"agent"},
                              .controller = (char[]){"controller"},
                              .devices = {devices, 3}};
    autofree char *agent = join(daemons_agent_words(&daemons, 1, "http://x"));
    autofree char *controller = join(daemons_controller_words(&daemons));
    daemons.devices.count = 0;
    options.cpu_slots = 4;
    autofree char *slots = join(daemons_agent_words(&daemons, 0, "http://x"));
    /* M9: the nodes run in "/" */
    options.python = "bin/python";
    autofree char *here = getcwd(NULL, 0);
    autofree char *python = xprintf("%s --python %s/bin/python", slots, here);
    autofree char *with_python = join(daemons_agent_words(&daemons, 0, "http://x"));
    ck_assert_str_eq(with_python, python);
    ck_assert_str_eq(agent, "--controller http://x --token-file /s/node.token --name node1 --state /s/node1 "
                            "--run /r/node1 --config none --run-as agent "
                            "--devices 1,2 --gpu-type A10");
    ck_assert_str_eq(
        controller,
        "--state /s/controller --listen 127.0.0.1:0 --endpoint-file /s/endpoint --idle-exit 1500ms "
        "--embedded --config none");
    ck_assert_str_eq(slots, "--controller http://x --token-file /s/node.token --name node0 --state /s/node0 "
                            "--run /r/node0 --config none --run-as agent "
                            "--devices none --cpu-slots 4 --gpu-type A10");
}
END_TEST

/* Starts something that lives until it is ended. */
static int start_sleeper(const char *record)
{
    autofree char *log = xprintf("%s/log", cli_folder);
    char *argv[] = {(char[]){"/bin/sleep"}, (char[]){"1000"}, NULL};
    int pidfd = -1;
    struct err err;
    ck_assert_msg(process_start(argv, log, record, &pidfd, &err), "%s", err.text);
    return pidfd;
}

START_TEST(a_recorded_process_is_recognised_until_it_ends)
{
    autofree char *record = xprintf("%s/x.pid", cli_folder);
    autoclose int started = start_sleeper(record);
    pid_t pid = 0;
    autoclose int found = process_open(record, &pid);
    ck_assert_int_ge(found, 0);
    ck_assert(!process_wait(found, 0));
    autofree char *other = xprintf("%ld 1\n", (long)pid);
    autofree char *content = NULL;
    ck_assert(file_read(record, 64, &content, NULL, NULL));
    cli_write_file("x.pid", other); /* the same pid, started at another time */
    ck_assert_int_eq(process_open(record, NULL), -1);
    cli_write_file("x.pid", content);
    ck_assert(process_end(started, 5000));
    ck_assert_int_eq(process_open(record, NULL), -1);
}
END_TEST

START_TEST(a_stale_endpoint_is_no_instance)
{
    autofree char *record = xprintf("%s/controller.pid", cli_folder);
    ck_assert_ptr_null(instance_url(cli_folder));
    autoclose int started = start_sleeper(record);
    pid_t pid = 0;
    autoclose int found = process_open(record, &pid);
    ck_assert_int_ge(found, 0);
    autofree char *mine = xprintf("{\"url\":\"http://127.0.0.1:5\",\"pid\":%ld}", (long)pid);
    cli_write_file("endpoint", "{\"url\":\"http://127.0.0.1:5\",\"pid\":1}");
    ck_assert_ptr_null(instance_url(cli_folder));
    cli_write_file("endpoint", mine);
    autofree char *url = instance_url(cli_folder);
    ck_assert_str_eq(url, "http://127.0.0.1:5");
    struct err err;
    ck_assert_msg(instance_stop(cli_folder, 0, &err), "%s", err.text);
    ck_assert(process_wait(started, 0));
    ck_assert_ptr_null(instance_url(cli_folder));
    ck_assert_int_ne(access(record, F_OK), 0);
}
END_TEST

START_TEST(a_programs_output_is_read_whole_or_not_at_all)
{
    char *echo[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, (char[]){"echo 12; echo no >&2"}, NULL};
    char *much[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, (char[]){"while :; do echo 123456789; done"}, NULL};
    char *fails[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, (char[]){"echo 12; exit 2"}, NULL};
    char *missing[] = {(char[]){"/nowhere/at/all"}, NULL};
    autofree char *twelve = process_output(echo, 100);
    ck_assert_str_eq(twelve, "12\n");
    ck_assert_ptr_null(process_output(much, 10000));
    ck_assert_ptr_null(process_output(fails, 100));
    ck_assert_ptr_null(process_output(missing, 100));
}
END_TEST

Suite *cli_instance_suite(void)
{
    Suite *suite = suite_create("cli instance");
    TCase *tests = tcase_create("instance");
    tcase_add_checked_fixture(tests, cli_make_folder, cli_remove_folder);
    tcase_add_test(tests, a_flag_beats_the_environment_beats_the_file);
    tcase_add_test(tests, a_token_does_not_travel_in_the_clear);
    tcase_add_test(tests, without_any_controller_the_remedy_is_named);
    tcase_add_test(tests, queries_and_paths_are_escaped);
    tcase_add_test(tests, devices_are_divided_without_rest);
    tcase_add_test(tests, nodes_are_started_with_their_own_folders_and_devices);
    tcase_add_test(tests, a_recorded_process_is_recognised_until_it_ends);
    tcase_add_test(tests, a_stale_endpoint_is_no_instance);
    tcase_add_test(tests, a_programs_output_is_read_whole_or_not_at_all);
    suite_add_tcase(suite, tests);
    return suite;
}
