/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what the agent reads, writes and cuts: exit records, launch files, log pieces, laid files, folders
 * that go away, what a lost shim leaves, routes. */
#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/address.h"
#include "agent/launch/cgroup.h"
#include "agent/common/launch_file.h"
#include "agent/base/stage_file.h"
#include "agent/output/output_parts.h"
#include "agent/output/record.h"
#include "agent/launch/runner.h"
#include "agent/launch/shims.h"
#include "agent/base/trash.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "tests/unit/agent/agent_suites.h"

static char folder[64];

static void setup(void)
{
    strcpy(folder, "/tmp/unit-agent-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    ck_assert(file_remove_tree(folder, NULL));
}

/* --- exit records --------------------------------------------------------------------------------------- */

START_TEST(a_record_is_read_whole)
{
    struct record record;
    struct err err = {0};
    ck_assert_msg(record_parse("rank 2 1 0 1700000000000 10 20 0\nrank 3 143 15 1700000000001 0 0 1\n"
                               "checkpoint 1700000000002\ncause RANK_FAILED rank 2 exited with code 1\nend\n",
                               &record, &err),
                  "%s", err.text);
    ck_assert_uint_eq(record.rank_count, 2);
    ck_assert_int_eq(record.ranks[0].rank, 2);
    ck_assert_int_eq(record.ranks[0].err_bytes, 20);
    ck_assert_int_eq(record.ranks[1].signal, 15);
    ck_assert(record.ranks[1].by_us && !record.ranks[0].by_us);
    ck_assert_int_eq(record.checkpoint_ms, 1700000000002);
    ck_assert_int_eq(record.cause, CAUSE_RANK_FAILED);
    ck_assert_str_eq(record.text, "rank 2 exited with code 1");
    ck_assert_int_eq(record.moments.gone_us, 0);
    record_finish(&record);
}
END_TEST

#define RECORD "rank 0 0 0 1700000000000 0 0 0\ncause NONE\nend\n"

START_TEST(moments_behind_the_end_of_a_record_are_read)
{
    struct record record;
    struct err err = {0};
    ck_assert_msg(record_parse(RECORD "moments 0 11 12 13 14\nmark 3 12 first all-reduce\nmark 0 13 x\n",
                               &record, &err),
                  "%s", err.text);
    ck_assert_int_eq(record.moments.prepared_us, 0);
    ck_assert_int_eq(record.moments.begun_us, 11);
    ck_assert_int_eq(record.moments.running_us, 12);
    ck_assert_int_eq(record.moments.output_us, 13);
    ck_assert_int_eq(record.moments.gone_us, 14);
    ck_assert_uint_eq(record.moments.mark_count, 2);
    ck_assert_int_eq(record.moments.marks[0].rank, 3);
    ck_assert_int_eq(record.moments.marks[0].at_us, 12);
    ck_assert_str_eq(record.moments.marks[0].name, "first all-reduce");
    ck_assert_str_eq(record.moments.marks[1].name, "x");
    record_finish(&record);
}
END_TEST

START_TEST(a_record_of_another_attempt_is_none)
{
    struct record record;
    struct err err = {0};
    autofree char *path = xprintf("%s/exit", folder);
    static const char text[] = RECORD "epoch 8\nmoments 0 11 12 13 14\n";
    ck_assert(file_replace(path, text, strlen(text), 0600, &err));
    ck_assert(!record_read(folder, 7, &record, &err));
    ck_assert_int_eq(err.code, ERR_MALFORMED);
    ck_assert_msg(record_read(folder, 8, &record, &err), "%s", err.text);
    ck_assert_int_eq(record.moments.gone_us, 14);
    record_finish(&record);
}
END_TEST

/* Those of a later shim, perhaps. */
START_TEST(what_is_not_understood_behind_the_end_of_a_record_does_no_harm)
{
    static const char *const tails[] = {
        "moments",
        "moments 1 2\n",
        "moments x\n",
        "mark\n",
        "mark 0 1\n",
        "mark 0 1 a\"b\n",
        "mark 0 1 12345678901234567890123456789012345678901\n",
        "mark -1 1 x\n",
        "mark 0 0 x\n",
        "\n\n",
        "other 1\n",
    };
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        struct record record;
        autofree char *text = xprintf("%s%s", RECORD, tails[i]);
        ck_assert_msg(record_parse(text, &record, NULL), "%s", tails[i]);
        ck_assert_uint_eq(record.rank_count, 1);
        ck_assert_uint_eq(record.moments.mark_count, 0);
        ck_assert_int_eq(record.moments.gone_us, 0);
        record_finish(&record);
    }
}
END_TEST

START_TEST(a_record_without_its_end_is_none)
{
    static const char *const wrong[] = {
        "",
        "end",
        "rank 0 0 0 1 0 0 0\ncause NONE\n",
        "rank 0 0 0 1 0 0\nend\n",
        "rank 0 0 0 1 0 0 0 0\nend\n",
        "rank x 0 0 1 0 0 0\nend\n",
        "cause NOT_A_CAUSE\nend\n",
        "something else\nend\n",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct record record;
        struct err err = {0};
        ck_assert_msg(!record_parse(wrong[i], &record, &err), "%s", wrong[i]);
        ck_assert_int_eq(err.code, ERR_MALFORMED);
    }
}
END_TEST

/* --- launch files --------------------------------------------------------------------------------------- */

static void write_file(const char *path, const void *bytes, size_t length)
{
    autoclose int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_eq(write(file, bytes, length), length);
}

static bool parse(const char *bytes, size_t length, struct launch *ret_launch)
{
    char *copy = xalloc(length + 1);
    memcpy(copy, bytes, length);
    return launch_parse(copy, length, ret_launch, NULL);
}

START_TEST(what_is_put_into_a_launch_file_is_found_again)
{
    autotext struct text launch = {0};
    launch_put(&launch, "epoch", "5");
    launch_put(&launch, "logs", "/state/attempts/5");
    launch_put(&launch, "cwd", "/tmp");
    launch_put(&launch, "arg", "true");
    launch_put(&launch, "cgroup", "/sys/fs/cgroup/x");
    launch_put_int(&launch, "port_first", 20000);
    launch_put_int(&launch, "port_last", 20001);
    launch_put_int(&launch, "received", 123456789);
    launch_put_int(&launch, "granted", 2);
    launch_put_env(&launch, "CUDA_VISIBLE_DEVICES", "GPU-b,GPU-d");
    launch_put_int(&launch, "rank", 2);
    launch_put_env(&launch, "RANK", "2");
    launch_put_int(&launch, "rank", 3);
    struct launch read;
    ck_assert(!parse(launch.bytes, launch.length - 1, &read));
    ck_assert(parse(launch.bytes, launch.length, &read));
    ck_assert_uint_eq(read.rank_count, 2);
    ck_assert_int_eq(read.ranks[1].number, 3);
    ck_assert_str_eq(read.ranks[0].env[0], "RANK=2");
    ck_assert_str_eq(launch_variable(&read, "CUDA_VISIBLE_DEVICES"), "GPU-b,GPU-d");
    ck_assert_ptr_null(launch_variable(&read, "CUDA_VISIBLE"));
    ck_assert_str_eq(read.cgroup, "/sys/fs/cgroup/x");
    ck_assert_int_eq(read.port_first, 20000);
    ck_assert_int_eq(read.received_us, 123456789);
    ck_assert_int_eq(read.granted, 2);
    launch_finish(&read);
}
END_TEST

/* Without its gid a user would keep root's. */
START_TEST(a_user_has_a_number_a_group_and_more_groups)
{
    static const char rest[] = "epoch\0005\0logs\0/logs\0cwd\0/\0arg\0true\0rank\0000";
    autotext struct text text = {0};
    struct launch launch;
    text_append_bytes(&text, rest, sizeof rest);
    ck_assert(parse(text.bytes, text.length, &launch));
    ck_assert_int_eq(launch.uid, -1);
    launch_finish(&launch);
    launch_put_int(&text, "uid", 1900000016);
    ck_assert(!parse(text.bytes, text.length, &launch));
    launch_put_int(&text, "gid", 1900000017);
    launch_put_int(&text, "group", 44);
    launch_put_int(&text, "group", 1000);
    ck_assert(parse(text.bytes, text.length, &launch));
    ck_assert_int_eq(launch.uid, 1900000016);
    ck_assert_int_eq(launch.gid, 1900000017);
    ck_assert_uint_eq(launch.group_count, 2);
    ck_assert_int_eq(launch.groups[1], 1000);
    launch_finish(&launch);
    launch_put_int(&text, "group", 0);
    ck_assert(!parse(text.bytes, text.length, &launch));
}
END_TEST

/* --- pieces of logs ------------------------------------------------------------------------------------- */

#define CUT(text, full, final, old) output_cut(text, strlen(text), full, final, old)

static void expect_cut_short(const char *bytes, size_t length)
{
    struct launch launch;
    ck_assert(!parse(bytes, length, &launch));
}

START_TEST(a_launch_file_whose_writer_was_killed_is_none)
{
    static const char begun[] = "epoch\0007\0cgroup\0/sys/fs/cgroup/x\0";
    expect_cut_short("", 0);
    expect_cut_short(begun, sizeof begun - 1);
    expect_cut_short(begun, sizeof begun - 4);
}
END_TEST

START_TEST(pieces_end_with_a_line)
{
    ck_assert_uint_eq(CUT("one\ntwo\nthr", false, false, false), 8);
    ck_assert_uint_eq(CUT("one\ntwo\nthr", true, false, false), 8);
    ck_assert_uint_eq(CUT("one\n", false, false, false), 4);
}
END_TEST

START_TEST(an_unfinished_line_waits_until_it_is_old_or_final)
{
    ck_assert_uint_eq(CUT("thr", false, false, false), 0);
    ck_assert_uint_eq(CUT("thr", false, false, true), 3);
    ck_assert_uint_eq(CUT("thr", false, true, false), 3);
    ck_assert_uint_eq(CUT("one\nthr", false, true, false), 7);
    ck_assert_uint_eq(CUT("thr", true, false, false), 3);
}
END_TEST

START_TEST(characters_are_not_cut_in_two)
{
    ck_assert_uint_eq(CUT("ab\xe2\x82", true, false, false), 2);
    ck_assert_uint_eq(CUT("ab\xe2\x82\xac", true, false, false), 5);
    ck_assert_uint_eq(CUT("ab\xf0\x9f\x98", false, false, true), 2);
    ck_assert_uint_eq(CUT("\xe2\x82", false, false, true), 2);
    ck_assert_uint_eq(CUT("\x80\x80\x80\x80", true, false, false), 4);
}
END_TEST

/* --- laid files ----------------------------------------------------------------------------------------- */

START_TEST(files_are_laid_with_their_folders_and_modes)
{
    autoclose int root = open(folder, O_RDONLY | O_DIRECTORY);
    struct err err = {0};
    autoclose int file = stage_file_open(root, "a/b/run.sh", true, &err);
    ck_assert_msg(file >= 0, "%s", err.text);
    ck_assert(stage_file_write(file, "hello", 5, "a/b/run.sh", &err));
    struct stat status;
    ck_assert_int_eq(fstatat(root, "a/b/run.sh", &status, 0), 0);
    ck_assert_int_eq(status.st_size, 5);
    ck_assert_int_eq(status.st_mode & 0777, 0755);
}
END_TEST

START_TEST(no_file_is_laid_outside_its_folder)
{
    static const char *const paths[] = {"../x", "a/../../x", "/tmp/x", "",       "a//b",
                                        "a/",   ".",         "..",     "link/x", "file-link"};
    autofree char *inside = xprintf("%s/inside", folder);
    ck_assert_int_eq(mkdir(inside, 0700), 0);
    autoclose int root = open(inside, O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(symlinkat(folder, root, "link"), 0);
    ck_assert_int_eq(symlinkat("../x", root, "file-link"), 0);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct err err = {0};
        ck_assert_msg(stage_file_open(root, paths[i], false, &err) == -1, "%s", paths[i]);
        ck_assert_msg(err.code == ERR_FIELD, "%s: %s", paths[i], err.text);
    }
    autofree char *outside = xprintf("%s/x", folder);
    ck_assert_int_ne(access(outside, F_OK), 0);
}
END_TEST

/* --- folders that go away ------------------------------------------------------------------------------- */

START_TEST(trash_goes_in_steps_and_follows_no_link)
{
    autofree char *trash_path = xprintf("%s/trash", folder);
    autofree char *taken = xprintf("%s/5", folder);
    autofree char *deep = xprintf("%s/5/a/b/c", folder);
    autofree char *kept = xprintf("%s/kept", folder);
    autofree char *link = xprintf("%s/5/a/link", folder);
    ck_assert(file_make_directories(deep, 0700, NULL));
    for (int i = 0; i < 200; i++) {
        autofree char *path = xprintf("%s/%d", deep, i);
        write_file(path, "x", 1);
    }
    write_file(kept, "x", 1);
    ck_assert_int_eq(symlink(folder, link), 0);
    struct err err = {0};
    struct trash *trash = trash_create(trash_path, &err);
    ck_assert_msg(trash != NULL, "%s", err.text);
    trash_take(trash, taken);
    ck_assert_int_ne(access(taken, F_OK), 0);
    int steps = 0;
    while (trash_step(trash)) {
        ck_assert_int_lt(++steps, 100);
    }
    ck_assert_int_gt(steps, 1);
    ck_assert_int_eq(access(kept, F_OK), 0);
    ck_assert_int_eq(rmdir(trash_path), 0);
    trash_destroy(trash);
}
END_TEST

/* In a container agent after agent has the same process number, so each begins with the same names. */
START_TEST(trash_is_taken_whatever_an_earlier_agent_has_left_under_its_name)
{
    autofree char *trash_path = xprintf("%s/trash", folder), *spare = xprintf("%s/spare", folder);
    autofree char *deep = xprintf("%s/spare/0/work", folder);
    for (int i = 0; i < 3; i++) {
        ck_assert(file_make_directories(deep, 0700, NULL));
        struct trash *trash = trash_create(trash_path, NULL);
        trash_take(trash, spare);
        ck_assert_int_ne(access(spare, F_OK), 0);
        trash_destroy(trash); /* killed before it removed anything */
    }
}
END_TEST

/* --- what a lost shim leaves ---------------------------------------------------------------------------- */

START_TEST(a_run_folder_without_a_shim_is_closed_to_those_that_come_late)
{
    autofree char *pid_file = xprintf("%s/shim.pid", folder);
    struct shim_process shim;
    struct stat status;
    ck_assert(!shims_find(folder, &shim));
    ck_assert_int_eq(stat(pid_file, &status), 0);
    ck_assert_int_eq(status.st_size, 0);
    ck_assert(!shims_find(folder, &shim));
}
END_TEST

START_TEST(a_run_folder_that_a_reboot_has_emptied_has_no_shim)
{
    autofree char *nowhere = xprintf("%s/7", folder);
    struct shim_process shim;
    ck_assert(!shims_find(nowhere, &shim));
    ck_assert_int_ne(access(nowhere, F_OK), 0);
}
END_TEST

START_TEST(a_cgroup_is_cleared_with_those_that_the_job_made_below)
{
    autofree char *path = xprintf("%s/7", folder), *deep = xprintf("%s/7/a/b/c", folder);
    autofree char *other = xprintf("%s/7/d", folder);
    ck_assert(file_make_directories(deep, 0700, NULL));
    ck_assert(file_make_directories(other, 0700, NULL));
    ck_assert(cgroup_clear(path));
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert(cgroup_clear(path));
}
END_TEST

START_TEST(a_cgroup_in_which_something_is_left_is_not_cleared)
{
    autofree char *path = xprintf("%s/7", folder), *below = xprintf("%s/7/a", folder);
    autofree char *held = xprintf("%s/7/a/held", folder);
    ck_assert(file_make_directories(below, 0700, NULL));
    write_file(held, "x", 1);
    ck_assert(!cgroup_clear(path));
    ck_assert_int_eq(access(held, F_OK), 0);
}
END_TEST

/* --- what agents and shims of earlier versions have written --------------------------------------------- */

static void each_recorded(void (*work)(const char *recorded))
{
    size_t count = 0;
    DIR *listing = opendir(getenv("RECORDED"));
    ck_assert_ptr_nonnull(listing);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        if (entry->d_name[0] != '.') {
            autofree char *recorded = xprintf("%s/%s", getenv("RECORDED"), entry->d_name);
            work(recorded);
            count++;
        }
    }
    closedir(listing);
    ck_assert_uint_ge(count, 2);
}

/* It is kept as lines; the real one has a NUL behind each word. */
static void read_recorded_launch(const char *recorded)
{
    autofree char *path = xprintf("%s/launch.txt", recorded);
    autofree char *text = NULL;
    struct launch launch;
    size_t length;
    struct err err;
    ck_assert_msg(file_read(path, 1000000, &text, &length, &err), "%s", err.text);
    for (size_t i = 0; i < length; i++) {
        text[i] = text[i] == '\n' ? '\0' : text[i];
    }
    ck_assert_msg(launch_parse(give(text), length, &launch, &err), "%s", err.text);
    ck_assert_uint_eq(launch.rank_count, 2);
    ck_assert_int_eq(launch.ranks[1].number, 1);
    ck_assert_int_ne(launch.port_first, 0);
    ck_assert_ptr_nonnull(strstr(launch.cgroup, "/gpuctl-node0-"));
    launch_finish(&launch);
}

START_TEST(launch_files_of_earlier_agents_are_read)
{
    each_recorded(read_recorded_launch);
}
END_TEST

static void read_recorded_exit(const char *recorded)
{
    struct record record;
    struct err err = {0};
    ck_assert_msg(record_read(recorded, 1, &record, &err), "%s", err.text);
    ck_assert_uint_eq(record.rank_count, 1);
    ck_assert_int_eq(record.ranks[0].code, 143);
    ck_assert_int_eq(record.ranks[0].signal, 15);
    ck_assert_int_eq(record.cause, CAUSE_RANK_FAILED);
    record_finish(&record);
}

START_TEST(exit_records_of_earlier_shims_are_read)
{
    each_recorded(read_recorded_exit);
}
END_TEST

/* --- the runner of functions ---------------------------------------------------------------------------- */

static char *stage_runner(const char *below)
{
    struct err err = {0};
    char *laid = runner_stage(below, &err);
    ck_assert_msg(laid != NULL, "%s", err.text);
    return laid;
}

static void ck_assert_laid(const char *path)
{
    size_t length;
    struct stat status;
    autofree char *bytes = NULL;
    ck_assert(file_read(path, 1 << 20, &bytes, &length, NULL));
    ck_assert_uint_eq(length, runner_source_length);
    ck_assert_int_eq(memcmp(bytes, runner_source, length), 0);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 07777, 0644);
}

START_TEST(the_runner_is_laid_whole_under_its_hash)
{
    autofree char *below = xprintf("%s/runner", folder), *laid = stage_runner(below);
    autofree char *path = xprintf("%s/gpuctl_runner.py", laid);
    ck_assert_uint_eq(strlen(laid), strlen(below) + 1 + 16);
    write_file(path, "edited", 6);
    free(stage_runner(below));
    ck_assert_laid(path);
}
END_TEST

START_TEST(a_program_that_was_altered_or_opened_to_others_is_written_again)
{
    autofree char *below = xprintf("%s/runner", folder), *laid = stage_runner(below);
    autofree char *path = xprintf("%s/gpuctl_runner.py", laid);
    autofree char *altered = xalloc(runner_source_length);
    memcpy(altered, runner_source, runner_source_length);
    altered[runner_source_length - 1] = '#';
    ck_assert(runner_restore(laid, NULL)); /* what was written is compared, and need not be again */
    ck_assert(runner_restore(laid, NULL));
    write_file(path, altered, runner_source_length);
    ck_assert(runner_restore(laid, NULL));
    ck_assert_laid(path);
    ck_assert(runner_restore(laid, NULL));
    ck_assert_int_eq(chmod(path, 0666), 0);
    ck_assert(runner_restore(laid, NULL));
    ck_assert_laid(path);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert(runner_restore(laid, NULL));
    ck_assert_laid(path);
}
END_TEST

START_TEST(other_runners_go_and_this_one_stays)
{
    autofree char *trash_path = xprintf("%s/trash", folder), *below = xprintf("%s/runner", folder);
    autofree char *laid = stage_runner(below), *other = xprintf("%s/0000000000000000", below);
    struct trash *trash = trash_create(trash_path, NULL);
    ck_assert_int_eq(mkdir(other, 0700), 0);
    runner_drop_others(below, laid, trash);
    ck_assert_int_ne(access(other, F_OK), 0);
    ck_assert_int_eq(access(laid, F_OK), 0);
    trash_destroy(trash);
}
END_TEST

/* --- routes --------------------------------------------------------------------------------------------- */

START_TEST(the_way_to_this_host_is_the_loopback)
{
    char own[ADDRESS_BYTES], interface[INTERFACE_BYTES];
    struct err err = {0};
    ck_assert_msg(address_resolve("127.0.0.1", own, &err), "%s", err.text);
    ck_assert_str_eq(own, "127.0.0.1");
    ck_assert(address_towards("127.0.0.1", own));
    ck_assert_str_eq(own, "127.0.0.1");
    ck_assert(address_interface("127.0.0.1", interface));
    ck_assert_str_eq(interface, "lo");
    if (address_towards("::1", own)) { /* a host with IPv6 */
        ck_assert(address_interface("::1", interface));
        ck_assert_str_eq(interface, "lo");
    }
    ck_assert(!address_interface("not-an-address", interface));
    ck_assert(address_is_loopback("127.3.2.1") && address_is_loopback("::1") &&
              address_is_loopback("localhost"));
    ck_assert(!address_is_loopback("10.0.0.1") && !address_is_loopback("localhost.example.org"));
}
END_TEST

/* In a network of the test's own: the loopback interface up, under a name. */
static void name_loopback(int fd, const char *from, const char *to)
{
    struct ifreq request = {0};
    strcpy(request.ifr_name, from);
    ck_assert_int_eq(ioctl(fd, SIOCSIFFLAGS, &request), 0); /* down */
    strcpy(request.ifr_newname, to);
    ck_assert_int_eq(ioctl(fd, SIOCSIFNAME, &request), 0);
    memset(&request, 0, sizeof request);
    strcpy(request.ifr_name, to);
    request.ifr_flags = IFF_UP;
    ck_assert_int_eq(ioctl(fd, SIOCSIFFLAGS, &request), 0);
}

START_TEST(an_interface_is_known_until_interfaces_change)
{
    char interface[INTERFACE_BYTES];
    if (unshare(CLONE_NEWNET) != 0) {
        return; /* not for us */
    }
    autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert(!address_interface("127.0.0.1", interface));
    name_loopback(fd, "lo", "loop0");
    for (int i = 0; i < 2; i++) {
        ck_assert(address_interface("127.0.0.1", interface));
        ck_assert_str_eq(interface, "loop0");
    }
    name_loopback(fd, "loop0", "loop1");
    ck_assert(address_interface("127.0.0.1", interface));
    ck_assert_str_eq(interface, "loop1");
    ck_assert(!address_interface("", interface));
    for (int i = 1; i <= 40; i++) { /* more than are known at a time */
        autofree char *address = xprintf("127.0.0.%d", i);
        ck_assert(address_interface(address, interface) && address_interface(address, interface));
        ck_assert_str_eq(interface, "loop1");
    }
}
END_TEST

Suite *agent_files_suite(void)
{
    Suite *suite = suite_create("agent-files");
    TCase *tcase = tcase_create("agent-files");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_record_is_read_whole);
    tcase_add_test(tcase, a_record_of_another_attempt_is_none);
    tcase_add_test(tcase, moments_behind_the_end_of_a_record_are_read);
    tcase_add_test(tcase, what_is_not_understood_behind_the_end_of_a_record_does_no_harm);
    tcase_add_test(tcase, a_record_without_its_end_is_none);
    tcase_add_test(tcase, what_is_put_into_a_launch_file_is_found_again);
    tcase_add_test(tcase, a_user_has_a_number_a_group_and_more_groups);
    tcase_add_test(tcase, a_launch_file_whose_writer_was_killed_is_none);
    tcase_add_test(tcase, pieces_end_with_a_line);
    tcase_add_test(tcase, an_unfinished_line_waits_until_it_is_old_or_final);
    tcase_add_test(tcase, characters_are_not_cut_in_two);
    tcase_add_test(tcase, files_are_laid_with_their_folders_and_modes);
    tcase_add_test(tcase, no_file_is_laid_outside_its_folder);
    tcase_add_test(tcase, trash_goes_in_steps_and_follows_no_link);
    tcase_add_test(tcase, trash_is_taken_whatever_an_earlier_agent_has_left_under_its_name);
    tcase_add_test(tcase, a_run_folder_without_a_shim_is_closed_to_those_that_come_late);
    tcase_add_test(tcase, a_run_folder_that_a_reboot_has_emptied_has_no_shim);
    tcase_add_test(tcase, a_cgroup_is_cleared_with_those_that_the_job_made_below);
    tcase_add_test(tcase, a_cgroup_in_which_something_is_left_is_not_cleared);
    tcase_add_test(tcase, launch_files_of_earlier_agents_are_read);
    tcase_add_test(tcase, exit_records_of_earlier_shims_are_read);
    tcase_add_test(tcase, the_runner_is_laid_whole_under_its_hash);
    tcase_add_test(tcase, a_program_that_was_altered_or_opened_to_others_is_written_again);
    tcase_add_test(tcase, other_runners_go_and_this_one_stays);
    tcase_add_test(tcase, the_way_to_this_host_is_the_loopback);
    tcase_add_test(tcase, an_interface_is_known_until_interfaces_change);
    suite_add_tcase(suite, tcase);
    return suite;
}
