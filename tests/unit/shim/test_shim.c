/* SPDX-License-Identifier: Apache-2.0 */
/* The life of an attempt in gpushim: start, failure to start, exit, and agents that come and go. */
#include "tests/unit/shim/shim_rig.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/shimwire.h"
#include "proto/base/clock.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"

static struct rig rig;

static void set_up(void)
{
    rig_begin(&rig);
}

static void tear_down(void)
{
    rig_end(&rig);
}

START_TEST(one_rank_that_exits_with_0_is_recorded_so)
{
    rig_shell(&rig, "echo out; echo err >&2");
    rig_field(&rig, "rank", "7");
    rig_start(&rig);
    autofree char *record = rig_finish(&rig);
    struct rig_exit exit = rig_exit_of(record, 7);
    ck_assert_int_eq(exit.code, 0);
    ck_assert_int_eq(exit.signal, 0);
    ck_assert_int_eq(exit.by_us, 0);
    ck_assert_int_eq(exit.out_bytes, 4);
    ck_assert_int_eq(exit.err_bytes, 4);
    ck_assert_int_le(llabs(exit.wall_ms - clock_wall_ms()), 60000);
    rig_cause_is(record, "NONE");
    autofree char *out = rig_read(&rig, "7.stdout");
    autofree char *errors = rig_read(&rig, "7.stderr");
    ck_assert_str_eq(out, "out\n");
    ck_assert_str_eq(errors, "err\n");
    rig_forget(&rig);
}
END_TEST

START_TEST(an_exit_code_is_told_and_recorded)
{
    rig_shell(&rig, "exit 3");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    long long wall;
    int end = 0;
    ck_assert_int_eq(sscanf(rig_expect(&rig, "failed "),
                            "failed 0 3 0 %lld RANK_FAILED rank 0 exited with code 3%n", &wall, &end),
                     1);
    ck_assert_int_eq(end, (int)strlen(rig.heard));
    autofree char *record = rig_finish(&rig);
    ck_assert_int_eq(rig_exit_of(record, 0).code, 3);
    ck_assert_int_eq(rig_exit_of(record, 0).by_us, 0);
    rig_cause_is(record, "RANK_FAILED rank 0 exited with code 3");
    rig_forget(&rig);
}
END_TEST

START_TEST(a_signal_is_told_and_recorded_as_128_and_more)
{
    rig_shell(&rig, "kill -SEGV $$");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    ck_assert_ptr_nonnull(strstr(rig_expect(&rig, "failed 0 139 11 "),
                                 "RANK_FAILED rank 0 was killed by signal 11 (Segmentation fault)"));
    autofree char *record = rig_finish(&rig);
    ck_assert_int_eq(rig_exit_of(record, 0).code, 139);
    ck_assert_int_eq(rig_exit_of(record, 0).signal, 11);
    rig_forget(&rig);
}
END_TEST

static void expect_exec_failure(const char *code, const char *text)
{
    char start[64], cause[256];
    rig_field(&rig, "rank", "0");
    rig_assign(&rig);
    rig_send(&rig, "run - -");
    snprintf(start, sizeof start, "failed 0 %s 0 ", code);
    snprintf(cause, sizeof cause, "EXEC_FAILED %s", text);
    ck_assert_msg(strstr(rig_expect(&rig, start), cause) != NULL, "%s", rig.heard);
    autofree char *record = rig_finish(&rig);
    ck_assert_int_eq(rig_exit_of(record, 0).code, atoi(code));
    rig_cause_is(record, cause);
    rig_forget(&rig);
}

START_TEST(a_command_that_is_nowhere_in_PATH_is_not_found)
{
    rig_field(&rig, "arg", "no-such-program");
    rig_field(&rig, "env", "PATH=/usr/bin::/bin:/");
    expect_exec_failure("127", "command not found: no-such-program");
}
END_TEST

START_TEST(a_path_that_is_not_there_is_not_found)
{
    rig_field(&rig, "arg", "./no-such-program");
    expect_exec_failure("127", "command not found: ./no-such-program");
}
END_TEST

START_TEST(a_file_that_is_not_executable_is_named_with_the_reason)
{
    rig_field(&rig, "arg", "/etc/passwd");
    expect_exec_failure("126", "cannot execute /etc/passwd: Permission denied");
}
END_TEST

START_TEST(a_script_without_its_interpreter_is_named_with_the_reason)
{
    char path[128];
    static const char script[] = "#!/no/such/python\n";
    snprintf(path, sizeof path, "%s/train", rig.root);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    ck_assert_int_eq(write(fd, script, strlen(script)), (ssize_t)strlen(script));
    close(fd);
    rig_field(&rig, "arg", "./train");
    expect_exec_failure("126", "cannot execute ./train: the interpreter that it names does not exist");
}
END_TEST

START_TEST(a_missing_working_folder_is_named)
{
    rig_field(&rig, "cwd", "/no/such/folder");
    rig_shell(&rig, "true");
    expect_exec_failure("126", "working folder /no/such/folder: No such file or directory");
}
END_TEST

START_TEST(a_relative_command_is_found_from_the_working_folder)
{
    rig_field(&rig, "cwd", "/usr/bin");
    rig_field(&rig, "arg", "./env");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "NONE");
    rig_forget(&rig);
}
END_TEST

START_TEST(the_environment_is_exactly_what_the_launch_file_says)
{
    rig_field(&rig, "arg", "/usr/bin/env");
    rig_field(&rig, "env", "ALL=for all");
    rig_field(&rig, "env", "BOTH=job");
    rig_field(&rig, "env", "NCCL_SOCKET_IFNAME=eth7");
    rig_field(&rig, "rank", "0");
    rig_field(&rig, "env", "RANK=0");
    rig_field(&rig, "rank", "1");
    rig_field(&rig, "env", "RANK=1");
    rig_field(&rig, "env", "BOTH=rank");
    rig_assign(&rig);
    rig_send(&rig, "prepare");
    rig_expect_exactly(&rig, "prepared 0");
    rig_send(&rig, "start 10.0.0.9 20123 eth0");
    rig_expect(&rig, "running ");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "NONE");
    autofree char *first = rig_read(&rig, "0.stdout");
    autofree char *second = rig_read(&rig, "1.stdout");
    ck_assert_str_eq(first,
                     "ALL=for all\nBOTH=job\nNCCL_SOCKET_IFNAME=eth7\nRANK=0\n"
                     "GPUCTL_MASTER=10.0.0.9:20123\nMASTER_ADDR=10.0.0.9\n"
                     "MASTER_PORT=20123\nJAX_COORDINATOR_ADDRESS=10.0.0.9:20123\nGLOO_SOCKET_IFNAME=eth0\n");
    ck_assert_str_eq(second,
                     "ALL=for all\nBOTH=rank\nNCCL_SOCKET_IFNAME=eth7\nRANK=1\n"
                     "GPUCTL_MASTER=10.0.0.9:20123\nMASTER_ADDR=10.0.0.9\n"
                     "MASTER_PORT=20123\nJAX_COORDINATOR_ADDRESS=10.0.0.9:20123\nGLOO_SOCKET_IFNAME=eth0\n");
    rig_forget(&rig);
}
END_TEST

START_TEST(a_torchrun_gets_the_master_by_its_own_names_too)
{
    rig_field(&rig, "arg", "/usr/bin/env");
    rig_field(&rig, "torchrun", "1");
    rig_field(&rig, "rank", "0");
    rig_assign(&rig);
    rig_send(&rig, "prepare");
    rig_expect_exactly(&rig, "prepared 0");
    rig_send(&rig, "start fd00::9 20123 -");
    rig_expect(&rig, "running ");
    free(rig_finish(&rig));
    autofree char *out = rig_read(&rig, "0.stdout");
    ck_assert_str_eq(out, "GPUCTL_MASTER=fd00::9:20123\nMASTER_ADDR=fd00::9\nMASTER_PORT=20123\nJAX_"
                          "COORDINATOR_ADDRESS=[fd00::9]:20123\n"
                          "PET_MASTER_ADDR=fd00::9\nPET_MASTER_PORT=20123\n");
    rig_forget(&rig);
}
END_TEST

/* What the ranks of a started attempt print of these variables, whose patterns the launch file has. */
static char *told_of_nodes(const char *addresses)
{
    autofree char *path = xprintf("%s/addresses", rig.run);
    rig_shell(&rig, "echo $GPUCTL_NODE_ADDRESSES $CLUSTER_SPEC $TF_CONFIG");
    rig_field(&rig, "pattern", "CLUSTER_SPEC={\"master\":[\"@0\"],\"worker\":[\"@1\",\"@2\"]}");
    rig_field(&rig, "pattern", "TF_CONFIG={\"chief\":[\"@0\"]}");
    rig_field(&rig, "rank", "0");
    rig_assign(&rig);
    FILE *file = addresses != NULL ? fopen(path, "we") : NULL;
    ck_assert(addresses == NULL || (file != NULL && fputs(addresses, file) >= 0 && fclose(file) == 0));
    rig_send(&rig, "prepare");
    rig_expect_exactly(&rig, "prepared 0");
    rig_send(&rig, "start 10.0.0.9 20123 -");
    rig_expect(&rig, "running ");
    free(rig_finish(&rig));
    char *out = rig_read(&rig, "0.stdout");
    rig_forget(&rig);
    return out;
}

START_TEST(each_node_is_told_by_its_address_and_port)
{
    autofree char *out = told_of_nodes("10.0.0.9:20123,[fd00::2]:20500,10.0.0.11:0");
    ck_assert_str_eq(out,
                     "10.0.0.9,fd00::2,10.0.0.11 "
                     "{\"master\":[\"10.0.0.9:20123\"],\"worker\":[\"[fd00::2]:20500\",\"10.0.0.11:20123\"]} "
                     "{\"chief\":[\"10.0.0.9:20123\"]}\n");
}
END_TEST

START_TEST(addresses_of_no_known_form_do_no_harm)
{
    autofree char *out = told_of_nodes("[:1,,x,[");
    ck_assert_str_eq(out, "[,,, {\"master\":[\"[:1\"],\"worker\":[\"node-1:20123\",\"x\"]} "
                          "{\"chief\":[\"[:1\"]}\n");
}
END_TEST

START_TEST(nodes_whose_address_nobody_knows_are_told_by_name)
{
    autofree char *out = told_of_nodes(NULL);
    ck_assert_str_eq(out, "{\"master\":[\"10.0.0.9:20123\"],\"worker\":[\"node-1:20123\",\"node-2:20123\"]} "
                          "{\"chief\":[\"10.0.0.9:20123\"]}\n");
}
END_TEST

START_TEST(the_interface_is_given_to_nccl_as_an_exact_name)
{
    rig_field(&rig, "arg", "/usr/bin/env");
    rig_field(&rig, "rank", "0");
    rig_assign(&rig);
    rig_send(&rig, "run - eth0");
    rig_expect(&rig, "running ");
    free(rig_finish(&rig));
    autofree char *out = rig_read(&rig, "0.stdout");
    ck_assert_str_eq(out, "GLOO_SOCKET_IFNAME=eth0\nNCCL_SOCKET_IFNAME==eth0\n");
    rig_forget(&rig);
}
END_TEST

START_TEST(no_descriptor_of_the_shim_leaks_into_a_rank)
{
    rig_field(&rig, "arg", "ls");
    rig_field(&rig, "arg", "/proc/self/fd");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    free(rig_finish(&rig));
    autofree char *out = rig_read(&rig, "0.stdout");
    ck_assert_str_eq(out, "0\n1\n2\n3\n"); /* 3 is the folder that ls reads */
    rig_forget(&rig);
}
END_TEST

START_TEST(a_rank_has_default_signals)
{
    rig_field(&rig, "arg", "grep"); /* a shell would set some itself */
    rig_field(&rig, "arg", "-E");
    rig_field(&rig, "arg", "^Sig(Blk|Ign)");
    rig_field(&rig, "arg", "/proc/self/status");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    free(rig_finish(&rig));
    autofree char *out = rig_read(&rig, "0.stdout");
    ck_assert_str_eq(out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    rig_forget(&rig);
}
END_TEST

/* Where it may, the shim lets the kernel end any rank before itself. */
static bool may_protect(void)
{
    autoclose int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    return file >= 0 && pwrite(file, "-1", 2, 0) == 2 && pwrite(file, "0", 1, 0) == 1;
}

START_TEST(a_rank_has_a_session_of_its_own_an_empty_stdin_and_the_limits_of_the_agent)
{
    rig_shell(&rig, "cat; read -r pid name state parent group session rest < /proc/$$/stat; "
                    "test $pid = $session && echo leader; cat /proc/self/oom_score_adj; ulimit -n");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    free(rig_finish(&rig));
    autofree char *out = rig_read(&rig, "0.stdout");
    char expected[64];
    snprintf(expected, sizeof expected, "leader\n0\n%ld\n", sysconf(_SC_OPEN_MAX));
    ck_assert_str_eq(out, expected);
    autofree char *path = xprintf("/proc/%d/oom_score_adj", (int)rig.shim);
    autofree char *score = NULL;
    ck_assert(file_read(path, 16, &score, NULL, NULL));
    ck_assert_str_eq(score, may_protect() ? "-900\n" : RIG_SCORE "\n"); /* again, after the start */
    rig_forget(&rig);
}
END_TEST

START_TEST(a_new_agent_hears_all_that_holds_in_order)
{
    rig_shell(&rig, "echo text; exit 4");
    rig_field(&rig, "rank", "0");
    rig_assign(&rig);
    rig_send(&rig, "prepare");
    rig_expect_exactly(&rig, "prepared 0");
    rig_send(&rig, "start - - -");
    rig_expect(&rig, "running ");
    rig_expect(&rig, "failed 0 4 0 ");
    free(rig_finish(&rig));
    for (int i = 0; i < 2; i++) {
        rig_connect(&rig);
        rig_expect_exactly(&rig, "prepared 0");
        rig_expect(&rig, "running ");
        rig_expect(&rig, "failed 0 4 0 ");
        rig_expect_exactly(&rig, "output");
        rig_expect_exactly(&rig, "exited");
    }
    rig_forget(&rig);
}
END_TEST

START_TEST(each_agent_hears_which_processes_the_ranks_are)
{
    rig_shell(&rig, "echo $$");
    rig_field(&rig, "rank", "0");
    rig_field(&rig, "rank", "1");
    rig_start(&rig);
    free(rig_finish(&rig));
    for (int i = 0; i < 2; i++) {
        for (int rank = 0; rank < 2; rank++) {
            char name[32], expected[32];
            snprintf(name, sizeof name, "%d.stdout", rank);
            snprintf(expected, sizeof expected, "%d\n", rig.pids[rank]);
            autofree char *out = rig_read(&rig, name);
            ck_assert_str_eq(out, expected);
            rig.pids[rank] = 0;
        }
        rig_connect(&rig);
        rig_expect(&rig, "running ");
        rig_expect(&rig, "exited");
    }
    rig_forget(&rig);
}
END_TEST

START_TEST(a_newer_connection_replaces_the_older)
{
    char byte;
    rig_shell(&rig, "true");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    free(rig_finish(&rig));
    int older = dup(rig.agent_socket);
    rig_connect(&rig);
    rig_expect(&rig, "running ");
    ck_assert_int_eq(recv(older, &byte, 1, 0), 0);
    close(older);
    rig_expect(&rig, "exited");
    rig_forget(&rig);
}
END_TEST

START_TEST(the_end_of_the_agent_changes_nothing)
{
    rig_shell(&rig, "read line < gate; echo went on");
    rig_field(&rig, "rank", "0");
    rig_gate(&rig, "gate");
    rig_start(&rig);
    close(rig.agent_socket);
    kill(rig.shim, SIGTERM); /* as the restart of a service may do */
    kill(rig.shim, SIGINT);
    kill(rig.shim, SIGHUP);
    rig_gate_pass(&rig, "gate");
    rig.agent_socket = -1;
    rig_connect(&rig);
    rig_expect(&rig, "running ");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "NONE");
    autofree char *out = rig_read(&rig, "0.stdout");
    ck_assert_str_eq(out, "went on\n");
    rig_forget(&rig);
}
END_TEST

START_TEST(words_out_of_place_do_nothing)
{
    rig_shell(&rig, "echo once; read line < gate");
    rig_field(&rig, "rank", "0");
    rig_gate(&rig, "gate");
    rig_start(&rig);
    rig_send(&rig, "run - -");
    rig_send(&rig, "forget");
    rig_send(&rig, "prepare");
    rig_send(&rig, "assign /tmp");
    rig_send(&rig, "dance");
    rig_logs_error(&rig, "ignores the message dance");
    rig_send(&rig, "stop soon CANCELED");
    rig_logs_error(&rig, "ignores the message stop");
    rig_gate_pass(&rig, "gate");
    autofree char *record = rig_finish(&rig);
    rig_cause_is(record, "NONE");
    autofree char *out = rig_read(&rig, "0.stdout");
    ck_assert_str_eq(out, "once\n");
    rig_forget(&rig);
}
END_TEST

START_TEST(orders_of_one_message_are_followed_in_turn)
{
    rig_shell(&rig, "sleep 1000");
    rig_field(&rig, "rank", "0");
    rig_assign_and(&rig, "lease 1 1\nrun - -");
    rig_expect_exactly(&rig, "declined the lease ended before the start");
    rig_forget(&rig);
}
END_TEST

START_TEST(a_shim_whose_agent_goes_before_it_has_an_attempt_ends)
{
    int status;
    close(rig.agent_socket);
    rig.agent_socket = -1;
    ck_assert_int_eq(waitpid(rig.shim, &status, 0), rig.shim);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(one_folder_is_taken_by_one_shim_only)
{
    int status;
    struct rig second;
    rig_shell(&rig, "true");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    rig_begin(&second);
    rig_send(&second, "assign %s", rig.run);
    ck_assert_int_eq(waitpid(second.shim, &status, 0), second.shim);
    ck_assert_int_eq(WEXITSTATUS(status), 1);
    rig_end(&second);
    free(rig_finish(&rig));
    rig_forget(&rig);
}
END_TEST

START_TEST(a_folder_that_an_agent_has_given_up_is_not_taken)
{
    int status;
    char path[256];
    snprintf(path, sizeof path, "%s/" SHIM_PID_FILE, rig.run);
    close(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    rig_shell(&rig, "touch started");
    rig_field(&rig, "rank", "0");
    rig_assign(&rig);
    send(rig.agent_socket, "run - -", 7, MSG_NOSIGNAL); /* it may have ended by now */
    rig_logs_error(&rig, "cannot take an attempt: shim.pid: File exists");
    ck_assert_int_eq(waitpid(rig.shim, &status, 0), rig.shim);
    ck_assert_int_eq(WEXITSTATUS(status), 1);
    snprintf(path, sizeof path, "%s/" SHIM_SOCKET_FILE, rig.run);
    ck_assert_int_ne(access(path, F_OK), 0);
    snprintf(path, sizeof path, "%s/" SHIM_PID_FILE ".new", rig.run);
    ck_assert_int_ne(access(path, F_OK), 0);
    snprintf(path, sizeof path, "%s/started", rig.root);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_folder_without_a_launch_file_is_not_taken)
{
    int status;
    char path[256];
    rig_send(&rig, "assign %s", rig.run);
    rig_logs_error(&rig, "cannot take an attempt: launch: No such file");
    ck_assert_int_eq(waitpid(rig.shim, &status, 0), rig.shim);
    ck_assert_int_eq(WEXITSTATUS(status), 1);
    snprintf(path, sizeof path, "%s/" SHIM_PID_FILE, rig.run);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(the_pid_file_names_the_shim)
{
    rig_shell(&rig, "cat " RIG_ATTEMPT_ID "/shim.pid; cut -d' ' -f1,22 /proc/$PPID/stat");
    rig_field(&rig, "rank", "0");
    rig_start(&rig);
    free(rig_finish(&rig));
    autofree char *out = rig_read(&rig, "0.stdout");
    int pid[2], end = 0;
    long long started[2];
    ck_assert_int_eq(sscanf(out, "%d %lld\n%d %lld\n%n", &pid[0], &started[0], &pid[1], &started[1], &end),
                     4);
    ck_assert_int_eq(end, (int)strlen(out));
    ck_assert_int_eq(pid[0], rig.shim);
    ck_assert_int_eq(pid[1], rig.shim);
    ck_assert_int_eq(started[0], started[1]);
    rig_forget(&rig);
}
END_TEST

static TCase *life_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return tcase;
}

void rig_suite_life(Suite *suite)
{
    TCase *start = life_case(suite, "start");
    tcase_add_test(start, one_rank_that_exits_with_0_is_recorded_so);
    tcase_add_test(start, an_exit_code_is_told_and_recorded);
    tcase_add_test(start, a_signal_is_told_and_recorded_as_128_and_more);
    tcase_add_test(start, a_command_that_is_nowhere_in_PATH_is_not_found);
    tcase_add_test(start, a_path_that_is_not_there_is_not_found);
    tcase_add_test(start, a_file_that_is_not_executable_is_named_with_the_reason);
    tcase_add_test(start, a_script_without_its_interpreter_is_named_with_the_reason);
    tcase_add_test(start, a_missing_working_folder_is_named);
    tcase_add_test(start, a_relative_command_is_found_from_the_working_folder);
    tcase_add_test(start, the_environment_is_exactly_what_the_launch_file_says);
    tcase_add_test(start, a_torchrun_gets_the_master_by_its_own_names_too);
    tcase_add_test(start, each_node_is_told_by_its_address_and_port);
    tcase_add_test(start, addresses_of_no_known_form_do_no_harm);
    tcase_add_test(start, nodes_whose_address_nobody_knows_are_told_by_name);
    tcase_add_test(start, the_interface_is_given_to_nccl_as_an_exact_name);
    tcase_add_test(start, no_descriptor_of_the_shim_leaks_into_a_rank);
    tcase_add_test(start, a_rank_has_default_signals);
    tcase_add_test(start, a_rank_has_a_session_of_its_own_an_empty_stdin_and_the_limits_of_the_agent);
    TCase *agents = life_case(suite, "agents");
    tcase_add_test(agents, a_new_agent_hears_all_that_holds_in_order);
    tcase_add_test(agents, each_agent_hears_which_processes_the_ranks_are);
    tcase_add_test(agents, a_newer_connection_replaces_the_older);
    tcase_add_test(agents, the_end_of_the_agent_changes_nothing);
    tcase_add_test(agents, words_out_of_place_do_nothing);
    tcase_add_test(agents, orders_of_one_message_are_followed_in_turn);
    tcase_add_test(agents, a_shim_whose_agent_goes_before_it_has_an_attempt_ends);
    tcase_add_test(agents, one_folder_is_taken_by_one_shim_only);
    tcase_add_test(agents, a_folder_that_an_agent_has_given_up_is_not_taken);
    tcase_add_test(agents, a_folder_without_a_launch_file_is_not_taken);
    tcase_add_test(agents, the_pid_file_names_the_shim);
}
