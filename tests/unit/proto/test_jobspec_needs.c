/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what a job brings with it: its environment and its bundle, each refusal with code and field, the
 * round trip; and of which variables are secrets. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec.h"
#include "proto/spec/jobspec_parts.h"
#include "proto/limits.h"
#include "tests/unit/proto/proto_suites.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* A spec with one member more. */
static json_t *with(const char *name, json_t *value)
{
    json_t *json = parse_quoted("{'gpus':1,'command':['true']}");
    json_object_set_new(json, name, value);
    return json;
}

/* Takes over json. */
static struct job_spec decode(json_t *json)
{
    struct job_spec spec;
    struct err err = {0};
    ck_assert_msg(job_spec_decode(json, LIMIT_LEASE_MIN_MS, &spec, &err), "%s", err.text);
    return spec;
}

/* --- what is taken --- */

START_TEST(an_environment_is_lines_or_a_blob)
{
    struct job_spec spec = decode(
        with("environment", parse_quoted("{'requirements':['numpy==2.1.0','','# x'],'python':'3.11'}")));
    ck_assert(job_spec_has_environment(&spec));
    ck_assert_uint_eq(json_array_size(spec.environment.requirements), 3);
    ck_assert_str_eq(spec.environment.python, "3.11");
    ck_assert_ptr_null(spec.environment.blob);
    job_spec_finish(&spec);
    spec = decode(with("environment", parse_quoted("{'blob':'" HASH "','requirements':null,'python':null}")));
    ck_assert(job_spec_has_environment(&spec));
    ck_assert_str_eq(spec.environment.blob, HASH);
    ck_assert_ptr_null(spec.environment.python);
    job_spec_finish(&spec);
    spec = decode(with("environment", json_null()));
    ck_assert(!job_spec_has_environment(&spec));
    job_spec_finish(&spec);
}
END_TEST

START_TEST(a_bundle_is_a_blob_with_folders_to_import_from)
{
    struct job_spec spec =
        decode(with("bundle", parse_quoted("{'blob':'" HASH "','python_path':['.','src','a/b']}")));
    ck_assert_str_eq(spec.bundle.blob, HASH);
    ck_assert_uint_eq(json_array_size(spec.bundle.python_path), 3);
    job_spec_finish(&spec);
    spec = decode(with("bundle", parse_quoted("{'blob':'" HASH "','python_path':null}")));
    ck_assert_ptr_null(spec.bundle.python_path);
    job_spec_finish(&spec);
}
END_TEST

START_TEST(environment_and_bundle_survive_encode_and_decode)
{
    static const char *const specs[] = {
        "{'gpus':1,'command':['x'],'environment':{'requirements':[]}}",
        "{'gpus':1,'command':['x'],'environment':{'requirements':['a','b'],'python':'3.9'}}",
        "{'gpus':1,'command':['x'],'environment':{'blob':'" HASH "'},'bundle':{'blob':'" HASH "'}}",
        "{'gpus':1,'command':['x'],'bundle':{'blob':'" HASH "','python_path':['src']}}",
    };
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        autojson json_t *json = parse_quoted(specs[i]);
        struct job_spec spec = decode(json_incref(json));
        autojson json_t *canonical = job_spec_encode(&spec);
        ck_assert_msg(json_equal(canonical, json), "%s", specs[i]);
        job_spec_finish(&spec);
    }
}
END_TEST

/* Requirements of one line that has this many bytes with its end. */
static json_t *requirements_of(size_t bytes)
{
    autofree char *line = xzalloc(bytes);
    memset(line, 'x', bytes - 1);
    return json_pack("{s:[s]}", "requirements", line);
}

START_TEST(requirements_may_fill_their_limit)
{
    struct job_spec spec = decode(with("environment", requirements_of(LIMIT_REQUIREMENTS_BYTES)));
    job_spec_finish(&spec);
    struct err err = {0};
    ck_assert(!job_spec_decode(with("environment", requirements_of(LIMIT_REQUIREMENTS_BYTES + 1)),
                               LIMIT_LEASE_MIN_MS, &spec, &err));
    ck_assert_int_eq(err.code, ERR_TOO_LARGE);
    ck_assert_str_eq(err.field, "environment.requirements");
    ck_assert_ptr_nonnull(strstr(err.hint, "environment.blob"));
}
END_TEST

/* --- what is refused --- */

struct refused {
    const char *name, *value;
    enum err_code code;
    const char *field;
};

static const struct refused refuseds[] = {
    {"environment", "[]", ERR_FIELD, "environment"},
    {"environment", "'x'", ERR_FIELD, "environment"},
    {"environment", "{}", ERR_FIELD, "environment"},
    {"environment", "{'python':'3.11'}", ERR_FIELD, "environment"},
    {"environment", "{'requirements':[],'blob':'" HASH "'}", ERR_FIELD, "environment"},
    {"environment", "{'requirements':'numpy'}", ERR_FIELD, "environment.requirements"},
    {"environment", "{'requirements':['a',1]}", ERR_FIELD, "environment.requirements[1]"},
    {"environment", "{'requirements':['a\\nb']}", ERR_FIELD, "environment.requirements[0]"},
    {"environment", "{'requirements':['a\\r']}", ERR_FIELD, "environment.requirements[0]"},
    {"environment", "{'requirement':['a']}", ERR_UNKNOWN_FIELD, "environment.requirement"},
    {"environment", "{'blob':1}", ERR_FIELD, "environment.blob"},
    {"environment", "{'blob':'" HASH "0'}", ERR_FIELD, "environment.blob"},
    {"environment", "{'requirements':[],'python':3.11}", ERR_FIELD, "environment.python"},
    {"environment", "{'requirements':[],'python':''}", ERR_FIELD, "environment.python"},
    {"environment", "{'requirements':[],'python':'3'}", ERR_FIELD, "environment.python"},
    {"environment", "{'requirements':[],'python':'3.11.2'}", ERR_FIELD, "environment.python"},
    {"environment", "{'requirements':[],'python':'3.x'}", ERR_FIELD, "environment.python"},
    {"environment", "{'requirements':[],'python':'311.1'}", ERR_FIELD, "environment.python"},
    {"bundle", "'" HASH "'", ERR_FIELD, "bundle"},
    {"bundle", "{}", ERR_FIELD, "bundle.blob"},
    {"bundle", "{'blob':null}", ERR_FIELD, "bundle.blob"},
    {"bundle", "{'blob':'x'}", ERR_FIELD, "bundle.blob"},
    {"bundle", "{'blobs':'" HASH "'}", ERR_UNKNOWN_FIELD, "bundle.blobs"},
    {"bundle", "{'blob':'" HASH "','python_path':'src'}", ERR_FIELD, "bundle.python_path"},
    {"bundle", "{'blob':'" HASH "','python_path':[1]}", ERR_FIELD, "bundle.python_path[0]"},
    {"bundle", "{'blob':'" HASH "','python_path':['a','']}", ERR_FIELD, "bundle.python_path[1]"},
    {"bundle", "{'blob':'" HASH "','python_path':['..']}", ERR_FIELD, "bundle.python_path[0]"},
    {"bundle", "{'blob':'" HASH "','python_path':['a/../b']}", ERR_FIELD, "bundle.python_path[0]"},
    {"bundle", "{'blob':'" HASH "','python_path':['./a']}", ERR_FIELD, "bundle.python_path[0]"},
    {"bundle", "{'blob':'" HASH "','python_path':['/a']}", ERR_FIELD, "bundle.python_path[0]"},
    {"bundle", "{'blob':'" HASH "','python_path':['a/']}", ERR_FIELD, "bundle.python_path[0]"},
    {"bundle", "{'blob':'" HASH "','python_path':['a:b']}", ERR_FIELD, "bundle.python_path[0]"},
};
#define REFUSEDS ((int)(sizeof refuseds / sizeof refuseds[0]))

START_TEST(a_wrong_need_is_refused_by_its_path)
{
    const struct refused *refused = &refuseds[_i];
    autofree char *text = xprintf("{'gpus':1,'command':['true'],'%s':%s}", refused->name, refused->value);
    struct job_spec spec;
    struct err err = {0};
    ck_assert_msg(!job_spec_decode(parse_quoted(text), LIMIT_LEASE_MIN_MS, &spec, &err), "%s", text);
    ck_assert_msg(err.code == refused->code, "%s: %s", text, err.text);
    ck_assert_str_eq(err.field, refused->field);
    ck_assert_msg(strstr(err.text, refused->field) != NULL, "%s", err.text);
}
END_TEST

START_TEST(more_folders_than_the_limit_are_refused)
{
    for (int count = LIMIT_PYTHON_PATHS; count <= LIMIT_PYTHON_PATHS + 1; count++) {
        json_t *bundle = parse_quoted("{'blob':'" HASH "','python_path':[]}");
        for (int i = 0; i < count; i++) {
            json_array_append_new(json_object_get(bundle, "python_path"), json_string("src"));
        }
        struct job_spec spec;
        struct err err = {0};
        bool taken = job_spec_decode(with("bundle", bundle), LIMIT_LEASE_MIN_MS, &spec, &err);
        ck_assert_msg(taken == (count == LIMIT_PYTHON_PATHS), "%d: %s", count, taken ? "taken" : err.text);
        if (taken) {
            job_spec_finish(&spec);
        }
    }
}
END_TEST

/* --- secrets --- */

START_TEST(names_that_speak_of_secrets_are_known_by_their_words)
{
    static const char *const secrets[] = {"HF_TOKEN",          "TOKEN",         "WANDB_API_KEY",
                                          "wandb_api_key",     "DB_PASSWORD",   "AWS_SECRET_ACCESS_KEY",
                                          "GITHUB_PAT",        "_AUTH",         "OPENAI_APIKEY",
                                          "MY_CREDENTIALS_v2", "SENTRY_DSN",    "A__KEY",
                                          "SSH_PASSPHRASE",    "Session_Cookie"};
    static const char *const others[] = {"TOKENIZERS_PARALLELISM",
                                         "KEYBOARD",
                                         "PATH",
                                         "MONKEY",
                                         "HF_HOME",
                                         "PASSED",
                                         "",
                                         "_",
                                         "PYTHONPATH",
                                         "AUTHOR",
                                         "TOKEN2"};
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        ck_assert_msg(jobspec_is_secret(secrets[i]), "%s", secrets[i]);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert_msg(!jobspec_is_secret(others[i]), "%s", others[i]);
    }
}
END_TEST

START_TEST(secrets_are_not_shown_and_stay_in_the_spec)
{
    struct job_spec spec =
        decode(with("env", parse_quoted("{'HF_TOKEN':'hf_1','TOKENIZERS_PARALLELISM':'false'}")));
    autofree char *shown = job_spec_shown(&spec);
    ck_assert_str_eq(shown, "{\"gpus\":1,\"command\":[\"true\"],\"env\":{\"HF_TOKEN\":\"***\","
                            "\"TOKENIZERS_PARALLELISM\":\"false\"}}");
    ck_assert_str_eq(json_string_value(json_object_get(spec.env, "HF_TOKEN")), "hf_1");
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(spec.json, "env"), "HF_TOKEN")),
                     "hf_1");
    job_spec_finish(&spec);
    spec = decode(with("env", parse_quoted("{'TOKENIZERS_PARALLELISM':'false'}")));
    ck_assert_ptr_null(job_spec_shown(&spec));
    job_spec_finish(&spec);
}
END_TEST

START_TEST(credentials_of_an_index_are_not_shown)
{
    struct job_spec spec = decode(
        with("environment",
             parse_quoted(
                 "{'requirements':['--index-url https://ann:pw%40d@host/simple','numpy==2.1.0',"
                 "'a @ git+https://tok@host/a.git','--extra-index-url=http://u:p@[::1]:80/ https://x:y@z',"
                 "'b @ git+ssh://git@host/b.git','c @ https://host/c@1','d'],'python':'3.11'}")));
    autofree char *shown = job_spec_shown(&spec);
    ck_assert_str_eq(
        shown, "{\"gpus\":1,\"command\":[\"true\"],\"environment\":{\"requirements\":["
               "\"--index-url https://***@host/simple\",\"numpy==2.1.0\",\"a @ git+https://***@host/a.git\","
               "\"--extra-index-url=http://***@[::1]:80/ https://***@z\",\"b @ git+ssh://git@host/b.git\","
               "\"c @ https://host/c@1\",\"d\"],\"python\":\"3.11\"}}");
    ck_assert_ptr_nonnull(
        strstr(json_string_value(json_array_get(spec.environment.requirements, 0)), "ann:pw"));
    job_spec_finish(&spec);
    spec =
        decode(with("environment", parse_quoted("{'requirements':['numpy','c @ https://host/c@1','://']}")));
    ck_assert_ptr_null(job_spec_shown(&spec));
    job_spec_finish(&spec);
}
END_TEST

Suite *jobspec_needs_suite(void)
{
    Suite *suite = suite_create("jobspec_needs");
    TCase *taken = tcase_create("taken");
    tcase_add_test(taken, an_environment_is_lines_or_a_blob);
    tcase_add_test(taken, a_bundle_is_a_blob_with_folders_to_import_from);
    tcase_add_test(taken, environment_and_bundle_survive_encode_and_decode);
    tcase_add_test(taken, requirements_may_fill_their_limit);
    suite_add_tcase(suite, taken);
    TCase *refused = tcase_create("refused");
    tcase_add_loop_test(refused, a_wrong_need_is_refused_by_its_path, 0, REFUSEDS);
    tcase_add_test(refused, more_folders_than_the_limit_are_refused);
    suite_add_tcase(suite, refused);
    TCase *secrets = tcase_create("secrets");
    tcase_add_test(secrets, names_that_speak_of_secrets_are_known_by_their_words);
    tcase_add_test(secrets, secrets_are_not_shown_and_stay_in_the_spec);
    tcase_add_test(secrets, credentials_of_an_index_are_not_shown);
    suite_add_tcase(suite, secrets);
    return suite;
}
