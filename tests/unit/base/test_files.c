/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/base/files in a scratch folder, and of where a copy of this program finds its neighbours. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "tests/unit/base/base_suites.h"

static bool exists(const char *name)
{
    autofree char *path = scratch_path(name);
    struct stat status;
    return lstat(path, &status) == 0;
}

/* How many names the scratch folder itself holds. */
static int entries(void)
{
    autofree char *path = scratch_path(".");
    autonames struct file_names names;
    ck_assert(file_list(path, &names, NULL));
    return (int)names.count;
}

static void assert_content(const char *name, const char *expected)
{
    autofree char *path = scratch_path(name);
    autofree char *bytes = NULL;
    size_t length = 0;
    struct err err;
    ck_assert_msg(file_read(path, 100000, &bytes, &length, &err), "%s", err.text);
    ck_assert_uint_eq(length, strlen(expected));
    ck_assert_str_eq(bytes, expected);
}

/* --- reading and replacing ------------------------------------------------------------------------------ */

START_TEST(a_copy_has_the_bytes_and_the_mode_and_overwrites_nothing)
{
    autofree char *from = scratch_path("from");
    autofree char *to = scratch_path("to");
    autofree char *nowhere = scratch_path("not/there");
    struct stat status;
    struct err err;
    scratch_write("from", "some bytes");
    ck_assert_msg(file_copy(from, to, 0600, &err), "%s", err.text);
    assert_content("to", "some bytes");
    ck_assert_int_eq(stat(to, &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0600);
    scratch_write("from", "other");
    ck_assert(!file_copy(from, to, 0600, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "File exists"));
    assert_content("to", "some bytes");
    ck_assert(!file_copy(nowhere, to, 0600, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "not/there"));
    ck_assert(!file_sync_folder(nowhere, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "not/there"));
}
END_TEST

START_TEST(a_file_is_read_whole_and_terminated)
{
    scratch_write("empty", "");
    assert_content("empty", "");
    char content[20001];
    memset(content, 'x', sizeof content - 1);
    content[sizeof content - 1] = '\0';
    scratch_write("long", content);
    assert_content("long", content);
}
END_TEST

START_TEST(a_file_of_exactly_the_limit_is_read_and_one_byte_more_is_refused)
{
    scratch_write("four", "abcd");
    autofree char *path = scratch_path("four");
    autofree char *bytes = NULL;
    struct err err;
    ck_assert(file_read(path, 4, &bytes, NULL, &err));
    ck_assert_str_eq(bytes, "abcd");
    char *untouched = NULL;
    ck_assert(!file_read(path, 3, &untouched, NULL, &err));
    ck_assert_int_eq(err.code, ERR_TOO_LARGE);
    ck_assert_ptr_null(untouched);
}
END_TEST

START_TEST(files_without_a_size_of_their_own_are_read)
{
    autofree char *bytes = NULL;
    size_t length = 0;
    ck_assert(file_read("/proc/self/stat", 4096, &bytes, &length, NULL));
    ck_assert_uint_gt(length, 0);
}
END_TEST

START_TEST(what_cannot_be_read_is_named)
{
    struct err err;
    char *bytes = NULL;
    ck_assert(!file_read("/nonexistent/x", 10, &bytes, NULL, &err));
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_str_eq(err.text, "cannot open /nonexistent/x: No such file or directory");
    ck_assert(!file_read("/proc", 10, &bytes, NULL, &err));
    ck_assert_str_eq(err.text, "cannot read /proc: Is a directory");
}
END_TEST

START_TEST(replacing_a_file_sets_content_and_mode_and_leaves_nothing_beside_it)
{
    autofree char *path = scratch_path("token");
    struct err err;
    umask(0077);
    ck_assert(file_replace(path, "one", 3, 0644, &err));
    assert_content("token", "one");
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 07777, 0644);
    ck_assert(file_replace(path, "", 0, 0600, &err));
    assert_content("token", "");
    ck_assert_int_eq(entries(), 1);
}
END_TEST

START_TEST(a_file_that_cannot_be_replaced_stays_and_nothing_is_left_beside_it)
{
    scratch_write("folder/x", "");
    autofree char *path = scratch_path("folder");
    struct err err;
    ck_assert(!file_replace(path, "one", 3, 0600, &err));
    ck_assert_int_eq(err.code, ERR_IO);
    ck_assert(exists("folder/x"));
    ck_assert_int_eq(entries(), 1);
    autofree char *nowhere = scratch_path("none/x");
    ck_assert(!file_replace(nowhere, "one", 3, 0600, &err));
}
END_TEST

START_TEST(a_relative_name_is_replaced_in_the_working_folder)
{
    autofree char *path = scratch_path(".");
    ck_assert_int_eq(chdir(path), 0);
    ck_assert(file_replace("plain", "x", 1, 0600, NULL));
    assert_content("plain", "x");
    ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

/* --- folders -------------------------------------------------------------------------------------------- */

START_TEST(folders_are_made_on_the_way_and_again_without_harm)
{
    autofree char *path = scratch_path("a//b/c/");
    struct err err;
    ck_assert_msg(file_make_directories(path, 0700, &err), "%s", err.text);
    ck_assert_msg(file_make_directories(path, 0700, &err), "%s", err.text);
    ck_assert(exists("a/b/c"));
    ck_assert(file_make_directories("/", 0700, &err));
}
END_TEST

START_TEST(a_file_in_the_way_of_a_folder_is_refused)
{
    scratch_write("file", "");
    autofree char *path = scratch_path("file");
    autofree char *below = scratch_path("file/x");
    struct err err;
    ck_assert(!file_make_directories(path, 0700, &err));
    ck_assert_int_eq(errno, ENOTDIR);
    ck_assert(!file_make_directories(below, 0700, &err));
    ck_assert(!file_make_directories("", 0700, &err));
}
END_TEST

START_TEST(a_folder_is_listed_whole_or_not_at_all)
{
    autofree char *folder = scratch_path("list"), *file = scratch_path("list/7"), *none = scratch_path("no");
    autonames struct file_names names = {0};
    bool seen[50] = {false};
    struct err err;
    for (int i = 0; i < 50; i++) {
        autofree char *name = xprintf("list/%d", i);
        scratch_write(name, "");
    }
    ck_assert_msg(file_list(folder, &names, &err), "%s", err.text);
    ck_assert_uint_eq(names.count, 50);
    for (size_t i = 0; i < names.count; i++) {
        int64_t number;
        ck_assert(text_to_int(names.items[i], 0, 49, &number));
        ck_assert(!seen[number]);
        seen[number] = true;
    }
    file_names_finish(&names);
    ck_assert(!file_list(file, &names, &err));
    ck_assert_ptr_nonnull(strstr(err.text, file));
    ck_assert(!file_list(none, &names, &err));
    ck_assert_uint_eq(names.count, 0);
}
END_TEST

static void remove_scratch(const char *name)
{
    autofree char *path = scratch_path(name);
    struct err err;
    ck_assert_msg(file_remove_tree(path, &err), "%s", err.text);
    ck_assert(!exists(name));
}

START_TEST(a_tree_is_removed_and_what_is_not_there_is_no_error)
{
    scratch_write("tree/a/b/c", "x");
    scratch_write("tree/a/d", "x");
    scratch_write("tree/e", "x");
    remove_scratch("tree");
    remove_scratch("tree");
    remove_scratch("no/such/path");
    scratch_write("file", "x");
    remove_scratch("file");
}
END_TEST

START_TEST(removing_a_tree_follows_no_link)
{
    scratch_write("kept/x", "x");
    scratch_write("tree/y", "x");
    autofree char *kept = scratch_path("kept");
    autofree char *inner = scratch_path("tree/link");
    autofree char *outer = scratch_path("outer");
    ck_assert_int_eq(symlink(kept, inner), 0);
    ck_assert_int_eq(symlink(kept, outer), 0);
    remove_scratch("tree");
    remove_scratch("outer");
    ck_assert(exists("kept/x"));
}
END_TEST

START_TEST(a_tree_deeper_than_open_files_allow_is_removed)
{
    autofree char *path = scratch_path("deep");
    ck_assert_int_eq(mkdir(path, 0700), 0);
    scratch_write("deep/.lifted-0/taken", "x");
    const struct rlimit few = {.rlim_cur = 100, .rlim_max = 100};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    autoclose int at = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 500; i++) {
        ck_assert_int_eq(mkdirat(at, "below", 0700), 0);
        ck_assert_int_eq(mkdirat(at, "beside", 0700), 0);
        int next = openat(at, "below", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ck_assert_int_ge(next, 0);
        close(at);
        at = next;
    }
    remove_scratch("deep");
}
END_TEST

START_TEST(removing_a_tree_leaves_no_descriptor_open)
{
    int before = dup(0);
    close(before);
    scratch_write("tree/a/b/c", "x");
    remove_scratch("tree");
    int after = dup(0);
    close(after);
    ck_assert_int_eq(before, after);
}
END_TEST

/* Root may remove everything, so a test that runs as root goes on as nobody, who owns the scratch folder
 * then. */
static bool leave_root(void)
{
    if (geteuid() != 0) {
        return false;
    }
    autofree char *path = scratch_path(".");
    ck_assert_int_eq(chown(path, 65534, 65534), 0);
    ck_assert_int_eq(seteuid(65534), 0);
    return true;
}

static void return_to_root(void)
{
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(prctl(PR_SET_DUMPABLE, 1), 0); /* which seteuid took, and leak checkers need */
}

START_TEST(what_cannot_be_removed_is_named_and_the_rest_is_removed)
{
    bool was_root = leave_root();
    scratch_write("tree/a/stuck", "x");
    scratch_write("tree/b/loose", "x");
    autofree char *locked = scratch_path("tree/a");
    ck_assert_int_eq(chmod(locked, 0500), 0);
    autofree char *path = scratch_path("tree");
    struct err err;
    ck_assert(!file_remove_tree(path, &err));
    autofree char *expected = xprintf("cannot remove stuck below %s: Permission denied", path);
    ck_assert_str_eq(err.text, expected);
    ck_assert(exists("tree/a/stuck"));
    ck_assert(!exists("tree/b"));
    ck_assert_int_eq(chmod(locked, 0700), 0);
    ck_assert(file_remove_tree(path, NULL));
    if (was_root) {
        return_to_root();
    }
}
END_TEST

/* --- our programs and the host -------------------------------------------------------------------------- */

/* Copies this program to a place in the scratch folder. */
static void plant(const char *name)
{
    autofree char *bytes = NULL;
    size_t length = 0;
    ck_assert(file_read("/proc/self/exe", 256UL * 1024 * 1024, &bytes, &length, NULL));
    scratch_write(name, "");
    autofree char *path = scratch_path(name);
    ck_assert(file_replace(path, bytes, length, 0700, NULL));
}

/* Runs the planted program with --find and gives the first line that it prints, which the caller frees. */
static char *ask(const char *planted, const char *name)
{
    autofree char *path = scratch_path(planted);
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl(path, path, "--find", name, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    char answer[512] = "";
    ssize_t got = read(ends[0], answer, sizeof answer - 1);
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    return xstrndup(answer, got > 0 ? strcspn(answer, "\n") : 0);
}

/* A program at `from` finds the one at `to`. */
static void assert_finds(const char *from, const char *to)
{
    plant(from);
    plant(to);
    autofree char *answer = ask(from, strrchr(to, '/') + 1);
    autofree char *found = realpath(answer, NULL);
    autofree char *planted = scratch_path(to);
    autofree char *expected = realpath(planted, NULL);
    ck_assert_msg(found != NULL && strcmp(found, expected) == 0, "%s from %s: %s", to, from, answer);
    remove_scratch("build");
}

START_TEST(programs_find_each_other_in_the_build_tree)
{
    unsetenv("GPUCTL_LIBEXEC");
    assert_finds("build/daemon/gpuctld", "build/agent/gpuagent");
    assert_finds("build/agent/gpuagent", "build/agent/gpushim");
    assert_finds("build/agent/gpuagent", "build/client/cli/gpuctl");
    assert_finds("build/client/cli/gpuctl", "build/daemon/gpuctld");
    assert_finds("build/client/cli/gpuctl", "build/agent/gpuagent");
    assert_finds("build/tests/e2e/drive", "build/client/cli/gpuctl");
}
END_TEST

START_TEST(programs_find_each_other_after_they_are_installed)
{
    unsetenv("GPUCTL_LIBEXEC");
    assert_finds("build/bin/gpuctl", "build/bin/gpuctld");
    assert_finds("build/bin/gpuctl", "build/libexec/gpuctl/gpushim");
    assert_finds("build/libexec/gpuctl/gpuagent", "build/bin/gpuctl");
}
END_TEST

START_TEST(the_folder_in_the_environment_goes_first)
{
    scratch_write("build/libexec/gpushim", "");
    plant("build/gpuagent");
    plant("build/gpushim");
    plant("build/libexec/gpushim");
    autofree char *folder = scratch_path("build/libexec");
    setenv("GPUCTL_LIBEXEC", folder, 1);
    autofree char *answer = ask("build/gpuagent", "gpushim");
    autofree char *expected = scratch_path("build/libexec/gpushim");
    ck_assert_str_eq(answer, expected);
}
END_TEST

START_TEST(a_program_that_is_nowhere_is_refused_with_the_places_tried)
{
    setenv("GPUCTL_LIBEXEC", "/nonexistent/libexec", 1);
    struct err err;
    ck_assert_ptr_null(file_find_program("gpunothing", &err));
    ck_assert_int_eq(err.code, ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "gpunothing in /nonexistent/libexec, "));
    ck_assert_ptr_nonnull(strstr(err.text, "../agent/"));
    ck_assert_ptr_nonnull(strstr(err.hint, "GPUCTL_LIBEXEC"));
}
END_TEST

START_TEST(what_is_no_program_is_not_found)
{
    scratch_write("gpufolder/x", "");
    scratch_write("gpufile", "");
    autofree char *folder = scratch_path(".");
    setenv("GPUCTL_LIBEXEC", folder, 1);
    ck_assert_ptr_null(file_find_program("gpufolder", NULL));
    ck_assert_ptr_null(file_find_program("gpufile", NULL));
}
END_TEST

START_TEST(the_host_has_one_id_and_one_boot_id)
{
    char id[65];
    char again[65];
    char boot_id[37];
    file_host_id(id);
    file_host_id(again);
    file_boot_id(boot_id);
    ck_assert_uint_eq(strspn(id, "0123456789abcdef"), 64);
    ck_assert_str_eq(id, again);
    ck_assert_uint_eq(strlen(boot_id), 36);
}
END_TEST

static TCase *file_tests(void)
{
    TCase *cases = tcase_create("files");
    tcase_add_checked_fixture(cases, scratch_open, scratch_close);
    tcase_add_test(cases, a_copy_has_the_bytes_and_the_mode_and_overwrites_nothing);
    tcase_add_test(cases, a_file_is_read_whole_and_terminated);
    tcase_add_test(cases, a_file_of_exactly_the_limit_is_read_and_one_byte_more_is_refused);
    tcase_add_test(cases, files_without_a_size_of_their_own_are_read);
    tcase_add_test(cases, what_cannot_be_read_is_named);
    tcase_add_test(cases, replacing_a_file_sets_content_and_mode_and_leaves_nothing_beside_it);
    tcase_add_test(cases, a_file_that_cannot_be_replaced_stays_and_nothing_is_left_beside_it);
    tcase_add_test(cases, a_relative_name_is_replaced_in_the_working_folder);
    return cases;
}

static TCase *folder_tests(void)
{
    TCase *cases = tcase_create("folders");
    tcase_add_checked_fixture(cases, scratch_open, scratch_close);
    tcase_add_test(cases, folders_are_made_on_the_way_and_again_without_harm);
    tcase_add_test(cases, a_file_in_the_way_of_a_folder_is_refused);
    tcase_add_test(cases, a_folder_is_listed_whole_or_not_at_all);
    tcase_add_test(cases, a_tree_is_removed_and_what_is_not_there_is_no_error);
    tcase_add_test(cases, removing_a_tree_follows_no_link);
    tcase_add_test(cases, a_tree_deeper_than_open_files_allow_is_removed);
    tcase_add_test(cases, removing_a_tree_leaves_no_descriptor_open);
    tcase_add_test(cases, what_cannot_be_removed_is_named_and_the_rest_is_removed);
    return cases;
}

static TCase *program_tests(void)
{
    TCase *cases = tcase_create("programs");
    tcase_add_checked_fixture(cases, scratch_open, scratch_close);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, programs_find_each_other_in_the_build_tree);
    tcase_add_test(cases, programs_find_each_other_after_they_are_installed);
    tcase_add_test(cases, the_folder_in_the_environment_goes_first);
    tcase_add_test(cases, a_program_that_is_nowhere_is_refused_with_the_places_tried);
    tcase_add_test(cases, what_is_no_program_is_not_found);
    tcase_add_test(cases, the_host_has_one_id_and_one_boot_id);
    return cases;
}

Suite *files_suite(void)
{
    Suite *suite = suite_create("files");
    suite_add_tcase(suite, file_tests());
    suite_add_tcase(suite, folder_tests());
    suite_add_tcase(suite, program_tests());
    return suite;
}
