/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of kept files, which are made of the paths of files, and files that have not come as a whole. */
#include <stdlib.h>
#include <unistd.h>

#include "daemon/blob/worker.h"
#include "daemon/http/kept/kept.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/limits.h"
#include "tests/unit/http/http_suites.h"

static char folder[] = "/tmp/kept-XXXXXX";
static struct worker *worker;
static struct logs *logs;
static struct kept_attempt attempt = {.job_id = "aaaaaaaaaaaaaaaa", .attempt = 1};
static struct err err;

static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_ptr_nonnull(worker = worker_open(&err));
    logs = logs_open(folder, folder, MIB, worker, &err);
    ck_assert_msg(logs != NULL, "%s", err.text);
    attempt.logs = logs;
}

static void teardown(void)
{
    worker_close(worker);
    logs_close(logs);
    file_remove_tree(folder, &err);
}

/* A stream of files of one byte each; cut: so many bytes of it have not come. */
static void keep(int64_t rank, const char *const *paths, int64_t cut)
{
    autotext struct text stream = {0}, index = {0};
    char head[KEPT_HEAD_BYTES];
    struct kept_head said = {0};
    int64_t received, durable;
    for (; paths[said.count] != NULL; said.count++) {
        const struct kept_file file = {.path = paths[said.count], .size = 1, .modified_ms = 1};
        kept_entry_append(&index, &file);
    }
    said.index_bytes = (int64_t)index.length;
    said.bytes = KEPT_HEAD_BYTES + said.index_bytes + said.count;
    kept_head_encode(&said, head);
    text_append_bytes(&stream, head, sizeof head);
    text_append_bytes(&stream, index.bytes, index.length);
    for (int64_t i = 0; i < said.count; i++) {
        text_append(&stream, "x");
    }
    const struct log_name name = {attempt.job_id, attempt.attempt, rank, STREAM_FILES};
    ck_assert_msg(
        logs_append(logs, &name, 0, stream.bytes, stream.length - (size_t)cut, &received, &durable, &err),
        "%s", err.text);
}

static void expect(const char *of, const char *expected)
{
    autotext struct text out = {0};
    text_append(&out, "[");
    ck_assert_msg(kept_list_folder(&attempt, of, "/", &out, &err), "%s", err.text);
    ck_assert_str_eq(out.bytes + 1, expected);
}

#define DIRECTORY(path) "{\"path\":\"/" path "\",\"is_dir\":true}"
#define FILE_OF_1(path) "{\"path\":\"/" path "\",\"is_dir\":false,\"file_size\":1}"

START_TEST(folders_follow_from_the_paths_of_files)
{
    static const char *const paths[] = {"a", "a b/c", "a-b", "a.d/e", "a.d/f", "a.d/g/h", "a/x", "ab", NULL};
    static const char *const none[] = {NULL};
    bool has;
    ck_assert(kept_has_files(&attempt, &has, &err) && !has);
    keep(3, none, 0);
    ck_assert(kept_has_files(&attempt, &has, &err) && !has);
    expect("", "");
    keep(10, paths, 0);
    keep(2, paths + 7, 0);
    ck_assert(kept_has_files(&attempt, &has, &err) && has);
    expect("", DIRECTORY("2") "," DIRECTORY("10"));
    expect("2", FILE_OF_1("ab"));
    expect("10", FILE_OF_1("a") "," DIRECTORY("a b") "," FILE_OF_1("a-b") "," DIRECTORY("a.d") "," DIRECTORY(
                     "a") "," FILE_OF_1("ab"));
    expect("10/a.d", FILE_OF_1("e") "," FILE_OF_1("f") "," DIRECTORY("g"));
    expect("10/a", FILE_OF_1("x"));
    static const char *const nothing[] = {"10/ab", "10/a.", "10/none", "10/a.d/e",
                                          "1",     "x",     "-1",      "99999999"};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        expect(nothing[i], "");
    }
    attempt.attempt = 2;
    expect("", "");
    attempt.attempt = 1;
}
END_TEST

START_TEST(a_file_is_found_once_it_has_come_whole)
{
    static const char *const paths[] = {"a", "b/c", NULL};
    struct kept_content content = {.file = -1};
    keep(0, paths, 1);
    ck_assert(kept_find(&attempt, "0/a", &content, &err));
    ck_assert_int_eq(content.size, 1);
    close(content.file);
    ck_assert(!kept_find(&attempt, "0/b/c", &content, &err));
    ck_assert_int_eq(err.code, ERR_CONFLICT);
    ck_assert(!kept_find(&attempt, "0/b", &content, &err));
    ck_assert_int_eq(err.code, ERR_NOT_FOUND);
    err = (struct err){.code = ERR_NONE};
    ck_assert(!kept_find(&attempt, "1/a", &content, &err));
    ck_assert_int_eq(err.code, ERR_NOT_FOUND);
    expect("0", FILE_OF_1("a") "," DIRECTORY("b"));
}
END_TEST

Suite *kept_suite(void)
{
    Suite *suite = suite_create("kept");
    TCase *tests = tcase_create("kept");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, folders_follow_from_the_paths_of_files);
    tcase_add_test(tests, a_file_is_found_once_it_has_come_whole);
    suite_add_tcase(suite, tests);
    return suite;
}
