/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/base/cache.c: how a thing comes into it. test_environments.c has what uses and limits do. */
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/base/cache.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"
#include "tests/unit/agent/agent_rig.h"
#include "tests/unit/agent/agent_suites.h"

#define HASH "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static struct cache *cache;

static void setup(void)
{
    struct err err = {0};
    rig_setup();
    autofree char *folder = rig_path("things");
    cache =
        cache_create(&(struct cache_config){.folder = folder, .noun = "thing", .limit_bytes = 1000}, &err);
    ck_assert_msg(cache != NULL, "%s", err.text);
}

static void teardown(void)
{
    cache_destroy(cache);
    rig_teardown();
}

static bool is_there(const char *name)
{
    autofree char *path = xprintf("%s/%s", cache_folder(cache), name);
    return access(path, F_OK) == 0;
}

/* Locks the place of a thing, whose part has a file. */
static int begin(char **ret_part)
{
    struct err err = {0};
    rig_write_text("things/" HASH CACHE_PART "/data", "x");
    *ret_part = xprintf("%s/" HASH CACHE_PART, cache_folder(cache));
    int lock = cache_lock(*ret_part, &err);
    ck_assert_msg(lock >= 0, "%s", err.text);
    return lock;
}

START_TEST(a_thing_is_used_once_it_has_marker_name_and_folder)
{
    struct err err = {0};
    autofree char *part = NULL;
    autofree char *folder = NULL;
    autojson json_t *found = NULL;
    autofree char *place = xprintf("%s/" HASH, cache_folder(cache));
    autojson json_t *marker = json_pack("{s:i}", "size_bytes", 10);
    int maker = begin(&part);
    ck_assert(cache_mark(part, marker, &err) && cache_link(cache, "name", place, &err));
    ck_assert(cache_link(cache, "name", place, &err)); /* of an earlier maker that was killed here */
    ck_assert_int_lt(cache_use(cache, "name", &found, &folder), 0);
    ck_assert_int_eq(rename(part, place), 0);
    ck_assert_int_lt(cache_use(cache, "name", &found, &folder), 0); /* its maker has the lock */
    close(maker);
    autoclose int user = cache_use(cache, "name", &found, &folder);
    ck_assert_int_ge(user, 0);
    ck_assert(json_equal(found, marker));
    ck_assert_str_eq(folder, place);
}
END_TEST

START_TEST(a_thing_has_one_maker_and_a_part_without_one_goes)
{
    struct err err = {0};
    autofree char *part = NULL;
    int maker = begin(&part);
    ck_assert(cache_lock(part, &err) < 0 && err.code == ERR_CONFLICT);
    cache_make_room(cache, 0);
    ck_assert(is_there(HASH CACHE_PART));
    close(maker);
    cache_make_room(cache, 0);
    ck_assert(!is_there(HASH CACHE_PART) && is_there(HASH ".lock"));
}
END_TEST

START_TEST(a_marker_that_could_not_be_read_again_is_not_written)
{
    struct err err = {0};
    autofree char *part = NULL;
    autofree char *long_text = xzalloc(LIMIT_MARKER_BYTES + 1);
    autojson json_t *marker = json_object();
    autoclose int maker = begin(&part);
    for (size_t i = 0; i < LIMIT_MARKER_BYTES; i++) {
        long_text[i] = 'x';
    }
    json_object_set_new(marker, "text", json_string(long_text));
    ck_assert(maker >= 0 && !cache_mark(part, marker, &err) && err.code == ERR_TOO_LARGE);
    ck_assert(!is_there(HASH CACHE_PART "/gpuctl.json"));
}
END_TEST

Suite *cache_suite(void)
{
    Suite *suite = suite_create("cache");
    TCase *tcase = tcase_create("cache");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_thing_is_used_once_it_has_marker_name_and_folder);
    tcase_add_test(tcase, a_thing_has_one_maker_and_a_part_without_one_goes);
    tcase_add_test(tcase, a_marker_that_could_not_be_read_again_is_not_written);
    suite_add_tcase(suite, tcase);
    return suite;
}
