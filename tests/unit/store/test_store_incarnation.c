/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever becomes of a database and of the mark beside it, no two starts have the same incarnation, so that
 * no attempt id is ever used twice. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/database/copy.h"
#include "daemon/store/incarnation.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/limits_controller.h"
#include "tests/trace/harness/chance.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

static void remove_database(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        autofree char *path = xprintf("%s%s", rig.path, suffixes[i]);
        unlink(path);
    }
}

static void remove_mark(void)
{
    autofree char *mark = xprintf("%s.incarnation", rig.path);
    ck_assert_int_eq(unlink(mark), 0);
}

static char *backup(int number)
{
    char *path = xprintf("%s/backup-%d", rig.folder, number);
    unlink(path);
    ck_assert_msg(copy_database(rig.path, path, NULL, &rig.err), "%s", rig.err.text);
    return path;
}

/* As gpuctl admin restore does: the backup is copied, marked, and takes the place. */
static void restore(const char *from, int64_t taken_ms, uint32_t chance)
{
    autofree char *ready = xprintf("%s/ready", rig.folder);
    rig_close();
    ck_assert(copy_database(from, ready, NULL, &rig.err));
    ck_assert_msg(incarnation_leap(ready, rig.path, taken_ms, chance, &rig.err), "%s", rig.err.text);
    remove_database();
    ck_assert_int_eq(rename(ready, rig.path), 0);
}

START_TEST(an_older_database_put_in_place_by_hand_is_noticed_and_begins_above_all_starts)
{
    autofree char *old = backup(0);
    for (int i = 0; i < 3; i++) {
        rig_reopen();
    }
    ck_assert_uint_eq(store_incarnation(rig.store), 4);
    ck_assert_int_eq(store_restored(rig.store).at_ms, 0);
    rig_close();
    remove_database();
    ck_assert_int_eq(rename(old, rig.path), 0);
    rig_reopen();
    ck_assert_uint_eq(store_incarnation(rig.store), 5);
    ck_assert_int_gt(store_restored(rig.store).at_ms, clock_wall_ms() - 60000);
    ck_assert_int_eq(store_restored(rig.store).from_ms, 1); /* nobody knows when it was copied */
    rig_reopen();
    ck_assert_uint_eq(store_incarnation(rig.store), 6);
    ck_assert_int_gt(store_restored(rig.store).at_ms, 0);
}
END_TEST

START_TEST(a_restored_database_tells_since_when_for_a_day)
{
    autofree char *old = backup(0);
    restore(old, 12345, 7);
    rig_reopen();
    ck_assert_int_eq(store_restored(rig.store).from_ms, 12345);
    ck_assert_int_gt(store_restored(rig.store).at_ms, clock_wall_ms() - 60000);
    autofree char *mark = xprintf("%s.incarnation", rig.path);
    autofree char *late = xprintf("%u %lld 12345\n", store_incarnation(rig.store),
                                  (long long)(clock_wall_ms() - LOST_ASKED_MS));
    ck_assert(file_replace(mark, late, strlen(late), 0600, &rig.err));
    rig_reopen();
    ck_assert_int_eq(store_restored(rig.store).at_ms, 0);
}
END_TEST

START_TEST(a_mark_that_is_damaged_is_refused)
{
    static const char *const damaged[] = {"", "x", "12", "12 0", "-1 0 0", "12 0 0 0", "9999999999 0 0"};
    autofree char *mark = xprintf("%s.incarnation", rig.path);
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        rig_close();
        ck_assert(file_replace(mark, damaged[i], strlen(damaged[i]), 0600, &rig.err));
        ck_assert_msg(store_open(rig.path, &rig.err) == NULL, "\"%s\"", damaged[i]);
        ck_assert_ptr_nonnull(strstr(rig.err.text, ".incarnation"));
        ck_assert_ptr_nonnull(strstr(rig.err.hint, "gpuctl admin restore"));
    }
}
END_TEST

/* --- whatever happens ----------------------------------------------------------------------------------- */

enum { DEEDS = 150, BACKUPS = 8 };

struct seen {
    uint32_t items[DEEDS + 1];
    size_t count;
};

static void start(struct seen *seen)
{
    rig_reopen();
    uint32_t incarnation = store_incarnation(rig.store);
    for (size_t i = 0; i < seen->count; i++) {
        ck_assert_msg(seen->items[i] != incarnation, "start %zu and start %zu are both %u", i, seen->count,
                      incarnation);
    }
    seen->items[seen->count++] = incarnation;
}

/* A machine that is lost takes its mark along, and the backup comes back on another: whatever was begun on
 * the first since then is known to nobody. */
START_TEST(starts_backups_and_restores_in_any_order_never_have_an_incarnation_twice)
{
    struct chance chance = {.state = (uint64_t)_i + 1};
    struct seen seen = {.items = {store_incarnation(rig.store)}, .count = 1};
    char *backups[BACKUPS] = {backup(0)};
    for (int i = 0; i < DEEDS; i++) {
        uint64_t deed = chance_below(&chance, 10);
        size_t slot = (size_t)chance_below(&chance, BACKUPS);
        if (deed < 3 && rig.store != NULL) {
            free(backups[slot]);
            backups[slot] = backup((int)slot);
        } else if (deed < 6 && backups[slot] != NULL) {
            if (chance_of(&chance, 50)) {
                rig_close();
                remove_mark();
            }
            restore(backups[slot], 1, (uint32_t)chance_below(&chance, UINT32_MAX));
        }
        start(&seen);
    }
    for (size_t i = 0; i < BACKUPS; i++) {
        free(backups[i]);
    }
}
END_TEST

Suite *store_incarnation_suite(void)
{
    Suite *suite = suite_create("store-incarnation");
    TCase *cases = tcase_create("incarnation");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, an_older_database_put_in_place_by_hand_is_noticed_and_begins_above_all_starts);
    tcase_add_test(cases, a_restored_database_tells_since_when_for_a_day);
    tcase_add_test(cases, a_mark_that_is_damaged_is_refused);
    tcase_add_loop_test(cases, starts_backups_and_restores_in_any_order_never_have_an_incarnation_twice, 0,
                        2);
    suite_add_tcase(suite, cases);
    return suite;
}
