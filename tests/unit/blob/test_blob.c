/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads and logs as files. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/blob/blobs.h"
#include "daemon/blob/log_file.h"
#include "daemon/blob/logs.h"
#include "daemon/blob/worker.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/limits_controller.h"

static char folder[64];
static struct worker *worker;
static struct logs *logs;
static struct err err;

static void set_up(void)
{
    snprintf(folder, sizeof folder, "/tmp/gpuctl-blob-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    worker = worker_open(&err);
    logs = logs_open(folder, folder, LIMIT_STREAM_BYTES, worker, &err);
    ck_assert_ptr_nonnull(logs);
}

static void tear_down(void)
{
    worker_close(worker);
    logs_close(logs);
    ck_assert(file_remove_tree(folder, &err));
}

/* As a new process does. */
static void logs_reopen(void)
{
    worker_close(worker);
    logs_close(logs);
    worker = worker_open(&err);
    logs = logs_open(folder, folder, LIMIT_STREAM_BYTES, worker, &err);
    ck_assert_ptr_nonnull(logs);
}

static const struct log_name out0 = {"abcdefghijklmnop", 1, 0, STREAM_STDOUT};
static const struct log_name err1 = {"abcdefghijklmnop", 1, 1, STREAM_STDERR};
static const struct log_name metrics0 = {"abcdefghijklmnop", 1, 0, STREAM_METRICS};
static const struct log_name metrics4 = {"abcdefghijklmnop", 1, 4, STREAM_METRICS};

static bool append(const struct log_name *name, int64_t offset, const char *text, int64_t *ret_received)
{
    int64_t durable;
    return logs_append(logs, name, offset, text, strlen(text), ret_received, &durable, &err);
}

static void append_ok(const struct log_name *name, int64_t offset, const char *text)
{
    int64_t received;
    ck_assert_msg(append(name, offset, text, &received), "%s", err.text);
    ck_assert_int_eq(received, offset + (int64_t)strlen(text));
}

static struct log_reader *reader_from(const char *after)
{
    struct log_reader *reader = log_reader_open(logs, out0.job_id, 1, -1, STREAM_COUNT, after, &err);
    ck_assert_msg(reader != NULL, "%s", err.text);
    return reader;
}

static void expect_piece(struct log_reader *reader, int64_t rank, const char *text, char *ret_id)
{
    bool found;
    struct log_piece piece;
    ck_assert(log_reader_next(reader, &found, &piece, &err));
    ck_assert(found);
    ck_assert_int_eq(piece.rank, rank);
    ck_assert_uint_eq(piece.length, strlen(text));
    ck_assert_mem_eq(piece.bytes, text, piece.length);
    if (ret_id != NULL) {
        log_piece_id(&piece, piece.length, ret_id);
    }
}

static void expect_nothing(struct log_reader *reader)
{
    bool found;
    struct log_piece piece;
    ck_assert(log_reader_next(reader, &found, &piece, &err));
    ck_assert(!found);
}

START_TEST(a_stream_takes_no_more_than_its_limit)
{
    int64_t received, durable;
    logs_close(logs);
    logs = logs_open(folder, folder, MIB, worker, &err);
    autofree char *bytes = xzalloc((size_t)MIB + STREAM_MARKS_BYTES);
    size_t most = (size_t)MIB + STREAM_MARKS_BYTES;
    ck_assert(logs_append(logs, &out0, 0, bytes, most, &received, &durable, &err));
    ck_assert_int_eq(received, (int64_t)most);
    ck_assert(!logs_append(logs, &out0, received, bytes, 1, &received, &durable, &err));
    ck_assert_int_eq(err.code, ERR_TOO_LARGE);
    ck_assert_int_eq(received, (int64_t)most);
    ck_assert(logs_append(logs, &out0, 0, bytes, most, &received, &durable, &err)); /* there already */
    ck_assert(!logs_append(logs, &out0, INT64_MAX / 2, bytes, 1, &received, &durable, &err));
    ck_assert_int_eq(err.code, ERR_CONFLICT);
}
END_TEST

START_TEST(pieces_are_read_in_the_order_in_which_they_came)
{
    struct log_reader *reader = reader_from(NULL);
    expect_nothing(reader);
    append_ok(&out0, 0, "one\n");
    append_ok(&err1, 0, "two\n");
    append_ok(&out0, 4, "three\n");
    expect_piece(reader, 0, "one\n", NULL);
    expect_piece(reader, 1, "two\n", NULL);
    expect_piece(reader, 0, "three\n", NULL);
    expect_nothing(reader);
    append_ok(&err1, 4, "four\n");
    expect_piece(reader, 1, "four\n", NULL);
    log_reader_close(reader);
}
END_TEST

START_TEST(a_repeated_upload_adds_only_what_is_new)
{
    int64_t received;
    append_ok(&out0, 0, "hello ");
    ck_assert(append(&out0, 0, "hello world", &received));
    ck_assert_int_eq(received, 11);
    ck_assert(append(&out0, 3, "lo", &received));
    ck_assert_int_eq(received, 11);
    struct log_reader *reader = reader_from(NULL);
    expect_piece(reader, 0, "hello ", NULL);
    expect_piece(reader, 0, "world", NULL);
    expect_nothing(reader);
    log_reader_close(reader);
}
END_TEST

START_TEST(a_gap_is_refused_and_says_where_to_go_on)
{
    int64_t received = -1;
    append_ok(&out0, 0, "abc");
    ck_assert(!append(&out0, 5, "x", &received));
    ck_assert_int_eq(err.code, ERR_CONFLICT);
    ck_assert_int_eq(received, 3);
}
END_TEST

START_TEST(a_reader_that_comes_back_misses_and_repeats_nothing)
{
    char id[64], ids[3][64];
    append_ok(&out0, 0, "one\n");
    append_ok(&err1, 0, "two\n");
    append_ok(&out0, 4, "three\n");
    struct log_reader *reader = reader_from(NULL);
    const char *const texts[] = {"one\n", "two\n", "three\n"};
    for (int i = 0; i < 3; i++) {
        expect_piece(reader, i == 1, texts[i], ids[i]);
    }
    log_reader_close(reader);
    for (int seen = 0; seen < 3; seen++) {
        reader = reader_from(ids[seen]);
        for (int i = seen + 1; i < 3; i++) {
            expect_piece(reader, i == 1, texts[i], id);
            ck_assert_str_eq(id, ids[i]);
        }
        expect_nothing(reader);
        log_reader_close(reader);
    }
}
END_TEST

/* Bytes that this process has read so far, from any file. */
static int64_t bytes_read(void)
{
    long long bytes = -1;
    FILE *io = fopen("/proc/self/io", "r");
    ck_assert_ptr_nonnull(io);
    ck_assert_int_eq(fscanf(io, "rchar: %lld", &bytes), 1);
    ck_assert_int_eq(fclose(io), 0);
    return bytes;
}

/* Records of stderr of rank 1 without bytes, up to that number. */
static void lengthen_index(int64_t count)
{
    const struct log_record record = {.channel = log_channel(1, STREAM_STDERR)};
    autofree char *path = log_index_path(logs, out0.job_id, 1);
    FILE *index = fopen(path, "a");
    ck_assert_ptr_nonnull(index);
    while (ftell(index) < count * (int64_t)sizeof record) {
        ck_assert_uint_eq(fwrite(&record, sizeof record, 1, index), 1);
    }
    ck_assert_int_eq(fclose(index), 0);
}

START_TEST(to_come_back_costs_the_same_wherever_in_a_long_index)
{
    char id[LOG_ID_BYTES];
    append_ok(&out0, 0, "one\n");
    append_ok(&metrics0, 0, "{}\n{\"a\"");
    lengthen_index(100000);
    append_ok(&out0, 4, "two\n");
    append_ok(&metrics0, 7, ": 1}\n");
    append_ok(&err1, 0, "three\n");
    snprintf(id, sizeof id, "1.%d.8", 100000);
    int64_t before = bytes_read();
    struct log_reader *reader = reader_from(id);
    expect_piece(reader, 1, "three\n", NULL);
    expect_nothing(reader);
    log_reader_close(reader);
    struct log_reader *lines = log_reader_open(logs, out0.job_id, 1, -1, STREAM_METRICS, id, &err);
    expect_piece(lines, 0, "{\"a\": 1}\n", NULL);
    expect_nothing(lines);
    log_reader_close(lines);
    ck_assert_int_lt(bytes_read() - before, 16 * KIB);
}
END_TEST

START_TEST(records_that_nobody_wants_are_passed_a_number_at_a_time)
{
    bool found;
    struct log_piece piece;
    char id[LOG_ID_BYTES];
    append_ok(&out0, 0, "one\n");
    lengthen_index(3 * LIMIT_LOG_PASSED_RECORDS);
    append_ok(&out0, 4, "two\n");
    struct log_reader *reader = log_reader_open(logs, out0.job_id, 1, 0, STREAM_STDOUT, NULL, &err);
    expect_piece(reader, 0, "one\n", NULL);
    for (int i = 0; i < 3; i++) {
        int64_t before = bytes_read();
        ck_assert(log_reader_next(reader, &found, &piece, &err) && found);
        ck_assert_uint_eq(piece.length, 0);
        ck_assert_int_lt(bytes_read() - before, 2 * LIMIT_LOG_PIECE_BYTES);
        log_piece_id(&piece, 0, id);
        log_reader_close(reader); /* one that comes back goes on from there */
        reader = log_reader_open(logs, out0.job_id, 1, 0, STREAM_STDOUT, id, &err);
        ck_assert_ptr_nonnull(reader);
    }
    expect_piece(reader, 0, "two\n", NULL);
    expect_nothing(reader);
    log_reader_close(reader);
}
END_TEST

START_TEST(a_reader_with_a_foreign_id_is_refused)
{
    append_ok(&out0, 0, "one\n");
    const char *const wrong[] = {"",
                                 "1",
                                 "1.0",
                                 "2.0.4",
                                 "1.9.4",
                                 "1.0.5",
                                 "1.0.4x",
                                 "-1.0.0",
                                 "1.-1.0",
                                 "1.9223372036854775807.0",
                                 "1.0.99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_ptr_null(log_reader_open(logs, out0.job_id, 1, -1, STREAM_COUNT, wrong[i], &err));
        ck_assert_str_eq(err.field, "Last-Event-ID");
    }
}
END_TEST

START_TEST(a_reader_can_choose_rank_and_stream)
{
    append_ok(&out0, 0, "one\n");
    append_ok(&err1, 0, "two\n");
    struct log_reader *reader = log_reader_open(logs, out0.job_id, 1, 1, STREAM_STDERR, NULL, &err);
    expect_piece(reader, 1, "two\n", NULL);
    expect_nothing(reader);
    log_reader_close(reader);
}
END_TEST

START_TEST(long_pieces_are_cut_at_lines_and_nothing_is_lost)
{
    autotext struct text all = {0};
    while (all.length < 3 * LIMIT_LOG_PIECE_BYTES) {
        text_printf(&all, "line %zu of many\n", all.length);
    }
    append_ok(&out0, 0, all.bytes);
    autotext struct text seen = {0};
    struct log_reader *reader = reader_from(NULL);
    for (;;) {
        bool found;
        struct log_piece piece;
        ck_assert(log_reader_next(reader, &found, &piece, &err));
        if (!found) {
            break;
        }
        ck_assert_uint_le(piece.length, LIMIT_LOG_PIECE_BYTES);
        ck_assert_int_eq(piece.bytes[piece.length - 1], '\n');
        text_append_bytes(&seen, piece.bytes, piece.length);
    }
    log_reader_close(reader);
    ck_assert_str_eq(seen.bytes, all.bytes);
}
END_TEST

START_TEST(a_character_is_not_cut_in_two)
{
    autotext struct text all = {0};
    while (all.length <= LIMIT_LOG_PIECE_BYTES) {
        text_append(&all, "\xe2\x82\xac"); /* three bytes; the limit is no multiple of three */
    }
    append_ok(&out0, 0, all.bytes);
    bool found;
    struct log_piece piece;
    struct log_reader *reader = reader_from(NULL);
    ck_assert(log_reader_next(reader, &found, &piece, &err) && found);
    ck_assert_uint_eq(piece.length % 3, 0);
    log_reader_close(reader);
}
END_TEST

START_TEST(an_index_that_promises_lost_bytes_gives_them_when_they_come_again)
{
    append_ok(&out0, 0, "kept and lost\n");
    autofree char *path = xprintf("%s/ab/abcdefghijklmnop/1.0.stdout", folder);
    ck_assert_int_eq(truncate(path, 5), 0);
    struct log_reader *reader = reader_from(NULL);
    expect_piece(reader, 0, "kept ", NULL);
    expect_nothing(reader);
    append_ok(&out0, 5, "and lost\n");
    expect_piece(reader, 0, "and lost\n", NULL);
    log_reader_close(reader);
}
END_TEST

START_TEST(a_reader_that_comes_back_gets_lost_bytes_that_came_again)
{
    char id[LOG_ID_BYTES];
    append_ok(&out0, 0, "kept and lost\n");
    append_ok(&err1, 0, "two\n");
    autofree char *path = xprintf("%s/ab/abcdefghijklmnop/1.0.stdout", folder);
    ck_assert_int_eq(truncate(path, 5), 0);
    logs_reopen();
    struct log_reader *reader = reader_from(NULL);
    expect_piece(reader, 0, "kept ", NULL);
    expect_piece(reader, 1, "two\n", id);
    log_reader_close(reader);
    struct log_reader *early = reader_from(id);
    int64_t received, durable;
    ck_assert(logs_append(logs, &out0, 5, NULL, 0, &received, &durable, &err));
    append_ok(&out0, 5, "and lost\n");
    struct log_reader *late = reader_from(id);
    expect_piece(early, 0, "and lost\n", NULL);
    expect_nothing(early);
    expect_piece(late, 0, "and lost\n", NULL);
    expect_nothing(late);
    log_reader_close(early);
    log_reader_close(late);
}
END_TEST

START_TEST(what_was_received_becomes_durable)
{
    int64_t received, durable = 0;
    append_ok(&out0, 0, "to the disk\n");
    while (durable < 12) {
        struct pollfd ready = {.fd = worker_fd(worker), .events = POLLIN};
        ck_assert_int_eq(poll(&ready, 1, 10000), 1);
        worker_collect(worker);
        ck_assert(logs_append(logs, &out0, 12, NULL, 0, &received, &durable, &err));
        ck_assert_int_eq(received, 12);
    }
    ck_assert_int_eq(durable, 12);
}
END_TEST

static struct log_reader *metrics_reader(void)
{
    struct log_reader *reader = log_reader_open(logs, out0.job_id, 1, -1, STREAM_METRICS, NULL, &err);
    ck_assert_msg(reader != NULL, "%s", err.text);
    return reader;
}

START_TEST(both_streams_are_stdout_and_stderr_but_never_metrics)
{
    append_ok(&metrics0, 0, "{}\n");
    append_ok(&out0, 0, "one\n");
    append_ok(&metrics4, 0, "{}\n");
    append_ok(&err1, 0, "two\n");
    struct log_reader *reader = reader_from(NULL);
    expect_piece(reader, 0, "one\n", NULL);
    expect_piece(reader, 1, "two\n", NULL);
    expect_nothing(reader);
    log_reader_close(reader);
    reader = metrics_reader();
    expect_piece(reader, 0, "{}\n", NULL);
    expect_piece(reader, 4, "{}\n", NULL);
    expect_nothing(reader);
    log_reader_close(reader);
}
END_TEST

START_TEST(output_has_the_channels_of_an_index_that_knew_no_metrics)
{
    for (int64_t rank = 0; rank < LIMIT_GPUS; rank += 4095) {
        ck_assert_int_eq(log_channel(rank, STREAM_STDOUT), 2 * rank);
        ck_assert_int_eq(log_channel(rank, STREAM_STDERR), 2 * rank + 1);
        for (int stream = 0; stream <= STREAM_METRICS; stream++) {
            int64_t channel = log_channel(rank, (enum stream)stream);
            ck_assert_int_eq(log_channel_rank(channel), rank);
            ck_assert_int_eq((int)log_channel_stream(channel), stream);
        }
    }
}
END_TEST

START_TEST(kept_files_are_apart_from_output_and_outlive_it)
{
    const struct log_name kept2 = {out0.job_id, 1, 2, STREAM_FILES},
                          kept10 = {out0.job_id, 1, 10, STREAM_FILES},
                          later = {out0.job_id, 2, 0, STREAM_FILES};
    autofree char *place = xprintf("%s/kept", folder);
    autofree int64_t *ranks = NULL;
    size_t count;
    int64_t bytes, size;
    logs_close(logs);
    logs = logs_open(folder, place, 8, worker, &err);
    ck_assert(logs_kept_ranks(logs, out0.job_id, 1, &ranks, &count, &err));
    ck_assert_uint_eq(count, 0);
    append_ok(&out0, 0, "out\n");
    append_ok(&kept10, 0, "more than the limit of output");
    append_ok(&kept2, 0, "two");
    append_ok(&kept2, 3, "three");
    append_ok(&later, 0, "later");
    struct log_reader *reader = reader_from(NULL);
    expect_piece(reader, 0, "out\n", NULL);
    expect_nothing(reader);
    log_reader_close(reader);
    free(ranks);
    ck_assert(logs_kept_ranks(logs, out0.job_id, 1, &ranks, &count, &err));
    ck_assert_uint_eq(count, 2);
    ck_assert(ranks[0] == 2 && ranks[1] == 10);
    ck_assert(logs_remove(logs, out0.job_id, false, &bytes, &err));
    close(logs_open_stream(logs, &kept2, &size, &err));
    ck_assert_int_eq(size, 8);
    ck_assert(logs_remove_kept(logs, out0.job_id, true, &bytes, &err));
    ck_assert_int_eq(bytes, 8 + 29 + 5);
    ck_assert(logs_remove_kept(logs, out0.job_id, false, &bytes, &err));
    ck_assert_int_eq(logs_open_stream(logs, &kept2, &size, &err), -1);
    ck_assert_int_eq(size, 0);
}
END_TEST

static void hash_of(const char *bytes, size_t length, uint8_t out[HASH_BYTES])
{
    hash_bytes(bytes, length, out);
}

START_TEST(a_large_blob_is_a_file_under_its_hash)
{
    autofree char *bytes = xzalloc(LIMIT_BLOB_ROW_BYTES + 1);
    uint8_t hash[HASH_BYTES];
    hash_of(bytes, LIMIT_BLOB_ROW_BYTES + 1, hash);
    struct blobs *blobs = blobs_open(folder, &err);
    struct blob_upload *upload = blob_upload_begin(blobs, hash);
    ck_assert(blob_upload_write(upload, bytes, 1000, &err));
    ck_assert(blob_upload_write(upload, bytes, LIMIT_BLOB_ROW_BYTES + 1 - 1000, &err));
    ck_assert(blob_upload_check(upload, &err) && blob_upload_keep(upload, &err));
    ck_assert_ptr_null(blob_upload_bytes(upload));
    ck_assert_int_eq(blob_upload_size(upload), LIMIT_BLOB_ROW_BYTES + 1);
    blob_upload_end(upload);
    autoclose int fd = blobs_open_file(blobs, hash, &err);
    struct stat status;
    ck_assert_int_eq(fstat(fd, &status), 0);
    ck_assert_int_eq(status.st_size, LIMIT_BLOB_ROW_BYTES + 1);
    blobs_close(blobs);
}
END_TEST

START_TEST(a_small_blob_stays_in_memory_and_leaves_no_file)
{
    uint8_t hash[HASH_BYTES];
    hash_of("tiny", 4, hash);
    struct blobs *blobs = blobs_open(folder, &err);
    struct blob_upload *upload = blob_upload_begin(blobs, hash);
    ck_assert(blob_upload_write(upload, "tiny", 4, &err));
    ck_assert(blob_upload_check(upload, &err) && blob_upload_keep(upload, &err));
    ck_assert_mem_eq(blob_upload_bytes(upload), "tiny", 4);
    blob_upload_end(upload);
    ck_assert_int_eq(blobs_open_file(blobs, hash, &err), -1);
    ck_assert_int_eq(err.code, ERR_NOT_FOUND);
    blobs_close(blobs);
}
END_TEST

START_TEST(a_wrong_hash_is_refused_and_leaves_nothing)
{
    autofree char *bytes = xzalloc(LIMIT_BLOB_ROW_BYTES + 1);
    uint8_t hash[HASH_BYTES] = {1};
    struct blobs *blobs = blobs_open(folder, &err);
    struct blob_upload *upload = blob_upload_begin(blobs, hash);
    ck_assert(blob_upload_write(upload, bytes, LIMIT_BLOB_ROW_BYTES + 1, &err));
    ck_assert(!blob_upload_check(upload, &err));
    ck_assert_str_eq(err.field, "sha256");
    blob_upload_end(upload);
    autofree char *arriving = xprintf("%s/arriving", folder);
    ck_assert_int_eq(rmdir(arriving), 0); /* empty */
    blobs_close(blobs);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("blob");
    TCase *tests = tcase_create("files");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_stream_takes_no_more_than_its_limit);
    tcase_add_test(tests, pieces_are_read_in_the_order_in_which_they_came);
    tcase_add_test(tests, a_repeated_upload_adds_only_what_is_new);
    tcase_add_test(tests, a_gap_is_refused_and_says_where_to_go_on);
    tcase_add_test(tests, a_reader_that_comes_back_misses_and_repeats_nothing);
    tcase_add_test(tests, to_come_back_costs_the_same_wherever_in_a_long_index);
    tcase_add_test(tests, records_that_nobody_wants_are_passed_a_number_at_a_time);
    tcase_add_test(tests, a_reader_with_a_foreign_id_is_refused);
    tcase_add_test(tests, a_reader_can_choose_rank_and_stream);
    tcase_add_test(tests, long_pieces_are_cut_at_lines_and_nothing_is_lost);
    tcase_add_test(tests, a_character_is_not_cut_in_two);
    tcase_add_test(tests, an_index_that_promises_lost_bytes_gives_them_when_they_come_again);
    tcase_add_test(tests, a_reader_that_comes_back_gets_lost_bytes_that_came_again);
    tcase_add_test(tests, what_was_received_becomes_durable);
    tcase_add_test(tests, both_streams_are_stdout_and_stderr_but_never_metrics);
    tcase_add_test(tests, output_has_the_channels_of_an_index_that_knew_no_metrics);
    tcase_add_test(tests, kept_files_are_apart_from_output_and_outlive_it);
    tcase_add_test(tests, a_large_blob_is_a_file_under_its_hash);
    tcase_add_test(tests, a_small_blob_stays_in_memory_and_leaves_no_file);
    tcase_add_test(tests, a_wrong_hash_is_refused_and_leaves_nothing);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
