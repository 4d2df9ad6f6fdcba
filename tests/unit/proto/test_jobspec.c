/* SPDX-License-Identifier: Apache-2.0 */
/* What job specs take, with their defaults, and the round trip. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec.h"
#include "proto/limits.h"
#include "tests/unit/proto/jobspec_rig.h"
#include "tests/unit/proto/proto_suites.h"

/* --- what is taken --- */

START_TEST(the_least_spec_gets_the_defaults)
{
    struct job_spec spec = spec_taken(spec_with("{}"));
    ck_assert_int_eq(spec.gpus, 1);
    ck_assert(spec.remote);
    ck_assert_int_eq(spec.use_reserved_pool, USE_RESERVED_AUTO);
    ck_assert_int_eq(spec.launch_mode, LAUNCH_PROCESS);
    ck_assert_int_eq(spec.on_disconnect, ON_DISCONNECT_KEEP);
    ck_assert_ptr_null(spec.name);
    ck_assert_ptr_null(spec.gpu_type);
    ck_assert_ptr_null(spec.env);
    ck_assert_ptr_null(spec.workdir);
    ck_assert_uint_eq(spec.file_count, 0);
    ck_assert_int_eq(spec.time_limit_ms, 0);
    ck_assert_int_eq(spec.grace_ms, DEFAULT_GRACE_MS);
    ck_assert_int_eq(spec.lease_ms, DEFAULT_LEASE_MS);
    ck_assert_int_eq(spec.retries, 0);
    ck_assert_int_eq(spec.infra_retries, DEFAULT_INFRA_RETRIES);
    ck_assert_str_eq(json_string_value(json_array_get(spec.command, 0)), "true");
    job_spec_finish(&spec);
    ck_assert_ptr_null(spec.json);
}
END_TEST

START_TEST(null_is_the_same_as_absent)
{
    struct job_spec spec =
        spec_taken(spec_with("{'name':null,'env':null,'files':null,'remote':null,'use_reserved_pool':null,"
                             "'launch_mode':null,'retries':null,'lease_s':null,'function':null}"));
    ck_assert(!job_spec_is_function(&spec));
    autojson json_t *canonical = job_spec_encode(&spec);
    autojson json_t *least = parse_quoted("{'gpus':1,'command':['true']}");
    ck_assert(json_equal(canonical, least));
    job_spec_finish(&spec);
}
END_TEST

#define FULL                                                                                                 \
    "{'name':'train-1','gpus':65536,'gpu_type':'A10','remote':false,'use_reserved_pool':false,'pool':'p',"   \
    "'launch_mode':'node','command':['python','','x y'],'env':{'HF_HOME':'t','_x9':'','NONE':null},"         \
    "'secrets':['HF_TOKEN','A=B_2','KEY:file','KEY=CREDENTIALS:file'],"                                      \
    "'volumes':['data:/data:ro','scratch:rw','home'],'checkpoint_volume':'scratch',"                         \
    "'inputs':['t=https://h:1/a=b:c/x?q#secret=S&sha256=" HASH ":/in','s3://b/k-1/','volume:data'],"         \
    "'labels':{'team':'nlp'},'files':[{'path':'a/b.py','text':'print(1)','executable':true},"                \
    "{'path':'a/c','base64':'aGk='},{'path':'d','blob':'" HASH                                               \
    "'}],'workdir':'/data','python':'python3.11',"                                                           \
    "'project':'q','priority':-1000,'time_limit_s':3600,'grace_s':1.5,'keep_on_failure_s':2.5,'lease_s':60," \
    "'retries':100,"                                                                                         \
    "'early_signal':{'signal':'HUP','before_s':2.5},"                                                        \
    "'traceparent':'00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01','tracestate':'a=b',"            \
    "'cpus':131072.5,'memory':1099511627776,"                                                                \
    "'infra_retries':0,'on_disconnect':'requeue','host_id':'" HASH "'}"

static void assert_secret(const struct job_secret *secret, const char *name, const char *variable, bool file)
{
    ck_assert_str_eq(secret->name, name);
    ck_assert_str_eq(secret->variable, variable);
    ck_assert(secret->file == file);
}

static void assert_inputs(const struct job_spec *spec)
{
    const struct job_input *input = spec->inputs;
    ck_assert_uint_eq(spec->input_count, 3);
    ck_assert_str_eq(input->variable, "GPUCTL_INPUT_T");
    ck_assert_str_eq(input->url, "https://h:1/a=b:c/x?q");
    ck_assert_str_eq(input->path, "/in");
    ck_assert_str_eq(input->secret, "S");
    ck_assert_str_eq(input->sha256, HASH);
    ck_assert(input->source == SOURCE_HTTP && input[1].source == SOURCE_S3 &&
              input[2].source == SOURCE_VOLUME);
    ck_assert_str_eq(input[1].variable, "GPUCTL_INPUT_K_1");
    ck_assert_str_eq(input[2].place, "data");
    ck_assert(input[1].path == NULL && input[1].secret == NULL && input[1].sha256 == NULL);
}

START_TEST(a_full_spec_is_read_field_by_field)
{
    struct job_spec spec = spec_taken(parse_quoted(FULL));
    assert_inputs(&spec);
    ck_assert_str_eq(spec.name, "train-1");
    ck_assert_int_eq(spec.gpus, LIMIT_GPUS);
    ck_assert_int_eq(spec.millicpus, 131072500);
    ck_assert_int_eq(spec.memory_bytes, 1024 * GIB);
    ck_assert_str_eq(spec.gpu_type, "A10");
    ck_assert(!spec.remote);
    ck_assert_int_eq(spec.use_reserved_pool, USE_RESERVED_FALSE);
    ck_assert_str_eq(spec.pool, "p");
    ck_assert_int_eq(spec.launch_mode, LAUNCH_NODE);
    ck_assert_uint_eq(json_array_size(spec.command), 3);
    ck_assert_str_eq(json_string_value(json_object_get(spec.env, "HF_HOME")), "t");
    ck_assert_str_eq(json_string_value(json_object_get(spec.labels, "team")), "nlp");
    ck_assert_uint_eq(spec.secret_count, 4);
    assert_secret(&spec.secrets[0], "HF_TOKEN", "HF_TOKEN", false);
    assert_secret(&spec.secrets[1], "A", "B_2", false);
    assert_secret(&spec.secrets[2], "KEY", "KEY_FILE", true);
    assert_secret(&spec.secrets[3], "KEY", "CREDENTIALS", true);
    ck_assert_uint_eq(spec.file_count, 3);
    ck_assert_str_eq(spec.files[0].path, "a/b.py");
    ck_assert_str_eq(spec.files[0].text, "print(1)");
    ck_assert(spec.files[0].executable && !spec.files[1].executable);
    ck_assert_str_eq(spec.files[1].base64, "aGk=");
    ck_assert_str_eq(spec.files[2].blob, HASH);
    ck_assert_str_eq(spec.workdir, "/data");
    ck_assert_str_eq(spec.python, "python3.11");
    ck_assert_str_eq(spec.project, "q");
    ck_assert_int_eq(spec.priority, -1000);
    ck_assert_int_eq(spec.time_limit_ms, 3600000);
    ck_assert_int_eq(spec.grace_ms, 1500);
    ck_assert_int_eq(spec.keep_ms, 2500);
    ck_assert_int_eq(spec.early_signal.signal, EARLY_HUP);
    ck_assert_int_eq(spec.early_signal.before_ms, 2500);
    ck_assert_int_eq(spec.lease_ms, 60000);
    ck_assert_int_eq(spec.retries, 100);
    ck_assert_int_eq(spec.infra_retries, 0);
    ck_assert_int_eq(spec.on_disconnect, ON_DISCONNECT_REQUEUE);
    ck_assert_str_eq(spec.host_id, HASH);
    ck_assert_str_eq(spec.traceparent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    ck_assert_str_eq(spec.tracestate, "a=b");
    job_spec_finish(&spec);
}
END_TEST

START_TEST(memory_may_be_written_as_people_write_it_and_gpus_may_be_none)
{
    struct job_spec spec = spec_taken(parse_quoted("{'gpus':0,'command':['x'],'cpus':2.0,'memory':'512M'}"));
    ck_assert_int_eq(spec.gpus, 0);
    ck_assert_int_eq(spec.millicpus, 2000);
    ck_assert_int_eq(spec.memory_bytes, 512 * MIB);
    autojson json_t *canonical = job_spec_encode(&spec);
    autojson json_t *expected = parse_quoted("{'gpus':0,'command':['x'],'cpus':2,'memory':536870912}");
    ck_assert(json_equal(canonical, expected));
    job_spec_finish(&spec);
}
END_TEST

START_TEST(an_early_signal_may_have_sig_before_its_name_and_comes_a_minute_before_the_limit)
{
    struct job_spec spec =
        spec_taken(parse_quoted("{'gpus':1,'command':['x'],'early_signal':{'signal':'SIGUSR2'}}"));
    ck_assert_int_eq(spec.early_signal.signal, EARLY_USR2);
    ck_assert_int_eq(spec.early_signal.before_ms, 60000);
    autojson json_t *canonical = job_spec_encode(&spec);
    autojson json_t *expected = parse_quoted("{'gpus':1,'command':['x'],'early_signal':{'signal':'USR2'}}");
    ck_assert(json_equal(canonical, expected));
    job_spec_finish(&spec);
}
END_TEST

START_TEST(a_spec_survives_encode_and_decode)
{
    static const char *const specs[] = {
        FULL, "{'gpus':2,'command':['x'],'use_reserved_pool':true,'env':{}}",
        "{'gpus':2,'command':['x'],'time_limit_s':0.001,'on_disconnect':'fail'}"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        autojson json_t *original = parse_quoted(specs[i]);
        struct job_spec spec = spec_taken(json_incref(original));
        autojson json_t *canonical = job_spec_encode(&spec);
        ck_assert_msg(json_equal(canonical, original), "%s", specs[i]);
        autofree char *text = json_text(canonical);
        struct job_spec again = spec_taken(json_loads(text, 0, NULL));
        autojson json_t *twice = job_spec_encode(&again);
        ck_assert(json_equal(canonical, twice));
        job_spec_finish(&spec);
        job_spec_finish(&again);
    }
}
END_TEST

#define OF_BLOB "{'gpus':1,'function':{'blob':'" HASH "','modules':'" HASH "'}}"

START_TEST(jobs_to_dependency_are_read_and_survive_encode_and_decode)
{
    struct job_spec first =
        spec_taken(spec_with("{'after':[" ID_A ",{'job':" ID_B ",'when':'afterany'}],'hold':true}"));
    struct job_spec spec = spec_taken(job_spec_encode(&first));
    ck_assert(spec.hold);
    ck_assert_uint_eq(spec.dependency_count, 2);
    ck_assert_str_eq(spec.dependencies[0].job, "aaaaaaaaaaaaaaaa");
    ck_assert_int_eq(spec.dependencies[0].when, DEPENDENCY_AFTEROK);
    ck_assert_str_eq(spec.dependencies[1].job, "bbbbbbbbbbbbbbbb");
    ck_assert_int_eq(spec.dependencies[1].when, DEPENDENCY_AFTERANY);
    job_spec_finish(&first);
    job_spec_finish(&spec);
}
END_TEST

START_TEST(a_job_follows_so_many_others)
{
    autojson json_t *after = json_array();
    for (int i = 0; i <= LIMIT_DEPENDENCIES; i++) {
        char id[ID_LENGTH + 1];
        text_id_from_bytes((const uint8_t[10]){(uint8_t)i}, id);
        json_t *json = spec_with("{}");
        json_object_set_new(json, "after", json_deep_copy(after));
        struct job_spec spec = spec_taken(json);
        ck_assert_uint_eq(spec.dependency_count, (size_t)i);
        job_spec_finish(&spec);
        json_array_append_new(after, json_string(id));
    }
    json_t *json = spec_with("{}");
    json_object_set(json, "after", after);
    spec_refused(json, ERR_FIELD, "after");
}
END_TEST

START_TEST(a_function_stands_instead_of_a_command)
{
    struct job_spec spec = spec_taken(spec_of_payload(HEADER_LINE "x", strlen(HEADER_LINE) + 1));
    ck_assert(job_spec_is_function(&spec));
    ck_assert_ptr_null(spec.command);
    ck_assert_ptr_nonnull(spec.function.base64);
    ck_assert_ptr_null(spec.function.blob);
    ck_assert_ptr_null(spec.function.modules);
    job_spec_finish(&spec);
    spec = spec_taken(parse_quoted(OF_BLOB));
    ck_assert(job_spec_is_function(&spec));
    ck_assert_ptr_null(spec.function.base64);
    ck_assert_str_eq(spec.function.blob, HASH);
    ck_assert_str_eq(spec.function.modules, HASH);
    job_spec_finish(&spec);
    spec = spec_taken(spec_with("{}"));
    ck_assert(!job_spec_is_function(&spec));
    job_spec_finish(&spec);
}
END_TEST

START_TEST(a_function_survives_encode_and_decode)
{
    json_t *specs[] = {spec_of_payload(HEADER_LINE "x", strlen(HEADER_LINE) + 1), parse_quoted(OF_BLOB)};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct job_spec spec = spec_taken(json_incref(specs[i]));
        autojson json_t *canonical = job_spec_encode(&spec);
        ck_assert(json_equal(canonical, specs[i]));
        job_spec_finish(&spec);
        json_decref(specs[i]);
    }
}
END_TEST

START_TEST(an_inline_function_is_shown_by_its_length_only)
{
    for (size_t more = 1; more <= 3; more++) { /* with two, one and no padding bytes */
        json_t *json = spec_of_payload(HEADER_LINE "xyz", strlen(HEADER_LINE) + more);
        json_object_set_new(json, "name", json_string("n"));
        autojson json_t *received = json_deep_copy(json);
        struct job_spec spec = spec_taken(json);
        autofree char *shown = job_spec_shown(&spec);
        autofree char *expected = xprintf("{\"gpus\":1,\"function\":{\"inline_bytes\":%zu},\"name\":\"n\"}",
                                          strlen(HEADER_LINE) + more);
        ck_assert_str_eq(shown, expected);
        ck_assert(json_equal(spec.json, received));
        job_spec_finish(&spec);
    }
}
END_TEST

START_TEST(other_specs_are_shown_as_they_were_received)
{
    static const char *const specs[] = {OF_BLOB, FULL};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct job_spec spec = spec_taken(parse_quoted(specs[i]));
        ck_assert_ptr_null(job_spec_shown(&spec));
        job_spec_finish(&spec);
    }
}
END_TEST

START_TEST(defaults_that_are_written_out_are_left_out_again)
{
    struct job_spec spec = spec_taken(spec_with(
        "{'remote':true,'launch_mode':'process','on_disconnect':'keep','priority':0,'time_limit_s':0,"
        "'grace_s':30,'lease_s':900.0,'retries':0,'infra_retries':3,'files':[]}"));
    autojson json_t *canonical = job_spec_encode(&spec);
    ck_assert_uint_eq(json_object_size(canonical), 2);
    job_spec_finish(&spec);
}
END_TEST

START_TEST(the_smallest_lease_is_the_callers)
{
    struct job_spec spec;
    struct err err = {0};
    ck_assert_msg(job_spec_decode(spec_with("{'lease_s':2}"), 2000, &spec, &err), "%s", err.text);
    ck_assert_int_eq(spec.lease_ms, 2000);
    job_spec_finish(&spec);
    ck_assert(!job_spec_decode(spec_with("{'lease_s':1.999}"), 2000, &spec, &err));
    ck_assert_str_eq(err.field, "lease_s");
    ck_assert_str_eq(err.text, "lease_s must be at least 2");
}
END_TEST

START_TEST(inline_files_may_fill_their_limit)
{
    json_t *json = spec_with("{'files':[{'path':'a','text':''},{'path':'b','base64':''}]}");
    json_t *files = json_object_get(json, "files");
    autofree char *half = xzalloc(LIMIT_INLINE_BYTES / 2 + 1);
    memset(half, 'x', LIMIT_INLINE_BYTES / 2);
    autofree char *base64 = text_to_base64((const uint8_t *)half, LIMIT_INLINE_BYTES / 2);
    json_object_set_new(json_array_get(files, 0), "text", json_string(half));
    json_object_set_new(json_array_get(files, 1), "base64", json_string(base64));
    struct job_spec spec = spec_taken(json_incref(json));
    job_spec_finish(&spec);
    json_array_append_new(files, parse_quoted("{'path':'c','text':'x'}"));
    struct err err = spec_refusal(json);
    ck_assert_int_eq(err.code, ERR_TOO_LARGE);
    ck_assert_str_eq(err.field, "files[2]");
    ck_assert_msg(strstr(err.hint, "blob") != NULL, "%s", err.hint);
}
END_TEST

START_TEST(paths_that_only_begin_alike_do_not_collide)
{
    struct job_spec spec =
        spec_taken(spec_with("{'files':[{'path':'a/b','text':''},{'path':'a/bc','text':''},"
                             "{'path':'a-','text':''},{'path':'...','text':''},{'path':'.a','text':''}]}"));
    ck_assert_uint_eq(spec.file_count, 5);
    job_spec_finish(&spec);
}
END_TEST

Suite *jobspec_suite(void)
{
    Suite *suite = suite_create("jobspec");
    TCase *taken = tcase_create("taken");
    tcase_add_test(taken, the_least_spec_gets_the_defaults);
    tcase_add_test(taken, null_is_the_same_as_absent);
    tcase_add_test(taken, a_full_spec_is_read_field_by_field);
    tcase_add_test(taken, memory_may_be_written_as_people_write_it_and_gpus_may_be_none);
    tcase_add_test(taken, an_early_signal_may_have_sig_before_its_name_and_comes_a_minute_before_the_limit);
    tcase_add_test(taken, a_spec_survives_encode_and_decode);
    tcase_add_test(taken, a_function_stands_instead_of_a_command);
    tcase_add_test(taken, a_function_survives_encode_and_decode);
    tcase_add_test(taken, an_inline_function_is_shown_by_its_length_only);
    tcase_add_test(taken, other_specs_are_shown_as_they_were_received);
    tcase_add_test(taken, defaults_that_are_written_out_are_left_out_again);
    tcase_add_test(taken, the_smallest_lease_is_the_callers);
    tcase_add_test(taken, inline_files_may_fill_their_limit);
    tcase_add_test(taken, jobs_to_dependency_are_read_and_survive_encode_and_decode);
    tcase_add_test(taken, a_job_follows_so_many_others);
    tcase_add_test(taken, paths_that_only_begin_alike_do_not_collide);
    suite_add_tcase(suite, taken);
    return suite;
}
