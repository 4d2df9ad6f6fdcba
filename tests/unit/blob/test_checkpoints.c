/* SPDX-License-Identifier: Apache-2.0 */
/* Which parts of a gang's nodes are a checkpoint together, and what stays of them. */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/blob/checkpoints/checkpoints.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

#define JOB "abcdefghijklmnop"

static char folder[64];
static struct checkpoints *checkpoints;
static struct err err;

static void set_up(void)
{
    snprintf(folder, sizeof folder, "/tmp/gpuctl-checkpoints-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    checkpoints = checkpoints_open(folder, GIB, &err);
    ck_assert_ptr_nonnull(checkpoints);
}

static void tear_down(void)
{
    int64_t bytes;
    ck_assert_msg(checkpoints_remove(checkpoints, JOB, false, &bytes, &err), "%s", err.text);
    ck_assert(file_remove_tree(folder, &err));
    checkpoints_close(checkpoints);
}

static struct checkpoint_part part_of(enum checkpoint_kind kind, int64_t node_rank, int64_t number)
{
    return (struct checkpoint_part){
        .attempt = 1, .nodes = 2, .node_rank = node_rank, .kind = kind, .number = number};
}

/* Takes a part with one file, whose name and content are `name`. */
static void take(const struct checkpoint_part *part, const char *name)
{
    struct checkpoint_manifest manifest = {0};
    autotext struct text bytes = {0};
    struct checkpoint_piece piece = {.size = (uint32_t)strlen(name)};
    autofree int64_t *missing = NULL;
    size_t count;
    hash_bytes(name, strlen(name), piece.hash);
    manifest_add_file(&manifest, &(struct checkpoint_file){.path = name});
    manifest_add_piece(&manifest, &piece);
    manifest_encode(&manifest, &bytes);
    manifest_finish(&manifest);
    ck_assert(checkpoints_put_piece(checkpoints, JOB, piece.hash, name, strlen(name), &err));
    ck_assert_msg(checkpoints_take(checkpoints, JOB, part, bytes.bytes, bytes.length, &missing, &count, &err),
                  "%s", err.text);
    ck_assert_int_eq(count, 0);
}

static void hold(const struct checkpoint_part *part)
{
    ck_assert_msg(checkpoints_hold(checkpoints, JOB, part, &err), "%s", err.text);
}

/* The names of the files of the last checkpoint, each with a blank behind; "": there is none. */
static const char *last(void)
{
    static char names[256];
    struct checkpoint_found found;
    ck_assert_msg(checkpoints_last(checkpoints, JOB, 0, &found, &err), "%s", err.text);
    names[0] = '\0';
    for (size_t i = 0; i < found.manifest.file_count; i++) {
        strcat(strcat(names, found.manifest.files[i].path), " ");
    }
    checkpoint_found_finish(&found);
    return names;
}

START_TEST(still_folders_belong_together_when_all_were_held_at_one_moment)
{
    const struct checkpoint_part a = part_of(CHECKPOINT_STILL, 0, 100), b = part_of(CHECKPOINT_STILL, 1, 101);
    take(&a, "a1");
    take(&b, "b1");
    ck_assert_str_eq(last(), "");
    ck_assert(!checkpoints_has(checkpoints, JOB));
    hold(&a);
    hold(&b);
    ck_assert_str_eq(last(), ""); /* a may have changed before b said so */
    hold(&a);
    ck_assert_str_eq(last(), "a1 b1 ");
}
END_TEST

START_TEST(parts_of_different_checkpoints_are_never_put_together)
{
    const struct checkpoint_part a1 = part_of(CHECKPOINT_STILL, 0, 100),
                                 a2 = part_of(CHECKPOINT_STILL, 0, 200),
                                 b1 = part_of(CHECKPOINT_STILL, 1, 101),
                                 b2 = part_of(CHECKPOINT_STILL, 1, 201);
    take(&a1, "a1");
    take(&b1, "b1");
    hold(&a1);
    hold(&b1);
    hold(&a1);
    take(&a2, "a2");
    hold(&a2);
    take(&b2, "b2"); /* the node had it when it began to send */
    hold(&a2);
    ck_assert_str_eq(last(), "a1 b1 ");
    hold(&b2);
    ck_assert_str_eq(last(), "a1 b1 ");
    hold(&a2);
    ck_assert_str_eq(last(), "a2 b2 ");
}
END_TEST

START_TEST(a_node_that_goes_on_alone_keeps_what_both_had)
{
    const struct checkpoint_part a = part_of(CHECKPOINT_STILL, 0, 100), b = part_of(CHECKPOINT_STILL, 1, 101);
    take(&a, "a1");
    take(&b, "b1");
    hold(&b);
    hold(&a);
    hold(&b);
    for (int64_t i = 2; i < 20; i++) {
        const struct checkpoint_part later = part_of(CHECKPOINT_STILL, 1, 100 * i);
        autofree char *name = xprintf("b%lld", (long long)i);
        take(&later, name);
        hold(&later);
    }
    ck_assert_str_eq(last(), "a1 b1 ");
}
END_TEST

START_TEST(a_node_without_files_takes_no_part)
{
    const struct checkpoint_part step = part_of(CHECKPOINT_STEP, 0, 7),
                                 still = part_of(CHECKPOINT_STILL, 0, 100),
                                 empty = part_of(CHECKPOINT_EMPTY, 1, 5);
    hold(&empty);
    take(&step, "step");
    ck_assert_str_eq(last(), ""); /* node 1 may have begun to write */
    hold(&empty);
    ck_assert_str_eq(last(), "step ");
    take(&still, "still");
    hold(&still);
    ck_assert_str_eq(last(), "step ");
    hold(&empty);
    ck_assert_str_eq(last(), "still ");
}
END_TEST

START_TEST(a_step_needs_the_same_step_of_each_node)
{
    for (int64_t number = 1; number <= 2; number++) {
        const struct checkpoint_part part = part_of(CHECKPOINT_STEP, number - 1, number);
        take(&part, number == 1 ? "a1" : "b2");
    }
    ck_assert_str_eq(last(), "");
    const struct checkpoint_part part = part_of(CHECKPOINT_STEP, 1, 1);
    take(&part, "b1");
    ck_assert_str_eq(last(), "a1 b1 ");
}
END_TEST

START_TEST(a_part_that_has_gone_is_not_held)
{
    const struct checkpoint_part never = part_of(CHECKPOINT_STILL, 0, 100);
    ck_assert(!checkpoints_hold(checkpoints, JOB, &never, &err));
    ck_assert_int_eq(err.code, ERR_NOT_FOUND);
}
END_TEST

/* A folder with this mark in it, in the place of the pieces. */
static bool exchange_pieces(const char *mark, const struct job_folder_extent *extent)
{
    autofree char *to = xprintf("%s/" JOB_FOLDER_ARRIVING "/one", folder), *path = xprintf("%s/%s", to, mark);
    ck_assert(file_make_directories(to, 0700, &err) && file_replace(path, "", 0, 0600, &err));
    bool ok = checkpoints_replace(checkpoints, JOB, to, extent, &err);
    ck_assert(access(to, F_OK) != 0);
    return ok;
}

START_TEST(nothing_changes_while_the_pieces_are_away)
{
    const struct checkpoint_part a = part_of(CHECKPOINT_STEP, 0, 1), b = part_of(CHECKPOINT_STEP, 1, 1);
    struct job_folder_extent extent;
    uint8_t hash[HASH_BYTES];
    int64_t size;
    autofree int64_t *missing = NULL;
    size_t count;
    take(&a, "a1");
    autofree char *pieces = checkpoints_pieces_folder(checkpoints, JOB);
    ck_assert(job_folder_extent(pieces, &extent, &err) && extent.files == 1);
    take(&b, "b1"); /* since then it has changed: it stays */
    ck_assert(exchange_pieces(JOB_FOLDER_AWAY, &extent) && !job_folder_is_away(pieces));
    ck_assert(job_folder_extent(pieces, &extent, &err) && extent.files == 2);
    ck_assert(exchange_pieces(JOB_FOLDER_AWAY, &extent) && job_folder_is_away(pieces));
    ck_assert_str_eq(last(), "a1 b1 ");
    hash_bytes("a1", 2, hash);
    ck_assert_int_eq(checkpoints_open_piece(checkpoints, JOB, hash, &size, &err), -1);
    ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
    ck_assert(!checkpoints_put_piece(checkpoints, JOB, hash, "a1", 2, &err) && err.code == ERR_UNAVAILABLE);
    ck_assert(!checkpoints_hold(checkpoints, JOB, &a, &err) && err.code == ERR_UNAVAILABLE);
    err.code = ERR_NONE;
    ck_assert(!checkpoints_take(checkpoints, JOB, &a, "", 0, &missing, &count, &err));
    ck_assert(err.code == ERR_UNAVAILABLE && missing == NULL && count == 0);
    ck_assert(exchange_pieces(JOB_FOLDER_STORED, NULL) && job_folder_is_stored(pieces));
    ck_assert(!job_folder_is_away(pieces) && checkpoints_has(checkpoints, JOB));
    ck_assert_int_eq(checkpoints_open_piece(checkpoints, JOB, hash, &size, &err), -1);
    ck_assert_int_eq(err.code, ERR_NOT_FOUND);
}
END_TEST

START_TEST(two_complete_ones_stay)
{
    autofree char *job = xprintf("%s/" JOB, folder);
    for (int64_t i = 1; i <= 9; i++) {
        for (int64_t node = 0; node < 2; node++) {
            const struct checkpoint_part part = part_of(CHECKPOINT_STEP, node, i);
            take(&part, node == 0 ? "a" : "b");
        }
    }
    autonames struct file_names names = {0};
    ck_assert(file_list(job, &names, &err));
    ck_assert_int_eq(names.count, 1 + 2 * 2); /* pieces, and manifests */
    ck_assert_str_eq(last(), "a b ");
}
END_TEST

/* As if all nodes but the last had sent their parts of three steps, and the last those of two. */
static void write_parts_of(const char *job, int64_t nodes)
{
    autotext struct text empty = {0};
    int64_t serial = 1000000;
    manifest_encode(&(struct checkpoint_manifest){0}, &empty);
    autofree char *pieces = checkpoints_pieces_folder(checkpoints, job);
    ck_assert(file_make_directories(pieces, 0700, &err));
    for (int64_t i = 0; i < 3 * nodes - 1; i++) {
        autofree char *path = xprintf("%s/%s/0.%lld.1.%lld.%lld.step.%lld", folder, job, (long long)serial++,
                                      (long long)nodes, (long long)(i % nodes), (long long)(i / nodes));
        autoclose int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ck_assert(fd >= 0 && file_write_all(fd, empty.bytes, empty.length));
    }
}

static int64_t cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* What the last part of a step costs where the job has that many nodes. */
static int64_t cost_us(int64_t nodes)
{
    autofree char *job = xprintf("job-%lld", (long long)nodes);
    struct checkpoint_part part = part_of(CHECKPOINT_STEP, nodes - 1, 2);
    part.nodes = nodes;
    write_parts_of(job, nodes);
    int64_t *missing, began = cpu_us();
    size_t count;
    autotext struct text empty = {0};
    manifest_encode(&(struct checkpoint_manifest){0}, &empty);
    ck_assert(checkpoints_take(checkpoints, job, &part, empty.bytes, empty.length, &missing, &count, &err));
    int64_t took = cpu_us() - began;
    free(missing);
    struct checkpoint_found found;
    ck_assert_msg(checkpoints_last(checkpoints, job, 0, &found, &err), "%s", err.text);
    ck_assert_int_eq(found.number, 2);
    checkpoint_found_finish(&found);
    return took;
}

/* One thread takes the parts of all nodes, and has other work. The cost grows with the nodes, not with their
 * square (64 times) or cube. */
START_TEST(the_cost_of_a_part_grows_with_the_nodes_of_its_gang_alone)
{
    int64_t few = cost_us(256), many = cost_us(2048);
    ck_assert_msg(many < 32 * few, "256 nodes: %lld us, 2048 nodes: %lld us", (long long)few,
                  (long long)many);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoints");
    TCase *tests = tcase_create("checkpoints");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, still_folders_belong_together_when_all_were_held_at_one_moment);
    tcase_add_test(tests, parts_of_different_checkpoints_are_never_put_together);
    tcase_add_test(tests, a_node_that_goes_on_alone_keeps_what_both_had);
    tcase_add_test(tests, a_node_without_files_takes_no_part);
    tcase_add_test(tests, a_step_needs_the_same_step_of_each_node);
    tcase_add_test(tests, a_part_that_has_gone_is_not_held);
    tcase_add_test(tests, nothing_changes_while_the_pieces_are_away);
    tcase_add_test(tests, two_complete_ones_stay);
    tcase_add_test(tests, the_cost_of_a_part_grows_with_the_nodes_of_its_gang_alone);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
