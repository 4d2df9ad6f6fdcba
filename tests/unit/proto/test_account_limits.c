/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/account_limits: what is read is written again, and what is wrong is refused by name. */
#include <string.h>

#include "proto/spec/account_limits.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "tests/unit/proto/proto_suites.h"

static bool decode(const char *json, enum account_kind kind, struct account_limits *ret_limits,
                   struct err *err)
{
    *err = (struct err){0};
    autojson json_t *parsed = json_parse(json, strlen(json), err);
    ck_assert_msg(parsed != NULL, "%s", err->text);
    return account_limits_decode(parsed, kind, ret_limits, err);
}

static void assert_again(enum account_kind kind, const char *json, const char *expected)
{
    struct err err;
    struct account_limits limits, copy;
    autotext struct text text = {0};
    ck_assert_msg(decode(json, kind, &limits, &err), "%s", err.text);
    account_limits_copy(&limits, &copy);
    account_limits_finish(&limits);
    account_limits_encode(&copy, kind, &text);
    account_limits_finish(&copy);
    ck_assert_str_eq(text.bytes, expected);
}

static void assert_refused(enum account_kind kind, const char *json, const char *field)
{
    struct err err;
    struct account_limits limits;
    ck_assert_msg(!decode(json, kind, &limits, &err), "%s", json);
    ck_assert_str_eq(err.field, field);
}

START_TEST(limits_are_written_as_they_were_read_and_without_what_is_no_limit)
{
    const char *all = "{\"quota\":{\"A10\":8},\"max_gpus\":{\"A10\":16,\"*\":32},\"max_cpus\":12.5,"
                      "\"max_memory\":1073741824,\"max_running_jobs\":0,"
                      "\"max_queued_jobs\":100,\"gpu_hours\":{\"hours\":1.5,\"period_s\":86400},"
                      "\"pools\":[\"a\",\"b\"],\"on_disconnect\":[\"requeue\",\"fail\"],\"weight\":0.5}";
    assert_again(ACCOUNT_PROJECT, all, all);
    assert_again(ACCOUNT_PROJECT, "{}", "{}");
    assert_again(ACCOUNT_USER, "{\"weight\":1,\"max_gpus\":{\"A10\":null},\"max_running_jobs\":null}", "{}");
    assert_again(ACCOUNT_POOL, "{\"lend\":true}", "{\"lend\":true}");
    assert_again(ACCOUNT_POOL, "{}", "{\"lend\":false}");
    assert_again(ACCOUNT_POOL, "{\"isolation\":\"user\"}", "{\"lend\":false,\"isolation\":\"user\"}");
}
END_TEST

START_TEST(wrong_limits_are_refused_by_their_name)
{
    assert_refused(ACCOUNT_PROJECT, "{\"quota\":{\"*\":8}}", "quota");
    assert_refused(ACCOUNT_PROJECT, "{\"quota\":{\"A10\":0}}", "quota");
    assert_refused(ACCOUNT_PROJECT, "{\"quota\":[]}", "quota");
    assert_refused(ACCOUNT_PROJECT, "{\"pools\":\"a\"}", "pools");
    assert_refused(ACCOUNT_PROJECT, "{\"pools\":[\"a b\"]}", "pools");
    assert_refused(ACCOUNT_USER, "{\"pools\":[\"a\"]}", "pools");
    assert_refused(ACCOUNT_PROJECT, "{\"on_disconnect\":\"fail\"}", "on_disconnect");
    assert_refused(ACCOUNT_PROJECT, "{\"on_disconnect\":[\"stop\"]}", "on_disconnect");
    assert_refused(ACCOUNT_USER, "{\"on_disconnect\":[\"fail\"]}", "on_disconnect");
    assert_refused(ACCOUNT_PROJECT, "{\"max_cpus\":\"4\"}", "max_cpus");
    assert_refused(ACCOUNT_PROJECT, "{\"max_memory\":\"4X\"}", "max_memory");
    assert_refused(ACCOUNT_PROJECT, "{\"max_gpus\":{\"A10\":1,\"a10\":2}}", "max_gpus");
    assert_refused(ACCOUNT_PROJECT, "{\"max_gpus\":{\"A10\":1000001}}", "max_gpus");
    assert_refused(ACCOUNT_PROJECT, "{\"max_gpus\":{\"A10\":1.5}}", "max_gpus");
    assert_refused(ACCOUNT_PROJECT, "{\"gpu_hours\":{\"hours\":-1,\"period_s\":60}}", "gpu_hours");
    assert_refused(ACCOUNT_PROJECT, "{\"gpu_hours\":{\"hours\":1,\"period_s\":59}}", "gpu_hours");
    assert_refused(ACCOUNT_PROJECT, "{\"gpu_hours\":{\"hours\":1,\"period_s\":60,\"x\":1}}", "gpu_hours");
    assert_refused(ACCOUNT_PROJECT, "{\"weight\":1000.1}", "weight");
    assert_refused(ACCOUNT_PROJECT, "{\"lend\":true}", "lend");
    assert_refused(ACCOUNT_POOL, "{\"isolation\":\"vm\"}", "isolation");
    assert_refused(ACCOUNT_USER, "{\"quota\":{\"A10\":8}}", "quota");
    assert_refused(ACCOUNT_POOL, "{\"weight\":1}", "weight");
    assert_refused(ACCOUNT_USER, "{\"max_gpus weight\":1}", "max_gpus weight");
}
END_TEST

Suite *account_limits_suite(void)
{
    Suite *suite = suite_create("account_limits");
    TCase *tests = tcase_create("account_limits");
    tcase_add_test(tests, limits_are_written_as_they_were_read_and_without_what_is_no_limit);
    tcase_add_test(tests, wrong_limits_are_refused_by_their_name);
    suite_add_tcase(suite, tests);
    return suite;
}
