/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/wire/messages_sample: what attempts and nodes use arrives as it was measured. */
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/wire/messages.h"
#include "tests/unit/proto/over_the_wire.h"
#include "tests/unit/proto/proto_suites.h"

START_TEST(what_attempts_use_arrives_as_it_was_measured)
{
    struct gpu_sample gpus[] = {{97, 70LL << 30, 80LL << 30, 650250, 64, 123456789}, GPU_SAMPLE_UNKNOWN};
    struct rank_sample ranks[] = {{8, 6.5, 2 * GIB, 5 * GIB, 6 * GIB}, {9, -1, -1, -1, -1}};
    struct sample samples[] = {
        {ATTEMPT_ID, 1700000000123, 30, 12.125, 3 * GIB, 64 * GIB, 7 * GIB, 8 * GIB, gpus, 2, ranks, 2},
        {ATTEMPT_ID + 1, 1700000000124, 40, -1, -1, -1, -1, -1, NULL, 0, NULL, 0},
    };
    struct heartbeat_message message = {.node = "n1", .boot_id = "b", .samples = samples, .sample_count = 2};
    SEND(heartbeat_message, &message, copy);
    ck_assert_uint_eq(copy.sample_count, 2);
    ck_assert_uint_eq(copy.samples[0].attempt_id, ATTEMPT_ID);
    ck_assert_int_eq(copy.samples[0].at_ms, 1700000000123);
    ck_assert_int_eq(copy.samples[0].step, 30);
    ck_assert_double_eq(copy.samples[0].cpu_percent, 12.125);
    ck_assert_int_eq(copy.samples[0].memory_bytes, 3 * GIB);
    ck_assert_int_eq(copy.samples[0].memory_total_bytes, 64 * GIB);
    ck_assert_int_eq(copy.samples[0].io_read_bytes, 7 * GIB);
    ck_assert_int_eq(copy.samples[0].io_written_bytes, 8 * GIB);
    ck_assert_int_eq(copy.samples[1].io_read_bytes, -1);
    ck_assert_uint_eq(copy.samples[0].gpu_count, 2);
    ck_assert_mem_eq(copy.samples[0].gpus, gpus, sizeof gpus);
    ck_assert_double_eq(copy.samples[1].cpu_percent, -1);
    ck_assert_int_eq(copy.samples[1].memory_bytes, -1);
    ck_assert_uint_eq(copy.samples[1].gpu_count, 0);
    ck_assert_uint_eq(copy.samples[0].rank_count, 2);
    ck_assert_mem_eq(copy.samples[0].ranks, ranks, sizeof ranks);
    ck_assert_uint_eq(copy.samples[1].rank_count, 0);
    heartbeat_message_finish(&copy);
}
END_TEST

START_TEST(what_the_node_uses_arrives_as_it_was_measured)
{
    struct gpu_sample gpus[] = {{97, 70LL << 30, 80LL << 30, 650250, 64, 123456789}, GPU_SAMPLE_UNKNOWN};
    struct machine_sample machine = {12.125, 3 * GIB, 64 * GIB, gpus, 2};
    struct heartbeat_message message = {.node = "n1", .boot_id = "b", .machine = &machine};
    SEND(heartbeat_message, &message, copy);
    ck_assert_double_eq(copy.machine->cpu_percent, 12.125);
    ck_assert_int_eq(copy.machine->memory_bytes, 3 * GIB);
    ck_assert_int_eq(copy.machine->memory_total_bytes, 64 * GIB);
    ck_assert_uint_eq(copy.machine->gpu_count, 2);
    ck_assert_mem_eq(copy.machine->gpus, gpus, sizeof gpus);
    heartbeat_message_finish(&copy);
}
END_TEST

START_TEST(what_is_not_known_of_the_node_is_absent)
{
    struct machine_sample machine = {-1, -1, -1, NULL, 0};
    struct heartbeat_message message = {.node = "n1", .boot_id = "b", .machine = &machine};
    SEND(heartbeat_message, &message, copy);
    ck_assert_double_eq(copy.machine->cpu_percent, -1);
    ck_assert_int_eq(copy.machine->memory_bytes, -1);
    ck_assert_int_eq(copy.machine->memory_total_bytes, -1);
    ck_assert_uint_eq(copy.machine->gpu_count, 0);
    heartbeat_message_finish(&copy);
}
END_TEST

START_TEST(values_of_the_node_that_no_machine_has_are_refused)
{
    static const char *const wrong[] = {"{'cpu_percent':101}",
                                        "{'memory_bytes':-1}",
                                        "[]",
                                        "{'gpus':[{'temperature_c':256}]}",
                                        "{'gpus':[{'energy_mj':-1}]}",
                                        "{'gpus':[{'busy_percent':101}]}",
                                        "{'gpus':{}}"};
    struct err err;
    struct heartbeat_message copy;
    autofree char *text = xprintf("{'node':'n','boot_id':'b','seq':1,'machine':%s}", wrong[_i]);
    ck_assert(!heartbeat_message_decode(parse_quoted(text), &copy, &err));
    ck_assert_int_eq(err.code, ERR_FIELD);
}
END_TEST

START_TEST(values_of_a_rank_that_none_has_are_refused)
{
    static const char *const wrong[] = {"{}",
                                        "{'rank':-1}",
                                        "{'rank':0,'cpu_percent':101}",
                                        "{'rank':0,'memory_bytes':-1}",
                                        "{'rank':0,'io_read_bytes':'1'}",
                                        "{'rank':0,'io_written_bytes':-1}"};
    struct err err;
    struct heartbeat_message copy;
    autofree char *text =
        xprintf("{'node':'n','boot_id':'b','seq':1,'samples':[{'epoch':1,'at_ms':1,'step':1,'ranks':[%s]}]}",
                wrong[_i]);
    ck_assert(!heartbeat_message_decode(parse_quoted(text), &copy, &err));
    ck_assert_int_eq(err.code, ERR_FIELD);
    ck_assert_msg(strstr(err.field, "samples[0].ranks[0].") == err.field, "%s", err.field);
}
END_TEST

START_TEST(an_agent_that_does_not_measure_sends_no_samples)
{
    struct heartbeat_message message = {.node = "n1", .boot_id = "b"};
    autojson json_t *json = heartbeat_message_encode(&message);
    ck_assert_ptr_null(json_object_get(json, "samples"));
    SEND(heartbeat_message, &message, copy);
    ck_assert_uint_eq(copy.sample_count, 0);
    ck_assert_ptr_null(copy.machine);
    heartbeat_message_finish(&copy);
}
END_TEST

Suite *messages_sample_suite(void)
{
    Suite *suite = suite_create("messages-sample");
    TCase *trips = tcase_create("trips");
    tcase_add_test(trips, what_attempts_use_arrives_as_it_was_measured);
    tcase_add_test(trips, what_the_node_uses_arrives_as_it_was_measured);
    tcase_add_test(trips, what_is_not_known_of_the_node_is_absent);
    tcase_add_loop_test(trips, values_of_the_node_that_no_machine_has_are_refused, 0, 7);
    tcase_add_loop_test(trips, values_of_a_rank_that_none_has_are_refused, 0, 6);
    tcase_add_test(trips, an_agent_that_does_not_measure_sends_no_samples);
    suite_add_tcase(suite, trips);
    return suite;
}
