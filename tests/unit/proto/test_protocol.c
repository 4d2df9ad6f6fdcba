/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/protocol: which agents a controller takes, and what the others are told. */
#include "proto/wire/protocol.h"

#include <string.h>

#include "proto/wire/messages.h"
#include "tests/unit/proto/proto_suites.h"

START_TEST(a_controller_takes_agents_of_its_protocol_and_of_the_one_before)
{
    struct err err = {0};
    ck_assert(protocol_check(3, 3, "0.3.0", &err) && protocol_check(3, 2, "0.2.0", &err));
    ck_assert(!protocol_check(3, 1, "0.1.0", &err));
    ck_assert_str_eq(err.field, "protocol");
    ck_assert_str_eq(err.text, "gpuagent 0.1.0 speaks protocol 1, gpuctld " GPUCTL_VERSION " at least 2");
    ck_assert_ptr_nonnull(strstr(err.hint, "upgrade this agent"));
    ck_assert(!protocol_check(3, 4, "0.4.0", &err));
    ck_assert_str_eq(err.text, "gpuagent 0.4.0 speaks protocol 4, gpuctld " GPUCTL_VERSION " at most 3");
    ck_assert_ptr_nonnull(strstr(err.hint, "upgrade gpuctld first"));
}
END_TEST

/* It may say all else in ways that nobody here knows. */
START_TEST(a_foreign_protocol_is_refused_before_the_rest_is_read)
{
    struct err err = {0};
    struct register_message message;
    ck_assert(!register_message_decode(parse_quoted("{'protocol':1000,'version':'9.0','name':['n']}"),
                                       &message, &err));
    ck_assert_int_eq(err.code, ERR_FIELD);
    ck_assert_str_eq(err.field, "protocol");
    ck_assert_ptr_nonnull(strstr(err.text, "gpuagent 9.0 speaks protocol 1000"));
}
END_TEST

START_TEST(an_agent_that_names_no_protocol_speaks_the_first)
{
    struct err err = {0};
    struct register_message message;
    ck_assert(register_message_decode(
        parse_quoted("{'name':'n','boot_id':'b','host_id':'h','version':'1','address':'a'}"), &message,
        &err));
    ck_assert_int_eq(message.protocol, PROTOCOL_FIRST);
    register_message_finish(&message);
}
END_TEST

Suite *protocol_suite(void)
{
    Suite *suite = suite_create("protocol");
    TCase *tcase = tcase_create("protocol");
    tcase_add_test(tcase, a_controller_takes_agents_of_its_protocol_and_of_the_one_before);
    tcase_add_test(tcase, a_foreign_protocol_is_refused_before_the_rest_is_read);
    tcase_add_test(tcase, an_agent_that_names_no_protocol_speaks_the_first);
    suite_add_tcase(suite, tcase);
    return suite;
}
