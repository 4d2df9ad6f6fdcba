/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/blob/sample_ring: what was written in a day is read in order, and nothing else is, whatever
 * became of the file or the clock. */
#include "daemon/blob/sample_ring.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

#define STEP   SAMPLE_RING_STEP_MS
#define DAY_MS ((int64_t)SAMPLE_RING_SLOTS * STEP)
#define START  (INT64_C(1800000000000) / STEP * STEP)
#define NODE   "n1"

static char folder[64];
static struct ring_span span;

static void set_up(void)
{
    strcpy(folder, "/tmp/gpuctl-ring-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    span = (struct ring_span){0};
}

static void tear_down(void)
{
    struct err err;
    ring_span_finish(&span);
    ck_assert(file_remove_tree(folder, &err));
}

/* Writes a record with so many GPUs, whose values follow from the time; whether the file was begun anew. */
static bool put(int64_t at_ms, size_t gpu_count)
{
    struct err err;
    bool anew;
    struct ring_gpu gpus[LIMIT_SAMPLE_GPUS];
    for (size_t i = 0; i < gpu_count; i++) {
        gpus[i] = (struct ring_gpu){.busy_percent = (uint8_t)(at_ms / STEP % 100),
                                    .temperature_c = (uint8_t)i,
                                    .power_w = 700,
                                    .memory_mib = 81920};
    }
    const struct ring_record record = {.at_ms = at_ms, .cpu_percent = 12.34, .memory_bytes = 5 * GIB};
    ck_assert_msg(sample_ring_put(folder, NODE, &record, gpus, gpu_count, &anew, &err), "%s", err.text);
    return anew;
}

static void read_span(int64_t since_ms, int64_t until_ms)
{
    struct err err;
    ring_span_finish(&span);
    ck_assert_msg(sample_ring_read(folder, NODE, since_ms, until_ms, &span, &err), "%s", err.text);
}

static char *path_of_ring(void)
{
    return xprintf("%s/" NODE, folder);
}

START_TEST(a_record_is_read_as_it_was_written)
{
    ck_assert(!put(START + 5, 2));
    read_span(START, START + STEP);
    ck_assert_uint_eq(span.count, 1);
    ck_assert_uint_eq(span.gpu_count, 2);
    ck_assert_int_eq(span.records[0].at_ms, START + 5);
    ck_assert_double_eq_tol(span.records[0].cpu_percent, 12.34, 0.001);
    ck_assert_int_eq(span.records[0].memory_bytes, 5 * GIB);
    ck_assert_uint_eq(span.gpus[1].temperature_c, 1);
    ck_assert_uint_eq(span.gpus[1].power_w, 700);
    ck_assert_uint_eq(span.gpus[1].memory_mib, 81920);
}
END_TEST

START_TEST(what_is_not_known_stays_unknown)
{
    struct err err;
    bool anew;
    const struct ring_record record = {.at_ms = START, .cpu_percent = -1, .memory_bytes = -1};
    ck_assert(sample_ring_put(folder, NODE, &record, NULL, 0, &anew, &err));
    read_span(START, START);
    ck_assert_double_eq(span.records[0].cpu_percent, -1);
    ck_assert_int_eq(span.records[0].memory_bytes, -1);
}
END_TEST

START_TEST(a_full_ring_has_a_day_in_order_and_its_size_does_not_grow)
{
    struct stat status;
    autofree char *path = path_of_ring();
    for (int64_t i = 0; i < SAMPLE_RING_SLOTS + 100; i++) {
        put(START + i * STEP, 8);
    }
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_size, 24 + 2880 * (24 + 8 * 8));
    int64_t last_ms = START + (SAMPLE_RING_SLOTS + 99) * (int64_t)STEP;
    read_span(0, last_ms);
    ck_assert_uint_eq(span.count, SAMPLE_RING_SLOTS);
    for (int64_t i = 0; i < SAMPLE_RING_SLOTS; i++) {
        ck_assert_int_eq(span.records[i].at_ms, START + (100 + i) * STEP);
    }
    read_span(last_ms - 3 * STEP, last_ms - STEP);
    ck_assert_uint_eq(span.count, 3);
}
END_TEST

START_TEST(a_gap_hides_the_records_of_the_day_before)
{
    put(START, 1);
    put(START + STEP, 1);
    put(START + DAY_MS + STEP, 1);
    read_span(START + STEP + 1, START + DAY_MS + STEP);
    ck_assert_uint_eq(span.count, 1);
    ck_assert_int_eq(span.records[0].at_ms, START + DAY_MS + STEP);
    read_span(0, START + DAY_MS + STEP);
    ck_assert_uint_eq(span.count, 1);
}
END_TEST

START_TEST(a_clock_that_jumps_there_and_back_harms_only_what_it_writes_over)
{
    for (int i = 0; i < 10; i++) {
        put(START + i * STEP, 1);
    }
    put(START + 10 * DAY_MS + 3 * STEP, 1); /* takes the place of the fourth */
    put(START - 5 * DAY_MS, 1);             /* and this that of the first */
    put(START + 10 * STEP, 1);
    read_span(START, START + 10 * STEP);
    ck_assert_uint_eq(span.count, 9);
    ck_assert_int_eq(span.records[0].at_ms, START + STEP);
    ck_assert_int_eq(span.records[8].at_ms, START + 10 * STEP);
}
END_TEST

START_TEST(another_number_of_gpus_begins_the_file_anew)
{
    put(START, 1);
    ck_assert(put(START + STEP, 2));
    read_span(START, START + STEP);
    ck_assert_uint_eq(span.count, 1);
    ck_assert_uint_eq(span.gpu_count, 2);
}
END_TEST

START_TEST(a_torn_record_is_left_out)
{
    put(START, 1);
    put(START + STEP, 1);
    autofree char *path = path_of_ring();
    autofclose FILE *file = fopen(path, "r+e");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 24 + (long)(START / STEP % SAMPLE_RING_SLOTS) * 32 + 28, SEEK_SET), 0);
    ck_assert_int_eq(fputc('x', file), 'x');
    ck_assert_int_eq(fflush(file), 0);
    read_span(START, START + STEP);
    ck_assert_uint_eq(span.count, 1);
    ck_assert_int_eq(span.records[0].at_ms, START + STEP);
}
END_TEST

static const char *const foreign[] = {"", "x", "gpusamp1",
                                      "gpusamp1\xff\xff\xff\xff\x20\0\0\0\x40\x0b\0\0\0\0\0\0"};

START_TEST(a_file_that_is_none_of_ours_has_no_records_and_is_begun_anew)
{
    struct err err;
    autofree char *path = path_of_ring();
    size_t length = _i == 3 ? 24 : strlen(foreign[_i]);
    ck_assert(file_replace(path, foreign[_i], length, 0600, &err));
    read_span(START, START + STEP);
    ck_assert_uint_eq(span.count, 0);
    ck_assert(put(START, 1) == (length > 0));
    read_span(START, START + STEP);
    ck_assert_uint_eq(span.count, 1);
}
END_TEST

START_TEST(a_file_that_was_cut_is_begun_anew)
{
    put(START, 1);
    autofree char *path = path_of_ring();
    ck_assert_int_eq(truncate(path, 1000), 0);
    read_span(START, START);
    ck_assert_uint_eq(span.count, 0);
    ck_assert(put(START, 1));
}
END_TEST

START_TEST(a_node_without_a_file_has_no_records_and_its_removal_is_no_error)
{
    struct err err;
    read_span(START, START + STEP);
    ck_assert_uint_eq(span.count, 0);
    ck_assert(sample_ring_remove(folder, NODE, &err));
    put(START, 1);
    ck_assert(sample_ring_remove(folder, NODE, &err));
    read_span(START, START + STEP);
    ck_assert_uint_eq(span.count, 0);
}
END_TEST

START_TEST(a_sweep_removes_files_that_nothing_was_written_to_for_a_day)
{
    struct err err;
    struct stat status;
    autofree char *path = path_of_ring();
    put(START, 1);
    ck_assert_int_eq(stat(path, &status), 0);
    int64_t written_ms = status.st_mtim.tv_sec * 1000;
    ck_assert(sample_ring_sweep(folder, written_ms + DAY_MS, &err));
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert(sample_ring_sweep(folder, written_ms + DAY_MS + 1, &err));
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert(sample_ring_sweep("/no/such/folder", START, &err));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sample_ring");
    TCase *cases = tcase_create("sample_ring");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, a_record_is_read_as_it_was_written);
    tcase_add_test(cases, what_is_not_known_stays_unknown);
    tcase_add_test(cases, a_full_ring_has_a_day_in_order_and_its_size_does_not_grow);
    tcase_add_test(cases, a_gap_hides_the_records_of_the_day_before);
    tcase_add_test(cases, a_clock_that_jumps_there_and_back_harms_only_what_it_writes_over);
    tcase_add_test(cases, another_number_of_gpus_begins_the_file_anew);
    tcase_add_test(cases, a_torn_record_is_left_out);
    tcase_add_loop_test(cases, a_file_that_is_none_of_ours_has_no_records_and_is_begun_anew, 0, 4);
    tcase_add_test(cases, a_file_that_was_cut_is_begun_anew);
    tcase_add_test(cases, a_node_without_a_file_has_no_records_and_its_removal_is_no_error);
    tcase_add_test(cases, a_sweep_removes_files_that_nothing_was_written_to_for_a_day);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
