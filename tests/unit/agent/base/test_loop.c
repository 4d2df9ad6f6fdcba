/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/loop: what is done when nothing else is to be done. */
#include <stdlib.h>

#include "agent/base/loop.h"
#include "proto/base/clock.h"
#include "tests/unit/agent/agent_suites.h"

#define LATE_MS 20000

static struct loop *loop;
static bool armed, too_late;
static int idle_calls;
static struct loop_timer early, late;

static void note(void *closure)
{
    *(bool *)closure = true;
}

static void end_late(void *closure)
{
    too_late = true;
    loop_end(loop);
}

static void arm_early(void)
{
    loop_set(loop, &early, note, &armed);
    loop_arm(loop, &early, clock_boot_ms() - 1);
}

static void setup(void)
{
    loop = loop_create();
    armed = too_late = false;
    idle_calls = 0;
    loop_set(loop, &late, end_late, NULL);
    loop_arm(loop, &late, clock_boot_ms() + LATE_MS);
}

static void teardown(void)
{
    loop_disarm(loop, &late);
    loop_destroy(loop);
}

static bool end_when_armed(void *closure)
{
    if (armed) {
        loop_end(loop);
    } else {
        arm_early();
    }
    idle_calls++;
    return false;
}

static void nothing(void *closure)
{
}

START_TEST(idle_follows_a_timer_that_was_due_before_the_loop)
{
    loop_set_idle(loop, end_when_armed, NULL);
    arm_early();
    loop_run(loop);
    ck_assert(!too_late);
    ck_assert_int_eq(idle_calls, 1);
}
END_TEST

/* It is due when the loop looks next, so no alarm is set for it. */
START_TEST(idle_follows_a_timer_that_it_armed_for_now)
{
    struct loop_timer event = {.due = nothing};
    loop_set_idle(loop, end_when_armed, NULL);
    loop_arm(loop, &event, clock_boot_ms() + 2);
    loop_run(loop);
    loop_disarm(loop, &event);
    ck_assert(!too_late);
    ck_assert_int_eq(idle_calls, 2);
}
END_TEST

Suite *loop_suite(void)
{
    Suite *suite = suite_create("loop");
    TCase *tcase = tcase_create("idle");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, idle_follows_a_timer_that_was_due_before_the_loop);
    tcase_add_test(tcase, idle_follows_a_timer_that_it_armed_for_now);
    suite_add_tcase(suite, tcase);
    return suite;
}
