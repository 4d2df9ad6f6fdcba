/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/output/kept_tree: a folder as a stream, from which a reader gets the same files. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/output/kept_tree.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/wire/files/kept_files.h"
#include "tests/unit/agent/agent_rig.h"
#include "tests/unit/agent/agent_suites.h"

static struct kept_tree *tree;
static struct kept_head head;
static struct kept_file *files;
static struct text stream;
static char *names; /* what the files point into */

static void teardown(void)
{
    kept_tree_close(tree);
    tree = NULL;
    free(files);
    files = NULL;
    free(names);
    names = NULL;
    text_finish(&stream);
    rig_teardown();
}

static void open_tree(int64_t limit)
{
    autofree char *folder = rig_path("5");
    tree = kept_tree_open(folder, "0.files", limit);
}

/* Reads the stream in pieces of that size. */
static void read_stream(size_t piece)
{
    struct err err;
    char buffer[4096];
    size_t got;
    ck_assert_ptr_nonnull(tree);
    text_clear(&stream);
    while ((got = kept_tree_read(tree, (int64_t)stream.length, buffer, piece)) > 0) {
        text_append_bytes(&stream, buffer, got);
    }
    ck_assert_int_eq((int64_t)stream.length, kept_tree_bytes(tree));
    ck_assert(kept_head_decode(stream.bytes, &head, &err));
    ck_assert_int_eq(head.bytes, (int64_t)stream.length);
    free(files);
    free(names);
    names = xalloc((size_t)head.index_bytes + 1);
    memcpy(names, stream.bytes + KEPT_HEAD_BYTES, (size_t)head.index_bytes);
    ck_assert_msg(kept_index_decode(names, &head, &files, &err), "%s", err.text);
}

static void assert_file(size_t index, const char *path, const char *content)
{
    ck_assert_str_eq(files[index].path, path);
    ck_assert_int_eq(files[index].size, (int64_t)strlen(content));
    ck_assert_mem_eq(stream.bytes + files[index].offset, content, strlen(content));
}

START_TEST(the_stream_has_all_files_sorted_by_path_however_it_is_read)
{
    static const size_t pieces[] = {1, 7, 4096};
    rig_write_text("5/0.files/b/c/deep", "three");
    rig_write_text("5/0.files/a", "one");
    rig_write_text("5/0.files/empty", "");
    rig_write_text("5/0.files/b.txt", "two");
    rig_write_text("5/0.files/z", "last");
    open_tree(GIB);
    for (size_t i = 0; i < 3; i++) {
        read_stream(pieces[i]);
        ck_assert_int_eq(head.count, 5);
        ck_assert_int_eq(head.left_files, 0);
        assert_file(0, "a", "one");
        assert_file(1, "b.txt", "two");
        assert_file(2, "b/c/deep", "three");
        assert_file(3, "empty", "");
        assert_file(4, "z", "last");
    }
    ck_assert_uint_eq(kept_tree_read(tree, kept_tree_bytes(tree), (char[1]){0}, 1), 0);
}
END_TEST

START_TEST(no_link_is_followed_and_no_second_name_is_read)
{
    autofree char *secret = rig_path("secret"), *link_path = rig_path("5/0.files/link"),
                  *hard = rig_path("5/0.files/hard"), *folder = rig_path("5/0.files/folder"),
                  *pipe = rig_path("5/0.files/pipe");
    rig_write_text("secret", "secret");
    rig_write_text("5/0.files/plain", "plain");
    rig_write_text("5/0.files/sub\nline", "x");
    ck_assert_int_eq(symlink(secret, link_path), 0);
    ck_assert_int_eq(symlink("/etc", folder), 0);
    ck_assert_int_eq(linkat(AT_FDCWD, secret, AT_FDCWD, hard, 0), 0);
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    open_tree(GIB);
    read_stream(4096);
    ck_assert_int_eq(head.count, 1);
    assert_file(0, "plain", "plain");
    ck_assert_int_eq(head.left_files, 5);
    ck_assert_ptr_null(memmem(stream.bytes, stream.length, "secret", 6));
}
END_TEST

START_TEST(a_file_that_is_changed_under_it_is_read_as_zeros)
{
    autofree char *secret = rig_path("secret"), *path = rig_path("5/0.files/a/plain"),
                  *folder = rig_path("5/0.files/a"), *aside = rig_path("aside"), *other = rig_path("other");
    static const char zeros[5];
    rig_write_text("secret", "secret");
    rig_write_text("other/plain", "other");
    rig_write_text("5/0.files/a/plain", "plain");
    open_tree(GIB);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink(secret, path), 0);
    read_stream(4096);
    ck_assert_mem_eq(stream.bytes + files[0].offset, zeros, 5);
    ck_assert_int_eq(rename(folder, aside), 0);
    ck_assert_int_eq(symlink(other, folder), 0); /* on the way to it */
    read_stream(4096);
    ck_assert_mem_eq(stream.bytes + files[0].offset, zeros, 5);
}
END_TEST

START_TEST(what_is_above_the_limit_is_left_out_and_what_fits_is_not)
{
    rig_write_text("5/0.files/a", "12345");
    rig_write_text("5/0.files/b", "123456");
    rig_write_text("5/0.files/c", "12345");
    open_tree(10);
    read_stream(4096);
    ck_assert_int_eq(head.count, 2);
    assert_file(0, "a", "12345");
    assert_file(1, "c", "12345");
    ck_assert_int_eq(head.left_files, 1);
    ck_assert_int_eq(head.left_bytes, 6);
}
END_TEST

START_TEST(more_files_than_a_rank_may_keep_are_left_out)
{
    char name[64];
    for (int i = 0; i < LIMIT_KEPT_FILES + 3; i++) {
        snprintf(name, sizeof name, "5/0.files/%05d", i);
        rig_write_text(name, "x");
    }
    open_tree(GIB);
    read_stream(4096);
    ck_assert_int_eq(head.count, LIMIT_KEPT_FILES);
    ck_assert_int_eq(head.left_files, 3);
}
END_TEST

START_TEST(a_rank_that_keeps_nothing_has_no_stream)
{
    autofree char *folder = rig_path("5"), *kept = rig_path("5/0.files"),
                  *inner = rig_path("5/0.files/inner");
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    open_tree(GIB);
    ck_assert_ptr_null(tree);
    ck_assert_int_eq(mkdir(kept, 0700), 0);
    ck_assert_int_eq(mkdir(inner, 0700), 0);
    open_tree(GIB);
    ck_assert_ptr_null(tree);
    ck_assert_int_eq(rmdir(inner), 0);
    ck_assert_int_eq(rmdir(kept), 0);
    ck_assert_int_eq(symlink("/etc", kept), 0);
    open_tree(GIB);
    ck_assert_ptr_null(tree);
}
END_TEST

Suite *kept_tree_suite(void)
{
    Suite *suite = suite_create("kept tree");
    TCase *tests = tcase_create("kept tree");
    tcase_add_checked_fixture(tests, rig_setup, teardown);
    tcase_add_test(tests, the_stream_has_all_files_sorted_by_path_however_it_is_read);
    tcase_add_test(tests, no_link_is_followed_and_no_second_name_is_read);
    tcase_add_test(tests, a_file_that_is_changed_under_it_is_read_as_zeros);
    tcase_add_test(tests, what_is_above_the_limit_is_left_out_and_what_fits_is_not);
    tcase_add_test(tests, more_files_than_a_rank_may_keep_are_left_out);
    tcase_add_test(tests, a_rank_that_keeps_nothing_has_no_stream);
    suite_add_tcase(suite, tests);
    return suite;
}
