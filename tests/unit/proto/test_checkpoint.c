/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/wire/files/checkpoint: manifests are read as they were written, joined, and refused when
 * anything in them does not agree. */
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/wire/files/checkpoint.h"
#include "tests/unit/proto/proto_suites.h"

static void add(struct checkpoint_manifest *manifest, const char *path, uint32_t size)
{
    const struct checkpoint_piece piece = {.hash = {(uint8_t)size}, .size = size};
    manifest_add_file(manifest,
                      &(struct checkpoint_file){.path = path, .modified_ms = 5, .executable = size == 7});
    manifest_add_piece(manifest, &piece);
}

START_TEST(a_manifest_is_read_as_it_was_written)
{
    struct checkpoint_manifest given = {.left_files = 2}, read;
    autotext struct text bytes = {0};
    struct err err;
    add(&given, "a/b c", 7);
    add(&given, "empty", 300);
    manifest_encode(&given, &bytes);
    ck_assert(manifest_decode(bytes.bytes, bytes.length, &read, &err));
    ck_assert_int_eq(read.file_count, 2);
    ck_assert_int_eq(read.bytes, 307);
    ck_assert_int_eq(read.left_files, 2);
    ck_assert_str_eq(read.files[0].path, "a/b c");
    ck_assert(read.files[0].executable && !read.files[1].executable);
    ck_assert_int_eq(read.pieces[read.files[1].first].size, 300);
    manifest_finish(&read);
    for (size_t length = 0; length < bytes.length; length++) {
        ck_assert(!manifest_decode(bytes.bytes, length, &read, &err));
        ck_assert_int_eq(err.code, ERR_MALFORMED);
    }
    manifest_finish(&given);
}
END_TEST

START_TEST(of_a_path_that_two_nodes_have_the_first_ones_file_counts)
{
    struct checkpoint_manifest first = {0}, second = {0}, joined;
    add(&first, "both", 1);
    add(&first, "c", 2);
    add(&second, "a", 3);
    add(&second, "both", 4);
    manifest_join(&first, &second, &joined);
    ck_assert_int_eq(joined.file_count, 3);
    ck_assert_int_eq(joined.bytes, 6);
    ck_assert_str_eq(joined.files[1].path, "both");
    ck_assert_int_eq(joined.files[1].size, 1);
    manifest_finish(&first);
    manifest_finish(&second);
    manifest_finish(&joined);
}
END_TEST

static bool reads(const char *head, const char *path)
{
    struct checkpoint_manifest read;
    autofree char *text = xprintf("%s0 5 - 0 %s", head, path);
    bool good = manifest_decode(text, strlen(text) + 1, &read, NULL);
    if (good) {
        manifest_finish(&read);
    }
    return good;
}

START_TEST(no_path_leads_out_of_the_folder)
{
    static const char head[] = "gpuctl-checkpoint-1 1 0 0 0\n";
    ck_assert(reads(head, "a/b"));
    ck_assert(!reads(head, "../b"));
    ck_assert(!reads(head, "/b"));
    ck_assert(!reads(head, "a//b"));
    ck_assert(!reads("gpuctl-checkpoint-1 1 1 0 0\n", "a")); /* pieces */
    ck_assert(!reads("gpuctl-checkpoint-1 1 0 1 0\n", "a")); /* bytes */
    ck_assert(!reads("gpuctl-checkpoint-2 1 0 0 0\n", "a"));
    ck_assert(!reads("gpuctl-checkpoint-1 99999 0 0 0\n", "a"));
}
END_TEST

Suite *checkpoint_suite(void)
{
    Suite *suite = suite_create("checkpoint");
    TCase *tests = tcase_create("checkpoint");
    tcase_add_test(tests, a_manifest_is_read_as_it_was_written);
    tcase_add_test(tests, of_a_path_that_two_nodes_have_the_first_ones_file_counts);
    tcase_add_test(tests, no_path_leads_out_of_the_folder);
    suite_add_tcase(suite, tests);
    return suite;
}
