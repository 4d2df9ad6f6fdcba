/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/wire/files/kept_files: what a node sends of the files that a rank keeps, and nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "proto/wire/files/kept_files.h"
#include "tests/unit/proto/proto_suites.h"

/* Reads an index of so many files, in a stream with so many bytes of content. */
static bool reads(const char *index, size_t length, int64_t count, int64_t content)
{
    struct kept_head head = {.index_bytes = (int64_t)length, .count = count};
    head.bytes = KEPT_HEAD_BYTES + head.index_bytes + content;
    autofree char *own = xalloc(length + 1);
    autofree struct kept_file *files = NULL;
    struct err err = {0};
    memcpy(own, index, length);
    bool read = kept_index_decode(own, &head, &files, &err);
    ck_assert(read || err.code == ERR_IO);
    return read;
}

#define READS(index, count, content) reads(index, sizeof(index) - 1, count, content)

START_TEST(what_is_written_is_read_again)
{
    const struct kept_file given[] = {{.path = "a/b c", .size = 7, .modified_ms = 1700000000123},
                                      {.path = "empty", .size = 0, .modified_ms = 0},
                                      {.path = "run.sh", .size = 2, .modified_ms = 5, .executable = true}};
    autotext struct text index = {0};
    char bytes[KEPT_HEAD_BYTES];
    struct kept_head head = {.count = 3, .left_files = 2, .left_bytes = 9}, read;
    struct err err;
    for (size_t i = 0; i < 3; i++) {
        kept_entry_append(&index, &given[i]);
    }
    head.index_bytes = (int64_t)index.length;
    head.bytes = KEPT_HEAD_BYTES + head.index_bytes + 9;
    kept_head_encode(&head, bytes);
    ck_assert(kept_head_decode(bytes, &read, &err));
    ck_assert_mem_eq(&read, &head, sizeof head);
    autofree struct kept_file *files = NULL;
    ck_assert(kept_index_decode(index.bytes, &read, &files, &err));
    int64_t offset = KEPT_HEAD_BYTES + head.index_bytes;
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(files[i].path, given[i].path);
        ck_assert_int_eq(files[i].size, given[i].size);
        ck_assert_int_eq(files[i].modified_ms, given[i].modified_ms);
        ck_assert_int_eq(files[i].executable, given[i].executable);
        ck_assert_int_eq(files[i].offset, offset);
        offset += given[i].size;
    }
}
END_TEST

START_TEST(a_head_whose_numbers_do_not_agree_is_refused)
{
    static const char *const heads[] = {
        "",
        "gpuctl-files-1",
        "gpuctl-files-1 0 0 159 0 0",     /* shorter than its head */
        "gpuctl-files-1 10 1 169 0 0",    /* than its head and index */
        "gpuctl-files-1 0 4097 1000 0 0", /* too many files */
        "gpuctl-files-1 2000000 1 3000000 0 0",
        "gpuctl-files-1 0 0 -1 0 0",
        "gpuctl-files-1 0 0 x 0 0",
        "gpuctl-files-2 0 0 160 0 0",
    };
    struct kept_head head;
    struct err err;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        char bytes[KEPT_HEAD_BYTES] = {0};
        memset(bytes, ' ', sizeof bytes);
        memcpy(bytes, heads[i], strlen(heads[i]));
        ck_assert_msg(!kept_head_decode(bytes, &head, &err), "%s", heads[i]);
    }
}
END_TEST

START_TEST(no_path_leads_out_of_the_folder)
{
    static const char *const bad[] = {"",     ".",    "..",   "/a",   "a/",    "a//b", "a/../b",
                                      "../a", "a\nb", "a\\b", "\xff", "a/./b", "\x7f"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!kept_path_is_good(bad[i]), "%s", bad[i]);
    }
    autofree char *longest = xzalloc(LIMIT_PATH_BYTES + 2);
    for (size_t i = 0; i < LIMIT_PATH_BYTES + 1; i++) {
        longest[i] = i % 2 == 0 ? 'a' : '/';
    }
    ck_assert(!kept_path_is_good(longest));
    ck_assert(kept_path_is_good("a") && kept_path_is_good("a/.b/..c") && kept_path_is_good("\xc3\xa4 b"));
    ck_assert(READS("1 0 - a\0", 1, 1));
    ck_assert(!READS("1 0 - ../a\0", 1, 1));
}
END_TEST

START_TEST(an_index_fits_its_stream)
{
    ck_assert(READS("1 0 - a\0"
                    "2 0 - b\0",
                    2, 3));
    ck_assert(!READS("1 0 - a\0"
                     "2 0 - b\0",
                     2, 4)); /* bytes of no file */
    ck_assert(!READS("1 0 - a\0"
                     "2 0 - b\0",
                     2, 2)); /* a file outside */
    ck_assert(!READS("1 0 - a\0"
                     "2 0 - b\0",
                     1, 1)); /* more entries than files */
    ck_assert(!READS("1 0 - a\0"
                     "2 0 - b\0",
                     3, 3)); /* and fewer */
    ck_assert(!READS("1 0 - b\0"
                     "2 0 - a\0",
                     2, 3)); /* not sorted */
    ck_assert(!READS("1 0 - a\0"
                     "2 0 - a\0",
                     2, 3));            /* twice */
    ck_assert(!READS("1 0 - a", 1, 1)); /* without an end */
    ck_assert(!READS("-1 0 - a\0", 1, 1));
    ck_assert(!READS("1 - a\0", 1, 1));
    ck_assert(!READS("9223372036854775807 0 - a\0", 1, 1));
    ck_assert(READS("", 0, 0));
}
END_TEST

Suite *kept_files_suite(void)
{
    Suite *suite = suite_create("kept files");
    TCase *tests = tcase_create("kept files");
    tcase_add_test(tests, what_is_written_is_read_again);
    tcase_add_test(tests, a_head_whose_numbers_do_not_agree_is_refused);
    tcase_add_test(tests, no_path_leads_out_of_the_folder);
    tcase_add_test(tests, an_index_fits_its_stream);
    suite_add_tcase(suite, tests);
    return suite;
}
