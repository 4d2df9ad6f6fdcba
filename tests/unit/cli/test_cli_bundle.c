/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli: which files of a folder travel, and the archive that they become. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/bundle/bundle.h"
#include "client/cli/bundle/tar.h"
#include "client/cli/bundle/tree.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_client.h"
#include "tests/unit/cli/cli_suites.h"

static void write_file(const char *name, const char *content)
{
    autofree char *path = xprintf("%s/%s", cli_folder, name);
    autofree char *folder = file_folder_of(path);
    ck_assert(file_make_directories(folder, 0755, NULL));
    cli_write_file(name, content);
}

static void make_link(const char *target, const char *name)
{
    autofree char *path = xprintf("%s/%s", cli_folder, name);
    ck_assert_int_eq(symlink(target, path), 0);
}

/* The paths that are taken, in order, each with a space. */
static void assert_taken(const char *expected, struct notes *notes)
{
    autotree struct tree tree = {0};
    autotext struct text got = {0};
    struct err err;
    ck_assert_msg(tree_read(cli_folder, &tree, notes, &err), "%s", err.text);
    for (size_t i = 0; i < tree.count; i++) {
        text_printf(&got, "%s%s ", tree.entries[i].path, S_ISDIR(tree.entries[i].mode) ? "/" : "");
    }
    ck_assert_str_eq(got.length > 0 ? got.bytes : "", expected);
}

static void pack(char ret_hex[HASH_HEX + 1])
{
    autotree struct tree tree = {0};
    autofclose FILE *file = tmpfile();
    struct notes notes = {0};
    struct err err;
    size_t length;
    ck_assert(tree_read(cli_folder, &tree, &notes, &err));
    ck_assert_msg(tar_pack(cli_folder, &tree, file, ret_hex, &length, &err), "%s", err.text);
    ck_assert_int_eq(length % 512, 0);
    ck_assert_int_eq(ftell(file), (long)length);
    notes_finish(&notes);
}

/* --- the choice --- */

START_TEST(the_nearest_gitignore_decides_and_a_folder_left_out_stays_out)
{
    struct notes notes = {0};
    write_file(".gitignore", "*.log\nout/\n");
    write_file("a.log", "");
    write_file("out/.gitignore", "!*\n");
    write_file("out/x", "");
    write_file("in/.gitignore", "!keep.log\n/b\n");
    write_file("in/keep.log", "");
    write_file("in/other.log", "");
    write_file("in/b", "");
    write_file("in/deep/b", "");
    assert_taken(".gitignore in/ in/.gitignore in/deep/ in/deep/b in/keep.log ", &notes);
    ck_assert_uint_eq(notes.count, 0);
}
END_TEST

START_TEST(what_is_made_on_each_machine_never_travels)
{
    struct notes notes = {0};
    write_file(".gitignore", "!.git\n!__pycache__\n!node_modules\n!env\n");
    write_file(".git/config", "");
    write_file("sub/.git", "gitdir: elsewhere");
    write_file("sub/__pycache__/a.pyc", "");
    write_file("node_modules/a.js", "");
    write_file(".ipynb_checkpoints/a", "");
    write_file("env/pyvenv.cfg", "");
    write_file("env/bin/python", "");
    write_file("a.py", "");
    assert_taken(".gitignore a.py sub/ ", &notes);
}
END_TEST

START_TEST(links_stay_links_and_those_that_lead_outside_are_left_out_with_a_note)
{
    struct notes notes = {0};
    write_file("in/a", "");
    make_link("in/a", "good");
    make_link("../in/./a", "in/up");
    make_link("nothing", "dangling");
    make_link("../other", "out");
    make_link("../../x", "in/out");
    make_link("/etc/passwd", "root");
    assert_taken("dangling good in/ in/a in/up ", &notes);
    ck_assert_uint_eq(notes.count, 3);
    ck_assert_str_eq(notes.items[0], "the link in/out leads outside, to ../../x; it is left out");
    notes_finish(&notes);
}
END_TEST

START_TEST(what_is_no_file_is_left_out_with_a_note)
{
    struct notes notes = {0};
    autofree char *pipe_path = xprintf("%s/pipe", cli_folder);
    ck_assert_int_eq(mkfifo(pipe_path, 0600), 0);
    assert_taken("", &notes);
    ck_assert_uint_eq(notes.count, 1);
    ck_assert_str_eq(notes.items[0], "pipe is no regular file; it is left out");
    notes_finish(&notes);
}
END_TEST

/* --- too large --- */

static void assert_refused(const char *sum)
{
    autotree struct tree tree = {0};
    struct notes notes = {0};
    struct err err;
    ck_assert(!tree_read(cli_folder, &tree, &notes, &err));
    ck_assert_int_eq(err.code, ERR_TOO_LARGE);
    autofree char *text = xprintf("the folder %s has %s", cli_folder, sum);
    ck_assert_str_eq(err.text, text);
    ck_assert_ptr_nonnull(strstr(err.hint, ".gitignore"));
}

START_TEST(a_folder_with_too_many_bytes_is_refused_by_what_is_largest)
{
    write_file("data/large.bin", "");
    write_file("code/a.py", "print(1)");
    autofree char *path = xprintf("%s/data/large.bin", cli_folder);
    ck_assert_int_eq(truncate(path, CLIENT_BUNDLE_BYTES), 0);
    assert_refused("256.0 MiB, the limit is 256.0 MiB; the largest in it: data (256.0 MiB), code (8 B)");
    write_file(".gitignore", "data\n");
    struct notes notes = {0};
    assert_taken(".gitignore code/ code/a.py ", &notes);
}
END_TEST

START_TEST(a_folder_with_too_many_files_is_refused_by_what_has_most)
{
    write_file("data/first", "");
    write_file("a.py", "");
    for (int i = 0; i < CLIENT_BUNDLE_FILES; i++) {
        autofree char *path = xprintf("%s/data/%d", cli_folder, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ck_assert_int_ge(fd, 0);
        close(fd);
    }
    assert_refused(
        "20002 files, the limit is 20000; the largest in it: data (0 B in 20001 files), a.py (0 B in "
        "1 file)");
}
END_TEST

/* --- the archive --- */

START_TEST(an_unchanged_folder_gives_an_unchanged_hash)
{
    char first[HASH_HEX + 1], second[HASH_HEX + 1], third[HASH_HEX + 1];
    write_file("a.py", "print(1)\n");
    write_file("in/b.py", "print(2)\n");
    pack(first);
    write_file("in/__pycache__/b.pyc", "made by running it");
    pack(second);
    ck_assert_str_eq(first, second);
    write_file("a.py", "print(3)\n");
    pack(third);
    ck_assert_str_ne(first, third);
}
END_TEST

START_TEST(a_file_that_gets_shorter_meanwhile_is_an_error)
{
    char hex[HASH_HEX + 1];
    autotree struct tree tree = {0};
    autofclose FILE *file = tmpfile();
    struct notes notes = {0};
    struct err err;
    size_t length;
    write_file("a", "12345");
    ck_assert(tree_read(cli_folder, &tree, &notes, &err));
    write_file("a", "1");
    ck_assert(!tar_pack(cli_folder, &tree, file, hex, &length, &err));
    ck_assert_str_eq(err.text, "a became shorter while it was read");
    ck_assert_str_eq(err.hint, "try again when nothing writes there");
}
END_TEST

/* --- the field --- */

static bool fill(const char *python_path, struct err *err)
{
    autojson json_t *spec =
        json_pack("{s:{s:s,s:[s]}}", "bundle", "source", cli_folder, "python_path", python_path);
    bool good = bundle_fill(NULL, spec, "bundle", NULL, err);
    if (good) {
        autofree char *text = json_text(json_object_get(json_object_get(spec, "bundle"), "python_path"));
        ck_assert_str_eq(text, "[\"in/src\"]");
    }
    return good;
}

START_TEST(a_python_path_is_a_folder_inside_of_the_bundle)
{
    struct err err;
    write_file("in/src/a.py", "");
    write_file("a.py", "");
    ck_assert(fill("in/src", &err));
    ck_assert(fill("./in/src/", &err));
    static const char *const wrong[] = {"../src", "/etc", "a.py", "none", "in/../in"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!fill(wrong[i], &err), "%s", wrong[i]);
        ck_assert_str_eq(err.field, "bundle.python_path");
    }
}
END_TEST

START_TEST(a_source_must_be_a_folder)
{
    struct err err;
    write_file("file", "");
    autofree char *path = xprintf("%s/file", cli_folder);
    autojson json_t *spec = json_pack("{s:{s:s}}", "bundle", "source", path);
    ck_assert(!bundle_fill(NULL, spec, "bundle", NULL, &err));
    ck_assert_str_eq(err.field, "bundle");
    ck_assert_ptr_nonnull(strstr(err.text, "Not a directory"));
}
END_TEST

Suite *cli_bundle_suite(void)
{
    Suite *suite = suite_create("cli bundle");
    TCase *tests = tcase_create("bundle");
    tcase_add_checked_fixture(tests, cli_make_folder, cli_remove_folder);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_nearest_gitignore_decides_and_a_folder_left_out_stays_out);
    tcase_add_test(tests, what_is_made_on_each_machine_never_travels);
    tcase_add_test(tests, links_stay_links_and_those_that_lead_outside_are_left_out_with_a_note);
    tcase_add_test(tests, what_is_no_file_is_left_out_with_a_note);
    tcase_add_test(tests, a_folder_with_too_many_bytes_is_refused_by_what_is_largest);
    tcase_add_test(tests, a_folder_with_too_many_files_is_refused_by_what_has_most);
    tcase_add_test(tests, an_unchanged_folder_gives_an_unchanged_hash);
    tcase_add_test(tests, a_file_that_gets_shorter_meanwhile_is_an_error);
    tcase_add_test(tests, a_python_path_is_a_folder_inside_of_the_bundle);
    tcase_add_test(tests, a_source_must_be_a_folder);
    suite_add_tcase(suite, tests);
    return suite;
}
