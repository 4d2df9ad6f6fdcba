/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/jobspec_place and proto/node_label: types by preference, constraints, what they come to. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec.h"
#include "proto/limits.h"
#include "proto/spec/node_label.h"
#include "tests/unit/proto/proto_suites.h"

static bool decode(const char *members, struct job_spec *ret_spec, struct err *err)
{
    json_t *json = parse_quoted("{'gpus':1,'command':['true']}");
    autojson json_t *more = parse_quoted(members);
    json_object_update(json, more);
    return job_spec_decode(json, LIMIT_LEASE_MIN_MS, ret_spec, err);
}

static void assert_terms(const char *members, const char *terms)
{
    struct job_spec spec;
    struct err err = {0};
    ck_assert_msg(decode(members, &spec, &err), "%s", err.text);
    ck_assert_pstr_eq(spec.terms, terms);
    job_spec_finish(&spec);
}

static void assert_refused(const char *members, const char *field)
{
    struct job_spec spec;
    struct err err = {0};
    ck_assert_msg(!decode(members, &spec, &err), "%s", members);
    ck_assert_str_eq(err.field, field);
    ck_assert_msg(strstr(err.text, field) != NULL, "%s", err.text);
    ck_assert_str_ne(err.hint, "");
}

START_TEST(equal_demands_come_to_equal_terms)
{
    assert_terms("{}", NULL);
    assert_terms("{'constraints':{},'avoid':[],'exclude':[]}", NULL);
    assert_terms("{'constraints':{'zone':'a'}}", "zone=a");
    assert_terms("{'constraints':{'zone':['b','a','b'],'disk':{'not':'hdd'}}}", "disk!=hdd zone=a,b");
    assert_terms("{'constraints':{'disk':{'not':['hdd']},'zone':{'in':['a','b']}}}", "disk!=hdd zone=a,b");
    assert_terms("{'constraints':{'zone':{'in':['a','b'],'not':'b'}}}", "zone=a,b zone!=b");
    assert_terms("{'volumes':['b:/b:ro','a:/a']}", "volume.a=ro,rw volume.b=ro,rw");
    assert_terms("{'volumes':['a:/a:rw','b:rw']}", "volume.a=rw volume.b=rw,rw-fixed");
    assert_terms("{'volumes':['a:/a','b'],'checkpoint_volume':'b'}", "volume.a=ro,rw volume.b=rw,rw-fixed");
    assert_terms("{'inputs':['volume:a/x','volume:a/y'],'volumes':['b:rw']}",
                 "volume.a=ro,ro-fixed,rw,rw-fixed volume.b=rw,rw-fixed");
    assert_terms("{'inputs':['volume:a/x'],'volumes':['a:rw']}", "volume.a=rw,rw-fixed");
    assert_terms("{'volumes':['a','b:ro']}", "volume.a=ro,ro-fixed,rw,rw-fixed volume.b=ro,ro-fixed,rw");
    assert_terms("{'exclude':['n3'],'avoid':['n2','n1']}", "avoid:n1,n2 exclude:n3");
}
END_TEST

START_TEST(where_a_job_may_run_survives_encode_and_decode)
{
    struct job_spec spec, copy;
    struct err err = {0};
    ck_assert(
        decode("{'gpu_type':['H100','A100'],'constraints':{'zone':['a'],'x':{'not':'y'}},'avoid':['n1'],"
               "'exclude':['n2'],'placement':'spread'}",
               &spec, &err));
    ck_assert_str_eq(spec.gpu_type, "H100|A100");
    ck_assert(job_spec_decode(job_spec_encode(&spec), LIMIT_LEASE_MIN_MS, &copy, &err));
    ck_assert_str_eq(copy.gpu_type, "H100|A100");
    ck_assert_str_eq(copy.terms, spec.terms);
    ck_assert_str_eq(copy.terms, "x!=y zone=a avoid:n1 exclude:n2");
    ck_assert_int_eq(copy.placement, PLACEMENT_SPREAD);
    job_spec_finish(&spec);
    job_spec_finish(&copy);
}
END_TEST

START_TEST(wrong_types_are_refused)
{
    assert_refused("{'gpu_type':'H100|'}", "gpu_type");
    assert_refused("{'gpu_type':'H100|h100'}", "gpu_type");
    assert_refused("{'gpu_type':'H100 | A100'}", "gpu_type");
    assert_refused("{'gpu_type':[]}", "gpu_type");
    assert_refused("{'gpu_type':['H100',1]}", "gpu_type");
    assert_refused("{'gpu_type':['H100|A100']}", "gpu_type");
    assert_refused("{'gpu_type':'a|b|c|d|e|f|g|h|i'}", "gpu_type");
}
END_TEST

START_TEST(wrong_constraints_are_refused)
{
    assert_refused("{'constraints':['zone=a']}", "constraints");
    assert_refused("{'constraints':{'zone a':'x'}}", "constraints.zone a");
    assert_refused("{'constraints':{'zone':[]}}", "constraints.zone");
    assert_refused("{'constraints':{'zone':1}}", "constraints.zone");
    assert_refused("{'constraints':{'zone':'a,b'}}", "constraints.zone");
    assert_refused("{'constraints':{'zone':['a b']}}", "constraints.zone");
    assert_refused("{'constraints':{'zone':{}}}", "constraints.zone");
    assert_refused("{'avoid':'n1 n2'}", "avoid");
    assert_refused("{'exclude':[1]}", "exclude");
}
END_TEST

START_TEST(an_unknown_side_of_a_constraint_is_told_what_was_meant)
{
    struct job_spec spec;
    struct err err = {0};
    ck_assert(!decode("{'constraints':{'zone':{'nto':'a'}}}", &spec, &err));
    ck_assert_int_eq(err.code, ERR_UNKNOWN_FIELD);
    ck_assert_str_eq(err.field, "constraints.zone.nto");
    ck_assert_str_eq(err.hint, "did you mean not?");
}
END_TEST

START_TEST(contradictions_are_refused)
{
    assert_refused("{'constraints':{'zone':{'in':['a','b'],'not':['b','a']}}}", "constraints.zone");
    assert_refused("{'constraints':{'node':['n1','n2']},'exclude':['n1','n2']}", "exclude");
    assert_terms("{'constraints':{'node':['n1','n2']},'exclude':['n1']}", "node=n1,n2 exclude:n1");
}
END_TEST

START_TEST(an_unknown_placement_is_told_the_choices)
{
    struct job_spec spec;
    struct err err = {0};
    ck_assert(!decode("{'placement':'scatter'}", &spec, &err));
    ck_assert_str_eq(err.text, "placement must be one of: pack spread");
}
END_TEST

START_TEST(labels_of_nodes_are_key_and_value)
{
    autojson json_t *labels = json_object();
    struct err err = {0};
    ck_assert(node_label_take("zone=eu/1=x", labels, &err));
    ck_assert_str_eq(json_string_value(json_object_get(labels, "zone")), "eu/1=x");
    static const char *const wrong[] = {"zone",     "zone=",  "=a",           "zone=a b",
                                        "zone=a,b", "node=x", "gpu_type=H100"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!node_label_take(wrong[i], labels, &err), "%s", wrong[i]);
        ck_assert_str_eq(err.field, "--label");
        ck_assert_str_ne(err.hint, "");
    }
    ck_assert_uint_eq(json_object_size(labels), 1);
}
END_TEST

Suite *jobspec_place_suite(void)
{
    Suite *suite = suite_create("jobspec_place");
    TCase *tests = tcase_create("jobspec_place");
    tcase_add_test(tests, equal_demands_come_to_equal_terms);
    tcase_add_test(tests, where_a_job_may_run_survives_encode_and_decode);
    tcase_add_test(tests, wrong_types_are_refused);
    tcase_add_test(tests, wrong_constraints_are_refused);
    tcase_add_test(tests, an_unknown_side_of_a_constraint_is_told_what_was_meant);
    tcase_add_test(tests, contradictions_are_refused);
    tcase_add_test(tests, an_unknown_placement_is_told_the_choices);
    tcase_add_test(tests, labels_of_nodes_are_key_and_value);
    suite_add_tcase(suite, tests);
    return suite;
}
