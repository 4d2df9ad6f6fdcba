/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/staging: what a spec needs, which needs are equal, and that a need is read as it was
 * written. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/wire/staging.h"
#include "tests/unit/proto/proto_suites.h"

#define SIXTEEN "0123456789abcdef"
#define A       SIXTEEN SIXTEEN SIXTEEN "aaaaaaaaaaaaaaaa"
#define B       SIXTEEN SIXTEEN SIXTEEN "bbbbbbbbbbbbbbbb"
#define C       SIXTEEN SIXTEEN SIXTEEN "cccccccccccccccc"

static struct job_spec spec_of(const char *members)
{
    json_t *json = parse_quoted("{'gpus':1}");
    autojson json_t *more = parse_quoted(members);
    json_object_update(json, more);
    if (json_object_get(json, "function") == NULL) {
        json_object_set_new(json, "command", json_pack("[s]", "true"));
    }
    struct job_spec spec;
    struct err err = {0};
    ck_assert_msg(job_spec_decode(json, LIMIT_LEASE_MIN_MS, &spec, &err), "%s", err.text);
    return spec;
}

/* What such a spec of somebody needs; NULL when it needs nothing. */
static json_t *need_of_owner(const char *members, const char *owner)
{
    struct job_spec spec = spec_of(members);
    json_t *need = staging_of_spec(&spec, owner);
    job_spec_finish(&spec);
    return need;
}

static json_t *need_of(const char *members)
{
    return need_of_owner(members, "ann");
}

static char *key_of(const char *members)
{
    autojson json_t *need = need_of(members);
    return xstrdup(json_string_value(json_object_get(need, "key")));
}

static void assert_keys(const char *left, const char *right, bool equal)
{
    autofree char *left_key = key_of(left);
    autofree char *right_key = key_of(right);
    ck_assert_uint_eq(strlen(left_key), HASH_HEX);
    ck_assert_msg((strcmp(left_key, right_key) == 0) == equal, "%s\n%s", left, right);
}

/* --- of a spec --- */

START_TEST(a_spec_without_environment_and_blobs_needs_nothing)
{
    ck_assert_ptr_null(need_of("{}"));
    ck_assert_ptr_null(
        need_of("{'python':'/venv/bin/python','env':{'A':'b'},'files':[{'path':'a','text':''}]}"));
    ck_assert_ptr_null(need_of("{'function':{'inline':'Z3B1Y3RsLWZ1bmN0aW9uIDEgcHl0aG9uPTMuMTEKLg=='}}"));
}
END_TEST

START_TEST(every_blob_of_a_spec_is_needed_once_and_sorted)
{
    autojson json_t *need = need_of("{'function':{'blob':'" C "','modules':'" B "'},'bundle':{'blob':'" A
                                    "'},'files':[{'path':'a','blob':'" B "'},{'path':'b','blob':'" A
                                    "'},{'path':'c','text':''}]}");
    autojson json_t *expected = parse_quoted("['" A "','" B "','" C "']");
    ck_assert(json_equal(json_object_get(need, "blobs"), expected));
    ck_assert_ptr_null(json_object_get(need, "requirements"));
}
END_TEST

START_TEST(an_environment_is_named_by_the_hash_of_its_lines)
{
    struct job_spec spec = spec_of("{'environment':{'requirements':['numpy==2.1.0','torch']}}");
    char expected[HASH_HEX + 1], actual[HASH_HEX + 1];
    hash_hex("numpy==2.1.0\ntorch\n", strlen("numpy==2.1.0\ntorch\n"), expected);
    staging_requirements_hash(&spec, actual);
    ck_assert_str_eq(actual, expected);
    autotext struct text text = {0};
    staging_requirements_text(&spec, &text);
    ck_assert_str_eq(text.bytes, "numpy==2.1.0\ntorch\n");
    autojson json_t *need = staging_of_spec(&spec, "ann");
    ck_assert_str_eq(json_string_value(json_object_get(need, "requirements")), expected);
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(need, "blobs"), 0)), expected);
    job_spec_finish(&spec);
}
END_TEST

START_TEST(an_environment_of_no_lines_is_one_too)
{
    struct job_spec spec = spec_of("{'environment':{'requirements':[]}}");
    char expected[HASH_HEX + 1], actual[HASH_HEX + 1];
    hash_hex("", 0, expected);
    staging_requirements_hash(&spec, actual);
    ck_assert_str_eq(actual, expected);
    autojson json_t *need = staging_of_spec(&spec, "ann");
    ck_assert_ptr_nonnull(need);
    job_spec_finish(&spec);
}
END_TEST

START_TEST(inputs_are_needed_by_their_urls_and_options)
{
    json_t *need = need_of("{'inputs':['n=https://h/x#secret=S:/data','s3://b/k/'],'project':'p'}");
    struct staging staging;
    struct err err;
    ck_assert(staging_decode(need, &staging, &err));
    ck_assert_uint_eq(staging.input_count, 2);
    ck_assert_str_eq(staging.inputs[0].url, "https://h/x");
    ck_assert_str_eq(staging.inputs[0].secret, "S");
    ck_assert_ptr_null(staging.inputs[0].value);
    ck_assert_str_eq(staging.inputs[1].url, "s3://b/k/");
    ck_assert_str_eq(staging.owner, "ann");
    ck_assert_str_eq(staging.project, "p");
    staging_finish(&staging);
}
END_TEST

START_TEST(who_asks_counts_where_inputs_name_secrets)
{
    static const char *const open = "{'inputs':['https://h/x']}", *const closed =
                                                                      "{'inputs':['https://h/x#secret=S']}";
    const char *const both[] = {open, closed};
    for (size_t i = 0; i < 2; i++) {
        autojson json_t *anns = need_of_owner(both[i], "ann");
        autojson json_t *bobs = need_of_owner(both[i], "bob");
        ck_assert_int_eq(json_equal(anns, bobs), i == 0);
    }
    assert_keys(open, closed, false);
    assert_keys("{'inputs':['a=https://h/x:/data']}", "{'inputs':['b=https://h/x']}", true);
}
END_TEST

START_TEST(an_input_without_a_hash_may_change)
{
    struct job_spec pinned = spec_of("{'inputs':['https://h/x#sha256=" A "']}");
    struct job_spec mixed = spec_of("{'inputs':['https://h/x#sha256=" A "','https://h/y']}");
    struct job_spec none = spec_of("{}");
    ck_assert(!staging_is_unpinned(&pinned) && staging_is_unpinned(&mixed) && !staging_is_unpinned(&none));
    job_spec_finish(&pinned);
    job_spec_finish(&mixed);
    job_spec_finish(&none);
}
END_TEST

/* --- keys --- */

START_TEST(equal_needs_have_one_key)
{
    assert_keys("{'files':[{'path':'a','blob':'" A "'},{'path':'b','blob':'" B "'}]}",
                "{'files':[{'path':'x','blob':'" B "'},{'path':'y','blob':'" A "'},{'path':'z','blob':'" A
                "'}],'name':'other','env':{'X':'y'}}",
                true);
    assert_keys("{'files':[{'path':'a','blob':'" A "'}]}", "{'bundle':{'blob':'" A "'}}", true);
    char hash[HASH_HEX + 1];
    hash_hex("numpy\n", strlen("numpy\n"), hash);
    autofree char *by_blob = xprintf("{'environment':{'blob':'%s','python':'3.11'}}", hash);
    assert_keys("{'environment':{'python':'3.11','requirements':['numpy']}}", by_blob, true);
}
END_TEST

START_TEST(other_needs_have_other_keys)
{
    const char *plain = "{'environment':{'requirements':['numpy']}}";
    assert_keys(plain, "{'environment':{'requirements':['numpy','']}}", false);
    assert_keys(plain, "{'environment':{'requirements':['numpy'],'python':'3.11'}}", false);
    assert_keys(plain, "{'environment':{'requirements':['numpy']},'python':'/venv/bin/python'}", false);
    assert_keys(plain, "{'environment':{'requirements':['numpy']},'bundle':{'blob':'" A "'}}", false);
    char hash[HASH_HEX + 1];
    hash_hex("numpy\n", strlen("numpy\n"), hash);
    autofree char *as_file = xprintf("{'files':[{'path':'requirements.txt','blob':'%s'}]}", hash);
    assert_keys(plain, as_file, false); /* the same bytes, but nothing is built of them */
}
END_TEST

START_TEST(the_interpreter_matters_to_an_environment_only)
{
    assert_keys("{'bundle':{'blob':'" A "'},'python':'/venv/bin/python'}", "{'bundle':{'blob':'" A "'}}",
                true);
}
END_TEST

/* --- parts --- */

static char *parts_of(const char *members, const char *owner)
{
    autojson json_t *need = need_of_owner(members, owner);
    char *parts = staging_part_keys(need);
    ck_assert(parts == NULL || strlen(parts) % (HASH_HEX + 1) == HASH_HEX);
    return parts;
}

/* The part of a need that has this one part alone. */
static char *part_of(const char *members, const char *owner)
{
    char *part = parts_of(members, owner);
    ck_assert_ptr_nonnull(part);
    ck_assert_uint_eq(strlen(part), HASH_HEX);
    return part;
}

static void assert_parts(const char *left, const char *right, bool equal)
{
    autofree char *left_part = part_of(left, "ann");
    autofree char *right_part = part_of(right, "ann");
    ck_assert_msg((strcmp(left_part, right_part) == 0) == equal, "%s\n%s", left, right);
}

START_TEST(code_is_no_part_and_changes_none)
{
    ck_assert_ptr_null(parts_of("{'bundle':{'blob':'" A "'},'files':[{'path':'a','blob':'" B "'}]}", "ann"));
    assert_parts("{'inputs':['https://h/x'],'bundle':{'blob':'" A "'}}",
                 "{'inputs':['other=https://h/x:/data'],'bundle':{'blob':'" B "'}}", true);
    assert_parts("{'image':'a:1','bundle':{'blob':'" A "'}}", "{'image':'a:1','python':'py'}", true);
    assert_parts("{'environment':{'requirements':['numpy']},'bundle':{'blob':'" A "'}}",
                 "{'environment':{'requirements':['numpy']}}", true);
}
END_TEST

START_TEST(each_part_has_a_key_of_its_own)
{
    autofree char *image = part_of("{'image':'a:1'}", "ann");
    autofree char *first = part_of("{'inputs':['https://h/x']}", "ann");
    autofree char *second = part_of("{'inputs':['s3://b/k/']}", "ann");
    autofree char *all = parts_of("{'image':'a:1','inputs':['https://h/x','s3://b/k/']}", "ann");
    autofree char *expected = xprintf("%s %s %s", image, first, second);
    ck_assert_str_eq(all, expected);
    ck_assert_str_ne(first, second);
    autofree char *other = part_of("{'image':'b:1'}", "ann");
    autofree char *two = parts_of("{'image':'a:1','worker_image':'b:1','gpus':2,'nodes':2}", "ann");
    autofree char *both = xprintf("%s %s", image, other);
    ck_assert_str_eq(two, both);
}
END_TEST

START_TEST(parts_differ_in_all_that_nodes_get_for_them)
{
    assert_parts("{'image':'a:1'}", "{'image':'a:2'}", false);
    assert_parts("{'inputs':['https://h/x']}", "{'inputs':['https://h/x#sha256=" A "']}", false);
    assert_parts("{'inputs':['https://h/x']}", "{'inputs':['https://h/x#secret=S']}", false);
    const char *plain = "{'environment':{'requirements':['numpy']}}";
    assert_parts(plain, "{'environment':{'requirements':['torch']}}", false);
    assert_parts(plain, "{'environment':{'requirements':['numpy'],'python':'3.11'}}", false);
    assert_parts(plain, "{'environment':{'requirements':['numpy']},'python':'/venv/bin/python'}", false);
}
END_TEST

START_TEST(a_part_that_a_secret_opens_is_of_its_owner)
{
    static const char *const needs[] = {"{'image':'a:1'}", "{'inputs':['https://h/x']}",
                                        "{'image':'a:1','image_secret':'KEY'}",
                                        "{'inputs':['https://h/x#secret=S']}"};
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        autofree char *of_ann = part_of(needs[i], "ann");
        autofree char *of_bob = part_of(needs[i], "bob");
        ck_assert_int_eq(strcmp(of_ann, of_bob) == 0, i < 2);
    }
    autofree char *open = part_of("{'inputs':['https://h/x']}", "ann");
    autofree char *mixed = parts_of("{'inputs':['https://h/y#secret=S','https://h/x']}", "bob");
    ck_assert_str_eq(mixed + HASH_HEX + 1, open);
}
END_TEST

/* --- reading --- */

START_TEST(a_need_is_read_as_it_was_written)
{
    struct staging staging;
    struct err err = {0};
    json_t *need =
        need_of("{'environment':{'blob':'" B "','python':'3.12'},'python':'py','bundle':{'blob':'" A "'}}");
    json_object_set_new(need, "mood", json_string("good"));
    ck_assert_msg(staging_decode(need, &staging, &err), "%s", err.text);
    ck_assert_str_eq(staging.requirements, B);
    ck_assert_str_eq(staging.python_version, "3.12");
    ck_assert_str_eq(staging.python, "py");
    ck_assert_uint_eq(staging.blob_count, 2);
    ck_assert_str_eq(staging.blobs[0], A);
    ck_assert_str_eq(staging.blobs[1], B);
    ck_assert_uint_eq(strlen(staging.key), HASH_HEX);
    staging_finish(&staging);
    ck_assert_ptr_null(staging.json);
}
END_TEST

START_TEST(a_need_without_environment_is_read_without)
{
    struct staging staging;
    struct err err = {0};
    ck_assert_msg(staging_decode(need_of("{'bundle':{'blob':'" A "'},'python':'py'}"), &staging, &err), "%s",
                  err.text);
    ck_assert_ptr_null(staging.requirements);
    ck_assert_ptr_null(staging.python_version);
    ck_assert_ptr_null(staging.python);
    ck_assert_uint_eq(staging.blob_count, 1);
    staging_finish(&staging);
}
END_TEST

START_TEST(a_wrong_need_is_refused_by_its_member)
{
    static const struct {
        const char *json, *field;
    } wrongs[] = {
        {"{'blobs':[]}", "key"},
        {"{'key':'x','blobs':[]}", "key"},
        {"{'key':'" A "','requirements':'x'}", "requirements"},
        {"{'key':'" A "','python_version':3}", "python_version"},
        {"{'key':'" A "','python':[]}", "python"},
        {"{'key':'" A "','blobs':{}}", "blobs"},
        {"{'key':'" A "','blobs':['" A "',1]}", "blobs[1]"},
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        struct staging staging;
        struct err err = {0};
        ck_assert_msg(!staging_decode(parse_quoted(wrongs[i].json), &staging, &err), "%s", wrongs[i].json);
        ck_assert_int_eq(err.code, ERR_FIELD);
        ck_assert_str_eq(err.field, wrongs[i].field);
    }
    struct staging staging;
    struct err err = {0};
    ck_assert(!staging_decode(parse_quoted("[]"), &staging, &err));
    ck_assert_int_eq(err.code, ERR_MALFORMED);
}
END_TEST

START_TEST(an_image_is_a_need_and_one_with_a_secret_is_of_its_owner)
{
    struct staging staging;
    struct err err = {0};
    struct job_spec spec = spec_of("{'image':'a:1','image_secret':'KEY'}");
    autojson json_t *of_bob = staging_of_spec(&spec, "bob");
    ck_assert_msg(staging_decode(staging_of_spec(&spec, "ann"), &staging, &err), "%s", err.text);
    ck_assert_str_eq(staging.image, "a:1");
    ck_assert_str_eq(staging.image_secret, "KEY");
    ck_assert_str_eq(staging.owner, "ann");
    ck_assert_str_eq(staging.project, "default");
    ck_assert_ptr_null(staging.image_auth);
    ck_assert_str_ne(staging.key, json_string_value(json_object_get(of_bob, "key")));
    staging_finish(&staging);
    job_spec_finish(&spec);
    assert_keys("{'image':'a:1'}", "{'image':'a:2'}", false);
    assert_keys("{'image':'a:1'}", "{'image':'a:1','worker_image':'a:2'}", false);
    assert_keys("{'image':'a:1'}", "{'image':'a:1','python':'py'}", true);
}
END_TEST

Suite *staging_suite(void)
{
    Suite *suite = suite_create("staging");
    TCase *specs = tcase_create("of a spec");
    tcase_add_test(specs, a_spec_without_environment_and_blobs_needs_nothing);
    tcase_add_test(specs, every_blob_of_a_spec_is_needed_once_and_sorted);
    tcase_add_test(specs, an_environment_is_named_by_the_hash_of_its_lines);
    tcase_add_test(specs, an_environment_of_no_lines_is_one_too);
    tcase_add_test(specs, inputs_are_needed_by_their_urls_and_options);
    tcase_add_test(specs, who_asks_counts_where_inputs_name_secrets);
    tcase_add_test(specs, an_input_without_a_hash_may_change);
    suite_add_tcase(suite, specs);
    TCase *keys = tcase_create("keys");
    tcase_add_test(keys, equal_needs_have_one_key);
    tcase_add_test(keys, other_needs_have_other_keys);
    tcase_add_test(keys, the_interpreter_matters_to_an_environment_only);
    suite_add_tcase(suite, keys);
    TCase *parts = tcase_create("parts");
    tcase_add_test(parts, code_is_no_part_and_changes_none);
    tcase_add_test(parts, each_part_has_a_key_of_its_own);
    tcase_add_test(parts, parts_differ_in_all_that_nodes_get_for_them);
    tcase_add_test(parts, a_part_that_a_secret_opens_is_of_its_owner);
    suite_add_tcase(suite, parts);
    TCase *reading = tcase_create("reading");
    tcase_add_test(reading, a_need_is_read_as_it_was_written);
    tcase_add_test(reading, a_need_without_environment_is_read_without);
    tcase_add_test(reading, an_image_is_a_need_and_one_with_a_secret_is_of_its_owner);
    tcase_add_test(reading, a_wrong_need_is_refused_by_its_member);
    suite_add_tcase(suite, reading);
    return suite;
}
